# SPDX-License-Identifier: MIT
"""Processes for measuring: workloads, the daemon and commands. All of them end with the rig."""
import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from job import Job

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = '''[hold]
attach_age = 0s

[rule online]
uid = {uid}
command = *online*
class = online

[rule torch]
command = *be_torch*
class = offline

[rule fp32]
command = *besteffort*
class = offline
'''
NVCC = ['nvcc', '-O2', '-arch=sm_90']


class Failed(Exception):
    """A step cannot go on; its text says why."""


def let_pass(seconds):
    """For what has no descriptor to wait for: memory that others write to."""
    select.select([], [], [], seconds)


def wait_until(condition, limit_s, step_s=0.005):
    """Seconds until it was so; None: it was not."""
    began = time.monotonic()
    while True:
        if condition():
            return time.monotonic() - began
        if time.monotonic() - began > limit_s:
            return None
        let_pass(step_s)


def leave_last_processor():
    """It belongs to the thread whose requests are measured, which takes it for itself."""
    os.sched_setaffinity(0, range(max(1, os.cpu_count() - 1)))


def stolen_s():
    """Processor time that this virtual machine wanted and did not get."""
    with open('/proc/stat', encoding='utf-8') as f:
        return int(f.readline().split()[8]) / os.sysconf('SC_CLK_TCK')


def cpu_s(pid):
    used = 0
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/schedstat', encoding='utf-8') as f:
            used += int(f.read().split()[0])
    return used / 1e9


def name_of(pid):
    try:
        with open(f'/proc/{pid}/comm', encoding='utf-8') as f:
            return f.read().strip()
    except OSError:
        return ''


def children(pid):
    found = []
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{name}/stat', encoding='utf-8') as f:
                after_name = f.read().rsplit(')', 1)[1].split()
        except OSError:
            continue
        if int(after_name[1]) == pid:
            found.append(int(name))
    return found


def last_json(text):
    """The last line of it that is an object."""
    for line in reversed(text.splitlines()):
        if line.startswith('{'):
            return json.loads(line)
    raise Failed(f'no answer, only: {text.strip()[-200:]!r}')


class Rig:
    def __init__(self, build, lib, log):
        self.build, self.lib, self.log = os.path.abspath(build), lib and os.path.abspath(lib), log
        os.environ['GPREEMPT_HELPERS'] = os.path.join(self.build, 'cmd')
        self.dir = tempfile.mkdtemp(prefix='gpreempt-h200-')
        os.chmod(self.dir, 0o755)
        # Linux pins no pages for a device that belong to a file on a disk.
        self.shared = tempfile.mkdtemp(prefix='gpreempt-h200-', dir='/dev/shm')
        self.started, self.count = [], 0

    # ---- programs ----

    def program(self, path):
        return os.path.join(self.build, path)

    @property
    def gpreempt(self):
        return self.program('cmd/gpreempt/gpreempt')

    @property
    def library(self):
        return os.path.join(self.build, 'lib', 'libgpreempt.so.0')

    def env(self, **more):
        """For our own programs: they may need libraries this machine does not have."""
        env = {**os.environ, **more}
        if self.lib:
            env['LD_LIBRARY_PATH'] = ':'.join(filter(None, [self.lib, env.get('LD_LIBRARY_PATH')]))
        return env

    def compile(self):
        runs = {name: self.start([*NVCC, '-o', os.path.join(self.dir, name),
                                  os.path.join(HERE, f'{name}.cu')], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT)
                for name in ('online', 'besteffort')}
        for name, run in runs.items():
            said, _ = run.communicate()
            if run.returncode:
                raise Failed(f'{name}.cu does not compile: {said.strip()[-1500:]}')

    # ---- processes ----

    def start(self, command, **options):
        """A process with a session of its own, ended with the rig at the latest."""
        options = {'stdin': subprocess.DEVNULL, 'text': True, 'stderr': self.log, **options}
        options.setdefault('preexec_fn', leave_last_processor)
        process = subprocess.Popen(command, start_new_session=True, **options)
        self.started.append(process)
        return process

    def end(self, process, limit_s=5):
        """Waits for it, then kills it with all it started. What it had printed."""
        try:
            said = process.communicate(timeout=limit_s)[0]
        except (subprocess.TimeoutExpired, ValueError):
            said = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        with contextlib.suppress(ValueError):
            self.started.remove(process)
        return said

    def end_all(self):
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in self.started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
        self.started = []

    def close(self):
        with contextlib.suppress(Exception):
            self.command('release', '--all', limit_s=20)
        self.end_all()
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.rmtree(self.shared, ignore_errors=True)

    def command(self, *args, limit_s=15, socket=None, program=None, **options):
        """One of gpreempt: (exit status, what it printed)."""
        at = ['--socket', socket] if socket else []
        options.setdefault('env', self.env())
        process = self.start([program or self.gpreempt, '--device', 'nvrm', *at, '--json', *args],
                             stdout=subprocess.PIPE, **options)
        try:
            said = process.communicate(timeout=limit_s)[0]
        except subprocess.TimeoutExpired:
            self.end(process, 0)
            raise Failed(f'gpreempt {args[0]} did not end in {limit_s} s') from None
        self.started.remove(process)
        return process.returncode, said

    # ---- workloads ----

    def new_file(self, name):
        self.count += 1
        return os.path.join(self.dir, f'{name}-{self.count}')

    def new_job(self):
        self.count += 1
        return Job(os.path.join(self.shared, f'be-{self.count}'), create=True)

    def start_job(self, kind, args=(), **options):
        """A best-effort job; it may still be starting."""
        job = self.new_job()
        if kind == 'torch':
            command = ['python3', os.path.join(HERE, 'be_torch.py'), job.path, *args]
        else:
            command = [os.path.join(self.dir, 'besteffort'), job.path, *args]
        job.process = self.start(command, stdout=subprocess.PIPE, **options)
        return job

    def wait_ready(self, jobs, limit_s=60):
        def ready():
            ended = next((j for j in jobs if j.process.poll() is not None), None)
            if ended:
                raise Failed(f'a best-effort job ended with {ended.process.returncode}')
            return all(j.ready for j in jobs)
        if wait_until(ready, limit_s) is None:
            raise Failed('the best-effort jobs do not start')

    @contextlib.contextmanager
    def jobs(self, kind, n, args=(), **options):
        jobs = [self.start_job(kind, args, **options) for _ in range(n)]
        try:
            self.wait_ready(jobs)
            yield jobs
        finally:
            for job in jobs:
                job.stop = 1
            end = time.monotonic() + 6
            for job in jobs:
                self.end(job.process, max(0, end - time.monotonic()))

    def start_online(self, args=(), torch=False, **options):
        """Waits until it says ready; it then waits for a line."""
        program = ['python3', os.path.join(HERE, 'online_torch.py')] if torch else \
            [os.path.join(self.dir, 'online')]
        process = self.start([*program, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             **options)
        if not select.select([process.stdout], [], [], 60)[0] or \
                not process.stdout.readline().startswith('ready'):
            self.end(process, 0)
            raise Failed('the online job does not start')
        return process

    def measure(self, jobs, seconds, args=(), torch=False, daemon=None, **options):
        """Requests beside those jobs: what the online job printed, and how the daemon was."""
        watched = [a for j in jobs for a in ('--watch', j.path)]
        process = self.start_online(['--seconds', str(seconds), *watched, *args], torch, **options)
        try:
            note = daemon.settle(process.pid, [j.process.pid for j in jobs]) if daemon else None
            cpu, began = daemon.cpu() if daemon else 0, time.monotonic()
            stolen = stolen_s()
            said = process.communicate('go\n', timeout=seconds * 4 + 30)[0]
            took = time.monotonic() - began
        except subprocess.TimeoutExpired:
            raise Failed('the online job does not end') from None
        finally:
            self.end(process, 0)
        raw = last_json(said)
        raw['stolen_s'] = round(stolen_s() - stolen, 2)
        if daemon:
            raw['daemon'] = {'cpu_pct': round(100 * (daemon.cpu() - cpu) / took, 2), 'note': note,
                             **daemon.figures()}
        return raw

    def rate(self, job, seconds):
        """Units a second of a job that runs."""
        before, began = job.progress, time.monotonic()
        let_pass(seconds)
        return (job.progress - before) / (time.monotonic() - began)


class Daemon:
    """gpreemptd with a run directory and a configuration of its own."""

    def __init__(self, rig, config=''):
        self.rig = rig
        self.dir = rig.new_file('run')
        self.socket = os.path.join(self.dir, 'control.sock')
        self.config = rig.new_file('conf')
        with open(self.config, 'w', encoding='utf-8') as f:
            f.write(CONFIG.format(uid=os.getuid()) + config)
        self.start()

    def start(self):
        self.process = self.rig.start(
            [self.rig.program('cmd/gpreemptd/gpreemptd'), '--device', 'nvrm', '--config',
             self.config, '--run-dir', self.dir, '--verbose'], stdout=self.rig.log,
            env=self.rig.env())
        self.pid = self.process.pid
        if wait_until(self.answers, 40, 0.1) is None:
            self.rig.end(self.process, 0)
            raise Failed('gpreemptd does not start; its log is in the log')

    def answers(self):
        if self.process.poll() is not None:
            raise Failed(f'gpreemptd ended with {self.process.returncode}; see the log')
        return os.path.exists(self.socket) and \
            self.rig.command('status', socket=self.socket)[0] == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.rig.end(self.process, 8)

    def status(self):
        status, said = self.rig.command('status', socket=self.socket)
        if status:
            raise Failed(f'gpreempt status: {said.strip()[-200:]}')
        return json.loads(said)

    def guard(self):
        """The one process of that name beside it."""
        found = [pid for pid in children(self.pid) if name_of(pid) == 'gpreempt-guard']
        if len(found) != 1:
            raise Failed(f'gpreemptd has {len(found)} guards')
        return found[0]

    def cpu(self):
        return cpu_s(self.pid)

    def figures(self):
        s = self.status()
        return {k: s.get(k) for k in ('policy', 'backend', 'guarded', 'preemptions', 'hints',
                                      'hints_refused', 'trips', 'suspend_us', 'resume_us',
                                      'detection_us')}

    def settle(self, online, offline):
        """Waits until it knows them all; otherwise, a note that says whom it does not."""
        missing = []

        def known():
            jobs = {j['pid']: j for j in self.status()['jobs']}
            missing[:] = [f"{pid}: {jobs.get(pid, {}).get('why', 'not known')}" for pid in offline
                          if not jobs.get(pid, {}).get('attached')]
            if jobs.get(online, {}).get('class') != 'online':
                missing.append(f'{online}: not online')
            return not missing
        took = wait_until(known, 8, 0.1)
        let_pass(0.5)
        return None if took is not None else '; '.join(missing)


class Announcer(threading.Thread):
    """Says that work of an online job comes, again and again, so that all others are held."""

    def __init__(self, rig, daemon, pid):
        super().__init__(daemon=True)
        self.library = ctypes.CDLL(rig.library)
        self.library.gpreempt_daemon_hint.argtypes = [ctypes.c_void_p, ctypes.c_int,
                                                      ctypes.c_uint64, ctypes.c_uint64]
        self.connection, self.pid, self.over = ctypes.c_void_p(), pid, threading.Event()
        self.failed = self.made = 0
        r = self.library.gpreempt_daemon_open(daemon.socket.encode(),
                                              ctypes.byref(self.connection), None)
        if r < 0:
            raise Failed(f'no connection to the daemon: {r}')
        self.start()

    def run(self):
        while not self.over.wait(0.01):
            r = self.library.gpreempt_daemon_hint(self.connection, self.pid, 0, 300_000_000)
            self.made += r >= 0
            self.failed += r < 0
            if r == -104:  # ECONNRESET: the daemon is gone
                return

    def close(self):
        self.over.set()


def say(text):
    print(text, file=sys.stderr, flush=True)
