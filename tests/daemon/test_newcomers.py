#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes that begin to use the GPU: known at once, where the daemon is told of them."""
import ctypes
import os
import signal
import time
import unittest

import rig

OPENINGS = 40
MEDIAN_MS, MOST_MS = 100, 5000  # the machine may be busy; without being told it takes a minute
ALONE = 54321  # a user whom nobody else is here
ROOT = os.geteuid() == 0
RARE_SCANS = '[look]\nscan = 60s\n'


def use_up_inotify(told):
    """All that this user may have, until the end of this process."""
    libc = ctypes.CDLL(None)
    rig.many_files()
    while libc.inotify_init1(os.O_CLOEXEC) >= 0:
        pass
    os.write(told, b'.')
    signal.pause()


class Case(rig.Case):
    def came(self, events, pid):
        """When it did, on the clock of the machine."""
        while True:
            e = events.event(rig.JOB_CAME)
            if e.pid == pid:
                return e.time_ns

    def took_ms(self, d, events, **kwargs):
        job = rig.Job(d, late=True, **kwargs)
        try:
            began_ns = time.time_ns()
            job.begin()
            return (self.came(events, job.pid) - began_ns) / 10 ** 6
        finally:
            job.close()


class Told(Case):
    def test_all_are_known_at_once(self):
        d = self.daemon(RARE_SCANS)
        with d.client() as events:
            events.subscribe()
            took = sorted(self.took_ms(d, events) for _ in range(OPENINGS))
        figures = f'p50 {took[OPENINGS // 2]:.1f} ms, most {took[-1]:.1f} ms'
        print(f'{OPENINGS} openings: {figures}')
        self.assertLess(took[OPENINGS // 2], MEDIAN_MS, figures)
        self.assertLess(took[-1], MOST_MS, figures)
        self.assertNotIn('nobody tells', d.said())


@unittest.skipUnless(ROOT, 'only root can be another user')
class Untold(Case):
    def test_they_are_found_all_the_same_and_it_is_said_once(self):
        self.hog()
        d = self.daemon('[look]\nscan = 50ms\n', listener=self.listener(), uid=ALONE)
        with d.client() as events:
            events.subscribe()
            for _ in range(3):
                self.assertLess(self.took_ms(d, events, uid=ALONE), MOST_MS)
        self.assertEqual(d.said().count('nobody tells when a GPU is opened'), 1, d.said())

    def hog(self):
        ready, told = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                rig.many_files()
                rig.become(ALONE)
                use_up_inotify(told)
            finally:
                os._exit(1)
        os.close(told)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        self.assertEqual(os.read(ready, 1), b'.')
        os.close(ready)


if __name__ == '__main__':
    unittest.main()
