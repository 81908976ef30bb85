# SPDX-License-Identifier: MIT
"""The agent that gives pods their class, beside a played API server and a recorded gpreempt; and
once with a real daemon."""
import http.server
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'daemon'))
import rig

AGENT = os.environ['AGENT']
GPREEMPT = os.environ['GPREEMPT']
WAIT_S = 60
SERVE = 'aaaaaaaa-0000-4000-8000-000000000001'
TRAIN = 'bbbbbbbb-0000-4000-8000-000000000002'
FOLDERS = {  # as kubelet makes them with systemd, and without
    SERVE: '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod'
           + SERVE.replace('-', '_') + '.slice',
    TRAIN: f'/kubepods/besteffort/pod{TRAIN}',
}
# Writes down what it is asked; fails, or is another daemon, when a file says so.
RECORDER = '''#!/bin/sh
cd {dir}
if [ "$1 $2" = "--json status" ]; then
    [ -e absent ] && echo "gpreempt: gpreemptd is not running" >&2 && exit 3
    printf '{{"pid": %s, "uptime_s": 5}}' "$(cat pid)"
    exit 0
fi
[ -e refuse ] && echo "gpreempt: you may not" >&2 && exit 4
echo "$*" >>asked
'''


def until(condition):
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise TimeoutError


def pod(uid, asked=None, namespace='inference', **meta):
    annotations = {} if asked is None else {'annotations': {'gpreempt/class': asked}}
    return {'metadata': {'uid': uid, 'name': uid[:4], 'namespace': namespace, **annotations,
                         **meta}, 'status': {'phase': 'Running'}}


class Server:
    """Of the API: pods of one node. Answers what it is told to, and remembers who asked."""

    def __init__(self, port=0):
        self.pods, self.requests = {}, []
        self.streams = []
        self.garbage = None  # bytes: the answer to every list
        self.lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *_):
                pass
        self.http = http.server.ThreadingHTTPServer(('127.0.0.1', port), Handler)
        self.http.daemon_threads = True
        self.http.handle_error = lambda *_: None  # whoever hangs up, may
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, handler):
        with self.lock:
            self.requests.append((handler.path, handler.headers.get('Authorization')))
            stream = queue.Queue()
            watching = 'watch=true' in handler.path
            if watching:
                self.streams.append(stream)
            text = self.garbage if self.garbage is not None else json.dumps(
                {'items': list(self.pods.values()), 'metadata': {'resourceVersion': '7'}}).encode()
        handler.send_response(500 if text == b'500' else 200)
        handler.end_headers()
        if not watching:
            handler.wfile.write(text)
            return
        try:
            for line in iter(stream.get, None):
                handler.wfile.write(line)
                handler.wfile.flush()
        except OSError:
            pass  # it has had enough

    def watchers(self):
        with self.lock:
            return len(self.streams)

    def say(self, line):
        with self.lock:
            for stream in self.streams:
                stream.put(line)
            if line is None:
                self.streams = []

    def change(self, kind, item):
        with self.lock:
            if kind == 'DELETED':
                self.pods.pop(item['metadata']['uid'], None)
            else:
                self.pods[item['metadata']['uid']] = item
        self.say(json.dumps({'type': kind, 'object': item}).encode() + b'\n')

    def close(self):
        self.say(None)
        self.http.shutdown()
        self.http.server_close()


class Agent(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        self.cgroups = os.path.join(self.dir, 'cgroup')
        for path in FOLDERS.values():
            os.makedirs(self.cgroups + path)
        self.write('cgroup/cgroup.controllers', '')
        self.write('token', 'secret\n')
        self.write('pid', '1')
        self.write('asked', '')
        self.write('gpreempt', RECORDER.format(dir=self.dir), 0o755)
        self.server = Server()
        self.addCleanup(lambda: self.server.close())

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.dir, name)
        with open(path + '.new', 'w', encoding='utf-8') as f:
            f.write(text)
        os.chmod(path + '.new', mode)
        os.rename(path + '.new', path)

    def start(self, *args, program=None, watch=True):
        log = open(os.path.join(self.dir, 'log'), 'w', encoding='utf-8')
        self.agent = subprocess.Popen(
            [sys.executable, AGENT, '--node', 'n1', '--api',
             f'http://127.0.0.1:{self.server.port}', '--account', self.dir, '--cgroups',
             self.cgroups, '--may-raise', 'inf*,other', '--every', '0.05', '--gpreempt',
             program or os.path.join(self.dir, 'gpreempt'), *args], stderr=log,
            stdin=subprocess.DEVNULL)
        log.close()
        self.addCleanup(self.agent.wait)
        self.addCleanup(self.agent.kill)
        if watch:
            until(self.server.watchers)

    def read(self, name):
        with open(os.path.join(self.dir, name), encoding='utf-8') as f:
            return f.read()

    def asked(self):
        return self.read('asked').splitlines()

    def says(self, text):
        until(lambda: text in self.read('log'))

    def last(self, uid, job_class, n):
        """The @n-th thing asked of that pod is this class."""
        of_it = until(lambda: (lambda a: a if len(a) >= n else None)(
            [a for a in self.asked() if FOLDERS[uid] in a]))
        self.assertEqual(of_it, of_it[:n])
        self.assertEqual(of_it[-1], f'class cgroup:{FOLDERS[uid]} {job_class}')

    def test_annotations_come_change_and_go(self):
        self.server.pods = {SERVE: pod(SERVE, 'online')}
        self.start()
        self.last(SERVE, 'online', 1)
        self.server.change('ADDED', pod(TRAIN, 'offline', 'research'))
        self.last(TRAIN, 'offline', 1)
        self.server.change('MODIFIED', pod(SERVE, 'offline'))
        self.last(SERVE, 'offline', 2)
        self.server.change('MODIFIED', pod(SERVE))
        self.last(SERVE, 'default', 3)
        self.server.change('DELETED', pod(TRAIN, 'offline', 'research'))
        self.last(TRAIN, 'default', 2)
        path, token = self.server.requests[0]
        self.assertEqual(path, '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1')
        self.assertEqual(token, 'Bearer secret')
        self.assertEqual(self.read('log'), '')

    def test_a_pod_that_is_over_is_gone(self):
        self.server.pods = {SERVE: pod(SERVE, 'online')}
        self.start()
        self.last(SERVE, 'online', 1)
        over = pod(SERVE, 'online')
        over['status']['phase'] = 'Succeeded'
        self.server.change('MODIFIED', over)
        self.last(SERVE, 'default', 2)

    def test_only_named_namespaces_raise(self):
        self.server.pods = {SERVE: pod(SERVE, 'online', 'research'),
                            TRAIN: pod(TRAIN, 'none', 'research')}
        self.start()
        self.says("'online' is not for pods of the namespace research")
        self.says("'none' is not for pods of the namespace research")
        self.last(SERVE, 'default', 1)
        self.last(TRAIN, 'default', 1)
        self.server.change('MODIFIED', pod(SERVE, 'offline', 'research'))
        self.last(SERVE, 'offline', 2)
        self.server.change('MODIFIED', pod(SERVE, 'online', 'research'))
        self.last(SERVE, 'default', 3)

    def test_nonsense_in_an_annotation_is_told_once(self):
        self.server.pods = {SERVE: pod(SERVE, 'Online; rm -rf /')}
        self.start()
        self.says("'Online; rm -rf /' is no class")
        self.last(SERVE, 'default', 1)
        self.server.change('ADDED', pod(TRAIN, 'offline'))
        self.last(TRAIN, 'offline', 1)
        self.assertEqual(self.read('log').count('is no class'), 1)

    def test_a_cgroup_may_come_later(self):
        os.rmdir(self.cgroups + FOLDERS[SERVE])
        self.server.pods = {SERVE: pod(SERVE, 'online'), TRAIN: pod(TRAIN, 'offline')}
        self.start()
        self.last(TRAIN, 'offline', 1)
        os.mkdir(self.cgroups + FOLDERS[SERVE])
        self.last(SERVE, 'online', 1)

    def test_older_hierarchies_have_a_folder_each(self):
        os.unlink(self.cgroups + '/cgroup.controllers')
        os.mkdir(self.cgroups + '/memory')
        os.rename(self.cgroups + '/kubepods', self.cgroups + '/memory/kubepods')
        self.server.pods = {TRAIN: pod(TRAIN, 'offline')}
        self.start()
        self.last(TRAIN, 'offline', 1)

    def test_an_api_server_that_goes_and_comes_back(self):
        self.server.pods = {SERVE: pod(SERVE, 'online'), TRAIN: pod(TRAIN, 'offline')}
        self.start()
        self.last(SERVE, 'online', 1)
        self.last(TRAIN, 'offline', 1)
        self.server.close()
        self.says('everything stays as it is')
        self.assertEqual(len(self.asked()), 2)
        old, self.server = self.server, Server(self.server.port)
        self.server.pods = {SERVE: old.pods[SERVE]}
        self.last(TRAIN, 'default', 2)
        self.says('answers again')
        self.assertEqual([a for a in self.asked() if FOLDERS[SERVE] in a],
                         [f'class cgroup:{FOLDERS[SERVE]} online'])

    def test_garbage_changes_nothing(self):
        self.server.pods = {SERVE: pod(SERVE, 'online')}
        self.start()
        self.last(SERVE, 'online', 1)
        n = 1
        for line in (b'{"type":"ERROR","object":{"code":410,"message":"too old"}}\n', b'<html>\n',
                     b'{"type":"ADDED"}\n', b'{"type":"MODIFIED","object":{"metadata":{}}}\n',
                     b'[]\n', b'\xff\xfe\n', b'{"type":"DELETED","object":{"metadata":'
                     b'{"uid":"../../etc","namespace":"a","name":"b"}}}\n'):
            self.server.say(line)
            until(lambda: self.server.watchers() > n)  # it has listed all again, and watches
            n = self.server.watchers()
        self.server.say(b'{"type":"BOOKMARK","object":{}}\n')
        self.server.change('ADDED', pod(TRAIN, 'offline'))
        self.last(TRAIN, 'offline', 1)
        self.assertEqual(len(self.asked()), 2)
        self.assertIsNone(self.agent.poll())

    def test_garbage_instead_of_a_list(self):
        for garbage in (b'500', b'', b'null', b'{"items":7,"metadata":{"resourceVersion":"1"}}',
                        b'{"items":[{}],"metadata":{"resourceVersion":"1"}}', b'[[['):
            with self.subTest(garbage):
                self.server.garbage = garbage
                before = len(self.server.requests)
                self.start(watch=False)
                until(lambda: len(self.server.requests) >= before + 2)
                self.server.garbage = None
                until(self.server.watchers)
                self.assertEqual(self.asked(), [])
                self.agent.kill()
                self.agent.wait()
                self.server.say(None)

    def test_a_daemon_that_goes_and_comes_back(self):
        self.write('absent', '')
        self.server.pods = {SERVE: pod(SERVE, 'online')}
        self.start()
        self.says('gpreemptd is not running')
        os.unlink(os.path.join(self.dir, 'absent'))
        self.last(SERVE, 'online', 1)
        self.write('pid', '2')
        self.last(SERVE, 'online', 2)

    def test_what_is_refused_is_tried_again(self):
        self.write('refuse', '')
        self.server.pods = {SERVE: pod(SERVE, 'online')}
        self.start()
        self.says('you may not')
        os.unlink(os.path.join(self.dir, 'refuse'))
        self.last(SERVE, 'online', 1)

    def test_it_ends_when_told(self):
        self.start()
        self.agent.send_signal(signal.SIGTERM)
        self.assertEqual(self.agent.wait(WAIT_S), 0)

    def test_usage(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith(('NODE', 'KUBER'))}
        for args in ([], ['--node', 'n'], ['--nonsense'],
                     ['--node', 'n', '--api', 'http://x', '--every', '0']):
            done = subprocess.run([sys.executable, AGENT, *args], env=env, check=False,
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ''), args)

    def test_a_real_daemon_takes_it(self):
        daemon = rig.Daemon()
        self.addCleanup(daemon.close)
        self.write('real', f'#!/bin/sh\n{GPREEMPT} --socket {daemon.socket} "$@" && '
                   f'{{ [ "$1" != class ] || echo "$*" >>{self.dir}/asked; }}\n', 0o755)
        self.server.pods = {SERVE: pod(SERVE, 'online')}
        self.start(program=os.path.join(self.dir, 'real'))
        self.last(SERVE, 'online', 1)
        self.server.change('DELETED', pod(SERVE))
        self.last(SERVE, 'default', 2)
        self.assertEqual(self.read('log'), '')


if __name__ == '__main__':
    unittest.main()
