# SPDX-License-Identifier: MIT
"""
usage: test_bars.py BUILDDIR BENCH JSON: the bars of bench/sim_bars.py, on all there is to simulate

What comes out is also what JSON says, which is docs/results/sim.json.
"""
import json
import sys
import unittest

BUILD, BENCH, JSON = sys.argv[1:4]
sys.dont_write_bytecode = True
sys.path.insert(0, BENCH)
import sim_bars
import sim_runs


class Bars(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.results = sim_runs.run_all(BUILD, list(sim_runs.all_rows()))

    def test_all_scenarios_are_there_at_all_costs(self):
        keys = {key for key, _ in sim_bars.runs(self.results)}
        self.assertEqual({(name, costs, announced) for name, _, costs, announced in keys},
                         {(name, costs, announced) for name in sim_runs.scenarios()
                          for costs in sim_runs.DETECT for announced in sim_runs.ANNOUNCED})
        self.assertGreater(len(keys), 400)  # with the values of sweeps

    def test_to_see_work_is_nearly_as_good_as_to_be_told(self):
        self.assertEqual(sim_bars.sight_missed(self.results), [])
        self.assertEqual(len(list(sim_bars.sight(self.results))), 2 * len(sim_runs.DISB))

    def test_nobody_is_worse_off_than_listed(self):
        self.assertEqual(sim_bars.harm_unknown(self.results), [])

    def test_the_results_say_what_comes_out(self):
        with open(JSON, encoding='utf-8') as f:
            told = [r for r in json.load(f)['rows'] if r['table'] == 'all']
        for r in self.results:
            self.assertIn(r, told)

    def test_nobody_is_starved(self):
        for r in self.results:
            self.assertEqual(r['figures']['starved'], 0, (r['scenario'], r['settings']))

    def test_what_would_be_harm_is_found(self):
        figures = next(f for _, f in sim_bars.runs(self.results) if not sim_bars.exceeded(f))
        for key in ('mean_us', 'p99_us'):
            worse = {**figures, key: 1.02 * figures['baselines']['none'][key]}
            self.assertIn(f'{key[:-3]}, no preemption', sim_bars.exceeded(worse))
            stream = figures['baselines']['stream_priority']
            cheap = {**figures, 'suspend_us': 0, key: stream[key] + 0.1}
            self.assertIn(f'{key[:-3]}, stream priority', sim_bars.exceeded(cheap))
            dear = {**figures, 'suspend_us': 1e9, key: stream[key] + 0.1}
            self.assertNotIn(f'{key[:-3]}, stream priority', sim_bars.exceeded(dear))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
