"""How fast are foreign kernels under each of ptxas's knobs? Builds every program of programs.py at every knob, runs each
build several times on the GPUs of this machine, and writes one record a kernel and build.

    python3 bench/foreign/collect.py FOREIGN OUT [--only TEXT] [--runs N] [--seconds S]

FOREIGN holds the repositories that programs.py names. OUT gets `foreign.json` (figures alone) and `cubins.tar.xz` (the
builds, for the model; they are not ours and are not committed). Needs nvcc, CUPTI and at least one GPU.
"""
import argparse
import concurrent.futures
import glob
import hashlib
import json
import os
import queue
import random
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from programs import PROGRAMS  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
LIMITS = [32, 40, 48, 64, 80, 96, 128, 168, 255]
KNOBS = {'default': '', **{f'maxrregcount-{n}': f'-maxrregcount={n}' for n in LIMITS},
         'level-0': '-Xptxas --register-usage-level=0', 'level-10': '-Xptxas --register-usage-level=10'}


def text_of(command, **more):
    return subprocess.run(command, shell=True, capture_output=True, text=True, errors='replace', **more)


def code_of(cubin):
    """The machine code of all functions, with their names: what does not differ here is one build."""
    start, = struct.unpack_from('<Q', cubin, 40)
    size, count, names = struct.unpack_from('<HHH', cubin, 58)
    headers = [struct.unpack_from('<IIQQQQIIQQ', cubin, start + n * size) for n in range(count)]
    strings = cubin[headers[names][4]:headers[names][4] + headers[names][5]]
    code = []
    for header in headers:
        name = strings[header[0]:strings.index(b'\0', header[0])]
        if name.startswith(b'.text.'):
            code.append(name + cubin[header[4]:header[4] + header[5]])
    return b''.join(sorted(code))


def cubins_of(exe):
    """The machine code in a program; it stays in a folder beside it."""
    folder = f'{exe}.cubins'
    os.makedirs(folder, exist_ok=True)
    text_of(f'cuobjdump -xelf all {exe}', cwd=folder)
    for path in sorted(glob.glob(f'{folder}/*.cubin')):
        with open(path, 'rb') as file:
            yield file.read()


def make_input(path, maker, arguments):
    """Random input of the form that the program reads; the same for ever."""
    rng = random.Random(7)
    with open(path, 'wb') as out:
        if maker == 'numbers':
            count, low, high = arguments
            out.write(b'\n'.join(b'%.4f' % rng.uniform(low, high) for _ in range(count)) + b'\n')
        elif maker == 'graph':
            nodes, degree = arguments
            lines = [f'{nodes}'] + [f'{n * degree} {degree}' for n in range(nodes)] + ['', '0', '', f'{nodes * degree}']
            lines += [f'{rng.randrange(nodes)} {rng.randrange(1, 10)}' for _ in range(nodes * degree)]
            out.write('\n'.join(lines).encode())
        elif maker == 'text':
            out.write(''.join(f'{line}\n' for line in arguments).encode())
        else:
            raise ValueError(maker)


class Campaign:
    def __init__(self, options):
        self.foreign, self.out = os.path.abspath(options.foreign), os.path.abspath(options.out)
        self.runs, self.deadline = options.runs, time.time() + options.seconds
        self.work = os.path.join(self.out, 'work')
        self.lock = threading.Lock()
        self.records, self.failures = [], []
        os.makedirs(self.work, exist_ok=True)

    def keep(self, path):
        """Takes over what an earlier run has of the programs that it measured as often as it meant to, at every build."""
        with open(path) as file:
            earlier = json.load(file)
        records = {}
        for record in earlier['records']:
            records.setdefault(record['program'], []).append(record)
        missing = {f['program'] for f in earlier['failures']}
        for program, rows in records.items():
            first = max(len(row['median_ns']) for row in rows)
            builds = {row['build'] for row in rows}
            whole = all(sum(len(r['median_ns']) for r in rows if r['build'] == b) >= first for b in builds)
            if whole and 'default' in builds and first == earlier['runs'] and program not in missing:
                self.records += rows
        return {record['program'] for record in self.records}

    def cupti(self):
        nvcc = shutil.which('nvcc') or '/usr/local/cuda/bin/nvcc'
        cuda = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
        folders = [cuda, f'{cuda}/extras/CUPTI', f'{cuda}/targets/x86_64-linux']
        include = ' '.join(f'-I{f}/include' for f in folders)
        link = ' '.join(f'-L{f}/lib64 -L{f}/lib -Wl,-rpath,{f}/lib64 -Wl,-rpath,{f}/lib' for f in folders)
        self.library = f'{self.work}/kernels.so'
        for record in ['CUpti_ActivityKernel10', 'CUpti_ActivityKernel9', 'CUpti_ActivityKernel8']:
            done = text_of(f'g++ -std=c++17 -O2 -shared -fPIC -DRECORD={record} {include} {HERE}/kernels.cpp -o {self.library} '
                           f'{link} -lcupti')
            if done.returncode == 0:
                return
        sys.exit(f'the profiler library does not build: {done.stderr}')

    def prepare(self, program):
        """A copy of the program's folder, with the lines left out that it asks for."""
        root = f'{self.foreign}/{program.repo}'
        copy = f'{self.work}/{program.name}/src'
        shutil.copytree(f'{root}/{program.folder}', copy, dirs_exist_ok=True)
        for path in glob.glob(f'{copy}/*.cu') if program.drop else []:
            with open(path, errors='replace') as file:
                lines = file.readlines()
            with open(path, 'w') as file:
                file.writelines(line for line in lines if not any(word in line for word in program.drop))
        for name, maker, arguments in program.needs:
            make_input(f'{copy}/{name}', maker, arguments)
        return root, copy

    def build(self, program, root, copy, knob):
        exe = f'{self.work}/{program.name}/{knob}'
        sources = ' '.join(sorted(f for s in program.sources for f in glob.glob(f'{copy}/{s}')))
        done = text_of(f'nvcc -O3 -arch=sm_90 -w {KNOBS[knob]} {program.flags.format(root=root)} {sources} -o {exe}', cwd=copy,
                       timeout=400)
        if done.returncode:
            print(f'{program.name}, {knob}: {done.stderr[-400:]}', file=sys.stderr, flush=True)
            return knob, None, None, 'does not build with this nvcc'
        digest = hashlib.sha256()
        for cubin in cubins_of(exe):
            digest.update(code_of(cubin))
        return knob, exe, digest.hexdigest()[:16], None

    def run(self, program, copy, exe, gpu, turn):
        out = f'{exe}.{turn}.jsonl'
        environment = {**os.environ, 'CUDA_VISIBLE_DEVICES': str(gpu), 'CUDA_INJECTION64_PATH': self.library,
                       'KERNELS_OUT': out}
        try:
            text_of(f'{exe} {program.args}', cwd=copy, env=environment, timeout=60)
        except subprocess.TimeoutExpired:
            return None
        if not os.path.exists(out):
            return None
        with open(out) as file:
            return [json.loads(line) for line in file]

    def measure(self, program, copy, builds, gpu):
        """All builds of a program on one GPU, in turns: a drift of the clock meets all alike."""
        times = {}
        for turn in range(self.runs):
            for knob, exe, digest in builds:
                if time.time() > self.deadline:
                    with self.lock:
                        self.failures.append({'program': program.name, 'why': 'no time was left'})
                    return
                for row in self.run(program, copy, exe, gpu, turn) or []:
                    key = (row['kernel'], tuple(row['grid']), tuple(row['block']), row['dynamic_smem'], knob)
                    times.setdefault(key, []).append((row, digest))
        with self.lock:
            for (kernel, grid, block, dynamic, knob), rows in times.items():
                first = rows[0][0]
                self.records.append({
                    'program': program.name, 'split': program.split, 'kernel': kernel, 'grid': grid, 'block': block,
                    'dynamic_smem': dynamic, 'static_smem': first['static_smem'], 'build': knob, 'digest': rows[0][1],
                    'registers': first['registers'], 'local_bytes': first['local'], 'launches': first['launches'],
                    'median_ns': [row['median_ns'] for row, _ in rows], 'total_ns': [row['total_ns'] for row, _ in rows]})

    def all(self, programs, gpus):
        free = queue.Queue()
        for gpu in range(gpus):
            free.put(gpu)
        builders = concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() - 2 * gpus))
        runners = concurrent.futures.ThreadPoolExecutor(gpus)

        def one(program, copy, pending):
            built = [job.result() for job in pending]
            with self.lock:
                self.failures += [{'program': program.name, 'build': knob, 'why': why} for knob, _, _, why in built if why]
            # Builds of the same machine code are one.
            seen, builds = {}, []
            for knob, exe, digest, why in built:
                if why is None and digest not in seen:
                    seen[digest] = knob
                    builds.append((knob, exe, digest))
            gpu = free.get()
            try:
                self.measure(program, copy, builds, gpu)
            finally:
                free.put(gpu)
            with self.lock:
                kernels = {r['kernel'] for r in self.records if r['program'] == program.name}
            print(f'{program.name}: {len(builds)} builds, {len(kernels)} kernels', flush=True)

        jobs = []
        for program in programs:
            try:
                root, copy = self.prepare(program)
            except OSError as error:
                self.failures.append({'program': program.name, 'why': str(error)})
                continue
            pending = [builders.submit(self.build, program, root, copy, knob) for knob in KNOBS]
            jobs.append(runners.submit(one, program, copy, pending))
        for job in jobs:
            job.result()

    def hottest(self):
        """The records of each kernel at the geometry that takes most time in the default build."""
        def geometry(r):
            return tuple(r['grid']), tuple(r['block']), r['dynamic_smem']
        most = {}
        for r in self.records:
            key = r['program'], r['kernel']
            if r['build'] == 'default' and min(r['total_ns']) > most.get(key, (0,))[0]:
                most[key] = min(r['total_ns']), geometry(r)
        return [r for r in self.records if most.get((r['program'], r['kernel']), (0, None))[1] == geometry(r)]

    def write(self, gpus):
        self.records = self.hottest()
        name = text_of('nvidia-smi --query-gpu=name,driver_version --format=csv,noheader').stdout.splitlines()
        nvcc = re.search(r'release [\d.]+, V([\d.]+)', text_of('nvcc --version').stdout)
        document = {'gpu': name[0] if name else None, 'gpus': gpus, 'nvcc': nvcc and nvcc.group(1),
                    'date': time.strftime('%Y-%m-%d'), 'runs': self.runs, 'failures': self.failures, 'records': self.records}
        with open(f'{self.out}/foreign.json', 'w') as file:
            head = json.dumps({k: v for k, v in document.items() if k != 'records'}, indent=1)[:-2]
            rows = ',\n'.join(json.dumps(r, separators=(',', ':')) for r in sorted(
                self.records, key=lambda r: (r['program'], r['kernel'], r['grid'], r['block'], r['build'])))
            file.write(f'{head},\n "records": [\n{rows}\n]}}\n')
        with tarfile.open(f'{self.out}/cubins.tar.xz', 'w:xz', preset=6) as tar:
            for path in sorted(glob.glob(f'{self.work}/**/*.cubin', recursive=True)):
                if os.path.getsize(path) < 1 << 20:
                    tar.add(path, os.path.relpath(path, self.work))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('foreign')
    parser.add_argument('out')
    parser.add_argument('--only', default='')
    parser.add_argument('--keep', help='foreign.json of an earlier run: the programs that it has whole are kept and not run')
    parser.add_argument('--runs', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=400)
    options = parser.parse_args()
    gpus = len(text_of('nvidia-smi -L').stdout.splitlines())
    if not gpus:
        sys.exit('no GPU')
    campaign = Campaign(options)
    campaign.cupti()
    done = campaign.keep(options.keep) if options.keep else set()
    campaign.all([p for p in PROGRAMS if options.only in p.name and p.name not in done], gpus)
    campaign.write(gpus)
    kernels = {(r['program'], r['kernel']) for r in campaign.records}
    print(f'{len(kernels)} kernels of {len({k[0] for k in kernels})} programs, {len(campaign.records)} measured builds, '
          f'{len(campaign.failures)} builds failed')


if __name__ == "__main__":
    main()
