# SPDX-License-Identifier: MIT
"""The log of a real daemon on the software device: what is in it, and how much."""
import unittest

import rig
from rig import DONE, ONLINE

MANY = 1000  # preemptions
CONFIG = """
[look]
scan = 10ms
[control]
requests_per_second = 100000
[hold]
attach_age = 0s
min_run = 0us
cycles_per_second = 0
[default]
class = offline
"""


class Log(rig.Case):
    def preempt(self, d, times):
        """An online job announces work until offline jobs have made room so often."""
        offline, online = self.job(d), self.job(d)
        with d.client() as c:
            while not {offline.pid, online.pid} <= {j.pid for j in c.jobs() if j.queues}:
                pass
            c.set_class(online.pid, ONLINE)
            while not c.status().attached:
                pass
            while c.status().preemptions < times:
                c.hint(online.pid, for_ns=50000)

    def test_a_thousand_preemptions_are_a_few_lines(self):
        d = self.daemon(CONFIG)
        self.preempt(d, MANY)
        self.assertEqual(d.end(), DONE)
        lines = d.said().splitlines()
        self.assertLess(len(lines), 15, lines)
        told = [line for line in lines if 'taken off a GPU' in line]
        self.assertEqual(len(told), 1, lines)
        self.assertRegex(told[0], r' 10\d\d jobs were taken off')

    def test_the_level_is_that_of_the_configuration_also_after_a_reload(self):
        d = self.daemon(CONFIG + '[log]\nlevel = error\n')
        self.preempt(d, 10)
        self.assertEqual(d.said(), '')
        d.configure(CONFIG + '[log]\nlevel = debug\n')
        d.reload()
        self.preempt(d, 20)
        self.assertRegex(d.said(), r'(?m)^gpreemptd: held pid=\d+ ')
        self.assertRegex(d.said(), r'(?m)^gpreemptd: let-go pid=\d+ .* held_us=\d+: ')
        d.configure(CONFIG + '[log]\nlevel = loud\n')
        d.reload()
        self.assertRegex(d.said(), r"there is no level 'loud'; hint: levels are error, .*debug")

    def test_verbose_is_debug_whatever_the_configuration_says(self):
        d = self.daemon(CONFIG + '[log]\nlevel = error\n', args=['--verbose'])
        self.preempt(d, 2)
        self.assertIn('held pid=', d.said())
        d.reload()
        self.assertIn('the configuration was read again', d.said())


if __name__ == '__main__':
    unittest.main()
