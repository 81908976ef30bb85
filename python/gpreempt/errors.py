# SPDX-License-Identifier: MIT
"""What goes wrong: one class for each exit status of gpreempt(1), and a few for common causes."""
from __future__ import annotations

import errno as numbers
from typing import Dict, Optional, Type

from . import _abi


class Error(OSError):
    """Anything libgpreempt or gpreemptd says no to.

    errno: the number, positive; 0 where there is none.
    code: as an exit status: 1 failed, 2 usage, 3 absent, 4 refused.
    message, hint: a line for people, and what to do about it, which may be empty.
    """
    code: int = _abi.ERROR_FAILED

    def __init__(self, message: str, hint: str = '', errno: int = 0) -> None:
        super().__init__(errno, message)
        self.errno = errno
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f'{self.message} ({self.hint})' if self.hint else self.message

    def __reduce__(self) -> 'tuple[type, tuple[str, str, int]]':
        return type(self), (self.message, self.hint, self.errno)


class FailedError(Error):
    """It was tried, and did not work."""
    code = _abi.ERROR_FAILED


class UsageError(Error, ValueError):
    """The call makes no sense."""
    code = _abi.ERROR_USAGE


class AbsentError(Error, LookupError):
    """No such device, daemon, process or queue."""
    code = _abi.ERROR_ABSENT


class RefusedError(Error, PermissionError):
    """Rights, policy, or somebody else holds or debugs it."""
    code = _abi.ERROR_REFUSED


class NoLibrary(AbsentError):
    """libgpreempt.so.0 is not to be found."""


class NoDaemon(AbsentError):
    """gpreemptd is not running, or has gone."""


class NotSupported(RefusedError):
    """This driver or device cannot do it."""


class TimedOut(FailedError, TimeoutError):
    """No answer in time."""


_by_code: Dict[int, Type[Error]] = {
    _abi.ERROR_FAILED: FailedError,
    _abi.ERROR_USAGE: UsageError,
    _abi.ERROR_ABSENT: AbsentError,
    _abi.ERROR_REFUSED: RefusedError,
}
_by_errno: Dict[int, Type[Error]] = {
    numbers.EOPNOTSUPP: NotSupported,
    numbers.ETIMEDOUT: TimedOut,
    numbers.ECONNRESET: NoDaemon,
}


def from_info(info: _abi.Error, result: int = 0, of_daemon: bool = False) -> Error:
    """The exception for what C left in *info; result is what the call returned."""
    number = -(info.error or result)
    kind = _by_errno.get(number, _by_code.get(info.kind, FailedError))
    if of_daemon and kind is AbsentError and number in (numbers.ENOENT, numbers.ECONNREFUSED):
        kind = NoDaemon
    message = decode(info.message) or f'failed with error {number}'
    return kind(message, decode(info.hint), max(number, 0))


def decode(text: bytes) -> str:
    """What C holds for people; a name of a process may be any bytes."""
    return text.decode('utf-8', 'replace')


def usage(message: str, hint: str = '') -> UsageError:
    return UsageError(message, hint, numbers.EINVAL)


def check_number(what: str, value: object, least: int, most: int) -> int:
    """The value, if it is a whole number in that range: C would take the rest of a division."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f'{what} must be a whole number, not {value!r}')
    if not least <= value <= most:
        raise usage(f'{what} is {least} to {most}, not {value}')
    return value


def check_pid(pid: object) -> int:
    return check_number('a pid', pid, 1, 2**31 - 1)


def check_ns(what: str, seconds: Optional[float], most_s: float = 1e9) -> int:
    """Seconds as nanoseconds; None is 0."""
    if seconds is None:
        return 0
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f'{what} must be seconds, not {seconds!r}')
    if not 0 <= seconds <= most_s:
        raise usage(f'{what} is 0 to {most_s:g} seconds, not {seconds}')
    return int(seconds * 1e9)
