# SPDX-License-Identifier: MIT
"""What real jobs on the software device submit after being idle is told at once, by watchpoints."""
import os
import select
import threading
import time
import unittest

import rig
from rig import OFFLINE, ONLINE

BURST_NS = 5 * 10 ** 6
LOOKED_AT_NS = 300 * 10 ** 6  # longer than from one look at a quiet GPU to the next
SLOW_LOOK_NS = 1500 * 10 ** 6  # longer than from one safety net to the next
BURSTS = 20
MANY_QUEUES = 5, 20, 100


def config(watch, scan='10ms'):
    return (f'[look]\nwatch = {watch}\nscan = {scan}\n[hold]\nattach_age = 0ms\n'
            '[control]\nrequests_per_second = 100000\n')


def children(pid):
    """Names of the children of a process, by pid."""
    found = {}
    for entry in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{entry}/stat', encoding='utf-8', errors='replace') as f:
                name, _, rest = f.read().partition('(')[2].rpartition(')')
        except OSError:
            continue
        if int(rest.split()[1]) == pid:
            found[int(entry)] = name
    return found


def wait_for_end(pid):
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([fd], [], [], rig.WAIT_S)[0], pid
    finally:
        os.close(fd)


class JobOfThreads(rig.Job):
    """Each of its bursts is submitted by a thread that is new, as servers do for each request."""

    def work(self, *args):
        t = threading.Thread(target=super().work, args=args)
        t.start()
        t.join()


@unittest.skipIf(rig.watchpoints(), 'no hardware watchpoints here')
class Watch(rig.Case):
    def setUp(self):
        self.d = self.daemon(config('yes'))
        self.alone = children(self.d.process.pid)
        self.c = self.d.client()
        self.addCleanup(self.c.socket.close)
        self.begin_jobs()

    def begin_jobs(self, queues=1):
        self.online, self.offline = self.job(self.d, queues), self.job(self.d)
        self.until(lambda: len(self.c.jobs()) == 2)
        self.c.set_class(self.online.pid, ONLINE)
        self.c.set_class(self.offline.pid, OFFLINE)

    def end_jobs(self):
        self.online.close()
        self.offline.close()
        self.until(lambda: not self.c.jobs())

    def configure(self, text):
        self.d.configure(text)
        self.d.reload()

    def readers(self):
        return [pid for pid, name in children(self.d.process.pid).items()
                if name == 'gpreempt-reader']

    def until(self, so):
        end = time.monotonic() + rig.WAIT_S
        while not so():
            self.assertLess(time.monotonic(), end, (self.c.status(), self.c.jobs()))

    def record(self):
        return next(j for j in self.c.jobs() if j.pid == self.online.pid)

    def seen(self):
        s = self.c.status()
        return [s.seen_by_watch, s.seen_by_look, s.seen_by_hint, s.seen_late]

    def burst(self, ready, for_ns=BURST_NS, queue=0):
        """One after being idle; how often, by what, work was seen since."""
        self.until(lambda: ready(self.record()) and not self.record().working)
        before = self.seen()
        self.online.submit(for_ns, queue)
        self.until(lambda: self.seen() != before)
        return [b - a for a, b in zip(before, self.seen())]

    def watched_burst(self):
        self.assertEqual(self.burst(lambda j: j.watched), [1, 0, 0, 0])

    def looked_at_burst(self):
        self.assertEqual(self.burst(lambda j: not j.watched, LOOKED_AT_NS),
                         [0, 1, 0, 0])

    def test_work_after_being_idle_is_told_at_once(self):
        for _ in range(BURSTS):
            self.watched_burst()
        s = self.c.status()
        self.assertEqual(s.unwatched, '')
        self.until(lambda: self.c.status().traps == BURSTS)  # counted with the next look

    def test_work_that_watchpoints_miss_is_looked_for_from_then_on(self):
        job = JobOfThreads(self.d)
        self.addCleanup(job.close)
        self.online.close()
        self.until(lambda: any(j.pid == job.pid for j in self.c.jobs()))
        self.c.set_class(job.pid, ONLINE)
        self.online = job
        self.until(lambda: self.record().watched)
        job.submit(BURST_NS)
        self.until(lambda: not self.record().watched)
        for _ in range(3):
            self.looked_at_burst()

    def test_the_configuration_switches_it_off_and_on(self):
        for _ in range(3):
            self.watched_burst()
            self.configure(config('no'))
            self.assertIn('[look]', self.c.status().unwatched)
            self.looked_at_burst()
            self.assertFalse(self.record().watched)
            self.configure(config('yes'))
            self.assertEqual(self.c.status().unwatched, '')

    def test_of_more_queues_than_there_are_registers_work_is_seen_all_the_same(self):
        self.end_jobs()
        for queues in MANY_QUEUES:
            self.begin_jobs(queues)
            self.until(lambda: self.record().queues == queues and self.record().watched)
            self.configure(config('yes', scan='30s'))  # which would look at them, too
            self.burst(lambda j: j.watched, SLOW_LOOK_NS, queues - 1)
            for i in range(5):
                self.burst(lambda j: True, LOOKED_AT_NS, i * (queues - 1) // 4)
            self.configure(config('yes'))
            self.end_jobs()

    def test_one_reader_arms_for_all_jobs_of_a_user_and_ends_after_them(self):
        self.watched_burst()
        reader, = self.readers()
        for _ in range(5):
            self.end_jobs()
            self.begin_jobs()
            self.watched_burst()
            self.assertEqual(self.readers(), [reader])
        self.end_jobs()
        wait_for_end(reader)  # it is kept a while for the next
        self.until(lambda: children(self.d.process.pid) == self.alone)


if __name__ == '__main__':
    unittest.main()
