# SPDX-License-Identifier: MIT
"""Take the GPU from a best-effort job for an urgent one, and give it back with nothing lost.

    import gpreempt

    with gpreempt.hold(pid):            # the job's queues are off the GPU here
        answer = model(request)

Over libgpreempt by ctypes; the standard library is all it needs. Where there is no GPU every call
works on a software device: gpreempt.open('model'). docs/python.md is the guide.
"""
from __future__ import annotations

from typing import Iterable, Optional

from ._lib import where as library
from ._version import VERSION
from .daemon import (Daemon, DaemonGpu, DaemonStatus, Event, Events, Hint, Job, Latency, Policy,
                     check_selector, check_watch)
from .device import Device, Hold, Process, QueueMonitor, batch_unmap, fast_remap
from .errors import (AbsentError, Error, FailedError, NoDaemon, NoLibrary, NotSupported,
                     RefusedError, TimedOut, UsageError)
from .hqd import HQDResourceMonitor
from .kernel import KernelGpu, KernelScheduler
from .model import Model, ModelGpu, ModelPacket, ModelQueue
from .records import (DeviceInfo, Figures, Gpu, HqdStatus, Level, ProcessInfo, Queue, Snapshot,
                      Statistics, Timing)
from .scheduler import GPreemptScheduler, SchedulerStatistics
from .server import Server
from .smart import SmartQueueScheduler, SmartStatistics

__version__ = VERSION


def open(device: str = 'auto') -> Device:  # pylint: disable=redefined-builtin
    """'auto' (AMD's driver where it is there, else NVIDIA's), 'kfd', 'nvrm', 'model[:PRESET]'."""
    return Device(device)


def connect(socket: Optional[str] = None) -> Daemon:
    """To gpreemptd; NoDaemon where there is none."""
    return Daemon(socket)


def hold(pid: int, queues: Optional[Iterable[int]] = None, *, device: str = 'auto',
         grace_kclk: int = 0, longest: Optional[float] = None,
         level: Optional[str] = None) -> Hold:
    """Keeps queues of a process (None: all) off the GPU while a with statement runs.

    They are always resumed: at its end, by an exception, by Ctrl-C, and when this process dies.
    longest: seconds after which they are resumed anyway.
    """
    return Hold(device, pid, queues, grace_kclk, longest, level)


def snapshot(pid: int, device: str = 'auto') -> Snapshot:
    """All queues of a process, once."""
    with Device(device) as opened:
        return opened.snapshot(pid)


__all__ = [
    'AbsentError', 'Daemon', 'DaemonGpu', 'DaemonStatus', 'Device', 'DeviceInfo', 'Error', 'Event',
    'Events', 'FailedError', 'Figures', 'GPreemptScheduler', 'Gpu', 'HQDResourceMonitor', 'Hint',
    'Hold', 'HqdStatus', 'Job', 'KernelGpu', 'KernelScheduler', 'Latency', 'Level', 'Model',
    'ModelGpu', 'ModelPacket', 'ModelQueue', 'NoDaemon', 'NoLibrary', 'NotSupported', 'Policy',
    'Process', 'ProcessInfo', 'Queue', 'QueueMonitor', 'RefusedError', 'SchedulerStatistics',
    'Server', 'SmartQueueScheduler', 'SmartStatistics', 'Snapshot', 'Statistics', 'TimedOut',
    'Timing', 'UsageError', 'batch_unmap', 'check_selector', 'check_watch', 'connect',
    'fast_remap', 'hold', 'library', 'open', 'snapshot',
]
