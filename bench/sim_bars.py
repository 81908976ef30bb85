# SPDX-License-Identifier: MIT
"""
The bars of the simulator: that to see work costs little more than to be told of it, and that
nothing done for online work leaves it worse off than nothing done, or than stream priority where
one suspend costs less than that adds. What does not keep them is listed, with its arithmetic.
"""
from sim_runs import DETECT, DISB

# Of the mean over alone, points more than announced at submission; of offline work, percent of
# what is kept then.
SIGHT = {'kfd-stock': 2.0, 'kfd-extension': 1.0}
OFFLINE = {'disb-b': 85.0}
OFFLINE_ELSE = 90.0
NO_HARM = 1.01  # times no preemption

TURNS = ('Five online processes: none gets a long slice, and at the end of each of 2.05 ms the '
         'offline one is let in for a microsecond, two changes of 0.21 ms, a fifth of the time. As '
         'they come one right behind the other, what one loses makes it meet the next.')
ALONE = ('Stream priority is for streams of one process, which share the GPU at once; where two '
         'online processes take turns, 1 % of requests take {alone_p99} ms with no offline work at '
         'all.')
NAMED = ('The scenario names the policy priority, so that offline processes are on together, with '
         'slices of their own, and work that is not announced is not seen: it waits for 20 slices '
         'of 2.05 ms and as many changes of 0.21, 22.6 ms on average.')

# By scenario, value of a sweep, costs and announcement: what is exceeded, and why.
EXCEPTIONS = {
    ('disb-d', '', 'nvrm', 'none'): (('mean, stream priority', 'p99, stream priority'), TURNS),
    ('mix-80-20', '', 'nvrm', 'none'): (('p99, stream priority',), ALONE),
    ('mix-80-20', '', 'nvrm', 'submission'): (('p99, stream priority',), ALONE),
    ('mix-80-20', '', 'nvrm', '100us'): (('p99, stream priority',), ALONE),
    ('offline-60', '', 'nvrm', 'none'): (('mean, stream priority', 'p99, stream priority'), NAMED),
}


def over(value, base):
    return 100.0 * (value / base - 1) if value is not None and base else None


def find(results, scenario, costs, announced, detect=None):
    """The one run of a scenario under these assumptions."""
    wanted = {'costs': costs, 'announce': announced, 'detect': detect or DETECT[costs]}
    return next(r for r in results if r['table'] == 'all' and r['scenario'] == scenario and
                r['settings'] == wanted)


# ---- to see is nearly as good as to be told ----

def sight(results):
    """Of each workload: costs, scenario, points more, percent of offline work, and the bars."""
    for costs, points in SIGHT.items():
        for scenario in DISB:
            seen = find(results, scenario, costs, 'none')['figures']
            told = find(results, scenario, costs, 'submission')['figures']
            more = over(seen['mean_us'], seen['alone_mean_us']) - \
                over(told['mean_us'], told['alone_mean_us'])
            kept = 100.0 * seen['goodput_pct'] / told['goodput_pct']
            yield costs, scenario, more, points, kept, OFFLINE.get(scenario, OFFLINE_ELSE)


def sight_missed(results):
    return [(costs, scenario, more, kept) for costs, scenario, more, points, kept, least
            in sight(results) if more > points or kept < least]


# ---- no harm ----

def exceeded(f):
    """Which of the bars a run does not keep."""
    none, stream = f['baselines']['none'], f['baselines']['stream_priority']
    found = [f'{key}, no preemption' for key in ('mean', 'p99')
             if f[f'{key}_us'] > NO_HARM * none[f'{key}_us']]
    if f['suspend_us'] < stream['mean_us'] - f['alone_mean_us']:
        found += [f'{key}, stream priority' for key in ('mean', 'p99')
                  if f[f'{key}_us'] > stream[f'{key}_us']]
    return tuple(found)


def runs(results):
    """All that is held against it: each scenario as it is written, and each value of its sweep."""
    for r in results:
        s = r['settings']
        if r['table'] != 'all' or s['detect'] != DETECT[s['costs']]:
            continue
        for run in [{'value': '', 'figures': r['figures']}, *r.get('runs', [])]:
            if run['figures']['requests']:
                yield (r['scenario'], run['value'], s['costs'], s['announce']), run['figures']


def harm(results):
    """What exceeds a bar: where, by how much, and what is known of it."""
    for key, f in runs(results):
        of = exceeded(f)
        if of:
            yield key, of, f


def harm_unknown(results):
    """What is not listed, and what is listed and not so."""
    found = {key: of for key, of, _ in harm(results)}
    known = {key: of for key, (of, _) in EXCEPTIONS.items()}
    return sorted(key for key in found.keys() | known.keys() if found.get(key) != known.get(key))


def arithmetic(key, f):
    figures = {name: f'{f[name + "_us"] / 1000:.1f}' for name in ('alone_mean', 'alone_p99')}
    return EXCEPTIONS[key][1].format(**figures)
