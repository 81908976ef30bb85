#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
usage: test_priority_scheduling.py [--seconds N] [--json]

Does an online job take the GPU from an offline one, and is nothing lost? Runs offline_training.py
and online_inference.py under a gpreemptd of its own on the software device: basic, frequent, and
everything that goes wrong. Prints a report with a verdict for each thing that must, should or would
be nice to be. Exit status 1 when something that must be is not. All times are modelled.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import time

import ground
from ground import gpreempt, jobs

HERE = os.path.dirname(os.path.abspath(__file__))
WAIT_S = 60  # for what must come
KERNEL_US, REQUEST_US = 20000, 2000


# ---- jobs ----

def start(scheduler, program, *options):
    """One of the examples beside this file, in its class."""
    job = jobs.start_job([sys.executable, os.path.join(HERE, program), '--software', '--socket',
                          scheduler.server.socket, *map(str, options)],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    return job


def start_training(scheduler):
    return start(scheduler, 'offline_training.py', '--queues', 2, '--priority', 0, '--kernel-us',
                 KERNEL_US, '--name', 'train')


def start_inference(scheduler, every_ms, requests, gpu=0):
    return start(scheduler, 'online_inference.py', '--priority', 11, '--kernel-us', REQUEST_US,
                 '--every-ms', every_ms, '--requests', requests, '--gpu', gpu, '--name', 'infer')


def wait_for(what, condition):
    """Until it is so; a scenario that waits too long has failed."""
    until = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > until:
            raise gpreempt.FailedError(f'waited {WAIT_S} s in vain: {what}')
        time.sleep(0.02)  # the daemon is asked again then


def known(scheduler, job):
    """It has its queues; requests that come before have nobody to take the GPU from."""
    def there():
        found = scheduler.job(job.pid)
        return job.poll() is not None or (found is not None and found.queues > 0)
    wait_for('training has queues', there)


# ---- scenarios ----

def contest(scheduler, every_ms, times, gpu=0):
    """A training job, and requests until they have taken the GPU from it so many times (on another
    GPU: so many requests); what both say, and what the daemon counted."""
    before = scheduler.statistics().preemptions
    train = start_training(scheduler)
    infer = None
    try:
        known(scheduler, train)
        infer = start_inference(scheduler, every_ms, times if gpu else 0, gpu)
        if gpu:
            online = jobs.take_report(infer)
        else:
            wait_for(f'{times} preemptions', lambda: infer.poll() is not None or
                     scheduler.statistics().preemptions - before >= times)
            online = jobs.end_job(infer)
        offline = jobs.end_job(train)
    finally:
        for job in filter(None, (train, infer)):
            job.kill()
            job.wait()
    after = scheduler.statistics()
    return {'online': online, 'offline': offline, 'preemptions': after.preemptions - before,
            'suspend_us': after.suspend.p99_us, 'resume_us': after.resume.p99_us,
            'trips': after.trips}


def killed_while_held(scheduler):
    """An offline job is killed while it is off the GPU: requests go on, the daemon forgets it."""
    train = start_training(scheduler)
    infer = start_inference(scheduler, 50, 0)
    with scheduler.events(WAIT_S) as events:
        next(e for e in events if e.kind == 'held' and e.pid == train.pid)
        train.kill()
        train.wait()
        next(e for e in events if e.kind == 'job-went' and e.pid == train.pid)
    report = jobs.end_job(infer)
    train.stdout.close()
    return report['complete'] == report['kernels'] and scheduler.job(train.pid) is None


def online_killed(scheduler):
    """An online job is killed while training is held for it: training runs again, all of it."""
    train = start_training(scheduler)
    infer = start_inference(scheduler, 50, 0)
    with scheduler.events(WAIT_S) as events:
        next(e for e in events if e.kind == 'held' and e.pid == train.pid)
        infer.kill()
        infer.wait()
        next(e for e in events if e.kind == 'let-go' and e.pid == train.pid)
    report = jobs.end_job(train)
    infer.stdout.close()
    return report['complete'] == report['kernels'] and report['in_order']


def paused(scheduler):
    """A daemon that is paused holds nobody, and goes on afterwards."""
    train = start_training(scheduler)
    infer = start_inference(scheduler, 50, 0)
    with scheduler.events(WAIT_S) as events:
        next(e for e in events if e.kind == 'held')
        scheduler.pause()
        nobody = scheduler.daemon.status().held == 0
        scheduler.continue_()
        next(e for e in events if e.kind == 'continued')
        next(e for e in events if e.kind == 'held')
    ended = [jobs.end_job(job) for job in (infer, train)]
    return nobody and all(r['complete'] == r['kernels'] for r in ended)


def ended_before_it_listens(scheduler):
    """A job that is told to end at once says what it did all the same."""
    train = start_training(scheduler)
    train.send_signal(signal.SIGTERM)
    report = jobs.take_report(train)
    return report['complete'] == report['kernels']


def raises(kind, call):
    try:
        call()
    except kind:
        return True
    return False


def nonsense(_):
    """Bad ids, an empty process, a process that is not there, a second hold."""
    with gpreempt.open('model') as gpu:
        with gpu.hold(1003) as empty:
            nothing = empty.process.held() == []
        with gpu.hold(1001):
            twice = raises(gpreempt.RefusedError, lambda: gpu.hold(1001).__enter__())
        return (nothing and twice and
                raises(gpreempt.AbsentError, lambda: gpu.hold(1001, [77]).__enter__()) and
                raises(gpreempt.AbsentError, lambda: gpu.hold(999).__enter__()) and
                raises(gpreempt.UsageError, lambda: gpu.hold(0)))


EDGES = (killed_while_held, online_killed, paused, ended_before_it_listens, nonsense)


# ---- the report ----

def below(latency, limit, floor):
    """Where requests with a GPU of their own miss the limit, this machine is too busy to judge."""
    figure = f'{latency:.1f} ms, 99 %'
    if latency >= limit and floor >= limit / 2:
        return f'{figure} (alone {floor:.1f} ms: a busy machine)', None
    return figure, latency < limit


def judge(results):
    """(how much it matters, what, the figure, whether it is so; None: not judged here)."""
    runs = [results['basic'], results['frequent']]
    reports = [r[side] for r in [results['alone'], *runs] for side in ('online', 'offline')]
    whole = all(r['complete'] == r['kernels'] and r['in_order'] and not r['unfinished']
                for r in reports)
    latency = max(r['online']['latency_us']['p99'] for r in runs) / 1000
    floor = results['alone']['online']['latency_us']['p99'] / 1000
    cost = max(max(r['suspend_us'], r['resume_us']) for r in runs) / 1000
    alone = results['alone']['offline']['goodput_pct']
    loss = 100 * (1 - results['basic']['offline']['goodput_pct'] / alone) if alone else None
    preemptions = min(r['preemptions'] for r in runs)
    edges = results['edges']
    fine = all(edges.values()) and not any(r['trips'] for r in runs)
    kernels = sum(r['kernels'] for r in reports)
    return [
        ('must', 'online preempts', f'{preemptions} times at least', preemptions > 0),
        ('must', 'offline resumes, nothing lost', f'{kernels} kernels, each once, in order', whole),
        ('must', 'no crash', f'{sum(edges.values())} of {len(edges)} edge cases', fine),
        ('should', 'online end to end < 50 ms', *below(latency, 50, floor)),
        ('should', 'offline loss < 20 %', f'{loss:.1f} %', loss < 20),
        ('should', 'suspend and resume < 5 ms', f'{cost:.2f} ms, 99 %', cost < 5),
        ('should', 'an hour without error', 'make soak SOAK_SECONDS=3600', None),
        ('nice', 'online < 10 ms', *below(latency, 10, floor)),
        ('nice', 'offline loss < 10 %', f'{loss:.1f} %', loss < 10),
        ('nice', 'full performance report', '--json', True),
    ]


def print_report(results, verdicts):
    print('Priority scheduling on the software device; all times are modelled\n')
    for name in ('alone', 'basic', 'frequent'):
        r = results[name]
        us = r['online']['latency_us']
        print(f'{name:<10}{r["online"]["requests"]:>5} requests of {REQUEST_US / 1000:g} ms: mean '
              f'{us["avg"] / 1000:.1f} ms, 99 % {us["p99"] / 1000:.1f} ms; training '
              f'{r["offline"]["goodput_pct"]} %, {r["preemptions"]} times preempted')
    for name, passed in results['edges'].items():
        print(f'{"edge":<10}{name.replace("_", " ")}: {"passed" if passed else "FAILED"}')
    print()
    words = {True: 'yes', False: 'NO', None: 'not here'}
    for weight, what, figure, good in verdicts:
        print(f'{weight:<8}{what:<32}{figure:<44}{words[good]}')


def main():
    parser = argparse.ArgumentParser(description='Does online take the GPU from offline, and is '
                                     'nothing lost? On the software device.')
    parser.add_argument('--seconds', type=float, default=4.0, help='each scenario, about')
    parser.add_argument('--json', action='store_true')
    args = parser.parse_args()
    n = max(int(args.seconds * 10), 3)
    try:
        with gpreempt.GPreemptScheduler.start('model', 'priority') as scheduler:
            results = {'alone': contest(scheduler, 100, n, gpu=1),
                       'basic': contest(scheduler, 100, n),
                       'frequent': contest(scheduler, 20, 5 * n)}
            results['edges'] = {edge.__name__: bool(edge(scheduler)) for edge in EDGES}
    except gpreempt.Error as e:
        print(f'{parser.prog}: {e.message}\n  hint: {e.hint or "please report it"}',
              file=sys.stderr)
        return e.code or 1
    verdicts = judge(results)
    if args.json:
        print(json.dumps({'modelled': True, **results, 'verdicts': [
            {'weight': w, 'what': what, 'figure': f, 'good': g} for w, what, f, g in verdicts]}))
    else:
        print_report(results, verdicts)
    return 1 if any(w == 'must' and not good for w, _, _, good in verdicts) else 0


if __name__ == '__main__':
    sys.exit(main())
