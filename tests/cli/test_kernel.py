# SPDX-License-Identifier: MIT
"""The scheduler inside the driver, as the software device's driver has it."""
import os
import unittest

from run import ABSENT, REFUSED, USAGE, Case, model

EXT = 'mi308x,gpus=2,ext=1'
ON = EXT + ',scheduler=1'
GPU = 11547

# No daemon of this machine's answers.
os.environ['GPREEMPT_SOCKET'] = '/nonexistent/gpreempt.sock'


class Kernel(Case):
    def test_status_is_of_every_gpu(self):
        for words in ((), ('status',)):
            gpus = self.json_of('kernel', *words, preset=EXT)['gpus']
            self.assertEqual([g['on'] for g in gpus], [False, False])
            self.assertEqual((gpus[0]['gpu_id'], gpus[0]['slots'], gpus[0]['queues']),
                             (GPU, 24, 12))
            self.assertNotIn('policy', gpus[0])
        gpu = self.json_of('kernel', preset=ON)['gpus'][0]
        self.assertEqual((gpu['on'], gpu['policy'], gpu['interval_us'], gpu['hold_max_ms']),
                         (True, 'priority', 5000, 10000))
        self.assertEqual((gpu['online_permille'], gpu['offline_permille']), (0, 1000))
        self.assertIs(gpu['tripped'], False)

    def test_status_for_people(self):
        self.assertIn('gpreempt kernel on', self.ok(model('kernel', preset=EXT)))
        text = self.ok(model('kernel', preset=ON))
        self.assertRegex(text, rf'(?m)^ *{GPU} +on +priority +5\.00 ms')

    def test_on_off_and_rearm(self):
        self.assertEqual(self.json_of('kernel', 'on', preset=EXT), {'done': 'on'})
        self.assertEqual(self.json_of('kernel', 'on', '--gpu', GPU, preset=ON),
                         {'done': 'on', 'gpu_id': GPU})
        self.assertEqual(self.json_of('kernel', 'on', '--policy', 'share', '--interval-us', 2000,
                                      '--critical-interval-us', 500, '--turn-ms', 20,
                                      '--hold-max-ms', 400, '--reserve', '10:80', preset=EXT),
                         {'done': 'on'})
        self.assertEqual(self.json_of('kernel', 'off', '--gpu', GPU, preset=ON),
                         {'done': 'off', 'gpu_id': GPU})
        self.assertEqual(self.json_of('kernel', 'rearm', GPU, preset=ON),
                         {'done': 'rearm', 'gpu_id': GPU})
        text = self.ok(model('kernel', 'on', preset=EXT))
        self.assertRegex(text, r'all GPUs: .* is on\n.*nothing schedules on it')

    def test_says_what_it_lacks(self):
        for words in (('on',), ('off',), ('rearm', GPU), ('status',)):
            self.refused(REFUSED, 'kernel', *words, says='kernel extension')
        self.refused(REFUSED, 'kernel', 'rearm', GPU, preset=EXT, says='is off')
        self.refused(ABSENT, 'kernel', 'on', '--gpu', 1, preset=EXT, says='GPU 1')
        self.refused(ABSENT, 'kernel', 'rearm', 1, preset=EXT, says='GPU 1')

    def test_bad_input(self):
        self.refused(USAGE, 'kernel', 'frob', preset=EXT, says='frob')
        self.refused(USAGE, 'kernel', 'on', GPU, preset=EXT)
        self.refused(USAGE, 'kernel', 'status', 'status', preset=EXT)
        self.refused(USAGE, 'kernel', 'rearm', preset=EXT, says='rearm GPU')
        self.refused(USAGE, 'kernel', 'rearm', 'x', preset=EXT)
        self.refused(USAGE, 'kernel', 'status', '--gpu', GPU, preset=EXT, says='--gpu')
        self.refused(USAGE, 'kernel', 'off', '--policy', 'share', preset=EXT, says='kernel on')
        self.refused(USAGE, 'kernel', 'on', '--policy', 'nobody', preset=EXT, says='nobody')
        self.refused(USAGE, 'kernel', 'on', '--policy=', preset=EXT)
        for option, values in (('--gpu', ('x', '-1', '', '4294967295')),
                               ('--interval-us', ('99', '1000001', 'x', '')),
                               ('--critical-interval-us', ('0', '1e3')),
                               ('--turn-ms', ('0', '60001')),
                               ('--hold-max-ms', ('0', '60001', '-5')),
                               ('--reserve', ('', 'x', '10', '10:', ':80', '60:50', '10:80:5',
                                              '-1:5', '1000:0', '4294967306:0', ' 1:2'))):
            for value in values:
                self.refused(USAGE, 'kernel', 'on', f'{option}={value}', preset=EXT, says=option)


class WithoutDaemon(Case):
    """Where no daemon answers and the driver schedules, it is told."""

    def test_class(self):
        self.assertEqual(self.json_of('class', 1001, 'offline', preset=ON),
                         {'classed': 1, 'scheduler': 'kernel'})
        for name in ('online', 'none'):
            self.assertIn("kernel's scheduler",
                          self.ok(model('class', 1002, name, '--priority', 3, preset=ON)))
        self.refused(ABSENT, 'class', 999999, 'offline', preset=ON, says='999999')
        for selector in ('name:train', 'cgroup:/x', '0123456789ab'):
            self.refused(ABSENT, 'class', selector, 'offline', preset=ON)

    def test_hint(self):
        self.refused(REFUSED, 'hint', 1001, preset=ON, says='not online')
        self.refused(ABSENT, 'hint', 999999, preset=ON, says='999999')

    def test_run_needs_a_daemon(self):
        self.refused(ABSENT, 'run', '--class', 'offline', '--', 'echo', 'started', preset=ON,
                     says='use a GPU already')

    def test_where_it_is_off_the_daemon_is_missed(self):
        for words in (('class', 1001, 'offline'), ('hint', 1001)):
            for preset in (EXT, ''):
                self.refused(ABSENT, *words, preset=preset, says='gpreemptd is not running')
            self.refused(ABSENT, '--socket', '/nonexistent/other', *words, preset=ON,
                         says='/nonexistent/other')


if __name__ == '__main__':
    unittest.main()
