# SPDX-License-Identifier: MIT
"""hold, bench, release on the software device."""
import unittest

from run import ABSENT, REFUSED, USAGE, Case, model

STATISTICS = ['min', 'avg', 'p50', 'p99', 'max']


class Hold(Case):
    def test_all_queues_for_a_while(self):
        answer = self.json_of('hold', 1001, '--for', 1)
        self.assertEqual([(h['pid'], h['queue_id']) for h in answer['held']],
                         [(1001, i) for i in range(10)])
        self.assertGreater(answer['suspend_us'], 0)
        self.assertGreater(answer['resume_us'], 0)
        self.assertIs(answer['modelled'], True)

    def test_single_queues(self):
        answer = self.json_of('hold', 1001, '--queue', 7, '--queue=3', '--for', 1)
        self.assertEqual([h['queue_id'] for h in answer['held']], [3, 7])

    def test_several_processes(self):
        answer = self.json_of('hold', 1001, 1002, '--for', '0.1')
        self.assertEqual(len(answer['held']), 12)
        out = self.ok(model('hold', 1001, 1002, '--for', '0.1'))
        self.assertIn('holding process 1001: 10 queues', out)
        self.assertIn('12 queues are running again', out)
        self.assertIn('(modelled)', out)

    def test_a_process_without_queues(self):
        self.assertEqual(self.json_of('hold', 1003, '--for', 1)['held'], [])

    def test_one_bad_pid_and_nobody_is_held(self):
        self.refused(ABSENT, 'hold', 1001, 999999, '--for', 1, says='no process 999999')

    def test_bad_queues(self):
        self.refused(ABSENT, 'hold', 1001, '--queue', 99, '--for', 1, says='no queue 99')
        self.refused(USAGE, 'hold', 1001, '--queue', 3, '--queue', 3, '--for', 1, says='twice')
        self.refused(USAGE, 'hold', 1001, '--queue', 'x', '--for', 1)
        self.refused(USAGE, 'hold', 1001, 1002, '--queue', 1, '--for', 1, says='one pid')
        many = [f'--queue={i}' for i in range(5000)]
        self.refused(USAGE, 'hold', 1001, *many, '--for', 1, says='1024')

    def test_bad_grace_is_explained(self):
        for grace in ('0', '256', '512', '-1', 'x', '', '99999999999999999999'):
            self.refused(USAGE, 'hold', 1001, f'--grace={grace}', '--for', 1, says='1 to 255')
        for grace in (1, 255):
            self.json_of('hold', 1001, '--grace', grace, '--for', 1)

    def test_levels(self):
        self.json_of('hold', 1001, '--level', 'K2', '--for', 1)
        for level in ('K3', 'K0'):
            self.refused(REFUSED, 'hold', 1001, '--level', level, '--for', 1,
                         says='not available')
        self.refused(USAGE, 'hold', 1001, '--level', 'K9', '--for', 1, says='K9')

    def test_a_pause_holds_what_has_an_old_runtime(self):
        old = 'mi308x,runtime=old'
        self.refused(REFUSED, 'hold', 1001, '--for', 1, preset=old, says='--level K1')
        for level in ('K1', 'k1'):
            answer = self.json_of('hold', 1001, 1002, '--level', level, '--for', 1, preset=old)
            self.assertEqual({held['pid'] for held in answer['held']}, {1001, 1002})
            self.assertGreater(answer['suspend_us'], 0)

    def test_a_pause_is_of_whole_processes(self):
        for option in ('--queue=1', '--grace=3'):
            self.refused(USAGE, 'hold', 1001, '--level', 'K1', option, '--for', 1, says='K1')
        self.refused(REFUSED, 'hold', 1001, '--level', 'K1', '--for', 1,
                     preset='mi308x,kfd_minor=6', says='1.7')

    def test_bad_times(self):
        for value in ('0', '-1', 'soon', 'inf'):
            self.refused(USAGE, 'hold', 1001, f'--for={value}', says='--for')

    def test_the_same_pid_twice(self):
        self.refused(USAGE, 'hold', 1001, 1001, '--for', 1, says='twice')

    def test_what_cannot_be_held_says_why(self):
        self.refused(REFUSED, 'hold', 1001, '--for', 1, preset='mi308x,runtime=old',
                     says='runtime too old for K2')
        self.refused(REFUSED, 'hold', 1001, '--for', 1, preset='mi308x,kfd_minor=11',
                     says='KFD 1.11, need 1.13')


class Bench(Case):
    def test_a_hundred_rounds(self):
        answer = self.json_of('bench', 1001, '-n', 100)
        self.assertEqual((answer['rounds'], answer['ok'], answer['failed']), (100, 100, 0))
        self.assertIs(answer['modelled'], True)
        for key in ('snapshot_us', 'suspend_us', 'resume_us', 'total_us', 'save_us'):
            figures = [answer[key][s] for s in STATISTICS]
            self.assertEqual(list(answer[key]), STATISTICS)
            self.assertLessEqual(figures[0], figures[1])
            self.assertEqual(figures[2:], sorted(figures[2:]))
            self.assertGreater(figures[0], 0)
        for key in ('open_us', 'attach_us', 'saved_bytes'):
            self.assertGreater(answer[key], 0)
        self.assertTrue(answer['advice'])

    def save_us(self, preset):
        return self.json_of('bench', 1001, '-n', 100, preset=preset)['save_us']['avg']

    def test_save_time_follows_what_there_is_to_save(self):
        full = self.save_us('mi308x')
        half = self.save_us('mi308x,occupancy=50')
        large = self.save_us('mi300x')
        self.assertTrue(0.4 <= half / full <= 0.6, (half, full))
        self.assertTrue(3.8 * 0.9 <= large / full <= 3.8 * 1.1, (large, full))

    def test_text_ends_with_a_verdict(self):
        out = self.ok(model('bench', 1001, '-n', 3)).splitlines()
        self.assertEqual(out[0], 'process 1001: 10 queues, 3 of 3 rounds succeeded '
                                 '(times are modelled)')
        self.assertTrue(out[-1].startswith('verdict: '))

    def test_work_is_optional(self):
        self.assertEqual(self.json_of('bench', 1001, '--work', 0, '-n', 2)['ok'], 2)

    def test_nothing_to_suspend(self):
        answer = self.json_of('bench', 1003, '-n', 2)
        self.assertEqual((answer['ok'], answer['queues']), (2, 0))
        self.assertIn('no queues', answer['advice'])

    def test_bad_input(self):
        for count in ('0', '-3', 'x', '', '99999999999'):
            self.refused(USAGE, 'bench', 1001, f'-n{count}' if count else '-n')
        self.refused(USAGE, 'bench', 1001, '--work=x', says='--work')
        self.refused(USAGE, 'bench', 1001, '--grace=256', says='1 to 255')
        self.refused(USAGE, 'bench', 1001, 1002)
        self.refused(REFUSED, 'bench', 1001, '--level', 'K3', says='K3')
        self.refused(USAGE, 'bench', 1001, '--level', 'K1', '--grace', 3, says='K1')

    def test_pauses(self):
        answer = self.json_of('bench', 1001, '--level', 'K1', '-n', 3)
        self.assertEqual((answer['ok'], answer['failed']), (3, 0))
        self.assertGreater(answer['queues'], 0)


class Release(Case):
    def test_nothing_is_held_on_a_fresh_machine(self):
        for args in ([], ['--all'], [1001], [1001, 1002]):
            self.assertEqual(self.json_of('release', *args), {'released': []})
        self.assertEqual(self.ok(model('release')), 'nothing was held\n')

    def test_bad_input(self):
        self.refused(USAGE, 'release', '--all', 1001)
        self.refused(USAGE, 'release', 'abc')
        self.refused(ABSENT, 'release', 999999, says='999999')


EXT = 'mi308x,ext=1'


class Extension(Case):
    """Level K3: the same commands, by the driver's extension."""

    def levels(self, preset):
        levels = self.json_of('doctor', preset=preset)['devices'][0]['levels']
        return {level['level']: level for level in levels}

    def test_the_doctor_knows_it(self):
        self.assertTrue(self.levels(EXT)['K3']['available'])
        self.assertIn('any processes', self.levels(EXT)['K3']['reason'])
        self.assertFalse(self.levels('mi308x')['K3']['available'])
        self.assertIn('not loaded', self.levels('mi308x')['K3']['reason'])

    def test_hold_answers_the_same(self):
        for args in ([1001, 1002], [1001, '--queue', 1, '--queue', 2]):
            best, debug = (self.json_of('hold', *args, '--for', 3, '--level', level, preset=EXT)
                           for level in ('K3', 'K2'))
            self.assertEqual(best['held'], debug['held'])
            self.assertEqual(best.keys(), debug.keys())

    def test_several_processes_cost_what_one_does(self):
        one, two = (self.json_of('hold', *pids, '--for', 1, preset=EXT)['suspend_us']
                    for pids in ([1001], [1001, 1002]))
        self.assertLess(two, one * 1.5)

    def test_it_is_the_default_and_faster(self):
        best = self.json_of('bench', 1001, '-n', 3, preset=EXT)
        debug = self.json_of('bench', 1001, '-n', 3, '--level', 'K2', preset=EXT)
        self.assertEqual(best['queues'], debug['queues'])
        self.assertLess(best['attach_us'], debug['attach_us'])
        self.assertLess(best['suspend_us']['avg'], debug['suspend_us']['avg'])
        self.assertNotIn('saved_bytes', best)

    def test_long_holds_are_renewed(self):
        answer = self.json_of('hold', 1001, '--for', 90, preset=EXT)
        self.assertEqual(len(answer['held']), 10)

    def test_queues_are_seen_without_tracing(self):
        best, debug = (self.json_of('queues', 1001, preset=p) for p in (EXT, 'mi308x'))
        for a, b in zip(best['queues'], debug['queues'], strict=True):
            self.assertEqual({k: v for k, v in b.items() if k in a}, a)
        self.assertEqual(best['by_gpu'], debug['by_gpu'])

    def test_slots_tell_what_is_held(self):
        gpus = self.json_of('hqd', preset=EXT)['gpus']
        self.assertEqual((gpus[0]['held'], gpus[0]['stopped']), (0, False))
        self.assertNotIn('held', self.json_of('hqd', preset='mi308x')['gpus'][0])

    def test_bad_input(self):
        self.refused(ABSENT, 'hold', 999999, says='999999', preset=EXT)
        self.refused(ABSENT, 'hold', 1001, '--queue', 99, says='queue 99', preset=EXT)
        self.refused(USAGE, 'hold', 1001, '--queue', 1, '--queue', 1, preset=EXT)
        self.refused(USAGE, 'hold', 1001, '--level', 'K9', preset=EXT)
        self.assertEqual(self.json_of('release', preset=EXT), {'released': []})
        self.refused(ABSENT, 'release', 999999, says='999999', preset=EXT)


class StopGpu(Case):
    GPU = 11547

    def test_stops_and_starts(self):
        answer = self.json_of('stop-gpu', self.GPU, '--for', 3, '--yes', preset=EXT)
        self.assertEqual(answer['gpu_id'], self.GPU)
        self.assertGreaterEqual(answer['stopped_us'], 3e6)
        text = self.ok(model('stop-gpu', self.GPU, '--for', 0.5, '--yes', preset=EXT))
        self.assertRegex(text, r'STOPPED.*\n.* runs again after .*modelled')

    def test_says_what_it_lacks(self):
        self.refused(REFUSED, 'stop-gpu', self.GPU, '--for', 1, '--yes', says='kernel extension')

    def test_bad_input(self):
        self.refused(ABSENT, 'stop-gpu', 1, '--for', 1, '--yes', says='GPU 1', preset=EXT)
        self.refused(USAGE, 'stop-gpu', self.GPU, '--for', 1, says='--yes', preset=EXT)
        self.refused(USAGE, 'stop-gpu', self.GPU, '--yes', says='--for', preset=EXT)
        self.refused(USAGE, 'stop-gpu', '--for', 1, '--yes', preset=EXT)
        for gpu in ('x', '-1', '', '99999999999', '1.5'):
            self.refused(USAGE, 'stop-gpu', '--for=1', '--yes', '--', gpu, preset=EXT)
        for seconds in ('0', '-1', 'x', '', 'nan', '1e400'):
            self.refused(USAGE, 'stop-gpu', self.GPU, f'--for={seconds}', '--yes', preset=EXT)
        self.refused(USAGE, 'stop-gpu', self.GPU, self.GPU, '--for', 1, '--yes', preset=EXT)


if __name__ == '__main__':
    unittest.main()
