# SPDX-License-Identifier: MIT
"""accept on the software device: the checks, the report, and what leaves none."""
import json
import os
import re
import select
import signal
import subprocess
import tempfile
import unittest

from run import ABSENT, FAILED, GPREEMPT, REFUSED, USAGE, Case, model

NEEDS_MORE_THAN_A_MODEL = {'placement', 'static-queue', 'preemption-timeout', 'holder-killed'}


class Accept(Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder.name)

    def checks(self, *args, **kwargs):
        answer = self.json_of('accept', *args, **kwargs)
        return {c['name']: c for c in answer['checks']}

    def report(self):
        if not os.path.exists('report'):
            return ''
        with open('report') as f:
            return f.read()

    def no_report(self):
        self.assertEqual(os.listdir(), [])


class Report(Accept):
    def test_is_named_and_holds_what_was_shown(self):
        out = self.ok(model('accept', 1001))
        [name] = os.listdir()
        self.assertRegex(name, r'^gpreempt-accept-1001-\d{8}-\d{6}\.txt$')
        self.assertEqual(out.splitlines()[-1], 'the report is in ' + name)
        with open(name) as f:
            report = f.read()
        for line in out.splitlines()[:-1]:
            self.assertIn(line, report)
        self.assertEqual(json.loads(report.splitlines()[-1])['report'], name)

    def test_in_json_is_what_is_printed(self):
        answer = self.json_of('accept', 1001, '-o', 'report')
        self.assertEqual(json.loads(self.report().splitlines()[-1]), answer)
        self.assertIs(answer['complete'], True)
        self.assertEqual(os.listdir(), ['report'])

    def test_says_on_what(self):
        answer = self.json_of('accept', 1001, '-o', 'report', preset='mi300x')
        self.assertEqual(answer['host']['kernel'], os.uname().release)
        self.assertEqual(answer['host']['kfd_version'], '1.17')
        self.assertEqual([g['gfx'] for g in answer['host']['gpus']], ['gfx942'] * 8)
        self.assertTrue(all(g['fw_version'] for g in answer['host']['gpus']))
        self.assertIn('MEC firmware', self.report())

    def test_of_a_model_claims_nothing_of_hardware(self):
        answer = self.json_of('accept', 1001, '-o', 'report')
        self.assertIs(answer['modelled'], True)
        for check in answer['checks']:
            self.assertEqual(check.get('basis'), 'modelled' if 'figure' in check else None)
        self.assertIn('none of a GPU', self.report())
        self.assertNotIn('measured', self.report())

    def test_is_never_written_over(self):
        with open('report', 'w') as f:
            f.write('mine')
        self.refused(FAILED, 'accept', 1001, '-o', 'report', says='File exists')
        os.symlink('elsewhere', 'link')
        self.refused(FAILED, 'accept', 1001, '-o', 'link', says='File exists')
        self.assertEqual(self.report(), 'mine')
        self.assertEqual(sorted(os.listdir()), ['link', 'report'])

    def test_that_cannot_be_written(self):
        self.refused(FAILED, 'accept', 1001, '-o', 'no/such/folder', says='No such file')
        self.refused(FAILED, 'accept', 1001, '-o', '.', says='cannot make the report')
        self.no_report()

    def test_is_not_left_where_nothing_was_checked(self):
        self.refused(ABSENT, 'accept', 999999, says='999999')
        self.refused(ABSENT, 'accept', 1003, says='no queues')
        self.refused(ABSENT, 'accept', 1001, '--online', 999999, says='999999')
        self.refused(REFUSED, 'accept', 1001, preset='mi308x,runtime=old', says='ROCm runtime')
        self.refused(REFUSED, 'accept', 1001, preset='mi308x,kfd_minor=11', says='1.13')
        self.no_report()

    def test_bad_input(self):
        for count in ('0', '-3', 'x', '', '99999999999'):
            self.refused(USAGE, 'accept', 1001, f'-n{count}' if count else '-n')
        self.refused(USAGE, 'accept', 1001, 1002, says='too many')
        self.refused(USAGE, 'accept', 1001, '-o', '', says='-o')
        self.refused(USAGE, 'accept', 1001, '--online', 'x', says="'x'")
        self.refused(USAGE, 'accept', 1001, '--online', 1001, says='another')
        self.refused(USAGE, 'accept', 1001, '--level', 'K1', says='--level')
        self.no_report()

    def test_of_an_interrupted_run_has_what_there_is(self):
        p = subprocess.Popen([GPREEMPT, '--device', 'model', '--json', 'accept', '1001', '-n',
                              '100000', '-o', 'report'], text=True, stdout=subprocess.PIPE)
        while not self.report():
            select.select([p.stdout], [], [], 0.01)
        p.send_signal(signal.SIGINT)
        answer = json.loads(p.communicate(timeout=60)[0])
        self.assertEqual(p.returncode, FAILED)
        self.assertIs(answer['complete'], False)
        self.assertEqual({c['result'] for c in answer['checks'][2:]}, {'skip'})
        self.assertEqual(answer['checks'][-1]['detail'], 'interrupted')

    def test_of_a_killed_run_says_how_far_it_came(self):
        p = subprocess.Popen([GPREEMPT, '--device', 'model', 'accept', '1001', '-n', '100000',
                              '-o', 'report'], stdout=subprocess.DEVNULL)
        while 'suspend ...' not in self.report():
            select.select([], [], [], 0.01)
        p.kill()
        p.wait(timeout=30)
        self.assertNotIn('complete', self.report())


class Checks(Accept):
    def test_each_has_a_result_and_a_reason(self):
        answer = self.json_of('accept', 1001)
        for check in answer['checks']:
            self.assertIn(check['result'], ('pass', 'skip'), check)
            self.assertEqual('figure' in check, check['result'] == 'pass', check)
            self.assertTrue(check['claim'] and check['detail'] and check['unit'], check)

    def test_only_what_needs_more_is_skipped(self):
        checks = self.checks(1001)
        skipped = {name for name, c in checks.items() if c['result'] == 'skip'}
        self.assertEqual(skipped, NEEDS_MORE_THAN_A_MODEL | {'save-cost', 'online', 'crowd'})
        self.assertIn('--online', checks['online']['detail'])
        self.assertIn('queues of 2', checks['crowd']['detail'])

    def test_figures_are_those_of_bench(self):
        checks = self.checks(1001)
        bench = self.json_of('bench', 1001)
        self.assertAlmostEqual(checks['suspend']['figure'], bench['suspend_us']['p50'], delta=1)
        self.assertAlmostEqual(checks['resume']['figure'], bench['resume_us']['p50'], delta=1)
        self.assertAlmostEqual(checks['saved']['figure'], bench['saved_bytes'],
                               delta=bench['saved_bytes'] / 50)

    def test_one_cycle_whatever_the_queues(self):
        self.assertAlmostEqual(self.checks(1001)['queues']['figure'], 1, delta=0.1)

    def test_a_longer_grace_takes_longer(self):
        self.assertGreater(self.checks(1001)['grace']['figure'], 10)

    def test_work_stops_and_goes_on(self):
        checks = self.checks(1001)
        self.assertEqual(checks['stops']['figure'], 0)
        self.assertIn('none of 10 queues', checks['stops']['detail'])
        self.assertGreater(checks['continues']['figure'], 0)

    def test_an_idle_job_proves_nothing(self):
        checks = self.checks(1002)
        for name in ('stops', 'continues', 'saved'):
            self.assertEqual(checks[name]['result'], 'skip', checks[name])

    def test_a_neighbour_is_looked_at(self):
        check = self.checks(1002, '--online', 1001)['online']
        self.assertEqual(check['result'], 'pass', check)
        self.assertTrue(-50 < check['figure'] < 50, check)

    def test_an_idle_neighbour_is_not(self):
        check = self.checks(1001, '--online', 1002)['online']
        self.assertEqual(check['result'], 'skip', check)
        self.assertIn('1002', check['detail'])

    def test_one_round_is_enough_for_most(self):
        checks = self.checks(1001, '-n', 1)
        self.assertEqual(checks['suspend']['result'], 'pass')
        self.assertIn('two rounds', checks['first-suspend']['detail'])

    def test_all_are_in_the_manual(self):
        with open(os.path.join(os.environ['MAN_PAGES'], 'gpreempt-accept.1.scd')) as f:
            page = f.read()
        answer = self.json_of('accept', 1001)
        for check in answer['checks']:
            self.assertIn(f'*{check["name"]}*', page)
        for key in re.findall(r'"([a-z]\w*)":', json.dumps(answer)):
            self.assertIn(f'"{key}"', page)

    def test_a_full_terminal_does_not_cost_the_report(self):
        with open('/dev/full', 'w') as full:
            result = model('accept', 1001, '-o', 'report', stdout=full)
        self.assertEqual(result.status, FAILED)
        self.assertIn('cannot write the output', result.err)
        self.assertIs(json.loads(self.report().splitlines()[-1])['complete'], True)


if __name__ == '__main__':
    unittest.main()
