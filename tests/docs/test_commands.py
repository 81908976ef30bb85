# SPDX-License-Identifier: MIT
"""Commands that pages quote exist; those that need no GPU are run; configurations are read."""
import os
import re
import shlex
import sys
import tempfile
import unittest

from pages import ROOT, files, pages, read
from program import ask, commands, options

sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import records  # noqa: E402 pylint: disable=wrong-import-position

VALUED = {'--device', '--socket'}  # options before the command that take a value


def quoted(page):
    """The commands of a page, each without what follows or explains it."""
    for _, block in page.blocks:
        for line in re.sub(r'\\\n\s*', ' ', block).splitlines():
            yield line
    for code in page.inline:
        yield code


def calls(line, program):
    """The words after each mention of a program in a line that calls it."""
    pattern = rf'(?:^|(?<=[\s;&|(/]))(?<!/etc/){re.escape(program)}(?=\s|$)'
    if re.match(r'\s*#', line) or not re.search(pattern, line):
        return
    for m in re.finditer(pattern, line):
        before = line[:m.start()].split()
        # Only where a command stands: first, behind an operator or a path, or started by another.
        if before and not re.match(r'.*[;&|(/=]$|--$|sudo$|exec$|time$|\$$|as$', before[-1]) and \
                '=' not in before[-1]:
            continue
        rest = re.split(r'\s{2,}|\s#|\s-- |[|;&>)]|\.\.\.|…', line[m.end():], maxsplit=1)[0] \
            if not re.match(r'\s{2,}', line[m.end():]) else ''
        yield re.sub(r'[\[\],]', ' ', rest).split()


def complaints(words):
    """What is wrong with a call of gpreempt."""
    words = list(words)
    while words and words[0].startswith('-'):
        option = words.pop(0)
        if option.partition('=')[0] not in options('gpreempt'):
            return f'no option {option}'
        if option in VALUED and words:
            words.pop(0)
    if not words or words[0] in ('COMMAND', 'help'):
        return None
    if words[0] not in commands():
        return f'no command {words[0]}'
    for word in words[1:]:
        option = word.partition('=')[0]
        if re.match(r'--?[a-z]', option) and option not in options('gpreempt', words[0]):
            return f'{words[0]} has no option {option}'
    return None


class Commands(unittest.TestCase):
    def test_of_gpreempt(self):
        found = 0
        for page in pages():
            for line in quoted(page):
                for words in calls(line, 'gpreempt'):
                    found += 1
                    self.assertIsNone(complaints(words), f'{page.path}: {line}')
        self.assertGreater(found, 60)

    def test_of_the_other_programs(self):
        for program in ('gpreemptd', 'gpreempt-softgpu', 'gpreempt-top'):
            for page in pages():
                for line in quoted(page):
                    for words in calls(line, program):
                        named = {w.partition('=')[0] for w in words if re.match(r'--?[a-z]', w)}
                        self.assertLessEqual(named, options(program), f'{page.path}: {line}')

    def test_a_wrong_one_is_noticed(self):
        for line in ('gpreempt frobnicate', 'sudo gpreempt hold 1 --until 2',
                     'gpreempt --devise x list', 'gpreempt --device model hodl 1001   # stay',
                     'build/cmd/gpreempt/gpreempt nope'):
            self.assertTrue(any(complaints(w) for w in calls(line, 'gpreempt')), line)
        for line in ('gpreempt --device model list    --unlike this', 'gpreempt',
                     'gpreempt run --class online -- x -y', 'see gpreempt frobnicate',
                     'gpreempt hold PID --for 5 | tee --append x'):
            self.assertFalse(any(complaints(w) for w in calls(line, 'gpreempt')), line)

    def test_targets_of_make(self):
        makefile = re.sub(r'\\\n\s*', ' ', read('Makefile'))
        rules = re.findall(r'^([a-z][a-z0-9 -]*):(?!=)', makefile, re.M)
        targets = {word for line in rules for word in line.split()}
        found = 0
        for page in pages():
            for line in quoted(page):
                for words in calls(line, 'make'):
                    found += 1
                    wanted = [w for w in words if re.fullmatch(r'[a-z][a-z0-9-]*', w)]
                    self.assertLessEqual(set(wanted[:1]), targets, f'{page.path}: {line}')
        self.assertGreater(found, 10)

    def test_modules_of_python(self):
        for page in pages():
            for line in quoted(page):
                for module in re.findall(r'python3 -m (gpreempt[\w.]*)', line):
                    path = os.path.join(ROOT, 'python', *module.split('.'))
                    self.assertTrue(os.path.exists(path + '.py') or
                                    os.path.exists(os.path.join(path, '__main__.py')),
                                    f'{page.path}: {line}')

    def test_those_for_the_software_device_work(self):
        found = 0
        for page in pages():
            for _, block in page.blocks:
                for line in block.splitlines():
                    if not re.match(r'gpreempt (--json )?--device model[\w:]* (?!hold|demo)', line):
                        continue
                    found += 1
                    words = shlex.split(line, comments=True)
                    self.assertNotRegex(line.partition('#')[0], '[|&><]')
                    with tempfile.TemporaryDirectory() as folder:
                        said = ask('gpreempt', *words[1:], cwd=folder)
                    self.assertEqual((said.returncode, said.stderr), (0, ''),
                                     f'{page.path}: {line}')
        self.assertGreater(found, 3)


class Sources(unittest.TestCase):
    def test_code_that_is_quoted_is_what_is_built(self):
        found = 0
        for page in pages():
            for language, block in page.blocks:
                if language == 'c':
                    found += 1
                    named = [link for link in page.links if link.endswith('.c')]
                    folder = os.path.dirname(page.path)
                    sources = [read(os.path.normpath(os.path.join(folder, f))) for f in named]
                    self.assertTrue(any(block in source for source in sources),
                                    f'{page.path}: in none of {named}:\n{block}')
        self.assertGreater(found, 1)


    def test_figures_and_calls_that_are_named_exist(self):
        code = ''.join(read(f) for f in files()
                       if f.startswith(('cmd/', 'include/', 'kernel/ext/', 'abi/', 'python/'))
                       and f.endswith(('.c', '.h', '.py')))
        code += '\n'.join(records.c_table(records.of_tree(ROOT)))
        for page in pages():
            for name in re.findall(r'\bgpreempt_[a-z_]+\b', ' '.join(page.inline)):
                self.assertRegex(code, rf'\b{name}', page.path)


class Configurations(unittest.TestCase):
    SECTION = r'^\[(rule [\w-]+|policy|observe|hold|slots|hint|control|metrics|kernel|default)\]$'

    def examples(self):
        for page in pages():
            for _, block in page.blocks:
                if re.search(self.SECTION, block, re.M):
                    yield page.path, block
        for path in ('docs/man/gpreempt.conf.5.scd',):
            for block in re.findall(r'^```\n(.*?)^```$', read(path), re.M | re.S):
                yield path, block

    def test_all_are_understood(self):
        found = 0
        for path, block in self.examples():
            found += 1
            # Users of the reader's machine; a name that is not known there is a mistake of its own.
            text = re.sub(r'^(user|group) = .*', r'\1 = root', block, flags=re.M)
            with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
                f.write(text)
                f.flush()
                said = ask('gpreemptd', '--check-config', f.name)
            self.assertEqual((said.returncode, said.stderr), (0, ''), f'{path}:\n{block}')
        self.assertGreater(found, 3)


if __name__ == '__main__':
    unittest.main()
