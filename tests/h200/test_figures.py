# SPDX-License-Identifier: MIT
"""From what was measured to figures and to the page of results: bench/h200, without a GPU."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'bench', 'h200')
sys.path.insert(0, BENCH)
import figures
from job import Job

ALONE = {'fp32': figures.summary([900.0] * 99 + [920.0]), 'fp32_per_s': 1000.0}


def raw(us, units=(), seconds=5.0, right=True, wrong=0):
    return {'request_us': us, 'late_us': [0.0], 'seconds': seconds, 'right': right,
            'hints_failed': 0,
            'jobs': [{'units': u, 'checks': 3, 'wrong': wrong} for u in units]}


def mode(key, us, units=(4400.0,), **more):
    return {'key': key, **figures.mode_figures(raw(us, units, **more), ALONE['fp32'],
                                               ALONE['fp32_per_s'])}


def result(*modes, **more):
    return {'modes': list(modes), 'steps': [], 'rights': [], 'alone': ALONE,
            'machine': dict.fromkeys(('gpu', 'module', 'kernel', 'cpus', 'cuda', 'torch', 'glibc')),
            'date': '2026-01-01 00:00 UTC', 'command': 'bench/h200/run', 'seconds': 1.0, **more}


class Figures(unittest.TestCase):
    def test_a_percentile_is_one_of_the_values(self):
        values = list(range(1, 101))
        self.assertEqual(figures.percentile(values, 50), 50)
        self.assertEqual(figures.percentile(values, 99), 99)
        self.assertEqual(figures.percentile(values, 100), 100)
        self.assertEqual(figures.percentile([7], 99), 7)
        self.assertIsNone(figures.percentile([], 99))

    def test_a_summary_does_not_depend_on_the_order(self):
        self.assertEqual(figures.summary([3, 1, 2]), figures.summary([1, 2, 3]))
        self.assertEqual(figures.summary([]), {'n': 0})

    def test_ratios_compare_like_with_like(self):
        m = mode('fp32-1', [1000.0] * 98 + [1150.0] * 2)
        self.assertEqual(m['ratio_p50'], round(1000 / 900, 3))
        self.assertEqual(m['ratio_p99'], round(1150 / 900, 3))

    def test_the_work_of_all_jobs_counts(self):
        self.assertEqual(mode('fp32-4', [900.0], (1000, 2000, 500, 1000))['best_effort_pct'], 90.0)

    def test_what_was_not_measured_is_not_judged(self):
        m = figures.mode_figures(raw([900.0]), None, None)
        self.assertIsNone(m['ratio_p99'])
        self.assertIsNone(figures.keeps(m, (1.3, 86)))
        self.assertIsNone(figures.keeps(None, (1.3, 86)))

    def test_a_bar_has_two_sides(self):
        good, slow, starved = (mode('fp32-1', [1000.0]), mode('fp32-1', [1300.0]),
                               mode('fp32-1', [1000.0], (4200.0,)))
        self.assertEqual([figures.keeps(m, (1.30, 86)) for m in (good, slow, starved)],
                         [True, False, False])

    def test_every_wrong_result_is_counted(self):
        r = result(mode('a', [1.0], wrong=2), mode('b', [1.0], right=False),
                   faults=[{'case': 'x', 'seconds': 1.0, 'wrong': 1}],
                   suspends={'rounds': 2000, 'checks': 9, 'wrong': 4})
        self.assertEqual(figures.wrong_results(r), 8)

    def test_jobs_that_never_ran_again_are_missed(self):
        r = result(faults=[{'case': 'killed', 'seconds': None}, {'case': 'stopped', 'seconds': 1.9},
                           {'case': 'slow', 'seconds': 2.1}])
        self.assertEqual([o[3] for o in figures.others(r)], [False, True, False, True])


class Report(unittest.TestCase):
    def page(self, r):
        with tempfile.NamedTemporaryFile('w', suffix='.json') as f:
            json.dump(r, f)
            f.flush()
            return subprocess.run([os.path.join(BENCH, 'report'), f.name], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout

    def test_what_is_missed_is_said_and_why(self):
        page = self.page(result(mode('fp32-1', [1000.0]), mode('fp32-4', [2000.0])))
        self.assertIn('1 best-effort job | 1.30×, 86 % | 1.23×, 88 % | 1.00 | 1.00 | 1.11× | '
                      '1.11× | 88.0 % | kept, goal reached |', page)
        self.assertIn('4 best-effort jobs: not kept, because', page)
        self.assertNotIn('1 best-effort job: not kept', page)

    def test_a_step_that_failed_is_not_passed_over(self):
        r = result(steps=[{'name': 'mps', 'ok': False, 'seconds': 1, 'error': 'no server'}])
        self.assertIn('the step mps was not done: no server', self.page(r))

    def test_the_page_is_clean_text(self):
        page = self.page(result(mode('fp32-1', [1000.0]), log={
            'xid_before': 0, 'xid_after': 1, 'nvrm_before': 2, 'nvrm_after': 3, 'new': []}))
        self.assertEqual([line for line in page.splitlines() if line != line.rstrip()], [])
        self.assertTrue(page.endswith('\n') and not page.endswith('\n\n'))
        self.assertIn('| Xid in the kernel log | 0 | 1 | **missed** |', page)


class Files(unittest.TestCase):
    def test_two_sides_of_a_job_see_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            one = Job(os.path.join(folder, 'be'), create=True)
            two = Job(one.path)
            one.progress, one.wrong = 7, 1
            two.stop = 1
            self.assertEqual((two.progress, two.wrong, one.stop, one.ready), (7, 1, 1, 0))

    def test_the_layout_is_that_of_the_header(self):
        with open(os.path.join(BENCH, 'job.h'), encoding='utf-8') as f:
            text = f.read()
        order = [text.index(f' {name}') for name in ('ready;', 'stop;', 'pid;', 'iterations;',
                                                     'checks,', 'wrong;', 'units;')]
        self.assertEqual(order, sorted(order))
        self.assertIn('#define JOB_PROGRESS 4096', text)


if __name__ == '__main__':
    unittest.main()
