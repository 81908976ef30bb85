# SPDX-License-Identifier: MIT
"""What is installed beside the daemon: its unit, its example configuration and their pages."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

DATA = os.environ['DATA']
MAN = os.environ['MAN_PAGES']
NEWER_KEYS = ('RestartSteps', 'RestartMaxDelaySec', 'AcceptFileDescriptors')
SECURITY_AT_MOST = 25  # exposure in tenths; docs/trust.md tells it


def read(*path):
    with open(os.path.join(*path), encoding='utf-8') as f:
        return f.read()


def config(path=None):
    """Lines of "section key value", as the daemon reads the file; None: the defaults."""
    done = subprocess.run([os.environ['PRINT_CONFIG']] + ([path] if path else []),
                          capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    return [line.split(' ') for line in done.stdout.splitlines()]


def uncommented(text):
    return re.sub(r'(?m)^#(?=[a-z_]+ = |\[)', '', text)


class TheExample(unittest.TestCase):
    def setUp(self):
        self.text = read(DATA, 'gpreempt.conf')
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def as_read(self, text):
        path = os.path.join(self.dir.name, 'gpreempt.conf')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        return config(path)

    def test_it_changes_nothing(self):
        self.assertEqual(self.as_read(self.text), config())

    def test_every_line_it_shows_is_the_default(self):
        settings = uncommented(self.text.split('\n#[rule ')[0])
        self.assertEqual(self.as_read(settings), config())
        self.assertEqual(settings.count(' = '), self.text.split('\n#[rule ')[0].count(' = '))

    def test_its_rules_make_sense(self):
        read_rules = int(self.as_read(uncommented(self.text))[-1][1])
        self.assertEqual(read_rules, self.text.count('\n#[rule '))
        self.assertGreater(read_rules, 4)

    def test_every_key_is_in_it(self):
        for section, body in sections(uncommented(self.text)).items():
            self.assertEqual(sorted(body), sorted(keys_of(section)), section)


def keys_of(section):
    return [line[1] for line in config() if line[0] == section]


def sections(text):
    """Keys by section, those of all rules together."""
    found, current = {}, None
    for line in text.splitlines():
        head = re.match(r'\[(\w+)', line)
        key = re.match(r'([a-z_]+) = ', line)
        if head:
            current = found.setdefault(head.group(1), set())
        elif key:
            current.add(key.group(1))
    return found


class ThePage(unittest.TestCase):
    def test_every_key_is_explained_in_its_section(self):
        page = read(MAN, 'gpreempt.conf.5.scd')
        found, current = {}, None
        for line in page.splitlines():
            if line.startswith('# '):
                head = re.match(r'# \[(\w+)', line)
                current = found.setdefault(head.group(1), set()) if head else None
            elif current is not None and line.startswith('*'):
                current.update(re.findall(r'\*([a-z_]+)\* = ', line))
        for section in {line[0] for line in config()} - {'rules'}:
            self.assertEqual(sorted(found[section]), sorted(keys_of(section)), section)

    def test_defaults_are_those_of_the_daemon(self):
        page = read(MAN, 'gpreempt.conf.5.scd')
        for section, key, value in (line for line in config() if len(line) == 3):
            body = re.search(rf'(?ms)^# \[{section}\]$(.*?)^# ', page).group(1)
            about = ' '.join(re.search(rf'(?ms)^\*{key}\* = .*?(?=^\*|\Z)', body).group(0).split())
            said = re.findall(r'Default:? \*?(\w+(?:\.\w+)?(?: %)?)', about) or \
                re.findall(r'\*(\w+)\* \(default\)', about)
            shown = 'none' if (section, key) == ('default', 'class') else value.replace('%', ' %')
            self.assertEqual(said, [shown], f'[{section}] {key}')

    def test_options_of_the_daemon_are_explained(self):
        page = read(MAN, 'gpreemptd.8.scd')
        done = subprocess.run([os.environ['GPREEMPTD'], '--help'], capture_output=True, text=True)
        options = re.findall(r'--[a-z-]+', done.stdout)
        self.assertGreater(len(options), 6)
        for option in set(options) - {'--help', '--version'}:
            self.assertIn(option, page)


def settings(unit, key):
    """All words that are given for a key."""
    return [word for line in re.findall(rf'(?m)^{key}=(.*)$', unit) for word in line.split()]


def is_about_newer_key(line):
    """What systemd says of a key that came later than itself: it does without."""
    known = re.search(r"Unknown key(?: name)? '(\w+)' in section", line)
    return known and known.group(1) in NEWER_KEYS


def memory_bytes(text):
    number, unit = re.fullmatch(r'(\d+)([KMG]?)', text).groups()
    return int(number) << {'': 0, 'K': 10, 'M': 20, 'G': 30}[unit]


def have_analyze():
    if shutil.which('systemd-analyze'):
        return True
    print('SKIPPED: systemd-analyze is not here: units were not looked at', file=sys.stderr)
    return False


@unittest.skipUnless(have_analyze(), 'no systemd-analyze')
class TheUnits(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.service = os.path.join(self.dir.name, 'gpreemptd.service')
        with open(self.service, 'w', encoding='utf-8') as f:
            f.write(read(DATA, 'systemd', 'gpreemptd.service.in')
                    .replace('@gpreemptd@', os.environ['GPREEMPTD']))
        self.socket = shutil.copy(os.path.join(DATA, 'systemd', 'gpreemptd.socket'), self.dir.name)

    def analyze(self, *args):
        done = subprocess.run(['systemd-analyze', *args], capture_output=True, text=True,
                              env=dict(os.environ, SYSTEMD_LOG_LEVEL='warning'))
        return done.returncode, done.stdout, done.stderr

    def test_systemd_finds_nothing_to_say(self):
        code, out, err = self.analyze('verify', '--man=no', self.service, self.socket)
        said = [line for line in err.splitlines() if not is_about_newer_key(line)]
        self.assertEqual((code, out, said), (0, '', []))

    def test_however_often_it_fails_it_is_started_again(self):
        unit = read(self.service)
        self.assertEqual(settings(unit, 'StartLimitIntervalSec'), ['0'])
        self.assertEqual(settings(unit, 'Restart'), ['on-failure'])
        self.assertEqual(settings(unit, 'RestartPreventExitStatus'), [])
        self.assertLess(int(settings(unit, 'RestartSec')[0]),
                        int(settings(unit, 'RestartMaxDelaySec')[0]))

    def test_what_is_wrong_would_be_found(self):
        with open(self.service, 'a', encoding='utf-8') as f:
            f.write('\n[Service]\nProtectSystem=certainly\n')
        self.assertNotEqual(self.analyze('verify', '--man=no', self.service), (0, '', ''))

    def test_it_is_not_more_exposed_than_it_must_be(self):
        code, out, err = self.analyze('security', '--no-pager', '--offline=true',
                                      f'--threshold={SECURITY_AT_MOST}', self.service)
        if 'unrecognized option' in err:
            print('SKIPPED: this systemd-analyze cannot judge offline', file=sys.stderr)
            self.skipTest('systemd before 250')
        self.assertEqual(code, 0, out + err)
        level = re.search(r'exposure level for gpreemptd.service: (\d+\.\d)', out).group(1)
        self.assertLessEqual(float(level), SECURITY_AT_MOST / 10)

    def calls(self, words):
        """What is in the sets and names of a SystemCallFilter."""
        found = set()
        for word in words:
            if word.startswith('@'):
                code, out, err = self.analyze('syscall-filter', '--no-pager', word)
                self.assertEqual(code, 0, err)
                lines = [line.strip() for line in out.splitlines()[1:]]
                found |= self.calls(line for line in lines if line and line[0] != '#')
            else:
                found.add(word)
        return found

    def test_it_may_call_what_it_needs_and_little_else(self):
        filters = re.findall(r'(?m)^SystemCallFilter=(~?)(.*)$', read(self.service))
        self.assertEqual(filters[0][0], '')  # else all is allowed that is not denied
        allowed = set()
        for denies, words in filters:
            change = allowed.difference_update if denies else allowed.update
            change(self.calls(words.split()))
        needed = {'ptrace', 'pidfd_getfd', 'process_vm_readv', 'perf_event_open', 'signalfd4',
                  'ioctl'}
        self.assertEqual(needed - allowed, set())
        self.assertEqual({'mount', 'init_module', 'bpf', 'setuid', 'reboot'} & allowed, set())

    def test_what_it_must_see_is_not_hidden_from_it(self):
        unit = read(self.service)
        for hidden in ('PrivateUsers=', 'ProtectProc=', 'ProcSubset=', 'PrivateDevices=',
                       'PrivateNetwork='):
            self.assertNotIn('\n' + hidden, unit)
        self.assertIn('ExecStopPost=' + os.environ['GPREEMPTD'] + ' --clean-up', unit)

    def test_it_starts_where_a_driver_is_and_nowhere_else(self):
        rules = read(DATA, 'systemd', '70-gpreempt.rules')
        tagged = {f'dev-{name}.device' if subsystem == 'kfd' else f'sys-{subsystem}-{name}.device'
                  for subsystem, name in
                  re.findall(r'(?m)^SUBSYSTEM=="(\w+)", KERNEL=="(\w+)", TAG\+="systemd"', rules)}
        self.assertEqual(tagged, {'dev-kfd.device', 'sys-module-nvidia.device'})
        self.assertEqual(set(settings(read(self.service), 'WantedBy')), tagged)
        self.assertLessEqual(tagged, set(settings(read(self.service), 'After')))
        for wanted in re.findall(r'SYSTEMD_WANTS}\+="(\S+)"', rules):
            self.assertIn(wanted, settings(read(self.service), 'After'))

    def test_a_context_to_try_a_driver_on_fits_in_its_memory(self):
        """It takes 72 MB with one GPU, more with more, and must not take the daemon with it."""
        unit = read(self.service)
        self.assertGreaterEqual(memory_bytes(settings(unit, 'MemoryMax')[0]), 512 << 20)
        self.assertEqual(settings(unit, 'OOMPolicy'), ['continue'])

    def test_it_may_use_what_a_context_is_made_of(self):
        allowed = settings(read(self.service), 'DeviceAllow')
        for device in ('/dev/kfd', '/dev/nvidiactl', 'char-nvidia', 'char-nvidia-frontend',
                       'char-nvidia-uvm'):
            self.assertIn(device, allowed)


if __name__ == '__main__':
    unittest.main()
