# SPDX-License-Identifier: MIT
"""Running the real command, for the tests beside this file."""
import json
import os
import signal
import subprocess
import unittest
from collections import namedtuple

GPREEMPT = os.environ['GPREEMPT']
DONE, FAILED, USAGE, ABSENT, REFUSED = range(5)
Result = namedtuple('Result', 'status out err')

# A test run in the background of a shell script inherits these as ignored, and so would the
# command, which honours that.
for ending in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGTSTP):
    if signal.getsignal(ending) == signal.SIG_IGN:
        signal.signal(ending, signal.SIG_DFL)


def run(*args, program=None, **kwargs):
    """Runs gpreempt with the given arguments."""
    kwargs.setdefault('stdout', subprocess.PIPE)
    p = subprocess.run([program or GPREEMPT, *map(str, args)], stderr=subprocess.PIPE,
                       stdin=subprocess.DEVNULL, text=True, timeout=60, **kwargs)
    return Result(p.returncode, p.stdout, p.stderr)


def model(*args, preset='', **kwargs):
    return run('--device', 'model' + (':' + preset if preset else ''), *args, **kwargs)


class Case(unittest.TestCase):
    maxDiff = None

    def ok(self, result):
        self.assertEqual((result.status, result.err), (DONE, ''), result)
        return result.out

    def json_of(self, *args, status=DONE, **kwargs):
        """The one object a command prints in JSON mode, whatever becomes of it."""
        result = model('--json', *args, **kwargs)
        self.assertEqual(result.status, status, result)
        self.assertEqual(result.err, '', 'JSON mode says nothing on stderr')
        return json.loads(result.out)

    def refused(self, status, *args, says='', preset=''):
        """The command fails in both modes: with one line and a hint, and with one object."""
        text = model(*args, preset=preset)
        self.assertEqual(text.status, status, text)
        self.assertEqual(text.out, '')
        lines = text.err.splitlines()
        self.assertEqual(len(lines), 2, text.err)
        self.assertRegex(lines[0], r'^gpreempt: .')
        self.assertRegex(lines[1], r'^  hint: .')
        error = self.json_of(*args, status=status, preset=preset)['error']
        self.assertEqual(error['code'], status)
        self.assertEqual(lines[0], 'gpreempt: ' + error['message'])
        self.assertEqual(lines[1], '  hint: ' + error['hint'])
        self.assertIn(says, error['message'] + '\n' + error['hint'])
        return error
