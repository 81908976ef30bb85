# SPDX-License-Identifier: MIT
"""What the programs say of themselves, for the tests beside this file."""
import functools
import os
import re
import subprocess

PROGRAMS = {name: os.environ[name.upper().replace('-', '_')]
            for name in ('gpreempt', 'gpreemptd', 'gpreempt-softgpu', 'gpreempt-top')}


def ask(program, *args, **kwargs):
    return subprocess.run([PROGRAMS[program], *args], stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=120, check=False, **kwargs)


@functools.lru_cache(maxsize=None)
def help_of(program, command=None):
    said = ask(program, *([command] if command else []), '--help')
    if said.returncode != 0:
        raise AssertionError(f'{program} {command or ""}: {said.stderr}')
    return said.stdout


def options_in(text):
    """The options that a help text explains, each on a line of its own."""
    found = set()
    for line in re.findall(r'^  (-.*)', text, re.M):
        found.update(re.match(r'(-\w)?(?:, )?(--[a-z-]+)?', line).groups())
    return found - {None}


@functools.lru_cache(maxsize=None)
def options(program, command=None):
    return options_in(help_of(program, command))


@functools.lru_cache(maxsize=None)
def commands():
    return re.findall(r'^  ([a-z][a-z-]*) ', help_of('gpreempt'), re.M)


EVERYWHERE = {'--device', '--socket', '--json', '-h', '--help'}
