#!/usr/bin/env python3
"""Kernels of tensor cores, compiled many ways: what varied.py does for ordinary programs.

    python3 lab/sassmine/tensor.py DIR --seeds A..B [--jobs N]

Each seed gives one file of CUDA C++: products of matrices by wmma fragments (all element types, shapes and layouts, up
to four by four tiles, from global or shared memory, loops unrolled or not, several epilogues), and by ldmatrix,
movmatrix and mma. The functions are compiled and judged as those of varied.py are. What they compute means nothing.
"""
import argparse
import random

import varied

# Elements, their name in fragments, accumulators, shapes (m, n, k), the oldest architecture.
CUBES = [(16, 16, 16), (32, 8, 16), (8, 32, 16)]
KINDS = [('half', 'half', ['float', 'half'], CUBES, 75), ('signed char', 'signed char', ['int'], CUBES, 75), ('unsigned char', 'unsigned char', ['int'], CUBES, 75),
         ('__nv_bfloat16', '__nv_bfloat16', ['float'], CUBES, 80), ('float', 'wmma::precision::tf32', ['float'], [(16, 16, 8)], 80), ('double', 'double', ['double'], [(8, 8, 4)], 80)]
LAYOUTS = ['row_major', 'col_major']
HEADS = '''#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
'''


def loop(pick, variable, end, step=1):
    """The head of a loop, unrolled as the compiler likes, as told, or not at all."""
    told = pick.choice(['', '', '#pragma unroll\n', '#pragma unroll 1\n', '#pragma unroll 2\n', '#pragma unroll 4\n'])
    return f'{told}for (int {variable} = 0; {variable} < {end}; {variable} += {step})'


def bounds(pick):
    return pick.choice(['', '', '__launch_bounds__(128) ', '__launch_bounds__(256) ', '__launch_bounds__(256, 2) '])


def fragments(pick, name, oldest):
    """A product of matrices, a grid of fragments per warp."""
    element, precision, sums, shapes, _ = pick.choice([kind for kind in KINDS if kind[4] <= oldest])
    if oldest == 75 and pick.random() < 0.6:
        element, precision, sums, shapes, _ = KINDS[0]
    total, (m, n, k) = pick.choice(sums), pick.choice(shapes)
    rows, columns = pick.randint(1, 4), pick.randint(1, 4)
    layout_a, layout_b, layout_c, layout_d = (pick.choice(LAYOUTS) for _ in range(4))
    is_shared = pick.random() < 0.35
    end = pick.choice(['K', 'K', 'K', str(k * pick.choice([1, 2, 4]))])
    index = pick.choice(['int', 'size_t', 'unsigned'])
    lda, ldb, ldc = ('lda', 'ldb', 'ldc') if pick.random() < 0.7 else (str(256 * pick.randint(1, 4)) for _ in range(3))
    out = [f'extern "C" __global__ {bounds(pick)}void {name}(const {element}* {pick.choice(["", "__restrict__ "])}A, const {element}* B, const {total}* C, {total}* D, {element}* E, int K, int lda, int ldb, int ldc, {total} alpha) {{',
           f'int warp = {pick.choice(["(blockIdx.x * blockDim.x + threadIdx.x) / 32", "threadIdx.y", "blockIdx.x"])}; {index} r = ({index})(warp / {pick.choice(["gridDim.y", "4", "7"])}) * {rows * m}, c = ({index})(warp % 4) * {columns * n};',
           f'wmma::fragment<wmma::accumulator, {m}, {n}, {k}, {total}> d[{rows}][{columns}];']
    tiles = [f'#pragma unroll\nfor (int i = 0; i < {rows}; ++i)', f'#pragma unroll\nfor (int j = 0; j < {columns}; ++j)']
    both = ' '.join(['', *tiles]).replace('#pragma', '\n#pragma')

    def at(layout, row, column, stride):
        row, column = (row, column) if layout == 'row_major' else (column, row)
        return f'({index})({row}) * {stride} + {column}'

    begin = pick.choice(['fill', 'fill', 'load'])
    if begin == 'fill':
        out.append(f'{both} wmma::fill_fragment(d[i][j], ({total})0);')
    else:
        out.append(f'{both} wmma::load_matrix_sync(d[i][j], C + {at(layout_c, f"r + i * {m}", f"c + j * {n}", ldc)}, {ldc}, wmma::mem_{layout_c});')
    if is_shared:
        pad = pick.choice([0, 16 // {'double': 8, 'float': 4, 'half': 2, '__nv_bfloat16': 2}.get(element, 1)])
        tile_a = (rows * m, k) if layout_a == 'row_major' else (k, rows * m)
        tile_b = (k, columns * n) if layout_b == 'row_major' else (columns * n, k)
        stages = pick.choice([1, 1, 2])
        for letter, tile in (('a', tile_a), ('b', tile_b)):
            out.append(f'__shared__ __align__(32) {element} s{letter}[{stages}][{tile[0]} * {tile[1] + pad}];')
    out.append(f'{loop(pick, "k", end, k)} {{')
    out.append(f'wmma::fragment<wmma::matrix_a, {m}, {n}, {k}, {precision}, wmma::{layout_a}> a[{rows}]; wmma::fragment<wmma::matrix_b, {m}, {n}, {k}, {precision}, wmma::{layout_b}> b[{columns}];')
    if is_shared:
        stage = f'(k / {k}) & 1' if stages == 2 else '0'
        out.append(f'const int stage = {stage};')
        for letter, tile, stride in (('a', tile_a, lda), ('b', tile_b, ldb)):
            out.append(f'for (int t = threadIdx.x; t < {tile[0] * tile[1]}; t += blockDim.x) s{letter}[stage][t / {tile[1]} * {tile[1] + pad} + t % {tile[1]}] = {letter.upper()}[({index})(t / {tile[1]} + k) * {stride} + t % {tile[1]}];')
        out.append('__syncthreads();')
        stride_a, stride_b = tile_a[1] + pad, tile_b[1] + pad
        place_a, place_b = f'sa[stage] + {at(layout_a, f"i * {m}", "0", stride_a)}', f'sb[stage] + {at(layout_b, "0", f"j * {n}", stride_b)}'
    else:
        stride_a, stride_b = lda, ldb
        place_a, place_b = f'A + {at(layout_a, f"r + i * {m}", "k", lda)}', f'B + {at(layout_b, "k", f"c + j * {n}", ldb)}'
    loads = [f'{tiles[0]} wmma::load_matrix_sync(a[i], {place_a}, {stride_a});', f'{tiles[1]} wmma::load_matrix_sync(b[j], {place_b}, {stride_b});']
    pick.shuffle(loads)
    out += loads
    each = {'half': '__hmul({0}, __float2half(1.5f))', '__nv_bfloat16': '__hadd({0}, {0})', 'float': 'wmma::__float_to_tf32({0})', 'double': '{0} * 0.5'}.get(element, '{0} ^ 1')
    if pick.random() < (0.8 if element == 'float' else 0.25):
        letter, tile = pick.choice([('a[i]', tiles[0]), ('b[j]', tiles[1])])
        out.append(f'{tile} for (int e = 0; e < {letter}.num_elements; ++e) {letter}.x[e] = {each.format(letter + ".x[e]")};')
    out.append(f'{both} wmma::mma_sync(d[i][j], a[i], b[j], d[i][j]);')
    if is_shared and (stages == 1 or pick.random() < 0.3):
        out.append('__syncthreads();')
    out.append('}')
    place = at(layout_d, f'r + i * {m}', f'c + j * {n}', ldc)
    store = f'wmma::store_matrix_sync(D + {place}, d[i][j], {ldc}, wmma::mem_{layout_d});'
    element_wise = f'for (int e = 0; e < d[i][j].num_elements; ++e) d[i][j].x[e] = '
    scaled = f'{element_wise}{"__hmul(d[i][j].x[e], alpha)" if total == "half" else "d[i][j].x[e] * alpha"};'
    clipped = f'{element_wise}{"__hmax(d[i][j].x[e], __float2half(0.f))" if total == "half" else f"d[i][j].x[e] > ({total})0 ? d[i][j].x[e] : ({total})0"};'
    joined = f'wmma::fragment<wmma::accumulator, {m}, {n}, {k}, {total}> o; wmma::load_matrix_sync(o, C + {place}, {ldc}, wmma::mem_{layout_d}); {element_wise}' + ('__hfma(alpha, d[i][j].x[e], o.x[e]);' if total == 'half' else 'alpha * d[i][j].x[e] + o.x[e];')
    halved = f'wmma::fragment<wmma::accumulator, {m}, {n}, {k}, half> h; for (int e = 0; e < d[i][j].num_elements; ++e) h.x[e] = __float2half(d[i][j].x[e]); wmma::store_matrix_sync((half*)E + {place}, h, {ldc}, wmma::mem_{layout_d});'
    through = f'__shared__ __align__(32) {total} st[8][{m * n}]; wmma::store_matrix_sync(st[threadIdx.x / 32 & 7], d[i][j], {n if layout_d == "row_major" else m}, wmma::mem_{layout_d}); __syncwarp(); for (int t = threadIdx.x & 31; t < {m * n}; t += 32) E[{place} + t] = ({element})(float)st[threadIdx.x / 32 & 7][t]; __syncwarp();'
    ends = [store, store, scaled + store, clipped + store, joined + store, through]
    if element == 'half' and total == 'float':
        ends += [halved, scaled + halved]
    out.append(f'{both} {{ {pick.choice(ends)} }}')
    out.append('}')
    return '\n'.join(out)


def matrices(pick, name, oldest):
    """The same by instructions of PTX: matrices of shared memory, transposed by loads or by registers."""
    deep = oldest >= 80 and pick.random() < 0.7
    of_a, of_b = (4, 2) if deep else (2, 1)
    rows, columns = pick.randint(1, 4), pick.randint(1, 4)
    sources = ['shared', 'shared', 'global']
    out = [f'extern "C" __global__ {bounds(pick)}void {name}(const unsigned* A, const unsigned* B, unsigned* D, int K, int ld) {{',
           f'__shared__ __align__(128) unsigned s[{pick.choice([1024, 2048])}]; int t = threadIdx.x, lane = t & 31; float d[{rows}][{columns}][4] = {{}};',
           f'{loop(pick, "k", pick.choice(["K", "K", "2", "4", "8"]))} {{', f'unsigned a[{rows}][{of_a}], b[{columns}][{of_b}];']
    if pick.random() < 0.6:
        out.append('__syncthreads(); s[t] = A[k * ld + t]; s[t + 512] = B[k * ld + t]; __syncthreads();')

    def load(target, count, tiles, pointer, start):
        source = pick.choice(sources)
        out.append(f'#pragma unroll\nfor (int i = 0; i < {tiles}; ++i) {{')
        if source == 'shared':
            trans = pick.choice(['', '.trans'])
            registers = ', '.join(f'%{n}' for n in range(count))
            outputs = ', '.join(f'"=r"({target}[i][{n}])' for n in range(count))
            out.append(f'asm volatile("ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{registers}}}, [%{count}];" : {outputs} : "r"((unsigned)__cvta_generic_to_shared(s + {start} + i * 128 + (lane * 4 + k) % 128)));')
        else:
            for n in range(count):
                out.append(f'{target}[i][{n}] = {pointer}[(k * {tiles} + i) * ld + lane + {n * 32}];')
        if pick.random() < (0.4 if source == 'shared' else 0.85):
            volatile = pick.choice(['', ' volatile'])
            for n in range(count):
                out.append(f'asm{volatile}("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"({target}[i][{n}]) : "r"({target}[i][{n}]));')
        out.append('}')

    load('a', of_a, rows, 'A', 0)
    load('b', of_b, columns, 'B', 512)
    names = [f'%{n}' for n in range(4 + of_a + of_b)]
    groups = [names[:4], names[4:4 + of_a], names[4 + of_a:], names[:4]]
    operands = ', '.join('{' + ', '.join(group) + '}' for group in groups)
    types = pick.choice(['f32.bf16.bf16.f32', 'f32.f16.f16.f32']) if deep else 'f32.f16.f16.f32'
    inputs = ', '.join([f'"r"(a[i][{n}])' for n in range(of_a)] + [f'"r"(b[j][{n}])' for n in range(of_b)])
    sums = ', '.join(f'"+f"(d[i][j][{n}])' for n in range(4))
    out.append(f'#pragma unroll\nfor (int i = 0; i < {rows}; ++i)\n#pragma unroll\nfor (int j = 0; j < {columns}; ++j)\nasm volatile("mma.sync.aligned.m16n8k{16 if deep else 8}.row.col.{types} {operands};" : {sums} : {inputs});')
    out.append('}')
    end = pick.choice(['plain', 'packed', 'transposed', 'transposed'])
    out.append(f'#pragma unroll\nfor (int i = 0; i < {rows}; ++i)\n#pragma unroll\nfor (int j = 0; j < {columns}; ++j) {{ unsigned* to = D + (i * {columns} + j) * ld + lane;')
    if end == 'plain':
        out.append('for (int e = 0; e < 4; ++e) to[e * 32] = __float_as_uint(d[i][j][e]);')
    else:
        out.append('for (int e = 0; e < 2; ++e) { half2 h = __floats2half2_rn(d[i][j][2 * e], d[i][j][2 * e + 1]); unsigned u = *(unsigned*)&h;')
        if end == 'transposed':
            out.append('asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(u) : "r"(u));')
        out.append('to[e * 32] = u; }')
    out.append('} }')
    return '\n'.join(out)


def source(seed, oldest, kernels=6):
    pick = random.Random(f'tensor {seed}')
    makers = [pick.choice([fragments, fragments, matrices]) for _ in range(kernels)]
    return HEADS + '\n'.join(maker(pick, f'k{seed}_{number}', oldest) for number, maker in enumerate(makers)) + '\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder'), parser.add_argument('--seeds', required=True), parser.add_argument('--jobs', type=int, default=1)
    varied.make(parser.parse_args(), source)


if __name__ == '__main__':
    main()
