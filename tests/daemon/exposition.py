# SPDX-License-Identifier: MIT
"""A strict reader of Prometheus' text format, version 0.0.4, and of its naming conventions."""
import math
import re

NAME = re.compile(r'[a-zA-Z_:][a-zA-Z0-9_:]*')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
VALUE = re.compile(r'[+-]?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|Inf)|NaN')
TYPES = ('counter', 'gauge', 'histogram', 'summary', 'untyped')
NOT_BASE = ('milliseconds', 'microseconds', 'nanoseconds', 'minutes', 'percent', 'kilobytes', 'ms',
            'us')

RESERVED = {'job', 'instance'}


class Wrong(Exception):
    pass


def parse_labels(text):
    labels, at = {}, 0
    while at < len(text):
        m = LABEL.match(text, at)
        if not m:
            raise Wrong(f'no label: {text[at:]!r}')
        if m.group(1) in labels:
            raise Wrong(f'label twice: {m.group(1)}')
        labels[m.group(1)] = re.sub(r'\\(.)', lambda e: {'n': '\n'}.get(e.group(1), e.group(1)),
                                    m.group(2))
        at = m.end()
        if at < len(text):
            if text[at] != ',':
                raise Wrong(f'no comma: {text[at:]!r}')
            at += 1
    return labels


def parse_sample(line):
    m = NAME.match(line)
    if not m:
        raise Wrong('no name')
    rest, labels = line[m.end():], {}
    if rest.startswith('{'):
        # A brace may stand in a label's value: the last one closes.
        end = rest.rindex('}')
        labels, rest = parse_labels(rest[1:end]), rest[end + 1:]
    if not rest.startswith(' ') or not VALUE.fullmatch(rest[1:]):
        raise Wrong(f'no value: {rest!r}')
    return m.group(0), labels, float(rest[1:].replace('Inf', 'inf'))


class Family:
    def __init__(self, name):
        self.name, self.help, self.type, self.samples = name, None, None, []

    def owns(self, sample):
        suffixes = ('_bucket', '_sum', '_count') if self.type == 'histogram' else ('',)
        return sample in [self.name + s for s in suffixes]


def parse(text):
    """Families by name, in order. Raises Wrong with the line."""
    families, current = {}, None
    if not text.endswith('\n'):
        raise Wrong('the last line does not end')
    for number, line in enumerate(text[:-1].split('\n'), 1):
        try:
            current = parse_line(line, families, current)
        except Wrong as e:
            raise Wrong(f'line {number}: {e}: {line!r}') from None
    return families


def parse_line(line, families, current):
    m = re.fullmatch(r'# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)', line)
    if m:
        kind, name, rest = m.groups()
        if kind == 'HELP':
            if name in families:
                raise Wrong('family twice')
            current = families[name] = Family(name)
            current.help = rest
        elif current is None or current.name != name or current.type or rest not in TYPES:
            raise Wrong('TYPE not behind its HELP')
        else:
            current.type = rest
        return current
    name, labels, value = parse_sample(line)
    if current is None or not current.type or not current.owns(name):
        raise Wrong('not of this family')
    if any((name, labels) == s[:2] for s in current.samples[-1000:]):
        raise Wrong('sample twice')
    current.samples.append((name, labels, value))
    return current


def check_histogram(family):
    buckets = [(s[1]['le'], s[2]) for s in family.samples if s[0].endswith('_bucket')]
    counts = [s[2] for s in family.samples if s[0].endswith('_count')]
    bounds = [float(le.replace('Inf', 'inf')) for le, _ in buckets]
    if bounds != sorted(set(bounds)) or not bounds or bounds[-1] != math.inf:
        raise Wrong(f'{family.name}: bounds {bounds}')
    values = [v for _, v in buckets]
    if values != sorted(values) or counts != [values[-1]]:
        raise Wrong(f'{family.name}: buckets are not counts of all below')


def check_conventions(family):
    parts = family.name.split('_')
    if (family.type == 'counter') != family.name.endswith('_total'):
        raise Wrong(f'{family.name}: only counters end in _total')
    if family.type == 'counter' and any(s[2] < 0 for s in family.samples):
        raise Wrong(f'{family.name}: a counter below 0')
    if any(p in NOT_BASE for p in parts):
        raise Wrong(f'{family.name}: not in base units')
    if family.type in parts or not family.help.endswith('.'):
        raise Wrong(f'{family.name}: names its type, or its help is no sentence')
    if any(RESERVED & set(s[1]) for s in family.samples):
        raise Wrong(f'{family.name}: a label that Prometheus overwrites when it scrapes')
    if family.type == 'histogram':
        check_histogram(family)
    elif any('le' in s[1] for s in family.samples):
        raise Wrong(f'{family.name}: label le')


def check(text, prefix):
    families = parse(text)
    for family in families.values():
        if not family.name.startswith(prefix):
            raise Wrong(f'{family.name} is not called {prefix}...')
        check_conventions(family)
    return families
