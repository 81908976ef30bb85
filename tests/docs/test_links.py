# SPDX-License-Identifier: MIT
"""What pages point to is there."""
import glob
import json
import os
import re
import unittest

from pages import ROOT, Page, files, pages, read

GUIDES = ['README.md', 'CONTRIBUTING.md', 'docs/quick-start.md', 'docs/operators-guide.md',
          'docs/how-it-works.md', 'docs/policies.md', 'docs/results/README.md']


def broken(page, there):
    """The links of a page that lead nowhere; there(path) is the page of a path, or whether."""
    for link in page.links:
        if re.match(r'https?://|mailto:', link):
            continue
        path, _, anchor = link.partition('#')
        beside = os.path.join(os.path.dirname(page.path), path)
        target = there(os.path.normpath(beside) if path else page.path)
        if not target:
            yield f'{page.path}: {link}: no such file'
        elif anchor and anchor not in target.anchors:
            yield f'{page.path}: {link}: no such heading'


class Links(unittest.TestCase):
    def there(self, path):
        if path.endswith('.md') and path in files():
            return Page(path)
        return os.path.exists(os.path.join(ROOT, path)) and not path.startswith('..')

    def test_every_link_leads_somewhere(self):
        found = [problem for page in pages() for problem in broken(page, self.there)]
        self.assertEqual(found, [])

    def test_a_link_that_does_not_is_noticed(self):
        other = Page('docs/b.md', '# Only One!\n')
        page = Page('docs/a.md', '# Here\n[a](b.md) [b](b.md#only-one) [c](#here) [d](b.md#two)\n'
                                 '[e](c.md) <img src="d.png"> [f](https://x.org) `[g](e.md)`\n')
        known = {'docs/a.md': page, 'docs/b.md': other}
        self.assertEqual(list(broken(page, known.get)),
                         ['docs/a.md: b.md#two: no such heading', 'docs/a.md: c.md: no such file',
                          'docs/a.md: d.png: no such file'])

    def test_there_are_pages_and_the_guides_are_reached_from_the_first(self):
        self.assertGreater(len(pages()), 8)
        seen, todo = set(), ['README.md']
        while todo:
            page = Page(todo.pop())
            if page.path in seen:
                continue
            seen.add(page.path)
            for link in page.links:
                path = os.path.normpath(os.path.join(os.path.dirname(page.path),
                                                     link.partition('#')[0]))
                if path.endswith('.md') and path in files():
                    todo.append(path)
        guides = GUIDES + [f for f in files() if re.fullmatch(r'docs/[^/]+\.md', f)]
        self.assertEqual(sorted(set(guides) - seen), [])

    def test_files_that_are_named_exist(self):
        folders = {f.split('/')[0] for f in files() if '/' in f} - {'build'}
        for page in pages():
            for code in page.inline:
                if code.split('/')[0] in folders and re.fullmatch(r'[\w./*+-]+/[\w./*+-]*', code):
                    beside = os.path.join(ROOT, os.path.dirname(page.path), code)
                    self.assertTrue(glob.glob(os.path.join(ROOT, code)) or glob.glob(beside),
                                    f'{page.path}: {code}')


class Results(unittest.TestCase):
    def test_each_page_has_its_figures_beside_it_and_says_how_they_were_made(self):
        listed = Page('docs/results/README.md').links
        results = [f for f in files() if re.fullmatch(r'docs/results/(?!README)[^/]+\.md', f)]
        self.assertGreaterEqual(len(results), 3)
        for path in results:
            figures = path[:-len('.md')] + '.json'
            self.assertIn(figures, files())
            json.loads(read(figures))
            page = Page(path)
            self.assertIn(os.path.basename(figures), page.links, path)
            self.assertTrue(any(re.match(r'(build|bench|scripts|tests|make)\b', code)
                                for _, code in page.blocks), f'{path}: made by what?')
            self.assertRegex(page.text, r'(?i)\b(measured|modelled)\b')
            self.assertIn(os.path.basename(path), listed)


if __name__ == '__main__':
    unittest.main()
