# SPDX-License-Identifier: MIT
"""What becomes of held jobs when whoever holds them is killed or stopped, or they are."""
import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import time

from rig import Announcer, Daemon, Failed, let_pass, say, wait_until

STILL_S = 0.15
STAYS_S = 1.0  # so long nobody undoes it, when both are dead
MEMORY_SLACK = 32 << 20
NOBODY = 65534

KILL, STOP = signal.SIGKILL, signal.SIGSTOP
# (what, signals for daemon and guard, whether announcements go on, who undoes it)
CASES = (
    ('daemon killed', KILL, None, True, None),
    ('daemon stopped', STOP, None, True, None),
    ('guard killed', None, KILL, True, None),
    ('guard stopped', None, STOP, False, None),
    ('both killed, then gpreempt release', KILL, KILL, True, 'release'),
    ('both killed, then gpreemptd --clean-up', KILL, KILL, True, 'clean-up'),
    ('both killed, then the next start', KILL, KILL, True, 'start'),
    ('both stopped, then gpreempt release', STOP, STOP, True, 'release'),
)


def wait_still(jobs, limit_s=10):
    """All of them stand still; where they do, or None."""
    seen, since = None, 0
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        now = [j.progress for j in jobs]
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since >= STILL_S:
            return seen
        let_pass(0.005)
    return None


def wait_moved(jobs, places, limit_s):
    """Seconds until each of them was seen to go on."""
    left = dict(enumerate(jobs))

    def all_moved():
        for i in [i for i, j in left.items() if j.progress != places[i]]:
            del left[i]
        return not left
    return wait_until(all_moved, limit_s, 0.002)


class Held:
    """Jobs that a daemon holds, all of them, for an online job that never comes."""

    def __init__(self, rig, jobs, online):
        self.rig, self.jobs, self.online, self.announcer = rig, jobs, online, None
        self.daemon = Daemon(rig)

    def __enter__(self):
        try:
            note = self.daemon.settle(self.online.pid, [j.process.pid for j in self.jobs])
            if note:
                raise Failed(f'not attached: {note}')
            self.announcer = Announcer(self.rig, self.daemon, self.online.pid)
            self.places = wait_still(self.jobs)
            if self.places is None:
                raise Failed(f'they were not all held; {self.announcer.made} hints were heard, '
                             f'{self.announcer.failed} failed')
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.announcer:
            self.announcer.close()
        self.daemon.close()
        self.rig.command('release', '--all')  # whatever went wrong, the next begins with none held


@contextlib.contextmanager
def idle_online(rig):
    process = rig.start_online(['--idle'])
    try:
        yield process
    finally:
        rig.end(process, 2)


def send(pid, sig):
    if sig is not None:
        os.kill(pid, sig)


def undo(rig, held, how):
    """What went wrong with it; None: nothing."""
    if how == 'release':
        status, said = rig.command('release', '--all', socket=held.daemon.socket)
        return None if status == 0 else said
    if how == 'clean-up':
        done = rig.start([rig.program('cmd/gpreemptd/gpreemptd'), '--clean-up', '--device', 'nvrm',
                          '--run-dir', held.daemon.dir], stdout=rig.log, env=rig.env())
        done.wait(10)
        return None if done.returncode == 0 else f'--clean-up ended with {done.returncode}'
    held.daemon.start()
    return None


def one_case(rig, jobs, online, what, to_daemon, to_guard, go_on, how):
    """seconds: until all of them were seen to run again."""
    found = {'case': f'4 held jobs, {what}', 'seconds': None}
    with Held(rig, jobs, online) as held:
        guard, pid = held.daemon.guard(), held.daemon.pid
        began = time.monotonic()
        send(guard, to_guard)  # first: it must not see the other's end
        send(pid, to_daemon)
        if not go_on:
            held.announcer.close()
        try:
            if how:
                let_pass(STAYS_S if to_daemon == KILL else 3.0)
                found['stayed_held'] = [j.progress for j in jobs] == held.places
                began = time.monotonic()
                found['said'] = undo(rig, held, how)
            if wait_moved(jobs, held.places, 5) is not None:
                found['seconds'] = round(time.monotonic() - began, 3)
        finally:
            held.announcer.close()
            for p, sig in ((guard, to_guard), (pid, to_daemon)):
                with contextlib.suppress(ProcessLookupError):
                    send(p, KILL if sig == STOP else None)
    found['run_afterwards'] = wait_moved(jobs, [j.progress for j in jobs], 5) is not None
    return found


def faults(bench):
    found = bench.result['faults'] = []
    args = ['--size', '4096', '--check-every', '8']
    with bench.rig.jobs('fp32', 4, args) as jobs, idle_online(bench.rig) as online:
        for case in CASES:
            wrong = sum(j.wrong for j in jobs)
            try:
                one = one_case(bench.rig, jobs, online, *case)
            except (Failed, OSError) as e:
                one = {'case': f'4 held jobs, {case[0]}', 'seconds': None, 'said': str(e)}
            checks = sum(j.checks for j in jobs)
            wait_until(lambda c=checks: sum(j.checks for j in jobs) >= c + len(jobs), 2)
            one['wrong'] = sum(j.wrong for j in jobs) - wrong
            say(f"   {one['case']}: {one['seconds']} s")
            found.append(one)


# ---- memory ----

class Memory:
    """Of the first GPU, in use; by the vendor's library, which is quicker than its command."""

    def __init__(self):
        self.nvml, self.gpu = None, ctypes.c_void_p()
        with contextlib.suppress(OSError):
            nvml = ctypes.CDLL('libnvidia-ml.so.1')
            if nvml.nvmlInit_v2() == 0 and \
                    nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.gpu)) == 0:
                self.nvml = nvml

    def used(self):
        if self.nvml:
            sizes = (ctypes.c_uint64 * 3)()  # total, free, used
            if self.nvml.nvmlDeviceGetMemoryInfo(self.gpu, sizes) == 0:
                return sizes[2]
        said = subprocess.run(['nvidia-smi', '--id=0', '--query-gpu=memory.used',
                               '--format=csv,noheader,nounits'], stdout=subprocess.PIPE, text=True,
                              check=True, timeout=10).stdout
        return int(said) << 20


def memory(bench):
    """A held job is killed: nobody else may keep its memory."""
    rig, memory_of = bench.rig, Memory()
    with rig.jobs('fp32', 3) as jobs, idle_online(rig) as online:
        before = memory_of.used()
        with rig.jobs('fp32', 1) as more:
            its = memory_of.used() - before
            with Held(rig, jobs + more, online):
                held = memory_of.used()
                os.kill(more[0].process.pid, signal.SIGKILL)
                took = wait_until(lambda: memory_of.used() <= held - its + MEMORY_SLACK, 5)
    bench.result['memory'] = {'job_bytes': its, 'seconds': took and round(took, 3)}


# ---- rights ----

def copy_for_others(rig):
    """Programs where any user can run them."""
    to = rig.new_file('programs')
    os.mkdir(to, 0o755)
    shutil.copy(rig.gpreempt, to)
    shutil.copy(rig.program('cmd/gpreempt-reader/gpreempt-reader'), to)
    if rig.lib:
        for name in os.listdir(rig.lib):
            shutil.copy(os.path.join(rig.lib, name), to)
    return to


def rights(bench):
    rig = bench.rig
    folder = copy_for_others(rig)
    found = [r for r in bench.result['rights'] if 'MPS' in r['case']]
    bench.result['rights'] = found
    with rig.jobs('fp32', 1) as (job,):
        places = [job.progress]
        status, said = rig.command(
            'hold', str(job.process.pid), '--for', '0.5', program=os.path.join(folder, 'gpreempt'),
            env={**os.environ, 'LD_LIBRARY_PATH': folder},
            user=NOBODY, group=NOBODY, extra_groups=[], cwd=folder)
        runs = wait_moved([job], places, 0.5) is not None
        found.append({'case': "another user's job is held", 'expected': 'refused',
                      'got': {0: 'held', 4: 'refused'}.get(status, f'exit status {status}'),
                      'ok': status == 4 and runs, 'said': said.strip()[-300:]})
        status, said = rig.command('hold', str(job.process.pid), '--for', '0.2')
        found.append({'case': "root's own job is held", 'expected': 'held',
                      'got': 'held' if status == 0 else f'exit status {status}',
                      'ok': status == 0, 'said': said.strip()[-300:]})
