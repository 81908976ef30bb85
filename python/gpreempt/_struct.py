# SPDX-License-Identifier: MIT
"""What the structs of C are made of here."""
from __future__ import annotations

import ctypes
from ctypes import Structure, c_int, c_uint
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


class PollFd(Struct):
    c_name = 'pollfd'
    _fields_ = [('fd', c_int), ('events', ctypes.c_short), ('revents', ctypes.c_short)]
