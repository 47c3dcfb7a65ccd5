"""What are rewrites of foreign naive kernels worth on a GPU?

    python3 bench/foreign/naive_tune.py WARPWRIGHT FOREIGN ACCEPTED.json OUT.json [--budget S] [--seconds S] [--jobs N]

ACCEPTED.json is naive_accept.py's; of its sample those kernels are asked for that are taken as naive. `opt` chooses first, without
a GPU; then `tune` measures the versions of its shortlist, each in turns with the kernel as written, and compares every bit that is
written. What `opt` chose is looked up among them. OUT.json has names and figures only.
"""
import argparse
import collections
import concurrent.futures
import datetime
import json
import math
import os
import subprocess
import tempfile
import time

from naive_accept import MADE, Asked, in_general
from programs import OLD


def mean(parts):
    return round(math.exp(sum(map(math.log, parts)) / len(parts)), 4) if parts else None


class Tuned(Asked):
    def flags(self, row):
        return [*super().flags(row), *OLD.split()]

    def chosen(self, row):
        """What `opt` makes of a kernel."""
        with tempfile.TemporaryDirectory() as folder:
            self.written(row, os.path.join(folder, 'out.cu'))

    def tuned(self, row, budget):
        """What its versions take of the time of the kernel as written."""
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, 'out.cu')
            command = [self.tool, 'tune', self.source(row, out), '--kernel', row['kernel'], '-o', out, '--budget', str(budget), '--json']
            try:
                done = subprocess.run([*command, '--', *self.flags(row)], capture_output=True, text=True, errors='replace', timeout=60)
                kernel = json.loads(done.stdout)['kernels'][0]
            except subprocess.TimeoutExpired:
                row['tuned'] = 'no time'
                return
            except (ValueError, KeyError, IndexError):
                last = (done.stderr.strip().splitlines() or [''])[-1]
                errors = [line for line in done.stderr.splitlines() if line.startswith('error: ')]
                row['tuned'], row['tune_refused'] = 'refused', in_general((errors or [last])[0].removeprefix('error: '))[:200]
                return
            versions = kernel['versions']
            row['tuned'] = 'measured'
            row['versions'] = [dict(schedule=v['schedule'], predicted_ms=v['predicted_ms'], ms=v['ms'], written_ms=v['written_ms'],
                                    dropped=v['rejected'] and in_general(' '.join(v['rejected'].split()))[:200]) for v in versions]
            best = kernel['chosen']
            row['part'] = 1.0 if best is None else versions[best]['part']
            own = [v for v in versions if row.get('written') == 'changed' and v['schedule'] == row['recipe'] and v['ms'] and v['written_ms']]
            if row.get('written') == 'as it is':
                row['opt_part'] = 1.0
            elif own:
                row['opt_part'] = round(own[0]['ms'] / own[0]['written_ms'], 4)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('warpwright'), parser.add_argument('foreign'), parser.add_argument('accepted'), parser.add_argument('out')
    parser.add_argument('--budget', type=float, default=2), parser.add_argument('--seconds', type=float, default=1e6)
    parser.add_argument('--jobs', type=int, default=os.cpu_count()), parser.add_argument('--only', default='')
    options = parser.parse_args()
    options.write, options.nvcc, end = 60, None, time.monotonic() + options.seconds
    with open(options.accepted) as file:
        rows = [row for row in json.load(file)['kernels'] if row.get('sample') and row['answer'] == 'naive' and options.only in row['kernel']]
    # One of each suite after the other.
    turn = collections.Counter()
    for row in rows:
        row['turn'] = turn[row['suite']]
        turn[row['suite']] += 1
    rows.sort(key=lambda row: row.pop('turn'))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool, tempfile.TemporaryDirectory() as made:
        for name in MADE:
            os.makedirs(os.path.dirname(os.path.join(made, name)), exist_ok=True)
            open(os.path.join(made, name), 'w').close()
        asked = Tuned(options, made)
        list(pool.map(asked.chosen, rows))
        for row in rows:
            if time.monotonic() < end:
                asked.tuned(row, options.budget)
            else:
                row['tuned'] = 'no time was left'
    measured = [row for row in rows if row['tuned'] == 'measured']
    chosen = [row['opt_part'] for row in measured if 'opt_part' in row]
    gpu = subprocess.run(['nvidia-smi', '--query-gpu=name,driver_version', '--format=csv,noheader'], capture_output=True, text=True)
    head = dict(schema='warpwright.naive-tune-foreign/1', gpu=gpu.stdout.strip().splitlines()[0], date=str(datetime.date.today()), kernels=len(rows),
                measured=len(measured), tune=mean([row['part'] for row in measured]), opt=mean(chosen), opt_kernels=len(chosen),
                opt_slowest=max(chosen, default=None), dropped=sum(v['dropped'] is not None for row in measured for v in row['versions']))
    with open(options.out, 'w') as file:
        json.dump({**head, 'rows': rows}, file, indent=1)
    print(json.dumps(head, indent=1))


if __name__ == '__main__':
    main()
