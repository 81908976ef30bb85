# SPDX-License-Identifier: MIT
"""What a best-effort job shares with those who measure it: a file, laid out as job.h says."""
import mmap
import os
import struct

BYTES = 16384
PROGRESS = 4096
BEATS = 8192
FIELDS = ('ready', 'stop', 'pid', 'iterations', 'checks', 'wrong', 'units')


def field(at):
    def get(self):
        return struct.unpack_from('<Q', self.memory, at)[0]

    def put(self, value):
        struct.pack_into('<Q', self.memory, at, value)

    return property(get, put)


class Job:
    """The same file for all who open it; FIELDS and progress are attributes."""

    def __init__(self, path, create=False):
        self.path = path
        fd = os.open(path, os.O_RDWR | (os.O_CREAT | os.O_EXCL if create else 0), 0o600)
        try:
            if create:
                os.ftruncate(fd, BYTES)
            self.memory = mmap.mmap(fd, BYTES)
        finally:
            os.close(fd)

    def begin(self, units):
        self.units, self.pid = units, os.getpid()
        self.ready = 1

    progress = field(PROGRESS)


for n, name in enumerate(FIELDS):
    setattr(Job, name, field(8 * n))
