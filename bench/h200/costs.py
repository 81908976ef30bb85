# SPDX-License-Identifier: MIT
"""What suspending takes, whether results stay right, and what a daemon with little to do costs."""
import json
import subprocess
import time

import figures
from rig import Daemon, Failed, last_json, let_pass, wait_until

ROUNDS = 300


def contexts(rig, *args, limit_s=60):
    process = rig.start([rig.program('bench/h200/contexts'), *args], stdout=subprocess.PIPE,
                        env=rig.env())
    try:
        said = process.communicate(timeout=limit_s)[0]
    except subprocess.TimeoutExpired:
        raise Failed(f'contexts {args[0]} does not end') from None
    finally:
        rig.end(process, 0)
    found = last_json(said)
    if 'error' in found:
        raise Failed(found['error'])
    return found


def self_test(bench):
    """The driver is tried on a context of our own, and every level is told."""
    status, said = bench.rig.command('doctor', limit_s=60)
    bench.result['doctor'] = json.loads(said) if said.lstrip().startswith('{') else said[-500:]
    bench.result['selftest'] = contexts(bench.rig, 'selftest')
    if status:
        raise Failed(f'gpreempt doctor ended with {status}')


def latency(bench):
    found = bench.result['latency'] = []
    for target, args in (('a kernel that never ends, on every multiprocessor', ['--spin']),
                         ('fp32 product 8192^3, kernels of 31 ms', ['--beat'])):
        with bench.rig.jobs('fp32', 1, args) as (job,):
            look = contexts(bench.rig, 'look', str(job.process.pid))
            raw = contexts(bench.rig, 'latency', str(job.process.pid), job.path, str(ROUNDS))
            found.append({'target': target, 'groups': look['groups'],
                          **{k: figures.summary(raw[k]) for k in
                             ('suspend_us', 'frozen_us', 'resume_us', 'running_us')}})
        found[-1]['wrong'] = job.wrong


def suspends(bench, rounds=figures.SUSPENDS):
    """Every kernel's whole result is compared with that of an undisturbed one."""
    with bench.rig.jobs('fp32', 1, ['--size', '4096', '--check-every', '1']) as (job,):
        checks, wrong = job.checks, job.wrong
        raw = contexts(bench.rig, 'suspends', str(job.process.pid), str(rounds), limit_s=50)
        wait_until(lambda c=job.checks: job.checks > c, 2)
        bench.result['suspends'] = {
            'rounds': raw['rounds'], 'checks': job.checks - checks, 'wrong': job.wrong - wrong,
            'suspend_us': figures.summary(raw['suspend_us']),
            'resume_us': figures.summary(raw['resume_us'])}


def no_contention(bench):
    """A job whose online neighbour never has work, with a daemon attached to it and without."""
    rig, seconds = bench.rig, max(3, bench.seconds * 0.6)
    without, attached, cpu = [], [], []
    online = rig.start_online(['--idle'])
    try:
        with rig.jobs('fp32', 1) as (job,):
            for _ in range(2):
                let_pass(0.5)
                without.append(rig.rate(job, seconds))
                with Daemon(rig) as daemon:
                    note = daemon.settle(online.pid, [job.process.pid])
                    if note:
                        raise Failed(f'not attached: {note}')
                    used, began = daemon.cpu(), time.monotonic()
                    attached.append(rig.rate(job, seconds))
                    cpu.append((daemon.cpu() - used) / (time.monotonic() - began))
    finally:
        rig.end(online, 1)
    bench.result['no_contention'] = {
        'without_per_s': without, 'attached_per_s': attached,
        'cost_pct': round(100 * (1 - sum(attached) / sum(without)), 3),
        'daemon_cpu_pct': round(100 * sum(cpu) / len(cpu), 3)}
