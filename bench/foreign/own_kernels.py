"""Our own kernels (examples/NAME/NAME.toml) as programs that inplace.py can tune: a module with PTX beside its code, memory as the
launch description fills it at its full size, and the same launch again and again, always on the same data.

    python3 bench/foreign/own_kernels.py FOLDER [LAUNCHES]

FOLDER is what `make` left. Prints a digest of every output. The driver API alone, so that a run is short.
"""
import concurrent.futures
import ctypes
import glob
import hashlib
import json
import mmap
import os
import re
import struct
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import rewrites_device as device  # noqa: E402

EXAMPLES = os.path.join(HERE, '..', '..', 'examples')
FORMATS = {'s8': 'b', 'u8': 'B', 's16': 'h', 'u16': 'H', 's32': 'i', 'u32': 'I', 's64': 'q', 'u64': 'Q', 'f32': 'f', 'f64': 'd'}
LAUNCHES = 60
# What a digest is computed of at a time, by so many threads.
CHUNK, PARTS = 1 << 26, 8
# Dynamic shared memory that no kernel has to ask for, and the attribute by which it asks.
UNASKED_SMEM, MAX_DYNAMIC_SMEM = 48 << 10, 8


def names():
    """Those with a launch description of their own."""
    return sorted(os.path.basename(os.path.dirname(p)) for p in glob.glob(f'{EXAMPLES}/*/*.toml')
                  if os.path.basename(p) == os.path.basename(os.path.dirname(p)) + '.toml')


def number(value, kind, sizes):
    """A number or an expression of a description, as its type has it."""
    from naive import evaluate
    if kind[0] == 'f':
        return float(eval(str(value), {'__builtins__': {}}, dict(sizes)))
    return evaluate(value, sizes)


def packed(arg, sizes):
    """The bytes of what is passed by value, and its alignment; structures as C lays them out."""
    if 'fields' in arg:
        data, largest = b'', 1
        for field in arg['fields']:
            part, align = packed(field, sizes)
            data, largest = data + bytes(-len(data) % align) + part, max(largest, align)
        return data + bytes(-len(data) % largest), largest
    values = arg['value'] if isinstance(arg['value'], list) else [arg['value']]
    form = FORMATS[arg['type']]
    data = struct.pack(f'<{len(values)}{form}', *(number(v, arg['type'], sizes) for v in values))
    return data, arg.get('align', struct.calcsize(form))


def idle(ptx, kernel):
    """The module with a kernel of the same parameters that does nothing."""
    entry = re.search(rf'\.entry\s+{re.escape(kernel)}\s*\([^)]*\)[^{{]*', ptx)
    return f'{ptx[:entry.end()]}{{ ret; }}\n'


def planned(description, contents, sizes):
    """What the program does: all numbers of the launch, and where the contents of its buffers lie."""
    args = []
    for arg in description['args']:
        if 'shape' not in arg:
            args.append({'bytes': packed(arg, sizes)[0].hex()})
            continue
        length = int(re.search(r'\d+$', arg['type'])[0]) // 8
        for extent in arg['shape']:
            length *= number(extent, 'u64', sizes)
        path = f"{contents}/{arg['name']}.npy"
        args.append({'name': arg['name'], 'length': length, 'output': arg.get('output', False), 'file': path if 'init' in arg else None})
    launch = description['launch']
    extents = {key: [*(number(e, 'u32', sizes) for e in launch[key]), 1, 1][:3] for key in ('grid', 'block')}
    return {'kernel': description['kernel'], **extents, 'dynamic_smem': number(launch.get('dynamic_smem', 0), 'u32', sizes), 'args': args}


def make(name, tool, folder, code):
    """Builds an example's program: its module by nvcc, its memory by the emulator, which runs a kernel that leaves it as it is.
    Says why not."""
    toml = f'{EXAMPLES}/{name}/{name}.toml'
    with open(toml, 'rb') as file:
        description = tomllib.load(file)
    source, plain = f"{EXAMPLES}/{name}/{description['source']}", f'{folder}/idle.ptx'
    plan = planned(description, f'{folder}/contents', description['sizes']['full'])
    for words in [['nvcc', '-O3', *code, '-fatbin', source, '-o', f'{folder}/module.fatbin'],
                  ['nvcc', '-O3', '-arch=compute_90', '-ptx', source, '-o', plain]]:
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            return done.stderr[-300:] or 'does not build with this nvcc'
    with open(plain) as file:
        text = idle(file.read(), plan['kernel'])
    with open(plain, 'w') as file:
        file.write(text)
    words = [f'{tool}/warpwright', 'run', plain, '--launch', toml, '--size', 'full', '--save', f'{folder}/contents', '-q']
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        return done.stderr[-300:] or 'its memory could not be made'
    for arg in plan['args']:
        if 'name' in arg and not arg['file']:
            os.remove(f"{folder}/contents/{arg['name']}.npy")
    with open(f'{folder}/plan.json', 'w') as file:
        json.dump(plan, file)
    return None


class Memory:
    """A buffer of the program, and what it holds at first where a launch may change that."""

    def __init__(self, arg):
        self.arg, self.length, self.first = arg, arg['length'], None
        self.place = self.allocated()
        if arg['file']:
            self.fill(arg['file'])
        else:
            device.call('cuMemsetD8_v2', self.place, 0, self.length)
        if arg['output'] and arg['file']:
            self.first = self.allocated()
            self.copy(self.first, self.place)

    def allocated(self):
        place = ctypes.c_uint64()
        device.call('cuMemAlloc_v2', ctypes.byref(place), self.length)
        return place.value

    def fill(self, path):
        """From an .npy file, whose elements are at its end."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        with open(path, 'rb') as file:
            size = os.fstat(file.fileno()).st_size
            read, private, populated = mmap.PROT_READ, mmap.MAP_PRIVATE, mmap.MAP_POPULATE
            at = libc.mmap(None, size, read, private | populated, file.fileno(), 0)
        if at == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), path)
        device.call('cuMemcpyHtoD_v2', self.place, at + size - self.length, self.length)
        libc.munmap(at, size)

    def copy(self, to, source, stream=None):
        device.call('cuMemcpyDtoDAsync_v2', to, source, self.length, stream)

    def restore(self, stream):
        if self.first:
            self.copy(self.place, self.first, stream)

    def digest(self, pinned, pool):
        """Of all parts' digests, in order."""
        total = hashlib.sha256()
        for at in range(0, self.length, CHUNK):
            size = min(CHUNK, self.length - at)
            device.call('cuMemcpyDtoH_v2', pinned, self.place + at, size)
            view = memoryview((ctypes.c_char * size).from_address(pinned.value)).cast('B')
            part = -(-size // PARTS)
            for found in pool.map(lambda n: hashlib.sha256(view[n * part:(n + 1) * part]).digest(), range(PARTS)):
                total.update(found)
        return total.hexdigest()[:32]


def launched(plan, function, buffers, launches):
    """All launches on one stream, each on the first contents."""
    values = [ctypes.c_uint64(b.place) if (b := buffers.get(arg.get('name'))) else ctypes.create_string_buffer(bytes.fromhex(arg['bytes']))
              for arg in plan['args']]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
    stream = ctypes.c_void_p()
    device.call('cuStreamCreate', ctypes.byref(stream), 0)
    if plan['dynamic_smem'] > UNASKED_SMEM:
        device.call('cuFuncSetAttribute', function, MAX_DYNAMIC_SMEM, plan['dynamic_smem'])
    for _ in range(launches):
        for buffer in buffers.values():
            buffer.restore(stream)
        device.call('cuLaunchKernel', function, *plan['grid'], *plan['block'], plan['dynamic_smem'], stream, pointers, None)
    device.call('cuStreamSynchronize', stream)


def main():
    folder, launches = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else LAUNCHES
    with open(f'{folder}/plan.json') as file:
        plan = json.load(file)
    device.begin()
    device.cuda.cuMemcpyDtoDAsync_v2.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p]
    _, function = device.load(Path(f'{folder}/module.fatbin'), plan['kernel'])
    buffers = {arg['name']: Memory(arg) for arg in plan['args'] if 'name' in arg}
    launched(plan, function, buffers, launches)
    pinned = ctypes.c_void_p()
    device.call('cuMemAllocHost_v2', ctypes.byref(pinned), ctypes.c_size_t(CHUNK))
    with concurrent.futures.ThreadPoolExecutor(PARTS) as pool:
        for name, buffer in buffers.items():
            if buffer.arg['output']:
                print(f"{plan['kernel']} {name}: {buffer.digest(pinned, pool)}")


if __name__ == '__main__':
    main()
