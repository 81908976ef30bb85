# SPDX-License-Identifier: MIT
"""A gpreemptd of one's own, in a private folder, for tests, demonstrations and notebooks."""
from __future__ import annotations

import ctypes
import errno
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from typing import IO, List, Optional

from . import _places
from .daemon import Daemon
from .errors import AbsentError, Error, FailedError, usage

_START_S = 30.0  # for the daemon to be ready
_STOP_S = 10.0  # to end when asked
_PR_SET_PDEATHSIG = 1

# Nobody waits until an offline job is known for a while: what is tried here is over soon.
QUICK = '[hold]\nattach_age = 0s\n'


_prctl = ctypes.CDLL(None).prctl  # looked up here: a forked child should not have to


def die_with_parent() -> None:
    """In a child, before its program: it is asked to end when the thread that made it has."""
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)


def _place() -> Optional[str]:
    """Where folders for sockets are made, whose paths have 107 bytes at most. None: as usual."""
    return '/tmp' if len(os.fsencode(tempfile.gettempdir())) > 64 else None


class Server:
    """Runs gpreemptd on a device until it is closed; ready when it is made.

    socket is its control socket, and beside it lies device_socket, where programs get queues on a
    software device. The folder goes with it, even when this process is killed.
    """

    def __init__(self, device: str = 'model', config: str = QUICK,
                 program: Optional[str] = None) -> None:
        self._closed = False
        self._process: Optional['subprocess.Popen[bytes]'] = None
        self._janitor: Optional['subprocess.Popen[bytes]'] = None
        self._log: Optional[IO[bytes]] = None
        found = program or _places.program('gpreemptd')
        if not found:
            raise AbsentError('gpreemptd is not to be found',
                              'install gpreempt, or name the program in GPREEMPTD', errno.ENOENT)
        if not isinstance(device, str) or '\0' in device:
            raise usage(f'no such device {device!r}')
        self.folder = tempfile.mkdtemp(prefix='gpreempt-', dir=_place())
        self.run_dir = os.path.join(self.folder, 'run')
        self.socket = os.path.join(self.run_dir, 'control.sock')
        self.device_socket = os.path.join(self.run_dir, 'device.sock')
        try:
            self._start(found, device, config)
        except OSError as e:
            self.close()
            if isinstance(e, Error):
                raise
            raise AbsentError(f'cannot run {found}: {os.strerror(e.errno or 0)}',
                              'install gpreempt, or name the program in GPREEMPTD',
                              e.errno or 0) from None
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def connect(self) -> Daemon:
        return Daemon(self.socket)

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log(self) -> str:
        """What it has said."""
        with open(os.path.join(self.folder, 'log'), encoding='utf-8', errors='replace') as f:
            return f.read()

    def close(self) -> None:
        """Asks it to end, which lets go of everything, and removes the folder."""
        if self._closed:
            return
        self._closed = True
        if self._process:
            _end(self._process)
        if self._log:
            self._log.close()
        if self._janitor:
            assert self._janitor.stdin
            self._janitor.stdin.close()
            self._janitor.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> 'Server':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, '_closed', True):
            self.close()

    # ---- inside ----

    def _start(self, program: str, device: str, config: str) -> None:
        path = os.path.join(self.folder, 'gpreempt.conf')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(config)
        self._log = open(os.path.join(self.folder, 'log'), 'wb')
        # It reads until everybody who has the other end, the daemon too, is gone.
        self._janitor = subprocess.Popen(
            ['sh', '-c', 'read -r _; rm -rf -- "$1"', 'sh', self.folder], stdin=subprocess.PIPE,
            start_new_session=True)
        assert self._janitor.stdin
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(os.path.join(self.folder, 'notify'))
            self._process = subprocess.Popen(
                [program, '--device', device, '--config', path, '--run-dir', self.run_dir],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._log,
                env=dict(os.environ, NOTIFY_SOCKET=notify.getsockname()),
                pass_fds=[self._janitor.stdin.fileno()], preexec_fn=die_with_parent,
                start_new_session=True)  # Ctrl-C is for us: it ends when we say so
            self._await_ready(notify)

    def _await_ready(self, notify: socket.socket) -> None:
        """READY=1 of sd_notify(3), or its end."""
        waited = 0.0
        while waited < _START_S:
            if select.select([notify], [], [], 0.1)[0]:
                if b'READY=1' in notify.recv(4096).split(b'\n'):
                    return
                continue
            if not self.running():
                break
            waited += 0.1
        lines: List[str] = self.log().splitlines()
        raise FailedError('gpreemptd does not start' + (f': {lines[-1]}' if lines else ''),
                          'look at its configuration and its device', errno.EIO)


def _end(process: 'subprocess.Popen[bytes]') -> None:
    """Asks, and after a while does not ask."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
