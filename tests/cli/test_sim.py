# SPDX-License-Identifier: MIT
"""Simulations from the command line: the answers, their keys, and bad input."""
import json
import os
import re
import subprocess
import tempfile
import unittest

from run import DONE, FAILED, GPREEMPT, USAGE, Case, run

SHORT = ('--duration', '2')
POLICIES = {'none', 'priority', 'share', 'rotate', 'deadline'}
WORKLOADS = {'disb-a', 'disb-b', 'disb-c', 'disb-d', 'disb-e', 'disb-real', 'disb-r', 'disb-y',
             'disb-z', 'xsched-pair', 'reef-kernel-length', 'reef-queue-depth',
             'reef-concurrency', 'gpreempt-preparation', 'gpreempt-rate', 'mix-80-20',
             'offline-60', 'best-effort-4', 'gang-8'}


# What was run on an H200: bench/h200.
H200 = '''[scenario]
title = t
chip = mi300x
duration = 10s
[model matmul]
kernels = 1
kernel = 31.2ms
[model request]
kernels = {kernels}
kernel = 149.5us
[job request]
class = online
model = request
rate = 100/s
[job best-effort]
model = matmul
copies = {jobs}
'''


class Sim(Case):
    def sim(self, *args):
        return json.loads(self.ok(run('--json', 'sim', *args)))

    def scenario(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, 'mine.ini')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        return path


class Answers(Sim):
    def test_keys_that_others_rely_on(self):
        answer = self.sim('disb-a', '--policy', 'priority', '--seed', 1)
        self.assertEqual((answer['scenario'], answer['policy'], answer['seed']),
                         ('disb-a', 'priority', 1))
        self.assertIs(answer['modelled'], True)
        for key in ('requests', 'mean_us', 'p50_us', 'p99_us', 'p999_us', 'alone_mean_us',
                    'alone_p99_us'):
            self.assertGreater(answer['online'][key], 0, key)
        self.assertGreater(answer['offline']['goodput_pct'], 0)
        self.assertGreater(answer['total_throughput_pct'], 0)
        self.assertLessEqual({'none', 'stream_priority', 'sequential'}, set(answer['baselines']))
        self.assertGreater(answer['preemptions']['count'], 0)
        self.assertGreater(answer['preemptions']['latency_us']['p50'], 0)
        self.assertEqual(answer['starved'], 0)
        self.assertIs(answer['overloaded'], True)
        self.assertIn('used_pct', answer['slots'])
        self.assertNotIn('runs', answer)

    def test_figures_agree_with_each_other(self):
        answer = self.sim('disb-c', *SHORT)
        online, none = answer['online'], answer['baselines']['none']
        self.assertAlmostEqual(online['over_alone_pct'],
                               100 * online['mean_us'] / online['alone_mean_us'] - 100, 1)
        self.assertEqual((none['offline']['goodput_pct'], none['total_throughput_pct'],
                          none['total_work_pct']), (100, 100, 100))
        self.assertEqual(answer['baselines']['alone']['offline']['goodput_pct'], 0)
        self.assertEqual(answer['baselines']['alone']['online']['over_alone_pct'], 0)
        self.assertEqual(sum(j['done'] for j in answer['jobs'] if j['class'] == 'online'),
                         online['requests'])
        self.assertLess(online['mean_us'], none['online']['mean_us'])

    def test_two_runs_are_the_same_bytes_and_another_seed_is_not(self):
        for args in (['disb-e', *SHORT], ['--json', 'disb-e', *SHORT], ['gpreempt-rate', *SHORT]):
            first = self.ok(run('sim', *args, '--seed', 7))
            self.assertEqual(first, self.ok(run('sim', *args, '--seed', 7)))
        self.assertNotEqual(self.ok(run('sim', 'disb-e', *SHORT, '--seed', 7)),
                            self.ok(run('sim', 'disb-e', *SHORT, '--seed', 8)))

    def test_list(self):
        answer = self.sim('--list')
        self.assertEqual({p['name'] for p in answer['policies']}, POLICIES)
        self.assertEqual({s['name'] for s in answer['scenarios']}, WORKLOADS)
        text = self.ok(run('sim', '--list'))
        for entry in answer['policies'] + answer['scenarios']:
            self.assertRegex(text, rf'(?m)^  {entry["name"]} ')
            self.assertTrue(entry.get('summary') or entry.get('title'))

    def test_every_scenario_runs_with_every_policy(self):
        for name in WORKLOADS:
            for policy in POLICIES:
                answer = self.sim(name, '--policy', policy, '--duration', '0.3')
                self.assertEqual((answer['scenario'], answer['policy']), (name, policy))

    def test_a_sweep_has_a_run_for_each_value(self):
        answer = self.sim('gpreempt-preparation', *SHORT)
        self.assertEqual([r['value'] for r in answer['runs']],
                         ['submission', '25us', '50us', '100us', '150us', '200us'])
        for run_ in answer['runs']:
            self.assertEqual(run_['key'], 'vgg.announce')
            self.assertLessEqual({'online', 'offline', 'baselines', 'preemptions', 'starved'},
                                 set(run_))
        self.assertEqual([r['jobs'][0]['announce_us'] for r in answer['runs']],
                         [0, 25, 50, 100, 150, 200])
        means = [r['online']['mean_us'] for r in answer['runs']]
        self.assertGreater(means[0], means[-1], 'what is announced earlier is done earlier')
        self.assertIn('vgg.announce', self.ok(run('sim', 'gpreempt-preparation', *SHORT)))

    def test_a_sweep_is_headed_by_the_scenario_as_it_is_written(self):
        path = self.scenario('[scenario]\ntitle = t\nduration = 100ms\n[job a]\nmodel = VGG\n'
                             '[sweep]\nkey = duration\nvalues = 200ms 300ms\n')
        self.assertEqual(self.sim(path)['settings']['duration_s'], 0.1)
        self.assertIn(', 100ms, ', self.ok(run('sim', path)))

    def test_text_says_that_it_is_modelled(self):
        out = self.ok(run('sim', 'disb-a', *SHORT))
        self.assertIn('All figures are modelled', out)
        for row in ('online alone', 'no preemption', 'stream priority', 'sequential',
                    'gpreempt, priority'):
            self.assertRegex(out, rf'(?m)^{row} ')
        self.assertRegex(out, r'overloaded: .* of resnet152\n')
        self.assertTrue(all(len(line) <= 130 for line in out.splitlines()))

    def test_calibration(self):
        answer = self.sim('--calibrate')
        self.assertIs(answer['calibrated'], True)
        for mean in answer['means'].values():
            self.assertLessEqual(mean['factor'], 1.5)
        self.assertEqual([w['scenario'] for w in answer['workloads']],
                         [f'disb-{letter}' for letter in 'abcde'])
        self.assertIn('calibrated: every factor', self.ok(run('sim', '--calibrate')))

    def test_calibration_is_what_the_results_say(self):
        results = os.path.join(os.environ['MAN_PAGES'], '..', 'results')
        out = self.ok(run('--json', 'sim', '--calibrate'))
        with open(os.path.join(results, 'calibration.json'), encoding='utf-8') as f:
            self.assertEqual(f.read(), out)
        with open(os.path.join(results, 'calibration.md'), encoding='utf-8') as f:
            text = f.read()
        rows = re.findall(r'(?m)^(latency|throughput)(.*?) +([\d.]+) % +([\d.]+) % +([\d.]+)$',
                          self.ok(run('sim', '--calibrate')))
        self.assertEqual(len(rows), 4)
        for what, of, *figures in rows:
            row = r'{}{} \| \+?{} % \| \+?{} % \| {} \|'.format(what, of, *figures)
            self.assertRegex(text, row)


class Options(Sim):
    def mean(self, *args):
        return self.sim('disb-a', *SHORT, *args)['online']['mean_us']

    def test_each_has_its_effect(self):
        settings = self.sim('disb-a', '--duration', '500ms', '--costs', 'kfd-stock', '--cycle-us',
                            77, '--save-area', 'host', '--kernel-scale', '2')['settings']
        seen = {key: settings.pop(key) for key in ('detect', 'seen_after_us', 'look_every_us',
                                                   'announce', 'assumes')}
        self.assertEqual(settings, {'chip': 'mi100', 'gpus': 1, 'costs': 'kfd-stock',
                                    'save_area': 'host', 'duration_s': 0.5, 'kernel_scale': 2,
                                    'cycle_us': 77})
        self.assertEqual(list(seen.values()), [
            'watch', 20, 200, 'none', 'costs of kfd-stock; work seen after 20us (watch), its end '
            'by looks every 200us; nothing announced'])
        for when, jobs in (('none', [None, None]), ('submission', [0, None]), ('50us', [50, None])):
            told = self.sim('disb-a', *SHORT, '--announce', when)['jobs']
            self.assertEqual([job.get('announce_us') for job in told], jobs)
        plain = self.mean()
        self.assertLess(self.mean('--costs', 'kfd-extension'), plain)
        self.assertGreater(self.mean('--cycle-us', 500), plain)
        self.assertGreater(self.mean('--save-area', 'host'), plain)
        self.assertGreater(self.mean('--kernel-scale', 2), 1.5 * plain)
        self.assertLess(self.mean('--announce', '100us'), plain)
        self.assertEqual(self.mean('--announce', 'none'), plain)
        self.assertEqual(self.mean('--detect', 'watch'), plain)
        self.assertLess(self.mean('--detect', 'trap'), plain)
        self.assertGreater(self.mean('--detect', 'look:5ms'), plain)

    def test_what_is_assumed_stands_at_the_head(self):
        for args, assumed in ((), 'costs of kfd-stock; work seen after 20us (watch), its end by '
                               'looks every 200us; nothing announced'), \
                (('--detect', 'trap', '--costs', 'kfd-extension', '--announce', 'submission'),
                 'costs of kfd-extension; work seen after 10us (trap), its end by looks every '
                 '200us; announced at submission'), \
                (('--detect', 'look:1ms', '--announce', '100us'),
                 'costs of kfd-stock; work seen by looks every 1ms; announced 100us ahead'), \
                (('--costs', 'nvrm'),
                 'costs of nvrm; work not seen, processes take turns; nothing announced'):
            out = self.ok(run('sim', 'disb-a', *SHORT, *args))
            self.assertIn(f'\nAssumed: {assumed}.\n', out)
            self.assertTrue(all(len(line) <= 150 for line in out.splitlines()))
            settings = self.sim('disb-a', *SHORT, *args)['settings']
            self.assertEqual(settings['assumes'], assumed)
        self.assertEqual((settings['detect'], settings['announce']), ('none', 'none'))
        self.assertNotIn('seen_after_us', settings)
        self.assertNotIn('slots', self.sim('disb-a', *SHORT, '--costs', 'nvrm'))

    def test_a_file_says_what_its_own_programs_announce(self):
        path = self.scenario('[scenario]\ntitle = t\nduration = 1s\ndetect = trap\n[job a]\n'
                             'class = online\nmodel = VGG\nrate = 20/s\nannounce = 50us\n'
                             '[job b]\nclass = online\nmodel = BERT\nrate = 20/s\n')
        answer = self.sim(path)
        self.assertEqual((answer['settings']['detect'], answer['settings']['announce']),
                         ('trap', 'by job'))
        self.assertEqual([j.get('announce_us') for j in answer['jobs']], [50, None])
        answer = self.sim(path, '--announce', 'none', '--detect', 'watch')
        self.assertEqual((answer['settings']['detect'], answer['settings']['announce']),
                         ('watch', 'none'))

    def test_detection_can_be_swept(self):
        path = self.scenario('[scenario]\ntitle = t\nduration = 1s\n[job a]\nclass = online\n'
                             'model = VGG\nrate = 20/s\n[job b]\nmodel = Training\n'
                             '[sweep]\nkey = detect\nvalues = trap watch look:5ms\n')
        runs = self.sim(path)['runs']
        self.assertEqual([r['value'] for r in runs], ['trap', 'watch', 'look:5ms'])
        means = [r['online']['mean_us'] for r in runs]
        self.assertEqual(means, sorted(means))
        self.assertLess(means[0], means[2])

    def test_turns_come_near_what_was_measured(self):
        with open(os.path.join(os.environ['MAN_PAGES'], '..', 'results', 'h200.json'),
                  encoding='utf-8') as f:
            measured = {m['key']: m['request_us'] for m in json.load(f)['modes']}
        for key, jobs, kernels in (('fp32-4', 4, 6), ('fp32-1', 1, 6), ('long-4', 4, 30)):
            answer = self.sim(self.scenario(H200.format(jobs=jobs, kernels=kernels)),
                              '--costs', 'nvrm')
            default = answer['baselines']['none']['online']
            self.assertEqual(answer['policy'], 'rotate')
            self.assert_near(answer['online'], measured[key], 'p50', 'p99')
            # With four the median is a matter of where requests and rounds of slices meet.
            self.assert_near(default, measured[f'{key}-default'],
                             *(['p50', 'p99'] if jobs == 1 else ['p99']))

    def assert_near(self, online, measured, *of):
        for key in of:
            self.assertLess(abs(online[f'{key}_us'] / measured[key] - 1), 0.05, key)

    def test_the_device_is_another_chip(self):
        answer = json.loads(self.ok(run('--device', 'model:mi308x', '--json', 'sim', 'disb-a',
                                        *SHORT)))
        self.assertEqual(answer['settings']['chip'], 'mi308x')
        for device in ('auto', 'model'):
            answer = json.loads(self.ok(run('--device', device, '--json', 'sim', 'disb-a', *SHORT)))
            self.assertEqual(answer['settings']['chip'], 'mi100')
        self.assertEqual(run('--device', 'kfd', 'sim', 'disb-a').status, USAGE)
        self.assertIn('mi300x', run('--device', 'model:x', 'sim', 'disb-a').err)

    def test_a_trace_is_written_and_its_failure_told(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'trace.json')
            self.sim('disb-a', '--duration', '100ms', '--trace', path)
            with open(path, encoding='utf-8') as f:
                self.assertTrue(json.load(f))
        self.refused(FAILED, 'sim', 'disb-a', *SHORT, '--trace', '/nonexistent/x', says='/nonex')
        self.refused(FAILED, 'sim', 'disb-a', *SHORT, '--trace', '/dev/full', says='/dev/full')


class BadInput(Sim):
    def test_unknown_names_get_the_list_of_valid_ones(self):
        error = self.refused(USAGE, 'sim', 'nonsense', says="no scenario 'nonsense'")
        for name in WORKLOADS:
            self.assertIn(name, error['hint'])
        error = self.refused(USAGE, 'sim', 'disb-a', '--policy', 'x', says="no policy 'x'")
        for name in POLICIES:
            self.assertIn(name, error['hint'])
        self.refused(USAGE, 'sim', 'disb-a', '--costs', 'x', says='kfd-extension')
        self.refused(USAGE, 'sim', 'disb-a', '--save-area', 'x', says='hbm, host')

    def test_bad_values(self):
        for args in (['--seed', '-1'], ['--seed', 'x'], ['--seed', 2**64], ['--duration', '0'],
                     ['--duration', 'x'], ['--duration', '9999'], ['--cycle-us', '0'],
                     ['--cycle-us', '5us'], ['--kernel-scale', '0'], ['--kernel-scale', '-1'],
                     ['--announce', 'soon'], ['--announce', '5'], ['--policy', '']):
            self.refused(USAGE, 'sim', 'disb-a', *args, says=args[0])
        self.refused(USAGE, 'sim', says='usage: gpreempt sim')
        self.refused(USAGE, 'sim', 'disb-a', 'disb-b', says='too many')
        self.refused(USAGE, 'sim', '--list', 'disb-a', says='too many')
        self.refused(USAGE, 'sim', '--list', '--policy', 'share', says='--list runs no scenario')
        self.refused(USAGE, 'sim', '--calibrate', '--duration', '1', says='--calibrate runs no')

    def test_line_and_column_of_a_mistake(self):
        path = self.scenario('[scenario]\ntitle = t\n\n[job a]\nmodel = VGG\nrate = 20\n')
        self.refused(USAGE, 'sim', path, says=f'{path}:6:8: ')
        path = self.scenario('[scenario]\ntitle = t\n[job a]\nmodel = GPT\n')
        self.refused(USAGE, 'sim', path, says='there are: VGG, ResNet152')
        self.refused(FAILED, 'sim', '/', says='/: Is a directory')

    def test_extremes(self):
        head = '[scenario]\ntitle = t\nduration = 10ms\n'
        answer = self.sim(self.scenario(head))
        self.assertEqual(answer['online'], {'requests': 0})
        self.assertEqual(answer['offline'], {})
        self.assertNotIn('total_throughput_pct', answer)
        self.ok(run('sim', self.scenario(head)))
        zero = ('[model zero]\nkernels = 1\nkernel = 0us\n[job a]\nclass = online\nmodel = zero\n'
                'arrival = continuous\n[job b]\nmodel = zero\n')
        self.assertGreater(self.sim(self.scenario(head + zero))['online']['requests'], 0)
        many = ('[job a]\nmodel = VGG\ncopies = 9990\n'
                '[job b]\nclass = online\nmodel = VGG\ncopies = 10\n')
        self.assertEqual(len(self.sim(self.scenario(head + many))['jobs']), 2)

    def test_rates_beyond_capacity_are_called_overload(self):
        path = self.scenario('[scenario]\ntitle = t\nduration = 1s\n[job a]\nclass = online\n'
                             'model = VGG\nrate = 100000/s\n')
        answer = self.sim(path)
        self.assertIs(answer['overloaded'], True)
        self.assertGreater(answer['jobs'][0]['backlog'], 90000)
        self.assertRegex(self.ok(run('sim', path)), r'overloaded: .* \d+ of a\n')

    def test_ctrl_c_ends_it(self):
        p = subprocess.Popen([GPREEMPT, 'sim', 'mix-80-20', '--duration', '3600'],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.terminate()
        p.communicate(timeout=60)
        self.assertNotEqual(p.returncode, DONE)


if __name__ == '__main__':
    unittest.main()
