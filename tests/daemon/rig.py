# SPDX-License-Identifier: MIT
"""A real gpreemptd on the software device in a directory of its own, and its protocol."""
import array
import ctypes
import mmap
import os
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
from collections import namedtuple

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import records  # noqa: E402 pylint: disable=wrong-import-position

GPREEMPTD = os.environ['GPREEMPTD']
DEVICE = os.environ.get('GPREEMPT_TEST_DEVICE', 'model')
DONE, FAILED, USAGE, ABSENT, REFUSED = range(5)
STRANGER = 65534  # a user and a group with nothing to say here
PERF_EVENT_OPEN = {'x86_64': 298}.get(os.uname().machine, 241)  # that of all newer machines
WAIT_S = 30  # for what must come; a test that waits so long has failed

(STATUS, GPUS, JOBS, POLICY, CLASS, HINT, HINT_PAGE, SUBSCRIBE, METRICS, PAUSE, CONTINUE, REARM,
 RELEASE, RELOAD, TRIP) = range(1, 16)
EVENT, ERROR = 64, 65
NONE, ONLINE, OFFLINE = range(3)
BY_PID, BY_CGROUP, BY_NAME, BY_CONTAINER = range(1, 5)
KEEP = 0xffffffff
(JOB_CAME, JOB_WENT, JOB_CLASSED, JOB_ATTACHED, JOB_NOT_ATTACHED, HELD, LET_GO, TRIPPED, REARMED,
 POLICY_SET, WAS_PAUSED, CONTINUED, RELOADED, MISSED) = range(1, 15)

HEADER = struct.Struct('<IBBHII')
MAGIC, VERSION = 0x54504d47, 4
REQUEST = struct.Struct('<Q')
NAMED_POLICY = struct.Struct('<16s')
CLASS_BODY = struct.Struct('<IiIIIIQ192s')
HINT_BODY = struct.Struct('<iIQQ')  # as it was before pages could be waited for
PAGE_BODY = struct.Struct('<iIQQQ')
ERROR_BODY = struct.Struct('<iI160s160s')
LIST = struct.Struct('<IIQ')  # how many, of how many, where the next page begins
LENGTH = struct.Struct('<I')

HEADERS = records.of_tree(ROOT)
LETTERS = {'bool': '?', 'pid_t': 'i', 'uid_t': 'I', 'uint32_t': 'I', 'uint64_t': 'Q',
           'struct gpreempt_latency': '32s'}


class Record:
    """Entries of a struct of gpreempt/daemon.h, as they are sent."""

    def __init__(self, struct_name):
        fields = HEADERS.structs[struct_name][1:]
        letters = (f'{HEADERS.length(f)}s' if f.array else LETTERS.get(f.type, 'I') for f in fields)
        self.format = struct.Struct('<' + ''.join(letters))
        self.texts = {f.name for f in fields if f.type == 'char'}
        self.private = [f.name for f in fields if 'public' not in f.words]
        self.make = namedtuple(struct_name, [f.name for f in fields])

    def read(self, body, at):
        """One entry, and where the next begins."""
        width, = LENGTH.unpack_from(body, at)
        at += LENGTH.size
        made = self.make(*self.format.unpack_from(body, at))
        return made._replace(**{name: text(getattr(made, name)) for name in self.texts}), at + width

    def read_all(self, body):
        n, _, following = LIST.unpack_from(body)
        found, at = [], LIST.size
        for _ in range(n):
            entry, at = self.read(body, at)
            found.append(entry)
        assert at == len(body), (at, len(body))
        return found, following


STATUS_RECORD, GPU_RECORD, JOB_RECORD, EVENT_RECORD, POLICY_RECORD = (
    Record('gpreempt_' + name) for name in
    ('daemon_status', 'daemon_gpu', 'daemon_job', 'event', 'policy'))


class WireError(Exception):
    def __init__(self, body):
        self.error, self.kind, message, hint = ERROR_BODY.unpack(body)
        self.message, self.hint = text(message), text(hint)
        super().__init__(f'{self.message} ({self.hint})')


def text(field):
    return field.split(b'\0', 1)[0].decode()


def packet(kind, body=REQUEST.pack(0), seq=1, magic=MAGIC, version=VERSION, since=VERSION,
           size=None):
    length = HEADER.size + len(body) if size is None else size
    return HEADER.pack(magic, version, since, kind, length, seq) + body


def lingering():
    """A TCP socket that whoever closes it last waits for, and its idle other end."""
    listener = socket.socket()
    listener.bind(('127.0.0.1', 0))
    listener.listen()
    s = socket.socket()
    s.connect(listener.getsockname())
    peer, _ = listener.accept()
    listener.close()
    s.setblocking(False)
    try:
        while True:
            s.send(bytes(65536))
    except BlockingIOError:
        pass
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 4 * WAIT_S))
    return s, peer


def send_file(s, file, data=b''):
    s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [file.fileno()]))])


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(path)  # waits for room; with a timeout it would not
        self.socket.settimeout(WAIT_S)
        self.seq = 0
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, kind, body=REQUEST.pack(0)):
        self.seq += 1
        self.socket.send(packet(kind, body, self.seq))
        return self.seq

    def receive(self):
        """One packet: its type, seq and body. None: the daemon has hung up."""
        data = self.socket.recv(16384)
        if not data:
            return None
        magic, version, since, kind, size, seq = HEADER.unpack_from(data)
        assert (magic, size) == (MAGIC, len(data)), data[:16]
        assert kind == ERROR or (version, since) == (VERSION, VERSION), data[:16]
        return kind, seq, data[HEADER.size:]

    def answer(self, kind, seq):
        """The answer with that seq; events that come before it are kept."""
        while True:
            got = self.receive()
            if got is None:
                raise ConnectionResetError('hung up')
            got_kind, got_seq, body = got
            if got_kind == EVENT:
                self.events.append(event_of(body))
                continue
            if got_kind == ERROR:
                raise WireError(body)
            assert (got_kind, got_seq) == (kind, seq), (got_kind, got_seq)
            return body

    def ask(self, kind, body=REQUEST.pack(0)):
        return self.answer(kind, self.send(kind, body))

    def count(self, kind, number=0):
        return REQUEST.unpack(self.ask(kind, REQUEST.pack(number)))[0]

    def status(self):
        return STATUS_RECORD.read_all(self.ask(STATUS))[0][0]

    def gpus(self):
        return GPU_RECORD.read_all(self.ask(GPUS))[0]

    def jobs(self):
        found, following = [], 0
        while True:
            page, following = JOB_RECORD.read_all(self.ask(JOBS, REQUEST.pack(following)))
            if not page:
                return found
            found += page

    def policy(self, name=''):
        return POLICY_RECORD.read_all(self.ask(POLICY, NAMED_POLICY.pack(name.encode())))[0][0]

    def set_class(self, pid, job_class, priority=KEEP, flags=0, target_us=0, selector=BY_PID,
                  pattern=''):
        body = CLASS_BODY.pack(selector, pid, job_class, priority, flags, 0, target_us,
                               pattern.encode())
        return REQUEST.unpack(self.ask(CLASS, body))[0]

    def hint(self, pid=0, ahead_ns=0, for_ns=0, kind=HINT):
        self.ask(kind, HINT_BODY.pack(pid, 0, ahead_ns, for_ns))

    def metrics(self):
        whole, total = b'', None
        while total is None or len(whole) < total:
            page = self.ask(METRICS, REQUEST.pack(len(whole)))
            n, total, _ = LIST.unpack_from(page)
            assert n == len(page) - LIST.size
            whole += page[LIST.size:]
        return whole.decode()

    def subscribe(self):
        self.ask(SUBSCRIBE)

    def event(self, *kinds):
        """The next event of one of these kinds."""
        while True:
            while self.events:
                e = self.events.pop(0)
                if e.kind in kinds:
                    return e
            kind, _, body = self.receive()
            assert kind == EVENT, kind
            self.events.append(event_of(body))


def event_of(body):
    return EVENT_RECORD.read_all(body)[0][0]


# Executes a program as sd_listen_fds(3) expects it: the socket is descriptor 3. As another user,
# who need not see where the program lies.
HAND_OVER = """
import os, sys
fd, uid = map(int, sys.argv[1:3])
if fd != 3:
    os.dup2(fd, 3)
    os.close(fd)
os.set_inheritable(3, True)
program = os.open(sys.argv[3], os.O_RDONLY)
if uid != os.geteuid():
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1')
os.execve(program, sys.argv[3:], os.environ)
"""


def handing_over(listener, uid):
    """What execs the rest of a command line with the socket, if there is any."""
    return [sys.executable, '-c', HAND_OVER, str(listener.fileno()), str(uid)] if listener else []


class Daemon:
    """Ready when it is made; its directory goes with it."""

    def __init__(self, config='', args=(), device=DEVICE, listener=None, uid=os.geteuid(),
                 through=()):
        """
        listener: a listening socket, as systemd would hand it over; uid: whose it is, with a
        listener only; through: a command that executes the one that follows
        """
        self.dir = tempfile.mkdtemp(prefix='gpreempt-')
        os.chmod(self.dir, 0o755)
        if uid != os.geteuid():
            os.chown(self.dir, uid, uid)
        self.run_dir = os.path.join(self.dir, 'run')
        self.socket = listener.getsockname() if listener else \
            os.path.join(self.run_dir, 'control.sock')
        self.config = os.path.join(self.dir, 'conf')
        self.configure(config)
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.settimeout(WAIT_S)
        self.notify.bind(os.path.join(self.dir, 'notify'))
        os.chmod(self.notify.getsockname(), 0o666)
        self.log = open(os.path.join(self.dir, 'log'), 'w+', encoding='utf-8')
        self.process = subprocess.Popen(
            [*through, *handing_over(listener, uid), GPREEMPTD, '--device', device,
             '--config', self.config, '--run-dir', self.run_dir, *args],
            pass_fds=[listener.fileno()] if listener else [],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log,
            env=dict(os.environ, NOTIFY_SOCKET=self.notify.getsockname()))
        self.wait_for('READY=1')

    def configure(self, config):
        with open(self.config, 'w', encoding='utf-8') as f:
            f.write(config)

    def wait_for(self, word):
        while word not in self.notify.recv(4096).decode().split('\n'):
            pass

    def client(self):
        return Client(self.socket)

    def reload(self):
        self.process.send_signal(signal.SIGHUP)
        self.wait_for('READY=1')

    def said(self):
        self.log.flush()
        self.log.seek(0)
        return self.log.read()

    def end(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        return self.process.wait(WAIT_S)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.notify.close()
        shutil.rmtree(self.dir)


class Job:
    """A process of its own with queues on the software device, of this or another user."""

    DEVICE = struct.Struct('<IHHII')
    QUEUE = struct.Struct('<4IQ')
    SUBMIT = struct.Struct('<4IQ')
    ORDER = struct.Struct('<QQ')
    PAGES_AT, PAGES_BYTES, FIXED_NOREPLACE = 0x7e9000000000, 1 << 22, 0x100000

    def __init__(self, daemon, queues=1, uid=None, gpu=0, late=False, later_uid=None):
        """late: it uses the device from begin() on, as that user where one is named."""
        self.ready, inside = os.pipe()
        orders, self.orders = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.close(self.ready)
                os.close(self.orders)
                if uid is not None:
                    become(uid, saved=later_uid)
                os.read(orders, 1)
                if later_uid is not None:
                    os.setresuid(later_uid, later_uid, later_uid)
                self.live(os.path.join(daemon.run_dir, 'device.sock'), queues, gpu, inside, orders)
                status = 0
            finally:
                os._exit(status)
        os.close(inside)
        os.close(orders)
        if not late:
            self.begin()

    def begin(self):
        os.write(self.orders, b'.')
        with os.fdopen(self.ready, 'rb') as f:
            if f.read(1) != b'.':
                raise RuntimeError('no queues on the software device')

    def live(self, path, queues, gpu, told, orders):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(WAIT_S)
        s.connect(path)
        self.ask(s, 1, b'')
        self.map_pages()
        made = [self.QUEUE.unpack(self.ask(s, 2, self.QUEUE.pack(gpu, 7, 0, 0, 0)))
                for _ in range(queues)]
        os.write(told, b'.')
        s.settimeout(None)
        while True:  # until the daemon, or the test, is gone
            heard, _, _ = select.select([s, orders], [], [])
            if s in heard and not s.recv(4096):
                return
            if orders in heard:
                order = os.read(orders, self.ORDER.size)
                if not order:
                    return
                queue, for_ns = self.ORDER.unpack(order)
                self.work(s, *made[queue][2:], for_ns)

    def work(self, s, queue, _, write_ptr, for_ns):
        """As programs do: the write pointer first, then the doorbell."""
        ctypes.c_uint64.from_address(write_ptr).value += 1
        self.send(s, 3, self.SUBMIT.pack(queue, 0, 1, 0, for_ns))

    def submit(self, for_ns, queue=0):
        os.write(self.orders, self.ORDER.pack(queue, for_ns))

    def send(self, s, kind, body):
        s.send(self.DEVICE.pack(0x44504d47, 2, kind, self.DEVICE.size + len(body), 1) + body)

    def ask(self, s, kind, body):
        self.send(s, kind, body)
        data, self.files, _, _ = socket.recv_fds(s, 4096, 1)
        got = self.DEVICE.unpack_from(data)
        assert got[2] == kind, got
        return data[self.DEVICE.size:]

    def map_pages(self):
        """The pointers of its queues, as programs in C have them: DEVICE_PAGES_VA, ..._BYTES."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.argtypes = [ctypes.c_size_t] * 2 + [ctypes.c_int] * 3 + [ctypes.c_size_t]
        libc.mmap.restype = ctypes.c_size_t
        at = libc.mmap(self.PAGES_AT, self.PAGES_BYTES, mmap.PROT_READ | mmap.PROT_WRITE,
                       mmap.MAP_SHARED | self.FIXED_NOREPLACE, self.files[0], 0)
        assert at == self.PAGES_AT, os.strerror(ctypes.get_errno())

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self.orders)
        self.pid = None


def watchpoints():
    """0: a process may have hardware watchpoints here; else the error that keeps it from them."""
    word = ctypes.c_uint64()
    attr = struct.pack('<IIQQQQQIIQQ', 5, 72, 0, 1, 0, 0, 1 << 0 | 1 << 5 | 1 << 6, 0, 2,
                       ctypes.addressof(word), 8)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(PERF_EVENT_OPEN, attr, 0, -1, -1, 8)
    if fd < 0:
        return ctypes.get_errno()
    os.close(fd)
    return 0


def become(uid, saved=None):
    """saved: whom it may become later."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid if saved is None else saved)


def as_stranger(function):
    """Runs it in a child that is another user. True: it returned; what it raises is printed."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            become(STRANGER)
            function()
            status = 0
        except BaseException:  # pylint: disable=broad-except
            import traceback
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1] == 0


def many_files():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Case(unittest.TestCase):
    maxDiff = None

    def daemon(self, *args, **kwargs):
        d = Daemon(*args, **kwargs)
        self.addCleanup(d.close)
        return d

    def listener(self):
        """A listening socket as systemd makes it."""
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(s.close)
        where = tempfile.TemporaryDirectory(prefix='gpreempt-')
        self.addCleanup(where.cleanup)
        os.chmod(where.name, 0o755)
        s.bind(os.path.join(where.name, 'socket'))
        s.listen(256)
        return s

    def job(self, *args, **kwargs):
        j = Job(*args, **kwargs)
        self.addCleanup(j.close)
        return j

    def refused(self, expected, function, *args, **kwargs):
        with self.assertRaises(WireError) as caught:
            function(*args, **kwargs)
        e = caught.exception
        self.assertEqual(e.kind, expected, e)
        self.assertTrue(e.message)
        return e
