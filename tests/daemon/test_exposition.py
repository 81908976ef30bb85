# SPDX-License-Identifier: MIT
"""
The metrics as text: by a strict reader of our own, by promtool where it is to be had, and the
dashboard that reads them.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import exposition


def find_promtool():
    """None: it is not here, and cannot be fetched."""
    done = subprocess.run([os.environ['FIND_PROMTOOL'], os.environ['TOOLS']], capture_output=True,
                          text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def printed():
    out = subprocess.run([os.environ['PRINT_METRICS']], capture_output=True, check=True).stdout
    return out.decode('utf-8')


def expressions(node):
    """Every query of a dashboard."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ('expr', 'query', 'definition') and isinstance(value, str):
                yield value
            else:
                yield from expressions(value)
    elif isinstance(node, list):
        for value in node:
            yield from expressions(value)


class TheReader(unittest.TestCase):
    GOOD = '# HELP a_total Things.\n# TYPE a_total counter\na_total{b="c}\\"\\\\\\n"} 1\n'
    BAD = [
        'a 1\n',
        '# TYPE a gauge\na 1\n',
        GOOD[:-1],
        GOOD + GOOD,
        GOOD + 'a_total{b="c}\\"\\\\\\n"} 1\n',
        GOOD + 'b 1\n',
        GOOD + 'a_total{b=c} 1\n',
        GOOD + 'a_total{b="c"c="d"} 1\n',
        GOOD + 'a_total{b="c",b="d"} 1\n',
        GOOD + 'a_total{b="\\c"} 1\n',
        GOOD + 'a_total 1 \n',
        GOOD + 'a_total 0x1\n',
        GOOD + 'a_total -1\n',
        GOOD + '\n',
        '# HELP a Things.\n# TYPE a counter\na 1\n',
        '# HELP a_total Things.\n# TYPE a_total gauge\na_total 1\n',
        '# HELP a_ms Things.\n# TYPE a_ms gauge\na_ms 1\n',
        '# HELP a Things\n# TYPE a gauge\na 1\n',
        '# HELP a Things.\n# TYPE a gauge\na{job="b"} 1\n',
        '# HELP a Things.\n# TYPE a gauge\na{instance="b"} 1\n',
        '# HELP a A.\n# TYPE a histogram\na_bucket{le="1"} 1\na_sum 1\na_count 1\n',
        '# HELP a A.\n# TYPE a histogram\na_bucket{le="+Inf"} 1\na_sum 1\na_count 2\n',
        '# HELP a A.\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_count 1\n',
    ]

    def test_good_text_is_taken(self):
        family = exposition.check(self.GOOD, 'a')['a_total']
        self.assertEqual(family.samples, [('a_total', {'b': 'c}"\\\n'}, 1.0)])

    def test_bad_text_is_refused(self):
        for text in self.BAD:
            with self.assertRaises(exposition.Wrong, msg=text):
                exposition.check(text, 'a')


class TheMetrics(unittest.TestCase):
    def test_a_strict_reader_accepts_them(self):
        families = exposition.check(printed(), 'gpreempt_')
        self.assertGreater(len(families), 40)
        for family in families.values():
            self.assertTrue(family.samples, family.name)

    def test_promtool_accepts_them(self):
        promtool = find_promtool()
        if not promtool:
            print('SKIPPED: no promtool here, and none to be fetched by scripts/promtool',
                  file=sys.stderr)
            self.skipTest('no promtool')
        done = subprocess.run([promtool, 'check', 'metrics'], input=printed().encode(),
                              capture_output=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b'', b''))


class TheDaemon(unittest.TestCase):
    def test_what_it_writes_is_the_same(self):
        with tempfile.TemporaryDirectory() as place:
            config = os.path.join(place, 'gpreempt.conf')
            with open(config, 'w', encoding='utf-8') as f:
                f.write('[default]\nclass = offline\n')
            command = [os.environ['GPREEMPTD'], '--device', 'model', '--run-dir', place,
                       '--config', config]
            daemon = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            said = daemon.stderr.readline()  # that it is ready
            daemon.send_signal(signal.SIGTERM)  # it writes once more as it ends
            said += daemon.communicate(timeout=60)[1]
            self.assertEqual(daemon.returncode, 0, said)
            with open(os.path.join(place, 'metrics.prom'), encoding='utf-8') as f:
                families = exposition.check(f.read(), 'gpreempt_')
        self.assertEqual(list(families), list(exposition.parse(printed())))
        self.assertTrue(families['gpreempt_gpu_info'].samples)


def targets(node):
    """Every query of a dashboard with what its lines are called."""
    if isinstance(node, dict):
        if 'expr' in node and 'legendFormat' in node:
            yield node['expr'], node['legendFormat']
        node = list(node.values())
    if isinstance(node, list):
        for value in node:
            yield from targets(value)


class TheDashboard(unittest.TestCase):
    def test_its_lines_are_called_by_labels_they_have(self):
        families = exposition.parse(printed())
        with open(os.environ['DASHBOARD'], encoding='utf-8') as f:
            found = list(targets(json.load(f)))
        self.assertTrue([legend for _, legend in found if '{{process}}' in legend])
        for query, legend in found:
            known = {'instance'}
            for name in re.findall(r'\bgpreempt_\w+', query):
                for family in families.values():
                    if family.owns(name):
                        known.update(*(labels for _, labels, _ in family.samples))
            self.assertLessEqual(set(re.findall(r'{{(\w+)}}', legend)), known, query)

    def test_it_asks_only_for_what_there_is_with_labels_it_has(self):
        families = exposition.parse(printed())
        known = {}
        for family in families.values():
            for name, labels, _ in family.samples:
                known.setdefault(name, set()).update(labels)
        with open(os.environ['DASHBOARD'], encoding='utf-8') as f:
            asked = ' '.join(expressions(json.load(f)))
        names = set(re.findall(r'\bgpreempt_\w+', asked))
        self.assertGreater(len(names), 20)
        self.assertEqual(names - set(known), set())
        for name, selector in re.findall(r'\b(gpreempt_\w+)\{([^}]*)\}', asked):
            labels = set(re.findall(r'(\w+)=~', selector)) - {'instance'}
            self.assertLessEqual(labels, known[name], name)
        for by, name in re.findall(r'by \(([\w, ]+)\) \((?:rate\()?(gpreempt_\w+)', asked):
            self.assertLessEqual(set(by.split(', ')), known[name], name)


if __name__ == '__main__':
    unittest.main()
