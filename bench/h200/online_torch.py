#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
usage: online_torch.py [--seconds N] [--every-us N] [--watch FILE]...

An online job in PyTorch that knows nothing of streams: a transformer of four layers (fp32, width
1024, 512 tokens) on the default stream. Speaks as online.cu does.
"""
import argparse
import json
import os
import sys
import time

import torch

from job import Job

WARM_S = 0.5  # requests that do not count


def make_model():
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda().eval()


def wait_until(when):
    while time.monotonic() < when:
        pass


def serve(model, x, every_s, seconds):
    took, late = [], []
    began = time.monotonic()
    due = began + every_s
    while due < began + seconds:
        wait_until(due)
        launched = time.monotonic()
        y = model(x)
        torch.cuda.synchronize()
        now = time.monotonic()
        took.append(round((now - launched) * 1e6, 1))
        late.append(round((launched - due) * 1e6, 1))
        due += every_s
        if due < now:
            due = now + 1e-3
    return took, late, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seconds', type=float, default=5)
    parser.add_argument('--every-us', type=float, default=10000)
    parser.add_argument('--watch', action='append', default=[])
    args = parser.parse_args()
    jobs = [Job(path) for path in args.watch]
    model, x = make_model(), torch.randn(1, 512, 1024, device='cuda')
    with torch.inference_mode():
        expected = model(x)
        torch.cuda.synchronize()
        print(f'ready {os.getpid()}', flush=True)
        sys.stdin.readline()
        os.sched_setaffinity(0, {os.cpu_count() - 1})  # of this thread only
        serve(model, x, args.every_us / 1e6, WARM_S)
        before = [(j.progress, j.iterations) for j in jobs]
        began = time.monotonic()
        took, late, y = serve(model, x, args.every_us / 1e6, args.seconds)
        seconds = time.monotonic() - began
        ran = [{'pid': j.pid, 'units': j.progress - b[0], 'iterations': j.iterations - b[1],
                'units_per_iteration': j.units, 'checks': j.checks, 'wrong': j.wrong}
               for j, b in zip(jobs, before)]
        print(json.dumps({'jobs': ran, 'request_us': took, 'late_us': late, 'seconds': seconds,
                          'hints_failed': 0, 'right': bool(torch.equal(y, expected))}), flush=True)


if __name__ == '__main__':
    main()
