"""Kernels that store to the same place in each iteration of a loop, for what `promote` is worth.

A family is a function of a random generator, as in families.py; the parameters are not `__restrict__`. What decides the gain
is varied: iterations (from one), loads and arithmetic in each, threads, and whether what the loop loads may be the place: never
(another array), in the same array but elsewhere, and truly.
"""
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from families import Kernel, threads_of  # noqa: E402

TURNS = [1, 2, 3, 4, 6, 9, 16, 33, 64, 250]
FAMILIES = {}
BIG = 1 << 24    # elements between what is stored and what is loaded of one array


def family(function):
    FAMILIES[function.__name__] = function
    return function


def unroll(r):
    return r.choice(['', '', '', '#pragma unroll 1', '#pragma unroll 4'])


def type_of(r):
    return r.choice(['float', 'float', 'double', 'int'])


@family
def rows(r):
    """A row of a matrix times a vector: loads of a thread are neighbours."""
    return f'''
    {unroll(r)}
    for (int j = 0; j < m; ++j) out[t] += a[(size_t)t * m + j] * b[j];'''


@family
def columns(r):
    """A column of a matrix times a vector: loads of a warp are neighbours."""
    return f'''
    int size = gridDim.x * blockDim.x;
    {unroll(r)}
    for (int j = 0; j < m; ++j) out[t] += a[(size_t)j * size + t] * b[j];'''


@family
def product(r):
    """An element of a product of matrices."""
    width = r.choice([32, 128, 512])
    return f'''
    int x = t % {width}, y = t / {width};
    {unroll(r)}
    for (int k = 0; k < m; ++k) out[t] += {r.choice(['', 's * '])}a[y * m + k] * b[k * {width} + x];'''


@family
def two(r):
    """Two sums."""
    return f'''
    int size = gridDim.x * blockDim.x;
    {unroll(r)}
    for (int j = 0; j < m; ++j) {{
        out[t] += a[(size_t)j * size + t] * b[j];
        out[{BIG} + t] += b[(size_t)j * size + t] * {r.choice(['s', 'a[j]'])};
    }}'''


@family
def elsewhere(r):
    """What is loaded lies in the same array, never where something is stored."""
    return f'''
    {unroll(r)}
    for (int j = 0; j < m; ++j) out[t] -= a[(size_t)t * m + j] * out[{BIG} + j];'''


@family
def itself(r):
    """The loop loads its own place as well: what it stores there is read by a later iteration."""
    place = r.choice(['0', 'm - 1', 'm / 2'])
    return f'''
    T* mine = out + (size_t)t * m;
    {unroll(r)}
    for (int j = 0; j < m; ++j) mine[{place}] += mine[j] * b[j];'''


@family
def gathered(r):
    """Indices from memory, as in sparse rows."""
    mask = (1 << r.choice([12, 20, 25])) - 1
    return f'''
    {unroll(r)}
    for (int j = 0; j < m; ++j) out[t] += a[(size_t)t * m + j] * b[idx[(size_t)t * m + j] & {mask}];'''


@family
def filtered(r):
    """A short loop within another."""
    outer = r.choice([4, 16])
    return f'''
    int size = gridDim.x * blockDim.x;
    for (int i = 0; i < {outer}; ++i) {{
        {unroll(r)}
        for (int k = 0; k < m; ++k) out[(size_t)i * size + t] += a[(size_t)i * size + t + k] * b[k];
    }}'''


@family
def heavy(r):
    """Arithmetic on what each iteration loads."""
    work = ' '.join(f'x = x * x + (T){d + 1};' for d in range(r.choice([4, 12, 32])))
    return f'''
    int size = gridDim.x * blockDim.x;
    {unroll(r)}
    for (int j = 0; j < m; ++j) {{ T x = a[(size_t)j * size + t]; {work} out[t] += x; }}'''


@family
def largest(r):
    """No sum."""
    return f'''
    int size = gridDim.x * blockDim.x;
    {unroll(r)}
    for (int j = 0; j < m; ++j) {{ T x = a[(size_t)j * size + t]; if (x > out[t]) out[t] = x; else out[t] = out[t] {r.choice(['+', '*'])} s; }}'''


def kernels(per_family, first=0):
    """All kernels, family by family in turns. What a loop touches stays within an array of 256 MiB."""
    for number in range(first, first + per_family):
        for name, function in FAMILIES.items():
            r = random.Random(f'kept {name} {number}')
            m, type = r.choice(TURNS), type_of(r)
            wide = 8 if type == 'double' else 4
            outer = 16 if name == 'filtered' else 1
            most = min(1 << 20, (128 << 20) // wide // max(m, outer))
            block, grid = threads_of(r, max(most, 1 << 13))
            body = function(r)
            yield Kernel(f'kept_{name}', number, type, body, block, grid, m=m, restrict='')
