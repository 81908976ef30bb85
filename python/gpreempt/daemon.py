# SPDX-License-Identifier: MIT
"""Talking to gpreemptd, which decides by itself who waits for whom; and hints for it."""
from __future__ import annotations

import ctypes
import os
import select
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, make_dataclass
from typing import Any, Iterator, List, Optional, Tuple, Type, Union

from . import _abi
from ._lib import lib
from ._owned import Owned
from .errors import Error, check_ns, check_number, check_pid, decode, from_info, usage
from .records import class_name, class_number

_HINT_S = 1.0  # the furthest ahead, and the longest, that counts


@dataclass(frozen=True)
class Latency:
    count: int  # 0: nothing was measured yet
    p50_us: float
    p99_us: float
    max_us: float

    @classmethod
    def of(cls, c: _abi.Latency) -> 'Latency':
        return cls(c.count, c.p50_ns / 1000, c.p99_ns / 1000, c.max_ns / 1000)


@dataclass(frozen=True)
class Policy:
    name: str
    names: Tuple[str, ...]  # all there are


def _type_of(name: str, ctype: Any) -> Any:
    if name in _NAMED or hasattr(ctype, 'value') and issubclass(ctype, ctypes.Array):
        return str
    if ctype is _abi.Latency:
        return Latency
    if issubclass(ctype, ctypes.Array):
        return Tuple[int, ...]
    return bool if ctype is ctypes.c_bool else int


def _dataclass(name: str, struct: Type[_abi.Struct], doc: str) -> Any:
    """With the fields of a struct, which gpreempt/daemon.h explains."""
    fields = [(field, _type_of(field, ctype)) for field, ctype in struct._fields_[1:]]
    return make_dataclass(name, fields, frozen=True,
                          namespace={'__doc__': doc, '__module__': __name__})


def _event_name(number: int) -> str:
    return decode(lib().gpreempt_event_name(number))


_NAMED = {'job_class': class_name, 'kind': _event_name}  # numbers in C

DaemonStatus = _dataclass('DaemonStatus', _abi.DaemonStatus, 'What the daemon says of itself.')
DaemonGpu = _dataclass('DaemonGpu', _abi.DaemonGpu, 'A GPU, as the daemon sees it.')
Job = _dataclass('Job', _abi.DaemonJob, 'A process on one GPU, as the daemon sees it.')
Event = _dataclass('Event', _abi.Event, 'What happened.')


def _record(kind: Type[Any], c: Any) -> Any:
    """A dataclass with the fields of a struct of the same names."""
    values = {}
    for field in kind.__dataclass_fields__:
        value = getattr(c, field)
        if isinstance(value, bytes):
            value = decode(value)
        elif isinstance(value, _abi.Latency):
            value = Latency.of(value)
        elif isinstance(value, ctypes.Array):
            value = tuple(value)
        elif field in _NAMED:
            value = _NAMED[field](value)
        values[field] = value
    return kind(**values)


def class_request(job_class: str, priority: Optional[int], critical: bool, lazy: bool = False,
                  target_us: int = 0) -> _abi.ClassRequest:
    return _abi.ClassRequest(
        job_class=class_number(job_class), critical=bool(critical), lazy=bool(lazy),
        priority=-1 if priority is None else check_number('a priority', priority, 0, 255),
        target_us=check_number('a target', target_us, 0, 2**63))


def _path(path: Optional[str]) -> Optional[bytes]:
    if path is None:
        return None
    encoded = os.fsencode(path)
    if b'\0' in encoded:
        raise usage(f'{path!r} cannot be a socket')
    return encoded


class _Connection(Owned):
    """A connection, which any thread may use; calls take turns."""

    def __init__(self, path: Optional[str] = None) -> None:
        self._lock = threading.RLock()
        self._owner = os.getpid()
        self.path = path
        out, info = ctypes.c_void_p(), _abi.Error()
        result = lib().gpreempt_daemon_open(_path(path), ctypes.byref(out), ctypes.byref(info))
        if result < 0:
            raise from_info(info, result, of_daemon=True)
        self._handle = out.value

    def _use(self) -> int:
        if self._handle is None:
            raise usage('the connection is closed', 'connect again')
        if self._owner != os.getpid():
            raise usage('the connection was made by the parent of this process',
                        'connect again after a fork')
        return self._handle

    def _call(self, name: str, *args: Any) -> int:
        with self._lock:
            result = int(getattr(lib(), 'gpreempt_daemon_' + name)(self._use(), *args))
            if result >= 0:
                return result
            info = _abi.Error()
            lib().gpreempt_daemon_get_error(self._use(), ctypes.byref(info))
        raise from_info(info, result)

    def close(self) -> None:
        """May be called twice."""
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                lib().gpreempt_daemon_close(handle)

    def fileno(self) -> int:
        """For select and poll."""
        with self._lock:
            return int(lib().gpreempt_daemon_fd(self._use()))


class Daemon(_Connection):
    """A connection to gpreemptd. NoDaemon where there is none; after NoDaemon connect again.

    path: of its control socket; None: what GPREEMPT_SOCKET names, else the usual places.
    """

    def set_timeout(self, seconds: Optional[float]) -> None:
        """How long an answer may take; None: five seconds, to pause twenty."""
        with self._lock:
            lib().gpreempt_daemon_set_timeout(self._use(), check_ns('a timeout', seconds))

    # ---- what it knows ----

    def status(self) -> DaemonStatus:
        out = _abi.DaemonStatus()
        self._call('get_status', ctypes.byref(out))
        status: DaemonStatus = _record(DaemonStatus, out)
        return status

    def _list(self, kind: Type[_abi.Struct], name: str) -> List[Any]:
        room = 64
        while True:
            out = (kind * room)()
            out[0].size = ctypes.sizeof(kind)
            there = self._call(name, out, room)
            if there <= room:
                return list(out[:there])
            room = there + 16  # some may come meanwhile

    def gpus(self) -> List[DaemonGpu]:
        return [_record(DaemonGpu, g) for g in self._list(_abi.DaemonGpu, 'get_gpus')]

    def jobs(self) -> List[Job]:
        return [_record(Job, j) for j in self._list(_abi.DaemonJob, 'get_jobs')]

    def trip(self, gpu_id: int) -> str:
        """What happened when that GPU tripped; AbsentError: it has not."""
        text = ctypes.c_void_p()
        self._call('get_trip', gpu_id, ctypes.byref(text))
        try:
            return decode(ctypes.string_at(text.value or 0))
        finally:
            _free(text)

    def metrics(self) -> str:
        """Everything counted, as Prometheus text."""
        text, size = ctypes.c_void_p(), ctypes.c_size_t()
        self._call('get_metrics', ctypes.byref(text), ctypes.byref(size))
        try:
            return decode(ctypes.string_at(text.value or 0, size.value) if size.value else b'')
        finally:
            _free(text)

    def policy(self) -> Policy:
        out = _abi.Policy()
        self._call('get_policy', ctypes.byref(out))
        return Policy(decode(out.name), tuple(decode(out.names).split()))

    # ---- what can be asked of it ----

    def set_policy(self, name: str) -> None:
        """From its next decision on; ends no hold by itself."""
        self._call('set_policy', _word('a policy', name))

    def set_class(self, selector: Union[int, str], job_class: str, *,
                  priority: Optional[int] = None, critical: bool = False, lazy: bool = False,
                  target_us: int = 0) -> int:
        """Classes jobs, those there are and those to come; how many processes were classed now.

        selector: a pid (and its descendants), 'cgroup:PATH', 'name:GLOB', or 12 or more leading
        digits of a container id. job_class: online, offline, or default, which forgets what was
        asked with that selector.
        """
        withdraw = job_class == 'default'
        if job_class not in ('online', 'offline', 'default'):
            raise usage(f'a class is online, offline or default, not {job_class!r}')
        request = class_request('online' if withdraw else job_class, priority, critical, lazy,
                                target_us)
        request.withdraw = withdraw
        word = str(check_pid(selector)) if not isinstance(selector, str) else selector
        return self._call('set_class', _word('a selector', word), ctypes.byref(request))

    def hint(self, pid: int = 0, ahead: float = 0, lasts: float = 0) -> None:
        """Work of a process (0: of the caller) comes in so many seconds, and takes so many."""
        self._call('hint', check_number('a pid', pid, 0, 2**31 - 1),
                   check_ns('ahead', ahead, _HINT_S), check_ns('lasts', lasts, _HINT_S))

    def pause(self) -> None:
        """Lets go of every device, and returns when that is done."""
        self._call('pause')

    def continue_(self) -> None:
        self._call('continue')

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Paused while a with statement runs."""
        self.pause()
        try:
            yield
        finally:
            self.continue_()

    def rearm(self, gpu_id: int) -> None:
        """Clears what tripped a GPU."""
        self._call('rearm', check_number('a GPU id', gpu_id, 0, 2**32 - 1))

    def release(self, pid: Optional[int] = None) -> int:
        """Ends its holds on a process (None: on all); how many there were."""
        return self._call('release', 0 if pid is None else check_pid(pid))

    def reload(self) -> None:
        """Reads the configuration again; one with a mistake changes nothing."""
        self._call('reload')

    def events(self, timeout: Optional[float] = None) -> 'Events':
        """What happens from here on, on a connection of its own."""
        return Events(self.path, timeout)


class Events(_Connection):
    """An iterator over what happens. It ends after timeout seconds of silence (None: never), and
    with NoDaemon when the daemon has gone."""

    def __init__(self, path: Optional[str] = None, timeout: Optional[float] = None) -> None:
        super().__init__(path)
        check_ns('a timeout', timeout)
        self.timeout = timeout
        self._call('subscribe')

    def __iter__(self) -> 'Events':
        return self

    def __next__(self) -> Event:
        event = self.next(self.timeout)
        if event is None:
            raise StopIteration
        return event

    def next(self, timeout: Optional[float] = None) -> Optional[Event]:
        """The next event; None: there was none for so many seconds (0: there is none now)."""
        check_ns('a timeout', timeout)
        until = None if timeout is None else time.monotonic() + timeout
        out = _abi.Event()
        while not self._call('next_event', ctypes.byref(out)):
            left = None if until is None else max(until - time.monotonic(), 0)
            if not select.select([self], [], [], left)[0]:
                return None
        return _record(Event, out)


class _Open:
    """What is open stays so while any thread uses it."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        lib().gpreempt_hint_close(self.number)


class Hint(Owned):
    """A page shared with the daemon, for a program whose work must not wait.

    Made at any time; it takes some milliseconds at most. Where there is no page yet (the process
    is not known or not online, or there is no daemon) it comes by itself when it is so: calls see
    to it, and wait for nothing. Until then active is False, error says why, and hints are dropped.
    """

    def __init__(self, path: Optional[str] = None) -> None:
        info = _abi.Error()
        number = lib().gpreempt_hint_open(_path(path), ctypes.byref(info))
        if number is None:
            raise from_info(info, of_daemon=True)
        self._open: Optional[_Open] = _Open(number)

    def _look(self, info: _abi.Error) -> bool:
        held = self._open
        return held is not None and bool(
            lib().gpreempt_hint_is_active(held.number, ctypes.byref(info)))

    @property
    def active(self) -> bool:
        """Whether hints reach a daemon."""
        return self._look(_abi.Error())

    @property
    def error(self) -> Optional[Error]:
        """Why they do not; None: they do, or it is closed."""
        info = _abi.Error()
        if self._look(info) or self._open is None:
            return None
        return from_info(info, of_daemon=True)

    def now(self) -> None:
        """Just before work is submitted; once it is active, this makes no system call."""
        held = self._open
        if held is not None:
            lib().gpreempt_hint_now(held.number)

    def soon(self, ahead: float, lasts: float = 0) -> None:
        """Work comes in so many seconds and takes so many (0: not known)."""
        times = check_ns('ahead', ahead, _HINT_S), check_ns('lasts', lasts, _HINT_S)
        held = self._open
        if held is not None:
            lib().gpreempt_hint_for(held.number, *times)

    def close(self) -> None:
        self._open = None


def check_selector(selector: str) -> None:
    """UsageError where a selector makes no sense."""
    info = _abi.Error()
    result = lib().gpreempt_check_selector(_word('a selector', selector), ctypes.byref(info))
    if result < 0:
        raise from_info(info, result)


def check_watch(daemon: int = 0) -> None:
    """Error where the daemon, a pid, or else one run by its unit, could not be told at once of work
    that nobody announces."""
    info = _abi.Error()
    pid = check_number('a pid', daemon, 0, 2**31 - 1)
    result = lib().gpreempt_check_watch(pid, ctypes.byref(info))
    if result < 0:
        raise from_info(info, result)


def _word(what: str, value: str) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f'{what} is a string, not {value!r}')
    encoded = os.fsencode(value)
    if b'\0' in encoded:
        raise usage(f'{what} has no such letters: {value!r}')
    return encoded


def _free(text: ctypes.c_void_p) -> None:
    """What C allocated is C's to free."""
    free = ctypes.CDLL(None).free
    free.argtypes, free.restype = [ctypes.c_void_p], None
    free(text)


__all__ = ['Daemon', 'DaemonGpu', 'DaemonStatus', 'Event', 'Events', 'Hint', 'Job', 'Latency',
           'Policy', 'check_selector']
