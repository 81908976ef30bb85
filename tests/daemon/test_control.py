# SPDX-License-Identifier: MIT
"""The control socket of a real daemon: who may what, what garbage and floods do, and its end."""
import contextlib
import errno
import os
import random
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

import rig
from rig import (ABSENT, CLASS, CLASS_BODY, CONTINUE, CONTINUED, DONE, ERROR, FAILED, HINT_PAGE,
                 KEEP, METRICS, MISSED, NONE, OFFLINE, ONLINE, PAUSE, POLICY_SET, REARM, REFUSED,
                 RELEASE, RELOAD, RELOADED, STATUS, STRANGER, SUBSCRIBE, TRIP, USAGE,
                 WAS_PAUSED)

ROOT = os.geteuid() == 0
SEED = 20240607


def run(*args):
    p = subprocess.run([rig.GPREEMPTD, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, timeout=rig.WAIT_S, check=False)
    return p.returncode, p.stdout, p.stderr


class Known(rig.Case):
    """A daemon that knows a job of ours and, for root, one of a stranger."""

    CONFIG = ('[look]\nscan = 10ms\n[control]\nrequests_per_second = 100000\n'
              '[default]\nclass = offline\n')

    def setUp(self):
        self.d = self.daemon(self.CONFIG)
        self.ours = self.job(self.d, 2)
        with self.d.client() as c:
            self.wait_for_queues(c, self.ours, 2)
            if ROOT:
                self.theirs = self.job(self.d, 3, uid=STRANGER)
                self.wait_for_queues(c, self.theirs, 3)

    def wait_for_queues(self, client, job, n):
        """Nobody tells of queues: they are there after the next scan."""
        until = time.monotonic() + rig.WAIT_S
        while not any(j.pid == job.pid and j.queues == n for j in client.jobs()):
            self.assertLess(time.monotonic(), until, client.jobs())

    def job_of(self, client, job):
        return next(j for j in client.jobs() if j.pid == job.pid)


class Owner(Known):
    def test_status_tells_everything_to_the_owner(self):
        with self.d.client() as c:
            s = c.status()
        self.assertEqual((s.privileged, s.modelled, s.paused), (True, True, False))
        self.assertEqual((s.pid, s.config), (self.d.process.pid, self.d.config))
        self.assertEqual(s.policy, 'priority')
        self.assertGreater(s.gpus, 0)
        self.assertGreaterEqual(s.processes, 1)
        self.assertGreater(s.steps, 0)

    def test_a_job_is_shown_whole_to_its_owner(self):
        with self.d.client() as c:
            j = self.job_of(c, self.ours)
        self.assertEqual((j.uid, j.queues), (os.geteuid(), 2))
        self.assertTrue(j.detailed)
        self.assertTrue(j.source)
        self.assertGreater(j.started_ns, 0)

    def test_classes_are_given_and_seen(self):
        with self.d.client() as c:
            self.assertEqual(c.set_class(self.ours.pid, ONLINE, priority=9), 1)
            j = self.job_of(c, self.ours)
            self.assertEqual((j.job_class, j.priority, j.source), (ONLINE, 9, 'request'))
            c.hint(self.ours.pid)
            c.hint(self.ours.pid, ahead_ns=10 ** 6, for_ns=2 ** 64 - 1)
            c.hint(self.ours.pid, kind=HINT_PAGE)
            self.assertEqual(c.set_class(self.ours.pid, OFFLINE), 1)
            self.assertEqual(self.job_of(c, self.ours).job_class, OFFLINE)
            e = self.refused(REFUSED, c.hint, self.ours.pid)
            self.assertIn('not online', e.message)

    def test_nonsense_is_told_with_what_to_do(self):
        with self.d.client() as c:
            self.assertIn('see', self.refused(ABSENT, c.hint, 2 ** 22 + 1).hint)
            self.assertTrue(self.refused(ABSENT, c.set_class, 2 ** 22 + 1, OFFLINE).hint)
            self.assertIn('rotate', self.refused(USAGE, c.policy, 'fairest').message)
            self.refused(ABSENT, c.count, REARM, 4242)
            self.refused(ABSENT, c.count, RELEASE, 2 ** 22 + 1)
            self.refused(ABSENT, c.count, TRIP, 4242)
            self.refused(USAGE, c.ask, METRICS, rig.REQUEST.pack(10 ** 9))
            c.set_class(self.ours.pid, ONLINE)
            self.refused(USAGE, c.hint, self.ours.pid, ahead_ns=2 ** 63)
            self.assertEqual(c.status().pid, self.d.process.pid)  # still on speaking terms

    def test_the_policy_is_changed_and_everybody_told(self):
        with self.d.client() as c, self.d.client() as watch:
            watch.subscribe()
            name, names = c.policy()
            self.assertEqual(name, 'priority')
            self.assertLessEqual({'none', 'priority', 'rotate'}, set(names.split()))
            self.assertEqual(c.policy('rotate')[0], 'rotate')
            self.assertEqual(watch.event(POLICY_SET).text.split()[-1], 'rotate')
            self.assertEqual(c.policy()[0], 'rotate')

    def test_metrics_come_page_by_page(self):
        with self.d.client() as c:
            whole = c.metrics()
        self.assertIn('# TYPE gpreempt_', whole)
        self.assertTrue(whole.endswith('\n'))

    def test_a_pause_lets_go_and_continue_takes_up(self):
        with self.d.client() as c, self.d.client() as watch:
            watch.subscribe()
            for _ in range(3):
                c.count(PAUSE)
                self.assertTrue(c.status().paused)
                watch.event(WAS_PAUSED)
                c.count(PAUSE)  # once more is as well
                c.count(CONTINUE)
                watch.event(CONTINUED)
                self.assertFalse(c.status().paused)
            self.assertEqual(self.job_of(c, self.ours).queues, 2)

    def test_who_does_not_read_is_told_how_much_it_missed(self):
        with self.d.client() as c, self.d.client() as watch:
            watch.subscribe()
            for i in range(1500):
                c.policy(('rotate', 'priority')[i % 2])
            seen = 0
            while True:
                e = watch.event(POLICY_SET, MISSED)
                if e.kind == MISSED:
                    break
                seen += 1
            self.assertEqual(seen + e.count, 1500)
            c.policy('none')
            self.assertIn('none', watch.event(POLICY_SET).text)


@unittest.skipUnless(ROOT, 'only root can be two people')
class Stranger(Known):
    CONFIG = Known.CONFIG + '[rule theirs]\nuid = %d\nclass = offline\n' % STRANGER

    def stranger(self, function):
        self.assertTrue(rig.as_stranger(lambda: self.with_client(function)))

    def with_client(self, function):
        with self.d.client() as c:
            function(c)

    def no(self, c, function, *args, **kwargs):
        e = self.refused(REFUSED, function, *args, **kwargs)
        self.assertRegex(e.message, '^you may not ')
        self.assertIn('root', e.hint)
        self.assertEqual(c.status().pid, self.d.process.pid)

    def hidden(self, entry, record):
        """Nothing is told that is not for everybody."""
        told = {name: getattr(entry, name) for name in record.private}
        self.assertGreater(len(told), 5)
        for name, value in told.items():
            self.assertFalse(value.strip(b'\0') if isinstance(value, bytes) else value, name)

    def test_sees_nothing_of_others(self):
        def look(c):
            self.assertEqual({j.pid for j in c.jobs()}, {self.theirs.pid})
            self.assertTrue(self.job_of(c, self.theirs).detailed)
        self.stranger(look)

    def test_sees_no_more_than_list_shows_where_others_are_shown(self):
        self.d.configure(self.CONFIG.replace('[control]', '[control]\nshow_others = yes'))
        self.d.reload()

        def look(c):
            s = c.status()
            self.hidden(s, rig.STATUS_RECORD)
            self.assertFalse(s.privileged)
            self.assertEqual((s.config, s.steps, s.held, s.attached), ('', 0, 0, 0))
            self.assertEqual((s.preemptions, s.hints), (0, 0))
            j = self.job_of(c, self.ours)
            self.assertEqual((j.uid, j.queues, j.comm), (0, 2, self.job_of(c, self.ours).comm))
            self.hidden(j, rig.JOB_RECORD)
            self.assertTrue(self.job_of(c, self.theirs).detailed)
            for g in c.gpus():
                self.hidden(g, rig.GPU_RECORD)
        self.stranger(look)

    def test_can_neither_raise_nor_take_out_of_a_class(self):
        def reach(c):
            for pid in (self.theirs.pid, self.ours.pid):
                self.no(c, c.set_class, pid, ONLINE)
                self.no(c, c.set_class, pid, NONE)
                self.no(c, c.set_class, pid, OFFLINE, priority=1)
                self.no(c, c.set_class, pid, OFFLINE, flags=1)
                self.no(c, c.set_class, pid, OFFLINE, target_us=1)
            e = self.refused(REFUSED, c.set_class, self.ours.pid, OFFLINE)
            self.assertIn("another user's", e.message)
            self.assertEqual(c.set_class(self.theirs.pid, OFFLINE), 1)
            self.assertEqual(c.set_class(self.theirs.pid, OFFLINE, priority=0, flags=2), 1)
        self.stranger(reach)
        with self.d.client() as c:
            self.assertEqual(self.job_of(c, self.ours).source, 'default')

    def test_a_pattern_of_a_stranger_covers_only_its_own(self):
        with self.d.client() as c:
            c.set_class(self.ours.pid, ONLINE)
            c.set_class(self.theirs.pid, ONLINE)
        self.stranger(lambda c: c.set_class(0, OFFLINE, selector=rig.BY_NAME, pattern='*'))
        with self.d.client() as c:
            self.assertEqual(self.job_of(c, self.ours).job_class, ONLINE)

    def test_can_hint_only_for_its_own_online_jobs(self):
        def hint(c):
            self.no(c, c.hint, self.ours.pid)
            self.no(c, c.hint, self.ours.pid, kind=HINT_PAGE)
            self.assertIn('not online', self.refused(REFUSED, c.hint, self.theirs.pid).message)
            self.refused(REFUSED, c.hint, self.theirs.pid, kind=HINT_PAGE)
            self.refused(ABSENT, c.hint)
        with self.d.client() as c:
            c.set_class(self.ours.pid, ONLINE)
        self.stranger(hint)
        with self.d.client() as c:
            c.set_class(self.theirs.pid, ONLINE)
        self.stranger(lambda c: c.hint(self.theirs.pid))

    def test_can_command_nothing(self):
        def command(c):
            self.assertEqual(c.policy()[0], 'priority')
            self.no(c, c.policy, 'none')
            for kind in (METRICS, PAUSE, CONTINUE, REARM, RELOAD, RELEASE, TRIP):
                self.no(c, c.count, kind)
            for job in (self.ours, self.theirs):  # it is not held again for a while
                self.no(c, c.count, RELEASE, job.pid)
        self.stranger(command)
        with self.d.client() as c:
            self.assertEqual((c.policy()[0], c.status().paused), ('priority', False))

    def test_hears_of_its_own_jobs_and_of_what_concerns_all(self):
        def listen(c):
            c.subscribe()
            os.write(subscribed, b'.')
            seen = []
            while not seen or seen[-1].kind != POLICY_SET:
                seen.append(c.event(*range(1, 15)))
            self.assertEqual({e.pid for e in seen[:-1]}, {self.theirs.pid}, seen)

        def make_events():
            os.read(ready, 1)
            with self.d.client() as c:
                c.set_class(self.ours.pid, ONLINE)
                c.set_class(self.theirs.pid, ONLINE)
                c.count(RELOAD)
                c.policy('none')
        ready, subscribed = os.pipe()
        child = os.fork()
        if child == 0:
            make_events()
            os._exit(0)
        self.stranger(listen)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        os.close(ready)
        os.close(subscribed)


class Versions(rig.Case):
    """Clients of other versions, played byte by byte."""

    def said(self, data):
        d = self.daemon()
        with d.client() as c:
            c.socket.send(data)
            return c.socket.recv(16384)

    def test_a_client_of_version_3_is_told_to_upgrade_in_its_own_words(self):
        old = struct.Struct('<IHHII')
        got = self.said(old.pack(rig.MAGIC, 3, STATUS, old.size + 8, 5) + bytes(8))
        self.assertEqual(old.unpack_from(got), (rig.MAGIC, 3, ERROR, old.size + 328, 5))
        e = rig.WireError(got[old.size:])
        self.assertEqual(e.error, errno.EPROTO)
        self.assertIn('older version', e.message)
        self.assertIn('upgrade', e.hint)

    def test_an_older_client_sends_less(self):
        got = self.said(rig.packet(STATUS, b''))
        self.assertEqual(rig.HEADER.unpack_from(got)[3], STATUS)

    def test_a_later_client_is_understood_unless_it_asks_for_more(self):
        longer = rig.REQUEST.pack(0) + bytes(16)
        got = self.said(rig.packet(STATUS, longer, version=rig.VERSION + 1))
        self.assertEqual(rig.HEADER.unpack_from(got)[3], STATUS)
        got = self.said(rig.packet(STATUS, longer[:-1] + b'x', version=rig.VERSION + 1))
        e = rig.WireError(got[rig.HEADER.size:])
        self.assertEqual(e.error, errno.E2BIG)
        self.assertIn('upgrade gpreemptd', e.hint)

    def test_a_version_that_cannot_be_understood_and_types_nobody_knows_are_refused(self):
        for data, error in ((rig.packet(STATUS, version=9, since=9), errno.EPROTO),
                            (rig.packet(40), errno.EOPNOTSUPP)):
            e = rig.WireError(self.said(data)[rig.HEADER.size:])
            self.assertEqual(e.error, error)
            self.assertTrue(e.message)

    def test_who_asked_for_what_is_not_known_may_go_on_with_less(self):
        d = self.daemon()
        with d.client() as c:
            for data in (rig.packet(40), rig.packet(0), rig.packet(rig.EVENT), rig.packet(ERROR),
                         rig.packet(STATUS, rig.REQUEST.pack(0) + b'x')):
                c.socket.send(data)
                self.assertEqual(c.receive()[0], ERROR)
                self.assertEqual(c.status().pid, d.process.pid)

    def test_such_requests_cost_as_much_as_others(self):
        d = self.daemon('[control]\nrequests_per_second = 4\n')
        with d.client() as c:
            errors = []
            while errno.EBUSY not in errors:
                c.socket.send(rig.packet(40))
                errors.append(rig.WireError(c.socket.recv(16384)[rig.HEADER.size:]).error)
            self.assertLess(len(errors), 10)


class Abuse(rig.Case):
    def hung_up(self, client, at_least_an_error=True):
        """The daemon ends the connection, with one error before."""
        got = client.receive()
        if at_least_an_error:
            self.assertEqual(got[0], ERROR)
            got = client.receive()
        self.assertIsNone(got)

    def test_garbage_ends_its_connection_with_one_error(self):
        d = self.daemon()
        good = rig.packet(STATUS)
        bad = [b'x', b'x' * 15, b'x' * 16, b'x' * 512, b'x' * 513, b'x' * 60000,
               good[:-1], good + b'\0',
               rig.packet(STATUS, magic=1), rig.packet(STATUS, version=1),
               rig.packet(STATUS, size=1 << 31),
               rig.packet(STATUS, rig.REQUEST.pack(1)), rig.packet(CLASS),
               rig.packet(CLASS, CLASS_BODY.pack(1, -1, 1, KEEP, 0, 0, 0, b''))]
        for data in bad:
            with d.client() as c:
                c.socket.send(data)
                self.hung_up(c)
        with d.client() as c:
            self.assertEqual(c.status().pid, d.process.pid)
            self.assertIn('gpreempt_', c.metrics())

    def test_random_frames_harm_nobody(self):
        d = self.daemon()
        rng = random.Random(SEED)
        with d.client() as polite:
            for _ in range(1000):
                with d.client() as c:
                    body = bytearray(rng.choice([rig.packet(STATUS), rig.packet(CLASS,
                                     CLASS_BODY.pack(2, 0, 1, KEEP, 0, 0, 0, b'/a'))]))
                    for _ in range(rng.randrange(1, 5)):
                        body[rng.randrange(len(body))] = rng.randrange(256)
                    c.socket.send(bytes(body[:rng.randrange(1, len(body) + 1)]))
                self.assertEqual(polite.status().pid, d.process.pid)

    def test_a_thousand_clients_leave_room_for_others(self):
        rig.many_files()
        d = self.daemon()

        def flood():
            crowd = []
            for _ in range(1000):
                s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                s.connect(d.socket)
                s.settimeout(rig.WAIT_S)
                crowd.append(s)
            self.assertEqual(self.answered(crowd), 16)
            for s in crowd:
                s.close()

        with d.client() as polite:
            if ROOT:
                self.assertTrue(rig.as_stranger(flood))
            for _ in range(100):
                self.assertEqual(polite.status().pid, d.process.pid)
                with d.client() as late:
                    self.assertEqual(late.status().pid, d.process.pid)

    def answered(self, crowd):
        """How many of these get an answer; the others were turned away, and told so."""
        n = 0
        for s in crowd:
            try:
                s.send(rig.packet(STATUS))
            except (BrokenPipeError, ConnectionResetError):
                pass
            kind = rig.HEADER.unpack_from(s.recv(16384))[3]
            self.assertIn(kind, (STATUS, ERROR))
            n += kind == STATUS
        return n

    def test_a_flood_of_one_user_waits_and_is_told_once(self):
        """By count: whoever keeps to the rate has all answers while the other's come slowly."""
        d = self.daemon('[control]\nrequests_per_second = 200\n')
        with d.client() as c:
            errors = answers = 0
            for i in range(300):
                c.socket.send(rig.packet(STATUS, seq=i + 1))
                if i % 50 == 49:
                    for _ in range(50):
                        kind, _, _ = c.receive()
                        errors += kind == ERROR
                        answers += kind == STATUS
            self.assertEqual((errors, answers), (1, 299))

    @unittest.skipUnless(ROOT, 'only root can be two people')
    def test_a_flood_costs_others_nothing(self):
        d = self.daemon('[control]\nrequests_per_second = 100\n')
        stop, go_on = os.pipe()

        def flood():
            crowd = []
            for _ in range(16):
                s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                s.connect(d.socket)
                s.setblocking(False)
                crowd.append(s)
            os.set_blocking(stop, False)
            while True:
                for s in crowd:
                    try:
                        s.send(rig.packet(STATUS))
                    except OSError:
                        pass
                try:
                    if os.read(stop, 1) == b'':
                        break
                except BlockingIOError:
                    pass
            for s in crowd:
                s.close()
        child = os.fork()
        if child == 0:
            os.close(go_on)
            os._exit(0 if rig.as_stranger(flood) else 1)
        os.close(stop)
        with d.client() as polite:
            for _ in range(60):
                self.assertEqual(polite.status().pid, d.process.pid)
        os.close(go_on)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_who_never_reads_its_answers_loses_its_connection(self):
        d = self.daemon()
        with d.client() as c:
            c.socket.settimeout(rig.WAIT_S)
            with self.assertRaises((BrokenPipeError, ConnectionResetError)):
                for _ in range(4000):
                    c.socket.send(rig.packet(rig.JOBS))
        with d.client() as c:
            self.assertEqual(c.status().pid, d.process.pid)


class Place(rig.Case):
    """Where it runs."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='gpreempt-')
        self.addCleanup(shutil.rmtree, self.dir)
        self.config = os.path.join(self.dir, 'conf')
        with open(self.config, 'w', encoding='utf-8'):
            pass
        self.run_dir = os.path.join(self.dir, 'run')

    def start(self):
        return run(*self.args())

    def args(self):
        return '--device', 'model', '--run-dir', self.run_dir, '--config', self.config

    def test_a_directory_others_write_to_is_refused(self):
        os.mkdir(self.run_dir)
        for mode in (0o777, 0o1777, 0o775):
            os.chmod(self.run_dir, mode)
            status, _, err = self.start()
            self.assertEqual(status, REFUSED, err)
            self.assertRegex(err, r'^gpreemptd: others may write .*; hint: .*\n$')
        self.assertEqual(os.listdir(self.run_dir), [])
        if ROOT:
            os.chmod(self.run_dir, 0o755)
            os.chown(self.run_dir, STRANGER, STRANGER)
            self.assertEqual(self.start()[0], REFUSED)

    def test_a_link_in_the_place_of_the_lock_is_not_followed(self):
        os.mkdir(self.run_dir)
        os.symlink(os.path.join(self.run_dir, 'made'), os.path.join(self.run_dir, 'lock'))
        self.assertEqual(self.start()[0], FAILED)
        self.assertEqual(os.listdir(self.run_dir), ['lock'])

    def test_a_directory_whose_name_is_too_long_for_sockets_is_said_to_be_so(self):
        self.run_dir = os.path.join(self.dir, 'x' * 100)
        for device in ('model', 'model:mi100'):
            status, _, err = run('--device', device, *self.args()[2:])
            self.assertEqual(status, FAILED)
            self.assertRegex(err, r'too long; hint: give a shorter directory: .* 107 bytes')

    def first_line(self, most_files):
        """What it says first with so many descriptors: that it is ready, or why it is not."""
        with subprocess.Popen(['sh', '-c', f'ulimit -n {most_files}; exec "$@"', 'sh',
                               rig.GPREEMPTD, *self.args()], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as p:
            line = p.stderr.readline()
            p.kill()
        return line

    def test_where_descriptors_end_it_says_what_to_do(self):
        lines = [self.first_line(most) for most in range(8, 24)]
        refusals = [line for line in lines if 'ready on' not in line]
        self.assertTrue(refusals)
        for line in refusals:
            self.assertRegex(line, 'Too many open files; hint: raise the limit of open files')

    @unittest.skipUnless(ROOT, 'only root can be two people')
    def test_a_stranger_cannot_keep_it_from_starting(self):
        d = self.daemon()

        def lock():
            with self.assertRaises(PermissionError):
                open(os.path.join(d.run_dir, 'lock'), 'rb')
        self.assertTrue(rig.as_stranger(lock))

    def test_a_socket_of_systemd_does_not_make_it_wait(self):
        d = self.daemon(listener=self.listener())
        with d.client() as c, d.client() as other:
            self.assertEqual(c.status().pid, d.process.pid)
            self.assertEqual(other.status().pid, d.process.pid)


@unittest.skipUnless(ROOT, 'only root can be many people')
class Many(rig.Case):
    def test_a_thousand_users_do_not_keep_the_owner_out(self):
        d = self.daemon('[control]\nclients = 1024\n')
        crowd = []
        rig.many_files()
        try:
            for uid in range(100000, 101100):
                os.seteuid(uid)
                crowd.append(rig.Client(d.socket))
                os.seteuid(0)
        finally:
            os.seteuid(0)
        with d.client() as c:
            self.assertEqual(c.status().pid, d.process.pid)
        for c in crowd:
            c.socket.close()


class Life(rig.Case):
    def test_a_good_file_is_taken_and_a_bad_one_is_not(self):
        d = self.daemon('[policy]\nname = priority\n')
        with d.client() as c:
            c.subscribe()
            d.configure('[policy]\nname = rotate\n')
            d.reload()
            c.event(RELOADED)
            self.assertEqual(c.policy()[0], 'rotate')
            d.configure('[policy]\nname = fairest\n')
            d.reload()
            self.assertEqual(c.policy()[0], 'rotate')
            self.assertRegex(d.said(), 'stays as it was; line 2: ')
            e = self.refused(USAGE, c.count, RELOAD)
            self.assertIn('line 2', e.message)
            os.chmod(d.config, 0o666)
            d.reload()
            self.assertRegex(d.said(), 'stays as it was; anybody may write ')
            os.unlink(d.config)
            self.refused(ABSENT, c.count, RELOAD)
            self.assertEqual(c.policy()[0], 'rotate')

    def test_whoever_started_it_and_does_not_listen_keeps_nobody(self):
        with open('/proc/sys/net/unix/max_dgram_qlen', encoding='ascii') as f:
            room = int(f.read())
        d = self.daemon()
        with d.client() as c:
            c.subscribe()
            for _ in range(room + 10):
                d.process.send_signal(signal.SIGHUP)
                c.event(RELOADED)
            self.assertEqual(c.status().pid, d.process.pid)
        told = []
        while 'READY=1' not in told[-1:] or len(told) < room + 2:
            told.append(d.notify.recv(4096).decode().split('\n')[0])
        self.assertLessEqual(set(told), {'RELOADING=1', 'READY=1'})

    def test_it_says_that_it_lives_as_often_as_systemd_wants(self):
        d = self.daemon(through=['env', 'WATCHDOG_USEC=400000'])
        for _ in range(3):
            d.wait_for('WATCHDOG=1')
        self.assertEqual(d.end(), DONE)

    def test_classes_are_refused_in_a_pause_with_what_to_do(self):
        d = self.daemon()
        with d.client() as c:
            c.count(PAUSE)
            e = self.refused(REFUSED, c.set_class, os.getpid(), OFFLINE)
            self.assertIn('gpreempt continue', e.hint)

    def test_a_check_that_cannot_be_told_fails(self):
        d = self.daemon()
        with open('/dev/full', 'w', encoding='utf-8') as full:
            p = subprocess.run([rig.GPREEMPTD, '--check-config', d.config], stdout=full,
                               stderr=subprocess.DEVNULL, check=False)
        self.assertEqual(p.returncode, FAILED)

    def test_metrics_that_cannot_be_written_are_told_of_once(self):
        d = self.daemon('[metrics]\nevery = 1s\n')
        beside = os.path.join(d.run_dir, 'metrics.prom.new')
        while not os.path.isdir(beside):  # it may be writing the first one just now
            with contextlib.suppress(FileExistsError):
                os.mkdir(beside)
        while 'cannot write' not in d.said():
            select.select([], [], [], 0.05)
        self.assertEqual(d.end(), DONE)
        self.assertEqual(d.said().count('cannot write'), 1)

    def test_a_second_daemon_is_refused_with_the_first_ones_pid(self):
        d = self.daemon()
        status, _, err = run('--device', 'model', '--run-dir', d.run_dir, '--config', d.config)
        self.assertEqual(status, REFUSED)
        self.assertIn(f'process {d.process.pid}', err)
        status, _, err = run('--clean-up', '--run-dir', d.run_dir)
        self.assertEqual(status, REFUSED)
        with d.client() as c:
            self.assertEqual(c.status().pid, d.process.pid)

    def test_its_end_leaves_only_journal_and_metrics(self):
        for sig in (signal.SIGTERM, signal.SIGINT):
            d = self.daemon()
            with d.client() as c:
                c.subscribe()
                self.assertEqual(d.end(sig), DONE)
            self.assertLessEqual(set(os.listdir(d.run_dir)), {'journal', 'metrics.prom'})

    def test_a_killed_daemon_is_followed_by_another(self):
        d = self.daemon()
        self.assertEqual(d.end(signal.SIGKILL), -signal.SIGKILL)
        self.assertIn('control.sock', os.listdir(d.run_dir))
        p = subprocess.Popen([rig.GPREEMPTD, '--device', 'model', '--run-dir', d.run_dir,
                              '--config', d.config],
                             env=dict(os.environ, NOTIFY_SOCKET=d.notify.getsockname()),
                             stderr=subprocess.DEVNULL)
        d.wait_for('READY=1')
        with d.client() as c:
            self.assertEqual(c.status().pid, p.pid)
        p.terminate()
        self.assertEqual(p.wait(rig.WAIT_S), DONE)

    def test_the_guard_of_nobody_is_needed_to_clean_up(self):
        d = self.daemon()
        d.end()
        self.assertEqual(run('--clean-up', '--device', 'model', '--run-dir', d.run_dir)[0], DONE)
        self.assertEqual(run('--clean-up', '--run-dir', d.run_dir)[0], DONE)

    def test_options_that_make_no_sense_are_usage(self):
        for args in (['--what'], ['-x'], ['--device'], ['--config'], ['--run-dir'], ['argument'],
                     ['--device', 'gpu'], ['--device', ''], ['--device', 'model:mi9'],
                     ['--device', 'model', '--level', 'K1'], ['--device', 'nvrm', '--level', 'K2'],
                     ['--run-dir', ''], ['--check-config', 'a', 'b']):
            with self.subTest(args=args):
                d = rig.tempfile.mkdtemp(prefix='gpreempt-')
                self.addCleanup(rig.shutil.rmtree, d)
                if '--run-dir' not in args:
                    args = ['--run-dir', os.path.join(d, 'run'), *args]
                status, out, err = run(*args)
                self.assertEqual((status, out), (USAGE, ''), err)
                self.assertRegex(err, r'^gpreemptd: .*; hint: .*\n$')

    def test_the_level_is_the_highest_there_is_or_the_one_that_is_asked_for(self):
        with_ext = 'model:mi308x,ext=1'
        for device, args, level in (('model', [], 'K2'), (with_ext, [], 'K3'),
                                    (with_ext, ['--level', 'k2'], 'K2'),
                                    (with_ext, ['--level', 'K3'], 'K3')):
            with self.subTest(device=device, args=args):
                d = self.daemon(device=device, args=args)
                with d.client() as c:
                    self.assertEqual(c.status().level, level)
                self.assertIn(f'level {level},', d.said())
                self.assertEqual(d.end(), DONE)

    def test_a_level_that_is_not_there_is_told_as_such(self):
        with rig.tempfile.TemporaryDirectory() as d:
            status, out, err = run('--device', 'model', '--level', 'K3', '--run-dir',
                                   os.path.join(d, 'run'))
        self.assertEqual((status, out), (FAILED, ''), err)
        self.assertIn('no extension', err)

    def test_what_cannot_be_is_told_in_one_line(self):
        d = self.daemon()
        for expect, args in ((FAILED, ['--config', os.path.join(d.dir, 'none')]),
                             (FAILED, ['--config', d.dir]),
                             (FAILED, ['--check-config', os.path.join(d.dir, 'none')]),
                             (FAILED, ['--run-dir', os.path.join(d.dir, 'no', 'such')])):
            with self.subTest(args=args):
                if '--run-dir' not in args:
                    args = ['--run-dir', os.path.join(d.dir, 'other'), *args]
                status, out, err = run('--device', 'model', *args)
                self.assertEqual((status, out), (expect, ''), err)
                self.assertRegex(err, r'^gpreemptd: .*; hint: .*\n$')

    def test_an_absent_device_is_told_as_such(self):
        here = {'kfd': os.path.exists('/sys/class/kfd/kfd/topology'),
                'nvrm': os.path.exists('/proc/driver/nvidia/version')}
        for device, says in (('kfd', ['/dev/kfd']), ('nvrm', ['nvidiactl']),
                             ('auto', ['/dev/kfd', '/dev/nvidiactl'])):
            if here.get(device, any(here.values())):
                continue
            with self.subTest(device=device), rig.tempfile.TemporaryDirectory() as d:
                status, out, err = run('--device', device, '--run-dir', os.path.join(d, 'run'))
                self.assertEqual((status, out), (ABSENT, ''), err)
                self.assertRegex(err, r'^gpreemptd: .*; hint: .*\n$')
                for name in says:
                    self.assertIn(name, err)

    def test_configurations_are_checked_without_a_daemon(self):
        d = self.daemon('[policy]\nname = rotate\n')
        status, out, err = run('--check-config', d.config)
        self.assertEqual((status, err), (DONE, ''))
        self.assertIn('makes sense', out)
        d.configure('[policy]\nname = fairest\n')
        status, out, err = run('--check-config', d.config)
        self.assertEqual((status, out), (FAILED, ''))
        self.assertRegex(err, r'conf:2: .*; hint: ')

    def test_help_and_version(self):
        self.assertIn('usage: gpreemptd', run('--help')[1])
        self.assertRegex(run('--version')[1], r'^gpreemptd \d')


if __name__ == '__main__':
    unittest.main()
