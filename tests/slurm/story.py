# SPDX-License-Identifier: MIT
"""What must be true of the hook for Slurm; run by tests/slurm/run, in namespaces of its own."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback

from cluster import Cluster, until, write

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = sys.argv[1]
GPREEMPT = os.path.join(BUILD, 'cmd/gpreempt/gpreempt')
HOOK = os.path.join(ROOT, 'data/slurm/hook')
os.environ['GPREEMPTD'] = os.path.join(BUILD, 'cmd/gpreemptd/gpreemptd')
sys.path.insert(0, os.path.join(ROOT, 'tests/daemon'))
import rig  # noqa: E402  (it wants to know where the daemon is)

NOBODY = 65534
MAP = '''
# The real scontrol is asked for a QOS that Slurm without accounts does not have.
qos urgent = online
partition online = online latency-critical   # a comment
partition off* = offline priority=3
'''
DAEMON = '[hold]\nattach_age = 0s\n'


class Tap:
    def __init__(self):
        self.n = self.failed = 0

    def check(self, what, good, *why):
        self.n += 1
        self.failed += not good
        print(f'{"ok" if good else "not ok"} {self.n} - {what}', flush=True)
        for line in () if good else why:
            print(f'# {line}', flush=True)

    def end(self):
        print(f'1..{self.n}', flush=True)
        return 1 if self.failed else 0


class Story:
    def __init__(self, tap, folder):
        self.check = tap.check
        self.dir = folder
        self.hook = os.path.join(folder, 'hook')
        self.log = os.path.join(folder, 'hook.log')
        self.records = os.path.join(folder, 'records')
        self.map = os.path.join(folder, 'map')
        write(self.log, '', 0o666)
        write(self.map, MAP)
        write(self.hook, f'''#!/bin/sh
export GPREEMPT_SLURM_CONF={self.map} GPREEMPT_SLURM_RECORDS={self.records}
export GPREEMPT_SLURM_PATH=$GPREEMPT_TEST_PATH{os.path.dirname(GPREEMPT)}:/usr/bin:/bin
GPREEMPT_SOCKET=$(cat {folder}/socket) exec {HOOK} "$@" 2>>{self.log}
''', 0o755)
        self.daemon = None
        self.slurm = Cluster(folder, self.hook)

    # ---- what is used below ----

    def start_daemon(self):
        self.daemon = rig.Daemon(DAEMON)
        write(os.path.join(self.dir, 'socket'), self.daemon.socket)

    def said(self):
        """What the hook had to say since it was asked last."""
        with open(self.log, 'r+', encoding='utf-8') as f:
            lines = f.read().splitlines()
            f.truncate(0)
        return lines

    def load(self, *args):
        return f'{GPREEMPT} --json --socket {self.daemon.socket} load ' + ' '.join(args)

    def jobs(self):
        with self.daemon.client() as client:
            return {j.comm: j for j in client.jobs()}

    def find(self, name):
        return until(f'{name} on the device', lambda: self.jobs().get(name))

    def run_job(self, partition, name, *args, uid=0):
        """A job that is there; its number, and what the daemon knows of it."""
        job = self.slurm.submit(partition, self.load('--name', name, *args), uid)
        return job, self.find(name)

    def cancel(self, job):
        self.slurm.tool('scancel', str(job))
        return self.slurm.ended(job)

    def class_in(self, path):
        """Of a process that gets into a cgroup of that path now."""
        folder = self.slurm.cgroup_folder(path)
        os.makedirs(folder, exist_ok=True)
        try:
            return self.class_beside(path)
        finally:
            until('an empty cgroup', lambda: rmdir(folder))

    def run_hook(self, *args, **env):
        return subprocess.run([self.hook, *args], stdin=subprocess.DEVNULL, text=True, check=False,
                              stdout=subprocess.PIPE, env={**os.environ, **env})

    # ---- what must be so ----

    def preempts(self):
        with self.daemon.client() as events:
            events.subscribe()
            offline, train = self.run_job('offline', 'train', '--requests', '150')
            online, serve = self.run_job('online', 'serve', '--online', '--requests', '30',
                                         uid=NOBODY)
            self.check('a job in the partition "offline" is offline, with its priority',
                       (train.job_class, train.priority, train.source) ==
                       (rig.OFFLINE, 3, 'request'), train)
            self.check("another user's job in the partition \"online\" is online and critical",
                       (serve.job_class, serve.uid, serve.critical) == (rig.ONLINE, NOBODY, True),
                       serve)
            held = events.event(rig.HELD)
            self.check('the online job preempts the offline one',
                       (held.pid, held.other_pid) == (train.pid, serve.pid), held)
            let_go = events.event(rig.LET_GO)
            self.check('and gives the GPU back', let_go.pid == train.pid, let_go)
        self.check('the online job ends well', self.slurm.ended(online) == 'COMPLETED')
        self.check('the offline job ends well', self.slurm.ended(offline) == 'COMPLETED')
        done = json.loads(self.slurm.output(offline))
        self.check('nothing of its work is lost', done['complete'] and done['in_order'] and
                   done['kernels'] == 150 and done['saves'] > 0, done)
        self.check('the hook had nothing to say', self.said() == [])
        self.check('nothing is kept of jobs that ended', os.listdir(self.records) == [])
        self.check('with the epilog their classes are gone',
                   self.class_in(f'/uid_{NOBODY}/job_{online}') == rig.NONE)

    def ends_without_epilog(self):
        write(self.slurm.path('no-epilog'), '')
        job, serve = self.run_job('online', 'serve')
        self.check('a job whose epilog will not run is online', serve.job_class == rig.ONLINE)
        self.cancel(job)
        os.unlink(self.slurm.path('no-epilog'))
        path = f'/uid_0/job_{job}'
        until('the end of its cgroup',
              lambda: not os.path.exists(self.slurm.cgroup_folder(path)))
        gone = f'cgroup {self.slurm.cgroup(path)} is gone'
        until('the daemon notices', lambda: gone in self.daemon.said())
        self.check('without an epilog its class is gone with the cgroup',
                   self.class_in(path) == rig.NONE)
        self.run_hook('restore')
        self.check('what was kept of it is young, and kept', os.listdir(self.records) == [str(job)])
        os.utime(os.path.join(self.records, str(job)), (0, 0))
        self.run_hook('restore')
        self.check('when it is old it is removed', os.listdir(self.records) == [])

    def leaves_others_alone(self):
        job, other = self.run_job('other', 'other', '--requests', '20')
        self.check('a job in a partition nobody named has no class', other.job_class == rig.NONE)
        self.check('and runs', self.slurm.ended(job) == 'COMPLETED')
        self.check('and nothing is said about it', self.said() == [])

    def gives_no_rights(self):
        job = self.slurm.submit('offline', f'{GPREEMPT} --socket {self.daemon.socket} '
                                           'class "cgroup:*" default', NOBODY)
        self.slurm.ended(job)
        train, found = self.run_job('offline', 'train', uid=NOBODY)
        self.check('no job withdraws what root asked', found.job_class == rig.OFFLINE)
        asked = subprocess.run(
            ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups', GPREEMPT,
             '--socket', self.daemon.socket, 'class', str(found.pid), 'online'],
            check=False, capture_output=True, text=True)
        self.check('no user makes their own job online', asked.returncode == 4, asked)
        self.cancel(train)
        self.said()

    def survives_the_daemon(self):
        job = self.slurm.submit('online', 'sleep 600')
        path = f'/uid_0/job_{job}/step_batch'
        until('the job', lambda: os.path.exists(self.slurm.cgroup_folder(path)))
        self.check('whoever comes into the cgroup of a job later is of its class',
                   self.class_beside(path) == rig.ONLINE)
        self.daemon.end()
        self.daemon.close()
        self.start_daemon()
        self.check('a daemon that was started anew knows nothing of it',
                   self.class_beside(path) == rig.NONE)
        self.run_hook('restore')
        self.check('until it is told', self.class_beside(path) == rig.ONLINE, *self.said())
        self.cancel(job)
        self.check('and nobody had anything to say', self.said() == [])

    def class_beside(self, path):
        """As class_in(), in a cgroup that is there."""
        process = subprocess.Popen(
            ['sh', '-c', f'echo $$ >{self.slurm.cgroup_folder(path)}/cgroup.procs; '
                         f'exec {self.load("--name", "beside")}'], stdout=subprocess.DEVNULL)
        try:
            return self.find('beside').job_class
        finally:
            process.kill()
            process.wait()
            until('nobody', lambda: 'beside' not in self.jobs())

    def runs_anyway(self, what, line, lines=2):
        """A job is not stopped, its node not drained, and it is told why it has no class."""
        job = self.slurm.submit('online', '/bin/true')
        self.check(f'{what}: the job runs', self.slurm.ended(job) == 'COMPLETED')
        said = self.said()
        self.check(f'{what}: it is told in a line', 0 < len(said) <= lines and line in said[0],
                   *said)
        self.check(f'{what}: the node is not drained', self.slurm.node_state() == 'idle')

    def fails_open(self):
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.runs_anyway('a daemon that hangs', 'does not answer')
        self.daemon.process.send_signal(signal.SIGCONT)
        self.daemon.end()
        self.runs_anyway('no daemon', 'no class')
        for text in ('partition online = onlin', 'partition = online', 'nonsense',
                     'partition online = online priority=x', 'cgroup = relative'):
            write(self.map, f'\n{text}\npartition * = online\n')
            checked = self.run_hook('check')
            said = self.said()
            self.check(f'"{text}" is refused by the check',
                       checked.returncode == 1 and f'{self.map}, line 2: ' in said[0], *said)
        self.runs_anyway('a mistake in the file', 'line 2: ', 1)
        os.unlink(self.map)
        self.runs_anyway('no file', 'cannot be read', 1)
        write(self.map, MAP)
        self.daemon.close()

    def knows_the_ways_of_slurm(self):
        """What this machine's Slurm does not have: a QOS, the unified hierarchy, other names."""
        self.start_daemon()
        tools = os.path.join(self.dir, 'tools')
        tree = os.path.join(self.dir, 'tree')
        os.mkdir(tools)
        os.makedirs(tree + '/system.slice/slurmstepd.scope')
        write(tools + '/scontrol', '#!/bin/sh\n[ "$*" = "-o show job 77" ] && '
              'echo "JobId=77 Account=a QOS=urgent JobState=RUNNING"\n', 0o755)
        env = {'SLURM_JOB_ID': '77', 'SLURM_JOB_UID': '1000', 'SLURM_JOB_PARTITION': 'offline',
               'SLURMD_NODENAME': 'n1', 'GPREEMPT_SLURM_CGROUPS': tree,
               'GPREEMPT_TEST_PATH': tools + ':'}
        prolog, epilog = ({**env, 'SLURM_SCRIPT_CONTEXT': c} for c in ('prolog_slurmd',
                                                                       'epilog_slurmd'))
        record = os.path.join(self.records, '77')

        def recorded(**more):
            self.run_hook(**{**prolog, **more})
            with open(record, encoding='utf-8') as f:
                text = f.read()
            self.run_hook(**{**epilog, **more})
            return text
        unified = 'cgroup:/system.slice/slurmstepd.scope/job_77 '
        got = recorded()
        self.check('the QOS that scontrol tells counts', got == unified + 'online\n', got)
        got = recorded(SLURM_JOB_QOS='normal')
        self.check('the QOS that Slurm tells the prolog comes before it',
                   got == unified + 'offline --priority 3\n', got)
        write(self.map, MAP + 'cgroup = /mine/%n/%u/%j\n')
        got = recorded(SLURM_JOB_QOS='none')
        self.check('a path of the file is used',
                   got == 'cgroup:/mine/n1/1000/77 offline --priority 3\n', got)
        self.check('and the epilog removes it', not os.path.exists(record), *self.said())
        write(self.map, MAP)
        for wrong in ({'SLURM_JOB_ID': '../../etc/x'}, {'SLURMD_NODENAME': 'a/b'},
                      {'SLURM_JOB_ID': ''}, {'SLURM_SCRIPT_CONTEXT': 'epilog_slurmctld'},
                      {'SLURM_SCRIPT_CONTEXT': ''}):
            done = self.run_hook(**{**prolog, **wrong})
            self.check(f'{wrong}: nothing is done, and no node drained',
                       (done.returncode, os.listdir(self.records)) == (0, []), *self.said())

    def lowers_without_cgroups(self):
        """A site that has none: a task's own prolog may lower it, and nobody raises."""
        self.slurm.end()
        self.slurm.begin('linuxproc', f'TaskProlog={self.hook}')
        job, train = self.run_job('offline', 'train', uid=NOBODY)
        self.check('without cgroups a job in "offline" is offline by its task prolog',
                   (train.job_class, train.source) == (rig.OFFLINE, 'request'), train,
                   *self.said())
        self.cancel(job)
        self.said()
        job, serve = self.run_job('online', 'serve', uid=NOBODY)
        said = self.said()
        self.check('one in "online" is left as it is, and that is told',
                   serve.job_class == rig.NONE and len(said) == 1 and 'cgroup' in said[0], *said)
        self.cancel(job)
        self.check('and the node is not drained', self.slurm.node_state() == 'idle')

    def tell(self):
        self.slurm.begin('cgroup')
        self.start_daemon()
        self.preempts()
        self.ends_without_epilog()
        self.leaves_others_alone()
        self.gives_no_rights()
        self.survives_the_daemon()
        self.fails_open()
        self.knows_the_ways_of_slurm()
        self.lowers_without_cgroups()


def rmdir(folder):
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True


def tell_all():
    tap = Tap()
    folder = tempfile.mkdtemp(prefix='gpreempt-slurm-')
    os.chmod(folder, 0o755)
    story = Story(tap, folder)
    try:
        story.tell()
        story.slurm.end()
        tap.check('nothing is left', not os.path.exists(story.slurm.cgroup_folder('')))
    except Exception:  # whatever it was, what happened so far is worth reading
        tap.check('the story comes to its end', False, *traceback.format_exc().splitlines(),
                  *story.said(), *story.slurm.logs())
        os.kill(-1, signal.SIGKILL)  # all of the namespace but its first process and this one
        until('no cgroups', story.slurm.remove_cgroups)
    finally:
        if story.daemon:
            story.daemon.close()
        story.slurm.remove()
    return tap.end()


def main():
    """The first process of its namespace: it takes in whom nobody waits for."""
    if os.getpid() != 1:  # what it kills when it fails is everybody
        sys.exit('story.py: this is for tests/slurm/run, in namespaces of its own')
    child = os.fork()
    if child == 0:
        os._exit(tell_all())
    while True:
        pid, status = os.wait()
        if pid == child:
            sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == '__main__':
    main()
