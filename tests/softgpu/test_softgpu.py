# SPDX-License-Identifier: MIT
"""gpreempt-softgpu as people run it, with a daemon, commands and jobs on the same software GPU."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli'), os.path.join(HERE, '..', 'daemon')]
import rig
from run import ABSENT, DONE, FAILED, GPREEMPT, REFUSED, USAGE, run

SOFTGPU = os.environ['GPREEMPT_SOFTGPU']
WAIT_S = 30
QUIET = {'stdin': subprocess.DEVNULL, 'stdout': subprocess.DEVNULL}


def symbols(program):
    p = subprocess.run(['nm', program], stdout=subprocess.PIPE, text=True, check=True)
    return {line.split()[-1] for line in p.stdout.splitlines()}


def is_hung_up(s):
    """Waits for it; a connection that was never accepted ends with an error."""
    try:
        return s.recv(1) == b''
    except ConnectionResetError:
        return True


class Case(rig.Case):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='gpreempt-')
        self.addCleanup(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)
        self.path = os.path.join(self.dir, 'device.sock')

    def softgpu(self, *args):
        """A running one: it says on a descriptor when it is ready."""
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        p = subprocess.Popen([SOFTGPU, '--parent', str(its.fileno()), *args, self.path], **QUIET,
                             pass_fds=[its.fileno()])
        its.close()
        self.addCleanup(self.end, p)
        self.addCleanup(ours.close)
        ours.settimeout(WAIT_S)
        said = ours.recv(4096)
        self.assertEqual(said[:4], b'\0\0\0\0', said)
        return p

    def end(self, p):
        p.kill()
        p.wait(WAIT_S)

    def load(self, *args):
        """A job, and its process once it has queues."""
        p = subprocess.Popen([GPREEMPT, '--device', 'soft:' + self.path, 'load', *args], **QUIET)
        self.addCleanup(self.end, p)
        while not self.listed(p.pid):
            self.assertIsNone(p.poll())
        return p

    def on(self, *args):
        return run('--device', 'soft:' + self.path, *args)

    def json_of(self, *args):
        result = self.on('--json', *args)
        self.assertEqual((result.status, result.err), (DONE, ''), result)
        return json.loads(result.out)

    def hold_once(self, pid):
        """Once the device has seen that who held it is gone."""
        until = time.monotonic() + WAIT_S
        while True:
            status = self.on('hold', pid, '--for', '0.05').status
            if status != REFUSED or time.monotonic() > until:
                return status

    def listed(self, pid):
        return [p for p in self.json_of('list')['processes'] if p['pid'] == pid]


class Program(Case):
    def test_help_and_mistakes(self):
        help_text = run('--help', program=SOFTGPU)
        self.assertEqual(help_text.status, DONE)
        self.assertIn('soft:SOCKET', help_text.out)
        for args in ([], ['a', 'b'], ['--nonsense', 'a'], ['--preset', 'nochip', self.path]):
            result = run(*args, program=SOFTGPU)
            self.assertEqual(result.status, USAGE, result)
            self.assertRegex(result.err, '^gpreempt-softgpu: .*\n$')

    def test_a_file_of_that_name_stays(self):
        with open(self.path, 'w', encoding='utf-8') as f:
            f.write('mine')
        result = run(self.path, program=SOFTGPU)
        self.assertEqual(result.status, FAILED, result)
        with open(self.path, encoding='utf-8') as f:
            self.assertEqual(f.read(), 'mine')

    def test_ends_when_told_and_leaves_no_socket(self):
        p = self.softgpu()
        p.terminate()
        self.assertEqual(p.wait(WAIT_S), DONE)
        if os.geteuid() != 0:  # else it has no right to any more
            self.assertFalse(os.path.exists(self.path))

    def test_without_one_commands_say_so(self):
        result = self.on('list')
        self.assertEqual(result.status, ABSENT, result)
        self.assertIn('gpreempt-softgpu', result.err)

    def test_the_daemon_has_no_model_in_it(self):
        model = re.compile('(model|live|hw)_')
        self.assertTrue([s for s in symbols(SOFTGPU) if model.match(s)])
        its = symbols(rig.GPREEMPTD)
        self.assertIn('gkfd_transport_soft', its)
        self.assertEqual([s for s in its if model.match(s)], [])


    def test_a_file_that_lingers_stops_nobody(self):
        device = self.softgpu()
        s, peer = rig.lingering()
        self.addCleanup(peer.close)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as c:
            c.connect(self.path)
            device.send_signal(signal.SIGSTOP)
            try:
                rig.send_file(c, s, b'x')
            except PermissionError:  # Linux 6.16: no file is ever sent
                peer.close()
            s.close()
            device.send_signal(signal.SIGCONT)
            c.settimeout(WAIT_S / 2)
            c.shutdown(socket.SHUT_WR)
            self.assertTrue(is_hung_up(c))
        self.assertEqual(self.on('list').status, DONE)
        device.terminate()
        self.assertEqual(device.wait(WAIT_S / 2), DONE)


class Commands(Case):
    def test_a_job_is_seen_held_and_released(self):
        self.softgpu('--preset', 'mi300x,gpus=2')
        job = self.load('--offline', '--queues', '3')
        self.assertEqual(self.listed(job.pid)[0]['queues'], 3)
        self.assertEqual(len(self.json_of('queues', job.pid)['queues']), 3)
        held = self.on('hold', job.pid, '--for', '0.05')
        self.assertEqual((held.status, held.err), (DONE, ''), held)
        self.assertIn('modelled', held.out)
        self.assertEqual(len(self.json_of('doctor')['devices'][0]['gpus']), 2)
        self.assertTrue(self.json_of('bench', job.pid, '-n', '2')['modelled'])

        holder = subprocess.Popen([GPREEMPT, '--device', 'soft:' + self.path, 'hold', str(job.pid)],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, holder)
        self.addCleanup(holder.stdout.close)
        self.assertIn('holding', holder.stdout.readline())
        self.assertEqual(self.on('hold', job.pid, '--for', '0.05').status, REFUSED)
        released = self.on('release', job.pid)
        self.assertEqual((released.status, released.err), (DONE, ''), released)
        self.assertIn('runs again', released.out)
        holder.wait(WAIT_S)
        self.assertEqual(self.on('hold', job.pid, '--for', '0.05').status, DONE)

    def test_a_killed_hold_is_over(self):
        self.softgpu()
        job = self.load('--offline')
        holder = subprocess.Popen([GPREEMPT, '--device', 'soft:' + self.path, 'hold', str(job.pid)],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(holder.stdout.close)
        self.assertIn('holding', holder.stdout.readline())
        self.end(holder)
        self.assertEqual(self.hold_once(job.pid), DONE)


class WithDaemon(Case):
    CONFIG = '[hold]\nattach_age = 0s\nmin_run = 0s\ncycles_per_second = 0\n'

    def busy_daemon(self, *args):
        """One that holds an offline job for an online one that always has work."""
        d = self.daemon(self.CONFIG, args, device='soft:' + self.path)
        with d.client() as c:
            c.subscribe()
            offline = self.load('--offline')
            online = self.load('--online', '--every-ms', '1', '--kernel-us', '20000')
            for pid, job_class in ((offline.pid, rig.OFFLINE), (online.pid, rig.ONLINE)):
                c.set_class(pid, job_class)
            while c.event(rig.HELD).pid != offline.pid:
                pass
        return d, offline, online

    def test_it_and_commands_see_the_same_jobs(self):
        self.softgpu()
        d, offline, online = self.busy_daemon()
        self.assertEqual({p['pid'] for p in self.json_of('list')['processes']},
                         {offline.pid, online.pid})
        self.assertEqual(self.on('hold', offline.pid, '--for', '0.05').status, REFUSED)
        with d.client() as c:
            c.subscribe()
            result = run('--device', 'soft:' + self.path, '--socket', d.socket, 'release',
                         offline.pid)
            self.assertEqual((result.status, result.err), (DONE, ''), result)
            # The daemon was asked, and has it still.
            self.assertEqual(c.event(rig.LET_GO, rig.JOB_NOT_ATTACHED).kind, rig.LET_GO)
        with d.client() as c:
            self.assertEqual([j.attached for j in c.jobs() if j.pid == offline.pid], [True])
        self.assertEqual(d.end(), DONE)
        self.assertTrue(self.listed(offline.pid))  # the device stays
        self.assertEqual(self.on('hold', offline.pid, '--for', '0.05').status, DONE)

    def test_when_it_is_killed_its_jobs_are_free(self):
        self.softgpu()
        d, offline, _ = self.busy_daemon()
        d.end(signal.SIGKILL)
        self.assertEqual(self.hold_once(offline.pid), DONE)

    def test_when_it_is_stopped_its_jobs_are_free(self):
        for level, preset in (('K2', 'mi308x'), ('K3', 'mi308x,ext=1')):
            with self.subTest(level=level):
                self.softgpu('--preset', preset)
                d, offline, online = self.busy_daemon('--level', level)
                d.process.send_signal(signal.SIGSTOP)
                self.end(online)
                self.assertEqual(self.hold_once(offline.pid), DONE)
                self.end(offline)

    def test_it_finds_a_device_that_comes_back(self):
        first = self.softgpu()
        d = self.daemon(device='soft:' + self.path)
        with d.client() as c:
            c.subscribe()
            self.end(first)
            c.event(rig.WAS_PAUSED)
            self.softgpu()
            c.event(rig.CONTINUED)
            job = self.load('--offline')
            self.assertEqual(c.event(rig.JOB_CAME).pid, job.pid)

    def test_nobody_there_is_no_device(self):
        run_dir = os.path.join(self.dir, 'run')
        result = run('--device', 'soft:' + self.path, '--run-dir', run_dir, program=rig.GPREEMPTD)
        self.assertEqual(result.status, ABSENT, result)
        self.assertIn('no software GPU at', result.err)

    def test_its_own_ends_with_it_however_it_ends(self):
        for sig in (signal.SIGTERM, signal.SIGKILL):
            d = self.daemon()
            path = os.path.join(d.run_dir, 'device.sock')
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                s.settimeout(WAIT_S)
                s.connect(path)
                d.end(sig)
                self.assertTrue(is_hung_up(s))
            self.assertEqual(os.path.exists(path), sig == signal.SIGKILL)


if __name__ == '__main__':
    unittest.main()
