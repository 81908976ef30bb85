# SPDX-License-Identifier: MIT
"""The parser, --help and manual pages: whatever one of them knows, all of them know."""
import os
import re
import unittest

from pages import files, read
from program import EVERYWHERE, PROGRAMS, ask, commands, help_of, options

def options_of_page(text):
    """What a manual page explains: the terms of its lists that are options."""
    terms = re.findall(r'^\*-[^\n]*', text, re.M)
    return {o for term in terms for o in re.findall(r'\*(--?[A-Za-z][a-z-]*)\*', term)}


def page(name):
    return read(f'docs/man/{name}.scd')


class ManualPages(unittest.TestCase):
    def test_every_command_has_one_and_every_one_a_command(self):
        names = {os.path.basename(f)[:-len('.scd')] for f in files() if f.startswith('docs/man/')}
        pages = {f'gpreempt-{c}.1' for c in commands()}
        self.assertGreater(len(pages), 20)
        others = {'gpreempt.1', 'gpreempt.7', 'gpreempt.conf.5', 'gpreemptd.8', 'libgpreempt.3'}
        self.assertLessEqual(pages | others, names)
        for name in names - pages - others:
            self.assertFalse(name.startswith('gpreempt-') and name.endswith('.1') and
                             name not in ('gpreempt-softgpu.1', 'gpreempt-top.1'),
                             f'{name}: of no command')
        built = set(re.findall(r"'([\w.-]+\.[1-8])'", read('docs/meson.build')))
        self.assertEqual(built, names)

    def test_pages_they_refer_to_exist(self):
        names = {os.path.basename(f)[:-len('.scd')] for f in files() if f.startswith('docs/man/')}
        for name in names:
            for other, section in re.findall(r'\*((?:lib)?gpreempt[\w.-]*)\*\((\d)\)', page(name)):
                self.assertIn(f'{other}.{section}', names, name)

    def test_every_policy_is_explained(self):
        listed = ask('gpreempt', 'sim', '--list').stdout.partition('policies:\n')[2]
        policies = re.findall(r'^  (\w+) ', listed.partition('\n\n')[0], re.M)
        self.assertGreater(len(policies), 4)
        section = page('gpreempt.7').partition('## Policies\n')[2].partition('\n## ')[0]
        self.assertEqual(re.findall(r'^\*(\w+)\*$', section, re.M), policies)
        table = read('docs/operators-guide.md').partition('| policy |')[2].partition('\n\n')[0]
        self.assertEqual(set(re.findall(r'^\| `(\w+)`', table, re.M)), set(policies))

    def test_the_program_s_page_names_the_same_commands(self):
        text = page('gpreempt.1').partition('# COMMANDS')[2].partition('# OPTIONS')[0]
        terms = ', '.join(re.findall(r'^(\*[a-z].*)', text, re.M))
        self.assertEqual(sorted(re.findall(r'\*([a-z-]+)\*', terms)), sorted(commands()))

    def test_commands_have_the_options_their_pages_explain(self):
        for command in commands():
            # A page may say what a global option means here, and then only there.
            explained = options_of_page(page(f'gpreempt-{command}.1')) - EVERYWHERE
            self.assertEqual(explained, options('gpreempt', command) - EVERYWHERE, command)

    def test_synopses_name_no_other_options(self):
        for command in commands():
            synopsis = page(f'gpreempt-{command}.1').partition('# SYNOPSIS')[2].partition('\n#')[0]
            named = set(re.findall(r'(?<![\w-])--?[a-z][a-z-]*', synopsis.replace('\\', '')))
            self.assertLessEqual(named, options('gpreempt', command), command)

    def test_of_the_programs(self):
        self.assertEqual(options_of_page(page('gpreempt.1')), options('gpreempt'))
        told = {'-h', '--help', '-V', '--version'}  # everybody knows these
        self.assertEqual(options_of_page(page('gpreemptd.8')) - told, options('gpreemptd') - told)
        for program in ('gpreempt-softgpu', 'gpreempt-top'):
            self.assertEqual(options_of_page(page(f'{program}.1')) - told,
                             options(program) - told)


class Parsers(unittest.TestCase):
    """Whether the parser takes an option is asked of the parser."""

    def accepted(self, program, command, option, takes):
        """
        Whether the help comes that is asked for behind it, so that nothing is ever done. A value
        that makes no sense may be refused before; that says the option was understood.
        """
        for form in {'no': [option], 'required': [option + '=1']}.get(takes, []):
            said = ask(program, *([command] if command else []), form, '--help')
            if said.returncode == 0 or not re.search('unknown option', said.stderr):
                return True
        return False

    def known_to_sources(self, folder):
        """The options that are written there, each with whether it takes a value."""
        found = set()
        for path in files():
            if path.startswith(folder) and path.endswith(('.c', '.h')):
                found.update(re.findall(r'\{\s*"([a-z][a-z-]+)",\s*(\w+)_argument', read(path)))
                for name, take in re.findall(
                        r'\{\s*"([a-z][a-z-]+)",\s*(?:0|\'.\'),\s*(NULL|(?:option|take)_\w+),',
                        read(path)):
                    found.add((name, 'no' if take == 'NULL' else 'required'))
        return {('--' + name, takes) for name, takes in found}

    def test_commands_take_what_their_help_says_and_nothing_else(self):
        known = self.known_to_sources('cmd/gpreempt/') - {('--version', 'no')}
        self.assertGreater(len(known), 30)
        for command in commands():
            said = {o for o in options('gpreempt', command) if o.startswith('--')}
            shortened = {o for o, _ in known if any(s.startswith(o) for s in said - {o})}
            taken = {o for o, takes in known if self.accepted('gpreempt', command, o, takes)}
            taken -= shortened - said
            self.assertEqual(taken, said, command)

    def test_so_do_the_other_programs(self):
        for program in ('gpreemptd', 'gpreempt-softgpu', 'gpreempt-top'):
            said = {o for o in options(program) if o.startswith('--')}
            known = self.known_to_sources(f'cmd/{program}/')
            self.assertEqual({o for o, _ in known}, said, program)


class Reference(unittest.TestCase):
    def test_the_manual_page_of_the_library_has_every_function_and_no_other(self):
        declared = set()
        for path in files():
            if path.startswith('include/gpreempt/'):
                code = re.sub(r'/\*.*?\*/', '', read(path), flags=re.S)
                declared.update(re.findall(r'\b(gpreempt_\w+)\(', code))
        self.assertGreater(len(declared), 60)
        documented = set(re.findall(r'\*(gpreempt_\w+)\*\(\)', page('libgpreempt.3')))
        self.assertEqual(documented, declared)


class Helped(unittest.TestCase):
    def test_every_line_fits(self):
        texts = [help_of('gpreempt', c) for c in commands()] + [help_of(p) for p in PROGRAMS]
        for text in texts:
            self.assertTrue(all(len(line) <= 90 for line in text.splitlines()), text)


if __name__ == '__main__':
    unittest.main()
