# SPDX-License-Identifier: MIT
"""Jobs for trying things out: a training and an inference program on the software device.

    python3 -m gpreempt.jobs --offline [OPTION]...     kernels in a row, as training makes them
    python3 -m gpreempt.jobs --online [OPTION]...      requests that come by themselves

A job goes on until SIGTERM or its end, lets what is submitted finish and prints one JSON object,
with the keys of gpreempt-load(1). Its class is what the daemon is told.
"""
from __future__ import annotations

import argparse
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Set

from .errors import Error
from .records import Figures
from .server import die_with_parent
from .software import Done, SoftwareGpu, device_socket

ENDING = (signal.SIGTERM, signal.SIGINT)
_PATIENCE_S = 10.0  # with what is in flight at the end
_STAGGER = 16  # requests come a little late in turns, lest they keep step with others


# ---- processes ----

def start_job(argv: Sequence[str], **options: Any) -> 'subprocess.Popen[str]':
    """Starts a program that ends with us, and that calls listen() when it is ready to be ended.

    Until then SIGTERM is kept from it: whoever ends a job that is still on its way gets its report
    all the same. A program that never listens can only be killed.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        return subprocess.Popen(list(argv), text=True, preexec_fn=die_with_parent, **options)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_module(job: Sequence[str], name: str = 'gpreempt.jobs') -> 'subprocess.Popen[str]':
    """A module of this package as a job, with its output in a pipe."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.pathsep.join(p for p in (here, os.environ.get('PYTHONPATH')) if p)
    return start_job([sys.executable, '-m', name, *job], stdin=subprocess.DEVNULL,
                     stdout=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=path),
                     start_new_session=True)


def end_job(process: 'subprocess.Popen[str]', patience: float = 60.0) -> Dict[str, Any]:
    """Asks it to end; its report. Kills one that does not."""
    process.terminate()
    return take_report(process, patience)


def take_report(process: 'subprocess.Popen[str]', patience: float = 600.0) -> Dict[str, Any]:
    """Waits for its end; the JSON object in the last line it said."""
    try:
        said = process.communicate(timeout=patience)[0] or ''
    except subprocess.TimeoutExpired:
        process.kill()
        said = process.communicate()[0] or ''
    lines = said.splitlines()
    if process.returncode or not lines:
        raise Error(f'a job ended with status {process.returncode}', lines[-1] if lines else '')
    report: Dict[str, Any] = json.loads(lines[-1])
    return report


class Ending:
    """Whether this program was asked to end. stop: it was; wake: readable then."""

    def __init__(self) -> None:
        self.stop = False
        self.wake, self._write = socket.socketpair()
        self._write.setblocking(False)

    def _hear(self, number: int, frame: object) -> None:
        self.stop = True
        try:
            self._write.send(b'.')
        except BlockingIOError:
            pass  # there is enough to read

    def listen(self) -> None:
        for number in ENDING:
            signal.signal(number, self._hear)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def listen() -> Ending:
    """From here on SIGTERM and Ctrl-C end the program in order; what came before counts."""
    ending = Ending()
    ending.listen()
    return ending


def set_name(name: str) -> None:
    """What the process is called in lists."""
    ctypes.CDLL(None).prctl(15, os.fsencode(name), 0, 0, 0)


# ---- work ----

@dataclass
class Plan:
    online: bool = False
    gpu: int = 0
    queues: int = 1
    priority: int = 7
    kernel_us: int = 20000
    depth: int = 2  # kernels in each queue
    every_ms: float = 50.0  # between requests, about
    requests: int = 0  # 0: until told to end
    duration: Optional[float] = None


@dataclass
class _Run:
    plan: Plan
    gpu: SoftwareGpu
    ending: Ending
    queues: List[int] = field(default_factory=list)
    submitted: Dict[int, int] = field(default_factory=dict)
    done: Dict[int, int] = field(default_factory=dict)
    sent: int = 0
    complete: int = 0
    disorder: int = 0
    saves: int = 0
    busy_ns: int = 0
    began_ns: int = 0
    last_ns: int = 0
    latency_us: List[float] = field(default_factory=list)

    @property
    def kernels(self) -> int:
        return sum(self.done.values())

    def arrival_ns(self, i: int) -> int:
        every = int(self.plan.every_ms * 1e6)
        return self.began_ns + (i + 1) * every + i * 7 % _STAGGER * every // (2 * _STAGGER)

    def wants_more(self, now: int) -> bool:
        plan = self.plan
        late = plan.duration is not None and now >= self.began_ns + plan.duration * 1e9
        return not (self.ending.stop or late or (plan.requests and self.sent >= plan.requests))

    def send(self, queue: int) -> None:
        self.gpu.submit(queue, self.plan.kernel_us * 1000, seq=self.sent)
        self.submitted[queue] += 1
        self.sent += 1

    def send_all(self, now: int) -> None:
        """Requests whose time has come, to the queues in turn; or kernels, as deep as wanted."""
        if self.plan.online:
            while self.wants_more(now) and self.arrival_ns(self.sent) <= now:
                queue = self.queues[self.sent % len(self.queues)]
                if self.submitted[queue] - self.done[queue] >= 64:
                    return
                self.send(queue)
            return
        for queue in self.queues:
            while self.wants_more(now) and self.submitted[queue] - self.done[queue] \
                    < self.plan.depth:
                self.send(queue)

    def account(self, d: Done) -> None:
        each = self.plan.kernel_us * 1000
        self.complete += d.finished == d.workgroups == self.gpu.cus and \
            d.executed_ns == d.workgroups * each
        self.disorder += d.index != self.done[d.queue]
        self.done[d.queue] += 1
        self.saves += d.saves
        self.busy_ns += d.executed_ns // self.gpu.cus
        self.last_ns = max(self.last_ns, d.done_ns)
        if self.plan.online:
            self.latency_us.append(max(d.done_ns - self.arrival_ns(d.seq), 0) / 1000)

    def wait(self, now: int, wants: bool, until: Optional[int]) -> None:
        at = until
        if wants and self.plan.online:
            at = self.arrival_ns(self.sent)
        elif wants and self.plan.duration is not None:
            at = self.began_ns + int(self.plan.duration * 1e9)
        left = None if at is None else max(at - now, 0) / 1e9
        wake: Set[Any] = {self.gpu} if self.ending.stop else {self.gpu, self.ending.wake}
        if self.gpu in select.select(wake, [], [], left)[0]:
            self.account(self.gpu.next())

    def go(self) -> None:
        until: Optional[int] = None
        while True:
            now = time.monotonic_ns()
            self.send_all(now)
            wants = self.wants_more(now)
            if not wants:
                until = until or now + int(_PATIENCE_S * 1e9)
                if self.kernels == self.sent or now >= until:
                    return
            self.wait(now, wants, until)

    def report(self) -> Dict[str, Any]:
        elapsed = max(self.last_ns - self.began_ns, 0)
        report: Dict[str, Any] = {
            'modelled': True, 'chip': self.gpu.chip, 'pid': os.getpid(), 'gpu': self.plan.gpu,
            'queues': len(self.queues), 'kernel_us': self.plan.kernel_us,
            'elapsed_us': elapsed / 1000, 'kernels': self.kernels, 'complete': self.complete,
            'in_order': not self.disorder, 'unfinished': self.sent - self.kernels,
            'saves': self.saves, 'busy_us': self.busy_ns / 1000,
            'goodput_pct': round(100 * self.busy_ns / elapsed, 1) if elapsed else 0.0}
        figures = Figures.of(self.latency_us)
        if self.plan.online:
            report['requests'] = len(self.latency_us)
        if figures:
            report['latency_us'] = {'avg': figures.mean, 'p50': figures.p50, 'p99': figures.p99,
                                    'max': figures.max}
        return report


def run(plan: Plan, ending: Ending, path: Optional[str] = None) -> Dict[str, Any]:
    """Does the plan on the software device, until its end or until asked; the report."""
    with SoftwareGpu(path) as gpu:
        r = _Run(plan, gpu, ending)
        r.queues = [gpu.create_queue(plan.gpu, plan.priority) for _ in range(plan.queues)]
        r.submitted = dict.fromkeys(r.queues, 0)
        r.done = dict.fromkeys(r.queues, 0)
        r.began_ns = r.last_ns = time.monotonic_ns()
        r.go()
        return r.report()


def add_options(parser: argparse.ArgumentParser, online: bool) -> None:
    """Those of a plan."""
    d = Plan(online=online, kernel_us=2000 if online else 20000)
    parser.add_argument('--socket', help='the daemon\'s control socket; the device\'s lies beside')
    parser.add_argument('--gpu', type=int, default=d.gpu)
    parser.add_argument('--queues', type=int, default=d.queues)
    parser.add_argument('--priority', type=int, default=d.priority, help='of the queues, 0 to 15')
    parser.add_argument('--kernel-us', type=int, default=d.kernel_us,
                        help='how long a kernel or request runs')
    parser.add_argument('--duration', type=float, help='seconds; else until Ctrl-C')
    parser.add_argument('--name', help='what the process is called in lists')
    if online:
        parser.add_argument('--every-ms', type=float, default=d.every_ms)
        parser.add_argument('--requests', type=int, default=d.requests, help='so many, then end')
    else:
        parser.add_argument('--depth', type=int, default=d.depth, help='kernels in each queue')


def plan_of(args: argparse.Namespace, online: bool) -> Plan:
    plan = Plan(online, args.gpu, args.queues, args.priority, args.kernel_us,
                duration=args.duration)
    if online:
        plan.every_ms, plan.requests = args.every_ms, args.requests
    else:
        plan.depth = args.depth
    return plan


def main(argv: Optional[Sequence[str]] = None) -> int:
    ending = listen()
    words = list(sys.argv[1:] if argv is None else argv)
    online = '--online' in words
    parser = argparse.ArgumentParser(prog='python3 -m gpreempt.jobs', description='A job on the '
                                     'software device of gpreemptd.')
    parser.add_argument('--online', action='store_true', help='requests that come by themselves')
    parser.add_argument('--offline', action='store_true', help='kernels in a row (the default)')
    add_options(parser, online)
    args = parser.parse_args(words)
    if args.name:
        set_name(args.name)
    try:
        report = run(plan_of(args, online), ending, device_socket(args.socket))
    except Error as e:
        print(f'gpreempt.jobs: {e.message}\n  hint: {e.hint}', file=sys.stderr)
        return e.code
    print(json.dumps(report), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
