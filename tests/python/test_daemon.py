# SPDX-License-Identifier: MIT
"""The daemon's client: without a daemon, with nonsense, and with a real one."""
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from case import NOWHERE, ROOT, WAIT_S, Case, gpreempt, is_gone

OWNER = '''
import sys
import gpreempt
server = gpreempt.Server('model')
print(server.folder, server.pid, flush=True)
sys.stdin.readline()
'''


class NoDaemon(Case):
    def test_every_way_in_says_so(self):
        for call in (gpreempt.connect, gpreempt.Events, gpreempt.GPreemptScheduler):
            e = self.fails(gpreempt.NoDaemon, call, NOWHERE)
            self.assertEqual((e.code, e.errno), (3, errno.ENOENT))
            self.assertIn(NOWHERE, e.message)
            self.assertIn('gpreemptd', e.hint)

    def test_a_socket_nobody_listens_on(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'control.sock')
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                s.bind(path)
            self.assertEqual(self.fails(gpreempt.NoDaemon, gpreempt.connect, path).errno,
                             errno.ECONNREFUSED)

    def test_hints_may_be_closed_while_others_use_them(self):
        current, over = [gpreempt.Hint(NOWHERE)], threading.Event()

        def use():
            while not over.is_set():
                current[0].now()

        users = [threading.Thread(target=use) for _ in range(4)]
        for user in users:
            user.start()
        for _ in range(2000):
            old, current[0] = current[0], gpreempt.Hint(NOWHERE)
            old.close()
        over.set()
        for user in users:
            user.join()

    def test_hints_do_nothing_then(self):
        with gpreempt.Hint(NOWHERE) as hint:
            self.assertFalse(hint.active)
            self.assertIs(type(hint.error), gpreempt.NoDaemon)
            hint.now()
            hint.soon(0.001, 0.002)

    def test_names_that_make_no_sense(self):
        self.fails(gpreempt.UsageError, gpreempt.connect, 'x' * 200)
        self.fails(gpreempt.UsageError, gpreempt.connect, 'x\0')

    def test_the_environment_names_the_socket(self):
        os.environ['GPREEMPT_SOCKET'] = '/from/the/environment'
        self.addCleanup(os.environ.pop, 'GPREEMPT_SOCKET')
        self.assertIn('/from/the/environment',
                      self.fails(gpreempt.NoDaemon, gpreempt.connect).message)


class WithDaemon(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = gpreempt.Server('model')

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def connect(self):
        daemon = self.server.connect()
        self.addCleanup(daemon.close)
        return daemon

    def test_status(self):
        daemon = self.connect()
        s = daemon.status()
        self.assertEqual((s.pid, s.backend, s.modelled), (self.server.pid, 'model', True))
        self.assertEqual((s.gpus, s.jobs, s.detection.count), (8, 0, 0))
        self.assertEqual(s.version, gpreempt.__version__)
        gpus = daemon.gpus()
        self.assertEqual([g.name for g in gpus], ['gfx942'] * 8)
        self.assertFalse(any(g.tripped for g in gpus))
        self.assertEqual(daemon.jobs(), [])
        self.assertIn('# TYPE gpreempt_info gauge', daemon.metrics())

    def test_policy(self):
        daemon = self.connect()
        before = daemon.policy()
        self.assertIn(before.name, before.names)
        other = next(n for n in before.names if n != before.name)
        daemon.set_policy(other)
        self.assertEqual(daemon.policy().name, other)
        e = self.fails(gpreempt.UsageError, daemon.set_policy, 'nonsense')
        self.assertEqual(e.code, 2)
        self.assertRaises(TypeError, daemon.set_policy, 1)
        daemon.set_policy(before.name)

    def test_pause_and_continue(self):
        daemon = self.connect()
        with daemon.paused():
            self.assertTrue(daemon.status().paused)
        self.assertFalse(daemon.status().paused)
        with self.assertRaises(RuntimeError):
            with daemon.paused():
                raise RuntimeError('while paused')
        self.assertFalse(daemon.status().paused)

    def test_classes(self):
        daemon = self.connect()
        self.assertEqual(daemon.set_class('name:nobody', 'offline', priority=3), 0)
        self.assertEqual(daemon.set_class('name:nobody', 'default'), 0)
        for selector in ('', '0', 'x', 'cgroup:', 'name:' + 'x' * 200):
            self.fails(gpreempt.UsageError, daemon.set_class, selector, 'online')
            self.fails(gpreempt.UsageError, gpreempt.check_selector, selector)
        gpreempt.check_selector('name:train*')
        for job_class in ('', 'Online', 'unknown'):
            self.fails(gpreempt.UsageError, daemon.set_class, 1, job_class)
        for priority in (-1, 256):
            self.fails(gpreempt.UsageError, daemon.set_class, 1, 'online', priority=priority)
        self.fails(gpreempt.UsageError, daemon.set_class, 0, 'online')
        self.assertRaises(TypeError, daemon.set_class, None, 'online')

    def test_whether_work_can_be_watched(self):
        self.fails(gpreempt.UsageError, gpreempt.check_watch, -1)
        said = json.loads(subprocess.run(
            [os.environ['GPREEMPT'], '--socket', self.server.socket, '--json', 'doctor'],
            stdout=subprocess.PIPE, check=False).stdout)['watch']
        try:
            gpreempt.check_watch(self.server.pid)
            self.assertIs(said['available'], True)
        except gpreempt.RefusedError as e:
            self.assertIs(said.get('available'), False)
            self.assertEqual(said['reason'], e.message)

    def test_other_requests(self):
        daemon = self.connect()
        daemon.rearm(daemon.gpus()[0].gpu_id)
        self.fails(gpreempt.AbsentError, daemon.rearm, 7)
        self.assertEqual(daemon.release(), 0)
        daemon.reload()
        for kwargs in ({'ahead': 1.1}, {'lasts': -1}, {'pid': -1}):
            self.fails(gpreempt.UsageError, daemon.hint, **kwargs)

    def test_events(self):
        daemon = self.connect()
        with daemon.events() as events:
            self.assertIsNone(events.next(0))
            daemon.pause()
            daemon.continue_()
            kinds = [next(events).kind, next(events).kind]
        self.assertEqual(kinds, ['paused', 'continued'])
        self.assertEqual(list(daemon.events(timeout=0.05)), [], 'it ends with the silence')
        self.fails(gpreempt.UsageError, daemon.events, -1)

    def test_a_closed_connection(self):
        daemon = self.server.connect()
        daemon.close()
        daemon.close()
        self.fails(gpreempt.UsageError, daemon.status)

    def test_a_hint_page_is_for_online_processes(self):
        daemon = self.connect()
        from gpreempt.software import SoftwareGpu
        with gpreempt.Hint(self.server.socket) as hint:
            self.assertFalse(hint.active)
            self.assertIsInstance(hint.error, gpreempt.AbsentError)
            daemon.set_class(os.getpid(), 'online')
            with SoftwareGpu(self.server.device_socket) as gpu:
                gpu.create_queue()
                self.wait_for(lambda: hint.active, 'the page')
                self.assertIsNone(hint.error)
                before = daemon.status().hints
                hint.now()
                self.wait_for(lambda: daemon.status().hints > before, 'the hint')
            hint.close()
            self.assertEqual((hint.active, hint.error), (False, None))
            hint.now()


class Ends(Case):
    def test_a_daemon_that_goes(self):
        server = gpreempt.Server('model')
        self.addCleanup(server.close)
        daemon, events = server.connect(), gpreempt.Events(server.socket, WAIT_S)
        server.close()
        self.assertFalse(os.path.exists(server.folder))
        self.fails(gpreempt.NoDaemon, daemon.status)
        self.fails(gpreempt.NoDaemon, list, events)  # after its last words
        server.close()

    def owner(self):
        owner = subprocess.Popen([sys.executable, '-c', OWNER], text=True, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE,
                                 env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, 'python')))
        self.addCleanup(owner.stdin.close)
        self.addCleanup(owner.stdout.close)
        self.addCleanup(owner.wait)
        self.addCleanup(owner.kill)
        folder, pid = owner.stdout.readline().split()
        return owner, folder, int(pid)

    def test_a_long_name_of_the_place_for_files_does_no_harm(self):
        with tempfile.TemporaryDirectory() as folder:
            long = os.path.join(folder, 'x' * 100)
            os.mkdir(long)
            before, tempfile.tempdir = tempfile.tempdir, long
            try:
                with gpreempt.Server('model') as server, server.connect() as daemon:
                    self.assertEqual(daemon.status().pid, server.pid)
            finally:
                tempfile.tempdir = before

    def test_nothing_is_left_of_a_server_whose_owner_is_killed(self):
        owner, folder, pid = self.owner()
        self.assertTrue(os.path.exists(folder))
        owner.send_signal(signal.SIGKILL)
        self.wait_for(lambda: is_gone(pid), 'gpreemptd to end')
        self.wait_for(lambda: not os.path.exists(folder), 'its folder to go')

    def test_nothing_is_left_of_a_server_whose_owner_forgets_it(self):
        owner, folder, pid = self.owner()
        owner.stdin.write('\n')
        owner.stdin.flush()
        self.assertEqual(owner.wait(WAIT_S), 0)
        self.wait_for(lambda: is_gone(pid), 'gpreemptd to end')
        self.wait_for(lambda: not os.path.exists(folder), 'its folder to go')


if __name__ == '__main__':
    unittest.main()
