# SPDX-License-Identifier: MIT
"""
The extension of the driver beside the driver's own way, in a virtual machine with both. Packets are
counted by the software GPU and so exact; times are ratios within one guest, of medians or, over
several GPUs, of the lowest.

Time outside the fence wait is the call's wall time less what, as the software GPU says, was spent
waiting for its fences meanwhile (counter fence_ns).
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CANNOT = 77  # this machine has no guest
UNVERIFIED = "software GPU's rule, firmware unverified"


def measure():
    """By name, what each kind of figure says; None where there is no guest."""
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run(
            [f'{ROOT}/tests/vm/run', '--rule', 'ext', '--no-load', '--cpus', '2', '--out', out,
             f'{ROOT}/tests/ext/guest-figures'],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == CANNOT:
        return None
    if done.returncode:
        sys.exit(f'bench: the guest failed\n{done.stdout}')
    lines = (line.split(' ', 1) for line in done.stdout.splitlines() if '{' in line)
    return {name: json.loads(text) for name, text in lines}


def counted(figure, r):
    ours, victims, stock = r['all_queues'], r['victims_only'], r['stock']
    what = f"{r['jobs']} jobs with {r['queues']} queues off"
    for packet, key in (('UNMAP_QUEUES', 'unmaps'), ('RUN_LIST', 'runlists')):
        yield figure(f'{packet} packets for {what}, one call', ours[key], 1, 'counted', r,
                     exact=True)
        yield figure(f'{packet} packets for {what}, stock driver', stock[key], r['jobs'],
                     'counted', r, exact=True)
    yield figure(f'UNMAP_QUEUES packets (by PASID) for {what}, victims only ({UNVERIFIED})',
                 victims['unmaps'], r['jobs'], 'counted', r, exact=True)
    yield figure(f'RUN_LIST packets for the same ({UNVERIFIED})', victims['runlists'], 0,
                 'counted', r, exact=True)
    yield figure(f'fences waited for in the same ({UNVERIFIED})', victims['fences'], 1, 'counted',
                 r, exact=True)
    yield figure(f'online queues unmapped meanwhile, victims only ({UNVERIFIED})',
                 victims['online_unmapped'], 0, 'counted', r, exact=True)
    yield figure('online queues unmapped meanwhile, one call', ours['online_unmapped'],
                 r['online_queues'], 'counted', r, exact=True)
    yield figure('online queues unmapped meanwhile, stock driver', stock['online_unmapped'],
                 r['jobs'] * r['online_queues'], 'counted', r, exact=True)


def fallback(figure, r):
    ours = r['victims_only']
    what = f"asking for victims only with more queues than fit ({r['queues']} compute)"
    yield figure(f'RUN_LIST packets when {what}', ours['runlists'], 1, 'counted', r, exact=True)
    yield figure(f'packets of unknown effect when {what}', r['bad'], 0, 'counted', r, exact=True)


def timed(figure, nodes, cost):
    n = nodes['nodes']
    yield figure(f'a batch over {n} GPUs that need 5 ms each, over one of them',
                 nodes['all_ns'] / nodes['one_ns'], 1.5, 'measured', nodes)
    yield figure(f'the same with the stock driver, for comparison (serial: at most {n + n // 2})',
                 nodes['stock_ns'] / nodes['one_ns'], n + n // 2, 'measured', nodes)
    for name, key, limit in (('one queue', 'one_queue', 1.5), ('ten queues', 'ten_queues', 1),
                             ('ten processes', 'ten_processes', 1)):
        yield figure(f'time in the call outside the fence wait over stock, {name}',
                     cost[f'{key}_ns'] / cost[f'stock_{key}_ns'], limit, 'measured', cost)


def figures(figure):
    """@figure makes one: name, value, limit, kind, of, exact."""
    r = measure()
    if r is None:
        print('bench: SKIPPED: no figures of the extension, this machine has no guest',
              file=sys.stderr)
        return
    yield from counted(figure, r['mixed'])
    yield from fallback(figure, r['compute'])
    yield from timed(figure, r['nodes'], r['cost'])
