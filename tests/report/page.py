# SPDX-License-Identifier: MIT
"""A page of `gpreempt report`, taken apart."""
import re
from html.parser import HTMLParser

VOID = {'meta', 'link', 'br', 'img', 'input', 'hr'}


class Page(HTMLParser):
    """tables: by caption, rows by key, cells as text. tags: every element with its attributes."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.source, self.text = text, ''
        self.open, self.tags, self.wrong = [], [], []
        self.tables, self.rows, self.cells, self.caption = [], None, None, ''
        self.feed(text)
        self.close()
        if self.open:
            self.wrong.append(f'not ended: {self.open}')

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if tag not in VOID:
            self.open.append(tag)
        if tag == 'table':
            self.rows, self.caption = {}, ''
        elif tag == 'tr' and 'data-row' in attrs:
            self.cells = self.rows.setdefault(attrs['data-row'], [])
        elif tag == 'td':
            self.cells.append('')

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f'</{tag}> ends nothing, in line {self.getpos()[0]}')
        if tag == 'table':
            self.tables.append((self.caption, self.rows))

    def handle_data(self, data):
        if self.open and self.open[-1] == 'caption':
            self.caption += data
        elif self.open and 'td' in self.open:
            self.cells[-1] += data
        if 'style' not in self.open:
            self.text += data

    def table(self, caption, nth=0):
        return [rows for name, rows in self.tables if name == caption][nth]

    def attributes(self, key):
        return [attrs[key] for _, attrs in self.tags if key in attrs]

    def curves(self):
        """The steps of each curve: (across, upwards), both from 0 to 1000."""
        found = []
        for tag, attrs in self.tags:
            if tag == 'path' and attrs['class'].startswith('curve ') and 'sparse' not in \
                    attrs['class']:
                steps = re.findall(r'H([\d.-]+)V([\d.-]+)', attrs['d'])
                found.append([(float(x), 1000 - float(y)) for x, y in steps])
        return found

    def of_class(self, name):
        return [attrs for _, attrs in self.tags if attrs.get('class') == name]
