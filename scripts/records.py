#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
usage: scripts/records.py c|python|page HEADER...

Reads the structs and numbers of public headers and prints what is made of them: the table of the
fields of records that the daemon sends (wire/record.h), the structs for Python, or the manual page
on its standard input, with the keys of JSON in the place of @gpreempt_daemon_job@ and its like.
What the words with an @ in comments mean is said in include/gpreempt/daemon.h.
"""
import os
import re
import sys
from collections import namedtuple

HEADERS = ['gpreempt.h', 'daemon.h', 'kernel.h', 'model.h']
# Structs that are sent, and how the names of their metrics begin.
RECORDS = {'gpreempt_daemon_status': 'gpreempt_', 'gpreempt_daemon_gpu': 'gpreempt_gpu_',
           'gpreempt_daemon_job': 'gpreempt_job_', 'gpreempt_event': '', 'gpreempt_policy': ''}
UNITS = {'_ns': '_us', '_permille': '_pct'}  # of a name, and of its key in JSON
METRIC_UNITS = {'_ns': '_seconds', '_us': '_seconds', '_permille': '_ratio'}
WORDS = {'public', 'optional', 'seen', 'json', 'gauge', 'counter'}

Field = namedtuple('Field', 'name type pointer array comment words')


def stripped(text):
    return re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)


def comment_of(raw):
    """A comment's sentences and its words with an @."""
    text = ' '.join(re.sub(r'\n\s*\*', ' ', raw or '').split())
    words = dict((w[1:].split('=', 1) + [''])[:2] for w in re.findall(r'@[a-z]+(?:=\S+)?', text))
    return re.sub(r'\s*@[a-z]+(?:=\S+)?', '', text).strip(), words


def fields_of(body):
    """The fields of a struct. A comment belongs to what stands before it in its line."""
    body = re.sub(r'^[ \t]*/\*.*?\*/', '', body, flags=re.S | re.M)
    for m in re.finditer(r'((?:const |struct |enum )*\w+)\s+([^;{}]+);[ \t]*(?:/\*(.*?)\*/)?', body,
                         re.S):
        comment, words = comment_of(m[3])
        for declared in m[2].split(','):
            name = re.fullmatch(r'(\**)(\w+)(?:\[(\w+)\])?', declared.strip())
            yield Field(name[2], m[1], bool(name[1]), name[3], comment, words)


class Headers:
    """structs: name to fields; numbers: name, without GPREEMPT_, to value; in their order."""

    def __init__(self, paths):
        self.structs, self.numbers = {}, {}
        for path in paths:
            with open(path, encoding='utf-8') as f:
                text = f.read()
            for m in re.finditer(r'^struct (gpreempt_\w+) \{(.*?)^\};', text, re.S | re.M):
                self.structs[m[1]] = list(fields_of(m[2].split('\n', 1)[1]))
            plain = stripped(text)
            for m in re.finditer(r'^#define GPREEMPT_(\w+) +(\S.*)$', plain, re.M):
                self.add_number(m[1], m[2])
            for m in re.finditer(r'^enum(?: \w+)? \{(.*?)^\};', plain, re.S | re.M):
                self.add_enum(m[1])

    def add_number(self, name, value):
        value = re.sub(r'\bUINT(\d+)_MAX\b', r'(2**\1 - 1)', value.strip())
        value = re.sub(r'\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b', r'\1', value)
        known = {'GPREEMPT_' + k: v for k, v in self.numbers.items()}
        self.numbers[name] = eval(value, {}, known)  # pylint: disable=eval-used

    def add_enum(self, body):
        following = 0
        for entry in filter(None, map(str.strip, body.split(','))):
            name, _, value = entry.partition('=')
            name = name.strip().replace('GPREEMPT_', '', 1)
            self.add_number(name, value or str(following))
            following = self.numbers[name] + 1

    def length(self, field):
        """Of an array; None: it is none."""
        if field.array is None or field.array.isdigit():
            return field.array and int(field.array)
        return self.numbers[field.array.replace('GPREEMPT_', '', 1)]


def of_tree(root):
    return Headers([os.path.join(root, 'include', 'gpreempt', name) for name in HEADERS])


# ---- C ----

FORMS = {'bool': 'FLAG', 'pid_t': 'SIGNED', 'int': 'SIGNED', 'enum gpreempt_class': 'CLASS',
         'struct gpreempt_latency': 'LATENCY'}


def unit_of(name, units):
    return next((u for u in units if name.endswith(u)), '')


def form_of(field):
    if field.array:
        return 'TEXT' if field.type == 'char' else 'BYTES'
    unit = unit_of(field.name, METRIC_UNITS)
    return FORMS.get(field.type) or (unit[1:].upper() if unit else 'NUMBER')


def key_of(field):
    if field.type == 'struct gpreempt_latency':
        return field.name + '_us'
    unit = unit_of(field.name, UNITS)
    key = field.words.get('json', field.name[:len(field.name) - len(unit)] + UNITS.get(unit, ''))
    return None if key == '-' else key


def metric_of(field, prefix):
    """Name, type, label and its value; None where it is no metric."""
    kind = next((k for k in ('gauge', 'counter') if k in field.words), None)
    if not kind:
        return None
    m = re.fullmatch(r'(\w+)(?:\{(\w+)=(\w+)\})?', field.words[kind] or field.name)
    unit = unit_of(m[1], METRIC_UNITS) or unit_of(field.name, METRIC_UNITS)
    name = prefix + m[1].replace(unit, '') + METRIC_UNITS.get(unit, '')
    return name + ('_total' if kind == 'counter' else ''), kind, m[2], m[3]


def quoted(text):
    if text is None:
        return 'NULL'
    return '"' + text.replace('\\', '\\\\').replace('"', '\\"') + '"'


def flags_of(words):
    flags = ['WIRE_' + w.upper() for w in ('public', 'seen') if w in words]
    if 'optional' in words:
        flags.append('WIRE_OPTIONAL' + ('_UNSEEN' if words['optional'] == 'unseen' else ''))
    return ' | '.join(flags) or '0'


def c_row(struct, field, prefix):
    unknown = set(field.words) - WORDS
    if unknown:
        sys.exit(f'{struct}.{field.name}: no such word: @{unknown.pop()}')
    metric = metric_of(field, prefix) or (None,) * 4
    values = [quoted(field.name), 'WIRE_FORM_' + form_of(field),
              f'offsetof(struct {struct}, {field.name})',
              f'sizeof(((struct {struct} *)0)->{field.name})', flags_of(field.words),
              quoted(key_of(field)), *map(quoted, metric), quoted(field.comment)]
    return '\t{ ' + ', '.join(values) + ' },'


def c_table(headers):
    yield '/* Made by scripts/records.py. */'
    yield '#include "wire/record.h"'
    for struct, prefix in RECORDS.items():
        size, *fields = headers.structs[struct]
        if size.name != 'size' or any(f.pointer for f in fields) or len(fields) > 64:
            sys.exit(f'{struct} cannot be sent')
        name = struct.replace('gpreempt_', '').replace('daemon_', '')
        yield f'\nstatic const struct wire_field {name}_fields[] = {{'
        yield from (c_row(struct, f, prefix) for f in fields)
        yield '};'
        widths = ' + '.join(f'sizeof(((struct {struct} *)0)->{f.name})' for f in fields)
        yield f'const struct wire_record wire_{name}_record = {{\n\t{name}_fields, {len(fields)},'
        yield f'\tsizeof(struct {struct}),\n\t{widths},\n}};'


# ---- Python ----

CTYPES = {'bool': 'c_bool', 'double': 'c_double', 'int': 'c_int', 'pid_t': 'pid_t',
          'size_t': 'c_size_t', 'uid_t': 'uid_t', 'uint8_t': 'c_ubyte', 'uint32_t': 'c_uint32',
          'uint64_t': 'c_uint64', 'char': 'c_char'}


def class_of(struct):
    return ''.join(word.capitalize() for word in struct.split('_')[1:])


def ctype_of(headers, field):
    if field.type == 'const char':
        return 'c_char_p'
    kind = 'enum_t' if field.type.startswith('enum ') else CTYPES.get(field.type)
    kind = kind or class_of(field.type.split()[-1])
    if field.pointer:
        return f'POINTER({kind})'
    length = headers.length(field)
    return kind if length is None else f'{kind} * {length}'


def python_module(headers):
    yield '# SPDX-License-Identifier: MIT'
    yield '"""The structs and numbers of libgpreempt\'s headers, made of them by the build."""'
    yield 'from ctypes import (POINTER, c_bool, c_char, c_char_p, c_double, c_int, c_size_t,'
    yield '                    c_ubyte, c_uint32, c_uint64)'
    yield ''
    yield 'from ._struct import PollFd, Struct, enum_t, pid_t, uid_t  # noqa: F401'
    yield ''
    for name, value in headers.numbers.items():
        yield f'{name} = {value}'
    for struct, fields in headers.structs.items():
        rows = ',\n                '.join(f"('{f.name}', {ctype_of(headers, f)})" for f in fields)
        yield f"\n\nclass {class_of(struct)}(Struct):\n    c_name = '{struct}'"
        yield f'    _fields_ = [{rows}]'


# ---- manual pages ----

PAGE_COLUMNS = 92


def page_line(headers, line):
    def keys(m):
        shown = [key_of(f) for f in headers.structs[m[1]][1:]]
        return ','.join(f'"{key}"' for key in shown if key)

    filled = re.sub(r'@(gpreempt_\w+)@', keys, line[1:])
    if filled == line[1:]:
        return line
    return '\n'.join('\t' + part for part in re.findall(rf'.{{1,{PAGE_COLUMNS}}}(?:,|$)', filled))


def page(headers, text=None):
    return [page_line(headers, line) for line in (text or sys.stdin.read()).splitlines()]


def main():
    made = {'c': c_table, 'python': python_module, 'page': page}[sys.argv[1]]
    print('\n'.join(made(Headers(sys.argv[2:]))))


if __name__ == '__main__':
    main()
