#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pages of hints that are waited for: until the process is known, and until it is online."""
import os
import select
import socket
import struct
import unittest

import rig
from rig import ABSENT, HINT_PAGE, OFFLINE, ONLINE, PAGE_BODY, REFUSED, STRANGER

ROOT = os.geteuid() == 0
LONG_NS = 10 ** 12
VERSION_AT = 4  # of a page


def online(uid=os.geteuid()):
    return f'[rule service]\nuid = {uid}\nclass = online\n'


def ask_page(c, pid, wait_ns=LONG_NS):
    return c.send(HINT_PAGE, PAGE_BODY.pack(pid, 0, 0, 0, wait_ns))


def is_answered(c, seconds=0):
    return bool(select.select([c.socket], [], [], seconds)[0])


class Case(rig.Case):
    def late_job(self, *args, **kwargs):
        return self.job(*args, late=True, **kwargs)

    def page_of(self, c, seq):
        """The page that comes with the answer, as a file."""
        data, files, _, _ = socket.recv_fds(c.socket, 4096, 1)
        kind, got = rig.HEADER.unpack_from(data)[3], rig.HEADER.unpack_from(data)[5]
        self.assertEqual((kind, got, len(files)), (HINT_PAGE, seq, 1), data)
        self.addCleanup(os.close, files[0])
        return files[0]

    def wait_for_page(self, c, pid, wait_ns=LONG_NS):
        """The daemon has heard that it is waited for."""
        seq = ask_page(c, pid, wait_ns)
        c.status()
        return seq

    def version_of(self, page):
        return struct.unpack('<H', os.pread(page, 2, VERSION_AT))[0]

    def refused_later(self, kind, c, seq):
        return self.refused(kind, c.answer, HINT_PAGE, seq)

    def clients(self, d, n):
        found = [d.client() for _ in range(n)]
        for c in found:
            self.addCleanup(c.socket.close)
        return found


class Waits(Case):
    def test_until_the_process_is_known(self):
        d = self.daemon(online())
        job = self.late_job(d)
        with d.client() as c:
            seq = ask_page(c, job.pid)
            self.assertGreater(c.status().pid, 0)  # others are answered meanwhile
            self.assertFalse(is_answered(c))
            job.begin()
            self.assertEqual(self.version_of(self.page_of(c, seq)), 1)

    def test_until_it_is_online(self):
        d = self.daemon()
        job = self.job(d)
        with d.client() as watch, d.client() as c, d.client() as other:
            watch.subscribe()
            while not any(j.pid == job.pid for j in other.jobs()) and \
                    watch.event(rig.JOB_CAME).pid != job.pid:
                pass
            seq = ask_page(c, job.pid)
            self.assertEqual(other.set_class(job.pid, ONLINE), 1)
            self.page_of(c, seq)

    def test_and_no_longer_when_it_is_offline(self):
        d = self.daemon('[default]\nclass = offline\n')
        job = self.late_job(d)
        with d.client() as c:
            seq = ask_page(c, job.pid)
            job.begin()
            self.assertIn('not online', self.refused_later(REFUSED, c, seq).message)
            seq = ask_page(c, job.pid)
            self.refused_later(REFUSED, c, seq)

    def test_no_longer_than_it_said(self):
        d = self.daemon()
        with d.client() as c:
            for wait_ns in (1, 50 * 10 ** 6):
                self.refused_later(ABSENT, c, ask_page(c, os.getpid(), wait_ns))
            self.assertGreater(c.status().pid, 0)

    def test_and_an_older_client_not_at_all(self):
        d = self.daemon()
        job = self.job(d)
        with d.client() as c:
            self.refused(ABSENT, c.hint, os.getpid(), kind=HINT_PAGE)
            self.refused(ABSENT, c.hint, kind=HINT_PAGE)
            c.set_class(job.pid, OFFLINE)
            self.refused(REFUSED, c.hint, job.pid, kind=HINT_PAGE)

    def test_once_on_a_connection(self):
        d = self.daemon(online())
        job = self.late_job(d)
        with d.client() as c:
            first = ask_page(c, job.pid)
            self.refused_later(REFUSED, c, ask_page(c, job.pid))
            job.begin()
            self.page_of(c, first)

    def test_and_is_forgotten_with_the_connection(self):
        d = self.daemon(online())
        job = self.late_job(d)
        with d.client() as c:
            ask_page(c, job.pid)
        job.begin()
        with d.client() as c:
            self.page_of(c, ask_page(c, job.pid))

    def test_with_so_many_of_a_user_and_no_more(self):
        d = self.daemon('[control]\nclients_per_user = 5\n' + online())
        job = self.late_job(d)
        first, second, third = self.clients(d, 3)
        self.wait_for_page(first, job.pid)
        kept = self.wait_for_page(second, job.pid)
        self.refused_later(REFUSED, third, ask_page(third, job.pid))
        first.socket.close()
        with d.client() as c:
            while c.status().pid and not self.is_let_wait(third, job.pid):
                pass
        job.begin()
        self.page_of(second, kept)
        self.page_of(third, third.seq)

    def is_let_wait(self, c, pid):
        """The daemon hears when it does that the one before has gone."""
        ask_page(c, pid)
        if not is_answered(c, 0.1):
            return True
        self.refused_later(REFUSED, c, c.seq)
        return False

    def test_until_the_daemon_ends_which_the_page_says(self):
        d = self.daemon(online())
        job = self.job(d)
        with d.client() as c:
            page = self.page_of(c, ask_page(c, job.pid))
        self.assertEqual(self.version_of(page), 1)
        self.assertEqual(d.end(), rig.DONE)
        self.assertEqual(self.version_of(page), 0)


@unittest.skipUnless(ROOT, 'only root can be two people')
class OthersWait(Case):
    def test_for_their_own_processes(self):
        d = self.daemon(online(STRANGER))
        job = self.late_job(d, uid=STRANGER)
        ready, told = os.pipe()

        def wait():
            with d.client() as c:
                seq = self.wait_for_page(c, job.pid)
                os.write(told, b'.')
                self.page_of(c, seq)
        pid = os.fork()
        if pid == 0:
            os._exit(not rig.as_stranger(wait))
        os.read(ready, 1)
        job.begin()
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_but_not_for_those_of_others(self):
        d = self.daemon(online())
        job, gone = self.late_job(d), os.fork()
        if gone == 0:
            os._exit(0)
        os.waitpid(gone, 0)

        def ask():
            with d.client() as c:
                self.refused(REFUSED, c.answer, HINT_PAGE, ask_page(c, job.pid))
                self.refused(ABSENT, c.answer, HINT_PAGE, ask_page(c, gone))
        self.assertTrue(rig.as_stranger(ask))

    def test_in_vain_where_the_process_becomes_somebody_elses(self):
        d = self.daemon(online())
        job = self.late_job(d, uid=STRANGER, later_uid=0)
        ready, told = os.pipe()
        pid = os.fork()

        def wait():
            with d.client() as c:
                seq = self.wait_for_page(c, job.pid, 2 * 10 ** 9)
                os.write(told, b'.')
                self.refused_later(ABSENT, c, seq)
        if pid == 0:
            os._exit(not rig.as_stranger(wait))
        os.read(ready, 1)
        job.begin()
        with d.client() as c:
            self.page_of(c, ask_page(c, job.pid))
        self.assertEqual(os.waitpid(pid, 0)[1], 0)


if __name__ == '__main__':
    unittest.main()
