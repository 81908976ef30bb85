# SPDX-License-Identifier: MIT
"""The commands on a played NVIDIA driver: see nvrm_machine.c for who is there."""
import json
import os
import signal
import subprocess
import unittest

from run import ABSENT, DONE, GPREEMPT, REFUSED, USAGE, Case, run

COMPUTE = 0x15  # the compute group of a first context
GPU, GPU_2 = 0x100, 0x4100


class NvrmCase(Case):
    def on(self, *args, machine='', device='nvrm'):
        return run('--device', device, *args, env=dict(os.environ, NVRM_MACHINE=machine))

    def answer(self, *args, status=DONE, machine='', device='nvrm'):
        result = self.on('--json', *args, machine=machine, device=device)
        self.assertEqual((result.status, result.err), (status, ''), result)
        return json.loads(result.out)

    def text(self, *args, machine=''):
        return self.ok(self.on(*args, machine=machine))

    def turned_down(self, status, *args, says='', machine=''):
        error = self.answer(*args, status=status, machine=machine)['error']
        self.assertEqual(error['code'], status)
        self.assertIn(says, error['message'])
        self.assertTrue(error['hint'])
        result = self.on(*args, machine=machine)
        self.assertEqual((result.status, result.out), (status, ''))
        self.assertEqual(len(result.err.splitlines()), 2)
        return error


class Looking(NvrmCase):
    def test_the_doctor(self):
        device, = self.answer('doctor')['devices']
        self.assertEqual((device['backend'], device['driver_version'], device['module']),
                         ('nvrm', '580.159.04', 'open'))
        self.assertNotIn('kfd_version', device)
        self.assertEqual([(g['gpu_id'], g['name'], g['pci'], g['mig']) for g in device['gpus']],
                         [(GPU, 'NVIDIA H200', '0000:01:00.0', False),
                          (GPU_2, 'NVIDIA H100', '0000:41:00.0', False)])
        self.assertEqual([(lv['level'], lv['available']) for lv in device['levels']],
                         [('N2', True), ('N1', True)])
        out = self.text('doctor')
        self.assertIn('NVIDIA GPU driver 580.159.04, open module: 2 GPUs', out)
        self.assertTrue(out.splitlines()[-1].startswith('ready: '))

    def test_auto_finds_it(self):
        self.assertEqual(self.answer('doctor', device='auto')['devices'][0]['backend'], 'nvrm')

    def test_no_driver(self):
        for command in (['doctor'], ['list'], ['queues', 1001], ['hold', 1001], ['bench', 1001],
                        ['release']):
            self.turned_down(ABSENT, *command, machine='none', says='no NVIDIA GPU driver')
        error = self.answer('list', device='auto', machine='none', status=ABSENT)['error']
        self.assertIn('AMD', error['message'])
        self.assertIn('NVIDIA', error['message'])

    def test_an_unknown_driver(self):
        device, = self.answer('doctor', machine='old')['devices']
        self.assertEqual(device['module'], 'proprietary')
        self.assertEqual([lv['available'] for lv in device['levels']], [False, False])
        self.assertTrue(self.text('doctor', machine='old').splitlines()[-1]
                        .startswith('not ready: '))
        self.turned_down(REFUSED, 'hold', 1001, machine='old', says='never checked')

    def test_an_unknown_driver_is_not_tried(self):
        self.turned_down(REFUSED, 'doctor', '--self-test', machine='old', says='never checked')

    def test_list(self):
        train, both, screen = self.answer('list')['processes']
        self.assertEqual((train['pid'], train['queues'], train['gpus']), (1001, 4, [GPU]))
        self.assertEqual((both['pid'], both['queues'], both['gpus']), (1002, 8, [GPU, GPU_2]))
        self.assertNotIn('class', train)
        self.assertEqual((screen['comm'], 'queues' in screen), ('Xorg', False))

    def test_list_without_rights(self):
        for process in self.answer('list', machine='blind')['processes']:
            self.assertEqual(set(process), {'pid', 'comm', 'uid', 'state'})
        self.assertIn('could not be looked into', self.text('list', machine='blind'))

    def test_queues(self):
        answer = self.answer('queues', 1001)
        self.assertEqual(answer['by_type'], {'group-compute': 1, 'group-copy': 3})
        compute = next(q for q in answer['queues'] if q['type'] == 'group-compute')
        self.assertEqual(compute, {'pid': 1001, 'queue_id': COMPUTE, 'gpu_id': GPU,
                                   'type': 'group-compute', 'channels': 8, 'slice_us': 2048})
        out = self.text('queues', 1001)
        self.assertIn('process 1001: 4 channel groups', out)
        self.assertIn('2.05 ms', out)
        self.assertEqual(len(self.answer('queues', '--all')['queues']), 12)
        self.assertIn('12 channel groups', self.text('queues', '--all'))

    def test_who_cannot_be_looked_into(self):
        self.turned_down(ABSENT, 'queues', 1003, says='no context')
        self.turned_down(ABSENT, 'queues', 7)
        self.turned_down(REFUSED, 'queues', 1004, says='not where libcuda')
        self.turned_down(REFUSED, 'queues', 1001, machine='blind', says='may not be traced')

    def test_what_this_driver_has_not(self):
        self.turned_down(REFUSED, 'monitor', 1001, says='progress')
        self.turned_down(REFUSED, 'hqd', says='slots')
        self.turned_down(REFUSED, 'accept', 1001, says='AMD')


class Preempting(NvrmCase):
    def test_hold(self):
        answer = self.answer('hold', 1001, '--for', '0.1')
        self.assertEqual(len(answer['held']), 4)
        self.assertIn({'pid': 1001, 'queue_id': COMPUTE}, answer['held'])
        self.assertGreater(answer['suspend_us'], 0)
        self.assertIs(answer['modelled'], False)
        out = self.text('hold', 1001, 1002, '--for', '0.1')
        self.assertIn('holding process 1002: 8 channel groups off the GPU', out)
        self.assertIn('12 channel groups are running again', out)

    def test_hold_until_interrupted(self):
        with subprocess.Popen([GPREEMPT, '--device', 'nvrm', 'hold', '1001'],
                              stdout=subprocess.PIPE, text=True) as p:
            self.assertIn('holding process 1001', p.stdout.readline())
            p.send_signal(signal.SIGINT)
            out, _ = p.communicate(timeout=30)
        self.assertEqual(p.returncode, DONE, out)
        self.assertIn('4 channel groups are running again', out)

    def test_hold_of_one_group(self):
        answer = self.answer('hold', 1001, '--queue', COMPUTE, '--for', '0.05')
        self.assertEqual(answer['held'], [{'pid': 1001, 'queue_id': COMPUTE}])
        self.turned_down(ABSENT, 'hold', 1001, '--queue', 7, '--for', 1, says='no channel group 7')

    def test_levels(self):
        self.answer('hold', 1001, '--level', 'N2', '--for', '0.05')
        self.turned_down(REFUSED, 'hold', 1001, '--level', 'N1', '--for', 1, says='holds nobody')
        self.turned_down(USAGE, 'hold', 1001, '--level', 'K1', '--for', 1, says='K1')
        self.turned_down(REFUSED, 'hold', 1001, '--grace', 3, '--for', 1, says='grace period')

    def test_one_bad_pid_and_nobody_is_held(self):
        self.turned_down(ABSENT, 'hold', 1001, 1003, '--for', 1)

    def test_bench(self):
        answer = self.answer('bench', 1001, '-n', 5, '--work', 0)
        self.assertEqual((answer['ok'], answer['failed'], answer['queues']), (5, 0, 4))
        self.assertIs(answer['modelled'], False)
        self.assertGreater(answer['suspend_us']['p50'], 0)
        self.assertNotIn('saved_bytes', answer)
        self.assertIn('4 channel groups', self.text('bench', 1001, '-n', 2, '--work', 0))

    def test_release_claims_nothing(self):
        answer = self.answer('release', 1001, machine='left')
        self.assertEqual(answer, {'released': [1001], 'certain': False})
        out = self.text('release', machine='left')
        self.assertIn('contexts of 2 processes let go', out)
        self.assertIn('does not tell', out)
        self.turned_down(REFUSED, 'release', 1001, machine='blind', says='may not be traced')
        self.assertIn('contexts of 0 processes let go', self.text('release', machine='blind'))


if __name__ == '__main__':
    unittest.main()
