# SPDX-License-Identifier: MIT
"""docs/one-preemption.md: the functions are there, and each leads to the next."""
import re
import unittest

from pages import Page, read

PAGE = 'docs/one-preemption.md'
ROW = re.compile(r'^\| `(\w+)`(?: \(`(\w+)`\))? \| `([\w/.]+)` \|', re.M)


def body_of(function, text):
    """What is between the braces of its definition, or None."""
    m = re.search(rf'^(?!\s)[^\n;=]*\b{function}\([^;{{]*\)\n\{{\n(.*?)^\}}', text, re.M | re.S)
    return m and m.group(1)


def problems(text, source_of):
    """What is wrong with the ways on a page; source_of(path) is a file's text."""
    for part in re.split(r'^## ', text, flags=re.M)[1:]:
        above = []
        for function, pointer, path in ROW.findall(part):
            body = body_of(function, source_of(path))
            if body is None:
                yield f'{function}: not defined in {path}'
                continue
            called = re.compile(rf'\b{pointer or function}\b' + ('' if pointer else r'\('))
            if above and not any(called.search(b) for b in above):
                yield f'{function}: called by none above it'
            above.append(body)


class Ways(unittest.TestCase):
    def test_each_function_is_there_and_called(self):
        page = Page(PAGE)
        self.assertEqual(list(problems(page.text, read)), [])
        rows = ROW.findall(page.text)
        self.assertGreater(len(rows), 50)
        self.assertEqual(len(rows), page.text.count('\n| `'), 'a row that is not understood')

    def test_what_is_wrong_is_noticed(self):
        sources = {'a.c': 'static int one(int x)\n{\n\treturn two(x) + ops->go(x);\n}\n\n'
                          'int other(void)\n{\n\treturn 0;\n}\n',
                   'b.c': 'int two(int x);\n\nint two(int x)\n{\n\treturn x;\n}\n\n'
                          'int gone(int x);\n\nint by_table(\n\tint x)\n{\n\treturn x;\n}\n'}
        row = '| `{}` | `{}` | says |\n'.format
        good = '## Part\n' + row('one', 'a.c') + row('two', 'b.c') + \
            '| `by_table` (`go`) | `b.c` | says |\n'
        self.assertEqual(list(problems(good, sources.get)), [])
        self.assertEqual(list(problems(good + row('gone', 'b.c'), sources.get)),
                         ['gone: not defined in b.c'])
        self.assertEqual(list(problems(good + row('other', 'a.c'), sources.get)),
                         ['other: called by none above it'])
        self.assertEqual(list(problems(good.replace('`go`', '`stop`'), sources.get)),
                         ['by_table: called by none above it'])


if __name__ == '__main__':
    unittest.main()
