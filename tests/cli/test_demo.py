# SPDX-License-Identifier: MIT
"""demo, and load on the software device of a real daemon."""
import json
import os
import signal
import socket
import subprocess
import tempfile
import unittest

from run import ABSENT, DONE, FAILED, GPREEMPT, USAGE, Case, model, run


class Demo(Case):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.env = dict(os.environ, TMPDIR=self.dir.name)

    def nothing_is_left(self):
        self.assertEqual(os.listdir(self.dir.name), [])

    def test_tells_the_story(self):
        out = self.ok(model('demo', '--seconds', '2', env=self.env))
        self.assertIn('modelled', out)
        self.assertRegex(out, r'(?m)^both, with gpreempt ')
        self.assertRegex(out, r'process \d+ \(train\) makes room for \d+ \(infer\)')
        self.nothing_is_left()

    def test_a_place_for_files_with_a_long_name_does_no_harm(self):
        long = os.path.join(self.dir.name, 'x' * 100)
        os.mkdir(long)
        self.ok(model('demo', '--seconds', '1', env=dict(os.environ, TMPDIR=long)))
        os.rmdir(long)
        self.nothing_is_left()

    def test_requests_are_faster_and_nothing_is_lost(self):
        answer = self.json_of('demo', '--seconds', '2', env=self.env)
        self.assertIs(answer['modelled'], True)
        self.assertEqual(answer['lost'], 0)
        for part in ('alone', 'shared', 'preempted'):
            for job in ('online', 'offline'):
                figures = answer[part][job]
                self.assertGreater(figures['kernels'], 0)
                self.assertEqual(figures['complete'], figures['kernels'])
                self.assertIs(figures['in_order'], True)
        self.assertGreater(answer['preempted']['offline']['saves'], 3)
        self.assertLess(answer['preempted']['online']['request_us']['p50'],
                        answer['shared']['online']['request_us']['p50'])
        kinds = [event['event'] for event in answer['trace']]
        self.assertIn('held', kinds)
        self.assertIn('let-go', kinds)

    def start(self):
        """A demonstration that has got as far as its first job."""
        p = subprocess.Popen([GPREEMPT, 'demo', '--seconds', '30'], env=self.env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        children = f'/proc/{p.pid}/task/{p.pid}/children'
        while True:
            with open(children, encoding='ascii') as f:
                pids = [int(pid) for pid in f.read().split()]
            if len(pids) == 4:  # who cleans up, the daemon, and two jobs
                return p, pids
            self.assertIsNone(p.poll())

    def has_ended(self, pid):
        try:
            with open(f'/proc/{pid}/stat', encoding='ascii') as f:
                return f.read().rpartition(')')[2].split()[0] == 'Z'
        except OSError:
            return True

    def test_ends_at_once_when_asked_to(self):
        for ending in (signal.SIGINT, signal.SIGTERM):
            p, pids = self.start()
            p.send_signal(ending)
            self.assertEqual(p.wait(timeout=20), FAILED)
            self.assertIn('stopped', p.stderr.read())
            self.nothing_is_left()
            for pid in pids:
                self.assertTrue(self.has_ended(pid))

    def test_killed_it_leaves_nothing(self):
        p, pids = self.start()
        p.kill()
        p.wait()
        p.stdout.read()  # its jobs' end: they had it open no more than the daemon
        while os.listdir(self.dir.name) or not all(map(self.has_ended, pids)):
            pass
        self.nothing_is_left()

    def test_needs_a_model(self):
        self.refused(USAGE, 'demo', '--device', 'kfd', says='kfd')
        self.refused(USAGE, 'demo', '--device', 'model:mi308x,gpus=1', says='two GPUs')
        self.refused(FAILED, 'demo', '--device', 'model:mi999', says='mi999')


class Load(Case):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        ready.bind(os.path.join(cls.dir.name, 'notify'))
        cls.daemon = subprocess.Popen(
            [os.environ['GPREEMPTD'], '--device', 'model', '--run-dir', cls.dir.name],
            env=dict(os.environ, NOTIFY_SOCKET=os.path.join(cls.dir.name, 'notify')),
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ready.settimeout(30)
        while b'READY=1' not in ready.recv(1000):
            pass
        ready.close()
        cls.socket = os.path.join(cls.dir.name, 'control.sock')

    @classmethod
    def tearDownClass(cls):
        cls.daemon.terminate()
        cls.daemon.wait()
        cls.dir.cleanup()

    def load(self, *args):
        return json.loads(self.ok(run('--json', 'load', '--socket', self.socket, *args)))

    def test_kernels_in_a_row(self):
        answer = self.load('--queues', 3, '--kernel-us', 5000, '--duration', 1)
        self.assertIs(answer['modelled'], True)
        self.assertGreater(answer['kernels'], 10)
        self.assertEqual(answer['complete'], answer['kernels'])
        self.assertIs(answer['in_order'], True)
        self.assertEqual(answer['unfinished'], 0)
        self.assertNotIn('latency_us', answer)

    def test_requests(self):
        answer = self.load('--online', '--requests', 10, '--every-ms', 20, '--kernel-us', 1000)
        self.assertEqual(answer['requests'], 10)
        self.assertEqual(answer['kernels'], 10)
        self.assertGreaterEqual(answer['latency_us']['min'], 1000)
        self.assertGreaterEqual(answer['elapsed_us'], 9 * 20000)

    def test_asked_to_end_it_says_what_it_did(self):
        p = subprocess.Popen([GPREEMPT, '--socket', self.socket, 'load', '--kernel-us', '2000'],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        while f'\n{p.pid} ' not in '\n' + self.jobs():
            self.assertIsNone(p.poll())
        p.terminate()
        out, _ = p.communicate(timeout=20)
        self.assertEqual(p.returncode, DONE)
        self.assertIn('in order', out)

    def jobs(self):
        status = json.loads(self.ok(run('--json', '--socket', self.socket, 'status')))
        return '\n'.join(f"{job['pid']} " for job in status['jobs'])

    def test_bad_input(self):
        self.assertEqual(run('load', '--socket', '/nowhere/control.sock').status, ABSENT)
        for args in (['--queues', 0], ['--queues', 1000], ['--gpu', 8], ['--priority', 16],
                     ['--kernel-us', 0], ['--depth', 65], ['--requests', 'x'], ['--duration', -1]):
            self.assertEqual(run('load', '--socket', self.socket, *args).status, USAGE, args)


if __name__ == '__main__':
    unittest.main()
