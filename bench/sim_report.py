# SPDX-License-Identifier: MIT
"""The tables of sim-table as text: the promise beside other assumptions, and the bars."""
import textwrap

import sim_bars
from sim_bars import find, over
from sim_runs import DETECT, DISB, PUBLISHED

PROMISE = ('kfd-stock', 'none', 'watch')
COLUMNS = (  # the head of a column; costs, announced, detect
    ('announced, extension', ('kfd-extension', 'submission', 'trap')),
    ('announced, stock', ('kfd-stock', 'submission', 'watch')),
    ('**unannounced, stock, watch**', PROMISE),
    ('unannounced, extension, trap', ('kfd-extension', 'none', 'trap')),
    ('unannounced, stock, look:5ms', ('kfd-stock', 'none', 'look:5ms')),
)
OTHERS = ('xsched-pair', 'best-effort-4', 'gang-8', 'mix-80-20')
BASELINES = (('none', 'no preemption'), ('stream_priority', 'stream priority'),
             ('sequential', 'sequential'))
SLOTS_BAR = 85.0  # of slots used, percent at least

HEAD = '''<!-- SPDX-License-Identifier: MIT -->
# The field's own workloads, simulated

All figures here are **modelled**: no GPU was involved. Made by

    bench/sim-table build --write docs/results

from what is in [sim.json](sim.json), a row for each run. The same command gives the same bytes.
How near the model comes to what others measured on an MI100 is in [calibration](calibration.md),
which is to be read first. What seeing and acting cost is in `sim/costs.ini`, each number with its
source, or called assumed.

Unless a table says otherwise it is **the promise**: unmodified programs that announce nothing, on
AMD's stock driver. Online work is seen by a watchpoint 20 us after it is submitted, and its end by
looks every 200 us, which is what a tenth of a core buys. "Announced" is at submission, in no time,
and so is its end; the extension takes off only whom it is told, in 97 us instead of 390, and its
trap sees work after 10 us; without either all are looked at every 5 ms.

Latency is that of online requests from submission until done, over the same requests alone on the
GPU. Offline is the work that offline jobs get done, as a share of what they get done without
preemption; requests are those of all jobs, counted the same way.
'''


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def signed(value, digits=1):
    return '-' if value is None else f'{value:+.{digits}f} %'


def percent(value):
    return '-' if value is None else f'{value:.1f} %'


def table(head, lines):
    yield '| ' + ' | '.join(head) + ' |'
    yield '|' + '|'.join(' --- ' if i == 0 else ' ---: ' for i in range(len(head))) + '|'
    for line in lines:
        yield '| ' + ' | '.join(str(cell) for cell in line) + ' |'
    yield ''


def section(title, text):
    yield from (f'## {title}', '', textwrap.fill(text, 100, break_on_hyphens=False), '')


def item(text):
    return textwrap.fill(f'* {text}', 100, subsequent_indent='  ', break_on_hyphens=False)


def rows_of(results, name):
    return [r for r in results if r['table'] == name]


def latency(f, key='mean'):
    return over(f[f'{key}_us'], f[f'alone_{key}_us'])


def baseline(f, key):
    return {**f['baselines'][key], 'alone_mean_us': f['alone_mean_us'],
            'alone_p99_us': f['alone_p99_us']}


# ---- side by side ----

def columns(results, scenario):
    found = [find(results, scenario, *column)['figures'] for _, column in COLUMNS]
    promised = find(results, scenario, *PROMISE)['figures']
    return found + [baseline(promised, key) for key, _ in BASELINES]


def cell(f):
    if f['mean_us'] is None:
        return '-'
    return f'{latency(f):+.1f}, {f["goodput_pct"]:.0f} %'


def side_by_side(results):
    heads = [head for head, _ in COLUMNS] + [name for _, name in BASELINES]
    yield from section('Side by side', (
        'Mean latency over alone in percent, and offline work kept; each scenario with the policy '
        'it names, priority if none. Of the mean of DISB A to E others have measured on an MI100: '
        'GPreempt +10 % at 82.2 % of all requests, REEF +13.2 % at 72.4 %.'))
    yield from table(('', *heads), [(name, *map(cell, columns(results, name)))
                                    for name in (*DISB, *OTHERS, 'offline-60')])
    published = [columns(results, name) for name in PUBLISHED]
    lines = [('mean latency', *(signed(mean(map(latency, of))) for of in zip(*published)))]
    lines += [(text, *(percent(mean(f[key] for f in of)) for of in zip(*published)))
              for key, text in (('requests_pct', 'requests'), ('goodput_pct', 'offline'))]
    yield from table(('DISB A to E', *heads), lines)
    yield from table(('p99 over alone', *heads),
                     [(name, *(signed(latency(f, 'p99')) for f in columns(results, name)))
                      for name in DISB])


def ms(f, key):
    return f'{f[key + "_us"] / 1000:.2f}'


def turns(results):
    ours = find(results, 'best-effort-4', 'nvrm', 'none')['figures']
    none = ours['baselines']['none']
    yield from section('NVIDIA', (
        'Costs of an H200: processes take turns at the GPU, 2.05 ms each and 0.21 ms a change '
        '(measured), also without preemption. As gpreemptd does it there, an only online process '
        'has a slice of 50 ms and what is in its way one of 1 us, so that the GPU changes over by '
        'itself; offline processes are on one at a time, 200 ms each; work is not seen, and what '
        'is announced is held for besides. best-effort-4 was run on an H200 (h200.md): measured '
        'with gpreempt 1.12 ms at the median and 1.15 at the 99th percentile, without 9.64 and '
        f'10.16. Here it is {ms(ours, "p50")} and {ms(ours, "p99")}, and {ms(none, "p50")} and '
        f'{ms(none, "p99")}: a round of four slices and requests every 10 ms nearly keep pace '
        'with each other, so that the median without is a matter of phase.'))
    lines = []
    for name in (*DISB, *OTHERS):
        of = [find(results, name, 'nvrm', announced)['figures']
              for announced in ('submission', 'none')]
        lines.append((name, *map(cell, of), cell(baseline(of[1], 'none')),
                      signed(latency(of[1], 'p99')),
                      signed(latency(baseline(of[1], 'none'), 'p99'))))
    yield from table(('', 'announced', 'unannounced', 'no preemption', 'p99, unannounced',
                      'p99, no preemption'), lines)


# ---- bars ----

def when(announced):
    return {'none': 'unannounced', 'submission': 'announced at submission'}.get(
        announced, f'announced {announced} ahead')


def excess(of, f):
    stream = f['baselines']['stream_priority']
    return ', '.join(f'{key} {ms(f, key)} ms against {ms(stream, key)}'
                     for key in dict.fromkeys(name.split(',')[0] for name in of))


def bars(results):
    yield from section('Bars', (
        'To see work is nearly as good as to be told of it: the mean over alone at most 2 points '
        'more than announced on the stock driver, 1 with the extension and its trap, and at least '
        '90 % of the offline work (85 % for disb-b, where hardly any is left).'))
    by_scenario = {}
    for _, scenario, more, _, kept, _ in sim_bars.sight(results):
        by_scenario.setdefault(scenario, []).extend((f'{more:+.2f}', percent(kept)))
    yield from table(('', 'stock, watch: points', 'offline', 'extension, trap: points', 'offline'),
                     [(name, *cells) for name, cells in by_scenario.items()])
    missed = len(sim_bars.sight_missed(results))
    yield f'{"All kept" if not missed else f"**{missed} missed**"}.'
    yield ''
    all_runs = list(sim_bars.runs(results))
    yield textwrap.fill(
        'No harm: mean and 99th percentile at most 1.01 times no preemption, and not above stream '
        'priority where one suspend costs less than that adds; in all scenarios, each value of '
        f'their sweeps, at the costs of {", ".join(DETECT)}, announced never, at submission and '
        f'100us ahead: {len(all_runs)} runs. Above stream priority, and nowhere above no '
        'preemption:', 100, break_on_hyphens=False)
    yield ''
    by_reason = {}
    for key, of, f in sim_bars.harm(results):
        why = sim_bars.arithmetic(key, f) if key in sim_bars.EXCEPTIONS else '**not explained**'
        by_reason.setdefault((key[:3], why), []).append((key[3], of, f))
    for ((scenario, value, costs), why), found in by_reason.items():
        text = '; '.join(f'{when(announced)} {excess(of, f)}' for announced, of, f in found)
        yield item(f'{scenario}{" " + value if value else ""}, {costs}: {text}. {why}')
    yield ''


# ---- what is lost, and what else matters ----

def limits(results):
    yield from section('What is lost to sharing in time', (
        'While online work has the GPU to itself, offline work stands still, and what it could '
        'have done beside it is lost whatever preemption costs. The limit is the same run with '
        'preemption that takes a microsecond and moves next to nothing, work that is seen at once, '
        'and offline work going on in the instant online work ends.'))
    lines = []
    for r in rows_of(results, 'limits'):
        ours, limit = find(results, r['scenario'], *PROMISE)['figures'], r['figures']
        lines.append((r['scenario'], percent(limit['goodput_pct']), percent(ours['goodput_pct']),
                      percent(limit['requests_pct']), percent(ours['requests_pct'])))
    yield from table(('', 'offline, limit', 'ours', 'requests, limit', 'ours'), lines)


def policies(results):
    yield from section('Policies', 'Mean latency over alone, and offline work kept.')
    found = rows_of(results, 'policies')
    names = list(dict.fromkeys(r['policy'] for r in found))
    of = {(r['scenario'], r['policy']): cell(r['figures']) for r in found}
    yield from table(('', *names), [(scenario, *(of[scenario, name] for name in names))
                                    for scenario in dict.fromkeys(r['scenario'] for r in found)])


def span(values, show):
    values = list(values)
    return f'{show(min(values))} to {show(max(values))}'


def seeds(results):
    found = rows_of(results, 'seeds')
    scenarios = list(dict.fromkeys(r['scenario'] for r in found))
    yield from section('Seeds', (
        f'The same with {len(found) // len(scenarios)} other seeds, which say when requests come. '
        'Periodic ones of one rate come one after the other whatever the seed, as in DISB: only '
        'of disb-e, where they come at random, is this much of a test.'))
    lines = []
    for scenario in scenarios:
        of = [r['figures'] for r in found if r['scenario'] == scenario]
        lines.append((scenario, span(map(latency, of), signed),
                      span((f['goodput_pct'] for f in of), percent),
                      sum(f['starved'] for f in of)))
    yield from table(('', 'mean', 'offline', 'starved'), lines)


def slots(results):
    found = rows_of(results, 'slots')
    used = next(r['slots']['used_pct'] for r in found if r['policy'] == 'priority')
    yield from section('Slots', (
        '60 offline queues a GPU and an online job that must always find a slot. At least '
        f'{SLOTS_BAR:g} % of the slots are to be in use under the policy priority: '
        f'{"kept" if used >= SLOTS_BAR else "**missed**"}.'))
    lines = [(r['policy'], percent(r['slots']['used_pct']),
              f"{r['slots']['online_wait_max_us']:.1f} us", signed(latency(r['figures'])),
              r['figures']['starved']) for r in found]
    yield from table(('', 'slots used', 'longest wait of an online queue for a slot', 'mean',
                      'starved'), lines)


def ranges(results):
    of = {(r['scenario'], *r['settings'].values()): r['figures']
          for r in rows_of(results, 'ranges')}
    scenarios, scales, cycles = (list(dict.fromkeys(key[i] for key in of)) for i in range(3))
    yield from section('Ranges', (
        'What is not known for certain, over its range: how long kernels are, and what a cycle of '
        'the run list takes; mean latency over alone, and offline work kept. Where 100 % are kept '
        'and the latency is that of no preemption, an act would cost more than it gains.'))
    yield from table(('', *(f'cycle {cycle} us' for cycle in cycles)),
                     [(f'{scenario}, kernels x{scale}',
                       *(cell(of[scenario, scale, cycle]) for cycle in cycles))
                      for scenario in scenarios for scale in scales])


SECTIONS = (side_by_side, bars, turns, limits, policies, seeds, slots, ranges)


def report(results):
    parts = [part for make in SECTIONS for part in make(results)]
    return HEAD + '\n' + '\n'.join(parts).rstrip() + '\n'
