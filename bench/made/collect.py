"""What are registers worth to the kernels of families.py? Builds each with every knob of ptxas, times all builds in turns
in one process, and looks at the default, the best and the worst through Nsight Compute.

    python3 bench/made/collect.py OUT [--seconds S] [--jobs N] [--per-family N] [--counters S]

OUT gets `made.json` (records as in bench/foreign, and counters) and `cubins.tar.xz` (the builds, for the model). Needs
nvcc and a GPU; counters need ncu and the right to use it.
"""
import argparse
import concurrent.futures
import csv
import hashlib
import io
import json
import lzma
import os
import re
import shutil
import struct
import subprocess
import tarfile
import time

from families import SMS, kernels

HERE = os.path.dirname(os.path.abspath(__file__))
LIMITS = [*range(24, 129, 4), *range(136, 217, 8), 232, 255]
LEVELS = [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]
FEWEST_SHARE = 0.2    # limits below this share of the default's registers are not built
TURNS = 9
METRICS = {
    'cycles': 'sm__cycles_elapsed.max', 'instructions': 'smsp__inst_executed.sum',
    'issue_active': 'smsp__issue_active.avg.pct_of_peak_sustained_active',
    'warps_active': 'sm__warps_active.avg.pct_of_peak_sustained_active',
    'l1_hit': 'l1tex__t_sector_hit_rate.pct', 'l2_hit': 'lts__t_sector_hit_rate.pct', 'dram_bytes': 'dram__bytes.sum',
    'sectors': 'l1tex__t_sectors.sum', 'requests': 'l1tex__t_requests.sum',
    **{f'stall_{s}': f'smsp__average_warps_issue_stalled_{s}_per_issue_active.ratio' for s in [
        'long_scoreboard', 'short_scoreboard', 'barrier', 'wait', 'math_pipe_throttle', 'lg_throttle', 'mio_throttle',
        'not_selected', 'branch_resolving', 'no_instruction', 'drain', 'dispatch_stall']},
}


def text_of(command, **more):
    return subprocess.run(command, shell=True, capture_output=True, text=True, errors='replace', **more)


def code_of(cubin):
    """The machine code of all functions, and what resources they state: what does not differ here is one build."""
    start, = struct.unpack_from('<Q', cubin, 40)
    size, count, names = struct.unpack_from('<HHH', cubin, 58)
    headers = [struct.unpack_from('<IIQQQQIIQQ', cubin, start + n * size) for n in range(count)]
    strings = cubin[headers[names][4]:headers[names][4] + headers[names][5]]
    code = []
    for header in headers:
        name = strings[header[0]:strings.index(b'\0', header[0])]
        if name.startswith(b'.text.'):
            code.append(name + cubin[header[4]:header[4] + header[5]])
        elif name.startswith(b'.nv.shared.'):
            code.append(name + header[5].to_bytes(8, 'little'))
    return b''.join(sorted(code))


def with_directives(ptx, directives, pragma=''):
    """The entry with performance directives, and a pragma in its body."""
    head, brace, tail = ptx.partition('\n{\n')
    return f'{head}\n{directives}{brace}{pragma}{tail}' if brace else None


class Builder:
    def __init__(self, work):
        self.work = work

    def ptx(self, kernel):
        path = f'{self.work}/{kernel.name}'
        os.makedirs(path, exist_ok=True)
        with open(f'{path}/k.cu', 'w') as file:
            file.write(kernel.head + '\n' + kernel.source)
        done = text_of(f'nvcc -O3 -arch=sm_90 -w -ptx {path}/k.cu -o {path}/k.ptx', timeout=120)
        if done.returncode:
            raise RuntimeError(done.stderr[-300:])
        with open(f'{path}/k.ptx') as file:
            return path, file.read()

    def one(self, path, build, options, ptx=None):
        """Registers, spilled bytes and digest, or none if ptxas refuses."""
        source = f'{path}/k.ptx'
        if ptx is not None:
            source = f'{path}/{build}.ptx'
            with open(source, 'w') as file:
                file.write(ptx)
        try:
            done = text_of(f'ptxas -arch=sm_90 -v {options} {source} -o {path}/{build}.cubin', timeout=40)
        except subprocess.TimeoutExpired:
            return None
        used = re.search(r'Used (\d+) registers', done.stderr)
        spilled = re.search(r'(\d+) bytes spill stores', done.stderr)
        if done.returncode or not used:
            return None
        with open(f'{path}/{build}.cubin', 'rb') as file:
            digest = hashlib.sha256(code_of(file.read()) + used.group(1).encode()).hexdigest()[:16]
        return dict(build=build, registers=int(used.group(1)), spilled=int(spilled.group(1)) if spilled else 0, digest=digest,
                    options=options, dynamic=0)

    def all(self, kernel):
        """Different builds of a kernel, the default first."""
        path, ptx = self.ptx(kernel)
        default = self.one(path, 'default', '')
        if default is None:
            raise RuntimeError('ptxas does not take it')
        natural = default['registers']
        warps = -(-kernel.block // 32)
        resident = max(1, min(32, 64 // warps, 65536 // (warps * 32 * -(-natural // 8) * 8)))
        limits = [n for n in LIMITS if n >= FEWEST_SHARE * natural and n * kernel.block <= 65536]
        builds = [default] + [self.one(path, f'maxrregcount-{n}', f'-maxrregcount {n}') for n in limits]
        builds += [self.one(path, f'level-{n}', f'--register-usage-level {n}') for n in LEVELS]
        for blocks in sorted({0, resident + 1, 2 * resident}):
            least = f'.minnctapersm {blocks}\n' if blocks else ''
            if blocks * warps <= 64:
                builds.append(self.one(path, f'bounds-{blocks}', '', with_directives(ptx, f'.maxntid {kernel.block}, 1, 1\n{least}')))
        spilling = [b for b in builds if b and b['build'].startswith('max') and b['spilled']]
        for build in spilling[-4:] if not kernel.dynamic else []:
            n = build['build'].split('-')[1]
            directives = f'.maxntid {kernel.block}, 1, 1\n.maxnreg {n}\n'
            builds.append(self.one(path, f'smem-{n}', '', with_directives(ptx, directives, '.pragma "enable_smem_spilling";\n')))
        seen, different = set(), []
        for build in builds:
            if build and build['digest'] not in seen:
                seen.add(build['digest'])
                different.append(build)
        return path, different


def device():
    """What nvidia-smi says of each GPU, and the first one's name as files have it."""
    gpus = text_of('nvidia-smi --query-gpu=name,driver_version --format=csv,noheader').stdout.splitlines()
    return gpus, gpus[0].split(',')[0].lower().replace('nvidia ', '').replace(' ', '-') if gpus else 'none'


def timer(work):
    """The process that times, built in a folder."""
    done = text_of(f'nvcc -O2 -std=c++17 {HERE}/runner.cpp -o {work}/runner -lcuda')
    if done.returncode:
        raise SystemExit(done.stderr)
    return Runner(f'{work}/runner')


class Runner:
    """The process that times; started again after a crash."""

    def __init__(self, program):
        self.program, self.process = program, None

    def job(self, kernel, builds, path, turns):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            self.process.stdin.write(line(kernel, builds, path, turns))
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except OSError:
            answer = ''
        if not answer:
            self.process.kill()
            self.process = None
            return None
        return json.loads(answer)['builds']


def line(kernel, builds, path, turns):
    fields = [kernel.name, kernel.type, kernel.n, kernel.m, kernel.grid, kernel.block, turns]
    for build in builds:
        fields += [f'{path}/{build["file"]}.cubin', kernel.dynamic + build['dynamic']]
    return '\t'.join(map(str, fields)) + '\n'


def throttled(kernel, default, found):
    """The default's code with fewer blocks: unused dynamic shared memory."""
    if kernel.dynamic or not found or found['blocks'] < 2:
        return []
    counts = {found['blocks'] // 2, max(1, found['blocks'] // 4)}
    return [{**default, 'build': f'throttle-{n}', 'dynamic': min(227 * 1024 // n - found['shared'] - 1024, 227 * 1024 - found['shared']) // 128 * 128}
            for n in sorted(counts)]


def counters(runner, measured, seconds):
    """Nsight Compute's counters of the default, the best and the worst build, kernels with the largest spread first."""
    wanted, deadline = [], time.time() + seconds
    for kernel, path, builds, times in measured:
        timed = [(t['us'][1], n) for n, t in enumerate(times) if not t['error']]
        if len(timed) > 2 and timed[0][1] == 0:
            wanted.append((max(timed)[0] / min(timed)[0], kernel, path, [builds[n] for n in dict.fromkeys([0, min(timed)[1], max(timed)[1]])]))
    wanted.sort(key=lambda w: -w[0])
    wanted = wanted[::2]
    found = []
    for at in range(0, len(wanted), 8):
        left = deadline - time.time()
        if left < 8:
            break
        some = wanted[at:at + 8]
        jobs = ''.join(line(kernel, builds, path, 0) for _, kernel, path, builds in some)
        try:
            done = subprocess.run(['ncu', '--csv', '--page', 'raw', '--cache-control', 'none', '--metrics', ','.join(METRICS.values()), runner],
                                  input=jobs, capture_output=True, text=True, timeout=left)
        except (OSError, subprocess.TimeoutExpired):
            break
        start = done.stdout.find('"ID"')
        rows = list(csv.DictReader(io.StringIO(done.stdout[start:]))) if start >= 0 else []
        rows = [row for row in rows if row['ID']]
        labels = [(kernel, build['build']) for _, kernel, _, builds in some for build in builds]
        if len(rows) != len(labels):
            print(f'ncu: {len(rows)} of {len(labels)} launches: {(done.stdout[:200] + done.stderr[-200:])!r}')
            continue
        for (kernel, build), row in zip(labels, rows):
            values = {}
            for short, metric in METRICS.items():
                try:
                    values[short] = float(row[metric].replace(',', ''))
                except (KeyError, ValueError):
                    pass
            found.append(dict(program=kernel.program, kernel=kernel.name, build=build, **values))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('out')
    parser.add_argument('--seconds', type=float, default=240, help='for building and timing')
    parser.add_argument('--counters', type=float, default=40, help='seconds for Nsight Compute')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--per-family', type=int, default=11)
    parser.add_argument('--skip', type=int, default=0, help='kernels of each family that an earlier run has')
    parser.add_argument('--build-only', action='store_true')
    options = parser.parse_args()
    deadline = time.time() + options.seconds
    work = f'{options.out}/work'
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    builder, failures, measured = Builder(work), [], []
    runner = Runner(f'{work}/runner') if options.build_only else timer(work)
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)

    def build(kernel):
        return builder.all(kernel) if time.time() < deadline else None

    chosen = [k for k in kernels(options.per_family) if int(k.name.split('_')[1]) >= options.skip]
    jobs = {pool.submit(build, kernel): kernel for kernel in chosen}
    for job in concurrent.futures.as_completed(jobs):
        kernel = jobs[job]
        try:
            path, builds = job.result() or (None, None)
        except Exception as error:  # noqa: BLE001: one kernel that does not build is no reason to stop
            failures.append(dict(kernel=kernel.name, why=str(error)))
            continue
        if path is None:
            failures.append(dict(kernel=kernel.name, why='no time was left'))
            continue
        for b in builds:
            b['file'] = b['build']
        if options.build_only:
            measured.append((kernel, path, builds, [dict(error=None, us=[0, 0, 0], blocks=0, shared=0, local=0, registers=b['registers']) for b in builds]))
            continue
        first = runner.job(kernel, builds[:1], path, 1)
        builds += throttled(kernel, builds[0], first and first[0])
        times = first and runner.job(kernel, builds, path, TURNS)
        if not times or times[0]['error']:
            failures.append(dict(kernel=kernel.name, why='does not run' if not times else times[0]['error']))
            continue
        measured.append((kernel, path, builds, times))
    records = []
    for kernel, path, builds, times in measured:
        for build, time_ in zip(builds, times):
            if time_['error']:
                failures.append(dict(kernel=kernel.name, build=build['build'], why=time_['error']))
                continue
            least, median, upper = (round(1000 * t) for t in time_['us'])
            records.append(dict(
                program=kernel.program, split=kernel.split, kernel=kernel.name, grid=[kernel.grid, 1, 1], block=[kernel.block, 1, 1],
                dynamic_smem=kernel.dynamic + build['dynamic'], static_smem=time_['shared'], build=build['build'],
                file=build['file'], digest=build['digest'], registers=time_['registers'], local_bytes=time_['local'], launches=1,
                median_ns=[least, median, upper], total_ns=[median]))
    records.sort(key=lambda r: (r['program'], r['kernel'], r['build'] != 'default', r['build']))
    looked = [] if options.build_only else counters(f'{work}/runner', measured, options.counters)
    name = text_of('nvidia-smi --query-gpu=name,driver_version --format=csv,noheader').stdout.splitlines()
    nvcc = re.search(r'release [\d.]+, V([\d.]+)', text_of('nvcc --version').stdout)
    head = dict(gpu=name[0] if name else None, nvcc=nvcc and nvcc.group(1), date=time.strftime('%Y-%m-%d'), failures=failures)
    with open(f'{options.out}/made.json', 'w') as file:
        def rows(list_):
            return ',\n'.join(json.dumps(r, separators=(',', ':')) for r in list_)
        file.write(f'{json.dumps(head, indent=1)[:-2]},\n "counters": [\n{rows(looked)}\n],\n "records": [\n{rows(records)}\n]}}\n')
    # Instructions have 16 bytes each: the compressor should know.
    filters = [dict(id=lzma.FILTER_LZMA2, preset=6, lc=0, lp=4, pb=4, dict_size=1 << 26)]
    with lzma.open(f'{options.out}/cubins.tar.xz', 'wb', filters=filters) as packed, tarfile.open(fileobj=packed, mode='w|') as tar:
        for kernel, path, builds, _ in sorted(measured, key=lambda row: row[0].name):
            for file in sorted({build['file'] for build in builds}):
                tar.add(f'{path}/{file}.cubin', f'{kernel.name}/{file}.cubin')
    shutil.rmtree(work, ignore_errors=True)
    found = {r['kernel'] for r in records}
    print(f'{len(found)} kernels of {len({r["program"] for r in records})} families, {len(records)} measured builds, '
          f'{len(looked)} with counters, {len(failures)} failures, SMs assumed: {SMS}')
    for failure in failures[:8]:
        print(failure)


if __name__ == '__main__':
    main()
