# SPDX-License-Identifier: MIT
"""The pages of the tree as the tests beside this file see them."""
import functools
import os
import re
import subprocess

ROOT = os.environ['SOURCE_ROOT']


@functools.lru_cache(maxsize=None)
def files():
    """The files of the tree, from its root; of a tarball too, which has no history to ask."""
    listed = subprocess.run(['git', '-C', ROOT, 'ls-files', '-co', '--exclude-standard'],
                            capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return [f for f in listed.stdout.splitlines() if os.path.isfile(os.path.join(ROOT, f))]
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if not f.startswith(('build', '.git', '__pycache__'))]
        found += [os.path.relpath(os.path.join(folder, n), ROOT) for n in names]
    return found


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as f:
        return f.read()


class Page:
    """A page in Markdown."""

    def __init__(self, path, text=None):
        self.path = path
        self.text = read(path) if text is None else text
        self.blocks = [(m.group(1), m.group(2)) for m in
                       re.finditer(r'^```(\w*)\n(.*?)^```$', self.text, re.M | re.S)]
        self.prose = re.sub(r'^```.*?^```$', '', self.text, flags=re.M | re.S)
        self.blocks += [('', re.sub(r'^    ', '', m.group(0).strip('\n'), flags=re.M)) for m in
                        re.finditer(r'(?<=\n\n)(?:    \S[^\n]*\n)+(?=\n)', self.prose)]
        self.inline = [' '.join(code.split()) for code in
                       re.findall(r'(?<!`)`([^`]+)`(?!`)', self.prose)]

    @property
    def links(self):
        prose = re.sub(r'(?<!`)`[^`]+`(?!`)', '', self.prose)
        return (re.findall(r'\]\(([^)\s]+)(?:\s+"[^"]*")?\)', prose) +
                re.findall(r'\b(?:src|srcset|href)="([^"]+)"', prose))

    @property
    def anchors(self):
        """Of its headings, as the places that show such pages make them."""
        found = set()
        for heading in re.findall(r'^#+ +(.*?)\s*$', self.prose, re.M):
            words = re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', heading).lower()
            anchor = re.sub(r'[^\w\- ]', '', words).replace(' ', '-')
            n = 0
            while (unique := anchor + (f'-{n}' if n else '')) in found:
                n += 1
            found.add(unique)
        return found


@functools.lru_cache(maxsize=None)
def pages():
    return [Page(f) for f in files() if f.endswith('.md')]
