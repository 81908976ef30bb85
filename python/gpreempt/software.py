# SPDX-License-Identifier: MIT
"""A place on the software device of a running gpreemptd: queues, and work for them.

Who connects becomes a process on the device under its real pid, such as a program on ROCm is one;
with the connection goes all it has there. The device runs in real time and its times are modelled.
"""
from __future__ import annotations

import ctypes
import errno
import mmap
import os
import socket
import threading
from dataclasses import dataclass
from typing import Dict, Optional, Type, TypeVar

from . import _device_abi as abi
from ._abi import Struct
from .errors import AbsentError, Error, FailedError, RefusedError, check_number, decode

C = TypeVar('C', bound=Struct)
CONTROL = '/run/gpreempt/control.sock'


def device_socket(control: Optional[str] = None) -> str:
    """The device's socket lies beside the control socket."""
    path = control or os.environ.get('GPREEMPT_SOCKET') or CONTROL
    return os.path.join(os.path.dirname(path), 'device.sock')


@dataclass(frozen=True)
class Done:
    """A piece of work that is done."""
    seq: int  # as submitted
    queue: int
    index: int  # of the packet in its queue
    submitted_ns: int  # CLOCK_MONOTONIC, as all times here
    started_ns: int
    done_ns: int
    executed_ns: int  # summed over its workgroups
    workgroups: int
    finished: int  # equal, unless work was lost or done twice
    saves: int  # how often some of it was taken off the GPU and came back


class _Pages:
    """Where the device wants the pointers of this process's queues. Its connections share them."""
    FIXED, FIXED_NOREPLACE, DONTFORK = 0x10, 0x100000, 10  # as in <sys/mman.h>

    def __init__(self) -> None:
        self.mapped = False  # maybe those of an earlier connection

    def map(self, file: int) -> None:
        """Where they cannot be mapped, the device is told of work and moves the pointers itself."""
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        how = mmap.MAP_SHARED | (self.FIXED if self.mapped else self.FIXED_NOREPLACE)
        at, size = ctypes.c_void_p(abi.PAGES_VA), ctypes.c_size_t(abi.PAGES_BYTES)
        got = libc.mmap(at, size, mmap.PROT_READ | mmap.PROT_WRITE, how, file, ctypes.c_long(0))
        if got == abi.PAGES_VA:
            libc.madvise(at, size, self.DONTFORK)
            self.mapped = True

    def pointer(self, va: int) -> Optional[ctypes.c_uint64]:
        inside = abi.PAGES_VA <= va < abi.PAGES_VA + abi.PAGES_BYTES and va % 8 == 0
        return ctypes.c_uint64.from_address(va) if self.mapped and inside else None


_pages = _Pages()


class SoftwareGpu:
    """AbsentError where there is no software device."""

    def __init__(self, path: Optional[str] = None) -> None:
        self.path = path or device_socket()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._seq = 0
        self._lock = threading.Lock()
        self._write_pointers: Dict[int, ctypes.c_uint64] = {}
        try:
            self._socket.connect(self.path)
        except OSError as e:
            self._socket.close()
            raise AbsentError(
                f'there is no software device at {self.path}: {os.strerror(e.errno or 0)}',
                'start one: gpreemptd --device model --run-dir DIR', e.errno or 0) from None
        try:
            hello = self._hello()
        except BaseException:
            self.close()
            raise
        self.gpus, self.cus, self.chip = hello.gpus, hello.cus, decode(hello.chip)

    def fileno(self) -> int:
        """Readable when work is done."""
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> 'SoftwareGpu':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create_queue(self, gpu: int = 0, priority: int = 7) -> int:
        """Its id; to be called before anything is submitted."""
        request = abi.Queue(gpu=check_number('a GPU', gpu, 0, self.gpus - 1),
                            priority=check_number('a priority', priority, 0, 15))
        made = self._ask(request, abi.QUEUE, abi.Queue)
        pointer = _pages.pointer(made.write_ptr)
        if pointer is not None:
            self._write_pointers[made.queue] = pointer
        return int(made.queue)

    def submit(self, queue: int, each_ns: int, workgroups: Optional[int] = None,
               seq: int = 0) -> None:
        """Work that fills the GPU, or of so many workgroups; next() tells when it is done."""
        packet = abi.Submit(queue=queue, flags=abi.WORK_BARRIER,
                            workgroups=workgroups or self.cus,
                            wg_ns=check_number('a workgroup', each_ns, 1, 60 * 10**9))
        pointer = self._write_pointers.get(queue)
        with self._lock:
            if pointer is not None:
                pointer.value += 1
            self._send(packet, abi.SUBMIT, seq)

    def next(self) -> Done:
        """Waits for the next piece of work to be done."""
        d = self._receive(abi.SUBMIT, abi.Done)
        return Done(d.h.seq, d.queue, d.index, d.submitted_ns, d.started_ns, d.done_ns,
                    d.executed_ns, d.workgroups, d.finished, d.saves)

    # ---- packets ----

    def _send(self, packet: Struct, kind: int, seq: int) -> None:
        header = packet if isinstance(packet, abi.Header) else packet.h
        header.magic, header.version, header.type = abi.MAGIC, abi.VERSION, kind
        header.bytes, header.seq = ctypes.sizeof(packet), seq
        try:
            self._socket.send(bytes(packet))
        except OSError as e:
            raise _lost(e.errno or 0) from None

    def _receive(self, kind: int, answer: Type[C]) -> C:
        try:
            data = self._socket.recv(abi.MAX_BYTES)
        except OSError as e:
            raise _lost(e.errno or 0) from None
        return self._understand(data, kind, answer)

    def _understand(self, data: bytes, kind: int, answer: Type[C]) -> C:
        if len(data) < ctypes.sizeof(abi.Header):
            raise _lost(errno.ECONNRESET)
        header = abi.Header.from_buffer_copy(data)
        if header.magic != abi.MAGIC or header.version != abi.VERSION:
            raise _lost(errno.EPROTO)
        if header.type == abi.ERROR and len(data) == ctypes.sizeof(abi.Error):
            said = abi.Error.from_buffer_copy(data)
            kind_of: Type[Error] = RefusedError if said.error == errno.EEXIST else FailedError
            raise kind_of(f'the software device says: {decode(said.message)}',
                          'look at the daemon\'s log', said.error)
        if header.type != kind or len(data) != ctypes.sizeof(answer):
            raise _lost(errno.EPROTO)
        found: C = answer.from_buffer_copy(data)
        return found

    def _hello(self) -> abi.Welcome:
        """The answer to it brings a file of pages."""
        self._send(abi.Header(), abi.HELLO, 0)
        try:
            data, files, _, _ = socket.recv_fds(self._socket, abi.MAX_BYTES, 1,
                                                   socket.MSG_CMSG_CLOEXEC)
        except OSError as e:
            raise _lost(e.errno or 0) from None
        for file in files:
            _pages.map(file)
            os.close(file)
        return self._understand(data, abi.HELLO, abi.Welcome)

    def _ask(self, packet: Struct, kind: int, answer: Type[C]) -> C:
        self._seq += 1
        self._send(packet, kind, self._seq)
        return self._receive(kind, answer)


def _lost(number: int) -> FailedError:
    return FailedError(f'the software device is gone: {os.strerror(number)}',
                       'look at the daemon\'s log', number)
