"""Does every command do what it promises on kernels that nobody here wrote? Runs the tool over a folder of .cu, .ptx and
.cubin files and counts the answers; without a GPU.

    python3 bench/foreign/survey.py WARPWRIGHT FILES OUT.json [--only TEXT] [--cpu SECONDS] [--jobs N]

A command that is given up after so many seconds of processor time (with the tools it runs), that takes 2 GB, that panics
(exit 4) or that does not do what the command promises is a finding (stderr says more); all else is an answer: ok, or
refused, by exit code and the words of the refusal without names and numbers. OUT.json has names of files and figures alone.
A .cu file may stand beside FILE.cu.flags, the arguments that nvcc needs, one a line.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading

PTX_PASSES = ['allocate', 'allocate(registers=24)', 'canonical', 'dead-code', 'maxnreg(64)', 'maxntid(256)',
              'maxntid(256); minnctapersm(2)', 'pressure', 'print', 'reduce', 'reduce(20)', 'remat', 'remat(20)', 'smem-spilling', 'spill-shared', 'spill-shared(20)',
              'throttle(blocks=4, by=smem)', 'usage-level(3)']
CUBIN_PASSES = ['compact', 'dead-instructions', 'demote(auto)', 'demote(24)', 'schedule', 'spill-to-shared', 'throttle(4)']
BLOCK = ['--block', '256']
DESIGNED = 'no device confirms'   # docs/checker.md
MEMORY = 2 << 20   # KiB


class Answer:
    def __init__(self, code, out, err, seconds, peak):
        self.code, self.out, self.err, self.seconds, self.peak = code, out, err, seconds, peak


class Survey:
    def __init__(self, options):
        self.tool, self.cpu = os.path.abspath(options.warpwright), options.cpu
        self.counts = collections.defaultdict(collections.Counter)
        self.reasons = collections.defaultdict(collections.Counter)
        self.findings, self.slowest, self.largest = [], {}, {}
        self.kernels, self.files = collections.Counter(), collections.Counter()
        self.out, self.lock = options.out, threading.Lock()

    def call(self, name, command, arguments, stdin=None):
        """One run of the tool, held against what every run promises."""
        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (self.cpu, self.cpu + 5))
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = subprocess.Popen([self.tool, *arguments], stdout=out, stderr=err, preexec_fn=limit)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0), err.seek(0)
            answer = Answer(child.returncode, out.read(), err.read().decode(errors='replace'),
                            usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
        self.slowest[command] = max(self.slowest.get(command, (0, '')), (round(answer.seconds, 1), name))
        self.largest[command] = max(self.largest.get(command, (0, '')), (answer.peak >> 10, name))
        if answer.code not in (0, 1, 2, 3, 5):
            self.finding(name, command, 'gave up' if answer.code < 0 else f'exit {answer.code}', answer.err[-400:])
        if answer.peak > MEMORY:
            self.finding(name, command, 'memory', f'{answer.peak >> 10} MiB')
        self.counts[command][str(answer.code)] += 1
        if answer.code:
            text = answer.err or answer.out.decode(errors='replace')
            self.reasons[command][reason(text)] += 1
            if not text.strip():
                self.finding(name, command, 'says nothing', '')
        return answer

    def finding(self, name, command, what, detail):
        self.findings.append({'file': name, 'command': command, 'what': what})
        print(f'{name}: {command}: {what}: {detail.strip()[:300]}', file=sys.stderr, flush=True)

    def document(self, name, command, arguments):
        answer = self.call(name, command, arguments)
        try:
            document = json.loads(answer.out)
            if not str(document.get('schema', '')).startswith('warpwright.'):
                self.finding(name, command, 'no schema', '')
            return document
        except ValueError as error:
            self.finding(name, command, 'no JSON', str(error))

    def expect(self, name, command, arguments):
        answer = self.call(name, command, arguments)
        if answer.code:
            self.finding(name, command, 'does not hold', answer.out.decode(errors='replace')[-300:] + answer.err[-300:])
        return answer

    def same(self, name, command, a, b):
        if not os.path.exists(b) or open(a, 'rb').read() != open(b, 'rb').read():
            self.finding(name, command, 'other bytes', '')

    def passes(self, name, path, names, work, ending):
        for recipe in names:
            out = os.path.join(work, 'pass.' + ending)
            answer = self.call(name, f'pass {recipe}', ['pass', recipe, path, '-o', out, *BLOCK])
            if answer.code == 5 and DESIGNED not in ' '.join(answer.err.split()):
                self.finding(name, f'pass {recipe}', 'not proved', answer.err[-400:])
            if answer.code == 0 and recipe == 'print':
                self.same(name, 'pass print', path, out)
            if answer.code == 0 and kind(out) == ending:
                self.expect(name, f'check of {recipe}', ['check', path, out, *BLOCK])
                os.remove(out)

    def opt(self, name, path, work, ending):
        for block in [[], BLOCK]:
            out, again = os.path.join(work, 'opt.' + ending), os.path.join(work, 'again.' + ending)
            for at in (out, again):
                if os.path.exists(at):
                    os.remove(at)
            document = self.document(name, f'opt{" --block" if block else ""} of {ending}',
                                     ['opt', path, '-o', out, '--json', '--no-database', *block])
            if not document:
                continue
            chosen = {k.get('name'): k.get('recipe_text') for k in document.get('kernels', [])}
            if len(chosen) == 1 and os.path.exists(out):
                recipe, = chosen.values()
                if recipe != 'default':
                    self.expect(name, f'opt --recipe of {ending}', ['opt', path, '-o', again, '--recipe', recipe, *block])
                    for at in (out, again):   # the first line says why
                        text = open(at, 'rb').read() if os.path.exists(at) else b''
                        if text.startswith(b'// warpwright'):
                            open(at, 'wb').write(text.split(b'\n', 1)[1])
                    self.same(name, f'opt --recipe of {ending}', out, again)

    def ptx(self, name, path, work):
        self.expect(name, 'explain of ptx', ['explain', path])
        document = self.document(name, 'explain --json of ptx', ['explain', '--json', path])
        self.kernels['ptx'] += len((document or {}).get('kernels', []))
        self.expect(name, 'check A A of ptx', ['check', path, path])
        self.passes(name, path, PTX_PASSES, work, 'ptx')
        self.opt(name, path, work, 'ptx')

    def cubin(self, name, path, work):
        self.expect(name, 'explain of cubin', ['explain', path])
        document = self.document(name, 'explain --json of cubin', ['explain', '--json', path])
        self.kernels['cubin'] += len((document or {}).get('kernels', []))
        self.expect(name, 'check A A of cubin', ['check', path, path])
        for what in ['roundtrip', 'liveness', 'hazards']:
            self.expect(name, f'sass {what}', ['sass', what, path])
        self.expect(name, 'sass', ['sass', path])
        text, again = os.path.join(work, 'whole.sass'), os.path.join(work, 'whole.cubin')
        with open(text, 'wb') as file:
            file.write(self.expect(name, 'sass --whole', ['sass', '--whole', path]).out)
        self.expect(name, 'sass assemble', ['sass', 'assemble', text, '-o', again])
        self.same(name, 'sass assemble', path, again)
        self.passes(name, path, CUBIN_PASSES, work, 'cubin')
        self.opt(name, path, work, 'cubin')

    def source(self, name, path, work):
        flags = [a for a in open(path + '.flags').read().split('\n') if a] if os.path.exists(path + '.flags') else []
        nvcc = ['--', *flags] if flags else []
        if self.call(name, 'explain of cu', ['explain', path, *nvcc]).code:
            return   # what does not compile says nothing about the tool
        self.call(name, 'launch', ['launch', path, *nvcc])
        out = os.path.join(work, 'opt.cu')
        answer = self.call(name, 'opt to cu', ['opt', path, '-o', out, *nvcc])
        if answer.code == 5:
            self.finding(name, 'opt to cu', 'not checked', answer.err[-400:])
        if os.path.exists(out):
            done = subprocess.run(['nvcc', '-w', '-ptx', '-arch=sm_90', *flags, '-I', os.path.dirname(os.path.abspath(path)), out,
                                   '-o', os.path.join(work, 'opt.ptx')], capture_output=True, text=True, errors='replace')
            self.counts['nvcc of what opt wrote'][str(done.returncode)] += 1
            if done.returncode:
                self.finding(name, 'nvcc of what opt wrote', 'does not compile', done.stderr[-400:])

    def one(self, path):
        work = tempfile.mkdtemp()
        name = os.path.basename(path)
        try:
            {'ptx': self.ptx, 'cubin': self.cubin, 'cu': self.source}[path.rsplit('.', 1)[1]](name, path, work)
        finally:
            shutil.rmtree(work)
            self.files[path.rsplit('.', 1)[1]] += 1
            self.write()

    def write(self):
        with self.lock, open(self.out, 'w') as out:
            json.dump({'files': self.files, 'kernels': self.kernels, 'counts': self.counts, 'reasons': self.reasons,
                       'slowest_cpu_seconds': self.slowest, 'largest_MiB': self.largest, 'findings': self.findings},
                      out, indent=1, sort_keys=True)


def kind(path):
    """What was written: recipes that end in machine code give a cubin."""
    if os.path.exists(path):
        with open(path, 'rb') as file:
            return 'cubin' if file.read(4) == b'\x7fELF' else 'ptx'


def reason(text):
    """The words of a refusal without what is a file's own."""
    lines = [line for line in text.splitlines() if line.strip()]
    line = next((line for line in lines if re.match(r'\s*(error|refused|×)', line)), lines[0] if lines else '')
    line = re.sub(r'^error: (\S+: )?\S+(?= at |: )|(?<=--kernel:).*', '…', line)
    line = re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\S*/\S*|\b_Z\w+", '…', line)
    return re.sub(r'0x[0-9a-f]+|\d+', '#', line).strip()[:200]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('warpwright'), parser.add_argument('files'), parser.add_argument('out')
    parser.add_argument('--only', default=''), parser.add_argument('--cpu', type=int, default=60)
    parser.add_argument('--jobs', type=int, default=2)
    options = parser.parse_args()
    survey = Survey(options)
    paths = sorted(os.path.join(folder, file) for folder, _, files in os.walk(options.files) for file in files
                   if file.rsplit('.', 1)[-1] in ('ptx', 'cubin', 'cu') and options.only in os.path.join(folder, file))
    paths.sort(key=lambda path: hashlib.sha256(path.encode()).digest())
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(survey.one, paths))


if __name__ == '__main__':
    main()
