# SPDX-License-Identifier: MIT
"""What bench/sim-table runs, under which assumptions, and what it keeps of the answers."""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
from itertools import product

SCENARIOS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../sim/scenarios')
SEED = 1
MORE_SEEDS = range(2, 12)
DISB = ('disb-a', 'disb-b', 'disb-c', 'disb-d', 'disb-e', 'disb-real', 'disb-r', 'disb-y',
        'disb-z')
PUBLISHED = DISB[:5]  # others have measured these
POLICIES = ('none', 'priority', 'share', 'rotate', 'deadline')
ANNOUNCED = ('none', 'submission', '100us')
DETECT = {'kfd-stock': 'watch', 'kfd-extension': 'trap', 'nvrm': 'watch'}
BASELINES = ('none', 'stream_priority', 'sequential')
KERNEL_SCALES = ('0.5', '1', '2')
CYCLES_US = ('20', '50', '100', '200', '500')
# What nobody can do better who gives the GPU to online work alone while there is some.
FREE = '''
[policy]
linger = 0us
[detection]
watch = 0us
look = 1us
look-share = 100 %
look-least = 1us
[costs free]
call = 0us
cycle = 1us
trap = 0us
save = 1MiB
counts-progress = yes
'''


def scenarios():
    return sorted(name.removesuffix('.ini') for name in os.listdir(SCENARIOS))


def row(table, scenario, **settings):
    return {'table': table, 'scenario': scenario, 'seed': SEED,
            'settings': {key.replace('_', '-'): value for key, value in settings.items()}}


def all_rows():
    """Every scenario at all costs, announced or not: what the bars are about."""
    for scenario, costs, announced in product(scenarios(), DETECT, ANNOUNCED):
        yield row('all', scenario, costs=costs, detect=DETECT[costs], announce=announced)


def rows():
    yield from all_rows()
    for scenario in scenarios():
        yield row('all', scenario, costs='kfd-stock', detect='look:5ms', announce='none')
    for scenario, policy in product(DISB, POLICIES):
        yield row('policies', scenario, policy=policy)
    for scenario in PUBLISHED:
        yield {**row('limits', scenario, costs='free'), 'adds': FREE}
    for scenario, seed in product(PUBLISHED, MORE_SEEDS):
        yield {**row('seeds', scenario), 'seed': seed}
    for policy in POLICIES:
        yield row('slots', 'offline-60', policy=policy)
    for scenario, scale, cycle in product(PUBLISHED, KERNEL_SCALES, CYCLES_US):
        yield row('ranges', scenario, kernel_scale=scale, cycle_us=cycle)


def command(r, scenario=None):
    settings = [text for key, value in r['settings'].items() for text in (f'--{key}', value)]
    return ['sim', scenario or r['scenario'], '--seed', str(r['seed']), *settings]


def shares(of):
    online = of['online']
    return {'mean_us': online.get('mean_us'), 'p50_us': online.get('p50_us'),
            'p99_us': online.get('p99_us'),
            'requests_pct': of.get('total_throughput_pct'), 'work_pct': of.get('total_work_pct'),
            'goodput_pct': of['offline'].get('goodput_pct')}


def figures(result):
    """What the tables need of a run."""
    held = result['preemptions']
    return {**shares(result), 'alone_mean_us': result['online'].get('alone_mean_us'),
            'alone_p99_us': result['online'].get('alone_p99_us'),
            'requests': result['online']['requests'],
            'suspend_us': held['suspend_us'], 'preemptions': held['count'],
            'starved': result['starved'],
            'baselines': {key: shares(result['baselines'][key]) for key in BASELINES}}


def short_figures(result):
    """The same of one value of a sweep: what the bars need."""
    found = figures(result)
    kept = ('mean_us', 'p99_us', 'alone_mean_us', 'alone_p99_us', 'requests', 'suspend_us')
    return {**{key: found[key] for key in kept},
            'baselines': {name: {key: found['baselines'][name][key] for key in kept[:2]}
                          for name in BASELINES[:2]}}


def answer(result, table):
    found = {'policy': result['policy'], 'figures': figures(result)}
    if table == 'slots':
        found['slots'] = result['slots']
    if table == 'all' and 'runs' in result:
        found['runs'] = [{'value': r['value'], 'figures': short_figures(r)}
                         for r in result['runs']]
    return found


def run(build, r):
    """One row. What it adds to a scenario makes a file of its own."""
    if 'adds' not in r:
        return run_scenario(build, r, r['scenario'])
    with open(os.path.join(SCENARIOS, r['scenario'] + '.ini'), encoding='utf-8') as f:
        text = f.read()
    with tempfile.NamedTemporaryFile('w', suffix='.ini', encoding='utf-8') as f:
        f.write(text + r['adds'])
        f.flush()
        return run_scenario(build, r, f.name)


def run_scenario(build, r, scenario):
    args = [os.path.join(build, 'cmd/gpreempt/gpreempt'), '--json', *command(r, scenario)]
    done = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode:
        sys.exit(f"sim-table: gpreempt {' '.join(args[1:])}: {done.stdout}")
    return {**r, **answer(json.loads(done.stdout), r['table'])}


def run_all(build, wanted):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda r: run(build, r), wanted))
