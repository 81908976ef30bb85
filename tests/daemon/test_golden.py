# SPDX-License-Identifier: MIT
"""Scripts read the JSON of status and events and the metrics: what was there stays as it was."""
import json
import os
import re
import subprocess
import unittest

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'golden')


def printed(program):
    return subprocess.run([os.environ[program]], capture_output=True, check=True,
                          text=True).stdout.splitlines()


def golden(name):
    with open(os.path.join(GOLDEN, name), encoding='utf-8') as f:
        return f.read().splitlines()


class Golden(unittest.TestCase):
    maxDiff = None

    def same(self, was, now, where):
        """The same keys in the same order with the same values; new keys may follow them."""
        if not isinstance(was, list):
            self.assertEqual(was, now, where)
            return
        self.assertGreaterEqual(len(now), len(was), where)
        for i, (a, b) in enumerate(zip(was, now)):
            if isinstance(a, tuple):
                self.assertEqual(a[0], b[0], where)
                self.same(a[1], b[1], f'{where}.{a[0]}')
            else:
                self.same(a, b, f'{where}[{i}]')

    def test_json_keeps_its_keys(self):
        was, now = golden('status'), printed('PRINT_STATUS')
        self.assertEqual(len(was), len(now))
        for a, b in zip(was, now):
            self.same(json.loads(a, object_pairs_hook=list, parse_float=str),
                      json.loads(b, object_pairs_hook=list, parse_float=str), '')

    def test_metrics_keep_their_lines(self):
        few = re.compile(r'process="(?!200[123]/)')
        now = iter([line for line in printed('PRINT_METRICS') if not few.search(line)])
        for line in golden('metrics'):
            self.assertIn(line, now)  # and takes up behind it


if __name__ == '__main__':
    unittest.main()
