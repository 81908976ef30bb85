# SPDX-License-Identifier: MIT
"""The scheduler inside the driver, which the kernel extension has: on, off, its state, classes."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, List, Optional, Tuple

from . import _abi
from ._lib import lib
from .daemon import class_request
from .device import Device
from .errors import check_ns, check_number, check_pid, decode, usage

_AHEAD_S, _LASTS_S = 1.0, 10.0  # that the driver takes of a hint


@dataclass(frozen=True)
class KernelGpu:
    """What is not told, because it is off or may not be read, is None."""
    gpu_id: int
    on: bool
    tripped: Optional[bool]  # a preemption failed: this GPU is left alone until it is rearmed
    policy: Optional[str]
    slots: Optional[int]
    queues: Optional[int]
    held_queues: Optional[int]
    interval_us: Optional[int]
    critical_interval_us: Optional[int]
    turn_ms: Optional[int]
    hold_max_ms: Optional[int]
    online_permille: Optional[int]  # slots kept for online queues
    offline_permille: Optional[int]  # that offline ones may have
    online: Optional[int]  # jobs
    offline: Optional[int]
    held: Optional[int]
    looks: Optional[int]
    busy_ns: Optional[int]
    holds: Optional[int]
    resumes: Optional[int]
    failures: Optional[int]


_VALID = {
    'slots': _abi.KERNEL_SLOTS, 'queues': _abi.KERNEL_SLOTS, 'held_queues': _abi.KERNEL_SLOTS,
    'policy': _abi.KERNEL_POLICY, 'interval_us': _abi.KERNEL_INTERVALS,
    'critical_interval_us': _abi.KERNEL_INTERVALS, 'turn_ms': _abi.KERNEL_TURN,
    'hold_max_ms': _abi.KERNEL_HOLD_MAX, 'online_permille': _abi.KERNEL_RESERVED,
    'offline_permille': _abi.KERNEL_RESERVED, 'looks': _abi.KERNEL_LOOKS,
    'busy_ns': _abi.KERNEL_LOOKS, 'holds': _abi.KERNEL_ACTIONS, 'resumes': _abi.KERNEL_ACTIONS,
    'failures': _abi.KERNEL_ACTIONS, 'tripped': _abi.KERNEL_ACTIONS, 'online': _abi.KERNEL_JOBS,
    'offline': _abi.KERNEL_JOBS, 'held': _abi.KERNEL_JOBS,
}


def _gpu(c: _abi.KernelGpu) -> KernelGpu:
    values = {}
    for field in KernelGpu.__dataclass_fields__:
        value = getattr(c, field)
        known = field not in _VALID or c.valid & _VALID[field]
        values[field] = (decode(value) if isinstance(value, bytes) else value) if known else None
    return KernelGpu(**values)


class KernelScheduler:
    """NotSupported where the extension is not loaded. Changing anything needs CAP_SYS_ADMIN."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def on(self, gpu_id: Optional[int] = None, *, policy: Optional[str] = None,
           interval_us: int = 0, critical_interval_us: int = 0, turn_ms: int = 0,
           hold_max_ms: int = 0, reserve: Optional[Tuple[int, int]] = None) -> None:
        """Turns it on for a GPU (None: for all), or sets it anew; 0 and None: the driver's default.

        reserve: percent of the slots kept for online queues, and that offline ones have at most.
        """
        options = _abi.KernelOptions(
            interval_us=check_number('interval_us', interval_us, 0, 10**6),
            critical_interval_us=check_number('critical_interval_us', critical_interval_us, 0,
                                              10**6),
            turn_ms=check_number('turn_ms', turn_ms, 0, 60000),
            hold_max_ms=check_number('hold_max_ms', hold_max_ms, 0, 60000))
        if policy is not None:
            if '\0' in policy:
                raise usage(f'no such policy {policy!r}')
            options.policy = policy.encode()
        if reserve is not None:
            options.reserve = True
            options.online_percent, options.offline_percent = (
                check_number('a share', share, 0, 100) for share in reserve)
        self._call('on', _id(gpu_id), ctypes.byref(options))

    def off(self, gpu_id: Optional[int] = None) -> None:
        """Everybody it holds runs again."""
        self._call('off', _id(gpu_id))

    def rearm(self, gpu_id: int) -> None:
        """After a preemption that failed a GPU is left alone until this."""
        self._call('rearm', _id(gpu_id))

    def is_on(self) -> bool:
        """On some GPU."""
        return bool(self._call('is_on'))

    def gpus(self) -> List[KernelGpu]:
        """How it is on each; for root."""
        return [_gpu(g) for g in self.device._list(_abi.KernelGpu, 'kernel_get_gpus')]

    def set_class(self, pid: int, job_class: str, *, priority: Optional[int] = None,
                  critical: bool = False) -> None:
        """Of one process that has the driver open; 'unknown': it is left alone."""
        request = class_request(job_class, priority, critical)
        self._call('set_class', check_pid(pid), ctypes.byref(request))

    def hint(self, pid: int, ahead: float = 0, lasts: float = 0) -> None:
        """Work of an online process comes in so many seconds, and takes so many."""
        self._call('hint', check_pid(pid), check_ns('ahead', ahead, _AHEAD_S),
                   check_ns('lasts', lasts, _LASTS_S))

    def _call(self, name: str, *args: Any) -> int:
        with self.device._lock:
            call = getattr(lib(), 'gpreempt_kernel_' + name)
            return self.device._check(call(self.device._use(), *args))


def _id(gpu_id: Optional[int]) -> int:
    return _abi.ALL_GPUS if gpu_id is None else check_number('a GPU id', gpu_id, 0, 2**32 - 2)
