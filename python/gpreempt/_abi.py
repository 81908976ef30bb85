# SPDX-License-Identifier: MIT
"""The structs and numbers of libgpreempt's headers; a test compares every one with the headers."""
from __future__ import annotations

import ctypes
from ctypes import (POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_int, c_size_t,
                    c_ubyte, c_uint, c_uint32, c_uint64)
from typing import Any, ClassVar

pid_t = c_int
uid_t = c_uint
enum_t = c_uint


class Struct(Structure):
    """Named as in C; most begin with their size, so that they can grow."""
    c_name = ''
    _fields_: ClassVar[Any]

    def __init__(self, **fields: Any) -> None:
        if self._fields_[0][0] == 'size':
            fields.setdefault('size', ctypes.sizeof(type(self)))
        super().__init__(**fields)


# ---- gpreempt.h ----

ERROR_NONE, ERROR_FAILED, ERROR_USAGE, ERROR_ABSENT, ERROR_REFUSED = range(5)

DEVICE_VERSION, DEVICE_YAMA, DEVICE_DRIVER, DEVICE_SECURE_BOOT, DEVICE_LOCKDOWN = (
    1 << n for n in range(5))

(GPU_XCC, GPU_CU, GPU_HQD_TOTAL, GPU_SCHEDULER, GPU_GFX, GPU_CWSR, GPU_FIRMWARE, GPU_PCI, GPU_UUID,
 GPU_MIG) = (1 << n for n in range(10))

(HQD_TOTAL, HQD_ACTIVE, HQD_RESERVED, HQD_OFFLINE, HQD_QUEUES,
 HQD_HELD) = (1 << n for n in range(6))

CLASS_UNKNOWN, CLASS_ONLINE, CLASS_OFFLINE = range(3)

PROC_VRAM, PROC_COMM = 1 << 0, 1 << 1
MAX_GPUS = 64

(QUEUE_RING_BASE, QUEUE_POINTERS, QUEUE_CWSR_BASE, QUEUE_CWSR_BYTES, QUEUE_PRIORITY, QUEUE_PENDING,
 QUEUE_STATE, QUEUE_EXCEPTIONS, QUEUE_INDICES, QUEUE_CHANNELS,
 QUEUE_SLICE) = (1 << n for n in range(11))

ALL_QUEUES = 2**32 - 1
POLICY_LAZY, POLICY_AUTO_DEACTIVATE, POLICY_PREEMPTIBLE = (1 << n for n in range(3))

ATTACH_LOOK_ONLY, ATTACH_PAUSE, ATTACH_DEBUG = (1 << n for n in range(3))
GRACE_MIN, GRACE_MAX = 1, 255


class ErrorInfo(Struct):
    c_name = 'gpreempt_error'
    _fields_ = [('size', c_size_t), ('kind', enum_t), ('error', c_int), ('message', c_char * 256),
                ('hint', c_char * 256)]


class DeviceInfo(Struct):
    c_name = 'gpreempt_device_info'
    _fields_ = [('size', c_size_t), ('valid', c_uint64), ('backend', c_char * 16),
                ('name', c_char * 64), ('kfd_major', c_uint32), ('kfd_minor', c_uint32),
                ('yama_scope', c_uint32), ('debugfs', c_bool), ('global_pids', c_bool),
                ('hidden_gpus', c_uint32), ('driver_version', c_char * 64), ('emulated', c_bool),
                ('module', c_char * 16), ('secure_boot', c_bool), ('lockdown', c_char * 20),
                ('signed_modules_only', c_bool), ('blind', c_char * 128),
                ('freezer', c_char * 128)]


class Gpu(Struct):
    c_name = 'gpreempt_gpu'
    _fields_ = [('size', c_size_t), ('valid', c_uint64), ('index', c_uint32), ('gpu_id', c_uint32),
                ('name', c_char * 64), ('gfx', c_char * 16), ('scheduler', c_char * 16),
                ('xcc', c_uint32), ('cu', c_uint32), ('hqd_total', c_uint32),
                ('cwsr_bytes', c_uint64), ('fw_version', c_uint32), ('pci', c_char * 16),
                ('uuid', c_char * 48), ('mig', c_bool)]


class Level(Struct):
    c_name = 'gpreempt_level'
    _fields_ = [('size', c_size_t), ('level', c_char * 8), ('available', c_bool),
                ('reason', c_char * 192)]


class SelfTest(Struct):
    c_name = 'gpreempt_self_test'
    _fields_ = [('size', c_size_t), ('suspend_ns', c_uint64), ('frozen_ns', c_uint64),
                ('resume_ns', c_uint64), ('running_ns', c_uint64)]


class HqdStatus(Struct):
    c_name = 'gpreempt_hqd_status'
    _fields_ = [('size', c_size_t), ('valid', c_uint64), ('gpu_id', c_uint32),
                ('queues', c_uint32), ('total', c_uint32), ('active', c_uint32),
                ('free', c_uint32), ('online_reserved', c_uint32), ('offline_used', c_uint32),
                ('held', c_uint32), ('stopped', c_bool)]


class ProcessInfo(Struct):
    c_name = 'gpreempt_process_info'
    _fields_ = [('size', c_size_t), ('valid', c_uint64), ('pid', pid_t), ('uid', uid_t),
                ('comm', c_char * 16), ('state', c_char * 16), ('job_class', enum_t),
                ('queues', c_uint32), ('gpus', c_uint32 * MAX_GPUS), ('n_gpus', c_uint32),
                ('tracer_pid', pid_t), ('vram_bytes', c_uint64), ('hidden', c_bool)]


class Queue(Struct):
    c_name = 'gpreempt_queue'
    _fields_ = [('size', c_size_t), ('valid', c_uint64), ('pid', pid_t), ('queue_id', c_uint32),
                ('gpu_id', c_uint32), ('type', enum_t), ('job_class', enum_t),
                ('priority', c_uint32), ('ring_base', c_uint64), ('ring_bytes', c_uint64),
                ('read_ptr_addr', c_uint64), ('write_ptr_addr', c_uint64),
                ('read_index', c_uint64), ('write_index', c_uint64), ('cwsr_base', c_uint64),
                ('cwsr_bytes', c_uint64), ('exceptions', c_uint64), ('pending', c_uint64),
                ('state', c_char * 16), ('channels', c_uint32), ('slice_us', c_uint64)]


class QueueFilter(Struct):
    c_name = 'gpreempt_queue_filter'
    _fields_ = [('size', c_size_t), ('job_class', enum_t), ('min_priority', c_int),
                ('max_priority', c_int)]


class SuspendOptions(Struct):
    c_name = 'gpreempt_suspend_options'
    _fields_ = [('size', c_size_t), ('grace_kclk', c_uint32), ('longest_ns', c_uint64),
                ('want_saved', c_bool)]


class Timing(Struct):
    c_name = 'gpreempt_timing'
    _fields_ = [('size', c_size_t), ('call_ns', c_uint64), ('queues', c_uint32),
                ('has_saved', c_bool), ('saved_bytes', c_uint64), ('has_save_ns', c_bool),
                ('save_ns', c_uint64)]


class OwnQueue(Struct):
    c_name = 'gpreempt_own_queue'
    _fields_ = [('size', c_size_t), ('queue_id', c_uint32), ('priority', c_uint32),
                ('ring_base', c_uint64), ('ring_bytes', c_uint64)]


class Count(Struct):
    c_name = 'gpreempt_count'
    _fields_ = [('key', c_uint32), ('count', c_uint64)]


class Stats(Struct):
    c_name = 'gpreempt_stats'
    _fields_ = [('size', c_size_t), ('samples', c_uint64), ('min', c_uint32), ('max', c_uint32),
                ('avg', c_double), ('stable', c_bool), ('n_ids', c_size_t), ('n_gpus', c_size_t),
                ('n_types', c_size_t), ('ids', POINTER(Count)), ('gpus', POINTER(Count)),
                ('types', POINTER(Count)), ('advice', c_char * 256)]


class PollFd(Struct):
    c_name = 'pollfd'
    _fields_ = [('fd', c_int), ('events', ctypes.c_short), ('revents', ctypes.c_short)]


# ---- daemon.h ----

JOB_HISTORY = 14


class Latency(Struct):
    c_name = 'gpreempt_latency'
    _fields_ = [('count', c_uint64), ('p50_ns', c_uint64), ('p99_ns', c_uint64),
                ('max_ns', c_uint64)]


class DaemonStatus(Struct):
    c_name = 'gpreempt_daemon_status'
    _fields_ = [('size', c_size_t), ('pid', pid_t), ('paused', c_bool), ('modelled', c_bool),
                ('privileged', c_bool), ('guarded', c_bool), ('started_ns', c_uint64),
                ('now_ns', c_uint64), ('gpus', c_uint32), ('processes', c_uint32),
                ('jobs', c_uint32), ('queues', c_uint32), ('online', c_uint32),
                ('offline', c_uint32), ('held', c_uint32), ('attached', c_uint32),
                ('preemptions', c_uint64), ('trips', c_uint64), ('inversions', c_uint64),
                ('resolved', c_uint64), ('hints', c_uint64), ('hints_refused', c_uint64),
                ('detection', Latency), ('suspend', Latency), ('resume', Latency),
                ('steps', c_uint64), ('policy', c_char * 16), ('backend', c_char * 16),
                ('version', c_char * 32), ('config', c_char * 128), ('level', c_char * 4),
                ('kernel', c_bool), ('blind', c_char * 128)]


class DaemonGpu(Struct):
    c_name = 'gpreempt_daemon_gpu'
    _fields_ = [('size', c_size_t), ('gpu_id', c_uint32), ('tripped', c_bool),
                ('slots', c_uint32), ('slots_online', c_uint32), ('slots_offline', c_uint32),
                ('slots_reserved', c_uint32), ('cycles', c_uint64),
                ('denied_by_budget', c_uint64), ('denied_by_cost', c_uint64),
                ('trips', c_uint64), ('name', c_char * 64), ('tripped_by', c_char * 128)]


class DaemonJob(Struct):
    c_name = 'gpreempt_daemon_job'
    _fields_ = [('size', c_size_t), ('pid', pid_t), ('uid', uid_t), ('gpu_id', c_uint32),
                ('job_class', enum_t), ('priority', c_uint32), ('critical', c_bool),
                ('attached', c_bool), ('held', c_bool), ('working', c_bool), ('waiting', c_bool),
                ('refused', c_bool), ('unseen', c_bool), ('blind', c_bool),
                ('queues', c_uint32),
                ('comm', c_char * 16), ('detailed', c_bool), ('started_ns', c_uint64),
                ('preempted', c_uint64), ('made_room', c_uint64), ('held_ns', c_uint64),
                ('ran_ns', c_uint64), ('longest_wait_ns', c_uint64), ('stolen_ns', c_uint64),
                ('detect_ns', c_uint64), ('target_us', c_uint64), ('because', pid_t),
                ('gang', c_uint32), ('share_permille', c_uint32),
                ('history', c_ubyte * JOB_HISTORY), ('source', c_char * 32),
                ('container', c_char * 64), ('why', c_char * 96)]


class PolicyInfo(Struct):
    c_name = 'gpreempt_policy'
    _fields_ = [('size', c_size_t), ('name', c_char * 16), ('names', c_char * 112)]


class ClassRequest(Struct):
    c_name = 'gpreempt_class_request'
    _fields_ = [('size', c_size_t), ('job_class', enum_t), ('priority', c_int),
                ('critical', c_bool), ('lazy', c_bool), ('target_us', c_uint64),
                ('withdraw', c_bool)]


class Event(Struct):
    c_name = 'gpreempt_event'
    _fields_ = [('size', c_size_t), ('time_ns', c_uint64), ('kind', enum_t), ('gpu_id', c_uint32),
                ('pid', pid_t), ('other_pid', pid_t), ('uid', uid_t), ('job_class', enum_t),
                ('duration_ns', c_uint64), ('count', c_uint64), ('comm', c_char * 16),
                ('text', c_char * 128)]


# ---- kernel.h ----

ALL_GPUS = 2**32 - 1

(KERNEL_SLOTS, KERNEL_POLICY, KERNEL_INTERVALS, KERNEL_TURN, KERNEL_HOLD_MAX, KERNEL_RESERVED,
 KERNEL_LOOKS, KERNEL_ACTIONS, KERNEL_JOBS) = (1 << n for n in range(9))


class KernelOptions(Struct):
    c_name = 'gpreempt_kernel_options'
    _fields_ = [('size', c_size_t), ('policy', c_char_p), ('interval_us', c_uint32),
                ('critical_interval_us', c_uint32), ('turn_ms', c_uint32),
                ('hold_max_ms', c_uint32), ('reserve', c_bool), ('online_percent', c_uint32),
                ('offline_percent', c_uint32)]


class KernelGpu(Struct):
    c_name = 'gpreempt_kernel_gpu'
    _fields_ = [('size', c_size_t), ('valid', c_uint64), ('gpu_id', c_uint32), ('on', c_bool),
                ('tripped', c_bool), ('policy', c_char * 20), ('slots', c_uint32),
                ('queues', c_uint32), ('held_queues', c_uint32), ('interval_us', c_uint32),
                ('critical_interval_us', c_uint32), ('turn_ms', c_uint32),
                ('hold_max_ms', c_uint32), ('online_permille', c_uint32),
                ('offline_permille', c_uint32), ('online', c_uint32), ('offline', c_uint32),
                ('held', c_uint32), ('looks', c_uint64), ('busy_ns', c_uint64),
                ('holds', c_uint64), ('resumes', c_uint64), ('failures', c_uint64)]


# ---- model.h ----

class ModelWork(Struct):
    c_name = 'gpreempt_model_work'
    _fields_ = [('size', c_size_t), ('workgroups', c_uint32), ('wg_per_cu', c_uint32),
                ('wg_ns', c_uint64)]


class ModelQueue(Struct):
    c_name = 'gpreempt_model_queue'
    _fields_ = [('size', c_size_t), ('completed', c_uint64), ('resident', c_uint64),
                ('saved', c_uint64), ('suspended', c_bool)]


class ModelGpu(Struct):
    c_name = 'gpreempt_model_gpu'
    _fields_ = [('size', c_size_t), ('cycles', c_uint64), ('saved_bytes', c_uint64),
                ('save_ns', c_uint64)]


class ModelPacket(Struct):
    c_name = 'gpreempt_model_packet'
    _fields_ = [('size', c_size_t), ('index', c_uint64), ('submitted_ns', c_uint64),
                ('started_ns', c_uint64), ('done_ns', c_uint64), ('executed_ns', c_uint64),
                ('workgroups', c_uint32), ('finished', c_uint32), ('saves', c_uint32)]
