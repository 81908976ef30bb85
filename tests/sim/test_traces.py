# SPDX-License-Identifier: MIT
"""Every scenario that comes with the program leaves a trace that check-trace finds nothing in."""
import json
import os
import subprocess
import tempfile
import unittest

GPREEMPT = os.environ['GPREEMPT']
CHECK_TRACE = os.environ['CHECK_TRACE']
DURATION = '0.15'  # seconds: enough for each job to be preempted
SEEDS = ('1', '2')


def sim(*args):
    done = subprocess.run([GPREEMPT, '--json', 'sim', *args], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise AssertionError(f"gpreempt --json sim {' '.join(args)}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


class Traces(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def trace(self, scenario, *args):
        path = os.path.join(self.folder, f"{scenario}{'-'.join(args)}.json".replace('/', '-'))
        sim(scenario, '--trace', path, '--duration', DURATION, *args)
        return path

    def check(self, *paths):
        done = subprocess.run([CHECK_TRACE, *paths], capture_output=True, text=True, timeout=120,
                              check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, '', ''))

    def slices(self, path, category):
        with open(path, encoding='utf-8') as f:
            return [e for e in json.load(f)['traceEvents'] if e.get('cat') == category]

    def test_of_every_scenario(self):
        scenarios = [s['name'] for s in sim('--list')['scenarios']]
        self.assertGreaterEqual(len(scenarios), 15)
        for scenario in scenarios:
            with self.subTest(scenario=scenario):
                path = self.trace(scenario)
                self.check(path)
                self.assertTrue(self.slices(path, 'work'), 'somebody was on a GPU')
                self.assertTrue(self.slices(path, 'request'), 'a request was done')

    def test_of_every_policy(self):
        for policy in [p['name'] for p in sim('--list')['policies']]:
            with self.subTest(policy=policy):
                self.check(*(self.trace('disb-d', '--policy', policy, '--seed', seed)
                             for seed in SEEDS))

    def test_however_work_is_seen_and_whatever_acting_costs(self):
        self.check(*(self.trace('disb-e', *args) for args in (
            ('--detect', 'trap', '--costs', 'kfd-extension'), ('--detect', 'look:5ms'),
            ('--announce', '100us'), ('--costs', 'nvrm'),
            ('--costs', 'nvrm', '--announce', 'submission'))))

    def test_what_is_assumed_is_in_it(self):
        with open(self.trace('disb-a'), encoding='utf-8') as f:
            told = json.load(f)['otherData']
        self.assertEqual(told['assumes'], 'costs of kfd-stock; work seen after 20us (watch), its '
                         'end by looks every 200us; nothing announced')

    def test_preemptions_are_in_it_one_by_one(self):
        path = os.path.join(self.folder, 'trace.json')
        result = sim('disb-a', '--trace', path, '--duration', '1')
        held = self.slices(path, 'preemption')
        self.assertGreater(len(held), 0)
        self.assertEqual(len(held), result['preemptions']['count'])

    def test_slots_in_it_come_to_what_the_result_says(self):
        for scenario in ('disb-d', 'offline-60', 'mix-80-20'):
            path = os.path.join(self.folder, 'trace.json')
            result = sim(scenario, '--trace', path, '--duration', '1')
            with open(path, encoding='utf-8') as f:
                trace = json.load(f)
            end_us = trace['otherData']['duration_ns'] / 1000
            used, of = 0, 0
            counters = [e for e in trace['traceEvents'] if e['ph'] == 'C']
            for gpu in {e['pid'] for e in counters}:
                told = [e for e in counters if e['pid'] == gpu]
                ends = [e['ts'] for e in told[1:]] + [end_us]
                for e, end in zip(told, ends):
                    used += (e['args']['online'] + e['args']['offline']) * (end - e['ts'])
                    of += sum(e['args'].values()) * (end - e['ts'])
            self.assertAlmostEqual(100 * used / of, result['slots']['used_pct'], 1, scenario)

    def test_requests_are_in_it_one_by_one(self):
        for scenario in ('disb-e', 'offline-60', 'mix-80-20'):
            path = os.path.join(self.folder, 'trace.json')
            result = sim(scenario, '--trace', path, '--duration', '1')
            requests = [e for e in self.slices(path, 'request') if e['name'] != 'waits'
                        and e['ph'] == 'X']
            self.assertEqual(len(requests), sum(j['done'] for j in result['jobs']), scenario)

    def test_two_runs_leave_the_same_bytes(self):
        texts = []
        for name in ('a', 'b'):
            path = os.path.join(self.folder, name)
            sim('disb-e', '--trace', path, '--duration', DURATION)
            with open(path, 'rb') as f:
                texts.append(f.read())
        self.assertEqual(*texts)


if __name__ == '__main__':
    unittest.main()
