# SPDX-License-Identifier: MIT
"""The packets of abi/device_wire.h; a test compares them with the header."""
from __future__ import annotations

from ctypes import c_char, c_int32, c_uint16, c_uint32, c_uint64

from ._abi import Struct

MAGIC, VERSION, MAX_BYTES, MAX_PENDING = 0x44504d47, 2, 256, 64
PAGES_VA, PAGES_BYTES = 0x7e9000000000, 1 << 22
HELLO, QUEUE, SUBMIT, STATS = range(1, 5)
ERROR = 64
WORK_BARRIER = 1 << 0


class Header(Struct):
    c_name = 'device_header'
    _fields_ = [('magic', c_uint32), ('version', c_uint16), ('type', c_uint16),
                ('bytes', c_uint32), ('seq', c_uint32)]


class Welcome(Struct):
    c_name = 'device_welcome'
    _fields_ = [('h', Header), ('now_ns', c_uint64), ('gpus', c_uint32), ('cus', c_uint32),
                ('chip', c_char * 32)]


class Queue(Struct):
    c_name = 'device_queue'
    _fields_ = [('h', Header), ('gpu', c_uint32), ('priority', c_uint32), ('queue', c_uint32),
                ('gpu_id', c_uint32), ('write_ptr', c_uint64)]


class Submit(Struct):
    c_name = 'device_submit'
    _fields_ = [('h', Header), ('queue', c_uint32), ('flags', c_uint32),
                ('workgroups', c_uint32), ('per_cu', c_uint32), ('wg_ns', c_uint64)]


class Done(Struct):
    c_name = 'device_done'
    _fields_ = [('h', Header), ('queue', c_uint32), ('saves', c_uint32), ('index', c_uint64),
                ('submitted_ns', c_uint64), ('started_ns', c_uint64), ('done_ns', c_uint64),
                ('executed_ns', c_uint64), ('workgroups', c_uint32), ('finished', c_uint32)]


class Stats(Struct):
    c_name = 'device_stats'
    _fields_ = [('h', Header), ('queue', c_uint32), ('suspended', c_uint32),
                ('completed', c_uint64), ('resident', c_uint64), ('saved', c_uint64)]


class Error(Struct):
    c_name = 'device_error'
    _fields_ = [('h', Header), ('error', c_int32), ('pad', c_uint32), ('message', c_char * 128)]
