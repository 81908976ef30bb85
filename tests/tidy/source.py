# SPDX-License-Identifier: MIT
"""A source file as the rules of tests/tidy see it."""
import functools
import os
import re

C_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
SCRIPTS = ('.py', '.sh')


def blank(text):
    return re.sub(r'[^\n]', ' ', text)


class Source:
    """One file: its path from the root, its text, and views of it with the same line numbers."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.lines = text.splitlines()
        self.folder = os.path.dirname(path)
        name = os.path.basename(path)
        self.is_c = name.endswith(('.c', '.h'))
        self.is_header = name.endswith('.h')
        self.is_meson = name in ('meson.build', 'meson_options.txt')
        self.is_make = name in ('Makefile', 'Kbuild')
        self.is_python = name.endswith('.py') or text.startswith(('#!/usr/bin/env python3',
                                                                  '#!/usr/bin/python3'))
        self.is_script = name.endswith(SCRIPTS) or text.startswith('#!')
        self.is_code = self.is_c or self.is_meson or self.is_make or self.is_script

    def under(self, *folders):
        return any(self.path.startswith(f + '/') for f in folders)

    @functools.cached_property
    def code(self):
        """C without comments and without what strings say."""
        def keep_quotes(m):
            token = m.group(0)
            if token[0] in '"\'':
                return token[0] + ' ' * (len(token) - 2) + token[-1]
            return blank(token)
        return C_TOKEN.sub(keep_quotes, self.text)

    @functools.cached_property
    def uncommented(self):
        """C without comments, strings as they are."""
        return C_TOKEN.sub(lambda m: m.group(0) if m.group(0)[0] in '"\'' else blank(m.group(0)),
                           self.text)

    @functools.cached_property
    def comments(self):
        """Only the comments of C; of anything else, the whole text."""
        if not self.is_c:
            return self.text
        out, at = [], 0
        for m in C_TOKEN.finditer(self.text):
            out.append(blank(self.text[at:m.start()]))
            out.append(m.group(0) if m.group(0)[0] == '/' else blank(m.group(0)))
            at = m.end()
        return ''.join(out) + blank(self.text[at:])

    def find(self, pattern, view):
        """Line numbers and matches of a pattern in one of the views."""
        for m in re.finditer(pattern, view, re.M):
            yield view.count('\n', 0, m.start()) + 1, m
