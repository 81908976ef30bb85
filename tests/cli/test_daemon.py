# SPDX-License-Identifier: MIT
"""The commands that talk to the daemon: without one, with nonsense, and with a real one on the
software device and real jobs."""
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
sys.path[:0] = [os.path.join(ROOT, 'tests', 'daemon'), os.path.join(ROOT, 'scripts')]
import records
import rig
from run import ABSENT, DONE, FAILED, GPREEMPT, REFUSED, USAGE, Case, run

TOP = os.environ['GPREEMPT_TOP']
NOWHERE = '/nowhere/control.sock'
SIMPLE = (['status'], ['policy'], ['policy', 'none'], ['hint', 1], ['events'], ['metrics'],
          ['pause'], ['continue'], ['rearm', 1], ['class', 1, 'online'],
          ['run', '--class', 'online', '--', 'true'])
WAIT_S = 30


class Talking(Case):
    socket = NOWHERE

    def ask(self, *args, **kwargs):
        return run('--socket', self.socket, *args, **kwargs)

    def ask_json(self, *args, status=DONE):
        result = self.ask('--json', *args)
        self.assertEqual((result.status, result.err), (status, ''), result)
        return json.loads(result.out)

    def fails(self, status, *args, says=''):
        """In both modes, with one line and a hint."""
        result = self.ask(*args)
        self.assertEqual((result.status, result.out), (status, ''), result)
        lines = result.err.splitlines()
        self.assertEqual(len(lines), 2, result.err)
        self.assertRegex(lines[0], r'^gpreempt: .')
        self.assertRegex(lines[1], r'^  hint: .')
        error = self.ask_json(*args, status=status)['error']
        self.assertEqual(error['code'], status)
        self.assertEqual(lines, ['gpreempt: ' + error['message'], '  hint: ' + error['hint']])
        self.assertIn(says, error['message'] + '\n' + error['hint'])


class NoDaemon(Talking):
    def test_every_command_says_so(self):
        for args in SIMPLE:
            self.fails(ABSENT, *args, says=NOWHERE)

    def test_the_environment_names_the_socket_and_the_option_wins(self):
        env = dict(os.environ, GPREEMPT_SOCKET='/from/the/environment')
        self.assertIn('/from/the/environment', run('status', env=env).err)
        self.assertIn(NOWHERE, run('status', '--socket', NOWHERE, env=env).err)

    def test_nothing_is_started(self):
        result = self.ask('run', '--class', 'offline', '--', 'echo', 'started')
        self.assertEqual((result.status, result.out), (ABSENT, ''))

    def test_a_socket_nobody_listens_on(self):
        with tempfile.TemporaryDirectory() as folder:
            self.socket = os.path.join(folder, 'control.sock')
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                s.bind(self.socket)
            self.fails(ABSENT, 'status', says='not running')

    def test_a_socket_of_another_kind(self):
        with tempfile.TemporaryDirectory() as folder:
            self.socket = os.path.join(folder, 'control.sock')
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
                s.bind(self.socket)
                s.listen()
                self.fails(FAILED, 'status', says='not a socket of gpreemptd')

    def test_something_that_is_no_socket(self):
        self.socket = '/dev/null'
        self.fails(ABSENT, 'status', says='/dev/null')
        self.socket = 'x' * 200
        self.fails(USAGE, 'status', says='cannot be a socket')

    def test_top_says_so_too(self):
        p = subprocess.run([TOP, '--once', '--socket', NOWHERE], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((p.returncode, p.stdout), (ABSENT, ''))
        self.assertIn(NOWHERE, p.stderr)


class Nonsense(Talking):
    def test_selectors_and_classes(self):
        for selector in ('', '0', 'x', '99999999999', 'cgroup:', 'name:', 'name:' + 'x' * 200):
            self.fails(USAGE, 'class', selector, 'online')
        for job_class in ('', 'Online', 'unknown', 'Default'):
            self.fails(USAGE, 'class', 1, job_class, says='online')
        self.fails(USAGE, 'class', 1, says='usage')
        self.fails(USAGE, 'class', 1, 'online', 'more', says='too many')

    def test_numbers(self):
        for value in ('-1', '256', 'x', '', '1.5'):
            self.fails(USAGE, 'class', 1, 'online', '--priority=' + value, says='--priority')
        for value in ('0', 'x', '9' * 30):
            self.fails(USAGE, 'class', 1, 'online', '--target-us', value, says='--target-us')
        for option in ('--ahead', '--for'):
            for value in ('0ms', '1001ms', '1.1s', 'x', '', '5', 'ms', '1.2.3ms', '5 ms', '1e1ms'):
                self.fails(USAGE, 'hint', 1, option, value, says=option)
        for gpu in ('x', '', '-1', '4294967296'):
            self.fails(USAGE, 'rearm', '--', gpu)
        for pid in ('0', 'x', '-1'):
            self.fails(USAGE, 'hint', pid)

    def test_run(self):
        self.fails(USAGE, 'run', '--', 'true', says='--class')
        self.fails(USAGE, 'run', '--class', 'none', '--', 'true', says='--class')
        self.fails(USAGE, 'run', '--class', 'online', says='no program')
        self.fails(USAGE, 'run', '--class', 'online', '--', '', says='no program')

    def test_top(self):
        for args in (['--nonsense'], ['--interval', '0'], ['--interval', 'x'], ['more']):
            p = subprocess.run([TOP, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, check=False)
            self.assertEqual((p.returncode, p.stdout), (USAGE, ''), args)
            self.assertIn('hint:', p.stderr)
        result = self.ask('--json', 'top')
        self.assertEqual(result.status, USAGE)
        self.assertIn('status', json.loads(result.out)['error']['hint'])

    def test_top_without_a_terminal(self):
        p = subprocess.run([TOP], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(p.returncode, USAGE)
        self.assertIn('--once', p.stderr)


class OddPeers(Talking):
    """Peers that speak the protocol badly; test_daemon.c has the rest."""

    def peer(self, answer):
        """Something listens there, says this to the first one that asks, and hangs up."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.socket = os.path.join(folder.name, 'control.sock')
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.bind(self.socket)
        s.listen()
        pid = os.fork()
        if pid == 0:
            client = s.accept()[0]
            client.recv(1024)
            client.send(answer)
            os._exit(0)
        s.close()
        self.addCleanup(os.waitpid, pid, 0)

    def test_garbage(self):
        self.peer(b'x' * 1000)
        result = self.ask('status')
        self.assertEqual(result.status, FAILED)
        self.assertIn('makes no sense', result.err)

    def test_a_daemon_that_makes_no_sense_is_not_taken_for_one_that_watches(self):
        self.peer(b'x' * 1000)
        watch = self.ask_json('doctor')['watch']
        self.assertNotIn('available', watch)
        self.assertIn('makes no sense', watch['reason'])

    def test_a_refusal_that_would_move_the_cursor(self):
        self.peer(rig.packet(rig.ERROR, rig.ERROR_BODY.pack(1, REFUSED, b'no\n\033[2J\xff', b'x')))
        result = self.ask('--json', 'status')
        self.assertEqual(result.status, REFUSED)
        self.assertEqual(json.loads(result.out)['error']['message'], 'no??[2J?')


class WithDaemon(Talking):
    def setUp(self):
        self.daemon = rig.Daemon()
        self.addCleanup(self.daemon.close)
        self.socket = self.daemon.socket

    def load(self, *args, job_class=None, name='job'):
        """A job on the software device; it is there when this returns."""
        start = ['run', '--class', job_class, '--', GPREEMPT, '--socket', self.socket]
        p = subprocess.Popen([GPREEMPT, '--socket', self.socket, *(start if job_class else ()),
                              'load', '--name', name, *args], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def events(self):
        p = subprocess.Popen([GPREEMPT, '--socket', self.socket, '--json', 'events'], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.assertEqual(json.loads(p.stdout.readline())['event'], 'subscribed')
        return p

    def event(self, p, kind, **fields):
        for line in p.stdout:
            event = json.loads(line)
            if event['event'] == kind and fields.items() <= event.items():
                return event
        self.fail(p.stderr.read())

    def test_who_cannot_hand_over_schedules_itself(self):
        daemon = rig.Daemon('[kernel]\nscheduler = yes\n')
        self.addCleanup(daemon.close)
        self.socket = daemon.socket
        limit = time.monotonic() + WAIT_S
        while 'cannot hand over to the kernel' not in daemon.said():
            self.assertLess(time.monotonic(), limit, daemon.said())
            self.assertEqual(self.ask_json('status')['scheduler'], 'gpreemptd')
        self.assertNotIn("kernel's scheduler decides", self.ok(self.ask('status')))

    def test_status_of_an_idle_one(self):
        answer = self.ask_json('status')
        self.assertEqual(answer['pid'], self.daemon.process.pid)
        self.assertEqual(answer['backend'], 'model')
        self.assertIs(answer['modelled'], True)
        self.assertEqual([g['name'] for g in answer['gpus']], ['gfx942'] * 8)
        self.assertEqual(answer['jobs'], [])
        self.assertNotIn('detection_us', answer, 'nothing was measured')
        text = self.ok(self.ask('status'))
        self.assertIn('all times are modelled', text)
        self.assertIn('no process uses a GPU', text)

    def test_why_work_is_not_told_at_once(self):
        self.assertIs(self.ask_json('doctor')['watch']['available'], not rig.watchpoints())
        for text in (self.ok(self.ask('status')), self.top('--once')):
            self.assertNotIn('unwatched', text)
        self.daemon.configure('[look]\nwatch = no\n')
        self.daemon.reload()
        why = 'the configuration has [look] watch = no'
        self.assertEqual(self.ask_json('doctor')['watch'], {'reason': why, 'available': False})
        self.assertIn(f'\n  unwatched {why}\n', self.ok(self.ask('status')))
        self.assertIn(f'\nunwatched: {why}\n', self.top('--once'))

    def test_policy(self):
        before = self.ask_json('policy')
        other = next(p for p in before['policies'] if p != before['policy'])
        self.assertIn(f'* {before["policy"]}\n', self.ok(self.ask('policy')))
        self.assertIn(other, self.ok(self.ask('policy', other)))
        self.assertEqual(self.ask_json('policy')['policy'], other)
        self.assertEqual(self.ask_json('status')['policy'], other)
        self.fails(USAGE, 'policy', 'nonsense', says=other)
        self.fails(USAGE, 'policy', 'x' * 100)

    def test_pause_and_continue(self):
        self.assertEqual(self.ask_json('pause'), {'paused': True})
        paused = self.ask_json('status')
        self.assertIs(paused['paused'], True)
        self.assertIs(paused['modelled'], True)
        self.assertIn('PAUSED', self.ok(self.ask('status')))
        self.assertEqual(self.ask_json('continue'), {'paused': False})
        self.assertIs(self.ask_json('status')['paused'], False)

    def test_rearm(self):
        gpu = self.ask_json('status')['gpus'][0]['gpu_id']
        self.assertEqual(self.ask_json('rearm', gpu), {'rearmed': gpu})
        self.fails(ABSENT, 'rearm', 7, says='7')

    def test_metrics(self):
        text = self.ok(self.ask('metrics'))
        self.assertIn('# TYPE gpreempt_info gauge', text)
        self.assertIn('gpreempt_info{', self.ask_json('metrics')['metrics'])

    def test_every_key_of_the_answers_is_named_in_the_manual(self):
        events = self.events()
        job = self.load('--online', job_class='online')
        came = self.event(events, 'job-came', pid=job.pid)
        for command, answer in (('status', self.ask_json('status')), ('events', came),
                                ('policy', self.ask_json('policy')),
                                ('class', self.ask_json('class', job.pid, 'offline'))):
            with open(os.path.join(os.environ['MAN_PAGES'], f'gpreempt-{command}.1.scd'),
                      encoding='utf-8') as f:
                page = '\n'.join(records.page(records.of_tree(ROOT), f.read()))
            for key in json_keys(answer):
                self.assertIn(f'"{key}"', page, command)

    def test_run_is_the_program_with_the_class(self):
        result = self.ask('run', '--class', 'offline', '--', 'sh', '-c',
                          'echo $PPID $0 "$@"; exit 7', 'a', '--json', '-h')
        self.assertEqual(result.status, 7, result)
        self.assertEqual(result.out, f'{os.getpid()} a --json -h\n')
        result = self.ask('run', '--class', 'offline', '--', '/no/such/program')
        self.assertEqual(result.status, FAILED)
        self.assertIn('/no/such/program', result.err)

    def test_run_leaves_signals_as_they_were(self):
        script = 'grep -E "^Sig(Blk|Ign)" /proc/self/status'
        bare = subprocess.run(['sh', '-c', script], stdout=subprocess.PIPE, text=True, check=True)
        within = self.ask('run', '--class', 'offline', '--', 'sh', '-c', script)
        self.assertEqual(self.ok(within), bare.stdout)

    def test_an_online_job_gets_the_gpu(self):
        """The whole story: held for the online job, let go, counted, shown."""
        events = self.events()
        offline = self.load('--offline', job_class='offline', name='train')
        online = self.load('--online', job_class='online', name='infer')
        held = self.event(events, 'held', pid=offline.pid)
        self.assertEqual(held['other_pid'], online.pid)
        self.assertEqual((held['comm'], held['class']), ('train', 'offline'))
        free = self.event(events, 'let-go', pid=offline.pid)
        self.assertGreater(free['duration_us'], 0)
        status = self.ask_json('status')
        while 'detection_us' not in status:  # a hold may also be made before work was seen
            self.event(events, 'held', pid=offline.pid)
            status = self.ask_json('status')
        self.assertEqual(status['scheduler'], 'gpreemptd')
        self.assertGreater(status['preemptions'], 0)
        self.assertGreater(status['detection_us']['count'], 0)
        job = next(j for j in status['jobs'] if j['pid'] == offline.pid)
        self.assertGreater(job['preempted'], 0)
        self.assertEqual(job['class'], 'offline')
        hinted = {'hinted': online.pid, 'scheduler': 'gpreemptd'}
        self.assertEqual(self.ask_json('hint', online.pid), hinted)
        self.assertEqual(self.ask_json('hint', online.pid, '--ahead', '500us', '--for', '4.4ms'),
                         hinted)
        self.fails(REFUSED, 'hint', offline.pid, says='not online')
        text = self.top('--once')
        self.assertRegex(text, rf'(?m)^ *{offline.pid} train +offline')
        self.assertRegex(text, rf'(?m)^ *{online.pid} infer +online')

    def test_class(self):
        job = self.load('--offline', name='some-job')
        events = self.events()
        while not any(j['pid'] == job.pid for j in self.ask_json('status')['jobs']):
            select.select([job.stdout], [], [], 0.05)
        self.assertEqual(self.ask_json('class', 'name:some-*', 'online'),
                         {'classed': 1, 'scheduler': 'gpreemptd'})
        self.event(events, 'job-classed', pid=job.pid)
        self.assertEqual(self.ask_json('class', 'name:nobody', 'online'),
                         {'classed': 0, 'scheduler': 'gpreemptd'})
        self.assertIn('only those there', self.ok(self.ask('class', 'name:nobody2', 'online')))
        self.assertIn('those to come', self.ok(self.ask('class', 'name:nobody2', 'offline')))
        self.assertIn('those to come', self.ok(self.ask('class', 'cgroup:/nobody', 'online')))
        self.assertIn('offline', self.ok(self.ask('class', job.pid, 'offline', '--priority', 9)))
        found = next(j for j in self.ask_json('status')['jobs'] if j['pid'] == job.pid)
        self.assertEqual((found['class'], found['priority'], found['source']),
                         ('offline', 9, 'request'))
        self.assertEqual(self.ask_json('class', job.pid, 'default')['classed'], 1)
        self.event(events, 'job-classed', pid=job.pid, **{'class': 'none'})
        self.assertIn('online', self.ok(self.ask('class', 'name:some-*', 'online')))
        self.assertIn('default; 1 process', self.ok(self.ask('class', 'name:some-*', 'default')))
        self.event(events, 'job-classed', pid=job.pid, **{'class': 'none'})
        self.assertEqual(self.ask_json('class', 'name:some-*', 'default')['classed'], 0)

    def test_what_a_job_calls_itself_forges_no_line_of_the_log(self):
        self.daemon.configure('[log]\nlevel = debug\n')
        self.daemon.reload()
        events = self.events()
        name = '\xff" uid=7\x9b'.encode('latin-1')
        offline = self.load('--offline', job_class='offline', name=name)
        self.load('--online', job_class='online', name='infer')
        self.event(events, 'let-go', pid=offline.pid)
        line = next(l for l in self.daemon.said().splitlines() if 'let-go' in l)
        self.assertRegex(line, rf' pid={offline.pid} uid={os.getuid()} .* comm="\?\? uid=7\?" for=')

    def test_who_is_turned_away_is_told_why(self):
        crowd = [self.daemon.client() for _ in range(16)]
        for c in crowd:
            self.addCleanup(c.socket.close)
        self.assertEqual(crowd[15].status().pid, self.daemon.process.pid)
        self.fails(REFUSED, 'status', says='too many connections')

    def test_events_end_with_the_daemon_and_with_a_signal(self):
        ended, lost = self.events(), self.events()
        ended.send_signal(signal.SIGINT)
        self.assertEqual(ended.wait(WAIT_S), DONE)
        self.daemon.end()
        error = json.loads(lost.stdout.read().splitlines()[-1])['error']
        self.assertEqual(lost.wait(WAIT_S), ABSENT)
        self.assertEqual(error['code'], ABSENT)

    def test_events_end_when_nobody_reads(self):
        p = self.events()
        p.stdout.close()
        self.ask_json('continue')
        self.assertIn(p.wait(WAIT_S), (DONE, FAILED))

    def test_a_daemon_that_hangs_does_not_hang_us(self):
        self.daemon.process.send_signal(signal.SIGSTOP)
        result, doctor = self.ask('status'), self.ask('doctor')
        self.daemon.process.send_signal(signal.SIGCONT)
        self.assertEqual(result.status, FAILED)
        self.assertIn('does not answer', result.err)
        self.assertRegex(doctor.out, '(?m)^watchpoints: unknown: .*does not answer')

    @unittest.skipIf(os.geteuid() != 0, 'needs root to be somebody else')
    def test_a_stranger_sees_little_and_may_little(self):
        job = self.load('--offline', job_class='offline', name='mine')
        while not any(j['pid'] == job.pid for j in self.ask_json('status')['jobs']):
            select.select([job.stdout], [], [], 0.05)
        self.assertTrue(rig.as_stranger(self.look_at_nobody))
        self.daemon.configure('[control]\nshow_others = yes\n')
        self.daemon.reload()
        self.assertTrue(rig.as_stranger(lambda: self.look_as_stranger(job.pid)))

    def look_at_nobody(self):
        answer = self.ask_json('status')
        self.assertEqual(answer['jobs'], [])
        self.assertGreater(answer['processes'], 0)
        self.assertIn('no process of yours uses a GPU', self.ok(self.ask('status')))
        self.assertIn('no process of yours uses a GPU', self.top('--once'))

    def look_as_stranger(self, pid):
        answer = self.ask_json('status')
        self.assertIs(answer['privileged'], False)
        for key in ('preemptions', 'held', 'steps', 'hints', 'config'):
            self.assertNotIn(key, answer)
        job = next(j for j in answer['jobs'] if j['pid'] == pid)
        self.assertLessEqual(set(job), {'pid', 'comm', 'uid', 'gpu_id', 'class', 'queues'})
        self.ok(self.ask('status'))
        self.assertRegex(self.top('--once'), rf'(?m)^ *{pid} mine')
        for args in (['policy', 'none'], ['pause'], ['continue'], ['metrics'], ['rearm', 1],
                     ['class', pid, 'online'], ['hint', pid]):
            self.fails(REFUSED, *args)

    # ---- top ----

    def top(self, *args, **env):
        p = subprocess.run([TOP, '--socket', self.socket, *args], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, check=False,
                           env=dict(os.environ, LC_ALL='C.UTF-8', **env))
        self.assertEqual((p.returncode, p.stderr), (DONE, b''))
        return p.stdout.decode()

    def test_top_once(self):
        text = self.top('--once')
        self.assertIn('times are modelled', text)
        self.assertEqual(text.count('\nGPU '), 8)
        self.assertTrue(all(len(line) <= 40 for line in self.top('--once', COLUMNS='40')
                            .splitlines()))

    def test_gpreempt_top_is_gpreempt_top(self):
        env = dict(os.environ, PATH=os.path.dirname(TOP) + ':' + os.environ['PATH'])
        self.assertIn('gpreemptd', self.ok(self.ask('top', '--once', env=env)))

    def test_top_on_a_terminal(self):
        pid, leader = pty.fork()
        if pid == 0:
            os.environ.update(TERM='xterm', LC_ALL='C.UTF-8')
            os.execv(TOP, [TOP, '--socket', self.socket, '--interval', '0.1'])
        self.shows(leader, b'policy')
        os.write(leader, b's')
        self.shows(leader, b'share')
        os.write(leader, b'h')
        self.shows(leader, b'ends this screen')
        self.daemon.end()
        self.shows(leader, b'not running')
        os.write(leader, b'q')
        while True:
            try:
                if not os.read(leader, 65536):
                    break
            except OSError:  # everybody has gone
                break
        os.close(leader)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), DONE)

    def shows(self, leader, word):
        seen = b''
        while word not in seen:
            ready = select.select([leader], [], [], WAIT_S)[0]
            self.assertTrue(ready, (word, seen))
            seen += os.read(leader, 65536)


def json_keys(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from json_keys(inner)
    if isinstance(value, list):
        for inner in value:
            yield from json_keys(inner)


if __name__ == '__main__':
    unittest.main()
