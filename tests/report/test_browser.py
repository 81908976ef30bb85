# SPDX-License-Identifier: MIT
"""
The page of `gpreempt report` in a headless Chromium: it renders, says nothing on the console, asks
for nothing, is light and dark, fits a phone, and its numbers are the recorded ones.
"""
import json
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'cli')]
import browser
from run import Case, model, run

PHONE, DESK = 360, 1200
PROGRAM = browser.find()
TABLE = '''Object.fromEntries([...document.querySelectorAll('table')]
    .filter(t => t.caption.textContent === %s)
    .flatMap(t => [...t.querySelectorAll('tbody tr')])
    .map(r => [r.dataset.row, [...r.querySelectorAll('td')].map(c => c.textContent)]))'''
# What is drawn of each curve and bar, and whether it is within its picture.
DRAWN = '''[...document.querySelectorAll('svg[role=img]')].map(svg => {
    const box = svg.getBoundingClientRect();
    const parts = [...svg.querySelectorAll('path, rect:not(.rail), circle')];
    const places = parts.map(p => p.getBoundingClientRect());
    return {width: box.width, height: box.height, parts: parts.length, title:
            svg.querySelector('title').textContent, inside: places.every(b =>
            b.left >= box.left - 8 && b.right <= box.right + 8 && b.top >= box.top - 8 &&
            b.bottom <= box.bottom + 8), seen: places.some(b => b.width > 1 && b.height > 1)};
})'''
OVERLAPS = '''[...document.querySelectorAll('svg[role=img]')].flatMap(svg => {
    const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent,
                                                              t.getBoundingClientRect()]);
    return texts.flatMap(([a, x], i) => texts.slice(i + 1).filter(([b, y]) =>
        x.left < y.right - 1 && y.left < x.right - 1 && x.top < y.bottom - 3 &&
        y.top < x.bottom - 3).map(([b, y]) => a + ' / ' + b));
})'''
COLOURS = '''(() => { const s = getComputedStyle(document.body);
    return [s.backgroundColor, s.color].map(c => c.match(/\\d+/g).map(Number)
        .reduce((a, b) => a + b)); })()'''


class InABrowser(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.browser = browser.Browser(PROGRAM)
        cls.addClassCleanup(cls.browser.close)
        trace = cls.path('trace.json')
        cls.sim = cls.record('sim.json', run('--json', 'sim', 'disb-e', '--duration', '2',
                                             '--trace', trace))
        cls.bench = cls.record('bench.json', model('--json', 'bench', '1001', '-n', '50'))
        cls.page = cls.path('page.html')
        results = os.path.join(HERE, '..', '..', 'docs', 'results', 'h200.json')
        made = run('report', cls.path('sim.json'), trace, cls.path('bench.json'), results, '-o',
                   cls.page)
        assert made.status == 0, made

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def record(cls, name, result):
        assert result.status == 0, result
        with open(cls.path(name), 'w', encoding='utf-8') as f:
            f.write(result.out)
        return json.loads(result.out)

    def open(self, width, scheme='light'):
        self.browser.open(self.page, width, scheme=scheme, mobile=width == PHONE)

    def table(self, caption):
        return self.browser.run(TABLE % json.dumps(caption))

    def test_nothing_is_said_and_nothing_asked_for(self):
        self.open(DESK)
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual(self.browser.requests(), [])
        self.assertEqual(self.browser.run('document.title'), 'gpreempt report')
        self.assertEqual(self.browser.run('document.compatMode'), 'CSS1Compat')

    def test_the_console_is_heard(self):
        self.open(DESK)
        self.browser.run("console.error('heard')")
        self.assertEqual(len(self.browser.complaints()), 1)

    def test_numbers_in_it_are_the_recorded_ones(self):
        self.open(DESK)
        latency = self.table('Latency of online requests')
        for mode, row in latency.items():
            of = self.sim if mode == 'gpreempt' else self.sim['baselines'][mode]
            self.assertEqual([float(cell) for cell in row],
                             [of['online'][k] for k in ('requests', 'mean_us', 'p50_us', 'p95_us',
                                                        'p99_us', 'p999_us', 'max_us',
                                                        'over_alone_pct')])
        self.assertEqual(len(latency), 5)
        suspend = self.table('Suspend and resume')['suspend_us']
        self.assertEqual([float(cell) for cell in suspend],
                         [self.bench['suspend_us'][k] for k in ('min', 'avg', 'p50', 'p99', 'max')])

    def test_pictures_are_drawn_within_their_frames(self):
        for width in (PHONE, DESK):
            self.open(width)
            drawn = self.browser.run(DRAWN)
            self.assertGreater(len(drawn), 8)
            for picture in drawn:
                self.assertGreater(picture['width'], 0.6 * min(width, 1040), picture)
                self.assertGreater(picture['height'], 30, picture)
                self.assertGreater(picture['parts'], 0, picture)
                self.assertTrue(picture['inside'] and picture['seen'], (width, picture))

    def test_a_phone_scrolls_down_only_and_text_stays_apart(self):
        for width in (320, PHONE, DESK):
            self.open(width)
            self.assertEqual(self.browser.run('document.documentElement.scrollWidth'), width)
            self.browser.run('scrollTo(1000, 0)')
            self.assertEqual(self.browser.run('scrollX'), 0)
            self.assertEqual(self.browser.run(OVERLAPS), [], width)
        self.assertGreaterEqual(self.browser.run(
            "parseFloat(getComputedStyle(document.querySelector('svg text')).fontSize)"), 12)

    def test_light_and_dark(self):
        self.open(DESK, 'light')
        ground, ink = self.browser.run(COLOURS)
        self.assertGreater(ground, ink + 400)
        light = self.browser.run("getComputedStyle(document.querySelector('.c0')).stroke")
        self.open(DESK, 'dark')
        ground, ink = self.browser.run(COLOURS)
        self.assertGreater(ink, ground + 400)
        self.assertNotEqual(self.browser.run(
            "getComputedStyle(document.querySelector('.c0')).stroke"), light)
        self.assertEqual(self.browser.complaints(), [])

    def test_every_picture_has_a_name_for_those_who_do_not_see_it(self):
        self.open(DESK)
        nodes = self.browser.ask('Accessibility.getFullAXTree')['nodes']
        images = [n['name']['value'] for n in nodes
                  if n.get('role', {}).get('value') in ('image', 'img', 'figure')
                  and not n.get('ignored')]
        self.assertGreater(len(images), 15)
        self.assertTrue(all(images), images)


if __name__ == '__main__':
    if not PROGRAM:
        print('no Chromium is here: the page was tried in no browser')
        sys.exit(77)
    unittest.main()
