"""Triton kernels: what `opt` chooses with the facts of a trace, timed beside every other candidate.

    python3 bench/triton/measure.py OUT [--tool WARPWRIGHT] [--orders]

Tries each kernel's configurations and keeps the fastest, as an autotuner does; traces a program that launches those; lets
`opt` choose from PTX and trace; then times Triton's own build, the choice and all other candidates in turns on the same
arguments, and compares what they write. With `--orders` the same machine code as the default's in other orders, which
the pass `schedule` made and proved, is among the candidates (bench/control_fields.py names the ways); what it said is in
`orders`. OUT gets `triton.json` (records as in bench/foreign), and `cubins.tar.xz`.
"""
import argparse
import ctypes
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import tarfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'foreign'), os.path.join(HERE, '..')]
TURNS = 9
BATCH_MS = 1.0


def prepared(case, torch):
    torch.manual_seed(7)
    return case.make(torch)


def launched(case, config, arguments):
    """Runs the kernel through Triton; the compiled kernel."""
    return case.kernel[case.grid(config)](*arguments, **config)


def elapsed(torch, work, times):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(times):
        work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / times


def tuned(torch, out):
    """The fastest configuration of each kernel, with what Triton made of it."""
    from kernels import cases
    chosen = {}
    for case in cases():
        arguments, best = prepared(case, torch), None
        for config in case.configs:
            try:
                kernel = launched(case, config, arguments)
                torch.cuda.synchronize()
                ms = elapsed(torch, lambda: launched(case, config, arguments), 10)
            except Exception as error:  # noqa: BLE001: a configuration that does not fit is no candidate
                print(f'{case.name} {config}: {str(error)[:200]}', flush=True)
                continue
            if best is None or ms < best[0]:
                best = ms, config, kernel
        if best is None:
            continue
        ms, config, kernel = best
        grid = (*case.grid(config), 1, 1)[:3]
        for kind in ['ptx', 'cubin']:
            text = kernel.asm[kind]
            with open(f'{out}/{case.name}.{kind}', 'wb') as file:
                file.write(text.encode() if isinstance(text, str) else text)
        meta = kernel.metadata
        chosen[case.name] = dict(config=config, grid=grid, threads=32 * meta.num_warps, shared=meta.shared, symbol=meta.name)
        print(f'{case.name}: {config}, {1000 * ms:.1f} us', flush=True)
        del arguments
    with open(f'{out}/configs.json', 'w') as file:
        json.dump(chosen, file)


def once(torch, out):
    """The program that is traced: each kernel at its configuration."""
    from kernels import cases
    with open(f'{out}/configs.json') as file:
        chosen = json.load(file)
    for case in cases():
        if case.name in chosen:
            arguments = prepared(case, torch)
            for _ in range(3):
                launched(case, chosen[case.name]['config'], arguments)
            torch.cuda.synchronize()


class Driver:
    """The driver's functions, by their C names."""

    def __init__(self):
        self.library = ctypes.CDLL('libcuda.so.1')

    def __getattr__(self, name):
        function = getattr(self.library, name)

        def call(*arguments):
            code = function(*arguments)
            if code:
                raise RuntimeError(f'{name}: {code}')
        return call


# Of the driver's enumeration of a function's attributes.
REGISTERS, LOCAL_BYTES, MOST_DYNAMIC = 4, 3, 8


def function_of(driver, path, symbol, shared):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    with open(path, 'rb') as file:
        image = file.read()
    driver.cuModuleLoadData(ctypes.byref(module), image)
    driver.cuModuleGetFunction(ctypes.byref(function), module, symbol.encode())
    if shared > 48 << 10:
        driver.cuFuncSetAttribute(function, MOST_DYNAMIC, shared)
    figures = []
    for attribute in [REGISTERS, LOCAL_BYTES]:
        value = ctypes.c_int()
        driver.cuFuncGetAttribute(ctypes.byref(value), attribute, function)
        figures.append(value.value)
    return function, figures, hashlib.sha256(image).hexdigest()[:16]


def parameters(arguments, count):
    """The arguments as the driver takes them. Triton appends pointers to scratch memory that these kernels do not use, and
    gives integers 32 bits."""
    values = []
    for argument in arguments:
        if hasattr(argument, 'data_ptr'):
            values.append(ctypes.c_void_p(argument.data_ptr()))
        elif isinstance(argument, float):
            values.append(ctypes.c_float(argument))
        else:
            values.append(ctypes.c_int(argument))
    values += [ctypes.c_void_p(0)] * (count - len(values))
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
    return values, pointers


def timed(torch, out):
    from kernels import cases
    from programs import split
    driver = Driver()
    with open(f'{out}/configs.json') as file:
        chosen = json.load(file)
    records, failures = [], []
    for case in cases():
        facts, folder = chosen.get(case.name), f'{out}/{case.name}'
        if facts is None or not os.path.exists(f'{folder}/choice.json'):
            failures.append(dict(kernel=case.name, why='not built'))
            continue
        with open(f'{out}/{case.name}.ptx') as file:
            count = len(re.findall(r'^\s*\.param ', file.read().split('.entry', 1)[1].split(')', 1)[0], re.M))
        arguments = prepared(case, torch)
        outputs = arguments[:case.outputs]
        _, pointers = values = parameters(arguments, count)
        stream = torch.cuda.current_stream().cuda_stream
        builds = {'triton': f'{out}/{case.name}.cubin'}
        for file in sorted(os.listdir(folder)):
            if file.endswith('.cubin'):
                builds['choice' if file == 'choice.cubin' else file[:-len('.cubin')].removeprefix(facts['symbol'] + '.')] = f'{folder}/{file}'
        loaded, expected, seen, choice = {}, None, {}, 'default'
        # Triton's own ptxas may be another: the default of the one at hand is what builds are compared with.
        for name in sorted(builds, key=lambda n: (n != 'default', n == 'choice', n)):
            shared = facts['shared']
            try:
                function, figures, digest = function_of(driver, builds[name], facts['symbol'], shared)
                if name == 'choice':
                    choice = seen.get(digest, name)
                if digest in seen:
                    continue
                def launch(function=function):
                    driver.cuLaunchKernel(function, *facts['grid'], facts['threads'], 1, 1, shared, ctypes.c_void_p(stream), pointers, None)
                for output in outputs:
                    output.zero_()
                launch()
                torch.cuda.synchronize()
            except RuntimeError as error:
                failures.append(dict(kernel=case.name, build=name, why=str(error)[:200]))
                if str(error).startswith('cu'):
                    continue
                # The context is lost: what was measured stands.
                return written(torch, out, chosen, records, failures)
            result = [output.clone() for output in outputs]
            if expected is None:
                expected = result
            same = all(torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in zip(result, expected))
            seen[digest] = name
            loaded[name] = (launch, figures, digest, same)
        ms = elapsed(torch, loaded['default'][0], 3)
        times = {name: [] for name in loaded}
        repeats = max(1, min(100, int(BATCH_MS / ms)))
        names = list(loaded)
        for turn in range(TURNS):
            for at in range(len(names)):
                name = names[(at + 7 * turn) % len(names)]
                times[name].append(1e6 * elapsed(torch, loaded[name][0], repeats))
        for name, (_, figures, code, same) in loaded.items():
            t = sorted(times[name])
            records.append(dict(
                program=f'triton/{case.name}', split=split(f'triton/{case.name}'), kernel=facts['symbol'], grid=facts['grid'],
                block=[facts['threads'], 1, 1], dynamic_smem=facts['shared'], static_smem=0, build=name, file=name, digest=code,
                registers=figures[0], local_bytes=figures[1], launches=1, same_output=same, is_choice=name == choice,
                median_ns=[round(t[0]), round(t[len(t) // 2]), round(t[3 * len(t) // 4])], total_ns=[round(t[len(t) // 2])]))
        del arguments, outputs, values
    written(torch, out, chosen, records, failures)


def written(torch, out, chosen, records, failures):
    name = subprocess.run(['nvidia-smi', '--query-gpu=name,driver_version', '--format=csv,noheader'], capture_output=True, text=True).stdout
    import triton
    head = dict(gpu=name.splitlines()[0], triton=triton.__version__, torch=torch.__version__, date=time.strftime('%Y-%m-%d'), configs=chosen,
                failures=failures)
    if os.path.exists(f'{out}/orders.json'):
        with open(f'{out}/orders.json') as file:
            head['orders'] = json.load(file)
    with open(f'{out}/triton.json', 'w') as file:
        rows = ',\n'.join(json.dumps(r, separators=(',', ':')) for r in records)
        file.write(f'{json.dumps(head, indent=1)[:-2]},\n "records": [\n{rows}\n]}}\n')
    summary(records, failures)


def summary(records, failures):
    kernels = {}
    for r in records:
        kernels.setdefault(r['program'], []).append(r)
    product, worst = 1.0, 0.0
    for program, rows in sorted(kernels.items()):
        default = next(r for r in rows if r['build'] == 'default')['total_ns'][0]
        choice = next((r for r in rows if r['is_choice']), None)
        best = min(rows, key=lambda r: r['total_ns'][0])
        own = next((r['total_ns'][0] for r in rows if r['build'] == 'triton'), default)
        ratio = choice['total_ns'][0] / default if choice else float('nan')
        product, worst = product * ratio ** (1 / len(kernels)), max(worst, ratio)
        print(f'{program:<28} {default / 1000:8.1f} us  triton {own / default:.3f}  choice {choice and choice["build"]} {ratio:.3f}  best {best["build"]} '
              f'{best["total_ns"][0] / default:.3f}  same output {sum(r["same_output"] for r in rows)} of {len(rows)}')
    summary_of_orders(kernels)
    print(f'{len(kernels)} kernels, choice over default {product:.3f}, slowest {worst:.3f}; failures: {failures[:6]}')


def summary_of_orders(kernels):
    """What orders alone do: one way for all, and the best of each kernel."""
    ways = {}
    for rows in kernels.values():
        default = next(r for r in rows if r['build'] == 'default')['total_ns'][0]
        # The same code as the default's is not measured twice.
        own = {r['build']: r['total_ns'][0] / default for r in rows if r['build'].startswith('order-')}
        for way, ratio in {**own, 'best': min([1.0, *own.values()])}.items():
            ways.setdefault(way, []).append(ratio)
    for way, ratios in sorted(ways.items()):
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f'{way:<20} {len(ratios)} kernels, {mean:.3f} of the default, {min(ratios):.3f} to {max(ratios):.3f}')


def built(out, tool, trace):
    """`opt` on each kernel's PTX with the facts of the trace; all candidates are kept."""
    with open(f'{out}/configs.json') as file:
        chosen = json.load(file)
    running = []
    for name, facts in chosen.items():
        os.makedirs(f'{out}/{name}', exist_ok=True)
        command = [tool, 'opt', f'{out}/{name}.ptx', '--kernel', facts['symbol'], '--trace', trace, '--no-database', '--keep', f'{out}/{name}',
                   '-o', f'{out}/{name}/choice.cubin', '--json']
        running.append((name, subprocess.Popen(command, stdout=open(f'{out}/{name}/choice.json', 'w'), stderr=open(f'{out}/{name}/log', 'w'))))
    for name, process in running:
        if process.wait():
            with open(f'{out}/{name}/log') as file:
                print(f'{name}: opt fails: {file.read()[-300:]}')
            os.remove(f'{out}/{name}/choice.json')


def reordered(out, tool):
    """The default build of each kernel in other orders, as far as these are proved."""
    from control_fields import ORDERS
    with open(f'{out}/configs.json') as file:
        chosen = json.load(file)
    running, said = [], {}
    for name, facts in chosen.items():
        default = f'{out}/{name}/{facts["symbol"]}.default.cubin'
        for way, settings in ORDERS.items():
            if os.path.exists(default):
                output = f'{out}/{name}/order-{way}.cubin'
                command = [tool, 'pass', 'schedule', default, '--gpu', 'h200', '--block', str(facts['threads']),
                           '--dynamic-smem', str(facts['shared']), *(w for s in settings for w in ('--set', s)), '-o', output]
                running.append((name, way, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)))
    for name, way, process in running:
        said.setdefault(name, {})[way] = process.communicate()[0].strip().split('\n')[-3:]
    with open(f'{out}/orders.json', 'w') as file:
        json.dump(said, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('out')
    parser.add_argument('--tool', default='warpwright')
    parser.add_argument('--orders', action='store_true')
    parser.add_argument('--step', choices=['tune', 'once', 'time'])
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    if options.step:
        import torch
        {'tune': tuned, 'once': once, 'time': timed}[options.step](torch, options.out)
        return
    me = [sys.executable, os.path.abspath(__file__), options.out, '--step']
    subprocess.run([*me, 'tune'], check=True)
    trace = f'{options.out}/trace.json'
    subprocess.run([options.tool, 'trace', '-o', trace, '--', *me, 'once'], check=True, stdout=subprocess.DEVNULL)
    built(options.out, options.tool, trace)
    if options.orders:
        reordered(options.out, options.tool)
    subprocess.run([*me, 'time'], check=True)
    with tarfile.open(f'{options.out}/cubins.tar.xz', 'w:xz') as tar:
        for root, _, files in os.walk(options.out):
            for file in sorted(files):
                if file.endswith('.cubin'):
                    tar.add(f'{root}/{file}', os.path.relpath(f'{root}/{file}', options.out))


if __name__ == '__main__':
    main()
