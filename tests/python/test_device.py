# SPDX-License-Identifier: MIT
"""Looking and preempting on the software device, and every wrong way to ask for it."""
import errno
import os
import pickle
import signal
import subprocess
import sys
import threading
import unittest

from case import (EMPTY, INFER, ROOT, TRAIN, WAIT_S, Case, children_of, gpreempt, is_gone, states)

HOLDER = '''
import sys
import gpreempt
with gpreempt.hold(1001, device='model') as hold:
    print(len(hold.process.held()), flush=True)
    sys.stdin.readline()
'''


class Looking(Case):
    def test_the_machine(self):
        device = self.device()
        self.assertTrue(device.modelled)
        self.assertEqual(device.backend, 'model')
        info = device.info()
        self.assertEqual((info.backend, info.emulated), ('model', False))
        gpus = device.gpus()
        self.assertEqual([g.index for g in gpus], list(range(8)))
        self.assertEqual((gpus[0].gfx, gpus[0].xcc, gpus[0].scheduler), ('gfx942', 4, 'hws'))
        self.assertIsNone(gpus[0].uuid, 'what is not told is not empty')
        levels = {level.level: level for level in device.levels()}
        self.assertTrue(levels['K2'].available)
        self.assertFalse(levels['K3'].available)
        self.assertIn('not loaded', levels['K3'].reason)

    def test_presets(self):
        self.assertEqual(len(self.device('model:mi308x,gpus=2').gpus()), 2)
        self.assertTrue(self.device('model:mi308x,ext=1').levels()[0].available)

    def test_processes_and_queues(self):
        device = self.device()
        found = {p.pid: p for p in device.processes()}
        self.assertEqual((found[TRAIN].job_class, found[TRAIN].queues), ('offline', 10))
        self.assertEqual((found[INFER].job_class, found[INFER].queues), ('online', 2))
        self.assertEqual(found[EMPTY].gpus, [])
        self.assertEqual(device.pids(), [TRAIN, INFER])
        self.assertEqual(len(device.queues()), 12)
        self.assertEqual({q.pid for q in device.queues(job_class='online')}, {INFER})
        self.assertEqual({q.pid for q in device.queues(min_priority=11)}, {INFER})
        self.assertEqual({q.pid for q in device.queues(max_priority=6)}, {TRAIN})

    def test_a_snapshot(self):
        device = self.device()
        snapshot = device.snapshot(TRAIN)
        self.assertEqual(snapshot.ids(), list(range(10)))
        self.assertEqual(snapshot.by_type(), {'compute-aql': 10})
        self.assertEqual(list(snapshot.by_gpu().values()), [10])
        self.assertEqual(snapshot.queues[0].priority, 0)
        self.assertGreater(snapshot.queues[0].cwsr_bytes, 0)
        self.assertIsNone(snapshot.queues[0].channels)
        self.assertEqual(gpreempt.snapshot(TRAIN, 'model').ids(), list(range(10)))
        self.assertEqual(device.snapshot(EMPTY).queues, [])

    def test_the_clock_is_the_models(self):
        device = self.device()
        before = device.now_ns()
        device.wait(5)
        self.assertGreaterEqual(device.now_ns() - before, 5 * 10**9)

    def test_a_monitor(self):
        device = self.device()
        with device.attach(TRAIN, look_only=True) as process, process.monitor() as monitor:
            self.fails(gpreempt.UsageError, monitor.statistics)
            self.assertEqual(len(monitor.sample().queues), 10)
            monitor.sample()
            stats = monitor.statistics()
        self.assertEqual((stats.samples, stats.min, stats.max, stats.avg), (2, 10, 10, 10.0))
        self.assertTrue(stats.stable)
        self.assertEqual(stats.ids, dict.fromkeys(range(10), 2))
        self.assertEqual(stats.types, {'compute-aql': 20})
        self.assertIn('same 10 queues', stats.advice)
        self.fails(gpreempt.UsageError, monitor.sample)

    def test_watching(self):
        device = self.device()
        began, seen = device.now_ns(), []
        with device.attach(TRAIN, look_only=True) as process:
            stats = process.watch(1.0, 0.25, seen.append)
        self.assertEqual((stats.samples, len(seen)), (5, 5))
        self.assertGreaterEqual(device.now_ns() - began, 10**9)
        self.assertEqual(device.watch(EMPTY, 0, 1).max, 0)


class Holding(Case):
    def test_off_and_back(self):
        device = self.device()
        with device.hold(TRAIN) as hold:
            self.assertEqual([q.state for q in hold.process.snapshot().queues],
                             ['suspended'] * 10)
            self.assertEqual(hold.suspended.queues, 10)
            self.assertGreater(hold.suspended.call_us, 0)
            self.assertIsNone(hold.resumed)
        self.assertEqual(hold.resumed.queues, 10)
        self.assertNotIn('suspended', states(device))

    def test_some_queues(self):
        device = self.device()
        with device.attach(TRAIN) as process:
            with process.hold([3, 5]):
                self.assertEqual(process.held(), [3, 5])
                self.assertEqual(process.snapshot().by_type(), {'compute-aql': 10})
            self.assertEqual(process.held(), [])
            with process.hold():  # attached once, held often
                self.assertEqual(len(process.held()), 10)

    def test_nothing_is_lost(self):
        device = self.device('model:mi308x,occupancy=0,log=1')
        model = gpreempt.Model(device)
        for _ in range(5):
            model.submit(TRAIN, 0, 80, 0.01)
        with device.attach(TRAIN) as process:
            for _ in range(10):
                device.wait(0.003)
                with process.hold():
                    before = model.queue(TRAIN, 0).completed
                    device.wait(1)
                    self.assertEqual(model.queue(TRAIN, 0).completed, before)
        device.wait(1)
        packets = model.packets(TRAIN, 0)
        self.assertEqual([p.index for p in packets], list(range(5)))
        self.assertTrue(all(p.done_ns and p.finished == p.workgroups == 80 for p in packets))
        self.assertEqual({p.executed_ns for p in packets}, {80 * 10**7})
        self.assertGreater(sum(p.saves for p in packets), 0)
        self.assertGreater(model.gpu().cycles, 0)

    def resumes_after(self, error):
        device = self.device()
        with self.assertRaises(error):
            with device.hold(TRAIN) as hold:
                raise error('while held')
        self.assertTrue(hold.resumed)
        self.assertNotIn('suspended', states(device))
        with device.hold(TRAIN):
            pass  # as ever

    def test_resumes_after_an_exception(self):
        self.resumes_after(RuntimeError)

    def test_resumes_after_an_exit(self):
        self.resumes_after(SystemExit)

    def test_resumes_after_a_real_ctrl_c(self):
        device = self.device()
        with self.assertRaises(KeyboardInterrupt):
            with device.hold(TRAIN) as hold:
                os.kill(os.getpid(), signal.SIGINT)
                threading.Event().wait(WAIT_S)
        self.assertTrue(hold.resumed)
        self.assertNotIn('suspended', states(device))

    def test_a_forgotten_hold_resumes(self):
        device = self.device()
        device.hold(TRAIN).__enter__()
        self.assertNotIn('suspended', states(device))

    def test_closing_the_device_resumes(self):
        device = gpreempt.open('model')
        hold = device.hold(TRAIN)
        with hold:
            process = hold.process
            device.close()
        self.fails(gpreempt.UsageError, process.snapshot)
        device.close()  # twice is once

    def test_resuming_early(self):
        device = self.device()
        with device.attach(TRAIN) as process, process.hold() as hold:
            hold.resume()
            self.assertEqual(process.held(), [])
            hold.resume()

    def test_it_ends_by_itself(self):
        device = self.device()
        with device.attach(TRAIN) as process, process.hold(longest=0.5):
            def is_over():
                device.wait(0.1)
                return process.held() == []
            self.wait_for(is_over, 'the end of the hold')
            process.check()

    def test_twice_is_refused(self):
        for name in ('model', 'model:mi308x,ext=1'):
            self.twice_is_refused(self.device(name))

    def twice_is_refused(self, device):
        with device.hold(TRAIN) as hold:
            e = self.fails(gpreempt.RefusedError, device.hold(TRAIN).__enter__)
            self.assertEqual((e.errno, e.code), (errno.EBUSY, 4))
            self.assertTrue(e.hint)
            e = self.fails(gpreempt.UsageError, hold.process.hold().__enter__)
            self.assertEqual(e.errno, errno.EALREADY)
            self.fails(gpreempt.UsageError, hold.__enter__)
            self.assertEqual(len(hold.process.held()), 10, 'the first one still holds')
        self.assertNotIn('suspended', states(device))

    def test_several_processes(self):
        device = self.device()
        with device.attach(TRAIN) as a, device.attach(INFER) as b:
            gpreempt.batch_unmap([a, b])
            self.assertEqual((len(a.held()), len(b.held())), (10, 2))
            gpreempt.fast_remap([a, b])
            self.assertEqual((a.held(), b.held()), ([], []))
            with device.attach(EMPTY) as c, self.device() as other:
                with other.attach(TRAIN) as d:
                    self.fails(gpreempt.UsageError, gpreempt.batch_unmap, [c, d])
        gpreempt.batch_unmap([])

    def test_by_other_levels(self):
        device = self.device('model:mi308x,ext=1')
        for level in (None, 'K2', 'K1'):
            with device.hold(TRAIN, level=level) as hold:
                self.assertEqual(len(hold.process.held()), 10, level)

    def test_threads_take_turns(self):
        device = self.device()
        errors = []

        def look():
            try:
                for _ in range(50):
                    device.queues()
                    device.snapshot(INFER)
            except gpreempt.Error as e:
                errors.append(e)
        threads = [threading.Thread(target=look) for _ in range(4)]
        for t in threads:
            t.start()
        with device.attach(TRAIN) as process:
            for _ in range(50):
                with process.hold():
                    pass
        for t in threads:
            t.join()
        # Two at once may want the same process; nothing else may go wrong.
        self.assertEqual([e for e in errors if e.errno != errno.EBUSY], [])


class Ends(Case):
    """Of the process that holds."""

    def holder(self):
        holder = subprocess.Popen([sys.executable, '-c', HOLDER], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, 'python')))
        self.addCleanup(holder.stdin.close)
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        self.assertEqual(holder.stdout.readline(), '10\n')
        guards = children_of(holder.pid)
        self.assertEqual(len(guards), 1, 'a guard stands beside it')
        return holder, guards[0]

    def test_killed_and_its_guard_sees_to_the_rest(self):
        holder, guard = self.holder()
        holder.kill()
        self.assertEqual(holder.wait(WAIT_S), -signal.SIGKILL)
        self.wait_for(lambda: is_gone(guard), 'the guard to end')

    def test_stopped_is_killed_by_its_guard(self):
        holder, guard = self.holder()
        holder.send_signal(signal.SIGSTOP)
        self.assertEqual(holder.wait(WAIT_S), -signal.SIGKILL)
        self.wait_for(lambda: is_gone(guard), 'the guard to end')

    def test_ended_in_order_it_leaves_no_guard(self):
        holder, guard = self.holder()
        holder.stdin.write('\n')
        holder.stdin.flush()
        self.assertEqual(holder.wait(WAIT_S), 0)
        self.wait_for(lambda: is_gone(guard), 'the guard to end')

    def test_a_fork_holds_nothing_and_ends_nothing(self):
        device = self.device()
        with device.attach(TRAIN) as process, process.hold():
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    process.snapshot()
                except gpreempt.UsageError:
                    status = 0
                    device.close()  # which is the parent's
                finally:
                    os._exit(status)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(len(process.held()), 10)


class InTheDriver(Case):
    """Its scheduler; a model only keeps what is set."""

    def setUp(self):
        self.gpu = self.device('model:mi308x,ext=1,gpus=2')
        self.kernel = gpreempt.KernelScheduler(self.gpu)

    def test_on_and_off(self):
        self.assertFalse(self.kernel.is_on())
        first, second = self.kernel.gpus()
        self.assertEqual((first.on, first.slots, first.policy, first.looks),
                         (False, 24, None, None))
        self.kernel.on(first.gpu_id, policy='share', interval_us=700, turn_ms=9, reserve=(10, 80))
        first, second = self.kernel.gpus()
        self.assertEqual((first.on, first.policy, first.interval_us, first.turn_ms),
                         (True, 'share', 700, 9))
        self.assertEqual((first.online_permille, first.offline_permille, second.on),
                         (100, 800, False))
        self.assertTrue(self.kernel.is_on())
        self.kernel.rearm(first.gpu_id)
        self.kernel.off()
        self.assertFalse(self.kernel.is_on())

    def test_classes_and_hints(self):
        self.kernel.on()
        self.kernel.set_class(INFER, 'online', critical=True)
        self.kernel.set_class(TRAIN, 'offline')
        self.kernel.hint(INFER, ahead=0.001, lasts=0.002)
        self.gpu.set_queue_policy(TRAIN, preemptible=True)
        self.gpu.set_hqd_reservation(None, 10, 80)
        self.assertEqual({g.online_permille for g in self.kernel.gpus()}, {100})

    def test_nonsense(self):
        for kwargs in ({'policy': 'nonsense'}, {'interval_us': 99}, {'policy': 'x\0'},
                       {'interval_us': 10**6 + 1}, {'turn_ms': -1}, {'reserve': (101, 0)}):
            self.fails(gpreempt.UsageError, self.kernel.on, **kwargs)
        self.fails(gpreempt.AbsentError, self.kernel.on, 7)
        self.fails(gpreempt.AbsentError, self.kernel.set_class, 999, 'offline')
        self.fails(gpreempt.UsageError, self.kernel.set_class, TRAIN, 'fast')
        self.fails(gpreempt.UsageError, self.kernel.hint, INFER, ahead=1.1)
        self.assertFalse(self.kernel.is_on())


class Nonsense(Case):
    def test_devices(self):
        e = self.fails(gpreempt.UsageError, gpreempt.open, 'nonsense')
        self.assertEqual((e.code, e.errno), (2, errno.EINVAL))
        self.assertIn('model', e.hint)
        self.fails(gpreempt.UsageError, gpreempt.open, 'model:nonsense')
        self.fails(gpreempt.UsageError, gpreempt.open, 'model\0')
        for value in (None, 1, b'model'):
            self.assertRaises(TypeError, gpreempt.open, value)

    def test_a_machine_without_gpus(self):
        if os.path.exists('/dev/kfd') or os.path.exists('/dev/nvidiactl'):
            self.skipTest('this machine has a GPU')
        for device in ('auto', 'kfd', 'nvrm'):
            e = self.fails(gpreempt.AbsentError, gpreempt.open, device)
            self.assertEqual((e.code, e.errno), (3, errno.ENODEV))
        self.fails(gpreempt.AbsentError, gpreempt.hold(1).__enter__)

    def test_processes(self):
        device = self.device()
        e = self.fails(gpreempt.AbsentError, device.attach, 999)
        self.assertEqual((e.code, e.errno), (3, errno.ESRCH))
        for pid in (0, -1, 2**31, 2**63):
            self.fails(gpreempt.UsageError, device.attach, pid)
            self.fails(gpreempt.UsageError, device.hold, pid)
        for pid in ('1001', 1.5, None, True):
            self.assertRaises(TypeError, device.attach, pid)

    def test_queues(self):
        device = self.device()
        e = self.fails(gpreempt.AbsentError, device.hold(TRAIN, [77]).__enter__)
        self.assertEqual(e.code, 3)
        self.fails(gpreempt.UsageError, device.hold, TRAIN, [])
        self.fails(gpreempt.UsageError, device.hold, TRAIN, [-1])
        self.fails(gpreempt.UsageError, device.hold, TRAIN, [2**32])
        self.assertRaises(TypeError, device.hold, TRAIN, ['0'])
        self.fails(gpreempt.UsageError, device.queues, job_class='fast')
        self.fails(gpreempt.UsageError, device.queues, min_priority=16)
        with device.attach(TRAIN) as process:
            self.fails(gpreempt.AbsentError, process.is_active, 77)
            self.assertTrue(process.is_active(0))
        self.assertNotIn('suspended', states(device), 'and nothing is left held')

    def test_times_and_levels(self):
        device = self.device()
        for grace in (-1, 256):
            self.fails(gpreempt.UsageError, device.hold, TRAIN, grace_kclk=grace)
        for longest in (-1, float('nan'), float('inf')):
            self.fails(gpreempt.UsageError, device.hold, TRAIN, longest=longest)
        self.assertRaises(TypeError, device.hold, TRAIN, longest='1')
        self.fails(gpreempt.UsageError, device.hold, TRAIN, level='K9')
        self.fails(gpreempt.UsageError, device.wait, -1)
        with device.attach(TRAIN) as process:
            self.fails(gpreempt.UsageError, process.watch, 1, 0)
            self.fails(gpreempt.UsageError, process.watch, -1, 1)

    def test_looking_only(self):
        device = self.device()
        with device.attach(TRAIN, look_only=True) as process:
            self.fails(gpreempt.UsageError, process.suspend)
        self.fails(gpreempt.UsageError, process.snapshot)
        process.detach()

    def test_what_this_driver_cannot(self):
        device = self.device()
        for call, args in ((device.set_hqd_reservation, (1, 10, 80)), (device.hint, (INFER,)),
                           (device.set_queue_policy, (TRAIN,)), (device.stop_gpu, (1, 1)),
                           (gpreempt.KernelScheduler(device).on, ()),
                           (gpreempt.KernelScheduler(device).gpus, ())):
            e = self.fails(gpreempt.NotSupported, call, *args)
            self.assertEqual((e.code, e.errno), (4, errno.EOPNOTSUPP))
        self.fails(gpreempt.UsageError, device.set_hqd_reservation, 1, 101, 0)

    def test_release(self):
        device = self.device()
        self.assertEqual(device.release(), [])
        self.assertEqual(device.release([]), [])
        self.fails(gpreempt.AbsentError, device.release, [999])

    def test_errors_are_what_python_expects(self):
        device = self.device()
        e = self.fails(gpreempt.AbsentError, device.attach, 999)
        self.assertIsInstance(e, OSError)
        self.assertIsInstance(e, LookupError)
        again = pickle.loads(pickle.dumps(e))
        self.assertEqual((type(again), str(again), again.errno), (type(e), str(e), e.errno))
        self.assertTrue(issubclass(gpreempt.UsageError, ValueError))
        self.assertTrue(issubclass(gpreempt.RefusedError, PermissionError))

    def test_no_library(self):
        for value in ('/nowhere.so', '/dev/null'):
            done = subprocess.run(
                [sys.executable, '-c', 'import gpreempt\ntry:\n    gpreempt.open("model")\n'
                 'except gpreempt.NoLibrary as e:\n    print(e.code, e.hint)'],
                env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, 'python'),
                         GPREEMPT_LIBRARY=value), stdout=subprocess.PIPE, text=True, check=True)
            self.assertRegex(done.stdout, r'^3 .*GPREEMPT_LIBRARY')


if __name__ == '__main__':
    unittest.main()
