# SPDX-License-Identifier: MIT
"""libgpreempt, loaded when it is first needed, with the types of every call."""
from __future__ import annotations

import ctypes
import errno
from ctypes import (POINTER, c_bool, c_char_p, c_int, c_size_t, c_uint, c_uint32, c_uint64,
                    c_void_p)
from typing import Any, Dict, List, Optional, Tuple

from . import _abi, _places
from .errors import NoLibrary

_p = POINTER
_handle = c_void_p
_handles = _p(c_void_p)
_error = _p(_abi.Error)

# Name, without "gpreempt_", to what it returns and takes.
PROTOTYPES: Dict[str, Tuple[Any, List[Any]]] = {
    'get_error': (None, [_handle, _error]),
    'open': (c_int, [c_char_p, _handles, _error]),
    'ref': (_handle, [_handle]),
    'unref': (_handle, [_handle]),
    'backend': (c_char_p, [_handle]),
    'is_modelled': (c_bool, [_handle]),
    'abilities': (c_uint, [_handle]),
    'now_ns': (c_uint64, [_handle]),
    'wait': (c_int, [_handle, _p(_abi.PollFd), c_size_t, c_uint64]),
    'get_device_info': (c_int, [_handle, _p(_abi.DeviceInfo)]),
    'get_gpus': (c_int, [_handle, _p(_abi.Gpu), c_size_t]),
    'get_levels': (c_int, [_handle, _p(_abi.Level), c_size_t]),
    'self_test': (c_int, [_handle, c_uint32, _p(_abi.SelfTest)]),
    'get_hqd_status': (c_int, [_handle, _p(_abi.HqdStatus), c_size_t]),
    'list_processes': (c_int, [_handle, _p(_abi.ProcessInfo), c_size_t]),
    'list_pids': (c_int, [_handle, _p(_abi.pid_t), c_size_t]),
    'queue_type_name': (c_char_p, [_abi.enum_t]),
    'class_name': (c_char_p, [_abi.enum_t]),
    'get_all_queues': (c_int, [_handle, _p(_abi.QueueFilter), _p(_abi.Queue), c_size_t]),
    'find_idle_offline_queues': (c_int, [_handle, _p(_abi.Queue), c_size_t]),
    'attach': (c_int, [_handle, _abi.pid_t, c_uint, _handles]),
    'detach': (_handle, [_handle]),
    'process_pid': (_abi.pid_t, [_handle]),
    'process_fd': (c_int, [_handle]),
    'process_check': (c_int, [_handle]),
    'snapshot': (c_int, [_handle, _p(_abi.Queue), c_size_t, _p(c_uint64)]),
    'is_queue_active': (c_int, [_handle, c_uint32]),
    'suspend_queues': (c_int, [_handle, _p(c_uint32), c_size_t, _p(_abi.SuspendOptions),
                               _p(_abi.Timing)]),
    'resume_queues': (c_int, [_handle, _p(_abi.Timing)]),
    'held_queues': (c_int, [_handle, _p(c_uint32), c_size_t]),
    'batch_unmap_queues': (c_int, [_handles, c_size_t, _p(_abi.SuspendOptions)]),
    'fast_remap_queues': (c_int, [_handles, c_size_t]),
    'suspend_own': (c_int, [_handle, _p(_abi.OwnQueue), c_size_t, _p(_abi.SuspendOptions),
                            _p(_abi.Timing)]),
    'resume_own': (c_int, [_handle, _p(_abi.Timing)]),
    'keepalive': (c_int, [_handle]),
    'guard_fd': (c_int, [_handle]),
    'monitor_new': (c_int, [_handle, _handles]),
    'monitor_free': (_handle, [_handle]),
    'monitor_sample': (c_int, [_handle, _p(_p(_abi.Queue)), _p(c_uint64)]),
    'monitor_stats': (c_int, [_handle, _p(_abi.Stats)]),
    'release': (c_int, [_handle, _p(_abi.pid_t), c_size_t, _p(_abi.pid_t), c_size_t]),
    'stop_gpu': (c_int, [_handle, c_uint32, c_uint64]),
    'start_gpu': (c_int, [_handle, c_uint32]),
    'set_queue_policy': (c_int, [_handle, _abi.pid_t, c_uint32, c_uint32]),
    'set_hqd_reservation': (c_int, [_handle, c_uint32, c_uint32, c_uint32]),
    'hint': (c_int, [_handle, _abi.pid_t]),

    'hint_open': (_handle, [c_char_p, _error]),
    'hint_is_active': (c_bool, [_handle, _error]),
    'hint_now': (None, [_handle]),
    'hint_in': (None, [_handle, c_uint64]),
    'hint_for': (None, [_handle, c_uint64, c_uint64]),
    'hint_close': (_handle, [_handle]),
    'daemon_open': (c_int, [c_char_p, _handles, _error]),
    'daemon_close': (_handle, [_handle]),
    'daemon_get_error': (None, [_handle, _error]),
    'daemon_set_timeout': (None, [_handle, c_uint64]),
    'daemon_get_status': (c_int, [_handle, _p(_abi.DaemonStatus)]),
    'daemon_get_gpus': (c_int, [_handle, _p(_abi.DaemonGpu), c_size_t]),
    'daemon_get_jobs': (c_int, [_handle, _p(_abi.DaemonJob), c_size_t]),
    'daemon_get_trip': (c_int, [_handle, c_uint32, _p(c_void_p)]),
    'daemon_get_metrics': (c_int, [_handle, _p(c_void_p), _p(c_size_t)]),
    'daemon_get_policy': (c_int, [_handle, _p(_abi.Policy)]),
    'daemon_set_policy': (c_int, [_handle, c_char_p]),
    'daemon_set_class': (c_int, [_handle, c_char_p, _p(_abi.ClassRequest)]),
    'check_selector': (c_int, [c_char_p, _error]),
    'check_watch': (c_int, [_abi.pid_t, _error]),
    'daemon_hint': (c_int, [_handle, _abi.pid_t, c_uint64, c_uint64]),
    'daemon_pause': (c_int, [_handle]),
    'daemon_continue': (c_int, [_handle]),
    'daemon_rearm': (c_int, [_handle, c_uint32]),
    'daemon_release': (c_int, [_handle, _abi.pid_t]),
    'daemon_reload': (c_int, [_handle]),
    'event_name': (c_char_p, [_abi.enum_t]),
    'daemon_subscribe': (c_int, [_handle]),
    'daemon_fd': (c_int, [_handle]),
    'daemon_next_event': (c_int, [_handle, _p(_abi.Event)]),

    'kernel_on': (c_int, [_handle, c_uint32, _p(_abi.KernelOptions)]),
    'kernel_off': (c_int, [_handle, c_uint32]),
    'kernel_rearm': (c_int, [_handle, c_uint32]),
    'kernel_is_on': (c_int, [_handle]),
    'kernel_get_gpus': (c_int, [_handle, _p(_abi.KernelGpu), c_size_t]),
    'kernel_set_class': (c_int, [_handle, _abi.pid_t, _p(_abi.ClassRequest)]),
    'kernel_hint': (c_int, [_handle, _abi.pid_t, c_uint64, c_uint64]),

    'model_submit': (c_int, [_handle, _abi.pid_t, c_uint32, _p(_abi.ModelWork), _p(c_uint64)]),
    'model_get_queue': (c_int, [_handle, _abi.pid_t, c_uint32, _p(_abi.ModelQueue)]),
    'model_get_gpu': (c_int, [_handle, c_uint32, _p(_abi.ModelGpu)]),
    'model_get_packets': (c_int, [_handle, _abi.pid_t, c_uint32, c_uint64, _p(_abi.ModelPacket),
                                  c_size_t]),
}

_loaded: Optional[ctypes.CDLL] = None


def _open() -> ctypes.CDLL:
    tried = _places.libraries()
    why: List[str] = []
    for path in tried:
        try:
            return ctypes.CDLL(path)
        except OSError as e:
            why.append(str(e))
    raise NoLibrary(f'cannot load libgpreempt: {why[-1]}',
                    'install libgpreempt0, or name the file in GPREEMPT_LIBRARY', errno.ENOENT)


def lib() -> ctypes.CDLL:
    """The library. NoLibrary where there is none."""
    global _loaded  # pylint: disable=global-statement
    if _loaded is None:
        found = _open()
        for name, (result, arguments) in PROTOTYPES.items():
            try:
                call = getattr(found, 'gpreempt_' + name)
            except AttributeError:
                raise NoLibrary(f'{found._name} has no gpreempt_{name}',
                                'this package needs the library of the same version',
                                errno.ENOSYS) from None
            call.restype, call.argtypes = result, arguments
        _loaded = found
    return _loaded


def where() -> str:
    """The file that was loaded."""
    return str(lib()._name)
