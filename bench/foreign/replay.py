"""Many builds of foreign kernels, timed inside the programs themselves (replay.cpp): a program runs once, however many builds
its kernels have.

    python3 bench/foreign/replay.py FOREIGN OUT --plan foreign.json [--only TEXT] [--seconds S] [--jobs N] [--keep EARLIER]

FOREIGN holds the repositories that programs.py names; the plan is what collect.py measured: which kernels there are, and
the geometry that takes most time. OUT gets `replay.json` (records as collect.py writes them) and `cubins.tar.xz`.
"""
import argparse
import concurrent.futures
import glob
import hashlib
import json
import lzma
import os
import queue
import re
import shutil
import subprocess
import struct
import sys
import tarfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from collect import Campaign, text_of  # noqa: E402
from programs import PROGRAMS  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
LIMITS = [*range(24, 129, 8), 144, 168, 192, 224, 255]
LEVELS = [0, 2, 4, 6, 8, 10]
EMPTY_KERNEL_NS = 1000    # what the profiler says of one


def sections(cubin):
    start, = struct.unpack_from('<Q', cubin, 40)
    size, count, names = struct.unpack_from('<HHH', cubin, 58)
    headers = [struct.unpack_from('<IIQQQQIIQQ', cubin, start + n * size) for n in range(count)]
    strings = cubin[headers[names][4]:headers[names][4] + headers[names][5]]
    return [(strings[h[0]:strings.index(b'\0', h[0])].decode(), h, cubin[h[4]:h[4] + h[5]] if h[1] != 8 else b'') for h in headers]


def code_of(cubin, kernel):
    """The kernel's machine code, its shared memory, and the functions that it may call."""
    found = []
    for name, header, data in sections(cubin):
        if name == f'.nv.shared.{kernel}':
            found.append(name.encode() + header[5].to_bytes(8, 'little'))
        elif name == f'.text.{kernel}':
            # The number of registers stands in the upper byte of sh_info on some architectures.
            found.append(name.encode() + data + header[7].to_bytes(8, 'little'))
    return b''.join(found)


def variables(cubin):
    """Names of variables in global and constant memory, which a second module has copies of."""
    all_ = sections(cubin)
    table = next((data for name, _, data in all_ if name == '.symtab'), b'')
    strings = next((data for name, _, data in all_ if name == '.strtab'), b'')
    names = []
    for at in range(0, len(table) - 23, 24):
        name, info, _, section = struct.unpack_from('<IBBH', table, at)
        if info & 15 == 1 and 0 < section < len(all_) and all_[section][0].startswith(('.nv.global', '.nv.constant3')):
            names.append(strings[name:strings.index(b'\0', name)].decode())
    return names


def with_directives(ptx, kernel, directives, pragma=''):
    """The entry with performance directives, and a pragma in its body; none if it has directives of its own."""
    found = re.search(rf'\.entry\s+{re.escape(kernel)}\s*(\([^)]*\))?\s*\{{', ptx)
    if not found:
        return None
    return ptx[:found.end() - 1] + directives + '{\n' + pragma + ptx[found.end():]


class Replay(Campaign):
    def __init__(self, options, plan):
        super().__init__(options)
        self.plan, self.cubins = plan, {}

    def library_of_replay(self):
        nvcc = shutil.which('nvcc') or '/usr/local/cuda/bin/nvcc'
        cuda = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
        folders = [cuda, f'{cuda}/extras/CUPTI', f'{cuda}/targets/x86_64-linux']
        include = ' '.join(f'-I{f}/include' for f in folders)
        link = ' '.join(f'-L{f}/lib64 -L{f}/lib -L{f}/lib64/stubs -L{f}/lib/stubs -Wl,-rpath,{f}/lib64 -Wl,-rpath,{f}/lib' for f in folders)
        self.library = f'{self.work}/replay.so'
        done = text_of(f'g++ -std=c++17 -O2 -shared -fPIC {include} {HERE}/replay.cpp -o {self.library} {link} -lcupti -lcuda')
        if done.returncode:
            sys.exit(done.stderr)

    def compile(self, program):
        root, copy = self.prepare(program)
        keep = f'{self.work}/{program.name}/keep'
        os.makedirs(keep, exist_ok=True)
        sources = ' '.join(sorted(f for s in program.sources for f in glob.glob(f'{copy}/{s}')))
        exe = f'{self.work}/{program.name}/program'
        done = text_of(f'nvcc -O3 -arch=sm_90 -w --keep --keep-dir {keep} {program.flags.format(root=root)} {sources} -o {exe}', cwd=copy, timeout=200)
        if done.returncode:
            raise RuntimeError('does not build with this nvcc')
        return copy, exe, sorted(glob.glob(f'{keep}/*.ptx'))

    def ptxas(self, source, target, options=''):
        try:
            done = text_of(f'ptxas -arch=sm_90 -v {options} {source} -o {target}', timeout=60)
        except subprocess.TimeoutExpired:
            return None
        return done.stderr if done.returncode == 0 else None

    def builds(self, program, ptx_files, pool):
        """The builds of each planned kernel: pending pairs of a name and a file."""
        folder = f'{self.work}/{program.name}/builds'
        os.makedirs(folder, exist_ok=True)
        knobs = {'default': '', **{f'maxrregcount-{n}': f'-maxrregcount {n}' for n in LIMITS},
                 **{f'level-{n}': f'--register-usage-level {n}' for n in LEVELS}}
        jobs = []
        for at, path in enumerate(ptx_files):
            with open(path) as file:
                ptx = file.read()
            kernels = [k for k in self.plan[program.name] if re.search(rf'\.entry\s+{re.escape(k)}\s*[({{]', ptx)]
            if not kernels:
                continue
            for knob, options in knobs.items():
                target = f'{folder}/{at}-{knob}.cubin'
                jobs.append((kernels, knob, target, pool.submit(self.ptxas, path, target, options)))
            for kernel in kernels:
                record = self.plan[program.name][kernel]
                x, y, z = record['block']
                warps = -(-x * y * z // 32)
                resident = max(1, min(32, 64 // warps, 65536 // (warps * 32 * -(-record['registers'] // 8) * 8)))
                for blocks in [0, resident + 1]:
                    least = f'.minnctapersm {blocks}\n' if blocks else ''
                    text = with_directives(ptx, kernel, f'\n.maxntid {x}, {y}, {z}\n{least}')
                    if text is None or blocks * warps > 64:
                        continue
                    name = hashlib.sha256(kernel.encode()).hexdigest()[:8]
                    source, target = f'{folder}/{name}-bounds-{blocks}.ptx', f'{folder}/{name}-bounds-{blocks}.cubin'
                    with open(source, 'w') as file:
                        file.write(text)
                    jobs.append(([kernel], f'bounds-{blocks}', target, pool.submit(self.ptxas, source, target)))
        return jobs

    def gather(self, program, jobs):
        """For each kernel its different builds, default first."""
        builds = {}
        for kernels, knob, target, job in jobs:
            if job.result() is None:
                continue
            with open(target, 'rb') as file:
                cubin = file.read()
            for kernel in kernels:
                digest = hashlib.sha256(code_of(cubin, kernel)).hexdigest()[:16]
                known = builds.setdefault(kernel, {})
                if digest not in known:
                    known[digest] = (knob, target, variables(cubin))
        return builds

    def replay(self, program, copy, exe, builds):
        lines = []
        for kernel, known in builds.items():
            record = self.plan[program.name][kernel]
            for knob, target, names in known.values():
                fields = [kernel, *record['grid'], *record['block'], record['dynamic_smem'], record['launches'] // 2, knob, target, ','.join(names) or '-']
                lines.append('\t'.join(map(str, fields)))
        with open(f'{exe}.plan', 'w') as file:
            file.write('\n'.join(lines) + '\n')
        environment = {**os.environ, 'CUDA_INJECTION64_PATH': self.library, 'REPLAY_PLAN': f'{exe}.plan', 'REPLAY_OUT': f'{exe}.jsonl'}
        why = None
        try:
            done = text_of(f'{exe} {program.args}', cwd=copy, env=environment, timeout=max(5, min(40, self.deadline - time.time())))
            if done.returncode < 0:
                why = f'signal {-done.returncode}'
        except subprocess.TimeoutExpired:
            why = 'too slow'
        found = 0
        for line in open(f'{exe}.jsonl') if os.path.exists(f'{exe}.jsonl') else []:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if row['failed']:
                self.failures.append({'program': program.name, 'kernel': row['kernel'], 'why': row['failed']})
                continue
            digests = {knob: (digest, target) for digest, (knob, target, _) in builds[row['kernel']].items()}
            record = self.plan[program.name][row['kernel']]
            for build in row['builds']:
                if build['error'] or not build['us'][0]:
                    self.failures.append({'program': program.name, 'kernel': row['kernel'], 'build': build['build'], 'why': build['error']})
                    continue
                digest, target = digests[build['build']]
                times = [max(1, round(1000 * (us - row['nothing_us'])) + EMPTY_KERNEL_NS) for us in build['us']]
                self.cubins[f'{program.name}/{os.path.basename(target)}'] = target
                self.records.append({
                    'program': program.name, 'split': program.split, 'kernel': row['kernel'], 'grid': row['grid'], 'block': row['block'],
                    'dynamic_smem': row['dynamic_smem'], 'static_smem': build['shared'], 'build': build['build'], 'digest': digest,
                    'file': os.path.basename(target)[:-6], 'registers': build['registers'], 'local_bytes': build['local'], 'launches': record['launches'],
                    'median_ns': times, 'total_ns': [times[1] * record['launches']]})
                found += 1
        if why:
            self.failures.append({'program': program.name, 'why': why})
        print(f'{program.name}: {len(builds)} kernels planned, {found} builds timed {why or ""}', flush=True)

    def all_programs(self, programs, jobs):
        compilers = concurrent.futures.ThreadPoolExecutor(max(1, jobs // 2))
        assemblers = concurrent.futures.ThreadPoolExecutor(jobs)
        ready = queue.Queue()

        def make(program):
            try:
                if time.time() > self.deadline - 20:
                    raise RuntimeError('no time was left')
                copy, exe, ptx = self.compile(program)
                ready.put((program, copy, exe, self.gather(program, self.builds(program, ptx, assemblers))))
            except Exception as error:  # noqa: BLE001: one program that does not build is no reason to stop
                self.failures.append({'program': program.name, 'why': str(error)[:200]})
                ready.put(None)

        for program in programs:
            compilers.submit(make, program)
        for _ in programs:
            found = ready.get()
            if found and found[3]:
                if time.time() < self.deadline - 5:
                    self.replay(*found)
                else:
                    self.failures.append({'program': found[0].name, 'why': 'no time was left'})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('foreign')
    parser.add_argument('out')
    parser.add_argument('--plan', required=True)
    parser.add_argument('--only', default='')
    parser.add_argument('--keep', help='replay.json of an earlier run: its programs are not run again')
    parser.add_argument('--runs', type=int, default=1)
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--seconds', type=float, default=280)
    options = parser.parse_args()
    plan = {}
    for record in json.load(open(options.plan))['records']:
        if record['build'] == 'default' and min(record['median_ns']) > 3000:
            plan.setdefault(record['program'], {})[record['kernel']] = record
    done = {r['program'] for r in json.load(open(options.keep))['records']} if options.keep else set()
    # Least launches first: programs that are replayed quickly.
    chosen = [p for p in PROGRAMS if p.name in plan and p.name not in done and options.only in p.name and '-rdc' not in p.flags]
    chosen.sort(key=lambda p: sum(min(r['total_ns']) for r in plan[p.name].values()))
    replay = Replay(options, plan)
    replay.library_of_replay()
    replay.all_programs(chosen, options.jobs)
    name = text_of('nvidia-smi --query-gpu=name,driver_version --format=csv,noheader').stdout.splitlines()
    nvcc = re.search(r'release [\d.]+, V([\d.]+)', text_of('nvcc --version').stdout)
    document = {'gpu': name[0] if name else None, 'nvcc': nvcc and nvcc.group(1), 'date': time.strftime('%Y-%m-%d'), 'failures': replay.failures}
    with open(f'{options.out}/replay.json', 'w') as file:
        rows = ',\n'.join(json.dumps(r, separators=(',', ':')) for r in sorted(
            replay.records, key=lambda r: (r['program'], r['kernel'], r['build'] != 'default', r['build'])))
        file.write(f'{json.dumps(document, indent=1)[:-2]},\n "records": [\n{rows}\n]}}\n')
    filters = [dict(id=lzma.FILTER_LZMA2, preset=6, lc=0, lp=4, pb=4, dict_size=1 << 26)]
    with lzma.open(f'{options.out}/cubins.tar.xz', 'wb', filters=filters) as packed, tarfile.open(fileobj=packed, mode='w|') as tar:
        for name, path in sorted(replay.cubins.items()):
            if os.path.getsize(path) < 1 << 20:
                tar.add(path, name)
    kernels = {(r['program'], r['kernel']) for r in replay.records}
    print(f'{len(kernels)} kernels of {len({k[0] for k in kernels})} programs, {len(replay.records)} measured builds, '
          f'{len(replay.failures)} failures')
    for failure in replay.failures[:12]:
        print(failure)


if __name__ == '__main__':
    main()
