# SPDX-License-Identifier: MIT
"""The tables of sim-table as text: what is judged, what came out, and where a bar is missed."""
import textwrap

BASELINES = (('none', 'no preemption'), ('stream_priority', 'stream priority'),
             ('sequential', 'sequential'))
LATENCY_BARS = {'submission': 5.0, '100us': 2.0}  # mean online latency over alone, percent at most
THROUGHPUT_BAR = 88.0  # of no preemption, percent at least
THROUGHPUTS = (('requests_pct', 'requests'), ('work_pct', 'work'))
SHARES = ('requests', 'work', 'offline goodput')
INTERVAL_US = 5000.0  # between two looks: engine_config_default
SLOTS_BAR = 85.0  # of slots used, percent at least

HEAD = '''<!-- SPDX-License-Identifier: MIT -->
# The field's own workloads, simulated

All figures here are **modelled**: no GPU was involved. Made by

    bench/sim-table build --write docs/results

from what is in [sim.json](sim.json), a row for each run. The same command gives the same bytes.
How near the model comes to what others measured on an MI100 is in [calibration](calibration.md),
which is to be read first.

Latency is that of online requests from submission until done, over the same requests alone on the
GPU. Throughput is what all jobs get done, as a share of what they get done without preemption:
counted in requests, and beside it in work, where a request counts as long as it takes alone. The
two differ where offline requests are the longer ones. Goodput is the work of offline jobs only.
Published on an MI100, of the same workloads: GPreempt +10 % mean latency at 82.2 % throughput,
REEF +13.2 % at 72.4 %.
'''


def over(value, base):
    return 100.0 * (value / base - 1) if value is not None and base else None


def latency(f):
    return over(f['mean_us'], f['alone_mean_us'])


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


def rows_of(results, name):
    return [r for r in results if r['table'] == name]


def announced_at(results, announced):
    return [r for r in rows_of(results, 'announcements') if r['settings']['announce'] == announced]


# ---- bars ----

def missed(r):
    """Whether a run misses the bars of latency and of throughput."""
    limit = LATENCY_BARS.get(r['settings']['announce'])
    return (limit is not None and latency(r['figures']) > limit,
            r['figures']['requests_pct'] < THROUGHPUT_BAR)


def verdict(kept):
    return 'kept' if kept else '**missed**'


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def bar(of, value, limit, at_most):
    """A line: of all workloads together, as such figures are published, and of each."""
    values = [value(r) for r in of]
    kept = [v <= limit if at_most else v >= limit for v in values]
    together = mean(values)
    show = signed if at_most else percent
    worst = max(values) if at_most else min(values)
    return (f"at {'most +' if at_most else 'least '}{limit:g} %", show(together),
            verdict(together <= limit if at_most else together >= limit),
            f'{show(worst)}, {of[values.index(worst)]["scenario"]}', f'{sum(kept)} of {len(kept)}')


def bars(results):
    lines = []
    for announced in ('submission', '100us'):
        of = announced_at(results, announced)
        told = f'announced {when(announced)}'
        lines.append((f'mean latency over alone, {told}',
                      *bar(of, lambda r: latency(r['figures']), LATENCY_BARS[announced], True)))
        for key, name in THROUGHPUTS:
            lines.append((f'throughput in {name}, {told}',
                          *bar(of, lambda r, key=key: r['figures'][key], THROUGHPUT_BAR, False)))
    slots_of = [r for r in rows_of(results, 'slots') if r['policy'] == 'priority']
    lines.append(('slots used, 60 offline queues a GPU',
                  *bar(slots_of, lambda r: r['figures']['slots_used_pct'], SLOTS_BAR, False)))
    yield from section('Bars', (
        'DISB A to E, MI100, policy priority, save area in HBM at the peak speed of HBM, costs of '
        'the kernel extension, which are assumed (sim/costs.ini) and not measured. An announcement '
        'reaches the engine in no time, and the engine decides in none. '
        'What is published is one figure for all workloads, so each is a mean over the five; '
        'beside it the worst of them, and how many keep the bar by themselves.'))
    yield from table(('', 'bar', 'mean of all', '', 'worst', 'kept by'), lines)


def limits(results):
    yield from section('What is lost to sharing in time', (
        'While online work has the GPU to itself, offline work stands still, and what it could '
        'have done beside it is lost whatever preemption costs. The limit is the same run with '
        'preemption that takes a microsecond and moves next to nothing, and with offline work '
        'going on in the instant online work ends. Announced at submission.'))
    ours = {r['scenario']: r['figures'] for r in announced_at(results, 'submission')}
    of = [(r['scenario'], [v for key, _ in THROUGHPUTS
                           for v in (r['figures'][key], ours[r['scenario']][key])])
          for r in rows_of(results, 'limits')]
    of.append(('mean', [mean(column) for column in zip(*(values for _, values in of))]))
    lines = [(name, percent(v[0]), percent(v[1]), percent(100 * v[1] / v[0]), percent(v[2]),
              percent(v[3]), percent(100 * v[3] / v[2])) for name, v in of]
    yield from table(('', 'requests, limit', 'ours', 'of the limit', 'work, limit', 'ours',
                      'of the limit'), lines)


def when(announced):
    return {'none': 'never', 'submission': 'at submission'}.get(announced, f'{announced} ahead')


# ---- tables ----

def line(name, f, alone, preemptions):
    return (name, signed(over(f['mean_us'], alone['alone_mean_us'])),
            signed(over(f['p99_us'], alone['alone_p99_us'])), percent(f['requests_pct']),
            percent(f['work_pct']), percent(f['goodput_pct']), preemptions)


def policies(results):
    yield from section('Policies and baselines',
                       'Requests are announced at submission. Full length, seed 1.')
    found = rows_of(results, 'policies')
    for scenario in dict.fromkeys(r['scenario'] for r in found):
        of_it = [r for r in found if r['scenario'] == scenario]
        first = of_it[0]['figures']
        alone = f"alone: mean {first['alone_mean_us']:.0f} us, p99 {first['alone_p99_us']:.0f} us"
        full = '; without preemption overloaded' if first['baselines']['none']['overloaded'] else ''
        yield f'**{scenario}**, {alone}{full}'
        yield ''
        lines = [line(name, first['baselines'][key], first, '') for key, name in BASELINES]
        lines += [line(r['policy'], r['figures'], first, r['figures']['preemptions'])
                  for r in of_it]
        yield from table(('', 'mean', 'p99', *SHARES, 'preemptions'), lines)


def announcements(results):
    yield from section('Announcements', (
        'A preemption takes from the decision until its victims are off; shown is the mean. An '
        'announced request waits for room as long as the longest at most, less what it was '
        'announced ahead; that is the bound, as a share of the latency alone. One that is not '
        f'announced waits also until somebody looks: {INTERVAL_US / 1000:g} ms at most. The '
        'mean is lower: often nobody has to leave, or part of the GPU is free already.'))
    lines = []
    for r in rows_of(results, 'announcements'):
        f = r['figures']
        late_us = {'none': INTERVAL_US, '100us': -100.0}.get(r['settings']['announce'], 0.0)
        bound = None
        if f['preemption_max_us'] is not None:
            bound = 100.0 * max(0.0, f['preemption_max_us'] + late_us) / f['alone_mean_us']
        took = '-' if bound is None else f"{f['preemption_mean_us']:.1f} us"
        lines.append((r['scenario'], when(r['settings']['announce']), signed(latency(f)),
                      signed(over(f['p99_us'], f['alone_p99_us'])), percent(f['requests_pct']),
                      percent(f['work_pct']), percent(f['goodput_pct']), took, signed(bound)))
    yield from table(('', 'announced', 'mean', 'p99', *SHARES, 'a preemption', 'bound'), lines)


def costs(results):
    yield from section('Drivers',
                       'The same with what acting costs elsewhere. Announced at submission.')
    lines = []
    for r in rows_of(results, 'costs'):
        f = r['figures']
        lines.append((r['scenario'], r['settings']['costs'], signed(latency(f)),
                      percent(f['requests_pct']), percent(f['work_pct']),
                      percent(f['goodput_pct']), f['preemptions']))
    yield from table(('', 'costs', 'mean', *SHARES, 'preemptions'), lines)


def span(values, show):
    values = list(values)
    return f'{show(min(values))} to {show(max(values))}'


def seeds(results):
    found = rows_of(results, 'seeds')
    scenarios = list(dict.fromkeys(r['scenario'] for r in found))
    yield from section('Seeds', (
        f'The same with {len(found) // len(scenarios)} other seeds, which say when requests come. '
        'Periodic ones of one rate come one after the other whatever the seed, as in DISB: only '
        'of disb-e, where they come at random, is this much of a test. Announced at submission.'))
    lines = []
    for scenario in scenarios:
        of = [r['figures'] for r in found if r['scenario'] == scenario]
        lines.append((scenario, span(map(latency, of), signed),
                      *(span((f[key] for f in of), percent) for key, _ in THROUGHPUTS),
                      sum(f['starved'] for f in of)))
    yield from table(('', 'mean', 'requests', 'work', 'starved'), lines)


def slots(results):
    yield from section('Slots',
                       '60 offline queues a GPU and an online job that must always find a slot.')
    lines = [(r['policy'], percent(r['figures']['slots_used_pct']),
              f"{r['figures']['slot_wait_max_us']:.1f} us", signed(latency(r['figures'])),
              r['figures']['starved']) for r in rows_of(results, 'slots')]
    yield from table(('', 'slots used', 'longest wait of an online queue for a slot', 'mean',
                      'starved'), lines)


def ranges(results):
    found = rows_of(results, 'ranges')
    of = {(r['scenario'], *r['settings'].values()): r for r in found}
    axes = [list(dict.fromkeys(key[i] for key in of)) for i in range(5)]
    yield from section('Ranges', (
        'What is not known for certain, over its range: how long kernels are, what a cycle of the '
        'run list takes, where the save area is. In each cell the mean latency over alone and the '
        'throughput in requests; **bold** where a bar is missed. Bars of latency are for announced '
        'requests. Far above the others are two kinds of cells: those where a preemption would '
        'cost more than it gives, so that hardly anybody is preempted, and those where kernels are '
        'so long that online work fills the GPU: as no hold outlasts its bound, both then have it '
        'in turns.'))
    yield from table(('', 'latency', 'bar missed', 'throughput', 'bar missed'),
                     [summary(announced, place, [r for key, r in of.items()
                                                 if key[1:3] == (announced, place)])
                      for announced in axes[1] for place in axes[2]])
    for announced in axes[1]:
        for place in axes[2]:
            yield f"**Announced {when(announced)}, save area in {place.replace('hbm', 'HBM')}**"
            yield ''
            lines = [(f'{scenario}, kernels x{scale}',
                      *(cell(of[scenario, announced, place, scale, cycle]) for cycle in axes[4]))
                     for scenario in axes[0] for scale in axes[3]]
            yield from table(('', *(f'cycle {c} us' for c in axes[4])), lines)


def summary(announced, place, of):
    latencies = [latency(r['figures']) for r in of]
    throughputs = [r['figures']['requests_pct'] for r in of]
    slow, little = (sum(missed(r)[i] for r in of) for i in range(2))
    return (f'{when(announced)}, {place}', span(latencies, signed),
            f'{slow} of {len(of)}' if announced in LATENCY_BARS else '-',
            span(throughputs, percent), f'{little} of {len(of)}')


def cell(r):
    texts = signed(latency(r['figures'])), percent(r['figures']['requests_pct'])
    return ', '.join(f'**{t}**' if bad else t for t, bad in zip(texts, missed(r)))


SECTIONS = (bars, limits, policies, announcements, costs, seeds, slots, ranges)


def report(results):
    parts = [part for make in SECTIONS for part in make(results)]
    return HEAD + '\n' + '\n'.join(parts).rstrip() + '\n'
