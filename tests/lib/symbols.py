#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
usage: symbols.py LIBRARY MAP HEADER...

What the library exports, what its map names and what the headers declare must be the same.
"""
import re
import subprocess
import sys


def exported(library):
    out = subprocess.run(['nm', '-D', '--defined-only', '--format=posix', library],
                         capture_output=True, text=True, check=True).stdout
    names = {line.split()[0] for line in out.splitlines()}
    return {name.split('@')[0] for name in names if '@' in name} - {''}, names


def declared(headers):
    text = ''
    for header in headers:
        with open(header, encoding='utf-8') as f:
            text += re.sub(r'/\*.*?\*/', '', f.read(), flags=re.S)
    return set(re.findall(r'\b(gpreempt_\w+)\s*\(', text))


def since(headers):
    """Declarations without a "Since:" nearby: before them, or at their end."""
    for header in headers:
        with open(header, encoding='utf-8') as f:
            text = f.read()
        for m in re.finditer(r'^[a-z][^\n;{}]*\b(gpreempt_\w+)\([^;]*;[^\n]*', text, re.M):
            before = text[:m.start()].rstrip()
            comment = before[before.rfind('/*'):] if before.endswith('*/') else ''
            if 'Since:' not in m.group(0) + comment:
                yield m.group(1)


def main(library, symbol_map, *headers):
    versioned, names = exported(library)
    with open(symbol_map, encoding='utf-8') as f:
        mapped = set(re.findall(r'^\t(gpreempt_\w+);$', f.read(), re.M))
    public = declared(headers)
    complaints = [f'{n}: exported, but in no header' for n in sorted(versioned - public)
                  if not n.startswith('GPREEMPT_')]
    complaints += [f'{n}: declared, but not exported' for n in sorted(public - versioned)]
    complaints += [f'{n}: in the map, but in no header' for n in sorted(mapped - public)]
    complaints += [f'{n}: declared, but not in the map' for n in sorted(public - mapped)]
    complaints += [f'{n}: exported without a version' for n in sorted(names)
                   if '@' not in n and not n.startswith(('_', 'GPREEMPT_'))]
    complaints += [f'{n}: does not say since when' for n in since(headers)]
    for complaint in complaints:
        print(complaint)
    print(f'{len(public)} functions')
    return bool(complaints) or len(public) < 30


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
