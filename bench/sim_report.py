# SPDX-License-Identifier: MIT
"""The tables of sim-table as text: what is judged, what came out, and where a bar is missed."""

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


def rows_of(results, name):
    return [r for r in results if r['table'] == name]


def announced_at(results, announced):
    return [r for r in rows_of(results, 'announcements') if r['settings']['announce'] == announced]


# ---- bars ----

def missed(r):
    """The bars a run misses, as words."""
    found = []
    limit = LATENCY_BARS.get(r['settings'].get('announce'))
    value = latency(r['figures'])
    if limit is not None and value is not None and value > limit:
        found.append('latency')
    if r['figures']['requests_pct'] < THROUGHPUT_BAR:
        found.append('throughput')
    return found


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
    slots_of = [r for r in rows_of(results, 'slots') if r['policy'] == 'rotate']
    lines.append(('slots used, 60 offline queues a GPU',
                  *bar(slots_of, lambda r: r['figures']['slots_used_pct'], SLOTS_BAR, False)))
    yield '## Bars'
    yield ''
    yield 'DISB A to E, MI100, policy priority, costs of the kernel extension, save area in HBM.'
    yield ''
    yield from table(('', 'bar', 'mean of all', '', 'worst', 'kept by'), lines)


def limits(results):
    yield '## What is lost to sharing in time'
    yield ''
    yield ('While online work has the GPU to itself, offline work stands still, and what it could '
           'have done beside it is lost whatever preemption costs. The limit is the same run with '
           'preemption that takes a microsecond and moves next to nothing, and with offline work '
           'going on in the instant online work ends. Announced at submission.')
    yield ''
    ours = {r['scenario']: r['figures'] for r in announced_at(results, 'submission')}
    lines = []
    for r in rows_of(results, 'limits'):
        f, o = r['figures'], ours[r['scenario']]
        lines.append((r['scenario'], percent(f['requests_pct']), percent(o['requests_pct']),
                      percent(100 * o['requests_pct'] / f['requests_pct']),
                      percent(f['work_pct']), percent(o['work_pct']),
                      percent(100 * o['work_pct'] / f['work_pct'])))
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
    yield '## Policies and baselines'
    yield ''
    yield 'Requests are announced at submission. Full length, seed 1.'
    yield ''
    found = rows_of(results, 'policies')
    for scenario in dict.fromkeys(r['scenario'] for r in found):
        of_it = [r for r in found if r['scenario'] == scenario]
        first = of_it[0]['figures']
        alone = f"alone: mean {first['alone_mean_us']:.0f} us, p99 {first['alone_p99_us']:.0f} us"
        yield f"**{scenario}**, {alone}{', overloaded' if first['overloaded'] else ''}"
        yield ''
        lines = [line(name, first['baselines'][key], first, '') for key, name in BASELINES]
        lines += [line(r['policy'], r['figures'], first, r['figures']['preemptions'])
                  for r in of_it]
        yield from table(('', 'mean', 'p99', *SHARES, 'preemptions'), lines)


def announcements(results):
    yield '## Announcements'
    yield ''
    yield ('A preemption takes from the decision until its victims are off; shown is the mean. An '
           'announced request waits for room as long as the longest at most, less what it was '
           'announced ahead; that is the bound, as a share of the latency alone. One that is not '
           f'announced waits also until somebody looks: {INTERVAL_US / 1000:g} ms at most. The '
           'mean is lower: often nobody has to leave, or part of the GPU is free already.')
    yield ''
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
    yield '## Drivers'
    yield ''
    yield 'The same with what acting costs elsewhere. Announced at submission.'
    yield ''
    lines = []
    for r in rows_of(results, 'costs'):
        f = r['figures']
        lines.append((r['scenario'], r['settings']['costs'], signed(latency(f)),
                      percent(f['requests_pct']), percent(f['work_pct']),
                      percent(f['goodput_pct']), f['preemptions']))
    yield from table(('', 'costs', 'mean', *SHARES, 'preemptions'), lines)


def slots(results):
    yield '## Slots'
    yield ''
    yield '60 offline queues a GPU and an online job that must always find a slot.'
    yield ''
    lines = [(r['policy'], percent(r['figures']['slots_used_pct']),
              f"{r['figures']['slot_wait_max_us']:.1f} us", signed(latency(r['figures'])),
              r['figures']['starved']) for r in rows_of(results, 'slots')]
    yield from table(('', 'slots used', 'longest wait of an online queue for a slot', 'mean',
                      'starved'), lines)


def ranges(results):
    found = rows_of(results, 'ranges')
    of = {(r['scenario'], *r['settings'].values()): r for r in found}
    axes = [list(dict.fromkeys(key[i] for key in of)) for i in range(5)]
    misses = sum(bool(missed(r)) for r in found)
    yield '## Ranges'
    yield ''
    yield ('What is not known for certain, over its range: how long kernels are, what a cycle of '
           'the run list takes, where the save area is. In each cell the mean latency over alone '
           'and the throughput in requests; ! where a bar is missed (latency bars are for '
           f'announced requests). {misses} of {len(found)} cells miss one.')
    yield ''
    for announced in axes[1]:
        for place in axes[2]:
            yield f"**Announced {when(announced)}, save area in {place.replace('hbm', 'HBM')}**"
            yield ''
            lines = [(f'{scenario}, kernels x{scale}',
                      *(cell(of[scenario, announced, place, scale, cycle]) for cycle in axes[4]))
                     for scenario in axes[0] for scale in axes[3]]
            yield from table(('', *(f'cycle {c} us' for c in axes[4])), lines)


def cell(r):
    f = r['figures']
    text = f"{signed(latency(f))}, {f['requests_pct']:.1f} %"
    return text + (' !' if missed(r) else '')


def report(results):
    parts = [part for make in (bars, limits, policies, announcements, costs, slots, ranges)
             for part in make(results)]
    return HEAD + '\n' + '\n'.join(parts).rstrip() + '\n'
