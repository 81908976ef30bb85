# SPDX-License-Identifier: MIT
"""Tables of mutants, of which this folder has two."""
import os
import re
import sys
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


class Problem(Exception):
    """The mutant, not the code under test, is at fault."""


@dataclass
class Mutant:
    """One block of a table."""
    name: str
    fields: dict

    def __getattr__(self, key):
        return self.fields.get(key, '')

    @property
    def function(self):
        return self.fields.get('in', '')

    @property
    def old(self):
        return self.fields['-']

    @property
    def new(self):
        return self.fields.get('+', '')


def read_table(path, keys, required):
    mutants, fields = [], None
    with open(path, encoding='utf-8') as f:
        for n, line in enumerate(f, 1):
            line = line.rstrip('\n')
            m = re.match(r'\[([\w-]+)\]$', line)
            if m:
                fields = {}
                mutants.append(Mutant(m.group(1), fields))
            elif line and not line.startswith('#'):
                key, _, value = line.partition(' ')
                key = key.rstrip(':')
                if key not in keys or fields is None or key in fields:
                    sys.exit(f'{path}:{n}: cannot make sense of {line!r}')
                fields[key] = value.strip()
    for mutant in mutants:
        lacking = set(required) - set(mutant.fields)
        if lacking:
            sys.exit(f'{path}: [{mutant.name}] lacks {", ".join(sorted(lacking))}')
    names = [m.name for m in mutants]
    if len(set(names)) != len(names):
        sys.exit(f'{path}: a name is there twice')
    return mutants


def chosen(mutants, usage):
    """Those the command line names, else all; with --list only says what they are."""
    args = [a for a in sys.argv[1:] if a not in ('--list', '--check')]
    unknown = set(args) - {m.name for m in mutants}
    if unknown:
        print(usage.strip(), file=sys.stderr)
        sys.exit(0 if unknown <= {'-h', '--help'} else f'mutants: no mutant {" ".join(unknown)}')
    mutants = [m for m in mutants if not args or m.name in args]
    if '--list' in sys.argv:
        for m in mutants:
            print(f'{m.name}: {m.why}')
        sys.exit(0)
    return mutants
