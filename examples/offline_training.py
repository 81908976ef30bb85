#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
A best-effort training job: it knows nothing of gpreempt, but for one call that says what it is.

    python3 offline_training.py                 until Ctrl-C, then one JSON object
    python3 offline_training.py --duration 10

With PyTorch and a GPU it trains a small network; without, kernels of the same shape run on the
software device, and all times are modelled.
"""
import sys
import time

import ground

WIDTH, LAYERS, BATCH = 4096, 8, 4096


def train(torch, args, ending):
    """A network that learns to copy; the loss has to fall, preempted or not."""
    device = torch.device('cuda', args.gpu)
    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]
    model = torch.nn.Sequential(*layers).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0001)
    data = torch.randn(BATCH, WIDTH, device=device)
    began, steps, losses = time.monotonic(), 0, []
    while not ending.stop and not (args.duration and time.monotonic() - began >= args.duration):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data), data)
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 10 == 1:
            losses.append(loss.item())  # waits for the GPU
    torch.cuda.synchronize()
    elapsed = time.monotonic() - began
    return {'modelled': False, 'steps': steps, 'steps_per_s': steps / elapsed,
            'elapsed_us': elapsed * 1e6, 'first_loss': losses[0] if losses else None,
            'last_loss': losses[-1] if losses else None}


if __name__ == '__main__':
    sys.exit(ground.run(False, 'A best-effort training job.', train))
