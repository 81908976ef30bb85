# SPDX-License-Identifier: MIT
"""Work for the processes of a model in this process ('model' devices), in virtual time."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import List

from . import _abi
from ._lib import lib
from .device import Device
from .errors import check_ns, check_number, check_pid


@dataclass(frozen=True)
class ModelQueue:
    completed: int  # packets, in order
    resident: int  # workgroups on compute units now
    saved: int  # workgroups in the save area now
    suspended: bool


@dataclass(frozen=True)
class ModelGpu:
    cycles: int  # of the runlist: everything off the GPU and back on
    saved_bytes: int
    save_us: float


@dataclass(frozen=True)
class ModelPacket:
    index: int
    submitted_ns: int
    started_ns: int
    done_ns: int  # 0: not yet
    executed_ns: int  # summed over its workgroups
    workgroups: int
    finished: int
    saves: int  # how often some of it was saved


class Model:
    """What only a modelled device can do; NotSupported on any other."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def submit(self, pid: int, queue_id: int, workgroups: int, each_s: float,
               per_cu: int = 1) -> int:
        """Submits a kernel; its number among the packets of the queue."""
        work = _abi.ModelWork(workgroups=check_number('workgroups', workgroups, 1, 2**20),
                              wg_per_cu=check_number('per_cu', per_cu, 1, 32),
                              wg_ns=check_ns('a workgroup', each_s, 60))
        index = ctypes.c_uint64()
        self._call('submit', check_pid(pid), _id(queue_id), ctypes.byref(work),
                   ctypes.byref(index))
        return index.value

    def queue(self, pid: int, queue_id: int) -> ModelQueue:
        out = _abi.ModelQueue()
        self._call('get_queue', check_pid(pid), _id(queue_id), ctypes.byref(out))
        return ModelQueue(out.completed, out.resident, out.saved, out.suspended)

    def gpu(self, index: int = 0) -> ModelGpu:
        """Since the model was made."""
        out = _abi.ModelGpu()
        self._call('get_gpu', check_number('an index', index, 0, 2**32 - 1), ctypes.byref(out))
        return ModelGpu(out.cycles, out.saved_bytes, out.save_ns / 1000)

    def packets(self, pid: int, queue_id: int, first: int = 0,
                most: int = 1024) -> List[ModelPacket]:
        """From the first on, oldest first; none unless the device is 'model:...,log=1'."""
        room = check_number('most', most, 1, 2**20)
        out = (_abi.ModelPacket * room)()
        out[0].size = ctypes.sizeof(_abi.ModelPacket)
        n = self._call('get_packets', check_pid(pid), _id(queue_id),
                       check_number('first', first, 0, 2**64 - 1), out, room)
        return [ModelPacket(p.index, p.submitted_ns, p.started_ns, p.done_ns, p.executed_ns,
                            p.workgroups, p.finished, p.saves) for p in out[:n]]

    def _call(self, name: str, *args: object) -> int:
        with self.device._lock:
            handle = self.device._use()
            return self.device._check(getattr(lib(), 'gpreempt_model_' + name)(handle, *args))


def _id(queue_id: int) -> int:
    return check_number('a queue id', queue_id, 0, 2**32 - 1)
