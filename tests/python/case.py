# SPDX-License-Identifier: MIT
"""For the tests beside this file: the package out of the source tree, and what they share."""
import os
import signal
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'python'))
import gpreempt
from gpreempt import jobs

WAIT_S = 60  # for what must come; a test that waits so long has failed
TRAIN, INFER, EMPTY = 1001, 1002, 1003  # the processes of a populated model
NOWHERE = '/nowhere/control.sock'

# A test run in the background of a shell script inherits these as ignored.
for ending in (signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(ending) == signal.SIG_IGN:
        signal.signal(ending, signal.SIG_DFL)


class Case(unittest.TestCase):
    maxDiff = None

    def device(self, name='model'):
        device = gpreempt.open(name)
        self.addCleanup(device.close)
        return device

    def scheduler(self, *args, **kwargs):
        scheduler = gpreempt.GPreemptScheduler.start(*args, **kwargs)
        self.addCleanup(scheduler.close)
        return scheduler

    def job(self, scheduler, *options):
        """A job on its software device; ends with the test."""
        job = jobs.start_module(['--socket', scheduler.server.socket, *map(str, options)])
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        return job

    def wait_for(self, condition, what='it'):
        until = time.monotonic() + WAIT_S
        while not condition():
            self.assertLess(time.monotonic(), until, f'waited in vain for {what}')
            time.sleep(0.01)

    def fails(self, kind, call, *args, **kwargs):
        """Raises just that class, with a line and a number."""
        with self.assertRaises(kind) as caught:
            call(*args, **kwargs)
        e = caught.exception
        self.assertIs(type(e), kind, e)
        self.assertTrue(e.message)
        self.assertIn(e.message, str(e))
        return e


def states(device, pid=TRAIN):
    return [q.state for q in device.snapshot(pid).queues]


def fields_of(pid):
    """Of a process, as /proc has them after its name; none: there is no such process."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as f:
            return f.read().rpartition(')')[2].split()
    except OSError:
        return []


def is_gone(pid):
    return fields_of(pid)[:1] in ([], ['Z'])


def children_of(pid):
    return [int(p) for p in os.listdir('/proc') if p.isdigit() and
            fields_of(p)[1:2] == [str(pid)]]
