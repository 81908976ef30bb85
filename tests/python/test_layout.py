# SPDX-License-Identifier: MIT
"""The structs, numbers and calls of the package are those of the C headers."""
import ctypes
import inspect
import os
import re
import shlex
import subprocess
import tempfile
import unittest

from case import ROOT, Case
from gpreempt import _abi, _device_abi, _lib

INCLUDE = os.path.join(ROOT, 'include')
HEADERS = ('gpreempt/gpreempt.h', 'gpreempt/daemon.h', 'gpreempt/kernel.h', 'gpreempt/model.h')
PROGRAM = '''
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <gpreempt/daemon.h>
#include <gpreempt/kernel.h>
#include <gpreempt/model.h>
#include "abi/device_wire.h"

int main(void)
{
%s
    return 0;
}
'''


def numbers(module, prefix):
    """Names here to names in C, which have to be longer."""
    return {name: prefix + name for name, value in vars(module).items()
            if name.isupper() and isinstance(value, int)}


NUMBERS = numbers(_abi, 'GPREEMPT_')
DEVICE_NUMBERS = numbers(_device_abi, 'DEVICE_')


def structs():
    return [c for module in (_abi, _device_abi) for _, c in inspect.getmembers(module)
            if inspect.isclass(c) and issubclass(c, _abi.Struct) and c.c_name
            and c.__module__ == module.__name__]


def fields(struct):
    return [(name, getattr(struct, name)) for name, _ in struct._fields_]


def line(text, value):
    return f'    printf("{text} %llu\\n", (unsigned long long)({value}));'


def text_of(header):
    with open(os.path.join(INCLUDE, header), encoding='utf-8') as f:
        return re.sub(r'/\*.*?\*/', '', f.read(), flags=re.S)


def c_fields(struct):
    """The names in the body of a struct, by a reader simpler than the one that made them."""
    for header in HEADERS:
        m = re.search(r'struct %s \{(.*?)\n\};' % struct.c_name, text_of(header), re.S)
        if m:
            return re.findall(r'[\s*](\w+)(?:\[\w+\])?(?=[,;])', m.group(1))
    return None


class Layout(Case):
    def compiled(self):
        """What the compiler says: "struct.field offset", "struct size", "NAME value"."""
        lines = []
        for s in structs():
            lines.append(line(f'{s.c_name} size', f'sizeof(struct {s.c_name})'))
            for name, _ in fields(s):
                lines.append(line(f'{s.c_name}.{name}', f'offsetof(struct {s.c_name}, {name})'))
                lines.append(line(f'{s.c_name}.{name} size',
                                  f'sizeof(((struct {s.c_name} *)0)->{name})'))
        for c_name in (*NUMBERS.values(), *DEVICE_NUMBERS.values()):
            lines.append(line(c_name, c_name))
        with tempfile.TemporaryDirectory() as folder:
            source, program = os.path.join(folder, 'layout.c'), os.path.join(folder, 'layout')
            with open(source, 'w', encoding='utf-8') as f:
                f.write(PROGRAM % '\n'.join(lines))
            compiler = shlex.split(os.environ.get('CC', 'cc'))
            subprocess.run([*compiler, '-std=gnu11', '-D_GNU_SOURCE', '-I', INCLUDE, '-I', ROOT,
                            source, '-o', program], check=True)
            said = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
        return {k: int(v) for k, v in (row.rsplit(' ', 1) for row in said.splitlines())}

    def test_every_field_and_number(self):
        c = self.compiled()
        self.assertGreater(len(structs()), 25)
        for s in structs():
            self.assertEqual(ctypes.sizeof(s), c[f'{s.c_name} size'], s)
            for name, field in fields(s):
                self.assertEqual((field.offset, field.size),
                                 (c[f'{s.c_name}.{name}'], c[f'{s.c_name}.{name} size']),
                                 f'{s.c_name}.{name}')
        for module, names in ((_abi, NUMBERS), (_device_abi, DEVICE_NUMBERS)):
            for name, c_name in names.items():
                self.assertEqual(getattr(module, name), c[c_name], c_name)

    def test_no_field_is_missing(self):
        looked = 0
        for s in structs():
            names = c_fields(s)
            if names is not None:
                looked += 1
                self.assertEqual([n for n, _ in fields(s)], names, s.c_name)
        self.assertGreater(looked, 20)

    def test_no_struct_is_missing(self):
        known = {s.c_name for s in structs()}
        for header in HEADERS:
            for name in re.findall(r'^struct (\w+) \{', text_of(header), re.M):
                self.assertIn(name, known, header)


class Calls(Case):
    def declared(self):
        """Name to how many arguments it takes, of the headers this package is for."""
        found = {}
        for header in HEADERS:
            for name, arguments in re.findall(r'\bgpreempt_(\w+)\(([^;{]*?)\)\s*;',
                                              text_of(header), re.S):
                found[name] = arguments.count(',') + 1
        return found

    def test_the_package_knows_every_call_of_the_library(self):
        with open(os.path.join(ROOT, 'lib', 'libgpreempt.sym'), encoding='utf-8') as f:
            exported = set(re.findall(r'gpreempt_(\w+);', f.read()))
        self.assertEqual(exported, set(_lib.PROTOTYPES))

    def test_each_takes_as_many_arguments(self):
        declared = self.declared()
        for name, (_, arguments) in _lib.PROTOTYPES.items():
            self.assertEqual(len(arguments), declared[name], name)

    def test_the_library_has_them(self):
        self.assertTrue(_lib.lib().gpreempt_open)


if __name__ == '__main__':
    unittest.main()
