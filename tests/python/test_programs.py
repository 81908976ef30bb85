# SPDX-License-Identifier: MIT
"""Jobs, the demonstration, the examples, and what docs/python.md shows: all of it is run."""
import contextlib
import glob
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

from case import NOWHERE, ROOT, WAIT_S, Case, gpreempt, jobs
from gpreempt.software import SoftwareGpu

EXAMPLES = os.path.join(ROOT, 'examples')
LATE = '''
import os
os.read(0, 1)  # a program that takes its time to begin
from gpreempt import jobs
ending = jobs.listen()
ending.wake.recv(1)
print('{"told": true}')
'''


def run(*command, **env):
    return subprocess.run([sys.executable, *command], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          timeout=300, env=dict(os.environ, **env))


class Jobs(Case):
    def late_job(self):
        job = jobs.start_job([sys.executable, '-c', LATE], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE,
                             env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, 'python')))
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.stdin.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        return job

    def test_one_that_is_ended_before_it_listens_has_its_say(self):
        job = self.late_job()
        job.terminate()
        self.assertIsNone(job.poll())
        self.assertEqual(job.communicate('\n', timeout=WAIT_S)[0], '{"told": true}\n')
        self.assertEqual(job.returncode, 0)

    def test_the_starter_hears_signals_as_before(self):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        self.late_job()
        self.assertNotIn(signal.SIGTERM, signal.pthread_sigmask(signal.SIG_BLOCK, ()))

    def test_a_job_that_cannot_start_says_why(self):
        done = run('-m', 'gpreempt.jobs', '--socket', NOWHERE,
                   PYTHONPATH=os.path.join(ROOT, 'python'))
        self.assertEqual((done.returncode, done.stdout), (3, ''))
        self.assertRegex(done.stderr, r'^gpreempt.jobs: .*nowhere.*\n  hint: .*gpreemptd')

    def test_the_software_device(self):
        with gpreempt.Server('model') as server:
            with SoftwareGpu(server.device_socket) as gpu:
                self.assertEqual((gpu.gpus, gpu.chip), (8, 'mi308x'))
                queue = gpu.create_queue(priority=3)
                for n in range(3):
                    gpu.submit(queue, 1000000, seq=n)
                done = [gpu.next() for _ in range(3)]
                self.assertEqual([d.seq for d in done], [0, 1, 2])
                self.assertEqual({d.finished for d in done}, {gpu.cus})
                self.fails(gpreempt.RefusedError, SoftwareGpu, server.device_socket)
                self.fails(gpreempt.UsageError, gpu.create_queue, 8)
                self.fails(gpreempt.UsageError, gpu.create_queue, 0, 16)
                self.fails(gpreempt.UsageError, gpu.submit, queue, 0)
            server.close()
            self.fails(gpreempt.AbsentError, SoftwareGpu, server.device_socket)


class Demonstration(Case):
    def demo(self, *args, **env):
        return run('-m', 'gpreempt.demo', *args, PYTHONPATH=os.path.join(ROOT, 'python'), **env)

    def test_the_story(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.demo('--seconds', '0.6', TMPDIR=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(os.listdir(folder), [], 'nothing is left of it')
        self.assertIn('all times are modelled', done.stdout)
        self.assertRegex(done.stdout, r'(?m)^both, with gpreempt +[\d.]+ ms')
        self.assertRegex(done.stdout, r'(?m)^[1-9]\d* times training made room')

    def test_for_programs(self):
        story = json.loads(self.demo('--seconds', '0.6', '--json').stdout)
        self.assertIs(story['modelled'], True)
        self.assertEqual(story['lost'], 0)
        self.assertGreater(story['preemptions'], 0)

    def test_nonsense(self):
        for args in (['--seconds', 'x'], ['--seconds', '0'], ['more']):
            self.assertEqual(self.demo(*args).returncode, 2, args)
        done = self.demo(GPREEMPTD='/nowhere/gpreemptd')
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r'(?m)^gpreempt.demo: .*nowhere.*\n  hint: .*GPREEMPTD$')


class Examples(Case):
    def test_each_runs_by_itself(self):
        for name in ('offline_training.py', 'online_inference.py'):
            done = run(os.path.join(EXAMPLES, name), '--software', '--duration', '0.3',
                       GPREEMPT_SOCKET='')
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(done.stdout)
            self.assertGreater(report['kernels'], 0)
            self.assertEqual(report['complete'], report['kernels'])
            self.assertIs(report['modelled'], True)

    def test_the_scenarios_and_their_verdicts(self):
        done = run(os.path.join(EXAMPLES, 'test_priority_scheduling.py'), '--seconds', '0.5')
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn('all times are modelled', done.stdout)
        self.assertEqual(len(re.findall(r'(?m)^edge .*: passed$', done.stdout)), 5)
        self.assertEqual(len(re.findall(r'(?m)^must .* yes$', done.stdout)), 3)
        self.assertEqual(len(re.findall(r'(?m)^(?:should|nice) ', done.stdout)), 7)


class Guide(Case):
    def blocks(self):
        with open(os.path.join(ROOT, 'docs', 'python.md'), encoding='utf-8') as f:
            text = f.read()
        return re.findall(r'^```python\n(.*?)^```$', text, re.M | re.S), text

    def test_every_example_runs(self):
        """In order, in one program, with a daemon whose socket is the usual one."""
        blocks, _ = self.blocks()
        self.assertGreater(len(blocks), 7)
        with gpreempt.Server('model') as server:
            os.environ['GPREEMPT_SOCKET'] = server.socket
            self.addCleanup(os.environ.pop, 'GPREEMPT_SOCKET')
            names = {}
            for block in blocks:
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(block, block.splitlines()[0], 'exec'), names)
            names['device'].close()

    def test_it_names_all_there_is(self):
        _, text = self.blocks()
        for name in gpreempt.__all__:
            self.assertRegex(text, rf'\b{name}\b')

    def test_the_usual_words_of_a_package(self):
        self.assertTrue(os.path.exists(os.path.join(ROOT, 'python', 'gpreempt', 'py.typed')))
        for path in glob.glob(os.path.join(ROOT, 'python', 'gpreempt', '*.py')):
            with open(path, encoding='utf-8') as f:
                self.assertNotRegex(f.read(), r'(?m)^ *def \w+\([^)]*\):$',
                                    f'{path}: says what it returns')


if __name__ == '__main__':
    unittest.main()
