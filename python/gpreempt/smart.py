# SPDX-License-Identifier: MIT
"""Room made on request: a program that knows when its urgent work comes takes the GPU for it."""
from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Callable, Deque, Dict, Iterator, List, Optional, Set, TypeVar

from .device import Device, Process, batch_unmap, fast_remap
from .errors import AbsentError, Error, check_number, check_pid
from .records import Figures

T = TypeVar('T')
_KEPT = 10000  # of the latest requests figures are made


@dataclass(frozen=True)
class SmartStatistics:
    requests: int
    preemptions: int  # processes taken off the GPU, summed over requests
    unhindered: int  # requests for which nothing could be, or had to be, taken off
    failures: int  # processes that could not be taken off, or not be brought back in order
    gone: List[int]  # pids that ended, and are registered no more
    offline_queues: int  # registered now; of whole processes those they have
    suspend_us: Optional[Figures]  # of requests that took something off
    resume_us: Optional[Figures]
    request_us: Optional[Figures]  # from the call until the urgent work was done
    modelled: bool  # times come from a model and must be shown as such


class _Offline:
    def __init__(self, process: Process) -> None:
        self.process = process
        self.queues: Optional[Set[int]] = set()  # None: all it has and will have
        self.requests = 0  # that hold it now


class SmartQueueScheduler:
    """Keeps registered offline queues off the GPU while an online request is handled.

    Whatever goes wrong the request is handled: a job that cannot be taken off is counted, not
    raised. Requests may come from several threads at once; the first takes off, the last brings
    back. longest: seconds after which a job runs again even though a request does not end.
    """

    def __init__(self, device: Device, *, grace_kclk: int = 0, longest: float = 10.0,
                 level: Optional[str] = None) -> None:
        self.device = device
        self._grace, self._longest, self._level = grace_kclk, longest, level
        self._jobs: Dict[int, _Offline] = {}
        self._lock = threading.RLock()
        self._requests = self._preemptions = self._unhindered = self._failures = 0
        self._gone: List[int] = []
        self._suspend_us: Deque[float] = deque(maxlen=_KEPT)
        self._resume_us: Deque[float] = deque(maxlen=_KEPT)
        self._request_us: Deque[float] = deque(maxlen=_KEPT)

    # ---- who gives way ----

    def register_offline_queue(self, pid: int, queue_id: Optional[int] = None) -> None:
        """A queue, or with None all queues of a process, those to come too.

        Attaches to the process. Taking off some of the queues of a process that waits for the
        others can stop it for as long: None is the safe choice.
        """
        with self._lock:
            job = self._jobs.get(check_pid(pid))
            process = job.process if job else self.device.attach(pid, level=self._level)
            try:
                if queue_id is not None:
                    check_number('a queue id', queue_id, 0, 2**32 - 1)
                    if queue_id not in process.snapshot().ids():
                        raise AbsentError(f'process {pid} has no queue {queue_id}',
                                          f'see its queues with: gpreempt queues {pid}')
            except BaseException:
                if not job:
                    process.detach()
                raise
            job = self._jobs.setdefault(pid, _Offline(process))
            if queue_id is None:
                job.queues = None
            elif job.queues is not None:
                job.queues.add(queue_id)

    def unregister_offline_queue(self, pid: int, queue_id: Optional[int] = None) -> None:
        """The way back; None: the whole process. Nothing happens when it is not registered."""
        with self._lock:
            job = self._jobs.get(pid)
            if not job:
                return
            if queue_id is not None and job.queues is not None:
                job.queues.discard(queue_id)
            if queue_id is None or job.queues == set():
                del self._jobs[pid]
                job.process.detach()

    # ---- requests ----

    def handle_online_request(self, work: Callable[[], T], gpu_id: Optional[int] = None) -> T:
        """Calls work() with the offline queues (of that GPU) off it, and returns what it does."""
        with self.online_request(gpu_id):
            return work()

    @contextmanager
    def online_request(self, gpu_id: Optional[int] = None) -> Iterator[None]:
        """The same for a with statement."""
        began = self.device.now_ns()
        taken: List[_Offline] = []
        try:
            with self._lock:
                self._requests += 1
                self._take_off(gpu_id, taken)
            yield
            self._request_us.append((self.device.now_ns() - began) / 1000)
        finally:
            with self._lock:
                self._bring_back(taken)

    def statistics(self) -> SmartStatistics:
        with self._lock:
            queues = 0
            for job in self._jobs.values():
                try:
                    queues += len(job.process.snapshot().queues if job.queues is None
                                  else job.queues)
                except Error:
                    pass  # it has gone; the next request will find out
            return SmartStatistics(
                self._requests, self._preemptions, self._unhindered, self._failures,
                list(self._gone), queues, Figures.of(list(self._suspend_us)),
                Figures.of(list(self._resume_us)), Figures.of(list(self._request_us)),
                self.device.modelled)

    def close(self) -> None:
        """Everything comes back and is detached from."""
        with self._lock:
            while self._jobs:
                self._jobs.popitem()[1].process.detach()

    def __enter__(self) -> 'SmartQueueScheduler':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- inside ----

    def _take_off(self, gpu_id: Optional[int], taken: List[_Offline]) -> None:
        """Adds to taken what is held for this request, by it or by others."""
        fresh: List[_Offline] = []
        for job in list(self._jobs.values()):
            if self._is_there(job) and (gpu_id is None or self._is_on(job, gpu_id)):
                (taken if job.requests else fresh).append(job)
        for job in taken:
            job.requests += 1
        began = self.device.now_ns()
        for job in fresh:
            job.requests += 1
            taken.append(job)  # first, so that a signal cannot come between
        self._suspend(fresh, taken)
        held = [job for job in fresh if job in taken]
        if held:
            self._suspend_us.append((self.device.now_ns() - began) / 1000)
        self._preemptions += len(held)
        self._unhindered += not taken

    def _suspend(self, fresh: List[_Offline], taken: List[_Offline]) -> None:
        """In one call where that can be; those that cannot be are dropped from taken."""
        whole = [job.process for job in fresh if job.queues is None]
        try:
            batch_unmap(whole, self._grace, self._longest)
        except Error:
            whole = []  # one of them, perhaps: each by itself
        for job in fresh:
            if job.process in whole:
                continue
            try:
                job.process.suspend(job.queues, self._grace, self._longest)
            except Error:
                self._failures += self._is_there(job)
                job.requests -= 1
                taken.remove(job)

    def _bring_back(self, taken: List[_Offline]) -> None:
        last: List[_Offline] = []
        for job in taken:
            job.requests -= 1
            if not job.requests and self._jobs.get(job.process.pid) is job:
                last.append(job)
        if not last:
            return
        began = self.device.now_ns()
        try:
            fast_remap([job.process for job in last])
            self._resume_us.append((self.device.now_ns() - began) / 1000)
        except Error:
            # Every one was tried. Detaching brings back what is there to be brought back.
            for job in last:
                if self._is_there(job):
                    self._make_sure(job)

    def _make_sure(self, job: _Offline) -> None:
        try:
            if job.process.held():
                job.process.resume()
        except Error:
            self._failures += 1
            self._drop(job)

    def _is_there(self, job: _Offline) -> bool:
        """Drops it where it is not."""
        try:
            job.process.check()
            return True
        except AbsentError:
            self._gone.append(job.process.pid)
        except Error:
            self._failures += 1
        self._drop(job)
        return False

    def _drop(self, job: _Offline) -> None:
        self._jobs.pop(job.process.pid, None)
        job.process.detach()

    def _is_on(self, job: _Offline, gpu_id: int) -> bool:
        try:
            return gpu_id in job.process.snapshot().by_gpu()
        except Error:
            return True
