# SPDX-License-Identifier: MIT
"""A device and the processes on it: looking, and taking queues off the GPU and back."""
from __future__ import annotations

import ctypes
import errno
import os
import threading
import weakref
from contextlib import ExitStack
from typing import (Any, Callable, FrozenSet, Iterable, List, Optional, Sequence, Type, TypeVar,
                    Union)

from . import _abi
from ._lib import lib
from ._owned import Owned
from .errors import (AbsentError, Error, RefusedError, UsageError, check_ns, check_number,
                     check_pid, decode, from_info, usage)
from .records import (DeviceInfo, Gpu, HqdStatus, Level, ProcessInfo, Queue, Snapshot, Statistics,
                      Timing, class_number)

T = TypeVar('T')
C = TypeVar('C', bound=_abi.Struct)
_SLICE_S = 0.2  # a wait is cut in pieces so that signals are heard
_LEVELS = {None: 0, 'K1': _abi.ATTACH_PAUSE, 'K2': _abi.ATTACH_DEBUG}


def _ids(queues: Optional[Iterable[int]]) -> 'Optional[List[int]]':
    if queues is None:
        return None
    found = [check_number('a queue id', q, 0, 2**32 - 1) for q in queues]
    if not found:
        raise usage('no queue was named', 'give None for all queues')
    return found


def _flags(look_only: bool, level: Optional[str]) -> int:
    if level not in _LEVELS:
        raise usage(f'a level is K1 or K2, or None to choose, not {level!r}')
    return _LEVELS[level] | (_abi.ATTACH_LOOK_ONLY if look_only else 0)


def _options(grace_kclk: int, longest: Optional[float]) -> _abi.SuspendOptions:
    grace = check_number('a grace period', grace_kclk, 0, _abi.GRACE_MAX)
    return _abi.SuspendOptions(grace_kclk=grace, longest_ns=check_ns('longest', longest))


class Device(Owned):
    """An open device: 'auto', 'kfd', 'nvrm', 'model' or 'model:PRESET'.

    Opens nothing yet but finds out whether it is there. Close it, or use it in a with statement:
    everything it holds is resumed then, and also when it is forgotten or the process ends in any
    way. Any thread may use it; calls take turns. A forked child has to open its own.
    """

    def __init__(self, device: str = 'auto') -> None:
        self._lock = threading.RLock()
        self._owner = os.getpid()
        self._processes: 'weakref.WeakSet[Process]' = weakref.WeakSet()
        if not isinstance(device, str):
            raise TypeError(f'a device is a string, not {device!r}')
        self.device = device
        out, info = ctypes.c_void_p(), _abi.Error()
        name = os.fsencode(device)
        if b'\0' in name:
            raise usage(f'no such device {device!r}')
        result = lib().gpreempt_open(name, ctypes.byref(out), ctypes.byref(info))
        if result < 0:
            raise from_info(info, result)
        self._handle = out.value

    # ---- life ----

    def close(self) -> None:
        """Resumes and gives back everything. May be called twice."""
        with self._lock:
            handle, self._handle = self._handle, None
            for process in list(self._processes):
                process._forget()
            self._processes.clear()
            if handle is not None and self._owner == os.getpid():
                lib().gpreempt_unref(handle)

    def __repr__(self) -> str:
        return f'<gpreempt.Device {self.device!r}{"" if self._handle else ", closed"}>'

    def _use(self) -> int:
        if self._handle is None:
            raise usage('the device is closed', 'open it again')
        if self._owner != os.getpid():
            raise usage('the device was opened by the parent of this process',
                        'open it again after a fork')
        return self._handle

    # ---- calling ----

    def _check(self, result: int) -> int:
        """What C returned, or the exception it means."""
        if result >= 0:
            return result
        info = _abi.Error()
        lib().gpreempt_get_error(self._use(), ctypes.byref(info))
        raise from_info(info, result)

    def _array(self, kind: Type[C], call: Callable[[Any, int], int]) -> List[C]:
        """All entries of a call that tells how many there are."""
        room = self._check(call(None, 0))
        while True:
            if not room:
                return []
            entries = (kind * room)()
            entries[0].size = ctypes.sizeof(kind)
            there = self._check(call(entries, room))
            if there <= room:
                return list(entries[:there])
            room = there

    def _list(self, kind: Type[C], name: str) -> List[C]:
        call = getattr(lib(), 'gpreempt_' + name)
        with self._lock:
            return self._array(kind, lambda out, n: int(call(self._use(), out, n)))

    # ---- the machine ----

    @property
    def backend(self) -> str:
        """'kfd', 'nvrm' or 'model'."""
        with self._lock:
            return decode(lib().gpreempt_backend(self._use()))

    @property
    def modelled(self) -> bool:
        """Times come from a model and must be shown as such."""
        with self._lock:
            return bool(lib().gpreempt_is_modelled(self._use()))

    @property
    def abilities(self) -> FrozenSet[str]:
        """What the driver has: of 'queues', 'holds', 'slots', 'progress', 'grace', 'own', ..."""
        with self._lock:
            bits = int(lib().gpreempt_abilities(self._use()))
        return frozenset(name[4:].lower() for name, bit in vars(_abi).items()
                         if name.startswith('HAS_') and bits & bit)

    def now_ns(self) -> int:
        """The device's clock; virtual on a model."""
        with self._lock:
            return int(lib().gpreempt_now_ns(self._use()))

    def wait(self, seconds: float) -> None:
        """Lets time pass on the device's clock; on a model it takes none."""
        left = check_ns('a wait', seconds)
        until = self.now_ns() + left
        whole = self.modelled
        while True:
            piece = left if whole else min(left, int(_SLICE_S * 1e9))
            with self._lock:
                self._check(lib().gpreempt_wait(self._use(), None, 0, piece))
            left = until - self.now_ns()
            if left <= 0:
                return

    def info(self) -> DeviceInfo:
        out = _abi.DeviceInfo()
        with self._lock:
            self._check(lib().gpreempt_get_device_info(self._use(), ctypes.byref(out)))
        return DeviceInfo.of(out)

    def gpus(self) -> List[Gpu]:
        return [Gpu.of(g) for g in self._list(_abi.Gpu, 'get_gpus')]

    def levels(self) -> List[Level]:
        """What can be done on this machine, best first."""
        return [Level.of(x) for x in self._list(_abi.Level, 'get_levels')]

    def hqd_status(self) -> List[HqdStatus]:
        """Hardware queue slots of each GPU."""
        return [HqdStatus.of(h) for h in self._list(_abi.HqdStatus, 'get_hqd_status')]

    # ---- processes and queues; attaches to nobody ----

    def processes(self) -> List[ProcessInfo]:
        return [ProcessInfo.of(p) for p in self._list(_abi.ProcessInfo, 'list_processes')]

    def pids(self) -> List[int]:
        """Of those that could be held; on AMD GPUs no process can keep this waiting."""
        with self._lock:
            there = self._check(lib().gpreempt_list_pids(self._use(), None, 0))
            while True:
                room = there
                out = (_abi.pid_t * max(room, 1))()
                there = self._check(lib().gpreempt_list_pids(self._use(), out, room))
                if there <= room:
                    return list(out[:there])

    def queues(self, job_class: Optional[str] = None, min_priority: Optional[int] = None,
               max_priority: Optional[int] = None) -> List[Queue]:
        """The queues of all processes that match, by pid and id."""
        wanted = _abi.QueueFilter(
            job_class=class_number(job_class) if job_class else _abi.CLASS_UNKNOWN,
            min_priority=-1 if min_priority is None else
            check_number('a priority', min_priority, 0, 15),
            max_priority=-1 if max_priority is None else
            check_number('a priority', max_priority, 0, 15))
        with self._lock:
            found = self._array(_abi.Queue, lambda out, n: int(lib().gpreempt_get_all_queues(
                self._use(), ctypes.byref(wanted), out, n)))
        return [Queue.of(q) for q in found]

    def idle_offline_queues(self) -> List[Queue]:
        """Offline queues known to have nothing to do."""
        return [Queue.of(q) for q in self._list(_abi.Queue, 'find_idle_offline_queues')]

    # ---- one process ----

    def attach(self, pid: int, look_only: bool = False, level: Optional[str] = None) -> 'Process':
        """Attaching costs more than preempting: do it once, and preempt often.

        level: None chooses; 'K1' pauses through the checkpoint interface, 'K2' uses the debug
        interface also where the kernel extension could be used.
        """
        return Process(self, pid, look_only, level)

    def snapshot(self, pid: int) -> Snapshot:
        """One look at one process."""
        with self.attach(pid, look_only=True) as process:
            return process.snapshot()

    def watch(self, pid: int, duration: float, interval: float) -> Statistics:
        """Samples a process and says what was seen: Process.watch() in one call."""
        with self.attach(pid, look_only=True) as process:
            return process.watch(duration, interval)

    def hold(self, pid: int, queues: Optional[Iterable[int]] = None, *, grace_kclk: int = 0,
             longest: Optional[float] = None, level: Optional[str] = None) -> 'Hold':
        """Attaches, and keeps queues off the GPU while a with statement runs. See Hold."""
        return Hold(self, pid, queues, grace_kclk, longest, level)

    # ---- machine-wide ----

    def release(self, pids: Optional[Sequence[int]] = None) -> List[int]:
        """Ends holds, whoever made them; None: all of them. The pids that were let go.

        Tries them all; what could not be let go while others could is not an error.
        """
        wanted = None if pids is None else [check_pid(p) for p in pids]
        if wanted is not None and not wanted:
            return []
        given = None if wanted is None else (_abi.pid_t * len(wanted))(*wanted)
        room = 4096 if wanted is None else len(wanted)
        out = (_abi.pid_t * room)()
        with self._lock:
            n = self._check(lib().gpreempt_release(self._use(), given, len(wanted or ()), out,
                                                   room))
        return list(out[:min(n, room)])

    def stop_gpu(self, gpu_id: int, longest: float) -> None:
        """The whole-GPU brake, an emergency brake: needs the kernel extension."""
        with self._lock:
            self._check(lib().gpreempt_stop_gpu(
                self._use(), check_number('a GPU id', gpu_id, 0, 2**32 - 1),
                check_ns('longest', longest)))

    def start_gpu(self, gpu_id: int) -> None:
        with self._lock:
            self._check(lib().gpreempt_start_gpu(
                self._use(), check_number('a GPU id', gpu_id, 0, 2**32 - 1)))

    def set_queue_policy(self, pid: int, *, lazy: bool = False, auto_deactivate: bool = False,
                         preemptible: bool = False, queue_id: Optional[int] = None) -> None:
        """Of a process, for the scheduler inside the driver: no slot before there is work, none
        while there is none, may be held. NotSupported without that scheduler."""
        flags = (_abi.POLICY_LAZY * bool(lazy) | _abi.POLICY_PREEMPTIBLE * bool(preemptible) |
                 _abi.POLICY_AUTO_DEACTIVATE * bool(auto_deactivate))
        queue = _abi.ALL_QUEUES if queue_id is None else \
            check_number('a queue id', queue_id, 0, 2**32 - 1)
        with self._lock:
            self._check(lib().gpreempt_set_queue_policy(self._use(), check_pid(pid), queue, flags))

    def set_hqd_reservation(self, gpu_id: Optional[int], online_percent: int,
                            offline_percent: int) -> None:
        """So many slots of a GPU (None: of each) are kept for online queues, and offline ones have
        so many at most. NotSupported without the scheduler inside the driver."""
        gpu = _abi.ALL_GPUS if gpu_id is None else \
            check_number('a GPU id', gpu_id, 0, 2**32 - 1)
        with self._lock:
            self._check(lib().gpreempt_set_hqd_reservation(
                self._use(), gpu, check_number('a share', online_percent, 0, 100),
                check_number('a share', offline_percent, 0, 100)))

    def hint(self, pid: int) -> None:
        """Tells the daemon that work of a process comes now."""
        with self._lock:
            self._check(lib().gpreempt_hint(self._use(), check_pid(pid)))

    def suspend_own(self, grace_kclk: int = 0) -> Timing:
        """Takes this process's own queues off the GPU; do not wait for their work meanwhile."""
        out, how = _abi.Timing(), _options(grace_kclk, None)
        with self._lock:
            self._check(lib().gpreempt_suspend_own(self._use(), None, 0, ctypes.byref(how),
                                                   ctypes.byref(out)))
        return Timing.of(out)

    def resume_own(self) -> Timing:
        out = _abi.Timing()
        with self._lock:
            self._check(lib().gpreempt_resume_own(self._use(), ctypes.byref(out)))
        return Timing.of(out)

    def keepalive(self) -> None:
        """Promises to call this or wait() at least once a second while anything is suspended.

        A process that breaks the promise is killed. Without it only a process that is stopped
        is, or hangs inside a call.
        """
        with self._lock:
            self._check(lib().gpreempt_keepalive(self._use()))


class Process(Owned):
    """An attached process: Device.attach()."""

    def __init__(self, device: Device, pid: int, look_only: bool = False,
                 level: Optional[str] = None) -> None:
        self.device = device
        self.pid = check_pid(pid)
        flags = _flags(look_only, level)
        self._look_only = look_only
        out = ctypes.c_void_p()
        with device._lock:
            # A tracer is alone with its target; a holder through the kernel extension would not be.
            if not look_only and any(p.pid == pid and not p._look_only
                                     for p in device._processes):
                raise RefusedError(f'process {pid} is already attached by the caller',
                                   'use that attachment, or end it first', errno.EBUSY)
            device._check(lib().gpreempt_attach(device._use(), self.pid, flags,
                                                ctypes.byref(out)))
            self._handle = out.value
            device._processes.add(self)

    def _use(self) -> int:
        self.device._use()
        if self._handle is None:
            raise usage(f'process {self.pid} is not attached any more', 'attach it again')
        return self._handle

    def _forget(self) -> None:
        self._handle = None

    def _call(self, name: str, *args: Any) -> int:
        call = getattr(lib(), 'gpreempt_' + name)
        with self.device._lock:
            return self.device._check(call(self._use(), *args))

    def detach(self) -> None:
        """Resumes and detaches. May be called twice."""
        with self.device._lock:
            handle, self._handle = self._handle, None
            if handle is None:
                return
            self.device._processes.discard(self)
            if self.device._owner == os.getpid():
                lib().gpreempt_detach(handle)

    def close(self) -> None:
        """The same."""
        self.detach()

    def __repr__(self) -> str:
        return f'<gpreempt.Process {self.pid}{"" if self._handle else ", detached"}>'

    # ---- looking ----

    def check(self) -> None:
        """Raises what ended the attachment: the process exited, another debugger took it..."""
        self._call('process_check')

    def fileno(self) -> int:
        """Readable when the attachment has ended by itself: for select and poll."""
        with self.device._lock:
            return int(lib().gpreempt_process_fd(self._use()))

    def snapshot(self) -> Snapshot:
        time_ns = ctypes.c_uint64()
        with self.device._lock:
            found = self.device._array(_abi.Queue, lambda out, n: int(lib().gpreempt_snapshot(
                self._use(), out, n, ctypes.byref(time_ns))))
        return Snapshot(time_ns.value, self.pid, [Queue.of(q) for q in found])

    def is_active(self, queue_id: int) -> bool:
        """Whether a queue has work waiting or running."""
        return bool(self._call('is_queue_active',
                               check_number('a queue id', queue_id, 0, 2**32 - 1)))

    def monitor(self) -> 'QueueMonitor':
        return QueueMonitor(self)

    def watch(self, duration: float, interval: float,
              each: Optional[Callable[[Snapshot], object]] = None) -> Statistics:
        """Samples every interval seconds until duration is over, and says what was seen."""
        check_ns('a duration', duration)
        if check_ns('an interval', interval) == 0:
            raise usage('an interval is more than 0 seconds')
        with self.monitor() as monitor:
            until = self.device.now_ns() + int(duration * 1e9)
            while True:
                snapshot = monitor.sample()
                if each:
                    each(snapshot)
                left = (until - self.device.now_ns()) / 1e9
                if left <= 0:
                    return monitor.statistics()
                self.device.wait(min(interval, left))

    # ---- preempting ----

    def suspend(self, queues: Optional[Iterable[int]] = None, grace_kclk: int = 0,
                longest: Optional[float] = None, want_saved: bool = False) -> Timing:
        """Takes queues off the GPU, all or none; None: every one, also those it creates meanwhile.

        grace_kclk: thousands of GPU clocks a wave gets to end by itself; longest: resumed by
        itself after so many seconds.
        """
        ids, how, out = _ids(queues), _options(grace_kclk, longest), _abi.Timing()
        how.want_saved = want_saved
        given = None if ids is None else (ctypes.c_uint32 * len(ids))(*ids)
        self._call('suspend_queues', given, len(ids or ()), ctypes.byref(how), ctypes.byref(out))
        return Timing.of(out)

    def resume(self) -> Timing:
        """Everything suspended; with nothing suspended it does nothing."""
        out = _abi.Timing()
        self._call('resume_queues', ctypes.byref(out))
        return Timing.of(out)

    def held(self) -> List[int]:
        """The ids that are off the GPU."""
        with self.device._lock:
            n = self._call('held_queues', None, 0)
            out = (ctypes.c_uint32 * max(n, 1))()
            n = min(self._call('held_queues', out, n), n)
        return list(out[:n])

    def hold(self, queues: Optional[Iterable[int]] = None, *, grace_kclk: int = 0,
             longest: Optional[float] = None) -> 'Hold':
        """Keeps queues off the GPU while a with statement runs; the process stays attached."""
        return Hold(self, self.pid, queues, grace_kclk, longest)


class Hold:
    """Queues kept off the GPU for as long as a with statement runs.

    They are resumed when it ends, in whatever way; when the holder dies, however that comes, the
    driver or the guard beside it resumes them. A job that ended meanwhile is no error.
    """

    def __init__(self, target: 'Union[Process, Device, str]', pid: int,
                 queues: Optional[Iterable[int]], grace_kclk: int, longest: Optional[float],
                 level: Optional[str] = None) -> None:
        self._target, self._level = target, level
        self._stack: Optional[ExitStack] = None  # the way back, while held
        self._queues = _ids(queues)
        self._grace, self._longest = grace_kclk, longest
        _options(grace_kclk, longest)
        _flags(False, level)
        self.pid = check_pid(pid)
        self.process: Optional[Process] = None
        self.suspended: Optional[Timing] = None  # what taking them off took
        self._outcome = _Outcome()

    @property
    def resumed(self) -> Optional[Timing]:
        """What bringing them back took."""
        return self._outcome.resumed

    @property
    def ended(self) -> Optional[Error]:
        """Why it was over before the with statement was: the job has gone, say."""
        return self._outcome.ended

    def __enter__(self) -> 'Hold':
        if self._stack:
            raise _already(self.pid)
        stack = self._stack = ExitStack()
        try:
            self.suspended, self._outcome = None, _Outcome()
            self.process = self._attach(stack)
            if self.process.held():
                raise _already(self.pid)
            stack.callback(_bring_back, self.process, self._outcome)
            self.suspended = self.process.suspend(self._queues, self._grace, self._longest)
            return self
        except BaseException:
            self._stack = None
            stack.close()
            raise

    def __exit__(self, kind: Optional[type], *_: object) -> None:
        try:
            self.resume()
        except Error:
            if kind is None:
                raise  # else what went wrong first is what counts

    def __del__(self) -> None:
        if getattr(self, '_stack', None):
            self.resume()

    def resume(self) -> None:
        """Before the end of the with statement; nothing happens the second time."""
        stack = self._stack
        if not stack:
            return
        try:
            stack.close()
            self._stack = None
        except BaseException:  # a signal in the midst of it, or a call that failed
            if self.process and self.process._handle is not None:
                try:
                    self.process.resume()
                except Error:
                    self.process.detach()  # which gives back what a call could not
            raise

    def _attach(self, stack: ExitStack) -> 'Process':
        target = self._target
        if isinstance(target, Process):
            return target
        if isinstance(target, str):
            target = stack.enter_context(Device(target))
        return stack.enter_context(target.attach(self.pid, level=self._level))


class _Outcome:
    """Of a hold; apart from it, so that a forgotten hold is not kept by its own way back."""

    def __init__(self) -> None:
        self.resumed: Optional[Timing] = None
        self.ended: Optional[Error] = None


def _bring_back(process: 'Process', outcome: _Outcome) -> None:
    if process._handle is None:  # detached, which resumes
        return
    try:
        process.check()
        outcome.resumed = process.resume()
    except (AbsentError, RefusedError) as e:
        outcome.ended = e  # nothing is held then


def _already(pid: int) -> UsageError:
    return UsageError(f'process {pid} is already held by the caller', 'resume it first',
                      errno.EALREADY)


class QueueMonitor(Owned):
    """Samples of one attached process, and statistics over them."""

    def __init__(self, process: Process) -> None:
        self.process = process
        out = ctypes.c_void_p()
        process._call('monitor_new', ctypes.byref(out))
        self._handle = out.value

    def _use(self) -> int:
        self.process._use()
        if self._handle is None:
            raise usage('the monitor is closed', 'make another')
        return self._handle

    def sample(self) -> Snapshot:
        """Takes a snapshot into the statistics."""
        queues, time_ns = ctypes.POINTER(_abi.Queue)(), ctypes.c_uint64()
        with self.process.device._lock:
            n = self.process.device._check(lib().gpreempt_monitor_sample(
                self._use(), ctypes.byref(queues), ctypes.byref(time_ns)))
            found = [Queue.of(queues[i]) for i in range(n)]
        return Snapshot(time_ns.value, self.process.pid, found)

    def statistics(self) -> Statistics:
        """UsageError before the first sample."""
        out = _abi.Stats()
        with self.process.device._lock:
            self.process.device._check(lib().gpreempt_monitor_stats(self._use(),
                                                                    ctypes.byref(out)))
            return Statistics.of(out)

    def close(self) -> None:
        with self.process.device._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                lib().gpreempt_monitor_free(handle)


def batch_unmap(processes: Sequence[Process], grace_kclk: int = 0,
                longest: Optional[float] = None) -> None:
    """All queues of several processes of one device, all or none, with as few driver calls as can
    be."""
    _together(processes, 'batch_unmap_queues', _options(grace_kclk, longest))


def fast_remap(processes: Sequence[Process]) -> None:
    """The way back."""
    _together(processes, 'fast_remap_queues')


def _together(processes: Sequence[Process], name: str, *options: Any) -> None:
    if not processes:
        return
    device = processes[0].device
    if any(p.device is not device for p in processes):
        raise UsageError('the processes are of several devices', 'one call for each device',
                         errno.EINVAL)
    with device._lock:
        handles = (ctypes.c_void_p * len(processes))(*[p._use() for p in processes])
        call = getattr(lib(), 'gpreempt_' + name)
        device._check(call(handles, len(processes), *[ctypes.byref(o) for o in options]))
