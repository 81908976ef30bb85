# SPDX-License-Identifier: MIT
"""Slurm on one machine that has no other: its key, controller and node, and jobs on it."""
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time

WAIT_S = 120  # for what must come; Slurm takes a second or two of it
PARTITIONS = ('online', 'offline', 'other')

# More processors than there may be, so that jobs run side by side.
CONFIG = '''
ClusterName=test
SlurmctldHost={node}(127.0.0.1)
SlurmctldPort=6817
SlurmdPort=6818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge.sock
CredType=cred/munge
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.log
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
PlugStackConfig={dir}/plugstack.conf
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
Prolog={hook}
Epilog={dir}/epilog
{more}
NodeName={node} NodeAddr=127.0.0.1 CPUs=8 Boards=1 SocketsPerBoard=1 CoresPerSocket=8
'''
CGROUP_CONFIG = '''
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
CgroupAutomount=no
'''


def until(what, condition):
    """What the condition says, as soon as it says something."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.05)
    raise TimeoutError(f'{what}: not within {WAIT_S} s')


SIOCSIFFLAGS, SIOCSIFADDR = 0x8914, 0x8916  # netdevice(7)
ADDRESS = '10.99.99.1'  # getaddrinfo(3) does without those that have no other than 127.0.0.1


def make_network(node):
    """A new namespace has a loopback device, but down, and names are looked up in files."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack('16sH14x', b'lo', 1))
        fcntl.ioctl(s, SIOCSIFADDR, struct.pack('16sHH4s16x', b'lo:1', socket.AF_INET, 0,
                                                socket.inet_aton(ADDRESS)))
    socket.sethostname(node)
    with tempfile.NamedTemporaryFile('w', encoding='ascii') as f:
        f.write(f'127.0.0.1 localhost {node}\n')
        f.flush()
        os.chmod(f.name, 0o644)
        subprocess.run(['mount', '--bind', f.name, '/etc/hosts'], check=True)


def write(path, text, mode=0o644):
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    os.chmod(path, mode)


class Cluster:
    """@hook: the prolog. Its epilog is the same, as long as there is no file "no-epilog"."""

    def __init__(self, folder, hook):
        self.dir, self.hook = folder, hook
        self.node = f'gpt{os.path.basename(folder)[-6:].lower().replace("_", "0")}'
        self.processes = []
        for name in ('state', 'spool', 'out'):
            os.mkdir(os.path.join(folder, name))
        os.chmod(self.path('out'), 0o1777)
        write(self.path('plugstack.conf'), '')
        write(self.path('cgroup.conf'), CGROUP_CONFIG)
        write(self.path('epilog'), f'#!/bin/sh\n[ -e {folder}/no-epilog ] || exec {hook}\n', 0o755)
        with open(self.path('key'), 'wb') as f:
            os.fchmod(f.fileno(), 0o600)
            f.write(os.urandom(64))
        make_network(self.node)
        os.environ['SLURM_CONF'] = self.path('slurm.conf')

    def path(self, name):
        return os.path.join(self.dir, name)

    def start(self, *command):
        with open(self.path(os.path.basename(command[0]) + '.out'), 'ab') as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                       cwd='/')
        self.processes.append(process)
        return process

    def begin(self, proctrack, more=''):
        nodes = f'Nodes={self.node} MaxTime=10'
        more += ''.join(f'\nPartitionName={p} {nodes}' for p in PARTITIONS)
        node, rest = CONFIG.rsplit('{more}', 1)
        write(self.path('slurm.conf'), (node + rest + more + '\n').format(
            dir=self.dir, node=self.node, hook=self.hook, proctrack=proctrack))
        munge = self.path('munge.')
        self.start('munged', '--foreground', '--force', f'--key-file={self.path("key")}',
                   f'--socket={munge}sock', f'--pid-file={munge}pid', f'--log-file={munge}log',
                   f'--seed-file={munge}seed')
        until('munged', lambda: os.path.exists(munge + 'sock'))
        self.start('slurmctld', '-D', '-i', '-c')
        self.start('slurmd', '-D', '-c')
        until('an idle node', self.is_up)

    def end(self):
        """Jobs first: their cgroups go with them."""
        self.tool('scancel', '--quiet', '--user=root', '--user=nobody', check=False)
        until('no jobs', lambda: self.tool('squeue', '-h', check=False).strip() == '')
        while self.processes:
            process = self.processes.pop()
            process.terminate()
            process.wait(WAIT_S)
        for name in os.listdir(self.dir):
            if name in ('munge.sock', 'slurmctld.pid', 'slurmd.pid'):
                os.unlink(self.path(name))
        until('no cgroups', self.remove_cgroups)

    def remove_cgroups(self):
        """What Slurm leaves there: empty folders."""
        top = self.cgroup_folder('')
        for folder, _, _ in os.walk(top, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                return False
        return not os.path.exists(top)

    def cgroup(self, path):
        """As Debian's Slurm names it, which may have several nodes on a machine."""
        return f'/slurm_{self.node}{path}'

    def cgroup_folder(self, path):
        return '/sys/fs/cgroup/freezer' + self.cgroup(path)

    # ---- asking Slurm ----

    def tool(self, *command, check=True):
        return subprocess.run(command, check=check, stdin=subprocess.DEVNULL, text=True, cwd='/',
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout

    def is_up(self):
        for process in self.processes:
            if process.poll() is not None:
                raise ChildProcessError(f'{process.args[0]} ended with {process.returncode}')
        return self.node_state() == 'idle'

    def node_state(self):
        return self.tool('sinfo', '-h', '-p', 'online', '-o', '%T', check=False).strip()

    def submit(self, partition, command, uid=0):
        """The number of a job."""
        write(self.path('script'), f'#!/bin/sh\nexec {command}\n', 0o755)
        said = self.tool('sbatch', '--parsable', f'--uid={uid}', '-p', partition, '-D', '/',
                         '-o', self.path('out/%j'), '-e', self.path('out/%j.err'),
                         self.path('script'))
        return int(said)

    def state(self, job):
        said = self.tool('scontrol', '-o', 'show', 'job', str(job))
        return said.split('JobState=', 1)[1].split()[0]

    def ended(self, job):
        """How, when it is over and nothing of it is left, the epilog either."""
        def state():
            left = self.tool('squeue', '-h', '-j', str(job), '-t', 'all', '-o', '%T', check=False)
            return left.strip() not in ('PENDING', 'CONFIGURING', 'RUNNING', 'COMPLETING') and \
                self.state(job)
        return until(f'the end of job {job}', state)

    def output(self, job):
        with open(self.path(f'out/{job}'), encoding='utf-8') as f:
            return f.read()

    def logs(self):
        lines = []
        for name in sorted(os.listdir(self.dir)):
            if name.endswith(('.log', '.out')):
                with open(self.path(name), encoding='utf-8', errors='replace') as f:
                    lines += [f'{name}: {line.rstrip()}' for line in f.readlines()[-8:]]
        return lines

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)
