# SPDX-License-Identifier: MIT
"""doctor, list, queues, monitor, hqd on the software device."""
import ctypes
import errno
import json
import os
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'daemon'))
import rig

from run import ABSENT, DONE, REFUSED, USAGE, Case, model, run

QUEUE_KEYS = {'pid', 'queue_id', 'gpu_id', 'type', 'ring_base', 'ring_bytes', 'read_ptr',
              'write_ptr', 'cwsr_base', 'cwsr_bytes', 'priority', 'pending', 'state'}


class Doctor(Case):
    def test_tells_gpus_and_levels(self):
        device, = self.json_of('doctor')['devices']
        self.assertEqual(device['backend'], 'model')
        self.assertEqual(len(device['gpus']), 8)
        for gpu in device['gpus']:
            self.assertEqual({k: gpu[k] for k in ('gfx', 'xcc', 'cu', 'hqd_total', 'scheduler')},
                             {'gfx': 'gfx942', 'xcc': 4, 'cu': 80, 'hqd_total': 24,
                              'scheduler': 'hws'})
        levels = {level['level']: level for level in device['levels']}
        self.assertEqual([level['level'] for level in device['levels']], ['K3', 'K2', 'K1', 'K0'])
        self.assertTrue(levels['K2']['available'])
        self.assertTrue(levels['K1']['available'])
        self.assertIn('only on request', levels['K1']['reason'])
        self.assertFalse(levels['K3']['available'])
        for level in device['levels']:
            self.assertTrue(level['reason'])

    def test_mi300x_is_larger(self):
        gpus = self.json_of('doctor', preset='mi300x')['devices'][0]['gpus']
        self.assertEqual({(gpu['xcc'], gpu['cu']) for gpu in gpus}, {(8, 304)})

    def test_text_ends_with_what_to_do_next(self):
        out = self.ok(model('doctor'))
        self.assertIn('gfx942', out)
        self.assertIn('K2  yes', out)
        self.assertTrue(out.splitlines()[-1].startswith('ready: '))

    def test_old_driver_has_no_k2_and_says_why(self):
        levels = self.json_of('doctor', preset='mi308x,kfd_minor=11')['devices'][0]['levels']
        k2 = next(level for level in levels if level['level'] == 'K2')
        self.assertFalse(k2['available'])
        self.assertIn('KFD 1.11, need 1.13', k2['reason'])

    def test_only_one_vendor_can_be_tried(self):
        self.refused(REFUSED, 'doctor', '--self-test', says='NVIDIA')
        self.assertEqual(run('--device', 'auto', 'doctor', '--self-test').status, ABSENT)

    def test_without_a_driver_it_still_answers(self):
        result = run('--json', 'doctor')
        self.assertEqual(result.status, DONE)
        self.assertTrue(json.loads(result.out)['devices'])


def refusing(error):
    """What runs in a child, in which perf_event_open then fails so."""
    load, equal, ret = 0x20, 0x15, 0x06
    code = b''.join(struct.pack('<HBBI', *step) for step in (
        (load, 0, 0, 0), (equal, 0, 1, rig.PERF_EVENT_OPEN), (ret, 0, 0, 0x50000 | error),
        (ret, 0, 0, 0x7fff0000)))
    room = ctypes.create_string_buffer(code, len(code))
    program = struct.pack('@HP', len(code) // 8, ctypes.addressof(room))
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def load_filter(_keep=room):
        if prctl(38, 1, 0, 0, 0) or prctl(22, 2, program):
            raise OSError(ctypes.get_errno(), 'seccomp')
    return load_filter


class Watchpoints(Case):
    """Where no daemon runs; test_daemon.py has the rest."""
    env = dict(os.environ, GPREEMPT_SOCKET='/nowhere/control.sock')

    def found(self, **kwargs):
        watch = self.json_of('doctor', env=self.env, **kwargs)['watch']
        said = 'yes' if watch['available'] else 'no, online work is looked for instead'
        self.assertIn(f"\nwatchpoints: {said}: {watch['reason']}\n",
                      self.ok(model('doctor', env=self.env, **kwargs)))
        return watch

    @unittest.skipIf(os.geteuid(), 'only root knows what a daemon may')
    def test_they_are_tried(self):
        self.assertEqual(self.found()['available'], not rig.watchpoints())

    def test_why_there_are_none_and_what_to_do(self):
        for error, says in ((errno.EPERM, 'seccomp'), (errno.EACCES, 'perf_event_paranoid'),
                            (errno.ENOSYS, 'no hardware watchpoints'),
                            (errno.ENODEV, 'no hardware watchpoints'),
                            (errno.ENOSPC, 'taken')):
            watch = self.found(preexec_fn=refusing(error))
            self.assertIs(watch['available'], False)
            self.assertIn(says, watch['reason'])


class List(Case):
    def test_every_process_with_queues(self):
        train, infer = self.json_of('list')['processes']
        self.assertEqual((train['pid'], train['comm'], train['class'], train['queues']),
                         (1001, 'train', 'offline', 10))
        self.assertEqual((infer['pid'], infer['class'], infer['queues']), (1002, 'online', 2))
        self.assertEqual(len(train['gpus']), 1)
        self.assertEqual(train['state'], 'running')
        self.assertGreater(train['vram_bytes'], 0)

    def test_by_class(self):
        def pids(name):
            return [p['pid'] for p in self.json_of('list', '--class', name)['processes']]
        self.assertEqual(pids('online'), [1002])
        self.assertEqual(pids('offline'), [1001])

    def test_text(self):
        out = self.ok(model('list')).splitlines()
        self.assertEqual(len(out), 3)
        self.assertEqual(out[1].split()[:4], ['1001', 'train', 'offline', '10'])

    def test_no_such_class(self):
        self.refused(USAGE, 'list', '--class', 'urgent', says='urgent')


class Queues(Case):
    def test_all_fields_of_ten_queues(self):
        answer = self.json_of('queues', 1001)
        self.assertEqual(answer['pid'], 1001)
        self.assertGreater(answer['time_ns'], 0)
        self.assertEqual(len(answer['queues']), 10)
        for queue in answer['queues']:
            self.assertLessEqual(QUEUE_KEYS, set(queue))
            self.assertEqual(queue['pid'], 1001)
            self.assertEqual(queue['type'], 'compute-aql')
            self.assertIn(queue['state'], ('pending', 'running'))
        self.assertEqual(answer['by_type'], {'compute-aql': 10})
        self.assertEqual(answer['by_gpu'], {str(answer['queues'][0]['gpu_id']): 10})

    def test_a_process_without_queues_is_an_empty_list(self):
        self.assertEqual(self.json_of('queues', 1003)['queues'], [])
        self.assertIn('0 queues', self.ok(model('queues', 1003)))

    def test_text_has_table_distribution_and_array(self):
        out = self.ok(model('queues', 1001))
        self.assertIn('process 1001: 10 queues', out)
        self.assertIn('by type compute-aql: 10', out)
        self.assertIn('queue_ids[10] = { 9, 8, 7', out)

    def test_ids_only(self):
        self.assertEqual(self.ok(model('queues', 1002, '--ids')),
                         'static const unsigned int queue_ids[2] = { 1, 0 };\n')

    def test_all_attaches_to_nobody_yet_knows_priorities(self):
        queues = self.json_of('queues', '--all')['queues']
        self.assertEqual([q['pid'] for q in queues], [1001] * 10 + [1002] * 2)
        self.assertEqual({q['priority'] for q in queues if q['pid'] == 1002}, {11})
        for q in queues:
            self.assertNotIn('exceptions', q, 'only an attachment tells those')
            self.assertNotIn('ring_base', q, 'which ring is whose cannot be told')

    def test_all_can_be_narrowed(self):
        def pids(*args):
            return {q['pid'] for q in self.json_of('queues', '--all', *args)['queues']}
        self.assertEqual(pids('--min-priority', 11), {1002})
        self.assertEqual(pids('--max-priority', 6), {1001})
        self.assertEqual(pids('--class', 'online'), {1002})
        self.assertEqual(pids('--min-priority', 1, '--max-priority', 10), set())

    def test_old_runtime_is_explained(self):
        self.refused(4, 'queues', 1001, preset='mi308x,runtime=old', says='too old')

    def test_old_driver_is_explained(self):
        self.refused(4, 'queues', 1001, preset='mi308x,kfd_minor=11', says='KFD 1.11, need 1.13')

    def test_a_snapshot_cannot_be_narrowed(self):
        self.refused(USAGE, 'queues', 1001, '--class', 'online', says='--all')
        self.refused(USAGE, 'queues', '--all', '--min-priority', 16, says='0 to 15')
        self.refused(USAGE, 'queues', '--all', 1001)


class Monitor(Case):
    def test_samples_and_statistics(self):
        answer = self.json_of('monitor', 1001, '--duration', 2, '--interval', 0.5)
        self.assertEqual(len(answer['samples']), 5)
        times = [s['time_ns'] for s in answer['samples']]
        self.assertEqual(times, sorted(times))
        self.assertGreaterEqual(times[-1] - times[0], 1.9e9)
        stats = answer['stats']
        self.assertEqual({k: stats[k] for k in ('samples', 'min', 'max', 'avg', 'stable')},
                         {'samples': 5, 'min': 10, 'max': 10, 'avg': 10, 'stable': True})
        self.assertEqual(stats['id_frequency'], {str(i): 5 for i in range(10)})
        self.assertEqual(stats['by_type'], {'compute-aql': 50})
        self.assertEqual(answer['ids'], list(range(10)))
        self.assertIn('same 10 queues', answer['advice'])

    def test_text_ends_with_the_array(self):
        lines = self.ok(model('monitor', 1001, '--duration', 1)).splitlines()
        self.assertEqual(lines[-1], 'static const unsigned int queue_ids[10] = '
                                    '{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };')
        self.assertTrue(any(line.startswith('verdict: ') for line in lines))

    def test_no_queues_at_all(self):
        answer = self.json_of('monitor', 1003, '--duration', 1)
        self.assertEqual((answer['stats']['max'], answer['ids']), (0, []))
        self.assertIn('no queue', answer['advice'])

    def test_bad_times(self):
        for value in ('0', '-1', 'x', '', '1e3', '99999999999', 'nan'):
            self.refused(USAGE, 'monitor', 1001, f'--duration={value}', says='--duration')
        self.refused(USAGE, 'monitor', 1001, '--interval=0.0000000001', says='--interval')
        self.refused(USAGE, 'monitor', 1001, '--duration=9999999', '--interval=0.000001',
                     says='samples')


class Hqd(Case):
    def test_slots_are_per_gpu_and_summed(self):
        answer = self.json_of('hqd')
        first = answer['gpus'][0]
        self.assertEqual((first['total'], first['active'], first['free']), (24, 12, 12))
        self.assertEqual(first['offline_used'], 10)
        self.assertEqual((answer['total']['total'], answer['total']['free']), (192, 180))
        self.assertEqual(first['online_reserved'], 0, 'nobody is there to reserve')

    def test_text(self):
        self.assertEqual(self.ok(model('hqd')).splitlines()[-1].split()[:4],
                         ['all', '12', '192', '12'])


class Absent(Case):
    def test_a_device_asked_for_by_name_must_be_there(self):
        for device in ('nvrm', 'kfd'):
            for command in (['doctor'], ['list'], ['queues', '1001'], ['hold', '1']):
                result = run('--json', '--device', device, *command)
                self.assertEqual(result.status, ABSENT, result)
                self.assertEqual(json.loads(result.out)['error']['code'], ABSENT)


if __name__ == '__main__':
    unittest.main()
