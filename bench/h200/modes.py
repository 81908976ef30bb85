# SPDX-License-Identifier: MIT
"""Requests of an online job beside best-effort jobs, in every mode that is compared."""
import contextlib
import os
import subprocess

import figures
from rig import Daemon, Failed, say, wait_until

AHEAD_US = 500
# The driver's call takes longer than that: so early it is over in time, and a small kernel after it
# brings the online job's context back before the request.
EARLY = {'ahead_us': 1000, 'prepare_us': 200}
LONG = ['--kernels', '30']


class Bench:
    """What the steps share: the rig, how long they measure, and what came out so far."""

    def __init__(self, rig, result, seconds):
        self.rig, self.result, self.seconds = rig, result, seconds

    def alone(self, what):
        return self.result.get('alone', {}).get(what)

    def mode(self, key, jobs, what='fp32', be='fp32', args=(), **options):
        """Measures one and keeps it; what: the online job, be: the kind of the others."""
        raw = self.rig.measure(jobs, self.seconds, args, torch=what == 'model', **options)
        found = figures.mode_figures(raw, self.alone(what), self.alone(f'{be}_per_s'))
        found.update(key=key, online=what, jobs=len(jobs) or 1, kind=be)
        if 'daemon' in raw:
            found['daemon'] = raw['daemon']
        say('   ' + '  '.join([key, *figures.measured(found)]))
        self.result['modes'] = [m for m in self.result['modes'] if m['key'] != key] + [found]
        return found

    def hint(self, daemon, what='fp32', ahead_us=AHEAD_US, prepare_us=0):
        """Options of an online job that announces its requests, as long as they take alone."""
        alone = self.alone(what)
        if not alone:
            raise Failed('how long a request takes alone is not known')
        return ['--library', self.rig.library, '--socket', daemon.socket, '--ahead-us',
                str(ahead_us), '--for-us', str(round(alone['p99'])),
                '--prepare-us', str(prepare_us)]


def measure_alone(bench):
    """Everything else is compared with this."""
    alone = bench.result.setdefault('alone', {})
    for what, args in (('fp32', []), ('long', LONG), ('model', [])):
        raw = bench.rig.measure([], bench.seconds, args, torch=what == 'model')
        alone[what] = {**figures.summary(raw['request_us']), 'right': raw['right']}
        say(f"   {what} {figures.ms(alone[what]['p50'])} / {figures.ms(alone[what]['p99'])} ms")
    for kind in ('fp32', 'torch'):
        with bench.rig.jobs(kind, 1) as (job,):
            bench.rig.rate(job, 0.5)
            alone[f'{kind}_per_s'] = bench.rig.rate(job, max(bench.seconds, 3))
            alone[f'{kind}_iteration_ms'] = round(1000 * job.units / alone[f'{kind}_per_s'], 3)


def fp32_1(bench):
    with bench.rig.jobs('fp32', 1) as jobs:
        bench.mode('fp32-1-default', jobs)
        with Daemon(bench.rig) as daemon:
            bench.mode('fp32-1', jobs, daemon=daemon)


def fp32_4(bench):
    with bench.rig.jobs('fp32', 4) as jobs:
        bench.mode('fp32-4-default', jobs)
        bench.mode('long-4-default', jobs, 'long', args=LONG)
        with Daemon(bench.rig) as daemon:
            bench.mode('fp32-4', jobs, daemon=daemon)
            bench.mode('fp32-4-hint', jobs, args=bench.hint(daemon), daemon=daemon)
            bench.mode('fp32-4-hint-early', jobs, args=bench.hint(daemon, **EARLY), daemon=daemon)
            bench.mode('long-4', jobs, 'long', args=LONG, daemon=daemon)
            bench.mode('long-4-hint', jobs, 'long', args=LONG + bench.hint(daemon, 'long'),
                       daemon=daemon)


def slices(bench):
    """Every best-effort job at 1 us, as others do it."""
    with bench.rig.jobs('fp32', 4) as jobs, sliced(bench.rig, jobs, 1):
        bench.mode('fp32-4-slices', jobs)


@contextlib.contextmanager
def sliced(rig, jobs, us):
    process = rig.start([rig.program('bench/h200/contexts'), 'slice', str(us),
                         *(str(j.process.pid) for j in jobs)], stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, env=rig.env())
    try:
        said = process.stdout.readline()
        if said != 'ready\n':
            raise Failed(f'contexts slice: {said.strip()}')
        yield
    finally:
        rig.end(process, 5)


def priority(bench):
    """One process, two streams: no scheduler but the GPU's own."""
    bench.mode('fp32-1-priority', [], args=['--same', bench.rig.new_job().path])


def torch_1(bench):
    with bench.rig.jobs('torch', 1) as jobs:
        bench.mode('torch-1-default', jobs, be='torch')
        with Daemon(bench.rig) as daemon:
            bench.mode('torch-1', jobs, be='torch', daemon=daemon)
            bench.mode('torch-1-hint', jobs, be='torch', args=bench.hint(daemon), daemon=daemon)
            bench.mode('torch-1-hint-early', jobs, be='torch', args=bench.hint(daemon, **EARLY),
                       daemon=daemon)


def torch_4(bench):
    with bench.rig.jobs('torch', 4) as jobs:
        bench.mode('torch-4-default', jobs, be='torch')
        with Daemon(bench.rig) as daemon:
            bench.mode('torch-4', jobs, be='torch', daemon=daemon)
            bench.mode('torch-4-hint', jobs, be='torch', args=bench.hint(daemon), daemon=daemon)


def model_4(bench):
    with bench.rig.jobs('fp32', 4) as jobs:
        bench.mode('model-4-default', jobs, 'model')
        with Daemon(bench.rig) as daemon:
            bench.mode('model-4', jobs, 'model', daemon=daemon)


# ---- MPS ----

@contextlib.contextmanager
def mps(rig):
    """A server of our own; what is started with this environment shares it."""
    pipes, logs = rig.new_file('mps'), rig.new_file('mps-log')
    os.mkdir(pipes)
    os.mkdir(logs)
    env = {**os.environ, 'CUDA_MPS_PIPE_DIRECTORY': pipes, 'CUDA_MPS_LOG_DIRECTORY': logs}
    control = rig.start(['nvidia-cuda-mps-control', '-f'], env=env, stdin=subprocess.PIPE)
    try:
        if wait_until(lambda: os.path.exists(f'{pipes}/control'), 10, 0.05) is None:
            raise Failed('the MPS server does not start')
        yield env
    finally:
        quit_mps = rig.start(['nvidia-cuda-mps-control'], env=env, stdin=subprocess.PIPE)
        with contextlib.suppress(subprocess.TimeoutExpired):
            quit_mps.communicate('quit\n', timeout=10)
        rig.end(quit_mps, 0)
        rig.end(control, 5)


def mps_1(bench):
    """For comparison; and a context that is shared must be refused."""
    with mps(bench.rig) as env, bench.rig.jobs('fp32', 1, env=env) as jobs:
        bench.mode('fp32-1-mps', jobs, env=env)
        before = jobs[0].progress
        status, said = bench.rig.command('hold', str(jobs[0].process.pid), '--for', '0.2')
        went_on = wait_until(lambda: jobs[0].progress != before, 1) is not None
        bench.result['rights'] = [r for r in bench.result['rights'] if 'MPS' not in r['case']] + [{
            'case': 'a client of MPS is held', 'expected': 'refused', 'said': said.strip()[-300:],
            'got': {0: 'held', 4: 'refused'}.get(status, f'exit status {status}'),
            'ok': status == 4 and went_on}]
