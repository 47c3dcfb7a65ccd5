"""Kernels of our own for the model: each family spans one thing that decides what registers are worth.

A family is a function of a random generator and gives a kernel: CUDA C, geometry and sizes. The same number gives the
same kernel for ever. A family is a program of its own, `made/FAMILY`; the split goes by its name, as for foreign
programs, and was fixed before anything was measured.

All kernels have the parameters (T* out, const T* a, const T* b, const int* idx, int n, int m, T s); each array has
256 MiB, idx holds random numbers below 2^25, m is a trip count that the compiler does not see.
"""
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../foreign'))
from programs import split  # noqa: E402

BLOCKS = [32, 64, 96, 128, 192, 256, 256, 256, 384, 512, 768, 1024]
SMS = 132
FAMILIES = {}


class Kernel:
    def __init__(self, family, number, type, body, block, grid, m=16, n=1 << 20, dynamic=0, head='', restrict='__restrict__ '):
        self.family, self.number, self.type = family, number, type
        self.program, self.name = f'made/{family}', f'{family}_{number}'
        self.split = split(self.program)
        self.block, self.grid, self.m, self.n, self.dynamic = block, max(1, grid), m, n, dynamic
        parameters = f'T* {restrict}out, const T* {restrict}a, const T* {restrict}b, const int* {restrict}idx'
        self.head = head
        self.source = (f'#define T {type}\nextern "C" __global__ void {self.name}({parameters}, int n, int m, T s) {{\n'
                       f'    int t = blockIdx.x * blockDim.x + threadIdx.x;\n{body}\n}}\n#undef T\n')


def family(function):
    FAMILIES[function.__name__] = function
    return function


def threads_of(r, most=1 << 21, least=1 << 12):
    """Block and grid: from a fraction of a wave to many."""
    block = r.choice(BLOCKS)
    total = 2 ** r.uniform(least.bit_length(), most.bit_length())
    return block, max(1, int(total) // block)


def unroll(r):
    return r.choice(['', '', '#pragma unroll 1', '#pragma unroll 2', '#pragma unroll 4', '#pragma unroll 8'])


def real(r):
    return r.choice(['float', 'float', 'double'])


@family
def horner(r):
    """Arithmetic intensity: streams, and a polynomial of some degree on each element, several at once."""
    block, grid = threads_of(r, 1 << 22)
    degree, width = r.choice([1, 2, 4, 8, 16, 32, 64]), r.choice([1, 1, 2, 4, 8])
    return real(r), f'''
    int size = gridDim.x * blockDim.x;
    for (int j = 0; j < m; ++j) {{
        T x[{width}], y[{width}];
        #pragma unroll
        for (int w = 0; w < {width}; ++w) x[w] = a[(t + (j * {width} + w) * size) & (n - 1)], y[w] = s;
        #pragma unroll
        for (int d = 0; d < {degree}; ++d)
            #pragma unroll
            for (int w = 0; w < {width}; ++w) y[w] = y[w] * x[w] + (T){r.uniform(0.1, 1):.3f};
        #pragma unroll
        for (int w = 0; w < {width}; ++w) out[(t + (j * {width} + w) * size) & (n - 1)] = y[w];
    }}''', block, grid, dict(n=1 << r.choice([20, 22, 24, 25]), m=r.choice([1, 2, 4, 8]))


@family
def chase(r):
    """Dependent loads: chains through a table of some size, several at once."""
    block, grid = threads_of(r, 1 << 19)
    width = r.choice([1, 1, 2, 3, 4, 8])
    step = ' '.join(f'p{w} = idx[(p{w} + {w * 7}) & (n - 1)];' for w in range(width))
    begin = ' '.join(f'int p{w} = (t * 33 + {w * 1001}) & (n - 1);' for w in range(width))
    return 'int', f'''
    {begin}
    {unroll(r)}
    for (int j = 0; j < m; ++j) {{ {step} }}
    out[t] = {' + '.join(f'p{w}' for w in range(width))};''', block, grid, dict(
        n=1 << r.choice([10, 13, 16, 18, 21, 24]), m=r.choice([16, 32, 64]))


@family
def gather(r):
    """A loop over an index list with random reads: what unrolling and loading ahead buy."""
    block, grid = threads_of(r, 1 << 20)
    extra = r.choice([0, 0, 2, 6, 12])
    work = ' '.join(f'v = v * x + (T){0.1 + 0.07 * e:.2f};' for e in range(extra))
    layout = r.choice(['t * m + j', 'j * gridDim.x * blockDim.x + t'])
    second = r.choice(['', ' * b[i & 4095]', ' + b[(i >> 3) & (n - 1)]'])
    return real(r), f'''
    T sum = 0;
    {unroll(r)}
    for (int j = 0; j < m; ++j) {{
        int i = idx[({layout}) & ((1 << 25) - 1)] & (n - 1);
        T x = a[i]{second};
        T v = x; {work}
        sum += v;
    }}
    out[t] = sum;''', block, grid, dict(n=1 << r.choice([12, 16, 20, 23, 25]), m=r.choice([7, 16, 33, 64]))


@family
def rows(r):
    """Sparse rows of unlike lengths: loops whose trip count the data decide, by thread or by warp."""
    block, grid = threads_of(r, 1 << 19)
    by_warp = r.random() < 0.4
    start, step = ('t >> 5', '32') if by_warp else ('t', '1')
    first = '(threadIdx.x & 31)' if by_warp else '0'
    tail = '''
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    if ((threadIdx.x & 31) == 0) out[row] = sum;''' if by_warp else 'out[row] = sum;'
    return real(r), f'''
    int row = {start};
    int begin = (row * {r.choice([17, 32, 40])}) & (n - 1), length = idx[row & 65535] & {r.choice([15, 31, 63, 127])};
    T sum = 0;
    {unroll(r)}
    for (int j = {first}; j < length; j += {step}) sum += a[begin + j] * b[idx[begin + j] & {r.choice([1023, 65535, (1 << 22) - 1])}];
    {tail}''', block, grid, dict(n=1 << r.choice([18, 22, 24]))


@family
def stencil(r):
    """A column of a 3-D stencil with its planes in registers."""
    radius = r.choice([1, 1, 2, 3, 4, 6])
    nx = r.choice([128, 256, 512])
    x, y = r.choice([(32, 4), (32, 8), (64, 4), (32, 16), (16, 16)])
    depth = 2 * radius + 1
    around = ' + '.join(f'(T){0.3 / (d + 1):.3f} * (c[-{d}] + c[{d}] + c[-{d} * nx] + c[{d} * nx])' for d in range(1, radius + 1))
    column = ' + '.join(f'(T){0.2 / (abs(d - radius) + 1):.3f} * q[{d}]' for d in range(depth))
    grid = (nx // x) * r.choice([8, 16, 64])
    return real(r), f'''
    const int nx = {nx}, plane = {nx} * 64;
    int x = threadIdx.x % {x} + (blockIdx.x % {nx // x}) * {x};
    int y = threadIdx.x / {x} + (blockIdx.x / {nx // x} * {y}) % 64;
    const T* p = a + 8 * plane + y * nx + x + ((blockIdx.x >> 6) & 7) * plane;
    T q[{depth}];
    #pragma unroll
    for (int d = 0; d < {depth - 1}; ++d) q[d] = p[(d - {radius}) * plane];
    {unroll(r)}
    for (int k = 0; k < m; ++k) {{
        const T* c = p + k * plane;
        q[{depth - 1}] = c[{radius} * plane];
        out[(c - a) & (n - 1)] = {column} + {around};
        #pragma unroll
        for (int d = 0; d < {depth - 1}; ++d) q[d] = q[d + 1];
    }}''', x * y, grid, dict(m=r.choice([8, 32, 64]), n=1 << 24)


@family
def tile(r):
    """Matrix product from shared tiles, each thread with a patch of the result."""
    rows_, columns = r.choice([(1, 1), (2, 2), (4, 2), (4, 4), (8, 4), (8, 8), (8, 8), (12, 8)])
    side, deep = r.choice([8, 16, 16]), r.choice([8, 16])
    height, width = side * rows_, side * columns
    block = side * side
    pad = r.choice([0, 1])
    return real(r), f'''
    __shared__ T x[{deep}][{height + pad}], y[{deep}][{width + pad}];
    T c[{rows_}][{columns}] = {{}};
    int tx = threadIdx.x % {side}, ty = threadIdx.x / {side};
    const T* pa = a + (blockIdx.x & 63) * {height * 64}, *pb = b + (blockIdx.x >> 6 & 63) * {width * 64};
    for (int k = 0; k < m; ++k) {{
        for (int e = threadIdx.x; e < {deep * height}; e += {block}) x[e / {height}][e % {height}] = pa[(k * {deep * height} + e) & (n - 1)];
        for (int e = threadIdx.x; e < {deep * width}; e += {block}) y[e / {width}][e % {width}] = pb[(k * {deep * width} + e) & (n - 1)];
        __syncthreads();
        {r.choice(['#pragma unroll', '#pragma unroll', '#pragma unroll 2', '#pragma unroll 1'])}
        for (int d = 0; d < {deep}; ++d)
            #pragma unroll
            for (int i = 0; i < {rows_}; ++i)
                #pragma unroll
                for (int j = 0; j < {columns}; ++j) c[i][j] += x[d][ty{f' + {side} * i' if rows_ > 1 else ''}] * y[d][tx{f' + {side} * j' if columns > 1 else ''}];
        __syncthreads();
    }}
    #pragma unroll
    for (int i = 0; i < {rows_}; ++i)
        #pragma unroll
        for (int j = 0; j < {columns}; ++j) out[(blockIdx.x * {height * width} + (ty + {side} * i) * {width} + tx + {side} * j) & ((1 << 24) - 1)] = c[i][j];''', \
        block, r.choice([66, 132, 264, 528, 1056, 3000]), dict(m=r.choice([8, 16, 48]), n=1 << 22)


@family
def reduction(r):
    """Grid-stride sums and a tree in shared memory, barriers between."""
    block, grid = r.choice([64, 128, 256, 512, 1024]), r.choice([33, 132, 264, 1056, 4000])
    terms = r.choice([1, 2, 4, 7])
    expression = ' + '.join(f'a[(i + {7919 * k}) & (n - 1)] * (T){1 + k * 0.5}' for k in range(terms))
    return real(r), f'''
    __shared__ T part[{block}];
    T sum = 0;
    {unroll(r)}
    for (int j = 0; j < m; ++j) {{ int i = t + j * gridDim.x * {block}; sum += {expression}; }}
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int w = {block} / 2; w > 0; w >>= 1) {{
        if (threadIdx.x < w) part[threadIdx.x] += part[threadIdx.x + w];
        __syncthreads();
    }}
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];''', block, grid, dict(m=r.choice([4, 16, 64]), n=1 << r.choice([16, 20, 24, 25]))


@family
def histogram(r):
    """Atomics, to shared bins or straight to memory."""
    block, grid = threads_of(r, 1 << 19)
    bins = r.choice([64, 256, 2048])
    if r.random() < 0.5:
        body = f'''
    __shared__ int bin[{bins}];
    for (int i = threadIdx.x; i < {bins}; i += blockDim.x) bin[i] = 0;
    __syncthreads();
    {unroll(r)}
    for (int j = 0; j < m; ++j) atomicAdd(&bin[(idx[(t + j * gridDim.x * blockDim.x) & (n - 1)] >> {r.choice([0, 3, 9])}) & {bins - 1}], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < {bins}; i += blockDim.x) atomicAdd(&out[i], bin[i]);'''
    else:
        body = f'''
    {unroll(r)}
    for (int j = 0; j < m; ++j) {{
        int v = idx[(t + j * gridDim.x * blockDim.x) & (n - 1)];
        {'v = v * 1664525 + 1013904223; ' * r.choice([0, 1, 8])}
        atomicAdd(&out[(v >> 2) & {r.choice([255, 65535, (1 << 22) - 1])}], v & 7);
    }}'''
    return 'int', body, block, grid, dict(m=r.choice([4, 16]), n=1 << 24)


@family
def strided(r):
    """Loads and stores whose neighbours lie apart: from one sector a warp to thirty-two."""
    block, grid = threads_of(r, 1 << 20)
    stride = r.choice([1, 2, 3, 4, 8, 16, 32, 33])
    width = r.choice([1, 2, 4])
    names = ' + '.join(f'a[((t * {stride} + {w}) + j * {stride} * gridDim.x * blockDim.x) & (n - 1)]' for w in range(width))
    return real(r), f'''
    T sum = 0;
    {unroll(r)}
    for (int j = 0; j < m; ++j) {{
        T v = {names};
        sum += v * s;
        {'out[((t * %d) + j * gridDim.x * blockDim.x) & (n - 1)] = sum;' % stride if r.random() < 0.4 else ''}
    }}
    out[t] = sum;''', block, grid, dict(m=r.choice([4, 8, 24]), n=1 << r.choice([18, 22, 24, 25]))


@family
def banks(r):
    """Shared memory with and without conflicts."""
    block = r.choice([64, 128, 256, 512, 1024])
    stride, offset = r.choice([1, 1, 2, 3, 4, 8, 16, 32]), r.choice([1, 5, 17])
    words = r.choice([1024, 2048, 4096])
    ops = r.choice([1, 2, 4, 8])
    read = ' '.join(f'v{w} += x[(i + {w * 32 * stride}) & {words - 1}];' for w in range(ops))
    return r.choice(['float', 'int', 'double']), f'''
    __shared__ T x[{words}];
    for (int e = threadIdx.x; e < {words}; e += {block}) x[e] = a[(e + blockIdx.x * {words}) & (n - 1)];
    __syncthreads();
    T {', '.join(f'v{w} = 0' for w in range(ops))};
    int i = threadIdx.x * {stride};
    {unroll(r)}
    for (int j = 0; j < m; ++j) {{
        {read}
        i += {offset};
        {'__syncthreads(); x[threadIdx.x] = v0; __syncthreads();' if r.random() < 0.4 else ''}
    }}
    out[t] = {' + '.join(f'v{w}' for w in range(ops))};''', block, r.choice([100, 132, 528, 2000]), dict(m=r.choice([32, 128]), n=1 << 22)


@family
def escape(r):
    """Divergence: iterations that each thread ends at its own time."""
    block, grid = threads_of(r, 1 << 20)
    width = r.choice([1, 1, 2, 3])
    state = ' '.join(f'T x{w} = 0, y{w} = 0, u{w} = (t % 1021) * (T)0.0025 - (T)1.9 + (T){0.01 * w}, v{w} = (t / 1021 % 997) * (T)0.002 - 1;' for w in range(width))
    step = ' '.join(f'if (x{w} * x{w} + y{w} * y{w} < 4) {{ T z = x{w} * x{w} - y{w} * y{w} + u{w}; y{w} = 2 * x{w} * y{w} + v{w}; x{w} = z; ++k; }}' for w in range(width))
    return real(r), f'''
    int k = 0; {state}
    {unroll(r)}
    for (int j = 0; j < m; ++j) {{ {step} {'else break;' if width == 1 else ''} }}
    out[t] = k;''', block, grid, dict(m=r.choice([32, 100, 400]))


@family
def branches(r):
    """A switch over kinds of work, by data or by warp."""
    block, grid = threads_of(r, 1 << 20)
    cases = []
    for c in range(r.choice([2, 4, 6])):
        length = r.choice([2, 8, 20])
        cases.append(f'case {c}: ' + ' '.join(f'v = v * (T){r.uniform(0.5, 1.5):.3f} + x{r.randrange(6)};' for _ in range(length)) + ' break;')
    kind = r.choice(['idx[(t + j) & 65535]', '(t >> 5) + j', 'j'])
    loads = ' '.join(f'T x{w} = a[(t + j * 4096 + {w * 65536}) & (n - 1)];' for w in range(6))
    return real(r), f'''
    T v = s;
    {unroll(r)}
    for (int j = 0; j < m; ++j) {{
        {loads}
        switch (({kind}) % {len(cases)}) {{ {' '.join(cases)} }}
    }}
    out[t] = v;''', block, grid, dict(m=r.choice([4, 12, 32]), n=1 << r.choice([18, 22, 24]))


@family
def bodies(r):
    """All pairs from shared tiles, with reciprocal roots; several bodies a thread."""
    block = r.choice([64, 128, 256, 512])
    width = r.choice([1, 1, 2, 4, 6])
    begin = ' '.join(f'T x{w} = a[t + {w}], y{w} = a[t + {w + 64}], z{w} = b[t + {w}], f{w} = 0, g{w} = 0, h{w} = 0;' for w in range(width))
    step = ' '.join(f'{{ T dx = p - x{w}, dy = q - y{w}, dz = o - z{w}; T i = rsqrt{{F}}(dx * dx + dy * dy + dz * dz + s); i = i * i * i; f{w} += dx * i; g{w} += dy * i; h{w} += dz * i; }}' for w in range(width))
    type = r.choice(['float', 'float', 'float', 'double'])
    step = step.replace('{F}', 'f' if type == 'float' else '')
    return type, f'''
    __shared__ T tile[3 * {block}];
    {begin}
    for (int k = 0; k < m; ++k) {{
        __syncthreads();
        for (int e = threadIdx.x; e < {3 * block}; e += {block}) tile[e] = b[k * {3 * block} + e];
        __syncthreads();
        {r.choice(['', '#pragma unroll 4', '#pragma unroll 16', '#pragma unroll 1'])}
        for (int e = 0; e < {block}; ++e) {{ T p = tile[3 * e], q = tile[3 * e + 1], o = tile[3 * e + 2]; {step} }}
    }}
    out[t] = {' + '.join(f'f{w} + g{w} + h{w}' for w in range(width))};''', block, r.choice([20, 66, 132, 300, 800]), dict(m=r.choice([2, 6]))


@family
def solve(r):
    """A small dense system in each thread's registers: eliminated in place."""
    size = r.choice([4, 5, 6, 7, 8, 9, 10, 12, 14])
    block, grid = r.choice([32, 64, 128, 256]), r.choice([60, 132, 500, 2000])
    return r.choice(['float', 'double']), f'''
    T x[{size}][{size}], v[{size}];
    #pragma unroll
    for (int i = 0; i < {size}; ++i) {{
        v[i] = b[(t + i * 65536) & (n - 1)];
        #pragma unroll
        for (int j = 0; j < {size}; ++j) x[i][j] = a[(t + (i * {size} + j) * 65536) & (n - 1)] + (i == j ? 4 : 0);
    }}
    for (int k = 0; k < m; ++k) {{
        #pragma unroll
        for (int p = 0; p < {size}; ++p) {{
            T inverse = 1 / x[p][p];
            #pragma unroll
            for (int i = p + 1; i < {size}; ++i) {{
                T f = x[i][p] * inverse;
                #pragma unroll
                for (int j = p + 1; j < {size}; ++j) x[i][j] -= f * x[p][j];
                v[i] -= f * v[p];
            }}
        }}
        #pragma unroll
        for (int i = 0; i < {size}; ++i) x[i][i] += s + v[i];
    }}
    T sum = 0;
    #pragma unroll
    for (int i = 0; i < {size}; ++i) sum += v[i] * x[i][{size} - 1];
    out[t] = sum;''', block, grid, dict(m=r.choice([1, 1, 2, 4]), n=1 << 22)


@family
def accumulators(r):
    """Many running sums that live across a loop: 20 to 400 registers needed."""
    count = r.choice([12, 20, 28, 40, 56, 72, 96, 120, 150, 200])
    type = real(r)
    if type == 'double':
        count = count * 2 // 3
    mix = r.choice([1, 3, 5])
    block, grid = r.choice(BLOCKS[:9]), r.choice([50, 132, 264, 1000])
    return type, f'''
    T c[{count}];
    #pragma unroll
    for (int i = 0; i < {count}; ++i) c[i] = a[(t + i * 4096) & (n - 1)];
    #pragma unroll 1
    for (int k = 0; k < m; ++k) {{
        T x = a[(t + k * 8192) & (n - 1)], y = b[(t ^ k) & (n - 1)];
        #pragma unroll
        for (int i = 0; i < {count}; ++i) c[i] = c[i] * x + c[(i + {mix}) % {count}] * y;
    }}
    T sum = 0;
    #pragma unroll
    for (int i = 0; i < {count}; ++i) sum += c[i] * (T)(i + 1);
    out[t] = sum;''', block, grid, dict(m=r.choice([4, 16, 64]), n=1 << 22)


@family
def butterflies(r):
    """A transform of 8 to 64 points in registers, with stages in shared memory."""
    points = r.choice([8, 16, 16, 32, 32])
    type = r.choice(['float', 'float', 'double'])
    block = r.choice([64, 128, 256])
    exchange = r.random() < 0.6
    return type, f'''
    {f'__shared__ T room[{points * min(block, 6144 // points)}];' if exchange else ''}
    T x[{points}], y[{points}];
    #pragma unroll
    for (int i = 0; i < {points}; ++i) x[i] = a[(t + i * 65536) & (n - 1)], y[i] = b[(t + i * 65536) & (n - 1)];
    for (int k = 0; k < m; ++k) {{
        #pragma unroll
        for (int h = {points} / 2; h; h >>= 1)
            #pragma unroll
            for (int i = 0; i < {points}; ++i)
                if ((i & h) == 0) {{
                    T p = x[i + h], q = y[i + h], w = (T)(0.9 - 0.01 * i), v = (T)(0.4 + 0.01 * h);
                    T u = p * w - q * v, z = p * v + q * w;
                    x[i + h] = x[i] - u; y[i + h] = y[i] - z; x[i] += u; y[i] += z;
                }}
        {f"""__syncthreads();
        #pragma unroll
        for (int i = 0; i < {points}; ++i) room[(threadIdx.x * {points} + i) % {points * min(block, 6144 // points)}] = x[i];
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < {points}; ++i) x[i] = room[(threadIdx.x + i * {block}) % {points * min(block, 6144 // points)}];""" if exchange else ''}
    }}
    #pragma unroll
    for (int i = 0; i < {points}; ++i) out[(t + i * 65536) & (n - 1)] = x[i] + y[i];''', block, r.choice([100, 264, 1500]), \
        dict(m=r.choice([1, 1, 2, 6]), n=1 << 24)


@family
def expressions(r):
    """Straight-line expressions over many inputs, as chemistry and physics codes write them: some roots and exponentials."""
    inputs, nodes, outputs = r.choice([6, 12, 20, 30, 45]), r.choice([40, 100, 250, 500]), r.choice([1, 4, 10, 20])
    type = real(r)
    end = 'f' if type == 'float' else ''
    special = r.choice([0, 0.02, 0.1])
    lines = [f'T v{i} = a[(t + {i} * 131072 + j * 777) & (n - 1)];' for i in range(inputs)]
    for i in range(inputs, inputs + nodes):
        near = r.random() < 0.6
        x, y, z = (r.randrange(max(0, i - 12) if near else 0, i) for _ in range(3))
        if r.random() < special:
            f = r.choice(['exp', 'log', 'sqrt'])
            lines.append(f'T v{i} = {f}{end}({"-" if f == "exp" else ""}fabs{end}(v{x}) + (T)0.5);')
        elif r.random() < 0.03:
            lines.append(f'T v{i} = v{x} / (v{y} + (T)1.5);')
        else:
            lines.append(f'T v{i} = v{x} * v{y} {r.choice("+-")} v{z};')
    for o in range(outputs):
        lines.append(f'out[(t + {o} * 131072 + j * 333) & (n - 1)] = v{inputs + nodes - 1 - o};')
    block, grid = threads_of(r, 1 << 19)
    body = '\n        '.join(lines)
    return type, f'''
    #pragma unroll 1
    for (int j = 0; j < m; ++j) {{
        {body}
    }}''', block, grid, dict(m=r.choice([1, 1, 3, 8]), n=1 << r.choice([20, 22, 24]))


@family
def mixing(r):
    """Integer rounds: hashes and ciphers, with tables in shared memory or without."""
    words, rounds = r.choice([4, 8, 16, 32, 48]), r.choice([4, 10, 20])
    tables = r.random() < 0.4
    block, grid = threads_of(r, 1 << 19)
    look = f'^ table[(x[(i + 5) % {words}] >> 7) & 255]' if tables else ''
    return 'int', f'''
    {'__shared__ int table[256]; for (int i = threadIdx.x; i < 256; i += blockDim.x) table[i] = idx[i]; __syncthreads();' if tables else ''}
    unsigned x[{words}];
    #pragma unroll
    for (int i = 0; i < {words}; ++i) x[i] = a[(t + i * 65536) & (n - 1)];
    {r.choice(['#pragma unroll', '#pragma unroll 1', '#pragma unroll 2'])}
    for (int k = 0; k < {rounds}; ++k)
        #pragma unroll
        for (int i = 0; i < {words}; ++i) x[i] = __funnelshift_l(x[i] + x[(i + 1) % {words}], x[i], {r.choice([7, 11, 13])}) * 5u + (x[(i + 3) % {words}] {r.choice('&|^')} k) {look};
    unsigned h = 0;
    #pragma unroll
    for (int i = 0; i < {words}; ++i) h = h * 31 + x[i];
    out[t] = h;''', block, grid, dict(n=1 << 22)


@family
def network(r):
    """Sorting in registers, then merging by halves in shared memory."""
    keys = r.choice([4, 8, 16, 32])
    block = r.choice([64, 128, 256, 512])
    return r.choice(['float', 'int']), f'''
    __shared__ T room[{block}];
    T x[{keys}];
    #pragma unroll
    for (int i = 0; i < {keys}; ++i) x[i] = a[(t + i * 262144) & (n - 1)];
    #pragma unroll
    for (int size = 2; size <= {keys}; size <<= 1)
        #pragma unroll
        for (int h = size >> 1; h; h >>= 1)
            #pragma unroll
            for (int i = 0; i < {keys}; ++i)
                if ((i & h) == 0) {{ T p = x[i], q = x[i | h]; bool up = (i & size) == 0; x[i] = (p < q) == up ? p : q; x[i | h] = (p < q) == up ? q : p; }}
    for (int h = 1; h < {block}; h <<= 1) {{
        room[threadIdx.x] = x[0]; __syncthreads();
        T other = room[threadIdx.x ^ h]; __syncthreads();
        x[0] = (threadIdx.x & h) == 0 ? (x[0] < other ? x[0] : other) : (x[0] < other ? other : x[0]);
    }}
    #pragma unroll
    for (int i = 0; i < {keys}; ++i) out[(t + i * 262144) & (n - 1)] = x[i];''', block, r.choice([132, 600, 3000]), dict(n=1 << 24)


@family
def wavefront(r):
    """Dynamic programming along diagonals: a barrier for every step."""
    block, width = r.choice([32, 64, 128, 256]), r.choice([1, 2, 4, 8])
    return r.choice(['int', 'float']), f'''
    __shared__ T edge[{block} + 1];
    T up[{width}];
    #pragma unroll
    for (int w = 0; w < {width}; ++w) up[w] = 0;
    for (int e = threadIdx.x; e <= {block}; e += {block}) edge[e] = 0;
    T best = 0, corner = 0;
    for (int j = 0; j < m; ++j) {{
        __syncthreads();
        T left = edge[threadIdx.x];
        T symbol = a[(blockIdx.x * m + j - (int)threadIdx.x) & (n - 1)];
        __syncthreads();
        T from = left, diagonal = corner;
        corner = left;
        #pragma unroll
        for (int w = 0; w < {width}; ++w) {{
            T score = diagonal + (symbol == b[w] ? (T)3 : (T)-1);
            T best_here = up[w] > from ? up[w] - 2 : from - 2;
            score = score > best_here ? score : best_here; score = score > 0 ? score : 0;
            diagonal = up[w]; up[w] = score; from = score; best = best > score ? best : score;
        }}
        edge[threadIdx.x + 1] = from;
    }}
    out[t] = best;''', block, r.choice([40, 132, 500, 2000]), dict(m=r.choice([64, 256]), n=1 << 20)


@family
def tensor(r):
    """Products on the tensor cores from shared tiles."""
    down, across, deep = r.choice([1, 2, 2, 4]), r.choice([1, 2, 4, 4]), r.choice([1, 2])
    warps = r.choice([1, 2, 4, 8])
    head = '#include <cuda_fp16.h>\n#include <mma.h>\nusing namespace nvcuda;'
    return 'half', f'''
    __shared__ half x[{warps}][{down * 256 * deep}], y[{across * 256 * deep}];
    int warp = threadIdx.x / 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, half> c[{down}][{across}];
    for (int i = 0; i < {down}; ++i) for (int j = 0; j < {across}; ++j) wmma::fill_fragment(c[i][j], s);
    for (int k = 0; k < m; ++k) {{
        for (int e = threadIdx.x % 32; e < {down * 256 * deep}; e += 32) x[warp][e] = a[((blockIdx.x * {warps} + warp) * 4096 + k * {down * 256 * deep} + e) & (n - 1)];
        for (int e = threadIdx.x; e < {across * 256 * deep}; e += {32 * warps}) y[e] = b[(k * {across * 256 * deep} + e) & (n - 1)];
        __syncthreads();
        #pragma unroll
        for (int d = 0; d < {deep}; ++d) {{
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> p[{down}];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> q[{across}];
            #pragma unroll
            for (int i = 0; i < {down}; ++i) wmma::load_matrix_sync(p[i], x[warp] + (d * {down} + i) * 256, 16);
            #pragma unroll
            for (int j = 0; j < {across}; ++j) wmma::load_matrix_sync(q[j], y + (d * {across} + j) * 256, 16);
            #pragma unroll
            for (int i = 0; i < {down}; ++i)
                #pragma unroll
                for (int j = 0; j < {across}; ++j) wmma::mma_sync(c[i][j], p[i], q[j], c[i][j]);
        }}
        __syncthreads();
    }}
    #pragma unroll
    for (int i = 0; i < {down}; ++i)
        #pragma unroll
        for (int j = 0; j < {across}; ++j) wmma::store_matrix_sync(out + (((t / 32) * {down * across} + i * {across} + j) * 256 & ((1 << 24) - 1)), c[i][j], 16, wmma::mem_row_major);''', \
        32 * warps, r.choice([66, 132, 528, 2000]), dict(m=r.choice([8, 32]), n=1 << 22, head=head)


@family
def paths(r):
    """Random paths: a generator of random numbers, exponentials and roots in a loop."""
    width = r.choice([1, 1, 2, 4])
    type = real(r)
    f = 'f' if type == 'float' else ''
    state = ' '.join(f'unsigned s{w} = t * 2654435761u + {w}; T p{w} = s;' for w in range(width))
    step = ' '.join(f'''s{w} ^= s{w} << 13; s{w} ^= s{w} >> 17; s{w} ^= s{w} << 5;
        {{ T u = (s{w} >> 8) * (T)5.96e-8 + (T)1e-7; s{w} = s{w} * 1664525u + 1013904223u; T v = (s{w} >> 8) * (T)5.96e-8;
        p{w} *= exp{f}((T)0.01 * sqrt{f}(-2 * log{f}(u)) * {r.choice([f'cos{f}((T)6.2831853 * v)', f'v', f'sin{f}(v)'])}); }}''' for w in range(width))
    block, grid = threads_of(r, 1 << 18)
    return type, f'''
    {state} T sum = 0;
    {unroll(r)}
    for (int j = 0; j < m; ++j) {{
        {step}
        sum += {' + '.join(f'(p{w} > s ? p{w} - s : 0)' for w in range(width))};
    }}
    out[t] = sum;''', block, grid, dict(m=r.choice([16, 64]))


@family
def scans(r):
    """Prefix sums by shuffles, several elements a thread."""
    per = r.choice([1, 2, 4, 8, 16])
    block = r.choice([128, 256, 512, 1024])
    return r.choice(['float', 'int', 'double']), f'''
    __shared__ T warps[32];
    T carry = 0;
    for (int j = 0; j < m; ++j) {{
        T x[{per}];
        int at = ((blockIdx.x * m + j) * {block} + threadIdx.x) * {per};
        #pragma unroll
        for (int i = 0; i < {per}; ++i) x[i] = a[(at + i) & (n - 1)];
        #pragma unroll
        for (int i = 1; i < {per}; ++i) x[i] += x[i - 1];
        T total = x[{per} - 1];
        #pragma unroll
        for (int d = 1; d < 32; d <<= 1) {{ T o = __shfl_up_sync(~0u, total, d); if ((threadIdx.x & 31) >= d) total += o; }}
        if ((threadIdx.x & 31) == 31) warps[threadIdx.x / 32] = total;
        __syncthreads();
        T before = carry;
        for (int w = 0; w < (int)threadIdx.x / 32; ++w) before += warps[w];
        for (int w = 0; w < {block} / 32; ++w) carry += warps[w];
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < {per}; ++i) out[(at + i) & (n - 1)] = x[i] + before + total;
    }}''', block, r.choice([66, 132, 528, 2000]), dict(m=r.choice([2, 8]), n=1 << r.choice([20, 24]))


@family
def search(r):
    """Binary searches in a sorted table and interpolation between what stands there: dependent random reads."""
    block, grid = threads_of(r, 1 << 20)
    fields = r.choice([1, 3, 5, 6])
    read = ' '.join(f'e{i} += (1 - f) * b[(low * {fields} + {i}) & (n - 1)] + f * b[((low + 1) * {fields} + {i}) & (n - 1)];' for i in range(fields))
    return real(r), f'''
    T {', '.join(f'e{i} = 0' for i in range(fields))};
    {unroll(r)}
    for (int j = 0; j < m; ++j) {{
        int key = idx[(t * 13 + j * 65537) & ((1 << 25) - 1)] & (n - 1);
        int low = 0, length = n;
        while (length > 1) {{ int half_ = length >> 1; low = (low + half_ + (a[low + half_] > 8 ? 1 : 0)) <= key ? low + half_ : low; length -= half_; }}
        T f = a[low] * (T)0.5;
        {read}
    }}
    out[t] = {' + '.join(f'e{i}' for i in range(fields))};''', block, grid, dict(m=r.choice([2, 5, 12]), n=1 << r.choice([10, 14, 18, 22]))


@family
def march(r):
    """Rays through spheres: loops that end early, roots, and much state that lives on."""
    count, bounces = r.choice([4, 8, 16]), r.choice([1, 2, 3])
    type = r.choice(['float', 'float', 'double'])
    f = 'f' if type == 'float' else ''
    block, grid = threads_of(r, 1 << 18)
    return type, f'''
    T ox = (t & 1023) * (T)0.001, oy = (t >> 10) * (T)0.001, oz = -4, dx = ox - (T)0.5, dy = oy - (T)0.5, dz = 1, colour = 0, weight = 1;
    for (int bounce = 0; bounce < {bounces}; ++bounce) {{
        T near = 1e9; int hit = -1;
        {r.choice(['', '#pragma unroll', '#pragma unroll 1'])}
        for (int k = 0; k < {count}; ++k) {{
            T px = ox - a[4 * k], py = oy - a[4 * k + 1], pz = oz - a[4 * k + 2], radius = a[4 * k + 3];
            T q = px * dx + py * dy + pz * dz, c = px * px + py * py + pz * pz - radius * radius, d = q * q - c;
            if (d > 0) {{ T w = -q - sqrt{f}(d); if (w > (T)1e-3 && w < near) near = w, hit = k; }}
        }}
        if (hit < 0) {{ colour += weight * (T)0.3; break; }}
        ox += near * dx; oy += near * dy; oz += near * dz;
        T nx = (ox - a[4 * hit]) * s, ny = (oy - a[4 * hit + 1]) * s, nz = (oz - a[4 * hit + 2]) * s;
        T along = 2 * (nx * dx + ny * dy + nz * dz);
        dx -= along * nx; dy -= along * ny; dz -= along * nz; weight *= (T)0.7; colour += weight * nz;
    }}
    out[t] = colour;''', block, grid, dict()


@family
def lattice(r):
    """Lattice Boltzmann: nineteen distributions in, a collision, nineteen out."""
    count = r.choice([9, 15, 19, 19, 27])
    type = r.choice(['float', 'double'])
    block, grid = r.choice([64, 128, 256, 512]), r.choice([132, 500, 2000, 6000])
    return type, f'''
    T f[{count}], rho = 0, u = 0, v = 0;
    #pragma unroll
    for (int i = 0; i < {count}; ++i) {{
        f[i] = a[(t + i * 1048576 + (i % 3 - 1) * 128) & (n - 1)];
        rho += f[i]; u += f[i] * (T)(i % 3 - 1); v += f[i] * (T)(i / 3 % 3 - 1);
    }}
    T inverse = 1 / rho; u *= inverse; v *= inverse;
    T square = (T)1.5 * (u * u + v * v);
    #pragma unroll
    for (int i = 0; i < {count}; ++i) {{
        T c = 3 * (u * (T)(i % 3 - 1) + v * (T)(i / 3 % 3 - 1));
        out[(t + i * 1048576) & (n - 1)] = f[i] + s * (rho * (T){1 / count:.4f} * (1 + c + (T)0.5 * c * c - square) - f[i]);
    }}''', block, grid, dict(n=1 << 25 if type == 'float' else 1 << 24)


@family
def stack(r):
    """Arrays that threads index at run time: local memory that is no spill."""
    size = r.choice([8, 16, 32, 64])
    block, grid = threads_of(r, 1 << 18)
    live = r.choice([0, 8, 24])
    return real(r), f'''
    T pile[{size}];
    T {', '.join(['z = 0'] + [f'k{i} = a[(t + {i} * 4096) & (n - 1)]' for i in range(live)])};
    for (int i = 0; i < {size}; ++i) pile[i] = a[(t + i * 1024) & (n - 1)];
    int top = t & {size - 1};
    {unroll(r)}
    for (int j = 0; j < m; ++j) {{
        top = (top * 5 + idx[(t + j * 512) & 65535]) & {size - 1};
        z += pile[top]; pile[(top + 3) & {size - 1}] = z * s;
        {' '.join(f'k{i} = k{i} * z + s;' for i in range(live))}
    }}
    out[t] = z {' '.join(f'+ k{i}' for i in range(live))};''', block, grid, dict(m=r.choice([16, 48]), n=1 << 22)


@family
def norm(r):
    """Rows normalised by a block each: two passes, wide loads, a sum over the block."""
    block = r.choice([128, 256, 512, 1024])
    per = r.choice([1, 2, 4, 8, 16])
    keep = r.random() < 0.6
    load = f'x[i]' if keep else f'a[(row + i * {block} + threadIdx.x) & (n - 1)]'
    return r.choice(['float', 'float', 'double']), f'''
    __shared__ T part[32];
    int row = blockIdx.x * {block * per};
    T x[{per}], sum = 0, square = 0;
    #pragma unroll
    for (int i = 0; i < {per}; ++i) {{ x[i] = a[(row + i * {block} + threadIdx.x) & (n - 1)]; sum += x[i]; square += x[i] * x[i]; }}
    #pragma unroll
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d), square += __shfl_xor_sync(~0u, square, d);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x / 32] = square - sum * sum * (T)0.001;
    __syncthreads();
    T all = 0;
    for (int w = 0; w < {block // 32}; ++w) all += part[w];
    T scale = 1 / (all + s);
    #pragma unroll
    for (int i = 0; i < {per}; ++i) out[(row + i * {block} + threadIdx.x) & (n - 1)] = {load} * scale * b[(i * {block} + threadIdx.x) & 16383];''', \
        block, r.choice([100, 264, 1000, 6000]), dict(n=1 << r.choice([22, 25]))


@family
def filters(r):
    """Direct convolution, weights in constant memory, several points a thread."""
    side, per = r.choice([3, 5, 7, 9]), r.choice([1, 2, 4, 8])
    head = f'__constant__ float weight[{side * side}] = {{ {", ".join("%.3ff" % r.random() for _ in range(side * side))} }};'
    block, grid = threads_of(r, 1 << 19)
    return real(r), f'''
    T sum[{per}] = {{}};
    int base = t * {per} {r.choice(['', '+ 4096 * (t >> 10)'])};
    {r.choice(['#pragma unroll', '#pragma unroll 1', ''])}
    for (int y = 0; y < {side}; ++y) {{
        T x[{side + per - 1}];
        #pragma unroll
        for (int i = 0; i < {side + per - 1}; ++i) x[i] = a[(base + y * 2048 + i) & (n - 1)];
        #pragma unroll
        for (int i = 0; i < {side}; ++i)
            #pragma unroll
            for (int p = 0; p < {per}; ++p) sum[p] += (T)weight[y * {side} + i] * x[i + p];
    }}
    #pragma unroll
    for (int p = 0; p < {per}; ++p) out[(base + p) & (n - 1)] = sum[p];''', block, grid, dict(n=1 << 24, head=head)


@family
def pipeline(r):
    """Loads for the next round issued before the present one is worked on, by hand."""
    width, work = r.choice([1, 2, 4, 8, 12]), r.choice([2, 8, 24])
    block, grid = threads_of(r, 1 << 19)
    return real(r), f'''
    T x[{width}], y[{width}], sum = 0;
    int size = gridDim.x * blockDim.x;
    #pragma unroll
    for (int w = 0; w < {width}; ++w) x[w] = a[(t + w * size) & (n - 1)];
    {unroll(r)}
    for (int j = 1; j <= m; ++j) {{
        #pragma unroll
        for (int w = 0; w < {width}; ++w) y[w] = a[(t + (j * {width} + w) * size) & (n - 1)];
        #pragma unroll
        for (int w = 0; w < {width}; ++w) {{
            T v = x[w];
            #pragma unroll
            for (int k = 0; k < {work}; ++k) v = v * x[w] + s;
            sum += v; x[w] = y[w];
        }}
    }}
    out[t] = sum;''', block, grid, dict(m=r.choice([8, 24]), n=1 << r.choice([18, 22, 25]))


@family
def mixed(r):
    """Integer, single and double precision beside each other in one loop, with loads between."""
    block, grid = threads_of(r, 1 << 19)
    f, d, i = r.choice([0, 4, 12]), r.choice([1, 4, 8]), r.choice([2, 8, 16])
    lines = []
    for k in range(f):
        lines.append(f'f{k % 4} = f{k % 4} * (float)x + f{(k + 1) % 4};')
    for k in range(d):
        lines.append(f'd{k % 4} = d{k % 4} * x + d{(k + 1) % 4};')
    for k in range(i):
        lines.append(f'i{k % 4} = i{k % 4} * 5 + (i{(k + 1) % 4} ^ (i{k % 4} >> 3));')
    r.shuffle(lines)
    return 'double', f'''
    float f0 = t, f1 = 1, f2 = 2, f3 = 3; double d0 = s, d1 = 1, d2 = 2, d3 = 3; int i0 = t, i1 = 1, i2 = 2, i3 = 3;
    {unroll(r)}
    for (int j = 0; j < m; ++j) {{
        double x = a[(i0 + j) & (n - 1)];
        {' '.join(lines)}
    }}
    out[t] = f0 + f1 + f2 + f3 + d0 + d1 + d2 + d3 + i0 + i1 + i2 + i3;''', block, grid, dict(m=r.choice([8, 32]), n=1 << r.choice([12, 18, 22]))


def kernels(per_family):
    """All kernels, family by family in turns: whoever stops early has some of each."""
    for number in range(per_family):
        for name, function in FAMILIES.items():
            type, body, block, grid, more = function(random.Random(f'{name} {number}'))
            dynamic = more.pop('dynamic', random.Random(f'{number} {name}').choice([0] * 7 + [4096, 16384]))
            yield Kernel(name, number, type, body, block, grid, dynamic=dynamic, **more)


if __name__ == '__main__':
    for name in FAMILIES:
        print(split(f'made/{name}'), name, FAMILIES[name].__doc__, sep='\t')
