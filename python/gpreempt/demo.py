# SPDX-License-Identifier: MIT
"""python3 -m gpreempt.demo [--seconds N] [--json]

The whole story on a software GPU, in plain words, in Python: a gpreemptd of its own, a training and
an inference job as real processes, and nothing left of it at its end. No GPU and no root needed;
all times are modelled.
"""
from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

from .errors import Error, FailedError
from .jobs import end_job, start_module, take_report
from .scheduler import GPreemptScheduler

KERNEL_US, REQUEST_US, EVERY_MS = 40000, 3000, 150
WAIT_S = 60  # for what must come
PARTS = (  # name, policy, GPU of the inference job, what for people
    ('alone', 'none', 1, 'each job on a GPU of its own'),
    ('shared', 'none', 0, 'both on one GPU, without gpreempt'),
    ('preempted', 'priority', 0, 'both on one GPU, with gpreempt'),
)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > until:
            raise FailedError(f'waited {WAIT_S} s in vain for {what}')
        time.sleep(0.02)  # then the daemon is asked again


def run_part(scheduler: GPreemptScheduler, policy: str, gpu: int,
             seconds: float) -> Dict[str, Dict[str, Any]]:
    """A training and an inference job for a while; what they say at their end."""
    assert scheduler.server
    common = ['--socket', scheduler.server.socket]
    scheduler.set_policy(policy)
    before = scheduler.statistics().preemptions
    many = max(int(seconds * 1000 / EVERY_MS), 2)
    requests = 0 if policy != 'none' else many
    train = start_module([*common, '--offline', '--name', 'train', '--queues', '2', '--priority',
                          '0', '--kernel-us', str(KERNEL_US)])
    infer = None
    try:
        scheduler.register_offline(train.pid)
        wait_until(lambda: train.poll() is not None or _works(scheduler, train.pid), 'training')
        infer = start_module([*common, '--online', '--name', 'infer', '--priority', '11', '--gpu',
                              str(gpu), '--kernel-us', str(REQUEST_US), '--every-ms',
                              str(EVERY_MS), '--requests', str(requests)])
        scheduler.register_online(infer.pid)
        if policy != 'none':  # requests without end, until some have made room
            wait_until(lambda: scheduler.statistics().preemptions >= before + many,
                       'preemptions')
            infer.terminate()
        return {'online': take_report(infer), 'offline': end_job(train)}
    finally:
        for job in (train, infer):
            if job and job.poll() is None:
                job.kill()
                job.wait()


def _works(scheduler: GPreemptScheduler, pid: int) -> bool:
    job = scheduler.job(pid)
    return job is not None and job.queues > 0


def lost(story: Dict[str, Any]) -> int:
    """Kernels that are not complete."""
    jobs = [story[name][job] for name, *_ in PARTS for job in ('online', 'offline')]
    return sum(j['kernels'] - j['complete'] + j['unfinished'] for j in jobs)


def tell(seconds: float, quiet: bool) -> Dict[str, Any]:
    """All parts. The figures, and how often the daemon made room."""
    story: Dict[str, Any] = {'modelled': True}
    with GPreemptScheduler.start('model', 'none') as scheduler:
        for n, (name, policy, gpu, what) in enumerate(PARTS):
            if not quiet:
                print(f'{n + 1} of {len(PARTS)}: {what} ...', file=sys.stderr, flush=True)
            story[name] = run_part(scheduler, policy, gpu, seconds)
        story['preemptions'] = scheduler.statistics().preemptions
    story['lost'] = lost(story)
    return story


def row(name: str, part: Dict[str, Any]) -> str:
    online, offline = part['online'], part['offline']
    us = online['latency_us']
    return (f'{name:<24}{us["avg"] / 1000:>9.1f} ms{us["p50"] / 1000:>9.1f} ms'
            f'{us["p99"] / 1000:>9.1f} ms{offline["goodput_pct"]:>9.1f} %'
            f'{offline["complete"]:>8} of {offline["kernels"]}')


def print_story(story: Dict[str, Any]) -> None:
    shared, held = (story[p]['online']['latency_us']['avg'] for p in ('shared', 'preempted'))
    print('One GPU, two programs, no change to either\n\n'
          f'A training job keeps the GPU full with kernels of {KERNEL_US // 1000} ms. An inference '
          f'service gets a\nrequest about every {EVERY_MS} ms, worth {REQUEST_US // 1000} ms of '
          'work. The GPU is a software GPU, in real time:\nall times are modelled, not measured.\n')
    print(f'{"modelled times":<24}{"MEAN":>12}{"MEDIAN":>12}{"99 %":>12}{"TRAINING":>11}'
          f'{"COMPLETE":>12}')
    for name, text in (('alone', 'each alone'), ('shared', 'both, without gpreempt'),
                       ('preempted', 'both, with gpreempt')):
        print(row(text, story[name]))
    print()
    if held < shared:
        print(f'With gpreempt a request was answered {shared / held:.1f} times faster on average.')
    else:
        print('Requests were no faster this time: this machine had something else to do.')
    print(f'{story["preemptions"]} times training made room; every one of its '
          f'{story["preempted"]["offline"]["complete"]} kernels ran once, whole and in order.\n\n'
          'Next: docs/python.md, and examples/ for programs of your own.')


def judge(story: Dict[str, Any]) -> List[str]:
    """What must not be; not how fast this machine was."""
    wrong = []
    jobs = [story[name][job] for name, *_ in PARTS for job in ('online', 'offline')]
    if story['lost']:
        wrong.append(f'work was lost: {story["lost"]} kernels are not complete')
    if not all(j['in_order'] for j in jobs):
        wrong.append('work was done out of order')
    if not story['preemptions']:
        wrong.append('training never made room')
    return wrong


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog='python3 -m gpreempt.demo', description='The whole story '
                                     'on a software GPU; no GPU and no root needed.')
    parser.add_argument('--seconds', type=float, default=4.0,
                        help='how long each of the three parts takes, about; 4 unless told')
    parser.add_argument('--json', action='store_true', help='figures for a program')
    args = parser.parse_args(argv)
    if not 0.5 <= args.seconds <= 600:
        parser.error('--seconds is 0.5 to 600')
    try:
        story = tell(args.seconds, args.json)
    except Error as e:
        print(f'gpreempt.demo: {e.message}\n  hint: {e.hint or "please report it"}',
              file=sys.stderr)
        return e.code
    except KeyboardInterrupt:
        print('gpreempt.demo: stopped before its end; nothing is left of it', file=sys.stderr)
        return 1
    wrong = judge(story)
    if args.json:
        print(json.dumps(story))
    elif not wrong:
        print_story(story)
    for line in wrong:
        print(f'gpreempt.demo: {line}\n  hint: please report it', file=sys.stderr)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
