# SPDX-License-Identifier: MIT
"""What is told of GPUs, processes and queues. What a device does not tell is None, never 0."""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, TypeVar

from . import _abi
from ._lib import lib
from .errors import decode, usage

T = TypeVar('T')

CLASSES = {'unknown': _abi.CLASS_UNKNOWN, 'online': _abi.CLASS_ONLINE,
           'offline': _abi.CLASS_OFFLINE}


def class_number(name: str) -> int:
    if name not in CLASSES:
        raise usage(f'a class is online or offline, not {name!r}')
    return CLASSES[name]


def class_name(number: int) -> str:
    return decode(lib().gpreempt_class_name(number))


def _known(c: Any, bit: int, value: T) -> Optional[T]:
    return value if c.valid & bit else None


@dataclass(frozen=True)
class DeviceInfo:
    backend: str  # 'kfd', 'nvrm', 'model'
    name: str
    kfd_version: Optional[str]  # of the driver's interface
    yama_scope: Optional[int]  # kernel.yama.ptrace_scope
    driver_version: Optional[str]
    debugfs: bool  # readable: priorities, classes and used slots can be told
    global_pids: bool  # False: inside a pid namespace, where sysfs speaks of other pids
    hidden_gpus: int  # that this process may not use
    emulated: bool  # the driver is real, its GPU is not: its times are nobody's
    module: str  # NVIDIA's kernel module: 'open' or 'proprietary'; else empty
    secure_boot: Optional[bool]
    lockdown: Optional[str]  # of the kernel: 'none', 'integrity' or 'confidentiality'
    signed_modules_only: bool  # for one of these reasons, or because it was told to
    blind: str  # why gpreemptd would not see work of jobs here; empty: it would
    freezer: str  # group of cgroup v1: from there only processes in it can be held; empty: none

    @classmethod
    def of(cls, c: _abi.DeviceInfo) -> 'DeviceInfo':
        version = f'{c.kfd_major}.{c.kfd_minor}'
        return cls(decode(c.backend), decode(c.name), _known(c, _abi.DEVICE_VERSION, version),
                   _known(c, _abi.DEVICE_YAMA, c.yama_scope),
                   _known(c, _abi.DEVICE_DRIVER, decode(c.driver_version)), c.debugfs,
                   c.global_pids, c.hidden_gpus, c.emulated, decode(c.module),
                   _known(c, _abi.DEVICE_SECURE_BOOT, bool(c.secure_boot)),
                   _known(c, _abi.DEVICE_LOCKDOWN, decode(c.lockdown)), c.signed_modules_only,
                   decode(c.blind), decode(c.freezer))


@dataclass(frozen=True)
class Gpu:
    index: int
    gpu_id: int
    name: str
    gfx: Optional[str]
    scheduler: Optional[str]  # 'hws', 'mes', 'no-hws'
    xcc: Optional[int]
    cu: Optional[int]
    hqd_total: Optional[int]  # compute queue slots, not multiplied by XCCs
    cwsr_bytes: Optional[int]
    fw_version: Optional[int]
    pci: Optional[str]
    uuid: Optional[str]
    mig: Optional[bool]

    @classmethod
    def of(cls, c: _abi.Gpu) -> 'Gpu':
        return cls(c.index, c.gpu_id, decode(c.name), _known(c, _abi.GPU_GFX, decode(c.gfx)),
                   _known(c, _abi.GPU_SCHEDULER, decode(c.scheduler)),
                   _known(c, _abi.GPU_XCC, c.xcc), _known(c, _abi.GPU_CU, c.cu),
                   _known(c, _abi.GPU_HQD_TOTAL, c.hqd_total),
                   _known(c, _abi.GPU_CWSR, c.cwsr_bytes),
                   _known(c, _abi.GPU_FIRMWARE, c.fw_version),
                   _known(c, _abi.GPU_PCI, decode(c.pci)),
                   _known(c, _abi.GPU_UUID, decode(c.uuid)), _known(c, _abi.GPU_MIG, c.mig))


@dataclass(frozen=True)
class Level:
    """A way to preempt: 'K3' to 'K0' on AMD GPUs, 'N2' and 'N1' on NVIDIA's."""
    level: str
    available: bool
    reason: str  # why not, or what it does

    @classmethod
    def of(cls, c: _abi.Level) -> 'Level':
        return cls(decode(c.level), c.available, decode(c.reason))


@dataclass(frozen=True)
class HqdStatus:
    """Hardware queue slots of one GPU, or of all with gpu_id None."""
    gpu_id: Optional[int]
    queues: Optional[int]  # compute queues that exist; may be more than there are slots
    total: Optional[int]
    active: Optional[int]
    free: Optional[int]
    online_reserved: Optional[int]
    offline_used: Optional[int]
    held: Optional[int]  # off the GPU through the kernel extension
    stopped: Optional[bool]

    @classmethod
    def of(cls, c: _abi.HqdStatus) -> 'HqdStatus':
        both = c.valid & _abi.HQD_TOTAL and c.valid & _abi.HQD_ACTIVE
        return cls(c.gpu_id, _known(c, _abi.HQD_QUEUES, c.queues),
                   _known(c, _abi.HQD_TOTAL, c.total), _known(c, _abi.HQD_ACTIVE, c.active),
                   c.free if both else None, _known(c, _abi.HQD_RESERVED, c.online_reserved),
                   _known(c, _abi.HQD_OFFLINE, c.offline_used),
                   _known(c, _abi.HQD_HELD, c.held), _known(c, _abi.HQD_HELD, c.stopped))


def sum_up(gpus: List[HqdStatus]) -> HqdStatus:
    """All GPUs as one. What one of them does not tell is not known of all."""
    def total(values: List[Any]) -> Any:
        return None if not values or None in values else sum(values)
    return HqdStatus(None, total([g.queues for g in gpus]), total([g.total for g in gpus]),
                     total([g.active for g in gpus]), total([g.free for g in gpus]),
                     total([g.online_reserved for g in gpus]),
                     total([g.offline_used for g in gpus]), total([g.held for g in gpus]), None)


@dataclass(frozen=True)
class ProcessInfo:
    pid: int
    job_class: str  # 'online', 'offline', 'unknown'
    queues: int
    gpus: List[int]  # gpu ids it has queues on
    hidden: bool  # queues and gpus are not known
    comm: Optional[str]
    uid: Optional[int]
    state: Optional[str]
    tracer_pid: Optional[int]  # 0: nobody
    vram_bytes: Optional[int]

    @classmethod
    def of(cls, c: _abi.ProcessInfo) -> 'ProcessInfo':
        return cls(c.pid, class_name(c.job_class), c.queues, list(c.gpus[:c.n_gpus]), c.hidden,
                   _known(c, _abi.PROC_COMM, decode(c.comm)), _known(c, _abi.PROC_COMM, c.uid),
                   _known(c, _abi.PROC_COMM, decode(c.state)),
                   _known(c, _abi.PROC_COMM, c.tracer_pid),
                   _known(c, _abi.PROC_VRAM, c.vram_bytes))


@dataclass(frozen=True)
class Queue:
    pid: int
    queue_id: int  # within the process
    gpu_id: int
    type: str
    job_class: str
    ring_bytes: int
    priority: Optional[int]  # 0..15
    state: Optional[str]  # 'idle', 'running', 'pending', 'blocked', 'suspended'
    pending: Optional[int]  # published packets not yet taken
    read_index: Optional[int]
    write_index: Optional[int]
    ring_base: Optional[int]
    read_ptr_addr: Optional[int]
    write_ptr_addr: Optional[int]
    cwsr_base: Optional[int]
    cwsr_bytes: Optional[int]
    exceptions: Optional[int]
    channels: Optional[int]  # of an NVIDIA channel group
    slice_us: Optional[int]

    @classmethod
    def of(cls, c: _abi.Queue) -> 'Queue':
        return cls(c.pid, c.queue_id, c.gpu_id, decode(lib().gpreempt_queue_type_name(c.type)),
                   class_name(c.job_class), c.ring_bytes,
                   _known(c, _abi.QUEUE_PRIORITY, c.priority),
                   _known(c, _abi.QUEUE_STATE, decode(c.state)),
                   _known(c, _abi.QUEUE_PENDING, c.pending),
                   _known(c, _abi.QUEUE_INDICES, c.read_index),
                   _known(c, _abi.QUEUE_INDICES, c.write_index),
                   _known(c, _abi.QUEUE_RING_BASE, c.ring_base),
                   _known(c, _abi.QUEUE_POINTERS, c.read_ptr_addr),
                   _known(c, _abi.QUEUE_POINTERS, c.write_ptr_addr),
                   _known(c, _abi.QUEUE_CWSR_BASE, c.cwsr_base),
                   _known(c, _abi.QUEUE_CWSR_BYTES, c.cwsr_bytes),
                   _known(c, _abi.QUEUE_EXCEPTIONS, c.exceptions),
                   _known(c, _abi.QUEUE_CHANNELS, c.channels),
                   _known(c, _abi.QUEUE_SLICE, c.slice_us))


@dataclass(frozen=True)
class Snapshot:
    """All queues of one process, newest first."""
    time_ns: int  # of the device's clock
    pid: int
    queues: List[Queue]

    def ids(self) -> List[int]:
        return sorted(q.queue_id for q in self.queues)

    def by_gpu(self) -> Dict[int, int]:
        return dict(Counter(q.gpu_id for q in self.queues))

    def by_type(self) -> Dict[str, int]:
        return dict(Counter(q.type for q in self.queues))


@dataclass(frozen=True)
class Timing:
    """What one suspension or resumption took, by the device's clock: virtual on a model."""
    call_us: float
    queues: int
    saved_bytes: Optional[int]  # wave state moved off the GPU
    save_us: Optional[float]  # moving it; only a model knows

    @classmethod
    def of(cls, c: _abi.Timing) -> 'Timing':
        return cls(c.call_ns / 1000, c.queues, c.saved_bytes if c.has_saved else None,
                   c.save_ns / 1000 if c.has_save_ns else None)


@dataclass(frozen=True)
class Statistics:
    """Over the samples of a monitor."""
    samples: int
    min: int  # queues in a sample
    max: int
    avg: float
    stable: bool  # the same ids in every sample
    ids: Dict[int, int]  # how often each was seen
    gpus: Dict[int, int]
    types: Dict[str, int]
    advice: str

    @classmethod
    def of(cls, c: _abi.Stats) -> 'Statistics':
        ids = {c.ids[i].key: c.ids[i].count for i in range(c.n_ids)}
        gpus = {c.gpus[i].key: c.gpus[i].count for i in range(c.n_gpus)}
        types = {decode(lib().gpreempt_queue_type_name(c.types[i].key)): c.types[i].count
                 for i in range(c.n_types)}
        return cls(c.samples, c.min, c.max, c.avg, c.stable, ids, gpus, types, decode(c.advice))


@dataclass(frozen=True)
class Figures:
    """Of many measured (or modelled) times."""
    count: int
    mean: float
    p50: float
    p99: float
    max: float

    @classmethod
    def of(cls, values: List[float]) -> Optional['Figures']:
        """None: there are no values."""
        if not values:
            return None
        s = sorted(values)

        def rank(percent: int) -> float:
            return s[max(0, -(-len(s) * percent // 100) - 1)]
        return cls(len(s), sum(s) / len(s), rank(50), rank(99), s[-1])
