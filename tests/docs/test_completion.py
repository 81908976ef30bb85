# SPDX-License-Identifier: MIT
"""
usage: test_completion.py bash|zsh

Completions ask the program; what they make of its answer is compared with it.
"""
import os
import pty
import select
import shutil
import subprocess
import sys
import time
import unittest

from pages import ROOT
from program import PROGRAMS, commands, options

PATIENCE_S = 60
CANNOT = 77


class Completion(unittest.TestCase):
    def check(self, complete):
        self.assertEqual({w for w in complete('gpreempt', '') if not w.startswith('-')},
                         set(commands()))
        self.assertEqual(complete('gpreempt', '-'), options('gpreempt'))
        for command in commands():
            self.assertEqual(complete('gpreempt', '--json', command, '-'),
                             options('gpreempt', command), command)
        self.assertEqual(complete('gpreempt', 'list', '--class', ''), {'online', 'offline'})
        self.assertIn('disb-a', complete('gpreempt', 'sim', ''))
        self.assertIn('rotate', complete('gpreempt', 'sim', 'disb-a', '--policy', ''))
        self.assertLessEqual({'kfd', 'nvrm', 'model', 'model:mi308x', 'model:gfx1200'},
                             complete('gpreempt', '--device', ''))
        for option in ('--for', '-h'):
            self.assertNotIn('--for', complete('gpreempt', 'hold', option, ''))


class Bash(Completion):
    SCRIPT = ('source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gpreempt "$PROGRAM"; '
              'printf "%s\\n" "${COMPREPLY[@]}"')

    def complete(self, *words):
        file = os.path.join(ROOT, 'data/completions/gpreempt')
        p = subprocess.run(['bash', '-c', self.SCRIPT, file, *words], capture_output=True,
                           text=True, check=True,
                           env=dict(os.environ, PROGRAM=PROGRAMS['gpreempt']))
        self.assertEqual(p.stderr, '')
        return set(p.stdout.split())

    def test_everything(self):
        self.check(self.complete)

    def test_words_that_bash_breaks(self):
        self.assertEqual(self.complete('gpreempt', '--device', 'model', ':', 'mi300'), {'mi300x'})
        self.assertIn('gfx1200', self.complete('gpreempt', '--device', 'model', ':'))


class Zsh(Completion):
    # In place of zsh's own functions, which work in its editor only. A colon that is part of a
    # word has a backslash there, the one before its description has none.
    SCRIPT = ('_describe() { local name=$@[-1]; print -rl -- ${${${(P)name}//\\\\:/=}%%:*} }; '
              '_files() { }; _command_names() { }; words=("$@"); CURRENT=$#; . "$0"')

    def complete(self, *words):
        file = os.path.join(ROOT, 'data/completions/_gpreempt')
        p = subprocess.run(['zsh', '-fc', self.SCRIPT, file, PROGRAMS['gpreempt'], *words[1:]],
                           capture_output=True, text=True, check=True)
        self.assertEqual(p.stderr, '')
        return set(p.stdout.replace('=', ':').split())

    def test_everything(self):
        self.check(self.complete)

    def read_until(self, fd, what):
        seen, end = b'', time.monotonic() + PATIENCE_S
        while what not in seen and time.monotonic() < end:
            if select.select([fd], [], [], 1)[0]:
                seen += os.read(fd, 65536)
        self.assertIn(what, seen)

    def test_in_its_editor(self):
        pid, fd = pty.fork()
        if pid == 0:
            folder = os.path.dirname(PROGRAMS['gpreempt'])
            os.execvpe('zsh', ['zsh', '-f', '-i'],
                       dict(os.environ, TERM='dumb', PATH=folder + ':' + os.environ['PATH']))
        self.addCleanup(os.close, fd)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.kill, pid, 9)
        os.write(fd, f'fpath=({ROOT}/data/completions $fpath); autoload -Uz compinit; '
                     'compinit -u -D; print r""eady\n'.encode())
        self.read_until(fd, b'ready')
        os.write(fd, b'gpreempt mon\t')
        self.read_until(fd, b'monitor ')
        os.write(fd, b'--int\t')
        self.read_until(fd, b'--interval ')


if __name__ == '__main__':
    shell = sys.argv.pop(1)
    if not shutil.which(shell):
        print(f'{shell} is not installed')
        sys.exit(CANNOT)
    unittest.main(defaultTest=shell.capitalize())
