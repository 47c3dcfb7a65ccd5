"""What does the drop-in give the builds of programs that nobody here wrote? Each is built twice by the same command, by nvcc and by
`warpwright nvcc` under the policy `safe`, and both run in turns; no launch is known, nothing is measured before.

    python3 bench/foreign/dropin.py FOREIGN TOOL OUT.json [--only REGEX] [--runs N] [--seconds S]

FOREIGN holds the repositories that programs.py names, TOOL is a folder with `warpwright` and `warpwright-ptxas`. A program's figure is the
time of its kernels as they are over that of the other build, a kernel's the least of its times (profiler's, all launches of a
run). Kernels whose code is the same count as 1. Programs that do not build are in the file as well.
"""
import argparse
import glob
import json
import math
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import collect  # noqa: E402
from collect import Campaign, cubins_of, text_of  # noqa: E402
from programs import PROGRAMS  # noqa: E402
from replay import sections  # noqa: E402

NOISE = 0.02
BUILDS = ['default', 'safe']


class Built(Campaign):
    def __init__(self, options):
        options.out, self.path = options.out + '.work', options.out
        super().__init__(options)
        self.tool, self.said, self.codes = os.path.abspath(options.tool), {}, {}

    def build(self, program, root, copy, knob):
        """As collect.py builds, by one of two compilers."""
        log = f'{self.work}/{program.name}/{knob}.log'
        os.makedirs(os.path.dirname(log), exist_ok=True)
        environment = {**os.environ, 'WARPWRIGHT_PTXAS': 'safe', 'WARPWRIGHT_PTXAS_LOG': log}
        nvcc = 'nvcc' if knob == 'default' else f'{self.tool}/warpwright nvcc --'
        exe = f'{self.work}/{program.name}/{knob}'
        sources = ' '.join(sorted(f for s in program.sources for f in glob.glob(f'{copy}/{s}')))
        try:
            done = text_of(f'{nvcc} -O3 -arch=sm_90 -w {program.flags.format(root=root)} {sources} -o {exe}', cwd=copy, env=environment,
                           timeout=400)
        except subprocess.TimeoutExpired:
            return knob, None, None, 'takes too long to build'
        if done.returncode:
            print(f'{program.name}, {knob}: {done.stderr[-400:]}', file=sys.stderr, flush=True)
            return knob, None, None, 'does not build with this nvcc'
        codes = {}
        for cubin in cubins_of(exe):
            codes |= {name[6:]: (data, header[7]) for name, header, data in sections(cubin) if name.startswith('.text.')}
        self.codes[program.name, knob] = codes
        if os.path.exists(log):
            with open(log) as file:
                self.said[program.name] = sorted(set(re.findall(r': ([a-z][^:;]*) \(predicted', file.read())))
        # Both run, whatever they are.
        return knob, exe, knob, None

    def is_changed(self, program, kernel):
        both = [self.codes[program, knob].get(kernel) for knob in BUILDS]
        return both[0] != both[1]

    def rows(self):
        rows = []
        for program in sorted({r['program'] for r in self.records}):
            times = {}
            for r in self.records:
                if r['program'] == program:
                    key = r['kernel'], *map(str, (r['grid'], r['block'], r['dynamic_smem']))
                    times.setdefault(key, {})[r['build']] = min(r['total_ns']), max(r['total_ns'])
            both = {key: t for key, t in times.items() if set(BUILDS) <= set(t)}
            kernels = []
            for key, t in sorted(both.items(), key=lambda item: -item[1]['default'][0]):
                other = self.is_changed(program, key[0])
                ratio = t['safe'][0] / t['default'][0] if other else 1.0
                apart = other and (t['safe'][1] < t['default'][0] or t['safe'][0] > t['default'][1])
                kernels.append({'share': t['default'][0], 'changed': other, 'relative_time': round(ratio, 4), 'apart': apart})
            whole = sum(k['share'] for k in kernels)
            for kernel in kernels:
                kernel['share'] = round(kernel['share'] / whole, 4)
            left = sum(k['share'] * k['relative_time'] for k in kernels)
            rows.append({'program': program, 'gain': round(1 / left, 4) if kernels else None, 'recipes': self.said.get(program, []),
                         'kernels': [k for k in kernels if k['share'] >= 0.005]})
        return rows

    def write(self, gpus):
        rows = self.rows()
        gains = [row['gain'] for row in rows if row['gain']]
        kernels = [k for row in rows for k in row['kernels'] if k['changed']]
        name = text_of('nvidia-smi --query-gpu=name,driver_version --format=csv,noheader').stdout.splitlines()
        nvcc = re.search(r'release [\d.]+, V([\d.]+)', text_of('nvcc --version').stdout)
        document = {
            'schema': 'warpwright.foreign-drop-in/1', 'gpu': name[0] if name else None, 'nvcc': nvcc and nvcc.group(1),
            'date': time.strftime('%Y-%m-%d'), 'runs': self.runs, 'programs': len(gains), 'geometric_mean': mean(gains),
            'programs_changed': sum(any(k['changed'] for k in row['kernels']) for row in rows), 'kernels_changed': len(kernels),
            'of_these': mean([1 / k['relative_time'] for k in kernels]),
            'slower': sum(k['apart'] and k['relative_time'] > 1 + NOISE for k in kernels),
            'failures': sorted(self.failures, key=lambda f: f['program']), 'rows': rows}
        with open(self.path, 'w') as file:
            json.dump(document, file, indent=1)
        print(json.dumps({k: v for k, v in document.items() if k not in ('rows', 'failures')}))


def mean(values):
    return round(math.exp(sum(map(math.log, values)) / len(values)), 4) if values else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('foreign')
    parser.add_argument('tool')
    parser.add_argument('out')
    parser.add_argument('--only', default='', help='a regular expression')
    parser.add_argument('--runs', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=400)
    options = parser.parse_args()
    gpus = len(text_of('nvidia-smi -L').stdout.splitlines())
    if not gpus:
        sys.exit('no GPU')
    collect.KNOBS = dict.fromkeys(BUILDS, '')
    campaign = Built(options)
    campaign.cupti()
    campaign.all([p for p in PROGRAMS if re.search(options.only, p.name)], gpus)
    campaign.write(gpus)


if __name__ == "__main__":
    main()
