#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
usage: be_torch.py FILE [CHECK-EVERY]

A best-effort job in PyTorch: bf16 products of 8192^3 (cuBLAS, tensor cores), back to back, until
the file (job.py) says stop. Every so many the result is compared bit for bit. Ends with JSON. It
has children as a loader of data would have them: forked after its context was made, with copies of
its descriptors, and doing nothing.
"""
import ctypes
import json
import os
import signal
import sys

import torch

from job import Job

N = 8192
QUEUED = 3
CHILDREN = 2
PR_SET_PDEATHSIG = 1


def beget():
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        while True:
            signal.pause()


def main():
    job = Job(sys.argv[1])
    check_every = int(sys.argv[2]) if sys.argv[2:] else 256
    torch.manual_seed(1)
    a = torch.randn(N, N, device='cuda', dtype=torch.bfloat16)
    b = torch.randn(N, N, device='cuda', dtype=torch.bfloat16)
    expected, c = a @ b, torch.empty_like(a)
    torch.cuda.synchronize()
    events = [torch.cuda.Event() for _ in range(QUEUED + 1)]
    launched = done = 0
    for _ in range(CHILDREN):
        beget()

    def check():
        torch.cuda.synchronize()
        job.wrong += 0 if torch.equal(c, expected) else 1
        job.checks += 1
        c.fill_(float('nan'))

    job.begin(units=1)
    while not job.stop:
        torch.matmul(a, b, out=c)
        events[launched % len(events)].record()
        launched += 1
        if launched - done > QUEUED:
            events[done % len(events)].synchronize()
            done += 1
            job.iterations = done
            job.progress = done
        if launched % check_every == 0:
            check()
    torch.matmul(a, b, out=c)
    check()
    print(json.dumps({'iterations': launched + 1, 'checks': job.checks, 'wrong': job.wrong}))


if __name__ == '__main__':
    main()
