# SPDX-License-Identifier: MIT
"""Bad input, help, broken output, signals, historical names."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import tempfile
import unittest

from run import ABSENT, DONE, FAILED, GPREEMPT, USAGE, Case, model, run

COMMANDS = ['doctor', 'list', 'queues', 'monitor', 'hold', 'bench', 'release', 'hqd', 'accept',
            'demo', 'sim', 'status', 'top', 'run', 'class', 'policy', 'hint', 'events', 'metrics',
            'pause', 'continue', 'rearm', 'load', 'stop-gpu', 'kernel', 'report']


class BadInput(Case):
    def test_pids(self):
        for command in ('queues', 'monitor', 'hold', 'bench', 'release', 'accept'):
            for pid in ('abc', '0', '', '-5', '1x', ' 1', '+1', '0x10', '1.5', '00'):
                self.refused(USAGE, command, pid)
            for pid in ('999999', '99999999999', '2147483647', '9' * 40):
                self.refused(ABSENT, command, pid, says='process ' + pid)

    def test_missing_and_surplus_arguments(self):
        for command in ('queues', 'monitor', 'hold', 'bench', 'accept', 'class', 'hint', 'rearm'):
            self.refused(USAGE, command, says='usage: gpreempt ' + command)
        for command in ('doctor', 'list', 'hqd', 'demo', 'status', 'top', 'events', 'metrics',
                        'pause', 'continue'):
            self.refused(USAGE, command, 1001, says='too many')

    def test_unknown_options_and_commands(self):
        for command in COMMANDS:
            self.refused(USAGE, command, '--nonsense', says='--nonsense')
            self.refused(USAGE, command, '-x', says='-x')
        self.refused(USAGE, 'nonsense', says="'nonsense'")
        self.refused(USAGE, 'hold', 1001, '--for', says='--for')
        self.refused(USAGE, says='no command')

    def test_json_errors_even_when_the_option_comes_late(self):
        for args in (['nonsense', '--json'], ['--nonsense', '--json'], ['queues', '--json'],
                     ['bench', 'abc', '--json'], ['--json']):
            result = run(*args)
            self.assertEqual((result.status, result.err), (USAGE, ''), args)
            self.assertEqual(json.loads(result.out)['error']['code'], USAGE)

    def test_what_was_typed_cannot_break_the_answer(self):
        for text in ('a\nb', 'a\033[2Jb', b'\xff\xfe', b'caf\xc3', b'\xed\xa0\x80', '"', 'ü'):
            for args in (['queues', text], [text], ['list', '--class', text]):
                result = subprocess.run([GPREEMPT, '--json', *args], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, check=False)
                error = json.loads(result.stdout.decode())['error']
                self.assertNotRegex(error['message'], r'[\x00-\x1f\x7f]')
                self.assertEqual(result.returncode, USAGE)
                plain = subprocess.run([GPREEMPT, *args], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, check=False)
                self.assertEqual(len(plain.stderr.decode().splitlines()), 2)

    def test_devices(self):
        self.assertEqual(run('--device', 'toaster', 'list').status, USAGE)
        for device in ('model:mi999', 'model:', 'model:mi308x,gpus=0', 'model:mi308x,x=1'):
            result = run('--json', '--device', device, 'list')
            if device == 'model:':
                self.assertEqual(result.status, DONE)
                continue
            self.assertEqual(result.status, USAGE, result)
            self.assertIn('presets: mi308x, mi300x,', json.loads(result.out)['error']['hint'])

    def test_presets_are_the_same_wherever_they_are_named(self):
        hint = json.loads(run('--json', '--device', 'model:x', 'list').out)['error']['hint']
        presets = re.findall(r'\w+', re.search('presets: ([^;]*);', hint).group(1))
        self.assertGreater(len(presets), 3)
        told = re.search(r'presets: ([\w,\s]*?)\n  --', self.ok(run('--help'))).group(1)
        self.assertEqual(re.findall(r'\w+', told), presets)
        with open(os.environ['COMPLETION'], encoding='utf-8') as f:
            self.assertEqual(re.findall(r'model:(\w+)', f.read()), presets)
        with open(os.path.join(os.environ['MAN_PAGES'], 'gpreempt.1.scd'), encoding='utf-8') as f:
            device = f.read().partition('*--device*')[2].partition(',gpus=')[0]
        self.assertEqual(re.findall(r'\*((?:mi|gfx)\d\w*)\*', device), presets)
        for preset in presets:
            queues = json.loads(run('--device', 'model:' + preset, '--json', 'queues', 1001).out)
            self.assertEqual(len(queues['queues']), 10, preset)

    def test_global_options_may_follow_the_command(self):
        result = run('queues', '1001', '--device', 'model', '--json')
        self.assertEqual(len(json.loads(result.out)['queues']), 10)


class Help(Case):
    def test_of_the_program(self):
        for args in (['--help'], ['-h'], ['help']):
            out = self.ok(run(*args))
            for command in COMMANDS:
                self.assertRegex(out, rf'(?m)^  {command} ')
            self.assertIn('Exit status', out)

    def test_of_each_command(self):
        for command in COMMANDS:
            out = self.ok(run(command, '--help'))
            self.assertTrue(out.startswith(f'usage: gpreempt {command} '), out)
            self.assertEqual(out, self.ok(run('help', command)))
            self.assertEqual(out, self.ok(run(command, '-h', '1001')))
            self.assertTrue(all(len(line) <= 90 for line in out.splitlines()))

    def test_version(self):
        for option in ('--version', '-V'):
            self.assertRegex(self.ok(run(option)), r'^gpreempt \d+\.\d+\.\d+\n$')
        self.assertIn('version', json.loads(self.ok(run('--version', '--json'))))

    def test_in_json_too(self):
        self.assertIn('usage', json.loads(self.ok(run('--json', 'hold', '--help')))['help'])


class ManPages(Case):
    def page(self, name):
        with open(os.path.join(os.environ['MAN_PAGES'], name + '.scd')) as f:
            return f.read()

    def test_every_key_of_the_answers_is_named(self):
        for command in (['doctor'], ['list'], ['queues', '1001'], ['hqd'], ['bench', '1001'],
                        ['hold', '1001', '--for', '1'], ['monitor', '1001'], ['release']):
            page = self.page(f'gpreempt-{command[0]}.1')
            answer = json.loads(self.ok(model('--json', *command)))
            if command[0] == 'monitor':
                del answer['queues']
            for key in re.findall(r'"([a-z]\w*)":', json.dumps(answer)):
                self.assertIn(f'"{key}"', page, command)


class BrokenOutput(Case):
    ARGS = (['--help'], ['list'], ['--json', 'list'], ['queues', '1001'], ['hold', '1001'],
            ['bench', '1001'], ['monitor', '1001'], ['demo', '--seconds', '1'],
            ['--json', 'bogus'])

    def check(self, result, args):
        self.assertEqual(result.status, USAGE if 'bogus' in args else FAILED, (args, result))
        self.assertIn('cannot write the output', result.err)

    def test_full(self):
        for args in self.ARGS:
            with open('/dev/full', 'w') as full:
                self.check(model(*args, stdout=full), args)

    def test_nobody_reads(self):
        for args in self.ARGS:
            r, w = os.pipe()
            os.close(r)
            self.check(model(*args, stdout=w), args)
            os.close(w)

    def test_closed(self):
        for args in self.ARGS:
            result = subprocess.run(['sh', '-c', 'exec "$@" >&-', 'sh', GPREEMPT, '--device',
                                     'model', *args], stderr=subprocess.PIPE, text=True,
                                    timeout=60, check=False)
            self.assertIn('cannot write the output', result.stderr, args)
            self.assertNotEqual(result.returncode, 0)


    def test_a_missing_descriptor_is_not_taken_by_something_else(self):
        p = subprocess.Popen(['sh', '-c', 'exec "$@" <&- >&-', 'sh', GPREEMPT, '--json',
                              '--device', 'model', 'monitor', '1001', '--duration', '900000'],
                             stderr=subprocess.PIPE)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.wait, timeout=30)
        self.addCleanup(p.kill)  # whatever else fails: its time is a model's, and costs a core
        while not waits_for_signals(p.pid):  # it is ours by then, not the shell, and has begun
            select.select([p.stderr], [], [], 0.01)
        for fd in (0, 1):
            self.assertEqual(os.readlink(f'/proc/{p.pid}/fd/{fd}'), '/dev/null')


def waits_for_signals(pid):
    """Whether one of its descriptors is a signalfd."""
    fds = f'/proc/{pid}/fd'
    for fd in os.listdir(fds):
        try:
            if 'signalfd' in os.readlink(f'{fds}/{fd}'):
                return True
        except FileNotFoundError:  # closed since
            pass
    return False


class Signals(Case):
    def holder(self, *args, before=()):
        p = subprocess.Popen([*before, GPREEMPT, '--device', 'model', 'hold', '1001', *args],
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        for line in p.stdout:
            if 'until Ctrl-C' in line:
                return p
        self.fail(p.stderr.read())

    def end(self, p, sig):
        p.send_signal(sig)
        return p.wait(timeout=30), p.stdout.read()

    def test_each_ending_lets_go(self):
        for sig, word in ((signal.SIGINT, 'Ctrl-C'), (signal.SIGTSTP, 'Ctrl-Z'),
                          (signal.SIGTERM, 'asked to end'), (signal.SIGQUIT, 'Ctrl-'),
                          (signal.SIGHUP, 'the terminal was closed')):
            status, out = self.end(self.holder(), sig)
            self.assertEqual(status, DONE)
            self.assertIn(word, out)
            self.assertIn('letting go', out)
            self.assertIn('10 queues are running again', out)

    def test_an_ignored_hangup_stays_ignored(self):
        p = self.holder(before=['env', '--ignore-signal=HUP'])
        p.send_signal(signal.SIGHUP)
        status, out = self.end(p, signal.SIGTERM)
        self.assertEqual(status, DONE)
        self.assertIn('asked to end', out)

    def test_no_guard_stays_behind(self):
        p = self.holder()
        guards = self.children(p.pid)
        self.assertEqual(len(guards), 1)
        self.end(p, signal.SIGINT)
        self.assertFalse(any(os.path.exists(f'/proc/{pid}') for pid in guards))

    @staticmethod
    def children(pid):
        with open(f'/proc/{pid}/task/{pid}/children') as f:
            return f.read().split()

    def test_at_any_moment(self):
        """Killed early or late: never stuck, and never a crash."""
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGTSTP):
            for read_first in (False, True):
                for args in (['hold', '1001', '1002'], ['--json', 'hold', '1001'],
                             ['bench', '1001', '-n', '1000000'],
                             ['monitor', '1001', '--duration', '900000']):
                    p = subprocess.Popen([GPREEMPT, '--device', 'model', *args],
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    if read_first and '--json' not in args and args[0] != 'bench':
                        select.select([p.stdout], [], [], 30)
                    # Until its signals are blocked the default action is the right one.
                    p.send_signal(sig)
                    if sig == signal.SIGTSTP:
                        p.send_signal(signal.SIGTERM)
                        p.send_signal(signal.SIGCONT)
                    p.communicate(timeout=30)
                    self.assertIn(p.returncode, (0, 1, -signal.SIGINT, -signal.SIGTERM), args)

    def test_an_interrupted_bench_reports_what_it_has(self):
        p = subprocess.Popen([GPREEMPT, '--device', 'model', '--json', 'bench', '1001', '-n',
                              '10000000', '--work', '0'], text=True, stdout=subprocess.PIPE)
        while len(self.children(p.pid)) == 0:  # the guard: from here on signals wait
            select.select([p.stdout], [], [], 0.01)
        p.send_signal(signal.SIGINT)
        answer = json.loads(p.communicate(timeout=60)[0])
        self.assertEqual(p.returncode, FAILED)
        self.assertIs(answer['interrupted'], True)
        self.assertEqual(answer['failed'], 0)


class Terminal(Case):
    def on_terminal(self, *args, **env):
        leader, follower = pty.openpty()
        p = subprocess.Popen([GPREEMPT, '--device', 'model', *args], stdin=follower,
                             stdout=follower, stderr=follower, env=dict(os.environ, **env))
        os.close(follower)
        out = b''
        while True:
            try:
                data = os.read(leader, 65536)
            except OSError:  # everybody has gone
                break
            if not data:
                break
            out += data
        os.close(leader)
        self.assertEqual(p.wait(timeout=30), DONE)
        return out.decode()

    def test_colours_only_where_they_are_wanted(self):
        self.assertIn('\033[1m', self.on_terminal('doctor', TERM='xterm'))
        self.assertNotIn('\033', self.on_terminal('doctor', TERM='xterm', NO_COLOR='1'))
        self.assertNotIn('\033', self.on_terminal('doctor', TERM='dumb'))
        self.assertNotIn('\033', model('doctor').out)

    def test_ctrl_c_from_the_keyboard(self):
        pid, leader = pty.fork()
        if pid == 0:
            os.execv(GPREEMPT, [GPREEMPT, '--device', 'model', 'hold', '1001'])
        out = b''
        while b'until Ctrl-C' not in out:
            out += os.read(leader, 4096)
        os.write(leader, b'\x03')
        try:
            while True:
                data = os.read(leader, 4096)
                if not data:
                    break
                out += data
        except OSError:
            pass
        os.close(leader)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), DONE)
        self.assertIn(b'running again', out)


class HistoricalNames(Case):
    def call(self, name, *args):
        with tempfile.TemporaryDirectory() as folder:
            link = os.path.join(folder, name)
            os.symlink(GPREEMPT, link)
            return run(*args, program=link)

    def test_get_queue_info(self):
        out = self.ok(self.call('get_queue_info', '--device', 'model', 1001))
        self.assertIn('queue_ids[10]', out)
        result = self.call('get_queue_info', '--device', 'model', '--json', 1002)
        self.assertEqual(len(json.loads(result.out)['queues']), 2)

    def test_queue_monitor(self):
        result = self.call('queue_monitor', '--device', 'model', '--json', 1001, 3, 1)
        self.assertEqual(json.loads(result.out)['stats']['samples'], 4)
        self.assertEqual(self.call('queue_monitor', '--device', 'model', 1001).status, DONE)

    def test_kfd_preemption_poc(self):
        result = self.call('kfd_preemption_poc', '--device', 'model', 1001, 5, '--json')
        self.assertEqual(json.loads(result.out)['ok'], 5)

    def test_bad_input(self):
        for name in ('get_queue_info', 'queue_monitor', 'kfd_preemption_poc'):
            result = self.call(name, '--device', 'model')
            self.assertEqual(result.status, USAGE)
            self.assertIn('usage: ' + name, result.err)
            self.assertEqual(self.call(name, '--device', 'model', 'x').status, USAGE)
            self.assertEqual(self.call(name, '--device', 'model', 1, 2, 3, 4).status, USAGE)
            self.assertEqual(self.call(name, '--help').status, DONE)


if __name__ == '__main__':
    unittest.main()
