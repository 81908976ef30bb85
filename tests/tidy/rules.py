# SPDX-License-Identifier: MIT
"""
The rules, each with text that it must catch and text that it must let pass.

A rule is a function of one Source that yields (line, complaint). Its examples are
(path, text) pairs: "bad" ones must be caught, "good" ones must not.
"""
import os
import re
from collections import namedtuple

Rule = namedtuple('Rule', 'name check bad good')
RULES = []

MAX_COLUMNS = 100
MAX_FUNCTION_LINES = 60
MAX_FILE_LINES = 800
C_HEAD = '/* SPDX-License-Identifier: MIT */\n'
PRODUCT = ('abi', 'core', 'gpu', 'wire', 'lib', 'util', 'cmd', 'include', 'sim')
LIBRARIES = ('abi', 'core', 'gpu', 'lib', 'util', 'include')


def rule(bad, good=()):
    def register(check):
        RULES.append(Rule(check.__name__, check, bad, good))
        return check
    return register


# ---- what every file looks like ----

@rule(bad=[('lib/a.c', 'int a;\n'), ('scripts/a.sh', '#!/bin/bash\nset -e\n'),
           ('core/a.c', C_HEAD), ('abi/a.h', C_HEAD), ('kernel/a/a.c', C_HEAD), ('Makefile', 'all:\n'),
           ('lib/meson.build', "subdir('a')\n")],
      good=[('lib/a.c', C_HEAD), ('core/a.c', '/* SPDX-License-Identifier: GPL-2.0 OR MIT */\n'),
            ('scripts/a', '#!/bin/bash\n# SPDX-License-Identifier: MIT\n'), ('NEWS', 'text\n')])
def licence_in_the_first_line(src):
    if not src.is_code:
        return
    line = src.lines[1 if src.text.startswith('#!') else 0] if src.lines else ''
    dual = (src.under('abi', 'core') and src.is_c) or src.under('kernel')
    licence = 'GPL-2.0 OR MIT' if dual else 'MIT'
    form = '/* %s */' if src.is_c else '# %s'
    if line != form % f'SPDX-License-Identifier: {licence}':
        yield 1, f'must begin with the SPDX line of {licence}'


@rule(bad=[('lib/a.c', 'int a; \n'), ('README.md', 'text\t\n'), ('lib/a.c', 'int a;\r\n'),
           ('lib/a.c', 'int a;'), ('lib/a.c', 'int a;\n\n')],
      good=[('lib/a.c', 'int a;\n'), ('lib/a.c', '')])
def clean_line_ends(src):
    for n, line in enumerate(src.text.split('\n'), 1):
        if line != line.rstrip():
            yield n, 'blanks at the end of the line'
    if src.text and (not src.text.endswith('\n') or src.text.endswith('\n\n')):
        yield len(src.lines), 'a file ends with exactly one newline'


@rule(bad=[('lib/a.c', '\t' * 5 + 'x' * 61 + '\n'), ('tests/a.py', '#' * 101 + '\n')],
      good=[('lib/a.c', '\t' * 5 + 'x' * 60 + '\n'), ('README.md', 'x' * 300 + '\n')])
def columns(src):
    if not src.is_code:
        return
    for n, line in enumerate(src.lines, 1):
        width = len(line.expandtabs(8))
        if width > MAX_COLUMNS:
            yield n, f'{width} columns, at most {MAX_COLUMNS}'


@rule(bad=[('lib/a.c', 'int f(void)\n{\n        return 0;\n}\n'), ('lib/a.c', ' \tint a;\n'),
           ('tests/a.py', 'if x:\n\ty()\n'), ('lib/meson.build', "a = [\n\t'b']\n")],
      good=[('lib/a.c', '/*\n * text\n */\nint f(int a,\n      int b)\n{\n\treturn 0;\n}\n')])
def indentation(src):
    for n, line in enumerate(src.lines, 1):
        if src.is_c and re.match(r'\t* {8}|\t* +\t', line):
            yield n, 'indent with tabs'
        elif (src.is_python or src.is_meson) and re.match(r' *\t', line):
            yield n, 'indent with four blanks'


@rule(bad=[('lib/a.c', 'x\n' * 801), ('tests/a.py', 'x\n' * 801)],
      good=[('lib/a.c', 'x\n' * 800), ('docs/a.md', 'x\n' * 2000)])
def file_length(src):
    if (src.is_c or src.is_script) and len(src.lines) > MAX_FILE_LINES:
        yield MAX_FILE_LINES, f'{len(src.lines)} lines, at most {MAX_FILE_LINES}'


def function_start(lines, brace):
    """The first line of the signature whose body opens on line brace."""
    start = brace
    while start > 0 and re.match(r'[\w\s*]', lines[start - 1]) and lines[start - 1].strip() \
            and not lines[start - 1].rstrip().endswith((';', '}')):
        start -= 1
    return start


@rule(bad=[('lib/a.c', 'int f(void)\n{\n' + '\tg();\n' * 58 + '}\n'),
           ('lib/a.c', 'int f(int a,\n      int b)\n{\n' + '\tg();\n' * 57 + '}\n'),
           ('tests/a.py', 'def f():\n' + '    g()\n' * 60)],
      good=[('lib/a.c', 'int f(void)\n{\n' + '\tg();\n' * 57 + '}\n'),
            ('lib/a.c', 'const int a[] = {\n' + '\t1,\n' * 90 + '};\n'),
            ('lib/a.c', 'struct a {\n' + '\tint b;\n' * 90 + '};\n'),
            ('tests/a.py', 'def f():\n' + '    g()\n' * 59 + '\n\nx = [\n' + '    1,\n' * 80 + ']\n')])
def function_length(src):
    starts = []
    if src.is_c:
        lines = src.code.split('\n')
        for n, line in enumerate(lines):
            if line == '{':
                end = next((i for i in range(n, len(lines)) if lines[i].startswith('}')), n)
                starts.append((function_start(lines, n), end))
    elif src.is_python:
        for n, line in enumerate(src.lines):
            m = re.match(r'( *)def ', line)
            if m:
                starts.append((n, python_end(src.lines, n, len(m.group(1)))))
    for start, end in starts:
        if end - start + 1 > MAX_FUNCTION_LINES:
            yield start + 1, f'{end - start + 1} lines in a function, at most {MAX_FUNCTION_LINES}'


def python_end(lines, start, indent):
    """The last line of the def on line start."""
    last = start
    for n in range(start + 1, len(lines)):
        if not lines[n].strip():
            continue
        if len(lines[n]) - len(lines[n].lstrip()) <= indent and not lines[n].startswith(')'):
            break
        last = n
    return last


# ---- how C is written here ----

@rule(bad=[('lib/a.c', 'int a; // why\n')],
      good=[('lib/a.c', '/* see http://x */\nconst char *a = "http://x";\n')])
def comment_style(src):
    if src.is_c:
        for n, m in src.find(r'//', re.sub(r'"[^"\n]*"', '""', no_block_comments(src))):
            yield n, 'comments are /* */'


def no_block_comments(src):
    return re.sub(r'/\*.*?\*/', lambda m: re.sub(r'[^\n]', ' ', m.group(0)), src.text, flags=re.S)


@rule(bad=[('lib/a.h', 'typedef struct a { int b; } a;\n'), ('lib/a.h', 'typedef enum { B } a;\n')],
      good=[('lib/a.h', 'typedef int (*a_fn)(struct a *);\n')])
def no_typedefs_of_structs(src):
    if src.is_c:
        for n, m in src.find(r'\btypedef\s+(struct|union|enum)\b', src.code):
            yield n, f'a {m.group(1)} keeps its name'


@rule(bad=[('lib/a.h', 'int a;\n'), ('lib/a.h', '#ifndef A_H\n#define A_H\n#endif\n')],
      good=[('lib/a.h', '#ifndef GPREEMPT_LIB_A_H\n#define GPREEMPT_LIB_A_H\n#endif\n'),
            ('kernel/ext/kfd_gpreempt_trace.h', 'TRACE_EVENT(a)\n')])
def header_guard(src):
    # The kernel's tracepoints are made by including their header several times.
    if not src.is_header or src.path.endswith('_trace.h'):
        return
    m = re.search(r'^#ifndef (GPREEMPT_(?:\w+_)?H)\n#define (\w+)\n', src.code, re.M)
    if not m or m.group(1) != m.group(2):
        yield 1, 'a header has a guard named GPREEMPT_..._H'


CALLS = {
    'sleep': 'wait for the cause: poll, pidfd, waitpid',
    'usleep': 'wait for the cause: poll, pidfd, waitpid',
    'nanosleep': 'wait for the cause: poll, pidfd, waitpid',
    'clock_nanosleep': 'wait for the cause: poll, pidfd, waitpid',
    'sprintf': 'snprintf', 'vsprintf': 'vsnprintf', 'strcpy': 'snprintf or memcpy',
    'strcat': 'snprintf', 'strncpy': 'snprintf or memcpy', 'gets': 'getline',
    'system': 'posix_spawn', 'popen': 'posix_spawn', 'strtok': 'strsep or strcspn',
    'atoi': 'strtol, and look at the end', 'atol': 'strtol, and look at the end',
    'alloca': 'a bounded array', 'tmpnam': 'mkstemp', 'mktemp': 'mkstemp',
}


@rule(bad=[('tests/a.c', f'\t{call}(x);\n') for call in CALLS],
      good=[('lib/a.c', '/* sleep(1) */\n\tops->sleep(1); a_system(2); s = "gets()";\n')])
def banned_calls(src):
    if src.is_c:
        names = '|'.join(CALLS)
        for n, m in src.find(rf'(?<![\w.>])({names})\s*\(', src.code):
            yield n, f'{m.group(1)}() is banned: {CALLS[m.group(1)]}'


@rule(bad=[('gpu/kfd/a.c', '\toptions |= PTRACE_O_EXITKILL;\n')],
      good=[('gpu/kfd/a.c', '/* not PTRACE_O_EXITKILL: our death must not be the job\'s */\n')])
def never_exitkill(src):
    if src.is_c:
        for n, _ in src.find(r'\bPTRACE_O_EXITKILL\b', src.code):
            yield n, 'the death of gpreempt must never kill a job'


@rule(bad=[('lib/a.c', '\tassert(i++ < 3);\n'), ('lib/a.c', '\tassert(x = f());\n'),
           ('lib/a.c', '\tassert(close(fd) == 0);\n')],
      good=[('lib/a.c', '\tassert(a <= b && c == d && e != f);\n\tstatic_assert(sizeof(a) == 4);\n')])
def asserts_do_nothing(src):
    if not src.is_c or src.under('tests'):
        return
    for n, m in src.find(r'(?<![\w])assert\s*\(([^;]*)\)\s*;', src.code):
        text = m.group(1)
        if re.search(r'\+\+|--|(?<![=!<>])=(?!=)|\b(close|kill|read|write|waitpid|pthread_\w+)\(', text):
            yield n, 'an assert with an effect is lost where asserts are off'


# ---- who may do what ----

@rule(bad=[('lib/a.c', '\tprintf("x");\n'), ('gpu/a.c', '\tfprintf(stderr, "x");\n'),
           ('util/a.c', '\tperror("x");\n'), ('gpu/kfd/a.c', '\tfputs("x", stdout);\n')],
      good=[('cmd/a.c', '\tprintf("x");\n'), ('gpu/a.c', '\tsnprintf(b, 4, "x"); fprintf(f, "x");\n'),
            ('lib/a.h', '#define _printf_(a, b) __attribute__((format(printf, a, b)))\n')])
def libraries_never_print(src):
    if not src.is_c or not src.under(*LIBRARIES):
        return
    for n, m in src.find(r'(?<![\w.>])(v?printf|puts|putchar|perror|warnx?|errx?)\s*\(|\bstd(out|err)\b',
                         src.code):
        yield n, 'a library never prints'


TRANSPORTS = ('gpu/kfd/transport_syscall.c', 'gpu/nvrm/transport_syscall.c')
CALL_IOCTL = TRANSPORTS + ('gpu/watchpoints/points.c',)  # which asks no driver


@rule(bad=[('lib/a.c', '\treturn ioctl(fd, A, &b);\n'), ('cmd/gpreempt/a.c', '\tioctl(1, 2);\n')],
      good=[('gpu/kfd/transport_syscall.c', '\treturn ioctl(fd, A, &b);\n'),
            ('gpu/kfd/ioctl.c', '\treturn k->transport->ioctl(k->data, r, arg);\n'),
            ('gpu/kfd/transport.h', '\tint (*ioctl)(void *data, unsigned long r, void *arg);\n')])
def one_place_calls_ioctl(src):
    if not src.is_c or not src.under(*PRODUCT) or src.path in CALL_IOCTL:
        return
    for n, _ in src.find(r'(?<![\w.>*])ioctl\s*\(', src.code):
        yield n, 'only transport_syscall.c calls ioctl(2)'


@rule(bad=[('lib/a.c', '\tf = open("/sys/class/kfd", 0);\n'), ('gpu/kfd/a.c', 'x("/dev/kfd");\n')],
      good=[('gpu/kfd/transport_syscall.c', 'x("/dev/kfd");\n'), ('lib/a.c', '/* "/dev/kfd" */\n'),
            ('cmd/gpreempt/a.c', 'x("/dev/null"); y("no /dev/kfd here");\n'),
            ('cmd/a.c', 'x("/sys/fs/cgroup");\n'), ('gpu/a.c', 'strstr(target, "/dev/")')])
def one_place_names_devices(src):
    if not src.is_c or not src.under(*PRODUCT) or src.path in TRANSPORTS:
        return
    for n, _ in src.find(r'"/(sys(?!/fs/cgroup")|dev(?!/(null)?"))/', src.uncommented):
        yield n, 'only the transport names files of the driver'


# Who may include what, from the most particular folder or file up: arrows point down only.
MAY_INCLUDE = [
    ('gpu/drivers.c', ['gpu/']),
    ('abi', ['abi/']),
    ('core', ['core/', 'abi/']),
    ('util', ['util/']),
    ('include', ['gpreempt/']),
    ('gpu/model', ['gpu/model/', 'gpu/kfd/transport.h', 'abi/', 'util/']),
    ('gpu/helpers', ['gpu/helpers/', 'gpu/*', 'util/']),
    ('gpu/watchpoints', ['gpu/watchpoints/', 'gpu/helpers/', 'util/']),
    ('gpu/kfd', ['gpu/kfd/', 'gpu/helpers/', 'gpu/watchpoints/', 'gpu/*', 'abi/', 'util/']),
    ('gpu/nvrm', ['gpu/nvrm/', 'gpu/helpers/', 'gpu/watchpoints/', 'gpu/*', 'abi/', 'util/']),
    ('gpu/soft', ['gpu/soft/', 'gpu/kfd/transport.h', 'gpu/kfd/driver.h', 'gpu/helpers/', 'gpu/*', 'abi/', 'util/']),
    ('gpu', ['gpu/*', 'gpu/helpers/', 'abi/', 'util/']),
    ('wire', ['wire/', 'gpreempt/', 'abi/', 'util/']),
    ('lib', ['lib/', 'gpreempt/', 'wire/', 'gpu/', 'core/', 'abi/', 'util/']),
    ('sim', ['sim/', 'gpreempt/', 'gpu/', 'core/', 'abi/', 'util/']),
    ('cmd/wire', ['cmd/wire/', 'gpu/soft/wire.h', 'abi/', 'util/']),
    ('cmd/gpreemptd', ['cmd/gpreemptd/', 'cmd/wire/', 'gpreempt/', 'wire/', 'core/', 'gpu/', 'abi/',
                       'util/']),
    ('cmd/gpreempt-reader', ['gpu/', 'util/']),
    ('cmd/gpreempt-holder', ['gpu/', 'util/']),
    ('cmd/gpreempt-softgpu', ['cmd/gpreempt-softgpu/', 'gpu/', 'abi/', 'util/']),
    ('cmd', ['cmd/', 'gpreempt/', 'wire/', 'sim/', 'util/']),
]


def may_include(path, header):
    allowed = next((a for folder, a in MAY_INCLUDE if (path + '/').startswith(folder + '/')), None)
    if allowed is None:
        return True
    for pattern in allowed:
        if pattern.endswith('/*'):
            if os.path.dirname(header) == pattern[:-2]:
                return True
        elif header == pattern or (pattern.endswith('/') and header.startswith(pattern)):
            return True
    return False


@rule(bad=[('abi/a.h', '#include "util/macros.h"\n'), ('core/a.c', '#include "gpu/kfd/kfd.h"\n'),
           ('core/a.c', '#include <stdio.h>\n'), ('util/a.c', '#include "abi/kfd.h"\n'),
           ('gpu/model/a.c', '#include "gpu/kfd/kfd.h"\n'), ('gpu/kfd/a.c', '#include "lib/a.h"\n'),
           ('gpu/kfd/a.c', '#include "gpu/model/model.h"\n'), ('gpu/a.c', '#include "gpu/kfd/kfd.h"\n'),
           ('cmd/gpreempt/a.c', '#include "gpu/kfd/kfd.h"\n'), ('cmd/gpreempt/a.c', '#include "lib/a.h"\n'),
           ('include/gpreempt/a.h', '#include "abi/kfd.h"\n'), ('lib/a.c', '#include "cmd/a.h"\n'),
           ('lib/a.c', '#include <gpreempt/gpreempt.h>\n#include "cmd/a.h"\n'),
           ('wire/a.c', '#include "lib/a.h"\n'), ('gpu/kfd/a.c', '#include "wire/wire.h"\n'),
           ('gpu/driver.c', '#include "gpu/kfd/driver.h"\n')],
      good=[('wire/a.c', '#include "gpreempt/daemon.h"\n'), ('lib/a.c', '#include "wire/wire.h"\n'),
            ('gpu/model/a.c', '#include "gpu/kfd/transport.h"\n'), ('lib/a.c', '#include "gpu/kfd/kfd.h"\n'),
            ('cmd/gpreempt/a.c', '#include <gpreempt/gpreempt.h>\n#include "cmd/gpreempt/a.h"\n'),
            ('cmd/gpreempt/a.c', '#include "sim/sim.h"\n'),
            ('gpu/drivers.c', '#include "gpu/kfd/driver.h"\n'),
            ('abi/types.h', '#include <stdint.h>\n'), ('gpu/kfd/a.c', '#include "gpu/guard.h"\n'),
            ('tests/a.c', '#include "gpu/model/hw.h"\n')])
def include_directions(src):
    if not src.is_c:
        return
    for n, m in src.find(r'^\s*#\s*include\s*(?:"([^"]+)"|<(gpreempt/[^>]+)>)', src.uncommented):
        header = m.group(1) or m.group(2)
        if not may_include(src.path, header):
            yield n, f'{src.folder} must not know {header}'
    if src.under('core'):
        for n, m in src.find(r'^\s*#\s*include\s*<([^>]+)>', src.uncommented):
            yield n, f'core is freestanding: no <{m.group(1)}>'


COMPARED = r'\s*(?:\?|&&|\|\||==|!=)'
VENDOR_ASKED = (rf'\bvendor(?:\s*\)|{COMPARED})|\bctx->(?:k|nvrm){COMPARED}|'
                r'(?:\b(?:if|while) \(|!|&& |\|\| )(?:\w+->)*ctx->(?:k|nvrm)\)|"(?:nvrm|kfd)"\s*\)')
ASKS_FOR_VENDORS = (
    'cmd/gpreempt/doctor.c', 'cmd/gpreempt/accept.c',  # are about drivers
    'lib/ctx.c')  # chooses what people ask a driver in detail


@rule(bad=[('lib/a.c', '\tif (ctx->vendor)\n'), ('lib/a.c', '\treturn ctx->vendor ? a() : b();\n'),
           ('lib/a.c', '\tif (strcmp(ctx->backend, "nvrm") == 0)\n'),
           ('lib/a.c', '\treturn p->ctx->k ? a() : b();\n'), ('lib/a.c', '\tif (ctx->nvrm)\n'),
           ('cmd/gpreempt/a.c', '\treturn !strcmp(backend, "kfd");\n'),
           ('cmd/gpreemptd/a.c', '\treturn !strcmp(backend, "kfd");\n')],
      good=[('lib/a.c', '\treturn ctx->vendor->gpus(ctx, out);\n'),
            ('lib/a.c', '\treturn gkfd_proc_identify(ctx->k, pid, ret);\n'),
            ('gpu/nvrm/a.c', '\tif (strcmp(name, "nvrm") == 0)\n'),
            ('cmd/gpreempt/doctor.c', '\treturn !strcmp(backend, "kfd");\n')])
def nobody_asks_for_a_vendor(src):
    """Who acts calls the driver's table, or asks for an ability; opening chooses the table."""
    if not src.under('lib', 'cmd', 'core', 'wire', 'sim') or src.path in ASKS_FOR_VENDORS:
        return
    for n, _ in src.find(VENDOR_ASKED, src.uncommented):
        yield n, 'asks which vendor it is: put it into the table of its driver'


@rule(bad=[('lib/a.c', '#include "a.h"\n'), ('lib/a.c', '#include "../gpu/a.h"\n')],
      good=[('lib/a.c', '#include "lib/a.h"\n#include <stdio.h>\n'),
            ('kernel/ext/a.c', '#include "kfd_priv.h"\n')])
def includes_from_the_root(src):
    if src.is_c and not src.under('kernel/ext'):  # that is compiled in the driver's folder
        for n, m in src.find(r'^\s*#\s*include\s*"([^"]+)"', src.uncommented):
            if '/' not in m.group(1) or '..' in m.group(1):
                yield n, f'"{m.group(1)}": paths are from the root'


# ---- tests ----

@rule(bad=[('tests/unit/a.c', '\tskip();\n'), ('tests/unit/a.c', '\tif (x)\n\t\tskip ();\n')],
      good=[('tests/unit/a.c', '\tp = skip_blanks(p);\n')])
def tests_never_skip_a_case(src):
    if src.is_c and src.under('tests'):
        for n, _ in src.find(r'(?<![\w.>])skip\s*\(', src.code):
            yield n, 'meson counts a skipped case as failed: skip the program ("1..0 # SKIP why")'


@rule(bad=[('tests/a.c', '\treturn cmocka_run_group_tests(t, NULL, NULL);\n'),
           ('tests/a.c', '\treturn cmocka_run_group_tests_name("a", t,\n\t\t\tNULL, NULL);\n')],
      good=[('tests/a.c', '\treturn cmocka_run_group_tests(t, NULL, NULL) != 0;\n'),
            ('tests/a.c', '\tfailed += cmocka_run_group_tests(t, NULL, NULL);\n')])
def exit_status_is_not_a_count(src):
    if src.is_c:
        for n, m in src.find(r'return\s+cmocka_run_group_tests\w*\s*\([^;]*;', src.code):
            if not re.search(r'!=\s*0\s*;$', m.group(0)):
                yield n, '256 failures would be an exit status of 0: end with != 0'


# ---- words ----

@rule(bad=[('lib/a.c', f'/* {word}: later */\n') for word in ('TODO', 'FIXME', 'XXX', 'HACK')] +
      [('docs/a.md', 'TODO\n')],
      good=[('lib/a.c', '\tchar path[] = "gpreempt-XXXXXX";\n')])
def nothing_left_to_do(src):
    for n, m in src.find(r'\b(TODO|FIXME|XXX|HACK)\b', src.text):
        yield n, f'{m.group(1)}: do it or leave it out'


@rule(bad=[('lib/a.c', '/* see /' + 'work/shared/x */\n'), ('docs/a.md', 'in /root/x\n'),
           ('docs/a.md', '/home/jane/x\n'), ('scripts/a', 'cd /tmp/x\n')],
      good=[('tests/a.c', '\tchar dir[] = "/tmp/gpreempt-XXXXXX";\n'), ('docs/a.md', 'network/home\n')])
def no_paths_of_one_machine(src):
    for n, m in src.find(r'(?<![\w/.])/(work|root|home|tmp)/\w[^\s"\']*', src.text):
        if not m.group(0).endswith('XXXXXX'):
            yield n, f'{m.group(0)}: a path of one machine'


@rule(bad=[('lib/a.c', '/* for G1 */\n'), ('lib/a.c', '/* for H10 */\n'), ('README.md', 'see issue 2\n'), ('lib/a.c', '/* issue #3 */\n')],
      good=[('lib/a.c', 'int G1;\n'), ('docs/a.md', 'an issue of rights\n')])
def no_tracker_numbers(src):
    for n, m in src.find(r'\b[GH](?:10|[1-9])\b|\bissue #?\d+', src.comments):
        yield n, f'{m.group(0)}: say the reason, not its number'
