# SPDX-License-Identifier: MIT
"""Pages made of recordings: what they say is what was recorded, and nothing breaks them."""
import copy
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli'), os.path.join(HERE, '..', 'daemon')]
from page import Page
from run import DONE, FAILED, GPREEMPT, USAGE, Case, run

RESULTS = os.path.join(HERE, '..', '..', 'docs', 'results')
MODES = ('alone', 'none', 'stream_priority', 'sequential')
EVIL = '<script>alert(1)</script>"\'&\x1b[2J</title></svg>\u202e'
BASE_NS = 1_700_000_000_000_000_000


def event(ms, kind, **more):
    return {'time_ns': BASE_NS + int(ms * 1e6), 'event': kind, 'text': 'x', **more}


def job(pid, comm, job_class, **more):
    return {'pid': pid, 'uid': 0, 'comm': comm, 'class': job_class, **more}


EVENTS = [
    event(0, 'subscribed', backend='model', modelled=True),
    event(10, 'job-came', **job(70, 'train', 'offline')),
    event(20, 'job-came', **job(71, 'serve', 'online')),
    event(100, 'held', gpu_id=11, other_pid=71, **job(70, 'train', 'offline')),
    event(130, 'let-go', gpu_id=11, duration_us=30000.5, **job(70, 'train', 'offline')),
    event(200, 'held', gpu_id=11, other_pid=71, **job(70, 'train', 'offline')),
    event(210, 'let-go', gpu_id=11, duration_us=10000.25, **job(70, 'train', 'offline')),
    event(400, 'held', gpu_id=11, other_pid=71, **job(70, 'train', 'offline')),
    event(500, 'job-went', **job(71, 'serve', 'online')),
]


def status(ms, online, offline):
    return {'time_ns': BASE_NS + int(ms * 1e6), 'pid': 1, 'policy': 'priority', 'backend': 'kfd',
            'modelled': False, 'uptime_s': 5, 'suspend_us': {'count': 9, 'p50': 50.5, 'p99': 70,
                                                            'max': 71.25},
            'gpus': [{'gpu_id': 11, 'name': 'gfx942', 'slots': 24, 'slots_online': online,
                      'slots_offline': offline}, {'gpu_id': 12, 'name': 'gfx942', 'slots': 24,
                                                  'slots_online': 0, 'slots_offline': 0}],
            'jobs': [dict(job(70, 'train', 'offline'), gpu_id=11, ran_us=7500.0, stolen_us=2500.0,
                          preempted=3, share_pct=12.5)]}


class Reports(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def file(self, *values, name='run.json', text=None):
        with open(self.path(name), 'w', encoding='utf-8') as f:
            f.write('\n'.join(map(json.dumps, values)) if text is None else text)
        return self.path(name)

    def sim(self, *args, trace=True):
        more = ['--trace', self.path('trace.json')] if trace else []
        answer = self.ok(run('--json', 'sim', *args, *more))
        self.file(text=answer, name='sim.json')
        return json.loads(answer)

    def page(self, *files):
        """Every page is whole, alone and labelled, whatever it shows."""
        page = Page(self.ok(run('report', *files)))
        self.assertEqual(page.wrong, [])
        for word in ('http:', 'https:', '<script', '@import', 'src=', 'javascript:'):
            self.assertNotIn(word, page.source.lower())
        self.assertEqual(set(re.findall(r'url\([^)]*\)', page.source)), {'url(#hatch)'})
        ids = page.attributes('id')
        self.assertEqual(len(ids), len(set(ids)))
        for label in page.attributes('aria-labelledby'):
            self.assertLessEqual(set(label.split()), set(ids))
        for attrs in (a for t, a in page.tags if t == 'svg' and a.get('role') != 'img'):
            self.assertTrue('viewbox' in attrs or attrs.get('aria-hidden') == 'true', attrs)
        self.assertNotIn('nan', re.sub(r'[a-z]*nan[a-z]+', '', page.source.lower()))
        self.assertNotRegex(page.source, r'[:"H V]-?inf\b')
        return page


class Simulations(Reports):
    def test_every_number_is_the_recorded_one(self):
        answer = self.sim('disb-e', '--duration', '2', trace=False)
        page = self.page(self.path('sim.json'))
        latency, work = page.table('Latency of online requests'), page.table('What gets done')
        for mode in ('gpreempt',) + MODES:
            of = answer if mode == 'gpreempt' else answer['baselines'][mode]
            self.assertEqual([float(c) for c in latency[mode]],
                             [of['online'][k] for k in ('requests', 'mean_us', 'p50_us', 'p95_us',
                                                        'p99_us', 'p999_us', 'max_us',
                                                        'over_alone_pct')], mode)
            self.assertEqual([float(c) for c in work[mode][:3]],
                             [of['offline']['goodput_pct'], of['total_throughput_pct'],
                              of['total_work_pct']], mode)
        held = page.table('Preemptions and inversions')['preemptions']
        self.assertEqual(int(held[0]), answer['preemptions']['count'])
        self.assertEqual(float(held[3]), answer['preemptions']['latency_us']['p50'])
        self.assertEqual(float(page.table('HQD occupancy')['slots'][0]),
                         answer['slots']['used_pct'])
        for told in answer['jobs']:
            self.assertEqual(int(page.table('Jobs, under gpreempt')[told['name']][3]),
                             told['done'])
        self.assertEqual(page.source.count('class="badge modelled"'), 2 + 4)
        self.assertNotIn('badge measured', page.source)

    def test_curves_go_through_the_recorded_points(self):
        answer = self.sim('disb-e', '--duration', '2', trace=False)
        curves = self.page(self.path('sim.json')).curves()
        recorded = [answer['baselines'][m]['online'] for m in reversed(MODES)] + [answer['online']]
        self.assertEqual(len(curves), len(recorded))
        low = math.log10(min(o['cdf']['us'][0] for o in recorded))
        high = math.log10(max(o['cdf']['us'][-1] for o in recorded))
        left = min(c[0][0] for c in curves)
        right = max(c[-1][0] for c in curves)
        for curve, online in zip(curves, recorded):
            self.assertEqual(curve[-1][1], 1000)
            drawn = dict((pct, x) for x, pct in curve)
            for pct, us in zip(online['cdf']['pct'], online['cdf']['us']):
                if 10 * pct in drawn:
                    x = left + (math.log10(us) - low) / (high - low) * (right - left)
                    self.assertAlmostEqual(drawn[10 * pct], x, delta=0.1)
            self.assertGreater(len(drawn), 5)

    def test_a_distribution_agrees_with_the_quantiles_beside_it(self):
        online = self.sim('disb-e', '--duration', '2', trace=False)['online']
        at = dict(zip(online['cdf']['pct'], online['cdf']['us']))
        self.assertEqual([at[50], at[95], at[99], at[99.9], at[100]],
                         [online[k] for k in ('p50_us', 'p95_us', 'p99_us', 'p999_us', 'max_us')])
        self.assertEqual(sorted(online['cdf']['us']), online['cdf']['us'])

    def test_an_old_recording_has_its_points_only(self):
        answer = self.sim('disb-a', '--duration', '1', trace=False)
        for of in [answer] + list(answer['baselines'].values()):
            del of['online']['cdf']
        page = self.page(self.file(answer))
        self.assertEqual(page.curves(), [])
        self.assertIn('between them nothing is known', page.text)
        self.assertIn(f"99%: {answer['online']['p99_us']:.3f} µs", page.text)

    def test_a_sweep(self):
        answer = self.sim('gpreempt-preparation', '--duration', '1', trace=False)
        table = self.page(self.path('sim.json')).table('For each value')
        self.assertEqual(list(table), [r['value'] for r in answer['runs']])
        for told in answer['runs']:
            self.assertEqual(float(table[told['value']][0]), told['online']['mean_us'])

    def test_the_same_recordings_make_the_same_bytes(self):
        self.sim('disb-d', '--duration', '1')
        files = self.path('sim.json'), self.path('trace.json')
        self.assertEqual(self.page(*files).source, self.page(*files).source)


class Traces(Reports):
    def trace(self):
        with open(self.path('trace.json'), encoding='utf-8') as f:
            return json.load(f)

    def check_jobs(self, page, trace):
        names = {(e['pid'], e['tid']): e['args']['name'] for e in trace['traceEvents']
                 if e['name'] == 'thread_name' and not e['args']['name'].endswith(' requests')}
        gpus = sorted({pid for pid, _ in names})
        slices = [e for e in trace['traceEvents'] if e['ph'] == 'X']
        for (pid, tid), name in names.items():
            mine = [e for e in slices if e['tid'] == tid]
            work = [e['dur'] for e in mine if e['cat'] == 'work']
            held = [e['dur'] for e in mine if e['cat'] == 'preemption']
            row = page.table('The whole recording, job by job', gpus.index(pid))[name]
            self.assertAlmostEqual(float(row[1]), sum(work) / 1000, 2)
            self.assertEqual(int(row[3]), len(held))
            self.assertAlmostEqual(float(row[4]), sum(held) / 1000, 2)
            self.assertAlmostEqual(float(row[5]), max(held, default=0) / 1000, 2)

    def check_slots(self, page, trace):
        end_us = trace['otherData']['duration_ns'] / 1000
        gpus = {e['pid']: e['args']['name'] for e in trace['traceEvents']
                if e['name'] == 'process_name'}
        for pid in gpus:
            told = [e for e in trace['traceEvents'] if e['ph'] == 'C' and e['pid'] == pid]
            if not told:
                continue
            ends = [e['ts'] for e in told[1:]] + [end_us]
            row = page.table('Hardware queue slots')[gpus[pid]]
            for cell, key in zip(row[1:5], ('online', 'offline', 'idle', 'free')):
                mean = sum(e['args'][key] * (to - e['ts']) for e, to in zip(told, ends)) / \
                    (end_us - told[0]['ts'])
                self.assertAlmostEqual(float(cell), mean, 2)

    def test_jobs_and_slots_come_to_what_is_in_the_file(self):
        for scenario in ('disb-d', 'gang-8', 'offline-60'):
            answer = self.sim(scenario, '--duration', '0.5')
            page, trace = self.page(self.path('trace.json')), self.trace()
            self.check_jobs(page, trace)
            self.check_slots(page, trace)
            self.assertEqual(len(page.of_class('idle')), 2 * answer['settings']['gpus'], scenario)

    def test_what_is_assumed_stands_on_the_page(self):
        assumed = self.sim('disb-a', '--duration', '0.2')['settings']['assumes']
        self.assertIn('nothing announced', assumed)
        for name in ('sim.json', 'trace.json'):
            self.assertIn(f'. Assumed: {assumed}', self.page(self.path(name)).text)

    def test_the_first_preemption_is_drawn_where_it_was(self):
        self.sim('xsched-pair', '--duration', '1')
        page = self.page(self.path('trace.json'))
        held = [e for e in self.trace()['traceEvents'] if e.get('cat') == 'preemption']
        drawn = [a for a in page.of_class('held') if a['x'].endswith('%')]
        self.assertEqual(len(drawn), min(len(held), 6))
        a, b = [float(d['x'][:-1]) for d in drawn[:2]]
        per_us = (b - a) / (held[1]['ts'] - held[0]['ts'])
        self.assertAlmostEqual(float(drawn[0]['width'][:-1]), held[0]['dur'] * per_us, 1)
        self.assertIn('because of foreground', page.text)

    def test_without_a_preemption_all_of_it_is_drawn(self):
        self.sim('disb-a', '--policy', 'none', '--duration', '0.2')
        page = self.page(self.path('trace.json'))
        self.assertIn('200 ms of 200 ms', page.text)
        self.assertEqual([a for a in page.of_class('held') if a['x'].endswith('%')], [])

    def test_whoever_formats_it_anew_loses_nothing(self):
        self.sim('disb-a', '--duration', '0.2')
        before = self.page(self.path('trace.json'))
        trace = self.trace()
        trace['traceEvents'] = trace.pop('traceEvents')  # now the last key
        with open(self.path('trace.json'), 'w', encoding='utf-8') as f:
            json.dump(trace, f, indent=1)
        self.assertEqual(self.page(self.path('trace.json')).source, before.source)


class Benchmarks(Reports):
    def test_suspends_and_resumes(self):
        answer = self.json_of('bench', '1001', '-n', '50')
        page = self.page(self.file(answer))
        for key in ('suspend_us', 'resume_us', 'total_us', 'snapshot_us'):
            self.assertEqual([float(c) for c in page.table('Suspend and resume')[key]],
                             [answer[key][k] for k in ('min', 'avg', 'p50', 'p99', 'max')])
        self.assertEqual(int(page.table('The run')['run'][5]), answer['saved_bytes'])
        self.assertEqual(len(page.curves()), 3)
        self.assertIn(answer['advice'], page.text)
        self.assertIn('badge modelled', page.source)
        answer['modelled'] = False
        page = self.page(self.file(answer))
        self.assertIn('badge measured', page.source)
        self.assertNotIn('badge modelled', page.source)
        del answer['modelled']
        self.assertIn('does not say', self.page(self.file(answer)).text)

    def test_costs_of_our_own_code(self):
        figures = [{'name': 'a & b', 'value': 1.5, 'limit': 12, 'kept': True, 'kind': 'measured'},
                   {'name': 'c', 'value': 7, 'limit': 5, 'kept': False, 'kind': 'modelled'}]
        page = self.page(self.file({'machine': {'cpus': 2}, 'figures': figures}))
        table = page.table('Costs of our own code')
        self.assertEqual(table, {'a & b': ['1.5', '12', 'yes', 'measured'],
                                 'c': ['7', '5', 'NO', 'modelled']})

    def test_the_benchmark_on_hardware(self):
        path = os.path.join(RESULTS, 'h200.json')
        page = self.page(path)
        with open(path, encoding='utf-8') as f:
            answer = json.load(f)
        told = {}
        for caption, rows in page.tables:
            self.assertTrue(caption.startswith('Latency and goodput: '))
            told.update({k: v for k, v in rows.items() if k != 'alone'})
        self.assertEqual(set(told), {m['key'] for m in answer['modes']})
        for mode in answer['modes']:
            self.assertEqual([float(c) for c in told[mode['key']]],
                             [mode['request_us'][k] for k in ('n', 'min', 'mean', 'p50', 'p99',
                                                              'max')] + [mode['best_effort_pct']])
        self.assertIn('NVIDIA H200', page.text)
        self.assertNotIn('badge modelled', page.source)


class Daemons(Reports):
    def test_holds_are_counted_and_drawn(self):
        page = self.page(self.file(*EVENTS))
        self.assertEqual(page.table('Holds that ended')['holds'],
                         ['2', '10000.250', '10000.250', '30000.500', '30000.500'])
        self.assertEqual(page.table('Jobs, by the events')['70'], ['11', '2', '40.001', '30.000'])
        self.assertEqual(page.table('Events')['held'], ['3'])
        drawn = [a for a in page.of_class('held') if a['x'].endswith('%')]
        self.assertEqual([round(float(a['x'][:-1])) for a in drawn], [20, 40, 80])
        self.assertEqual([round(float(a['width'][:-1])) for a in drawn], [6, 2, 20])
        self.assertIn('badge modelled', page.source)

    def test_a_number_that_comes_again_is_another_job(self):
        page = self.page(self.file(
            *EVENTS[:5], event(300, 'job-went', **job(70, 'train', 'offline')),
            event(400, 'job-came', gpu_id=11, **job(70, 'other', 'online'))))
        self.assertIn('train (70), offline', page.source)
        self.assertIn('other (70), online', page.source)

    def test_statuses_make_a_curve_of_slots(self):
        page = self.page(self.file(status(0, 0, 4), status(100, 2, 4), status(300, 2, 2),
                                   status(400, 0, 0)))
        self.assertEqual(page.table('HQD occupancy')['GPU 11, gfx942'],
                         ['24', '1.500', '3.500', '0.000', '19.000', '6'])
        self.assertEqual(page.table('HQD occupancy')['GPU 12, gfx942'][5], '0')
        self.assertEqual(page.table('How long the daemon takes')['suspend_us'],
                         ['9', '50.5', '70', '71.25'])
        self.assertEqual(page.table('Offline jobs, by the last status')['train'],
                         ['7500.0', '2500.0', '3', '12.5'])
        self.assertIn('75.0 %', page.text)
        self.assertIn('badge measured', page.source)

    def test_events_and_statuses_of_a_file_are_one_recording(self):
        page = self.page(self.file(*EVENTS[:4], status(120, 1, 1), *EVENTS[4:]))
        self.assertIn('9 events and 1 statuses', page.text)
        self.assertIn('1 recording.', page.text)

    def test_a_real_daemon(self):
        import rig
        daemon = rig.Daemon()
        self.addCleanup(daemon.close)
        command = [GPREEMPT, '--socket', daemon.socket]
        recorder = subprocess.Popen(command + ['--json', 'events'], text=True,
                                    stdout=subprocess.PIPE)
        self.addCleanup(recorder.stdout.close)
        lines = [recorder.stdout.readline()]
        jobs = [subprocess.Popen(command + ['run', '--class', shape, '--'] + command +
                                 ['load', f'--{shape}', '--name', shape],
                                 stdout=subprocess.DEVNULL) for shape in ('offline', 'online')]
        for p in jobs + [recorder]:
            self.addCleanup(p.wait)
            self.addCleanup(p.kill)
        while sum(json.loads(line)['event'] == 'let-go' for line in lines) < 3:
            lines.append(recorder.stdout.readline())
            self.assertTrue(lines[-1], 'the daemon ended')
        lines.append(self.ok(run('--socket', daemon.socket, '--json', 'status')))
        page = self.page(self.file(text=''.join(lines)))
        went = [json.loads(line) for line in lines if '"let-go"' in line]
        pid = str(jobs[0].pid)
        self.assertEqual({str(e['pid']) for e in went}, {pid})
        row = page.table('Jobs, by the events')[pid]
        self.assertEqual(row[:2], [str(went[0]['gpu_id']), str(len(went))])
        self.assertAlmostEqual(float(row[2]), sum(e['duration_us'] for e in went) / 1000, 2)
        self.assertIn('What acting on it took is modelled'.lower(), page.text.lower())


class Together(Reports):
    def test_several_recordings_in_one_page_and_one_file(self):
        self.sim('disb-a', '--duration', '0.5')
        bench = self.json_of('bench', '1001', '-n', '5')
        both = self.file(bench, bench, name='two.json')
        page = self.page(self.path('sim.json'), self.path('trace.json'), both,
                         self.file(*EVENTS, name='<events>.json'))
        self.assertIn('5 recordings.', page.text)
        self.assertEqual([a['id'] for t, a in page.tags if t == 'section'],
                         [f'part{i}' for i in range(5)])
        self.assertIn('<events>.json', page.text)

    def test_where_the_page_goes(self):
        bench = self.file(self.json_of('bench', '1001', '-n', '5'))
        whole = self.ok(run('report', bench))
        out = self.path('page.html')
        self.assertIn(out, self.ok(run('report', bench, '-o', out)))
        os.umask(umask := os.umask(0))
        self.assertEqual(os.stat(out).st_mode & 0o777, 0o666 & ~umask)
        with open(out, encoding='utf-8') as f:
            self.assertEqual(f.read(), whole)
        link = self.path('link.html')
        os.symlink('page.html', link)
        answer = json.loads(self.ok(run('--json', 'report', bench, '--output', link)))
        self.assertTrue(os.path.islink(link))
        self.assertEqual(answer, {'report': link, 'bytes': len(whole.encode()), 'recordings': [
            {'file': bench, 'kind': 'suspends and resumes', 'ground': 'modelled'}]})
        self.assertEqual(sorted(os.listdir(self.folder)), ['link.html', 'page.html', 'run.json'])

    def test_a_page_that_cannot_be_written(self):
        bench = self.file(self.json_of('bench', '1001', '-n', '5'))
        for place in ('/dev/full', '/nonexistent/page.html', self.folder):
            self.refused(FAILED, 'report', bench, '-o', place, says=place)
        self.assertEqual(os.listdir(self.folder), ['run.json'])
        self.assertTrue(os.path.exists('/dev/full'))
        self.refused(USAGE, 'report', bench, '-o', '', says='-o')
        self.assertEqual(run('--json', 'report', bench).status, USAGE)


class BadInput(Reports):
    def bad(self, says, *values, text=None, status=USAGE):
        """One line that names the file, and the page that was there stays."""
        path, out = self.file(*values, text=text), self.file(text='before', name='page.html')
        self.refused(status, 'report', path, '-o', out, says=says)
        self.assertIn(path, run('report', path).err.splitlines()[0])
        with open(out, encoding='utf-8') as f:
            self.assertEqual(f.read(), 'before')
        self.assertEqual(sorted(os.listdir(self.folder)), ['page.html', 'run.json'])

    def test_files_that_are_none(self):
        out = ('-o', self.path('page.html'))
        self.refused(FAILED, 'report', '/nonexistent', *out, says='/nonexistent')
        self.refused(FAILED, 'report', self.folder, *out, says=self.folder)
        self.refused(USAGE, 'report', *out, says='usage')
        self.refused(USAGE, 'report', *['/dev/null'] * 65, *out, says='too many')
        self.assertEqual(os.listdir(self.folder), [])

    def test_files_that_hold_something_else(self):
        self.bad('is empty', text='')
        self.bad('is empty', text=' \n\n')
        self.bad('not JSON', text='hello')
        self.bad(':3: it is not JSON', text='\n\n{"a":1,}')
        self.bad('not text', text='{}\0')
        self.bad('in the middle', text='{"rounds":1')
        self.bad('in the middle', text=json.dumps(EVENTS[0]) + '\n' + json.dumps(EVENTS[1])[:-20])
        self.bad('not a recording', {'a': 1})
        self.bad('not a recording', [])
        self.bad('not a recording', 5, text='5 ')
        self.bad('not JSON', text='[' * 1000)
        self.bad('no such process', {'error': {'code': 3, 'message': 'no such process'}})
        self.bad(':2: not a recording', EVENTS[0], {'a': 1})
        self.bad('larger than any', text='"' + 'x' * (9 << 20) + '"')
        with open(self.path('run.json'), 'wb') as f:
            f.truncate((256 << 20) + 1)
        out = ('-o', self.path('page.html'))
        self.refused(USAGE, 'report', self.path('run.json'), *out, says='larger than 256 MiB')
        with open(self.path('run.json'), 'wb') as f:
            f.write(b'{"rounds":1,"suspend_us":{},"advice":"\xff\xfe"}')
        self.refused(USAGE, 'report', self.path('run.json'), *out, says='not JSON')

    def test_traces_that_are_cut_or_odd(self):
        self.sim('disb-a', '--duration', '0.05')
        with open(self.path('trace.json'), encoding='utf-8') as f:
            text = f.read()
        os.unlink(self.path('trace.json'))
        os.unlink(self.path('sim.json'))
        for at in range(1, len(text) - 2, len(text) // 40):
            out = run('report', self.file(text=text[:at]))
            self.assertEqual((out.status, out.out), (USAGE, ''), at)
        self.bad('not JSON', text=text.replace('"ph":"M"', '"ph":M', 1))
        self.bad('not JSON', text=text.rstrip()[:-1] + ',}')
        work = r'"ts":([\d.]+),"dur":([\d.]+),"cat":"work"'
        for odd in (r'"ts":\1,"dur":-\2', r'"ts":"\1","dur":\2', r'"ts":1e30,"dur":\2'):
            self.bad('does not write', text=re.sub(work, odd + ',"cat":"work"', text, count=1))
        self.bad('too many', text=text.replace('"tid":1,', '"tid":99999999,', 1))

    def test_a_trace_so_late_that_steps_of_its_axis_are_too_small_to_add(self):
        self.page(self.file({'traceEvents': [
            {'ph': 'M', 'pid': 1, 'tid': 1, 'name': 'thread_name', 'args': {'name': 'x'}},
            {'ph': 'X', 'pid': 1, 'tid': 1, 'ts': 999999999999999, 'dur': 0.01,
             'cat': 'preemption', 'name': 'held'}]}))

    def test_nothing_that_others_wrote_becomes_markup(self):
        answer = self.sim('disb-a', '--duration', '0.05', trace=False)
        os.unlink(self.path('sim.json'))
        answer.update(title=EVIL, scenario=EVIL, policy=EVIL)
        answer['jobs'][0]['name'] = EVIL
        answer['settings']['chip'] = EVIL
        evil_events = [dict(e, comm=EVIL, **{'class': EVIL}) if 'comm' in e else e
                       for e in EVENTS]
        trace = {'otherData': {'scenario': EVIL, 'policy': EVIL, 'chip': EVIL}, 'traceEvents': [
            {'ph': 'M', 'pid': 1, 'tid': 0, 'name': 'process_name', 'args': {'name': EVIL}},
            {'ph': 'M', 'pid': 1, 'tid': 1, 'name': 'thread_name', 'args': {'name': EVIL}},
            {'ph': 'X', 'pid': 1, 'tid': 1, 'ts': 1, 'dur': 2, 'cat': 'preemption', 'name': 'held',
             'args': {'because': EVIL}}]}
        page = self.page(self.file(answer, name='a'), self.file(*evil_events, name='b'),
                         self.file(trace, name='c'))
        self.assertNotIn('\x1b', page.source)
        self.assertIn('<script>alert(1)</script>"\'&', page.text)

    def test_numbers_beyond_all_bounds(self):
        answer = self.json_of('bench', '1001', '-n', '5')
        text = json.dumps(answer)
        for number in ('1e308', '-1e308', '1e-320', '0', '-5', '9' * 100, '1e999', '0.' + '1' * 50,
                       'NaN', '-Infinity'):
            self.page(self.file(text=re.sub(r'"p99": [\d.]+', f'"p99": {number}', text)))
        self.page(self.file(dict(EVENTS[1], time_ns=2**63 - 1), dict(EVENTS[4], time_ns=0)))
        self.bad('does not write', dict(EVENTS[1], time_ns=2**64))
        self.bad('does not write', dict(EVENTS[1], time_ns=-1))

    def test_fields_of_other_kinds_are_absent_or_refused(self):
        answer = self.sim('disb-a', '--duration', '0.05', trace=False)
        for of in [answer] + list(answer['baselines'].values()):
            of['online']['cdf'] = {'pct': [0, 50, 100], 'us': [1, 2, 3]}
        recordings = [answer, self.json_of('bench', '1001', '-n', '2'), status(0, 1, 1), EVENTS[4]]
        recordings[1].pop('cdf')
        made = 0
        for recording in recordings:
            for n in range(count_values(recording)):
                odd = copy.deepcopy(recording)
                replace_value(odd, n, (None, 'x', [], {}, True, -1, 1e300)[n % 7])
                result = run('report', self.file(odd))
                self.assertIn(result.status, (DONE, USAGE), (n, result.err))
                if result.status == DONE:
                    made += 1
                    self.assertEqual(Page(result.out).wrong, [])
        self.assertGreater(made, 100)


def values_in(value):
    """Where each value is: what holds it, and its key."""
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from values_in(inner)


def count_values(value):
    return len(list(values_in(value)))


def replace_value(value, nth, other):
    holder, key = list(values_in(value))[nth]
    holder[key] = other


if __name__ == '__main__':
    unittest.main()
