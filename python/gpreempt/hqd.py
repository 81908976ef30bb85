# SPDX-License-Identifier: MIT
"""Hardware queue slots (HQDs): how many are left, an alarm, and room made by idle queues."""
from __future__ import annotations

import threading
from typing import Callable, Dict, List, Optional, Tuple

from .device import Device, Process
from .errors import AbsentError, Error, RefusedError, check_number, usage
from .records import HqdStatus, sum_up

Alarm = Callable[[HqdStatus], object]
QueueName = Tuple[int, int]  # pid, queue id


class HQDResourceMonitor:
    """Watches the slots of every GPU of a device.

    low_water: free slots at or below which a GPU is short of them. on_low is called with its
    status when that begins, and not again before there were more than that. With auto_clean_up
    idle offline queues are taken off the GPU then.

    A queue that was taken off is held, so its owner may write to it and nothing is lost, but it
    runs again only when check(), which start() calls in a thread of its own, has seen the work.
    What is held is given back by restore(), by close() and by the end of the process.
    """

    def __init__(self, device: Device, low_water: int = 4, on_low: Optional[Alarm] = None, *,
                 auto_clean_up: bool = False, idle_for: float = 0.0) -> None:
        self.device = device
        self.low_water = check_number('low_water', low_water, 0, 2**31)
        self.on_low = on_low
        self.auto_clean_up = auto_clean_up
        if idle_for < 0:
            raise usage(f'idle_for is 0 or more seconds, not {idle_for}')
        self.idle_for = idle_for
        self.alarms = 0
        self.cleaned = 0  # queues taken off, in all
        self.woken = 0  # processes that got work, and their queues back
        self.errors: List[Exception] = []  # the last few, of a thread that nobody listens to
        self._low: Dict[int, bool] = {}
        self._idle: Dict[QueueName, Tuple[int, int]] = {}  # gpu id, since when
        self._held: Dict[int, Process] = {}
        self._lock = threading.RLock()
        self._thread: Optional[threading.Thread] = None
        self._stop = threading.Event()

    # ---- looking ----

    def status(self) -> List[HqdStatus]:
        """Of each GPU."""
        return self.device.hqd_status()

    def total(self) -> HqdStatus:
        """Of all GPUs together."""
        return sum_up(self.status())

    def is_low(self, status: HqdStatus) -> bool:
        return status.free is not None and status.free <= self.low_water

    def held(self) -> List[QueueName]:
        """What was taken off and is not back."""
        with self._lock:
            return [(pid, q) for pid, p in sorted(self._held.items()) for q in p.held()]

    # ---- acting ----

    def check(self) -> List[HqdStatus]:
        """One look: queues with work come back, alarms are raised. The GPUs that are short."""
        with self._lock:
            self.wake()
            self._note_idle()
            low = [s for s in self.status() if self.is_low(s)]
            fresh = [s for s in low if not self._low.get(s.gpu_id or 0)]
            self._low = {s.gpu_id or 0: True for s in low}
            self.alarms += len(fresh)
            if self.auto_clean_up:
                for s in low:
                    self.clean_up(s.gpu_id)
        for s in fresh:
            if self.on_low:
                self.on_low(s)
        return low

    def clean_up(self, gpu_id: Optional[int] = None) -> List[QueueName]:
        """Takes idle offline queues (of one GPU) off it: their slots are free. Which they were.

        What may not be touched, or ends meanwhile, is left alone.
        """
        with self._lock:
            self._note_idle()
            now = self.device.now_ns()
            idle: Dict[int, List[int]] = {}
            for (pid, queue), (gpu, since) in self._idle.items():
                if gpu_id in (None, gpu) and now - since >= self.idle_for * 1e9:
                    idle.setdefault(pid, []).append(queue)
            done: List[QueueName] = []
            for pid, queues in idle.items():
                if pid not in self._held and self._take(pid, queues):
                    done += [(pid, q) for q in self._held[pid].held()]
            self.cleaned += len(done)
            return done

    def wake(self) -> List[int]:
        """Gives processes back what was taken, where it has got work. Their pids."""
        with self._lock:
            woken = [pid for pid, p in self._held.items() if self._has_work(p)]
            for pid in woken:
                self._held.pop(pid).detach()
            self.woken += len(woken)
            return woken

    def restore(self) -> None:
        """Gives everything back."""
        with self._lock:
            while self._held:
                self._held.popitem()[1].detach()

    # ---- by itself ----

    def start(self, interval: float = 0.05) -> None:
        """Calls check() again and again in a thread, until stop()."""
        if not interval > 0:
            raise usage(f'an interval is more than 0 seconds, not {interval}')
        if self._thread:
            raise usage('the monitor is running already', 'stop it first')
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, args=(interval,), daemon=True,
                                        name='gpreempt-hqd')
        self._thread.start()

    def stop(self) -> None:
        """The thread ends; what is held comes back."""
        thread, self._thread = self._thread, None
        if thread:
            self._stop.set()
            thread.join()
        self.restore()

    close = stop

    def __enter__(self) -> 'HQDResourceMonitor':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- inside ----

    def _run(self, interval: float) -> None:
        while not self._stop.wait(interval):
            try:
                self.check()
            except Exception as e:  # also of on_low, which is not ours
                self.errors = self.errors[-9:] + [e]
                self.restore()  # who cannot look must not hold

    def _note_idle(self) -> None:
        now = self.device.now_ns()
        seen: Dict[QueueName, Tuple[int, int]] = {}
        for q in self.device.idle_offline_queues():
            name = (q.pid, q.queue_id)
            seen[name] = (q.gpu_id, self._idle.get(name, (0, now))[1])
        self._idle = seen

    def _take(self, pid: int, queues: List[int]) -> bool:
        try:
            process = self.device.attach(pid)
        except (AbsentError, RefusedError):
            return False
        try:
            # Between the look from afar and now it may have got work.
            states = {q.queue_id: q for q in process.snapshot().queues}
            still = [q for q in queues if q in states and states[q].state == 'idle']
            if still:
                process.suspend(still)
                self._held[pid] = process
                if not self._has_work(process):
                    return True
                del self._held[pid]
        except (AbsentError, RefusedError):
            self._held.pop(pid, None)
        except BaseException:
            self._held.pop(pid, None)
            process.detach()
            raise
        process.detach()
        return False

    def _has_work(self, process: Process) -> bool:
        try:
            process.check()
            held = set(process.held())
            return any(q.queue_id in held and q.pending != 0 for q in process.snapshot().queues)
        except Error:
            return True  # gone, or not ours any more: there is nothing to keep
