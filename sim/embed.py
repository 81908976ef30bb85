#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: embed.py OUTPUT.c FILE.ini...: makes INI files part of a program; see builtin.h."""
import os
import re
import sys


def c_string(text):
    """As lines of C; what could be taken for something else is written in octal."""
    out = []
    for line in text.splitlines(keepends=True):
        bytes_ = line.encode()
        out.append('"' + ''.join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f'\\{b:03o}'
                                 for b in bytes_) + '"')
    return '\n\t\t'.join(out) or '""'


def entry(path):
    with open(path, encoding='utf-8') as f:
        text = f.read()
    name = os.path.basename(path)
    title = 'NULL'
    if os.path.basename(os.path.dirname(path)) == 'scenarios':
        name = name.removesuffix('.ini')
        title = c_string(re.search(r'(?m)^title = (.*)$', text).group(1))
    return (f'\t{{ {c_string(name)}, {title},\n\t\t{c_string(text)},\n'
            f'\t\t{len(text.encode())} }},\n'), name, title != 'NULL'


def main():
    entries = [entry(path) for path in sys.argv[2:]]
    with open(sys.argv[1], 'w', encoding='utf-8') as f:
        f.write('/* SPDX-License-Identifier: MIT */\n/* Written by embed.py. */\n'
                '#include "sim/builtin.h"\n#include "sim/scenario.h"\n\n'
                'const struct sim_builtin sim_builtins[] = {\n')
        f.writelines(text for text, _, _ in entries)
        f.write('\t{ NULL },\n};\n\nconst char *const sim_scenario_names[] = {\n')
        f.writelines(f'\t{c_string(name)},\n' for _, name, listed in entries if listed)
        f.write('\tNULL,\n};\n')


main()
