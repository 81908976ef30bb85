#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
A service whose requests must not wait: it says that it is online, and hints before each request.

    python3 online_inference.py                 until Ctrl-C, then one JSON object
    python3 online_inference.py --requests 100 --every-ms 50

With PyTorch and a GPU each request is a pass through a small network, and its time is measured;
without, it is a kernel on the software device, and its time is modelled.
"""
import sys
import time

import ground
from ground import gpreempt

WIDTH, LAYERS, BATCH = 2048, 8, 64


def wait_until(at, ending):
    """Until then, or until asked to end, which interrupts nothing but this."""
    ending.wake.settimeout(max(at - time.monotonic(), 0) or 1e-6)
    try:
        ending.wake.recv(1)
    except OSError:  # a timeout
        pass


def serve(torch, args, ending):
    """Requests at their times; how long each took from its time on."""
    device = torch.device('cuda', args.gpu)
    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]
    model = torch.nn.Sequential(*layers).to(device).eval()
    data = torch.randn(BATCH, WIDTH, device=device)
    latency_us = []
    with torch.no_grad(), gpreempt.Hint(args.socket) as hint:
        for _ in range(10):  # the first passes compile and allocate
            model(data)
        torch.cuda.synchronize()
        began = time.monotonic()
        while not ending.stop and not (args.requests and len(latency_us) >= args.requests):
            due = began + (len(latency_us) + 1) * args.every_ms / 1000
            if args.duration and due - began >= args.duration:
                break
            wait_until(due, ending)
            hint.now()
            model(data)
            torch.cuda.synchronize()
            latency_us.append((time.monotonic() - due) * 1e6)
    figures = gpreempt.Figures.of(latency_us)
    report = {'modelled': False, 'requests': len(latency_us), 'hints': hint.error is None}
    if figures:
        report['latency_us'] = {'avg': figures.mean, 'p50': figures.p50, 'p99': figures.p99,
                                'max': figures.max}
    return report


if __name__ == '__main__':
    sys.exit(ground.run(True, 'A service whose requests must not wait.', serve))
