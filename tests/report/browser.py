# SPDX-License-Identifier: MIT
"""A headless Chromium, spoken to over the two pipes it has for that."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ('chromium', 'chromium-browser', 'google-chrome')
FLAGS = ('--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
         '--disable-background-networking', '--disable-component-update', '--disable-sync',
         '--disable-dev-shm-usage', '--hide-scrollbars', '--remote-debugging-pipe')
WAIT_S = 120  # for any one answer; a browser that takes longer hangs


def find():
    """The program, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page at a time; everything that went wrong in it is in `complaints`."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix='gpreempt-browser-')
        self.number, self.buffer, self.events = 0, b'', []
        self.session = None
        ours, its = os.pipe(), os.pipe()  # it reads from ours, and writes to its
        log = open(os.path.join(self.folder, 'log'), 'wb')
        with log:
            self.process = subprocess.Popen(
                ['sh', '-c', f'exec 3<&{ours[0]} 4>&{its[1]}; exec "$@"', 'sh', program, *FLAGS,
                 f'--user-data-dir={self.folder}/profile', 'about:blank'],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(ours[0], its[1]),
                env=dict(os.environ, HOME=self.folder), start_new_session=True)
        os.close(ours[0])
        os.close(its[1])
        self.write, self.read = ours[1], its[0]
        try:
            target = self.ask('Target.createTarget', url='about:blank')['targetId']
            self.session = self.ask('Target.attachToTarget', targetId=target,
                                    flatten=True)['sessionId']
            for domain in ('Page', 'Runtime', 'Log', 'Network'):
                self.ask(domain + '.enable')
        except Exception:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Its helpers are of its session and go with it."""
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.write)
        os.close(self.read)
        shutil.rmtree(self.folder, ignore_errors=True)

    def message(self):
        deadline = time.monotonic() + WAIT_S
        while b'\0' not in self.buffer:
            if not select.select([self.read], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError('the browser does not answer')
            data = os.read(self.read, 1 << 16)
            if not data:
                with open(os.path.join(self.folder, 'log'), encoding='utf-8') as f:
                    raise ConnectionError('the browser ended: ' + f.read()[-2000:])
            self.buffer += data
        text, _, self.buffer = self.buffer.partition(b'\0')
        return json.loads(text)

    def ask(self, method, **params):
        self.number += 1
        packet = {'id': self.number, 'method': method, 'params': params}
        if self.session:
            packet['sessionId'] = self.session
        text = json.dumps(packet).encode() + b'\0'
        while text:
            text = text[os.write(self.write, text):]
        while True:
            answer = self.message()
            if answer.get('id') == self.number:
                break
            self.events.append(answer)
        if 'error' in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer['result']

    def open(self, path, width, height=800, scheme='light', mobile=False):
        """Returns when the page is there."""
        self.ask('Emulation.setDeviceMetricsOverride', width=width, height=height,
                 deviceScaleFactor=1, mobile=mobile)
        self.ask('Emulation.setEmulatedMedia',
                 features=[{'name': 'prefers-color-scheme', 'value': scheme}])
        self.events.clear()
        self.ask('Page.navigate', url='file://' + os.path.abspath(path))
        while not any(e.get('method') == 'Page.loadEventFired' for e in self.events):
            self.events.append(self.message())

    def run(self, expression):
        """A value of the page."""
        answer = self.ask('Runtime.evaluate', expression=expression, returnByValue=True,
                          awaitPromise=True)
        if 'exceptionDetails' in answer:
            raise RuntimeError(answer['exceptionDetails'])
        return answer['result'].get('value')

    def complaints(self):
        """Whatever reached the console, and exceptions."""
        self.run('0')  # what was said before has arrived
        return [e for e in self.events if e.get('method') in
                ('Runtime.consoleAPICalled', 'Runtime.exceptionThrown', 'Log.entryAdded')]

    def requests(self):
        """Addresses it asked for, the page's own and those that are in the page apart."""
        urls = [e['params']['request']['url'] for e in self.events
                if e.get('method') == 'Network.requestWillBeSent']
        return [u for u in urls[1:] if not u.startswith('data:')]

    def picture(self, path, clip=None):
        args = {'clip': {**clip, 'scale': 1}} if clip else {}
        data = self.ask('Page.captureScreenshot', format='png', captureBeyondViewport=bool(clip),
                        **args)
        with open(path, 'wb') as f:
            f.write(base64.b64decode(data['data']))
