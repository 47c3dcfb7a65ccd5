"""What does `tune -- PROGRAM` gain on programs that nobody here wrote? Each runs as it is, is tuned inside itself, and runs
with its winners; what it prints is compared.

    python3 bench/foreign/inplace.py --sum OUT.json        # the sums of a file anew
    python3 bench/foreign/inplace.py FOREIGN TOOL OUT.json [--only TEXT] [--seconds S] [--budget S] [--rounds N] [--python | --examples]
        [--into EARLIER.json]
    python3 bench/foreign/inplace.py FOREIGN TOOL OUT.json --only TEXT --exhaustive [--space AXES] [--points N]

FOREIGN holds the repositories that programs.py names (with `--python` nothing: python_programs.py has those; nor with `--examples`:
our own kernels as own_kernels.py runs them), TOOL is a folder with `warpwright` and `libwarpwright_in*.so`.
Programs run one at a time on each GPU. A program's figure is the time of its kernels as it is over that with the winners,
by the shares of its own trace; kernels without a winner count as they are. Beside it stands what was measured: the GPU time of
all launches of whole runs, as they are and with the winners, in turns, both below `trace`; `slower_than_1%` lists who lost by it.
On the program with most launches a second `with` is timed by the clock, with an empty store and with its own. All programs
are in the file, those without gain and those that do not build as well; of theirs only names and numbers.

With `--exhaustive` every point of the search's space is timed instead (`tune --exhaustive`), and `warpwright-fits`, if it is in
TOOL, says what share of the gain the search finds.
"""
import argparse
import concurrent.futures
import glob
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from collect import Campaign, text_of  # noqa: E402
from programs import PROGRAMS, split  # noqa: E402
import own_kernels  # noqa: E402
import python_programs  # noqa: E402

# PTX beside the code: what most build systems leave in a program.
CODE = '-gencode arch=compute_90,code=[compute_90,sm_90]'
NO_TIME = 'no time was left'
NUMBER = re.compile(r'\d+(?:\.\d+)?(?:[eE][+-]?\d+)?')


def differs(plain, others):
    """Lines of the runs as they are that both print alike, and another run prints otherwise."""
    first, second = (text.splitlines() for text in plain)
    steady = [a for a, b in zip(first, second) if a == b]
    found = []
    for text in others:
        lines = set(text.splitlines())
        found += [line for line in steady if line not in lines]
    return len(found)


# What a pass changes, for the table by class.
CLASSES = {'reshape': 'shape', 'specialize': 'constants', 'unroll': 'unrolling', 'cache': 'cache hints', 'maxnreg': 'registers',
           'usage-level': 'registers', 'promote': 'kept in registers', 'schedule': 'order', 'vectorize': 'vectors', 'rename': 'name',
           'throttle': 'throttling', 'spill-to-shared': 'spills', 'smem-spilling': 'spills', 'demote': 'spills'}
KNOBS, ALL = 'registers', 'all'


def by_class(builds):
    """The least time over the original's by class of change: builds that change nothing else, and all of them. Of builds
    that were timed at a second launch its time counts, since they were chosen by the first."""
    best = {KNOBS: 1.0, ALL: 1.0}
    for build in builds:
        ratio = build['ratios'][1] or build['ratios'][0]
        if build['outcome'] != 'same' or not ratio:
            continue
        names = {CLASSES.get(step.split('(')[0].strip(), 'other') for step in build['recipe'].split(';')}
        for name in [ALL, *(names if len(names) == 1 else [])]:
            best[name] = min(best.get(name, 1.0), ratio)
    return {name: round(ratio, 4) for name, ratio in sorted(best.items())}


def table(rows):
    """By class of change: the original's time over the best's, as geometric mean over kernels of at least 5% of a program."""
    kernels = [k['by_class'] for row in rows for k in row.get('kernels', ()) if k['share'] >= 0.05 and k['by_class']]
    found = {}
    for name in sorted({name for kernel in kernels for name in kernel}):
        gains = [1.0 / kernel.get(name, 1.0) for kernel in kernels]
        found[name] = {'mean': round(math.exp(sum(map(math.log, gains)) / len(gains)), 4), 'best': round(max(gains), 3),
                       'from_2%': sum(g >= 1.02 for g in gains), 'from_10%': sum(g >= 1.1 for g in gains)}
    return {'kernels': len(kernels), 'classes': found}


def summary(rows):
    """Gains by geometric mean: all programs, the quarter with most to gain, each suite."""
    def mean(gains):
        gains = list(gains)
        return {'programs': len(gains), 'mean': round(math.exp(sum(map(math.log, gains)) / len(gains)), 4)} if gains else None

    def by_suite(gains):
        suites = {}
        for name, gain in gains.items():
            suites.setdefault(re.split('[/-]', name)[0], []).append(gain)
        return {name: mean(suites[name]) for name in sorted(suites)}
    gains = {row['program']: row['gain'] for row in rows if 'gain' in row}
    ordered = sorted(gains.values(), reverse=True)
    measured = {row['program']: row['gpu_time'] for row in rows if row.get('gpu_time')}
    whole = {name: 1 / gpu['ratio'] for name, gpu in measured.items()}
    return {'programs': len(gains), 'geometric_mean': (mean(ordered) or {}).get('mean'), 'slowest': min(ordered, default=None),
            'best_quarter': mean(ordered[:len(ordered) // 4]), 'suites': by_suite(gains),
            'gpu_time': mean(whole.values()), 'gpu_time_best_quarter': mean(sorted(whole.values(), reverse=True)[:len(whole) // 4]),
            'gpu_time_suites': by_suite(whole),
            'surely_slower_than_1%': [name for name, gpu in sorted(measured.items()) if gpu['low'] > 1.01],
            'slower_than_1%': [{'program': name, **{key: gpu[key] for key in ('ratio', 'low', 'high')}}
                               for name, gpu in sorted(measured.items()) if gpu['ratio'] > 1.01],
            'search': found_share(rows), 'by_class': table(rows)}


def found_share(rows):
    """What the search finds of the logarithm of an exhaustive search's gain, over kernels with a gain."""
    kernels = [kernel for row in rows for kernel in row.get('search', ()) if kernel['share'] is not None]
    if not kernels:
        return None
    found, possible = (sum(math.log(kernel[name]) for kernel in kernels) for name in ('search', 'exhaustive'))
    return {'programs': sum(any(k['share'] is not None for k in row.get('search', ())) for row in rows), 'kernels': len(kernels),
            'share': round(found / possible, 4), 'by_kernel': round(sum(k['share'] for k in kernels) / len(kernels), 4)}


def middle(values):
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def interval(ratios):
    """The narrowest pair of ranks between which the true median lies with 93% or more (the sign test; the least and the
    greatest where there are at most seven)."""
    ordered, count = sorted(ratios), len(ratios)
    tail, rank = 0.5 ** count, 0
    while rank + 1 < count / 2:
        wider = tail + math.comb(count, rank + 1) * 0.5 ** count
        if 2 * wider > 0.07:
            break
        tail, rank = wider, rank + 1
    return ordered[rank], ordered[-1 - rank]


def beside(plain, other):
    """Two series that were measured in turns: the median of the ratios pair by pair, and an interval that holds the true one."""
    ratios = [b / a for a, b in zip(plain, other)]
    low, high = interval(ratios)
    return {'plain': round(middle(plain), 6), 'with': round(middle(other), 6), 'ratio': round(middle(ratios), 4),
            'low': round(low, 4), 'high': round(high, 4), 'rounds': len(ratios)}


def is_settled(found):
    """Is the median known to half a percent? Asked of either side alike, so that no luck is kept and none is measured again."""
    low, high = interval([b / a for a, b in zip(*found)])
    return high - low < 0.01


def in_turns(rounds, first, second, patience=0.0):
    """What both give, in turns; nothing where one of them fails. Goes on until the median of the ratios is settled, for so many
    seconds and five times the rounds at most."""
    found, begun = [[], []], time.monotonic()
    for turn in range(5 * rounds):
        if turn >= rounds and (is_settled(found) or time.monotonic() - begun > patience):
            break
        for which in ((0, 1) if turn % 2 == 0 else (1, 0)):
            value = (first, second)[which]()
            if not value:
                return None
            found[which].append(value)
    return found


def joined(rows, earlier):
    """A run's rows, and an earlier one's of the programs that it did not come to."""
    found = {row['program']: row for row in [*earlier, *rows] if row.get('why') != NO_TIME}
    return [*found.values(), *(row for row in rows if row['program'] not in found)]


class Script:
    """A program in Python: there is nothing to build."""

    def __init__(self, name):
        self.name, self.split = name, split(name)
        self.words = [sys.executable, os.path.abspath(python_programs.__file__), name]

    def make(self, campaign):
        os.makedirs(f'{campaign.work}/{self.name}', exist_ok=True)
        return campaign.work, self.words, None


class OwnKernel:
    """A kernel of examples/, launched by own_kernels.py."""

    def __init__(self, name):
        self.kernel, self.name, self.split = name, f'examples/{name}', 'own'

    def make(self, campaign):
        folder = f'{campaign.work}/{self.name}'
        os.makedirs(folder, exist_ok=True)
        why = own_kernels.make(self.kernel, campaign.tool, folder, CODE.split())
        return folder, [sys.executable, os.path.abspath(own_kernels.__file__), folder], why


class InPlace(Campaign):
    def __init__(self, options):
        options.out, self.path, options.runs = options.out + '.work', options.out, 1
        super().__init__(options)
        self.tool, self.budget = os.path.abspath(options.tool), options.budget
        self.patience, self.rounds, self.settling = options.patience, options.rounds, options.settling
        self.exhaustive = options.exhaustive and ['--exhaustive', '--points', str(options.points),
                                                  *(['--space', options.space] if options.space else [])]
        self.rows, self.made, self.overhead, self.earlier = [], {}, None, []
        if options.into:
            with open(options.into) as file:
                self.earlier = json.load(file)['rows']

    def make(self, program):
        if hasattr(program, 'make'):
            return program, *program.make(self)
        try:
            root, copy = self.prepare(program)
        except OSError as error:
            return program, None, None, str(error)
        exe = f'{self.work}/{program.name}/program'
        sources = ' '.join(sorted(f for s in program.sources for f in glob.glob(f'{copy}/{s}')))
        done = text_of(f'nvcc -O3 {CODE} -w {program.flags.format(root=root)} {sources} -o {exe}', cwd=copy)
        why = None if done.returncode == 0 else 'does not build with this nvcc'
        if why:
            print(f'{program.name}: {done.stderr[-300:]}', file=sys.stderr, flush=True)
        return program, copy, [exe, *program.args.split()], why

    def sh(self, words, copy, gpu):
        """Output, standard error, exit code, seconds."""
        environment = {**os.environ, 'CUDA_VISIBLE_DEVICES': str(gpu)}
        begun = time.monotonic()
        child = subprocess.Popen(words, cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 errors='replace', start_new_session=True)
        try:
            out, err = child.communicate(timeout=self.patience)
            return out, err, child.returncode, time.monotonic() - begun
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            return '', f'takes over {self.patience:.0f} s', 124, time.monotonic() - begun

    def gpu_seconds(self, words, place, copy, gpu):
        """Of all launches of a run, and how many there were; nothing where it fails."""
        path = f'{place}/trace.json'
        run = self.sh([f'{self.tool}/warpwright', 'trace', '-o', path, '--', *words], copy, gpu)
        if run[2] == 124 or not os.path.exists(path):
            return None
        with open(path) as file:
            launches = json.load(file)['launches']
        os.remove(path)
        return sum(launch['gpu_ns'] for launch in launches) * 1e-9, sum(l['launches'] + l['in_graphs'] for l in launches)

    def measured(self, own, db, place, copy, gpu):
        """GPU time of whole runs, as they are and with the winners, and launches of one."""
        counts = []
        if not self.rounds:
            return None, 0

        def seconds(words):
            found = self.gpu_seconds(words, place, copy, gpu)
            counts.extend(found[1:] if found else ())
            return found and found[0]
        winners = [f'{self.tool}/warpwright', 'with', '--db', db, '--', *own]
        found = in_turns(self.rounds, lambda: seconds(own), lambda: seconds(winners), self.settling)
        return (found and beside(*found)), max(counts, default=0)

    def clocked(self, row, rounds=9):
        """What `with` costs a program in seconds by the clock: with an empty store, and with its own."""
        copy, own, gpu = self.made[row['program']]
        place = f"{self.work}/{row['program']}"

        def seconds(words):
            run = self.sh(words, copy, gpu)
            return run[3] if run[2] != 124 else None

        def by(db):
            winners = [f'{self.tool}/warpwright', 'with', '--db', db, '--', *own]
            found = in_turns(rounds, lambda: seconds(own), lambda: seconds(winners), 3 * self.settling)
            return found and beside(*found)
        seconds(own)
        empty = f'{place}/empty'
        os.makedirs(empty, exist_ok=True)
        return {'program': row['program'], 'launches': row['launches'], 'empty_store': by(empty), 'own_store': by(f'{place}/db')}

    def search(self, program, copy, own, gpu):
        """Every point of the space of the hot kernels, and what the search finds of them."""
        place = f'{self.work}/{program.name}'
        row, kept = {'program': program.name, 'split': program.split}, f'{place}/builds.json'
        tune = self.sh([f'{self.tool}/warpwright', 'tune', *self.exhaustive, '--db', f'{place}/db', '--keep', kept, '--without-names',
                        '--report-to', f'{place}/report.json', '--', *own], copy, gpu)
        row['tune_s'] = round(tune[3], 3)
        if not os.path.exists(kept):
            return {**row, 'why': (tune[1].strip().splitlines() or ['nothing was kept'])[-1]}
        fits = f'{self.tool}/warpwright-fits'
        if not os.path.exists(fits):
            return {**row, 'why': 'there is no warpwright-fits'}
        told = subprocess.run([fits, 'search', '--json', kept], capture_output=True, text=True)
        if told.returncode:
            return {**row, 'why': told.stderr.strip()}
        kernels = json.loads(told.stdout)['kernels']
        row['search'] = [{name: value for name, value in kernel.items() if name not in ('file', 'kernel')} for kernel in kernels]
        return row

    def one(self, program, copy, own, gpu):
        if self.exhaustive:
            return self.search(program, copy, own, gpu)
        self.made[program.name] = copy, own, gpu
        warpwright, place = f'{self.tool}/warpwright', f'{self.work}/{program.name}'
        report, kept, db = f'{place}/report.json', f'{place}/builds.json', f'{place}/db'
        row = {'program': program.name, 'split': program.split}
        plain = [self.sh(own, copy, gpu)]
        if plain[0][2] == 124:
            return {**row, 'why': plain[0][1]}
        tune = self.sh([warpwright, 'tune', '--db', db, '--report-to', report, '--keep', f'{place}/builds.json', '--without-names',
                        '--budget', str(self.budget), '--', *own],
                       copy, gpu)
        row['tune_s'] = round(tune[3], 3)
        winners = self.sh([warpwright, 'with', '--db', db, '--', *own], copy, gpu)
        row['with_s'] = round(winners[3], 3)
        # At another time: many programs seed their random numbers with it.
        plain.append(self.sh(own, copy, gpu))
        row['plain_s'] = round(min(run[3] for run in plain), 3)
        codes = [run[2] for run in (*plain, tune, winners)]
        row['exit_codes'] = codes
        row['lines_that_differ'] = differs([run[0] for run in plain], [tune[0], winners[0]])
        if not os.path.exists(report) or not os.path.exists(kept):
            row['why'] = (tune[1].strip().splitlines() or ['no report'])[-1]
            return row
        with open(report) as file:
            kernels = json.load(file)['kernels']
        with open(kept) as file:
            builds = [kernel['builds'] for kernel in json.load(file)['kernels']]
        names = {k['name']: f'k{n}' for n, k in enumerate(kernels)}
        row['kernels'] = [{
            'share': round(k['share'], 4), 'versions': k['candidates'], 'winner': k['winner'], 'in_program': k['in_program'],
            'alone': k['original_ns'] / k['winner_ns'] if k['winner_ns'] else None, 'stays': self.bare(k['stays'], names),
            'class': k['class'], 'by_class': by_class(b) if b else None} for k, b in zip(kernels, builds)]
        left = sum(k['share'] * ((k['in_program'] or 1.0) - 1.0) for k in kernels)
        row['gain'] = round(1.0 / (1.0 + left), 4)
        row['gpu_time'], row['launches'] = self.measured(own, db, place, copy, gpu)
        return row

    def heaviest(self):
        """The program with most launches a second, and what `with` costs it."""
        counted = [row for row in self.rows if row.get('launches')]
        if counted and time.time() < self.deadline:
            self.overhead = self.clocked(max(counted, key=lambda row: row['launches'] / row['plain_s']))

    @staticmethod
    def bare(text, names):
        for name, other in names.items():
            text = text and text.replace(name, other)
        return text

    def all(self, programs, gpus):
        free = concurrent.futures.ThreadPoolExecutor(gpus)
        numbers = threading.local()
        taken = iter(range(gpus))

        def run(job):
            program, copy, own, why = job.result()
            if not hasattr(numbers, 'gpu'):
                with self.lock:
                    numbers.gpu = next(taken)
            if why is None and time.time() > self.deadline:
                why = NO_TIME
            row = {'program': program.name, 'split': program.split, 'why': why} if why else self.one(program, copy, own, numbers.gpu)
            with self.lock:
                self.rows.append(row)
                self.write(gpus)
            print(f"{program.name}: {row.get('gain', row.get('why'))}, {row.get('tune_s', 0)} s", flush=True)

        builders = concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() - 2 * gpus))
        jobs = [builders.submit(self.make, program) for program in programs]
        for done in [free.submit(run, job) for job in jobs]:
            done.result()

    def write(self, gpus):
        name = text_of('nvidia-smi --query-gpu=name,driver_version --format=csv,noheader').stdout.splitlines()
        nvcc = re.search(r'release [\d.]+, V([\d.]+)', text_of('nvcc --version').stdout)
        rows = joined(self.rows, self.earlier)
        document = {
            'schema': 'warpwright.foreign-in-place/1', 'gpu': name[0] if name else None, 'nvcc': nvcc and nvcc.group(1),
            'date': time.strftime('%Y-%m-%d'), 'budget_s': self.budget, 'overhead': self.overhead, **summary(rows),
            'rows': sorted(rows, key=lambda row: row['program'])}
        with open(f'{self.path}.part', 'w') as file:
            json.dump(document, file, indent=1)
        os.replace(f'{self.path}.part', self.path)


def sum_again(path):
    with open(path) as file:
        document = json.load(file)
    rows = document.pop('rows')
    with open(path, 'w') as file:
        json.dump({**document, **summary(rows), 'rows': rows}, file, indent=1)


def main():
    if sys.argv[1:2] == ['--sum']:
        return sum_again(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('foreign')
    parser.add_argument('tool')
    parser.add_argument('out')
    parser.add_argument('--only', default='', help='a regular expression')
    parser.add_argument('--python', action='store_true', help='the programs in Python')
    parser.add_argument('--examples', action='store_true', help='our own kernels')
    parser.add_argument('--seconds', type=float, default=3000)
    parser.add_argument('--budget', type=float, default=20)
    parser.add_argument('--into', help='an earlier result, whose rows stand for programs that this run does not come to')
    parser.add_argument('--patience', type=float, default=180, help='seconds that a run may take')
    parser.add_argument('--rounds', type=int, default=5, help='whole runs of each kind whose GPU time is measured; 0: none')
    parser.add_argument('--settling', type=float, default=20, help='seconds after which no more rounds are added, up to five times as many')
    parser.add_argument('--exhaustive', action='store_true', help='what the search finds of every point of its space')
    parser.add_argument('--space', help='axes of that, as for `tune --space`')
    parser.add_argument('--points', type=int, default=4096, help='its points at most')
    options = parser.parse_args()
    gpus = len(text_of('nvidia-smi -L').stdout.splitlines())
    if not gpus:
        sys.exit('no GPU')
    campaign = InPlace(options)
    programs = [OwnKernel(name) for name in own_kernels.names()] if options.examples else \
        [Script(name) for name in python_programs.PROGRAMS] if options.python else PROGRAMS
    campaign.all([p for p in programs if re.search(options.only, p.name)], gpus)
    campaign.heaviest()
    campaign.write(gpus)


if __name__ == '__main__':
    main()
