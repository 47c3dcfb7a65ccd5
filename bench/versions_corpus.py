#!/usr/bin/env python3
"""The passes that use the launch, on kernels that nobody here wrote and on our own: which loops and kernels do they take, is
what they write proved, and does it compute the same? No GPU is needed.

    bench/versions_corpus.py SUITES TOOL OUT.json [--seconds S] [--jobs N] [--seed N] [--per-file N] [--prototype ptxvar.py] [--into EARLIER.json]
    bench/versions_corpus.py SUITES TOOL OUT.json --again EARLIER.json    # another build, on what was not proved
    bench/versions_corpus.py --sum OUT.json

SUITES holds the checkouts that FOLDERS names; TOOL is the folder of `warpwright`, nvcc is on PATH. Files of CUDA C are compiled
for sm_90, in an order that the seed gives, until the time is over; of each the kernels whose names have the smallest digests
are taken, each text once. Every innermost loop is unrolled by itself by 2, 4 and 8. `specialize` gets random facts, `reshape`
random shapes, `cache` random options. Each result is proved by the pass itself (it writes nothing else), and with facts or
shapes once more by `check --assume --shape`, which is told them by this script. With --prototype (the text substitutions that
the passes began with) each kernel that it would launch in other blocks is given to `reshape` in such a one. Our own examples
run in the emulator, before and after, at their small size and at sizes of which some are odd. Of the suites only names and numbers are kept.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import importlib.util
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, 'foreign')]
import own_kernels  # noqa: E402
from naive_accept import MADE, SUITES, in_general  # noqa: E402
from no_gpu_programs.programs import RENAMED  # noqa: E402

ROOT = os.path.dirname(HERE)
FOLDERS = {**SUITES, 'polybenchGpu': ('CUDA', []),                          # github.com/sgrauerg/polybenchGpu
           'altis': ('src', ['-I{root}/src/cuda/common', '-I{root}/src/common', '-I{made}'])}   # github.com/utcs-scea/altis
OURS = {'corpus': 'lab/corpus/cuda', 'examples': 'examples', 'filetests': 'filetests'}
FACTORS = [2, 4, 8]
TRIES = 3   # random facts, and shapes, of a kernel
PATIENCE = 60   # seconds for one command
LONGEST = 150   # seconds for the loops of a kernel; those after that are not counted
CACHE = {'loads': ['no-allocate', 'evict-first', 'evict-last', 'streaming', 'l2'], 'prefetch': ['64B', '128B', '256B'],
         'stores': ['streaming', 'l2', 'write-through']}
NUMBERS = [0, 1, 2, 3, 5, 7, 8, 16, 31, 32, 64, 100, 127, 128, 255, 256, 1000, 1023, 1024, 4096]
ENTRY = re.compile(r'^[ \t]*(?:\.visible\s+|\.weak\s+)?\.entry\s+([\w$]+)\s*(\([^)]*\))?([^{]*)\{', re.M)
PARAM = re.compile(r'\.param\s+(?:\.align\s+\d+\s+)?\.([usfb])(8|16|32|64)\s+(?:\.ptr[^,\n]*?)?([\w$]+)\s*(\[\d+\])?\s*(?:,|\)|$)')
SHAPES = [(32,), (64,), (128,), (256,), (512,), (1024,), (96,), (32, 4), (16, 16), (32, 8), (8, 8), (64, 4), (8, 8, 4), (16, 4, 4), (32, 2, 2)]


class Kernel:
    """One entry of a PTX module."""

    def __init__(self, path, text, found):
        self.path, self.name, self.head, self.params = path, found[1], found[3], PARAM.findall(found[2] or '')
        depth, at = 1, found.end()
        for bracket in re.compile(r'[{}]').finditer(text, at):
            depth += 1 if bracket[0] == '{' else -1
            if depth == 0:
                at = bracket.end()
                break
        self.body, self.after_params = text[found.end():at], found.end(2) if found[2] else found.end(1)
        self.text = text
        own = re.sub(r'\b' + re.escape(self.name) + r'\b', 'k', (found[2] or '') + self.head + self.body)
        self.digest = hashlib.sha256(re.sub(r'\.loc[^\n]*|//[^\n]*|\$L_*BB\d+|\s+', ' ', own).encode()).hexdigest()

    def axes(self):
        return [a for a, axis in enumerate('xyz') if re.search(rf'%(?:tid|ctaid|ntid|nctaid)\.{axis}', self.body)]

    def bound(self, which):
        found = re.search(rf'\.{which}\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?', self.head)
        return found and [int(n or 1) for n in found.groups()]

    def block(self, rng):
        """One that launches of this kernel may have."""
        own, most = self.bound('reqntid'), math.prod(self.bound('maxntid') or [1024])
        depth = max(self.axes(), default=0) + 1
        fitting = [s for s in SHAPES if math.prod(s) <= most and len(s) <= depth]
        return own or [*(rng.choice(fitting) if fitting else (most,)), 1, 1][:3]

    def scalars(self):
        """What facts may speak of: numbers of at most 32 bits or floating-point ones, and members that are loaded as such."""
        for number, (kind, bits, name, array) in enumerate(self.params):
            if not array:
                if kind == 'f' or bits != '64':
                    yield f'param{number}', kind, int(bits)
                continue
            loaded = re.findall(rf'ld\.param\.([usfb])(8|16|32)\s+[^,]+,\s*\[{re.escape(name)}(?:\+(\d+))?\]', self.body)
            for k, b, at in sorted(set(loaded)):
                yield f'param{number}+{at or 0}:{int(b) // 8}', k, int(b)

    def with_block(self, block):
        """The module with launches of another block alone; nothing where the kernel states one."""
        if re.search(r'\.(reqntid|maxntid)', self.head):
            return None
        return f"{self.text[:self.after_params]}\n.reqntid {', '.join(map(str, block))}\n{self.text[self.after_params:]}"


def kernels(path):
    with open(path, errors='replace') as file:
        text = file.read()
    return [Kernel(path, text, found) for found in ENTRY.finditer(text)]


def extents(numbers, between='x'):
    return between.join(map(str, numbers))


def bits(kind, width, value):
    if kind == 'f':
        return int.from_bytes(struct.pack({16: '<e', 32: '<f', 64: '<d'}[width], value), 'little')
    return value


def facts(kernel, rng):
    """Random ones: as an option of `specialize`, and as an assumption of `check`."""
    block, grid = kernel.block(rng), [rng.choice([1, 2, 3, 4, 7, 64, 100, 1000]) if a in kernel.axes() else 1 for a in range(3)]
    values = []
    for name, kind, width in kernel.scalars():
        if rng.random() < 0.7:
            value = rng.choice([0.0, 0.5, 1.0, 2.0, 3.25, -1.5]) if kind == 'f' else min(rng.choice(NUMBERS), (1 << width - 1) - 1)
            values.append((name, kind, width, value))
    settings = [f'block={extents(block)}', f'grid={extents(grid)}']
    if values:
        settings.append('params=' + '&'.join(f'{name}={value}' for name, _, _, value in values))
    said = [f"block={extents(block, ',')}", f"grid={extents(grid, ',')}", *(f'{n}={bits(k, w, v)}' for n, k, w, v in values)]
    return settings, '; '.join(said)


def shaped(kernel, rng, axes):
    """A launch with threads along these axes, and another block for as many threads along each of them."""
    from_block = kernel.bound('reqntid') or [{0: 32, 1: 8, 2: 4}[a] if a in axes else 1 for a in range(3)]
    for _ in range(50):
        block = [2 ** rng.randrange(0, 9) if a in axes else n for a, n in enumerate(from_block)]
        grid = [3 * max(1, b // math.gcd(b, f)) if a in axes else 2 if a in kernel.axes() else 1
                for a, (b, f) in enumerate(zip(block, from_block))]
        if block != from_block and 32 <= math.prod(block) <= 1024:
            return from_block, grid, block
    return None


class Campaign:
    def __init__(self, options):
        self.options, self.tool = options, os.path.join(os.path.abspath(options.tool), 'warpwright')
        self.deadline, self.lock, self.known = time.time() + options.seconds, threading.Lock(), set()
        self.rows, self.files, self.earlier = [], collections.Counter(), []
        if options.into:
            with open(options.into) as file:
                earlier = json.load(file)
            self.rows, self.files = earlier['rows'], collections.Counter(earlier['files'])
            self.earlier = {(row['suite'], row.get('file', row['kernel'])) for row in self.rows}
        self.prototype = None
        if options.prototype:
            spec = importlib.util.spec_from_file_location('ptxvar', options.prototype)
            self.prototype = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(self.prototype)
        self.builds = os.path.abspath(options.builds)
        for name in MADE:
            os.makedirs(os.path.join(self.builds, 'made', os.path.dirname(name)), exist_ok=True)
            open(os.path.join(self.builds, 'made', name), 'w').close()

    # Files.
    def sources(self):
        """All files, in an order that the seed gives."""
        found = []
        for suite, (folder, flags) in FOLDERS.items():
            root = os.path.join(self.options.suites, suite)
            found += [(suite, path, [*flags, *RENAMED], root) for path in below(os.path.join(root, folder), '.cu')]
        for suite, folder in OURS.items():
            found += [(suite, path, [], ROOT) for path in below(os.path.join(ROOT, folder), '.ptx' if suite == 'filetests' else '.cu')]
        found = [f for f in found if re.search(self.options.only, f'{f[0]}/{os.path.relpath(f[1], f[3])}')]
        return sorted(found, key=lambda f: hashlib.sha256(f'{self.options.seed}/{f[0]}/{os.path.relpath(f[1], f[3])}'.encode()).digest())

    def ptx(self, suite, path, flags, root):
        """The file's PTX; none where it does not compile alone."""
        if path.endswith('.ptx'):
            return path
        out = os.path.join(self.builds, suite, re.sub(r'\W', '_', os.path.relpath(path, root)) + '.ptx')
        if not os.path.exists(out) and not os.path.exists(f'{out}.failed'):
            os.makedirs(os.path.dirname(out), exist_ok=True)
            flags = [flag.format(root=root, made=os.path.join(self.builds, 'made')) for flag in flags]
            standard = [] if any('-std' in flag for flag in flags) else ['-std=c++17']
            done = self.ran(['nvcc', '-ptx', '-arch=sm_90', '-O3', '-w', '--extended-lambda', *standard, *flags, path, '-o', f'{out}.part'])
            if done.returncode:
                open(f'{out}.failed', 'w').close()
            else:
                os.replace(f'{out}.part', out)
        return out if os.path.exists(out) else None

    def file(self, source):
        if time.time() > self.deadline:
            return
        suite, path, flags, root = source
        if (suite, os.path.relpath(path, root)) in self.earlier:
            return
        ptx = self.ptx(*source)
        with self.lock:
            self.files[f"{suite}: {'read' if ptx else 'does not compile alone'}"] += 1
        if ptx is None:
            return
        if self.ran([self.tool, 'pass', 'print', ptx, '-o', os.devnull]).returncode:
            with self.lock:
                self.files[f'{suite}: no PTX'] += 1
            return
        own = sorted(kernels(ptx), key=lambda k: hashlib.sha256(k.name.encode()).digest())
        taken = 0
        for kernel in own:
            if taken == self.options.per_file or time.time() > self.deadline:
                break
            with self.lock:
                is_new = kernel.digest not in self.known
                self.known.add(kernel.digest)
            if is_new:
                taken += 1
                row = {'suite': suite, 'file': os.path.relpath(path, root), 'kernel': kernel.name, **self.kernel(kernel)}
                with self.lock:
                    self.rows.append(row)
        print(f'{suite} {os.path.basename(path)}: {len(own)} kernels, {taken} taken', flush=True)

    # Commands.
    def ran(self, words):
        try:
            return subprocess.run(words, capture_output=True, text=True, errors='replace', timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, 124, '', '')

    def apply(self, name, kernel, settings, out, assumed=None):
        """What a pass makes of a kernel: `proved`, `not proved`, or why it leaves it. With an assumption `check` says so again."""
        words = [self.tool, 'pass', name, kernel.path, '--kernel', kernel.name, '-o', out, *(w for s in settings for w in ('--set', s))]
        begun = time.monotonic()
        done = self.ran(words)
        seconds = round(time.monotonic() - begun, 2)
        said = re.sub(r'\n\s+', ' ', done.stderr)
        left = re.search(rf'unchanged by {name}: (.*)', said)
        if done.returncode == 124:
            return 'takes too long', '', seconds
        if left:
            return 'left', reason(left[1]), seconds
        if 'changes no launch' in said:
            return 'proved', '', seconds
        if done.returncode == 5 or 'not proved' in said:
            return 'not proved', reason(said), seconds
        if done.returncode:
            return 'refused', reason(said), seconds
        if assumed and self.judged(kernel, out, ['--assume', assumed]) != 0:
            return 'not proved again', '', seconds
        return 'proved', '', seconds

    def judged(self, kernel, out, more):
        return self.ran([self.tool, 'check', kernel.path, out, '--kernel', kernel.name, '-q', *more]).returncode

    def again(self, row):
        """The loops of an earlier row that were not proved, by this build."""
        left = [(n, loop) for n, loop in enumerate(row.get('unroll', ())) if any(r[0] in TAKEN[1:] for r in loop.values())]
        source = next((s for s in self.sources() if left and s[0] == row['suite'] and os.path.relpath(s[1], s[3]) == row['file']), None)
        ptx = source and self.ptx(*source)
        kernel = ptx and next((k for k in kernels(ptx) if k.name == row['kernel']), None)
        with tempfile.TemporaryDirectory() as folder:
            for n, loop in left if kernel else ():
                for factor, result in list(loop.items()):
                    if result[0] in TAKEN[1:] and time.time() < self.deadline:
                        settings = [f'factor={factor}', f'nth={n + 1}']
                        loop[factor] = [*self.apply('unroll', kernel, settings, os.path.join(folder, 'b.ptx')), f'before: {result[0]}']

    # Passes.
    def kernel(self, kernel):
        rng = random.Random(f'{self.options.seed}/{kernel.digest}')
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, 'b.ptx')
            return {'instructions': kernel.body.count(';'), 'unroll': list(self.loops(kernel, out)),
                    'specialize': [self.specialized(kernel, rng, out) for _ in range(TRIES)],
                    'reshape': [r for r in (self.reshaped(kernel, rng, kernel.axes(), out) for _ in range(TRIES)) if r],
                    'prototype': self.as_prototype(kernel, rng, out), 'cache': [self.cached(kernel, rng, out)],
                    'vectorize': [self.vectorized(kernel, rng, out)]}

    def loops(self, kernel, out):
        """Of each innermost loop what becomes of it at each factor."""
        nth, begun = 1, time.monotonic()
        while time.monotonic() - begun < LONGEST:
            results = {}
            for factor in FACTORS:
                found = self.apply('unroll', kernel, [f'factor={factor}', f'nth={nth}'], out)
                if found[1].startswith('it has no innermost loop'):
                    return
                results[factor] = found
                if found[0] in ('left', 'refused'):
                    break
            yield results
            nth += 1

    def specialized(self, kernel, rng, out):
        settings, assumed = facts(kernel, rng)
        return [*self.apply('specialize', kernel, settings, out, assumed), assumed]

    def reshaped(self, kernel, rng, axes, out):
        launch = shaped(kernel, rng, axes) if axes else None
        if launch is None:
            return None
        block, grid, to = launch
        result = self.apply('reshape', kernel, [f'block={extents(to)}', f'from={extents(block)}', f'grid={extents(grid)}'], out)
        text = kernel.with_block(to)
        if result[0] == 'proved' and text:
            with open(out, 'w') as file:
                file.write(text)
            more = ['--assume', f"block={extents(block, ',')}; grid={extents(grid, ',')}", '--shape', f"block={extents(to, ',')}"]
            if self.judged(kernel, out, more) != 0:
                result = ('not proved again', *result[1:])
        return [*result, f'{extents(block)} to {extents(to)}, grid {extents(grid)}']

    def as_prototype(self, kernel, rng, out):
        """What `reshape` says where the prototype launches the kernel in another block."""
        if not self.prototype:
            return []
        axes = self.prototype.linear_only(kernel.body, kernel.head)
        found = self.reshaped(kernel, rng, ['xyz'.index(a) for a in axes], out) if axes else None
        return [found] if found else []

    def cached(self, kernel, rng, out):
        while True:
            chosen = [f'{key}={rng.choice(words)}' for key, words in CACHE.items() if rng.random() < 0.7]
            if chosen:
                return [*self.apply('cache', kernel, chosen, out), ', '.join(chosen)]

    def vectorized(self, kernel, rng, out):
        return list(self.apply('vectorize', kernel, [f'bytes={rng.choice([8, 16])}'], out))

    # The emulator.
    def example(self, folder_and_name):
        """Our own kernel as it is and as each pass writes it, at its small size and at odd ones."""
        if time.time() > self.deadline:
            return
        folder, name = folder_and_name
        if ('emulator', name) in self.earlier:
            return
        toml = f'{ROOT}/examples/{folder}/{name}.toml'
        with open(toml, 'rb') as file:
            description = tomllib.load(file)
        ptx = self.ptx('examples', f"{ROOT}/examples/{folder}/{description['source']}", [], ROOT)
        rng = random.Random(f'{self.options.seed}/{name}')
        kernel = next((k for k in kernels(ptx) if k.name == description['kernel']), None) if ptx else None
        if kernel is None:
            return
        small, results = description['sizes']['small'], []
        odd = {key: max(1, value - rng.randrange(1, 4)) for key, value in small.items()}
        with tempfile.TemporaryDirectory() as place:
            for sizes in [small, odd, {key: value | 1 for key, value in small.items()}]:
                before = self.outputs(kernel.path, toml, sizes)
                if before:
                    results += self.versions(kernel, rng, (description, toml, sizes), before, place)
        with self.lock:
            self.rows.append({'suite': 'emulator', 'kernel': name, 'emulator': results})
        print(f'{name}: {len(results)} runs in the emulator', flush=True)

    def outputs(self, path, toml, sizes, more=()):
        words = [self.tool, 'run', path, '--launch', toml, '--size', 'small', '--json', *more]
        done = self.ran([*words, *(w for key, value in sizes.items() for w in ('--set', f'{key}={value}'))])
        if done.returncode:
            return None
        return {buffer['name']: buffer['sha256'] for buffer in json.loads(done.stdout)['buffers']}

    def versions(self, kernel, rng, launch, before, place):
        description, toml, sizes = launch
        plan, out = own_kernels.planned(description, '', sizes), os.path.join(place, 'b.ptx')
        block, grid = plan['block'], plan['grid']
        known = [f"param{n}={value}" for n, value in self.numbers(description, plan)]
        tries = [('unroll', [f'factor={factor}']) for factor in FACTORS]
        tries += [('specialize', [f'block={extents(block)}', f'grid={extents(grid)}', *(['params=' + '&'.join(known)] if known else [])]),
                  ('cache', [f'{key}={rng.choice(words)}' for key, words in CACHE.items()]), ('vectorize', ['bytes=16'])]
        for name, settings in tries:
            state = self.apply(name, kernel, settings, out)[0]
            if state == 'proved':
                yield [name, self.outputs(out, toml, sizes) == before]
        for to in self.other_shapes(block, grid):
            state = self.apply('reshape', kernel, [f'block={extents(to)}', f'from={extents(block)}', f'grid={extents(grid)}'], out)[0]
            if state == 'proved':
                moved = os.path.join(place, 'moved.toml')
                with open(toml) as file:
                    text = file.read()
                to_grid = [b * g // t for b, g, t in zip(block, grid, to)]
                text = re.sub(r'(?m)^grid = .*$', f'grid = {to_grid}', re.sub(r'(?m)^block = .*$', f'block = {to}', text))
                with open(moved, 'w') as file:
                    file.write(text)
                yield ['reshape', self.outputs(kernel.path, moved, sizes) == before]

    @staticmethod
    def numbers(description, plan):
        """Scalar parameters with their values."""
        for number, (arg, made) in enumerate(zip(description['args'], plan['args'])):
            if 'bytes' in made and 'fields' not in arg and not isinstance(arg['value'], list):
                form = own_kernels.FORMATS[arg['type']]
                yield number, struct.unpack(f'<{form}', bytes.fromhex(made['bytes']))[0]

    @staticmethod
    def other_shapes(block, grid):
        """Twice and half the threads along each axis."""
        for axis in range(3):
            for to in (block[axis] * 2, block[axis] // 2):
                other = [*block[:axis], to, *block[axis + 1:]]
                if to and block[axis] * grid[axis] % to == 0 and math.prod(other) <= 1024:
                    yield other

    def all(self):
        sources = self.sources()
        examples = [('naive', name[:-5]) for name in sorted(os.listdir(f'{ROOT}/examples/naive')) if name.endswith('.toml')]
        examples += [(name, name) for name in own_kernels.names()]
        random.Random(self.options.seed).shuffle(examples)
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            # An example for every few files, whenever the time is over.
            every = max(1, len(sources) // max(1, len(examples)))
            jobs = []
            for number, source in enumerate(sources):
                jobs.append(pool.submit(self.file, source))
                if number % every == 0 and examples:
                    jobs.append(pool.submit(self.example, examples.pop()))
            for job in jobs:
                job.result()
        return {'sources': dict(sorted(collections.Counter(f[0] for f in sources).items())), 'files': dict(sorted(self.files.items()))}


def below(folder, ending):
    for at, folders, names in os.walk(folder):
        folders.sort()
        yield from (os.path.join(at, name) for name in sorted(names) if name.endswith(ending))


def reason(said):
    """A refusal without names and numbers."""
    said = said.strip().splitlines()[0] if said.strip() else ''
    said = re.sub(r'^.* is not proved: ', '', re.sub(r' (?:original|rewritten) +/.*$', '', said))
    return re.sub(r'\d+', 'N', re.sub(r'[%$][\w.$]+', '…', re.sub(r': (?:call|bar|atom|red|ld|st|shfl|vote|mov|setp)\.?([\w.:]*).*$', r': \1', in_general(said))))[:140]


def share(part, whole):
    return round(100 * part / whole, 2) if whole else None


TAKEN = ('proved', 'not proved', 'not proved again', 'takes too long')


def counted(results):
    """How many were tried, taken and proved, and why not."""
    states = collections.Counter(r[0] for r in results)
    taken = sum(states[s] for s in TAKEN)
    why = collections.Counter(r[1] for r in results if r[0] in ('left', 'refused'))
    return {'tried': len(results), 'taken': taken, 'taken (%)': share(taken, len(results)), 'proved': states['proved'],
            'proved of taken (%)': share(states['proved'], taken), 'states': dict(states.most_common()), 'why not': dict(why.most_common(12)),
            'longest_s': max((r[2] for r in results), default=0)}


def summary(rows):
    """Our filetests, of which many are there to be refused, are counted apart."""
    parts = {name: [row for row in rows if (row['suite'] == 'filetests') == (name == 'filetests')] for name in ('corpus', 'filetests')}
    return {name: summed(own) for name, own in parts.items() if own}


def summed(rows):
    own = [row for row in rows if 'unroll' in row]
    loops = [loop for row in own for loop in row['unroll']]
    at = lambda loop, factor: loop.get(factor) or loop.get(str(factor))
    taken = [loop for loop in loops if at(loop, 2)[0] in TAKEN]
    by_suite = collections.Counter(row['suite'] for row in own for _ in row['unroll'])
    emulated = collections.defaultdict(collections.Counter)
    for row in rows:
        for name, is_same in row.get('emulator', ()):
            emulated[name]['same' if is_same else 'different'] += 1
    proto = [row['prototype'][0] for row in own if row['prototype']]
    reshaped = [row for row in own if any(r[0] == 'proved' for r in row['reshape'])]
    more_axes = sum(any(r[0] == 'proved' and sum(n != '1' for n in r[3].split(' to ')[0].split('x')) > 1 for r in row['reshape']) for row in reshaped)
    return {
        'kernels': len(own), 'by suite': dict(sorted(collections.Counter(row['suite'] for row in own).items())),
        'innermost loops': len(loops), 'by suite, loops': dict(sorted(by_suite.items())), 'loops taken (%)': share(len(taken), len(loops)),
        'loops proved at every factor (%)': share(sum(all(r[0] == 'proved' for r in loop.values()) for loop in taken), len(taken)),
        'unroll': {factor: counted([r for loop in loops if (r := at(loop, factor))]) for factor in FACTORS},
        'reshape, of what the prototype takes': counted(proto), 'seconds of a pass, at most': max((r[2] for loop in loops for r in loop.values()), default=0), 'kernels reshaped': len(reshaped), 'of these with more axes than one': more_axes,
        **{name: counted([r for row in own for r in row[name]]) for name in ('specialize', 'reshape', 'cache', 'vectorize')},
        'emulator': {name: dict(counts) for name, counts in sorted(emulated.items())},
    }


def main():
    if sys.argv[1:2] == ['--sum']:
        with open(sys.argv[2]) as file:
            document = json.load(file)
        document['summary'] = summary(document['rows'])
    else:
        parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument('suites'), parser.add_argument('tool'), parser.add_argument('out')
        parser.add_argument('--seconds', type=float, default=3600)
        parser.add_argument('--jobs', type=int, default=2)
        parser.add_argument('--seed', type=int, default=1)
        parser.add_argument('--per-file', type=int, default=12, help='kernels of a file at most')
        parser.add_argument('--only', default='', help='a regular expression')
        parser.add_argument('--builds', default='/tmp/warpwright-versions', help='PTX that was compiled stays here')
        parser.add_argument('--prototype')
        parser.add_argument('--into', help='an earlier result, whose files are not looked at again')
        parser.add_argument('--again', help='an earlier result: its loops that were not proved are tried with this build, the rest stands')
        options = parser.parse_args()
        campaign, begun = Campaign(options), time.time()
        if options.again:
            with open(options.again) as file:
                earlier = json.load(file)
            before = earlier['summary']['corpus']
            told = {'sources': earlier['sources'], 'files': earlier['files'],
                    'before': {key: before[key] for key in ('unroll', 'loops proved at every factor (%)')}}
            options.per_file = earlier['per_file']
            with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                list(pool.map(campaign.again, earlier['rows']))
            campaign.rows = earlier['rows']
        else:
            told = campaign.all()
        rows = sorted(campaign.rows, key=lambda row: (row['suite'], row.get('file', ''), row['kernel']))
        document = {'schema': 'warpwright.versions-corpus/1', 'date': time.strftime('%Y-%m-%d'), 'seed': options.seed, 'per_file': options.per_file,
                    'seconds': round(time.time() - begun), **told, 'summary': summary(rows), 'rows': rows}
    print(json.dumps(document['summary'], indent=1))
    with open(sys.argv[2] if sys.argv[1] == '--sum' else options.out, 'w') as file:
        file.write(json.dumps({k: v for k, v in document.items() if k != 'rows'}, indent=1)[:-2] + ',\n "rows": [\n')
        file.write(',\n'.join(json.dumps(row, separators=(',', ':')) for row in document['rows']) + '\n]}\n')


if __name__ == '__main__':
    main()
