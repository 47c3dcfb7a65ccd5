"""Which naive kernels of public suites does the source compiler take, and why not the others? No GPU is needed.

    python3 bench/foreign/naive_accept.py WARPWRIGHT FOREIGN OUT.json [--write SECONDS] [--only TEXT] [--jobs N]

FOREIGN holds the checkouts that SUITES names. Counted are the kernels of .cu files whose text has no shared memory,
barriers, atomics, warp-level calls, textures, inline assembly, printf, clocks or launches, and an element of an array; a
kernel that stands in several files counts once. A file that others include is read where the first of them includes it.
The sample was drawn before anything was mended: of each suite the twelve whose names have the smallest digests. With
--write every kernel of the sample that is taken is written by `opt`, within so many seconds: what was checked, what was
predicted, and whether nvcc compiles what came out. OUT.json has names and figures, and the words of refusals without names.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import tempfile

# Folder, where its sources are, and arguments for nvcc. Headers that configuring a suite would make are empty (MADE).
SUITES = {
    'PolyBench-ACC': ('CUDA', ['-I{root}/CUDA/utilities', '-DSTANDARD_DATASET']),    # github.com/cavazos-lab/PolyBench-ACC
    'gpu-rodinia': ('cuda', ['-I{root}/../cuda-samples/Common']),                   # github.com/yuhc/gpu-rodinia
    'cuda-samples': ('Samples', ['-I{root}/Common', '-std=c++17']),                 # github.com/NVIDIA/cuda-samples
    'Parboil': ('benchmarks', ['-I{root}/common/include', '-I{made}']),             # github.com/abduld/Parboil
    'shoc': ('src/cuda', ['-I{root}/src/cuda/common', '-I{root}/src/common', '-I{made}']),   # github.com/vetter/shoc
}
MADE = ['config.h', 'CL/cl.h']
SAMPLE = 12   # kernels of each suite
OTHER_WORK = re.compile(
    r'__shared__|__sync|atomic[A-Z]|__shfl|__ballot|__any|__all|__activemask|__match|__reduce|cooperative_groups|\bcg::'
    r'|\bwmma\b|\basm\b|\bprintf\b|\bassert\b|\btex[123]D|\bsurf[123]D|\btexCube|__threadfence|\bclock|<<<|\bcurand|nvcuda|\bcuda::')
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
TOLD = re.compile(r'^(?:error: )?(?P<kernel>[\w:<>, ]+?): (?:unchanged by tiles: )?(?P<what>.*)$')
REFUSED = 'it is no naive kernel: '


def closed(text, start, opening, closing):
    """One past the bracket that closes the one at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == opening) - (text[at] == closing)
        if depth == 0:
            return at + 1
    return len(text)


def kernels(text):
    """Names and texts of the kernels of a file, comments and strings left out."""
    text = COMMENT.sub(lambda found: '""' if found[0][0] == '"' else ' ', text)
    for found in re.finditer(r'__global__', text):
        head = re.compile(r'(?:__launch_bounds__\s*\([^)]*\))?[^(;{]*?(\w+)\s*\(').match(text, found.end())
        if head is None:
            continue
        end = closed(text, head.end() - 1, '(', ')')
        body = re.compile(r'\s*\{').match(text, end)
        if body is not None:
            yield head[1], text[found.start():closed(text, body.end() - 1, '{', '}')]


def is_naive(text):
    return OTHER_WORK.search(text) is None and re.search(r'\[', text[text.index('{'):]) is not None


def collected(foreign):
    """The kernels that count: suite, file and name, in order, each text once."""
    known = set()
    for suite, (folder, flags) in SUITES.items():
        root = os.path.join(foreign, suite)
        files = (os.path.join(at, name) for at, _, names in os.walk(os.path.join(root, folder), followlinks=True) for name in names)
        for path in sorted(path for path in files if path.endswith('.cu')):
            with open(path, errors='replace') as file:
                own = list(kernels(file.read()))
            for name, text in own:
                digest = re.sub(r'\s+', ' ', text)
                if is_naive(text) and digest not in known:
                    known.add(digest)
                    yield {'suite': suite, 'file': os.path.relpath(path, root), 'kernel': name}


def sampled(rows):
    for suite in SUITES:
        def digest(row):
            return hashlib.sha256(f'{row["suite"]}/{row["file"]}:{row["kernel"]}'.encode()).digest()
        own = sorted((row for row in rows if row['suite'] == suite), key=digest)
        for row in own[:SAMPLE]:
            row['sample'] = True


INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"[^\n]*$', re.M)


class Units:
    """Files as they are compiled: one that others include stands in the first of them."""

    def __init__(self, foreign):
        self.texts, self.including = {}, {}
        for suite, (folder, _) in SUITES.items():
            for at, _, names in os.walk(os.path.join(foreign, suite, folder), followlinks=True):
                for name in sorted(names):
                    if name.endswith(('.cu', '.c', '.cpp', '.cuh', '.h')):
                        path = os.path.normpath(os.path.join(at, name))
                        with open(path, errors='replace') as file:
                            self.texts[path] = file.read()
        for path in sorted(self.texts):
            for found in INCLUDE.finditer(self.texts[path]):
                other = os.path.normpath(os.path.join(os.path.dirname(path), found[1]))
                if other in self.texts:
                    self.including.setdefault(other, path)

    def unit(self, path):
        """The path of the outermost file, and its text with the inner one in it."""
        path = os.path.normpath(path)
        text, seen = self.texts[path], {path}
        while self.including.get(path) not in seen | {None}:
            outer = self.including[path]

            def put(found, inner=path, own=text, of=outer):
                name = os.path.normpath(os.path.join(os.path.dirname(of), found[1]))
                return own if name == inner else found[0]
            text, path = INCLUDE.sub(put, self.texts[outer]), outer
            seen.add(path)
        return path, text


def in_general(reason):
    return re.sub(r'`[^`]*`', '`…`', reason)


class Asked:
    """Asks the tool about the kernels of files."""

    def __init__(self, options, made):
        self.made, self.without = made, set()
        self.tool, self.foreign, self.write = os.path.abspath(options.warpwright), options.foreign, options.write
        self.units, self.nvcc = Units(options.foreign), options.nvcc

    def call(self, row, out, arguments, seconds):
        command = [self.tool, 'opt', self.source(row, out), '--gpu', 'h200', '-o', out, *arguments]
        flags = self.flags(row)
        try:
            return subprocess.run([*command, '--', *flags] if flags else command, capture_output=True, text=True,
                                  errors='replace', timeout=seconds)
        except subprocess.TimeoutExpired:
            return None

    def flags(self, row):
        if (row['suite'], row['file']) in self.without:
            return []
        root = os.path.join(self.foreign, row['suite'])
        outer, _ = self.units.unit(os.path.join(root, row['file']))
        beside = [] if outer.endswith(row['file']) else [f'-I{os.path.dirname(outer)}']
        return [flag.format(root=root, made=self.made) for flag in SUITES[row['suite']][1]] + beside

    def source(self, row, out):
        """The file that is read: that of the checkout, or a copy with the file in the one that includes it."""
        path = os.path.join(self.foreign, row['suite'], row['file'])
        outer, text = self.units.unit(path)
        if os.path.normpath(path) == outer:
            return path
        copy = os.path.join(os.path.dirname(out), 'unit.cu')
        with open(copy, 'w') as file:
            file.write(text)
        return copy

    def file(self, rows):
        """What becomes of the kernels of one file."""
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, 'out.cu')
            done = self.call(rows[0], out, ['--recipe', 'tiles(32x8)', '--fuel', '0'], 600)
            if done and 'nvcc refused' in done.stderr:
                # Headers of libraries that are not there: the text stands for itself.
                self.without.add((rows[0]['suite'], rows[0]['file']))
                done = self.call(rows[0], out, ['--recipe', 'tiles(32x8)', '--fuel', '0'], 600)
            said = {}
            for line in (done.stderr + done.stdout).replace('\n  ', ' ').splitlines() if done else []:
                told = TOLD.match(line)
                if told:
                    said.setdefault(told['kernel'], told['what'])
            for row in rows:
                self.kernel(row, said.get(row['kernel']), out)

    def kernel(self, row, said, out):
        if said is None:
            # What the pass applies to is not spoken of.
            done = self.call(row, out, ['--kernel', row['kernel'], '--recipe', 'tiles(32x8)', '--fuel', '0'], 600)
            if done is None or done.returncode != 0:
                last = (done.stderr if done else 'no answer in time').strip().splitlines() or ['']
                error = next((line for line in last if line.startswith('error: ')), last[-1])
                row['answer'], row['reason'] = 'unread', in_general(error.removeprefix('error: '))
                return
            said = ''
        if REFUSED in said:
            # A stencil is no naive kernel, and taken as well.
            stencil = self.call(row, out, ['--kernel', row['kernel'], '--recipe', 'stream(32x8)', '--fuel', '0'], 600)
            if stencil is not None and stencil.returncode == 0:
                row['answer'] = 'stencil'
            else:
                row['answer'], row['reason'] = 'refused', in_general(said.split(REFUSED, 1)[1])
            return
        row['answer'] = 'naive'
        if self.write and row.get('sample'):
            self.written(row, out)

    def written(self, row, out):
        """What `opt` itself does with a kernel that is taken."""
        if os.path.exists(out):
            os.remove(out)
        done = self.call(row, out, ['--kernel', row['kernel'], '--json'], self.write)
        if done is None:
            row['written'] = 'no time'
            return
        try:
            said = json.loads(done.stdout)
        except ValueError:
            said = {}
        row['exit'] = done.returncode
        if 'chosen' not in said:
            row['written'] = 'refused'
            row['why'] = in_general(str(said.get('message', done.stderr)).strip().splitlines()[0] if (said or done.stderr) else '')
            return
        row['written_ms'], chosen = said['original_ms'], said['chosen']
        row['written'] = 'as it is' if chosen is None else 'changed'
        if chosen is not None:
            row['predicted_ms'], row['recipe'] = said['versions'][chosen]['predicted_ms'], said['recipe_text']
            row['checked'] = bool(said['checked']) and not said['unchecked']
            row['unchecked'] = said['unchecked']
            nvcc = os.path.join(self.nvcc, 'nvcc') if self.nvcc else 'nvcc'
            built = subprocess.run([nvcc, '-arch=sm_90', '-cubin', out, '-o', os.path.join(os.path.dirname(out), 'a.cubin'),
                                    f'-I{os.path.dirname(self.source(row, out))}', *self.flags(row)], capture_output=True)
            row['compiles'] = built.returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('warpwright'), parser.add_argument('foreign'), parser.add_argument('out')
    parser.add_argument('--write', type=int), parser.add_argument('--only', default='')
    parser.add_argument('--jobs', type=int, default=2), parser.add_argument('--nvcc', help='the folder of nvcc')
    options = parser.parse_args()
    rows = list(collected(options.foreign))
    sampled(rows)
    rows = [row for row in rows if options.only in f'{row["suite"]}/{row["file"]}:{row["kernel"]}']
    files = collections.defaultdict(list)
    for row in rows:
        files[row['suite'], row['file']].append(row)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool, tempfile.TemporaryDirectory() as made:
        for name in MADE:
            os.makedirs(os.path.dirname(os.path.join(made, name)), exist_ok=True)
            open(os.path.join(made, name), 'w').close()
        list(pool.map(Asked(options, made).file, files.values()))
    json.dump({'schema': 'warpwright.naive-accept/1', 'kernels': rows}, open(options.out, 'w'), indent=1)


if __name__ == '__main__':
    main()
