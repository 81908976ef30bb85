# SPDX-License-Identifier: MIT
"""
What clients send and leave behind: nothing of it makes the daemon wait.

Whoever closes the last copy of a TCP socket that lingers waits for its peer, and a packet can
carry such a copy. A daemon that drops it in its main thread answers nobody for minutes here.
"""
import array
import contextlib
import os
import resource
import signal
import socket
import unittest

import rig
from rig import DONE, STATUS, STRANGER, lingering, send_file

SO_PASSRIGHTS = 83  # Linux 6.16
ROOT = os.geteuid() == 0
LIMITLESS = ('[control]\nrequests_per_second = 100000\nclients = 1024\n'
             'clients_per_user = 1024\n')
AT_ONCE = 16  # connections that are dropped together, see hang_up.c
WAITING = 2048  # that wait for it at most


@contextlib.contextmanager
def no_processes(daemon):
    """Of a daemon that is a stranger's: root is not limited."""
    before = resource.getrlimit(resource.RLIMIT_NPROC)

    def set_to(soft):
        if not rig.as_stranger(lambda: resource.prlimit(daemon.process.pid, resource.RLIMIT_NPROC,
                                                        (soft, before[1]))):
            raise RuntimeError('no limit of processes')
    set_to(0)
    yield
    set_to(before[0])


class Files(rig.Case):
    """With a socket that takes files, as all do before Linux 6.16."""

    def open_daemon(self, *args, **kwargs):
        listener = self.listener()
        d = self.daemon(*args, listener=listener, **kwargs)
        with contextlib.suppress(OSError):  # a kernel that knows no other way
            listener.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 1)
        listener.close()
        return d

    def answers(self, d):
        with d.client() as c:
            self.assertEqual(c.status().pid, d.process.pid)

    def guest(self, d):
        """Somebody who has asked."""
        c = d.client()
        self.addCleanup(c.socket.close)
        with contextlib.suppress(BrokenPipeError):
            c.send(STATUS)
        return c

    def send(self, d, *before, after=(), then=signal.SIGCONT):
        """These packets, one with a socket that lingers, and those after it, all at once."""
        s, peer = lingering()
        self.addCleanup(peer.close)
        d.process.send_signal(signal.SIGSTOP)
        c = d.client()
        self.addCleanup(c.socket.close)
        for data in before:
            c.socket.send(data)
        send_file(c.socket, s)
        for data in after:
            c.socket.send(data)
        s.close()
        d.process.send_signal(then)
        d.process.send_signal(signal.SIGCONT)
        return c

    def test_where_the_kernel_can_no_file_ever_comes(self):
        d = self.daemon()
        with d.client() as c, open('/dev/null', 'rb') as null:
            try:
                c.socket.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS)
            except OSError:
                return  # the other cases are about this kernel
            with self.assertRaises(PermissionError):
                send_file(c.socket, null, rig.packet(STATUS))
            self.assertEqual(c.status().pid, d.process.pid)

    def test_files_are_refused(self):
        d = self.open_daemon()
        with d.client() as c, open('/dev/null', 'rb') as null:
            c.socket.sendmsg([rig.packet(STATUS)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                                     array.array('i', [null.fileno()] * 200))])
            self.assertIsNone(c.receive())
        self.assertLess(len(os.listdir(f'/proc/{d.process.pid}/fd')), 100)

    def test_a_file_that_lingers_stops_nobody(self):
        d = self.open_daemon(LIMITLESS)
        request = rig.packet(STATUS)
        for before in ([], [b''], [b'x'], [b'x', b''], [b'', b''], [request, b'x', b''],
                       [b'x'] + [b''] * 50, [b''] * 50 + [b'x']):
            with self.subTest(before=b'|'.join(before)):
                for _ in range(AT_ONCE + 1):
                    self.send(d, *before, after=[b'', request])
                self.answers(d)

    def test_many_at_a_time_stop_nobody(self):
        d = self.open_daemon(LIMITLESS)
        for _ in range(5 * AT_ONCE):
            self.send(d, b'x', b'')
        self.answers(d)

    def test_who_comes_while_descriptors_are_short_stops_nobody(self):
        d = self.open_daemon(LIMITLESS, through=['sh', '-c', 'ulimit -n 64; exec "$@"', 'sh'])
        crowd = [self.guest(d)]
        while crowd[-1].receive():
            crowd.append(self.guest(d))
        for _ in range(2 * AT_ONCE):
            self.assertIsNone(self.send(d).receive())
        for c in crowd:
            c.socket.close()
        while not self.guest(d).receive():  # until it has noticed
            pass

    def test_who_asks_too_much_stops_nobody(self):
        d = self.open_daemon('[control]\nrequests_per_second = 4\n')
        self.send(d, *[rig.packet(STATUS)] * 8, b'')
        for _ in range(2 * AT_ONCE):  # refused
            self.send(d, b'x', b'')
        self.assertEqual(d.end(), DONE)

    def test_who_was_never_let_in_does_not_hold_up_its_end(self):
        d = self.open_daemon()
        self.send(d, then=signal.SIGTERM)
        self.assertEqual(d.process.wait(rig.WAIT_S), DONE)

    def test_it_leaves_nobody_behind(self):
        d = self.open_daemon(LIMITLESS)
        for _ in range(20 * AT_ONCE):
            self.send(d, b'x', b'')
        self.answers(d)
        with open(f'/proc/{d.process.pid}/task/{d.process.pid}/children', encoding='ascii') as f:
            self.assertLess(len(f.read().split()), AT_ONCE)
        self.assertLess(len(os.listdir(f'/proc/{d.process.pid}/fd')), 100)

    @unittest.skipUnless(ROOT, 'a user to whom nobody else belongs')
    def test_while_no_process_can_be_made_nobody_is_waited_for(self):
        d = self.open_daemon(LIMITLESS, uid=STRANGER)
        with d.client() as early:
            with no_processes(d):
                for _ in range(WAITING):
                    dropped = self.send(d, b'x', b'')
                    while dropped.receive():  # until it is one of those that wait
                        pass
                late = self.send(d, rig.packet(STATUS))
                for _ in range(3):
                    self.assertEqual(early.status().pid, d.process.pid)
                late.socket.setblocking(False)
                with self.assertRaises(BlockingIOError):
                    late.socket.recv(1)
            late.socket.settimeout(rig.WAIT_S)
            self.assertEqual(late.receive()[0], STATUS)
        self.assertEqual(d.end(), DONE)


if __name__ == '__main__':
    unittest.main()
