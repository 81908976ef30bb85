# SPDX-License-Identifier: MIT
"""From what was measured to figures, and from figures to a verdict. Knows no GPU."""
import math

# What a row of the table has to keep: the 99th percentile over that of the same requests alone, and
# the work of all best-effort jobs in percent of one of them alone. Bar, goal.
ROWS = (
    ('fp32-1', '0.9 ms request, 1 best-effort job', (1.30, 86), (1.23, 88)),
    ('fp32-4', '0.9 ms request, 4 best-effort jobs', (1.30, 86), (1.23, 88)),
    ('fp32-4-hint', '0.9 ms request, 4 best-effort jobs, hint 0.5 ms ahead', (1.08, 82),
     (1.02, 85)),
    ('long-4', '4.4 ms request, 4 best-effort jobs', (1.15, None), (1.08, None)),
    ('torch-1', '0.9 ms request, 1 PyTorch job', (1.55, None), (1.30, None)),
    ('torch-4', '0.9 ms request, 4 PyTorch jobs', (1.80, None), (1.30, None)),
    ('torch-1-hint', '0.9 ms request, 1 PyTorch job, hint', (1.15, None), (1.05, None)),
    ('torch-4-hint', '0.9 ms request, 4 PyTorch jobs, hint', (1.15, None), (1.05, None)),
    ('model-4', 'PyTorch model on the default stream, 4 best-effort jobs', (1.40, None),
     (1.25, None)),
)
REFERENCES = (
    ('fp32-1-default', '1 best-effort job, default time slicing'),
    ('fp32-1-priority', '1 best-effort job, in the same process, by stream priority'),
    ('fp32-1-mps', '1 best-effort job, MPS'),
    ('fp32-4-default', '4 best-effort jobs, default time slicing'),
    ('fp32-4-slices', '4 best-effort jobs, each with a time slice of 1 us'),
    ('fp32-4-hint-early', '4 best-effort jobs, hint 1 ms ahead, input prepared on the GPU'),
    ('long-4-default', '4.4 ms request, 4 best-effort jobs, default time slicing'),
    ('long-4-hint', '4.4 ms request, 4 best-effort jobs, hint 0.5 ms ahead'),
    ('torch-1-default', '1 PyTorch job, default time slicing'),
    ('torch-1-hint-early', '1 PyTorch job, hint 1 ms ahead, input prepared on the GPU'),
    ('torch-4-default', '4 PyTorch jobs, default time slicing'),
    ('model-4-default', 'PyTorch model, 4 best-effort jobs, default time slicing'),
)
RUNS_AGAIN_S = 2.0
MEMORY_BACK_S = 1.0
COST_PCT = 1.0
SUSPENDS = 2000


def percentile(values, percent):
    """The smallest value that is not exceeded by so many of them; None of none."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def summary(values):
    if not values:
        return {'n': 0}
    return {'n': len(values), 'min': min(values), 'p50': percentile(values, 50),
            'p99': percentile(values, 99), 'max': max(values),
            'mean': round(sum(values) / len(values), 1)}


def ratio(value, base, digits=3):
    return round(value / base, digits) if value is not None and base else None


def best_effort_pct(jobs, seconds, alone_per_s):
    """Of one job alone, what all did together."""
    if not jobs or not seconds or not alone_per_s:
        return None
    return round(100 * sum(j['units'] for j in jobs) / seconds / alone_per_s, 1)


def mode_figures(raw, alone, be_per_s):
    """raw: what an online job printed; alone: its requests_us without others."""
    request = summary(raw['request_us'])
    return {
        'request_us': request,
        'late_us': summary(raw['late_us']),
        'ratio_p50': ratio(request.get('p50'), (alone or {}).get('p50')),
        'ratio_p99': ratio(request.get('p99'), (alone or {}).get('p99')),
        'best_effort_pct': best_effort_pct(raw['jobs'], raw['seconds'], be_per_s),
        'seconds': round(raw['seconds'], 3),
        'right': raw['right'],
        'checks': sum(j['checks'] for j in raw['jobs']),
        'wrong': sum(j['wrong'] for j in raw['jobs']),
        'hints_failed': raw['hints_failed'],
        'stolen_s': raw.get('stolen_s'),
        'worst_us': sorted(raw['request_us'])[-12:],
        'units': [j['units'] for j in raw['jobs']],
    }


def mode_of(result, key):
    return next((m for m in result.get('modes', []) if m['key'] == key), None)


def keeps(mode, limits):
    """None: nothing was measured to judge by."""
    most, least = limits
    if mode is None or mode.get('ratio_p99') is None:
        return None
    if least is not None and mode.get('best_effort_pct') is None:
        return None
    return mode['ratio_p99'] <= most and (least is None or mode['best_effort_pct'] >= least)


def word(kept):
    return {None: 'not measured', True: 'kept', False: 'missed'}[kept]


def limits_text(limits):
    most, least = limits
    return f'{most:.2f}×' + (f', {least} %' if least is not None else '')


def ms(us):
    return '-' if us is None else f'{us / 1000:.2f}'


def measured(mode):
    """As cells: p50 and p99 in ms, the ratios of both, best-effort percent."""
    if mode is None:
        return ['-'] * 5
    share = mode.get('best_effort_pct')
    ratios = [mode.get('ratio_p50'), mode.get('ratio_p99')]
    return [ms(mode['request_us'].get('p50')), ms(mode['request_us'].get('p99')),
            *('-' if r is None else f'{r:.2f}×' for r in ratios),
            '-' if share is None else f'{share:.1f} %']


def table_rows(result):
    """(title, bar, goal, p50, p99, ratios, best effort, verdict) of each row that is judged."""
    for key, title, bar, goal in ROWS:
        mode = mode_of(result, key)
        kept = keeps(mode, bar)
        said = word(kept) + (', goal reached' if kept and keeps(mode, goal) else '')
        yield (title, limits_text(bar), limits_text(goal), *measured(mode), said)


def reference_rows(result):
    for key, title in REFERENCES:
        if mode_of(result, key):
            yield (title, *measured(mode_of(result, key)))


def wrong_results(result):
    """Results that were not the same bit for bit, anywhere."""
    return (sum(m['wrong'] + (not m['right']) for m in result.get('modes', [])) +
            sum(f.get('wrong', 0) for f in result.get('faults', [])) +
            sum(f.get('wrong', 0) for f in result.get('latency', [])) +
            (result.get('suspends') or {}).get('wrong', 0))


def others(result):
    """(what, limit, figure, kept) of what is judged beside the table."""
    s, c = result.get('suspends'), result.get('no_contention')
    if s:
        yield ('suspends with results checked bit for bit', f'{SUSPENDS}, 0 wrong',
               f"{s['rounds']}, {s['checks']} checks, {s['wrong']} wrong",
               s['rounds'] >= SUSPENDS and s['wrong'] == 0 and s['checks'] > 0)
    if c:
        yield ('cost without contention', f'{COST_PCT:.0f} %', f"{c['cost_pct']:.2f} %",
               c['cost_pct'] <= COST_PCT)
    for f in result.get('faults', []):
        took = f.get('seconds')
        yield (f['case'], f'{RUNS_AGAIN_S:.0f} s', 'never' if took is None else f'{took:.2f} s',
               took is not None and took <= RUNS_AGAIN_S and not f.get('wrong'))
    m = result.get('memory')
    if m:
        took = m.get('seconds')
        yield ('memory of a held job that was killed is back', f'{MEMORY_BACK_S:.0f} s',
               'never' if took is None else f'{took:.2f} s',
               took is not None and took <= MEMORY_BACK_S)
    for r in result.get('rights', []):
        yield (r['case'], r['expected'], r['got'], r['ok'])
    if result.get('log'):
        new = result['log']['xid_after'] - result['log']['xid_before']
        yield ('Xid in the kernel log', '0', str(new), new == 0)
    yield ('wrong results, anywhere', '0', str(wrong_results(result)), wrong_results(result) == 0)


def text_table(head, rows):
    rows = [tuple(str(c) for c in r) for r in rows]
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    for r in [head, *rows]:
        yield '  '.join(c.ljust(w) for c, w in zip(r, widths)).rstrip()


def text(result):
    """Everything, for a terminal."""
    yield from text_table(('', 'bar', 'goal', 'p50 ms', 'p99 ms', 'p50', 'p99', 'best effort', ''),
                          table_rows(result))
    yield ''
    yield from text_table(('for comparison', 'p50 ms', 'p99 ms', 'p50', 'p99', 'best effort'),
                          reference_rows(result))
    yield ''
    yield from text_table(('latency, us p50 / p99', 'suspend', 'frozen', 'resume', 'running'),
                          latency_rows(result))
    yield ''
    yield from text_table(('', 'limit', 'measured', ''),
                          [(*o[:3], word(o[3])) for o in others(result)])
    yield ''
    for step in result.get('steps', []):
        if not step['ok']:
            yield f"FAILED {step['name']}: {step['error']}"


def latency_rows(result):
    for row in result.get('latency', []):
        cells = [row.get(k) or {} for k in ('suspend_us', 'frozen_us', 'resume_us', 'running_us')]
        yield (row['target'], *(f"{c['p50']:.0f} / {c['p99']:.0f}" if c.get('n') else '-'
                                for c in cells))
