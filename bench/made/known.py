"""Kernels whose launches say much, for what `specialize` is worth.

A family is a function of a random generator, as in families.py. What the launch's numbers decide is varied: indices that are
taken apart by division, strides of grids, tests at borders, lengths of loops (also of those that stop at the threads of a
block), modes that switch code on and off, remainders; beside them families in which there is little to know.
"""
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from families import Kernel, threads_of  # noqa: E402

FAMILIES = {}
RESTRICT = ['', '', '__restrict__ ']


def family(function):
    FAMILIES[function.__name__] = function
    return function


def work(r, most=12):
    """Arithmetic on x."""
    return ' '.join(f'x = x * x + (T){d + 1};' for d in range(r.choice([0, 1, 4, most])))


def spanning(m, **facts):
    """Each thread touches so many elements."""
    return dict(facts, m=m, span=m + 2)


def unroll(r):
    return r.choice(['', '', '', '#pragma unroll 1', '#pragma unroll 4'])


@family
def permuted(r):
    """Axes in another order: indices are taken apart and put together again."""
    wide = r.choice(['int', 'int', 'size_t', 'unsigned'])
    return f'''
    {wide} i = ({wide})t / (n * m), j = ({wide})t / n % m, k = ({wide})t % n;
    T x = a[t]; {work(r)}
    out[(k * m + j) * {r.choice([8, 32, 100])} + i] = x;''', dict(n=r.choice([7, 32, 100, 256]), m=r.choice([3, 16, 50]))


@family
def pooled(r):
    """Windows of a picture, and its borders."""
    return f'''
    int x0 = t % n, y0 = t / n;
    T x = 0;
    for (int dy = 0; dy < m; ++dy) for (int dx = 0; dx < m; ++dx) {{
        int xx = x0 * {r.choice([1, 2])} + dx, yy = y0 + dy;
        if (xx < n * 2 && yy < {r.choice(['n', '4096'])}) x {r.choice(['+= ', '= x > a[yy * n * 2 + xx] ? x : '])}a[yy * n * 2 + xx];
    }}
    out[t] = x;''', dict(n=r.choice([28, 64, 224, 512]), m=r.choice([2, 3, 5]))


@family
def filtered(r):
    """A short filter."""
    return f'''
    T x = 0;
    {unroll(r)}
    for (int k = 0; k < m; ++k) x += a[t + k] * {r.choice(['b[k]', 'b[k & 7]', 's'])};
    {work(r)}
    out[t] = x;''', dict(m=r.choice([3, 4, 5, 7, 9, 16, 25]))


@family
def stencil(r):
    """Neighbours at distances of one, of a row and of a plane."""
    points = r.choice([5, 7, 9, 13])
    terms = ['a[t]', 'a[t - 1]', 'a[t + 1]', 'a[t - m]', 'a[t + m]', 'a[t - m * m]', 'a[t + m * m]', 'a[t - 2]', 'a[t + 2]',
             'a[t - 2 * m]', 'a[t + 2 * m]', 'a[t - 2 * m * m]', 'a[t + 2 * m * m]'][:points]
    return f'''
    int i = t % m, j = t / m % m, k = t / (m * m);
    if (i > 1 && i < m - 2 && j > 1 && j < m - 2 && k > 1 && k < n) out[t] = s * ({' + '.join(terms)});''', \
        dict(m=r.choice([34, 64, 100, 130]), n=200)


@family
def marching(r):
    """A column of a grid, plane by plane."""
    return f'''
    int plane = gridDim.x * blockDim.x;
    T before = a[t], x = a[t + plane];
    {unroll(r)}
    for (int k = 1; k < m; ++k) {{
        T after = a[t + (k + 1) * plane];
        out[t + k * plane] = s * (before + after + a[t + k * plane - 1] + a[t + k * plane + 1] - x);
        before = x; x = after;
    }}''', spanning(m=r.choice([4, 8, 30, 62]))


@family
def strided(r):
    """A grid-stride loop, which turns once or more often."""
    return f'''
    for (int i = t; i < n; i += gridDim.x * blockDim.x) {{ T x = a[i] {r.choice(['', '* b[i]', '+ out[i]'])}; {work(r)} out[i] = x; }}''', \
        dict(turns=r.choice([1, 1, 2, 7, 40]))


@family
def reduced(r):
    """A block's sum, with a loop over its threads' numbers."""
    kind = 'double' if r.random() < 0.2 else 'T'
    return f'''
    __shared__ {kind} part[1024];
    {kind} sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += a[(size_t)blockIdx.x * n + i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d >>= 1) {{
        if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
        __syncthreads();
    }}
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];''', dict(n=r.choice([64, 256, 1000, 1024, 4096]), blocks=True)


@family
def normalised(r):
    """Rows of a block each: a sum, then every element again."""
    return f'''
    __shared__ T part[32];
    __shared__ T all;
    const T* row = a + (size_t)blockIdx.x * n;
    T sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += row[i] {r.choice(['', '* row[i]'])};
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {{ T total = 0; for (int w = 0; w < blockDim.x / 32; ++w) total += part[w]; all = total / n; }}
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[(size_t)blockIdx.x * n + i] = (row[i] - all) * b[i];''', \
        dict(n=r.choice([256, 768, 1024, 3000, 4096]), blocks=True)


@family
def tiled(r):
    """A product by tiles in shared memory."""
    return '''
    __shared__ T left[16][16], right[16][17];
    int x = threadIdx.x % 16, y = threadIdx.x / 16 % 16, col = (blockIdx.x % (n / 16)) * 16 + x, row = (blockIdx.x / (n / 16)) * 16 + y;
    T sum = 0;
    for (int k = 0; k < m; k += 16) {
        if (threadIdx.x < 256) { left[y][x] = a[row * m + k + x]; right[y][x] = b[(k + y) * n + col]; }
        __syncthreads();
        for (int i = 0; i < 16; ++i) sum += left[y][i] * right[i][x];
        __syncthreads();
    }
    if (threadIdx.x < 256) out[row * n + col] = sum;''', dict(n=r.choice([64, 256, 1024]), m=r.choice([64, 256, 1024]), least=256, blocks=True)


@family
def convolved(r):
    """Channels and a filter, padding tested at each point."""
    k = r.choice([1, 3, 5])
    return f'''
    int x0 = t % n, y0 = t / n % n, c0 = t / (n * n);
    T x = 0;
    for (int c = 0; c < m; ++c) for (int dy = 0; dy < {k}; ++dy) for (int dx = 0; dx < {k}; ++dx) {{
        int xx = x0 + dx - {k // 2}, yy = y0 + dy - {k // 2};
        if (xx >= 0 && xx < n && yy >= 0 && yy < n) x += a[(c * n + yy) * n + xx] * b[((c0 * m + c) * {k} + dy) * {k} + dx];
    }}
    out[t] = x;''', dict(n=r.choice([14, 28, 56, 128]), m=r.choice([3, 16, 32]))


@family
def modes(r):
    """A parameter chooses what is done."""
    return f'''
    T x = a[t], y = b[t];
    if (m & 1) {{ {work(r)} }}
    if (m & 2) y = y * x + s;
    if (m & 4) for (int k = 0; k < n; ++k) y = y * s + x;
    if (m & 8) out[t] = out[t] + y; else out[t] = y;''', dict(n=r.choice([2, 5, 20]), m=r.randrange(16))


@family
def wrapped(r):
    """Remainders: a ring, a hash."""
    table = r.choice(['(idx[t] + k * 7919) % n', '(unsigned)(t * 2654435761u + k) % (unsigned)n', '(t + k) % n'])
    return f'''
    T x = 0;
    {unroll(r)}
    for (int k = 0; k < m; ++k) x += a[{table}];
    out[t] = x;''', dict(n=r.choice([97, 1000, 65536, 1000003]), m=r.choice([1, 2, 8, 20]))


@family
def rows(r):
    """A row times a vector, one thread each."""
    return f'''
    T x = 0;
    {unroll(r)}
    for (int k = 0; k < m; ++k) x += a[{r.choice(['(size_t)t * m + k', '(size_t)k * n + t'])}] * b[k];
    out[t] = x;''', spanning(n=r.choice([1 << 14, 1 << 16]), m=r.choice([8, 20, 64, 250]))


@family
def elements(r):
    """Nothing to know but where the array ends."""
    return f'''
    if (t < n) {{ T x = a[t] {r.choice(['', '* b[t]', '+ s * b[t]'])}; {work(r, 32)} out[t] = x; }}''', dict(turns=1)


@family
def chains(r):
    """Arithmetic alone."""
    return f'''
    T x = a[t], y = b[t];
    {unroll(r)}
    for (int k = 0; k < m; ++k) {{ x = x * y + s; y = y * x - s; }}
    out[t] = x + y;''', dict(m=r.choice([2, 10, 100]))


@family
def paths(r):
    """A walk by data: what is visited depends on what was loaded."""
    return '''
    int at = t % n;
    T x = 0;
    for (int k = 0; k < m; ++k) { x += a[at]; at = (idx[at] + k) & 0xfffff; if (x > (T)1e30) break; }
    out[t] = x;''', dict(n=r.choice([1000, 1 << 16]), m=r.choice([4, 16, 64]))


def kernels(per_family, first=0):
    """All kernels, family by family in turns. Of all arrays 2^25 elements and those close behind are touched at most."""
    for number in range(first, first + per_family):
        for name, function in FAMILIES.items():
            r = random.Random(f'known {name} {number}')
            type = r.choice(['float', 'float', 'double', 'int'])
            block, grid = threads_of(r, 1 << 21, 1 << 12)
            body, facts = function(r)
            block = max(block, facts.pop('least', 0))
            if facts.pop('blocks', False):
                grid = max(1, min(grid, 4096))
            if turns := facts.pop('turns', None):
                facts['n'] = block * grid * turns - r.choice([0, 1, 33])
            grid = min(grid, max(1, min(1 << 21, (1 << 24) // facts.pop('span', 1)) // block))
            facts['n'] = min(facts.get('n', 1 << 20), 1 << 25)
            yield Kernel(f'known_{name}', number, type, body, block, grid, restrict=r.choice(RESTRICT), **facts)


if __name__ == '__main__':
    for made in kernels(1):
        print(made.source)
