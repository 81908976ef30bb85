# SPDX-License-Identifier: MIT
"""HQDResourceMonitor, SmartQueueScheduler and GPreemptScheduler on the software device."""
import threading
import unittest

from case import EMPTY, INFER, TRAIN, WAIT_S, Case, gpreempt, jobs, states

IDLE = 'model:mi308x,occupancy=0'  # the same processes, with nothing to do
SLOTS = 24  # of the chip, on each GPU


class Slots(Case):
    def monitor(self, device, *args, **kwargs):
        monitor = gpreempt.HQDResourceMonitor(device, *args, **kwargs)
        self.addCleanup(monitor.close)
        return monitor

    def test_status_of_each_gpu_and_of_all(self):
        monitor = self.monitor(self.device())
        first, *others = monitor.status()
        self.assertEqual((first.total, first.active, first.free, first.offline_used),
                         (SLOTS, 12, 12, 10))
        self.assertEqual({(g.total, g.free) for g in others}, {(SLOTS, SLOTS)})
        total = monitor.total()
        self.assertEqual((total.gpu_id, total.total, total.free), (None, 8 * SLOTS, 8 * SLOTS - 12))

    def test_the_alarm_is_raised_once_each_time(self):
        device, alarms = self.device(IDLE), []
        monitor = self.monitor(device, 12, alarms.append)
        self.assertEqual([s.free for s in monitor.check()], [12])
        monitor.check()
        self.assertEqual([(s.gpu_id, s.free) for s in alarms], [(device.gpus()[0].gpu_id, 12)])
        with device.hold(TRAIN):  # ten more are free
            self.assertEqual(monitor.check(), [])
        monitor.check()
        self.assertEqual((len(alarms), monitor.alarms), (2, 2))

    def test_no_alarm_while_there_is_room(self):
        alarms = []
        monitor = self.monitor(self.device(), 11, alarms.append)
        self.assertEqual((monitor.check(), alarms), ([], []))

    def test_cleaning_up_frees_slots(self):
        monitor = self.monitor(self.device(IDLE))
        self.assertEqual(monitor.clean_up(), [(TRAIN, q) for q in range(10)])
        self.assertEqual(monitor.status()[0].free, SLOTS - 2)
        self.assertEqual(len(monitor.held()), 10)
        self.assertEqual(monitor.clean_up(), [], 'nothing more to be had')
        monitor.restore()
        self.assertEqual((monitor.held(), monitor.status()[0].free), ([], SLOTS - 12))

    def test_only_of_the_gpu_that_was_named(self):
        device = self.device(IDLE)
        monitor = self.monitor(device)
        self.assertEqual(monitor.clean_up(device.gpus()[1].gpu_id), [])
        self.assertEqual(len(monitor.clean_up(device.gpus()[0].gpu_id)), 10)

    def test_who_works_is_left_alone(self):
        device = self.device()
        monitor = self.monitor(device, SLOTS, auto_clean_up=True)
        monitor.check()
        self.assertEqual((monitor.cleaned, monitor.held()), (0, []))
        self.assertNotIn('suspended', states(device))

    def test_work_brings_a_queue_back_and_is_done(self):
        device = self.device(IDLE)
        model, monitor = gpreempt.Model(device), self.monitor(device)
        monitor.clean_up()
        model.submit(TRAIN, 3, 80, 0.001)
        device.wait(0.1)
        self.assertEqual(model.queue(TRAIN, 3).completed, 0, 'it is off the GPU')
        self.assertEqual(monitor.wake(), [TRAIN])
        device.wait(0.1)
        self.assertEqual((model.queue(TRAIN, 3).completed, monitor.held()), (1, []))

    def test_not_before_it_has_been_idle_for_a_while(self):
        device = self.device(IDLE)
        monitor = self.monitor(device, idle_for=1.0)
        self.assertEqual(monitor.clean_up(), [])
        device.wait(0.5)
        self.assertEqual(monitor.clean_up(), [])
        device.wait(0.6)
        self.assertEqual(len(monitor.clean_up()), 10)

    def test_by_itself(self):
        device, low = self.device(IDLE), threading.Event()
        model = gpreempt.Model(device)
        monitor = self.monitor(device, 12, lambda status: low.set(), auto_clean_up=True)
        monitor.start(0.01)
        self.fails(gpreempt.UsageError, monitor.start)
        self.assertTrue(low.wait(WAIT_S))
        self.wait_for(lambda: monitor.cleaned == 10, 'the clean-up')
        model.submit(TRAIN, 0, 80, 0.001)
        self.wait_for(lambda: monitor.woken, 'the queue to come back')
        monitor.stop()
        self.assertEqual((monitor.held(), monitor.errors), ([], []))
        monitor.stop()

    def test_an_alarm_that_raises_ends_no_watch_and_holds_nothing(self):
        device = self.device(IDLE)

        def raises(_status):
            raise ValueError('the alarm itself')
        monitor = self.monitor(device, 12, raises, auto_clean_up=True)
        monitor.start(0.01)
        self.wait_for(lambda: monitor.errors, 'the error')
        self.wait_for(lambda: not monitor.held(), 'what was held')
        self.assertIsInstance(monitor.errors[0], ValueError)
        monitor.stop()

    def test_an_exception_gives_everything_back(self):
        device = self.device(IDLE)
        with self.assertRaises(RuntimeError):
            with gpreempt.HQDResourceMonitor(device) as monitor:
                monitor.clean_up()
                raise RuntimeError('while held')
        self.assertEqual(monitor.status()[0].free, SLOTS - 12)

    def test_nonsense(self):
        device = self.device()
        self.fails(gpreempt.UsageError, gpreempt.HQDResourceMonitor, device, -1)
        self.fails(gpreempt.UsageError, gpreempt.HQDResourceMonitor, device, idle_for=-1)
        self.assertRaises(TypeError, gpreempt.HQDResourceMonitor, device, '4')
        self.fails(gpreempt.UsageError, self.monitor(device).start, 0)


class Smart(Case):
    def setUp(self):
        self.gpu = self.device()
        self.model = gpreempt.Model(self.gpu)
        self.smart = gpreempt.SmartQueueScheduler(self.gpu)
        self.addCleanup(self.smart.close)

    def work(self):
        """A request of 2 ms that needs the whole GPU; how long it took."""
        began = self.gpu.now_ns()
        index = self.model.submit(INFER, 0, 80, 0.002)
        while self.model.queue(INFER, 0).completed <= index:
            self.gpu.wait(0.0001)
        return self.gpu.now_ns() - began

    def is_off(self):
        return all(self.model.queue(TRAIN, q).suspended for q in range(10))

    def test_a_request_has_the_gpu(self):
        self.smart.register_offline_queue(TRAIN)
        seen = []
        took = self.smart.handle_online_request(
            lambda: seen.append((self.is_off(), self.work())) or seen[0][1])
        self.assertTrue(seen[0][0], 'training was off the GPU')
        self.assertEqual(took, seen[0][1], 'what the work returns is what is returned')
        self.assertFalse(self.is_off(), 'and is back')

    def test_statistics(self):
        self.smart.register_offline_queue(TRAIN)
        self.assertIsNone(self.smart.statistics().suspend_us)
        for _ in range(20):  # frequent
            self.smart.handle_online_request(self.work)
            self.gpu.wait(0.005)
        s = self.smart.statistics()
        self.assertEqual((s.requests, s.preemptions, s.failures, s.gone), (20, 20, 0, []))
        self.assertEqual((s.offline_queues, s.modelled), (10, True))
        self.assertEqual((s.suspend_us.count, s.resume_us.count, s.request_us.count),
                         (20, 20, 20))
        self.assertGreaterEqual(s.request_us.p50, 2000)
        self.assertLess(s.suspend_us.p99, 5000, 'in virtual time')

    def test_one_queue(self):
        self.smart.register_offline_queue(TRAIN, 4)
        self.smart.register_offline_queue(TRAIN, 5)
        with self.smart.online_request():
            off = [q for q in range(10) if self.model.queue(TRAIN, q).suspended]
        self.assertEqual(off, [4, 5])
        self.assertEqual(self.smart.statistics().offline_queues, 2)
        self.smart.unregister_offline_queue(TRAIN, 4)
        self.smart.unregister_offline_queue(TRAIN, 5)
        with self.smart.online_request():
            self.assertFalse(any(self.model.queue(TRAIN, q).suspended for q in range(10)))

    def test_another_gpu_is_left_alone(self):
        self.smart.register_offline_queue(TRAIN)
        here, there = (g.gpu_id for g in self.gpu.gpus()[:2])
        self.assertFalse(self.smart.handle_online_request(self.is_off, gpu_id=there))
        self.assertTrue(self.smart.handle_online_request(self.is_off, gpu_id=here))
        self.assertEqual(self.smart.statistics().unhindered, 1)

    def test_resumes_after_an_exception(self):
        self.smart.register_offline_queue(TRAIN)
        for error in (RuntimeError, KeyboardInterrupt):
            with self.assertRaises(error):
                with self.smart.online_request():
                    raise error('while held')
            self.assertFalse(self.is_off())
        self.assertEqual(self.smart.statistics().requests, 2)

    def test_requests_within_requests(self):
        self.smart.register_offline_queue(TRAIN)
        with self.smart.online_request():
            with self.smart.online_request():
                self.assertTrue(self.is_off())
            self.assertTrue(self.is_off(), 'the outer one still needs it')
        self.assertFalse(self.is_off())
        self.assertEqual(self.smart.statistics().preemptions, 1)

    def test_requests_of_several_threads(self):
        self.smart.register_offline_queue(TRAIN)
        seen = []
        threads = [threading.Thread(target=lambda: [
            self.smart.handle_online_request(lambda: seen.append(self.is_off()))
            for _ in range(20)]) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(seen, [True] * 80)
        self.assertFalse(self.is_off())
        self.assertEqual(self.smart.statistics().failures, 0)

    def test_who_cannot_be_held_hinders_nobody(self):
        self.smart.register_offline_queue(TRAIN)
        self.smart.register_offline_queue(EMPTY)
        job = self.smart._jobs[TRAIN].process
        job.suspend([0])  # somebody in this program was there first
        self.assertGreater(self.smart.handle_online_request(self.work), 0)
        self.assertEqual(self.smart.statistics().failures, 1)
        job.resume()
        self.assertTrue(self.smart.handle_online_request(self.is_off))

    def test_nothing_registered(self):
        self.assertEqual(self.smart.handle_online_request(lambda: 7), 7)
        self.assertEqual(self.smart.statistics().unhindered, 1)

    def test_nonsense(self):
        self.fails(gpreempt.AbsentError, self.smart.register_offline_queue, 999)
        self.fails(gpreempt.AbsentError, self.smart.register_offline_queue, TRAIN, 77)
        self.fails(gpreempt.UsageError, self.smart.register_offline_queue, 0)
        self.assertRaises(TypeError, self.smart.register_offline_queue, TRAIN, '0')
        self.smart.unregister_offline_queue(999)
        with self.gpu.hold(TRAIN):
            pass  # nobody was left attached to it

    def test_closing_resumes(self):
        self.smart.register_offline_queue(TRAIN)
        with self.smart.online_request():
            self.smart.close()
            self.assertFalse(self.is_off())


class Automatic(Case):
    def test_the_whole_story(self):
        """Held for the online job, let go, counted; nothing lost."""
        scheduler = self.scheduler('model', 'priority')
        train = self.job(scheduler, '--offline', '--queues', 2, '--priority', 0, '--name', 'train')
        scheduler.register_offline(train.pid)
        with scheduler.events(WAIT_S) as events:
            infer = self.job(scheduler, '--online', '--priority', 11, '--name', 'infer')
            scheduler.register_online(infer.pid)
            held = next(e for e in events if e.kind == 'held' and e.pid == train.pid)
            self.assertEqual((held.other_pid, held.comm), (infer.pid, 'train'))
            let_go = next(e for e in events if e.kind == 'let-go' and e.pid == train.pid)
            self.assertGreater(let_go.duration_ns, 0)
        scheduler.hint(infer.pid, ahead=0.001, lasts=0.002)
        self.fails(gpreempt.RefusedError, scheduler.hint, train.pid)
        # The first request may have been there before anything could be held for it.
        self.wait_for(lambda: scheduler.statistics().detection.count > 0, 'a request seen coming')
        s = scheduler.statistics()
        self.assertGreater(s.preemptions, 0)
        self.assertEqual((s.online, s.offline, s.trips, s.modelled), (1, 1, 0, True))
        self.assertGreater(scheduler.job(train.pid).preempted, 0)
        for job in (infer, train):
            report = jobs.end_job(job)
            self.assertEqual((report['complete'], report['unfinished'], report['in_order']),
                             (report['kernels'], 0, True))
        self.wait_for(lambda: not scheduler.statistics().jobs, 'the jobs to be gone')
        self.assertIsNone(scheduler.job(train.pid))

    def test_policies(self):
        scheduler = self.scheduler('model', 'none')
        self.assertEqual(scheduler.policy().name, 'none')
        scheduler.set_policy('share')
        self.assertEqual(scheduler.policy().name, 'share')
        self.assertIn('deadline', scheduler.policy().names)
        self.fails(gpreempt.UsageError, scheduler.set_policy, 'nonsense')

    def test_nonsense(self):
        self.fails(gpreempt.UsageError, gpreempt.GPreemptScheduler.start, 'model', 'nonsense')
        self.fails(gpreempt.FailedError, gpreempt.GPreemptScheduler.start, 'nonsense')
        self.fails(gpreempt.FailedError, gpreempt.GPreemptScheduler.start, 'model',
                   config='[nonsense]\n')
        self.fails(gpreempt.NoDaemon, gpreempt.GPreemptScheduler, '/nowhere/control.sock')


if __name__ == '__main__':
    unittest.main()
