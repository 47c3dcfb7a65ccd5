#!/usr/bin/env python3
"""Many different kernels, compiled many ways, and what the tool says of ptxas's code; without a GPU.

    python3 lab/sassmine/varied.py make DIR --seeds A..B [--jobs N]
    python3 lab/sassmine/varied.py judge DIR... --miner WARPWRIGHT-SASSMINE [--tool WARPWRIGHT] -o RESULT.json [--note TEXT] [--jobs N]

`make` writes for each seed one file of CUDA C++, in which random kernels in the manners of ordinary programs mix
types, loads, uniform and own values, loops, branches, calls and intrinsics; nvcc makes PTX of it for the oldest
architecture that the file needs, and ptxas cubins for that one and all later ones, each in one of the ways (turn by
turn). What they compute means nothing. `judge` counts what the hazard checker says of each folder's functions, by
operations and cause, and the answers of the commands over its cubins: all is ptxas's own code, so whatever is called
hazardous, unknown or different is a finding.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import subprocess
import sys
import tempfile

ARCHITECTURES = [75, 80, 86, 89, 90, 100, 120]
WAYS = [['-O3'], ['-O1'], ['-O2'], ['-O3', '-maxrregcount=32'], ['-O3', '-maxrregcount=64'], ['-O2', '-maxrregcount=40'], ['-O3'], ['-O3', '-lineinfo']]

INTEGERS = ['int', 'unsigned', 'long long', 'unsigned long long']
NARROW = ['signed char', 'unsigned char', 'short', 'unsigned short']
FLOATS = ['float', 'double']
VECTORS = {'int': ['int2', 'int4'], 'unsigned': ['uint2', 'uint4'], 'float': ['float2', 'float4'], 'double': ['double2'],
           'long long': ['longlong2'], 'unsigned char': ['uchar4', 'uchar2'], 'short': ['short2', 'short4']}
# Expressions by the type of the result: {t} is an operand of type t.
I, U, L, X, F, D = 'int', 'unsigned', 'long long', 'unsigned long long', 'float', 'double'
H, H2, B, B2 = '__half', '__half2', '__nv_bfloat16', '__nv_bfloat162'


def binary(kind, *operators):
    return [f'({{{kind}}} {operator} {{{kind}}})' for operator in operators]


OPERATIONS = {
    I: binary(I, '+', '-', '*', '&', '|', '^') * 3 + binary(I, '/', '%') + [
        '({int} << ({int} & 31))', '({int} >> ({int} & 31))', '({int} >> 5)', '({int} << 3)', '(-({int}))', '~{int}', 'min({int}, {int})', 'max({int}, {int})',
        'max(max({int}, {int}), {int})', 'min(min({int}, {int}), {int})', 'abs({int})', 'abs({int} - {int})', '__popc({int})', '__clz({int})', '__ffs({int})',
        '(int)__brev({int})', '__mulhi({int}, {int})', '__mul24({int}, {int})', '({int} * {int} + {int})', '({int} / 7)', '({int} % 10)', '({int} / {int_u})', '({int} % {int_u})',
        '({int} / {int})', '(({int} < {int}) ? {int} : {int})', '(({float} < {float}) ? {int} : {int})', '(int)({int} < {int})', '(({double} >= {double}) ? {int} : 3)',
        '({int} < {int} && {unsigned} > {unsigned})', '({int} == {int} || {int} > {int_u})', '(int){long long}', '(int){float}', '(int){double}', '__float2int_rn({float})', '__double2int_rn({double})',
        '__float_as_int({float})', '__double2hiint({double})', '__double2loint({double})', '__dp4a({int}, {int}, {int})', '__dp2a_lo({int}, (int){int}, {int})', '__sad({int}, {int}, {unsigned})',
        '__hadd({int}, {int})', '__rhadd({int}, {int})', '__vimax3_s32({int}, {int}, {int})', '__vimin3_s32({int}, {int}, {int})', '__viaddmax_s32({int}, {int}, {int})',
        '__viaddmin_s32_relu({int}, {int}, {int})', '__vimax_s32_relu({int}, {int})', '(int)(signed char){int}', '(int)(short){int}', '({int} >> ({int_u} & 31))', '({int_u} / {int})',
        'max({int}, {int_u})', 'min({int}, 255)', 'max(0, min({int}, 127))', '({int} != 0 ? {int} : 1)', '__shfl_xor_sync(~0u, {int}, 4)', '__shfl_down_sync(~0u, {int}, 2)', '__shfl_sync(~0u, {int}, {int} & 31)',
        '__popcll({long long})', '__clzll({long long})', '__ffsll({long long})', '(int)isnan({float})', '(int)isinf({double})', '(int)signbit({float})', '({int} & 1 ? -({int}) : {int})', '!{int}'],
    U: binary(U, '+', '-', '*', '&', '|', '^', '/', '%') * 2 + [
        '({unsigned} << ({unsigned} & 31u))', '({unsigned} >> ({unsigned} & 31u))', '({unsigned} >> 7)', '~{unsigned}', 'min({unsigned}, {unsigned})', 'max({unsigned}, {unsigned})',
        'max({unsigned}, max({unsigned}, {unsigned}))', '__umulhi({unsigned}, {unsigned})', '__umul24({unsigned}, {unsigned})', '__byte_perm({unsigned}, {unsigned}, {unsigned})', '__byte_perm({unsigned}, {unsigned}, 0x5140)',
        '__funnelshift_l({unsigned}, {unsigned}, {unsigned})', '__funnelshift_r({unsigned}, {unsigned}, 13)', '__funnelshift_lc({unsigned}, {unsigned}, {unsigned})', '__funnelshift_rc({unsigned}, {unsigned}, {unsigned})',
        '__funnelshift_r({unsigned}, {unsigned}, {unsigned_u})', '__usad({unsigned}, {unsigned}, {unsigned})', '__dp4a({unsigned}, {unsigned}, {unsigned})', '__dp2a_hi({unsigned}, {unsigned}, {unsigned})', '({unsigned} / 10u)', '({unsigned} % 1000u)',
        '({unsigned} / {unsigned_u})', '({unsigned} % {unsigned_u})', '({unsigned_u} / 3u)', '(({unsigned} < {unsigned}) ? {unsigned} : {unsigned})', '(unsigned){unsigned long long}', '(unsigned){float}', '(unsigned){double}',
        '__float_as_uint({float})', '__vadd2({unsigned}, {unsigned})', '__vsub4({unsigned}, {unsigned})', '__vabsdiffu4({unsigned}, {unsigned})', '__vabsdiffs2({unsigned}, {unsigned})', '__vsadu4({unsigned}, {unsigned})',
        '__vmaxs2({unsigned}, {unsigned})', '__vminu4({unsigned}, {unsigned})', '__vmaxu2({unsigned}, {unsigned})', '__vcmpgtu4({unsigned}, {unsigned})', '__vcmpeq4({unsigned}, {unsigned})', '__vsetltu2({unsigned}, {unsigned})', '__vavgu4({unsigned}, {unsigned})', '__vabs4({unsigned})', '__vaddus4({unsigned}, {unsigned})', '__vsubss2({unsigned}, {unsigned})', '__vneg2({unsigned})',
        '__vimax3_u32({unsigned}, {unsigned}, {unsigned})', '__vimin3_u16x2({unsigned}, {unsigned}, {unsigned})', '__vimax3_s16x2_relu({unsigned}, {unsigned}, {unsigned})', '__viaddmax_u16x2({unsigned}, {unsigned}, {unsigned})', '__viaddmin_s16x2({unsigned}, {unsigned}, {unsigned})', '__vimax_s16x2_relu({unsigned}, {unsigned})',
        '__ballot_sync(~0u, {int} < {int})', '__match_any_sync(~0u, {unsigned})', '(unsigned)__any_sync(~0u, {int} > {int})', '(unsigned)__all_sync(~0u, {int} != 0)', '__activemask()', '(unsigned)clock()',
        '(unsigned)(unsigned char){unsigned}', '(unsigned)(unsigned short){unsigned}', '(({unsigned} >> 8) & 0xffu)', '(({unsigned} & 0xff00ffu) | (({unsigned} << 8) & 0xff00ff00u))',
        '(({unsigned} & {unsigned}) ^ (~{unsigned} & {unsigned}))', '(({unsigned} << 13) | ({unsigned} >> 19))', '(unsigned)__popc({unsigned})', '__brev({unsigned})', '({unsigned} * 1664525u + 1013904223u)', '({unsigned_u} * {unsigned_u} + {unsigned_u})', '(({unsigned_u} & {unsigned_u}) | {unsigned_u})', '({unsigned_u} >> ({unsigned_u} & 31u))'],
    L: binary(L, '+', '-', '*', '&', '^', '|') * 2 + binary(L, '/', '%') + ['({long long} >> ({int} & 63))', '({long long} << ({int} & 63))', '({long long} >> 11)', '({long long} << 2)', '(long long){int}', '(long long){int} * {int}', '(long long){float}', '(long long){double}',
        'min({long long}, {long long})', 'max({long long}, {long long})', 'llabs({long long})', '__mul64hi({long long}, {long long})', '({long long} / {long long_u})', '({long long} % 1000003ll)', '({long long} < {long long} ? {long long} : {long long})', '({long long_u} + {int})', '__double_as_longlong({double})', '(long long)(short){int}', '__double2ll_rz({double})', '__float2ll_rd({float})', '__shfl_up_sync(~0u, {long long}, 1)', '({long long_u} * {int_u} + {long long_u})', '({int} - {long long_u})'],
    X: binary(X, '+', '-', '*', '&', '^', '|') * 2 + binary(X, '/', '%') + ['({unsigned long long} >> ({int} & 63))', '({unsigned long long} << ({int} & 63))', '({unsigned long long} >> 33)', '(unsigned long long){unsigned} * {unsigned}', '(unsigned long long){unsigned}', '(unsigned long long){float}', '(unsigned long long){double}', 'min({unsigned long long}, {unsigned long long})', 'max({unsigned long long}, {unsigned long long})', '__umul64hi({unsigned long long}, {unsigned long long})', '({unsigned long long} / 10ull)', '({unsigned long long} % {unsigned long long_u})', '__brevll({unsigned long long})', '(({unsigned long long} << 17) | ({unsigned long long} >> 47))', '({unsigned long long} * 6364136223846793005ull + {unsigned long long})', '(unsigned long long)__popcll({unsigned long long})', '(unsigned long long)clock64()', '({unsigned long long_u} >> 3)', '({unsigned long long_u} / 5ull)', '(unsigned long long)__clzll({long long_u})'],
    F: binary(F, '+', '-', '*') * 5 + binary(F, '/') + ['fmaf({float}, {float}, {float})', '({float} * {float} + {float})', '({float} * {float_u})', '({float} + {float_u})', 'sqrtf({float})', 'rsqrtf({float})', 'fabsf({float})', '(-({float}))', 'fminf({float}, {float})', 'fmaxf({float}, {float})', 'fmaxf(fmaxf({float}, {float}), {float})', 'fminf(fmaxf({float}, 0.f), 1.f)', '__saturatef({float})', 'expf({float})', 'logf({float})', 'sinf({float})', 'cosf({float})', 'tanf({float})', 'powf({float}, {float})', 'exp2f({float})', 'log2f({float})', 'log10f({float})', 'atan2f({float}, {float})', 'atanf({float})', 'acosf({float})', 'asinf({float})', 'tanhf({float})', 'sinhf({float})', 'erff({float})', 'erfcf({float})', 'cbrtf({float})', 'hypotf({float}, {float})', 'fmodf({float}, {float})', 'remainderf({float}, {float})', 'floorf({float})', 'ceilf({float})', 'truncf({float})', 'rintf({float})', 'roundf({float})', 'copysignf({float}, {float})', 'ldexpf({float}, {int} & 15)', 'lgammaf({float})', 'j0f({float})', 'normcdff({float})', '__expf({float})', '__logf({float})', '__sinf({float})', '__cosf({float})', '__powf({float}, {float})', '__fdividef({float}, {float})', '__frcp_rn({float})', '__fsqrt_rn({float})', '__frcp_rz({float})', '__fsqrt_ru({float})', '__fdiv_rd({float}, {float})', '__fadd_rz({float}, {float})', '__fmul_ru({float}, {float})', '__fmaf_rd({float}, {float}, {float})', '__int2float_rz({int})', '(float){int}', '(float){unsigned}', '(float){long long}', '(float){unsigned long long}', '(float){double}', '__double2float_ru({double})', '__int_as_float({int})', '(({float} < {float}) ? {float} : {float})', '(({int} & 1) ? {float} : 0.f)', '__shfl_xor_sync(~0u, {float}, 1)', '__shfl_down_sync(~0u, {float}, 16)', '(1.0f / {float})', '({float} / {float_u})', '(float)(unsigned char){unsigned}', '__half2float({__half})', '(float)(short){int}', '({float} > 0.f ? {float} : expf({float}) - 1.f)', 'fdimf({float}, {float})', 'nextafterf({float}, {float})', '(float)ilogbf({float})', '({float_u} * {float_u} - {float_u})', 'sinpif({float})', 'rcbrtf({float})', 'fabsf({float} - {float})', '__bfloat162float({__nv_bfloat16})'],
    D: binary(D, '+', '-', '*') * 5 + binary(D, '/') + ['fma({double}, {double}, {double})', '({double} * {double_u} + {double})', 'sqrt({double})', 'rsqrt({double})', 'fabs({double})', '(-({double}))', 'fmin({double}, {double})', 'fmax({double}, {double})', 'exp({double})', 'log({double})', 'sin({double})', 'cos({double})', 'tan({double})', 'pow({double}, {double})', 'atan2({double}, {double})', 'atan({double})', 'acos({double})', 'tanh({double})', 'erf({double})', 'cbrt({double})', 'hypot({double}, {double})', 'fmod({double}, {double})', 'floor({double})', 'ceil({double})', 'rint({double})', 'trunc({double})', 'round({double})', 'copysign({double}, {double})', 'ldexp({double}, {int} & 15)', 'exp2({double})', 'log1p({double})', 'expm1({double})', 'lgamma({double})', '(double){int}', '(double){unsigned}', '(double){long long}', '(double){unsigned long long}', '(double){float}', '__hiloint2double({int}, {int})', '__longlong_as_double({long long})', '(({double} < {double}) ? {double} : {double})', '__dadd_rz({double}, {double})', '__dmul_rd({double}, {double})', '__fma_ru({double}, {double}, {double})', '__drcp_rn({double})', '__dsqrt_rd({double})', '__ddiv_rz({double}, {double})', '__shfl_xor_sync(~0u, {double}, 8)', '(1.0 / {double})', '({double} / {double_u})', '({double} * 0.5)', '({double_u} + {double})', '__int2double_rn({int_u})', 'sinpi({double})', 'nextafter({double}, {double})'],
    H: ['__hadd({__half}, {__half})', '__hsub({__half}, {__half})', '__hmul({__half}, {__half})', '__hfma({__half}, {__half}, {__half})', '__hfma_relu({__half}, {__half}, {__half})', '__hdiv({__half}, {__half})', '__hneg({__half})', '__habs({__half})', '__hmax({__half}, {__half})', '__hmin({__half}, {__half})', 'hexp({__half})', 'hlog({__half})', 'hsqrt({__half})', 'hrcp({__half})', 'hsin({__half})', 'hfloor({__half})', 'hrint({__half})', '__float2half({float})', '__float2half_rz({float})', '__double2half({double})', '__int2half_rn({int})', '__ushort2half_rn((unsigned short){unsigned})', '__low2half({__half2})', '__high2half({__half2})', '(__hgt({__half}, {__half}) ? {__half} : {__half})', '__hadd_sat({__half}, {__half})', '__ushort_as_half((unsigned short){unsigned})', '__shfl_xor_sync(~0u, {__half}, 2)', '__ll2half_rn({long long})', 'htanh({__half})'],
    H2: ['__hadd2({__half2}, {__half2})', '__hsub2({__half2}, {__half2})', '__hmul2({__half2}, {__half2})', '__hfma2({__half2}, {__half2}, {__half2})', '__hfma2_sat({__half2}, {__half2}, {__half2})', '__h2div({__half2}, {__half2})', '__hmax2({__half2}, {__half2})', '__hmin2({__half2}, {__half2})', '__hmax2(__hmax2({__half2}, {__half2}), {__half2})', '__hneg2({__half2})', '__habs2({__half2})', '__hgt2({__half2}, {__half2})', '__heq2({__half2}, {__half2})', 'h2exp2({__half2})', 'h2sqrt({__half2})', 'h2rcp({__half2})', '__float2half2_rn({float})', '__floats2half2_rn({float}, {float})', '__halves2half2({__half}, {__half})', '__half2half2({__half})', '__lows2half2({__half2}, {__half2})', '__lowhigh2highlow({__half2})', '__hcmadd({__half2}, {__half2}, {__half2})', '__shfl_down_sync(~0u, {__half2}, 4)', '__hmax2_nan({__half2}, {__half2})', '__hfma2_relu({__half2}, {__half2}, {__half2})', 'h2tanh({__half2})'],
    B: ['__hadd({__nv_bfloat16}, {__nv_bfloat16})', '__hmul({__nv_bfloat16}, {__nv_bfloat16})', '__hfma({__nv_bfloat16}, {__nv_bfloat16}, {__nv_bfloat16})', '__hdiv({__nv_bfloat16}, {__nv_bfloat16})', '__hmax({__nv_bfloat16}, {__nv_bfloat16})', '__hmin_nan({__nv_bfloat16}, {__nv_bfloat16})', 'hexp({__nv_bfloat16})', 'hsqrt({__nv_bfloat16})', '__float2bfloat16({float})', '__double2bfloat16({double})', '__int2bfloat16_rn({int})', '__low2bfloat16({__nv_bfloat162})', '(__hlt({__nv_bfloat16}, {__nv_bfloat16}) ? {__nv_bfloat16} : {__nv_bfloat16})', '__hneg({__nv_bfloat16})', '__habs({__nv_bfloat16})', '__ushort_as_bfloat16((unsigned short){unsigned})'],
    B2: ['__hadd2({__nv_bfloat162}, {__nv_bfloat162})', '__hsub2({__nv_bfloat162}, {__nv_bfloat162})', '__hmul2({__nv_bfloat162}, {__nv_bfloat162})', '__hfma2({__nv_bfloat162}, {__nv_bfloat162}, {__nv_bfloat162})', '__hfma2_relu({__nv_bfloat162}, {__nv_bfloat162}, {__nv_bfloat162})', '__hmax2({__nv_bfloat162}, {__nv_bfloat162})', '__hmin2({__nv_bfloat162}, {__nv_bfloat162})', '__hgt2({__nv_bfloat162}, {__nv_bfloat162})', 'h2exp2({__nv_bfloat162})', '__floats2bfloat162_rn({float}, {float})', '__halves2bfloat162({__nv_bfloat16}, {__nv_bfloat16})', '__hneg2({__nv_bfloat162})', '__lowhigh2highlow({__nv_bfloat162})'],
}
# Results in one instruction of PTX: type, text, operands, oldest architecture.
ASSEMBLY = [(I, f'{op} %0, %1, %2{tail};', [I, I] + more, 75) for op in ('vabsdiff.s32.s32.s32', 'vadd.s32.s32.s32.sat', 'vmin.s32.s32.s32', 'vmax.s32.s32.s32', 'vsub.s32.s32.s32', 'vset.s32.s32.lt') for tail, more in (('', []),)]
ASSEMBLY += [(I, 'vabsdiff.u32.u32.u32.add %0, %1, %2, %3;', [I, I, I], 75), (I, 'vmad.s32.s32.s32 %0, %1, %2, %3;', [I, I, I], 75), (I, 'vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;', [I, I, I], 75), (I, 'vmin2.s32.s32.s32 %0, %1, %2, %3;', [I, I, I], 75),
             (I, 'bfe.s32 %0, %1, %2, %3;', [I, I, I], 75), (U, 'bfe.u32 %0, %1, %2, 7;', [U, U], 75), (U, 'bfi.b32 %0, %1, %2, 5, 9;', [U, U], 75), (U, 'bfi.b32 %0, %1, %2, %3, 8;', [U, U, U], 75), (U, 'lop3.b32 %0, %1, %2, %3, 0x6a;', [U, U, U], 75), (U, 'prmt.b32.f4e %0, %1, %2, %3;', [U, U, U], 75), (U, 'bfind.u32 %0, %1;', [U], 75), (U, 'bfind.shiftamt.s32 %0, %1;', [U], 75), (U, 'szext.clamp.u32 %0, %1, %2;', [U, U], 75), (U, 'bmsk.wrap.b32 %0, %1, %2;', [U, U], 75), (U, 'fns.b32 %0, %1, 0, %2;', [U, I], 75), (U, 'mov.u32 %0, %%laneid;', [], 75), (U, 'mov.u32 %0, %%smid;', [], 75), (U, 'mov.u32 %0, %%lanemask_lt;', [], 75), (U, 'mov.u32 %0, %%warpid;', [], 75), (U, 'mov.u32 %0, %%nsmid;', [], 75), (X, 'mov.u64 %0, %%globaltimer;', [], 75),
             (X, 'bfe.u64 %0, %1, 5, 40;', [X], 75), (X, 'bfi.b64 %0, %1, %2, 9, 20;', [X, X], 75), (F, 'tanh.approx.f32 %0, %1;', [F], 75), (F, 'ex2.approx.ftz.f32 %0, %1;', [F], 75), (F, 'lg2.approx.f32 %0, %1;', [F], 75), (F, 'rcp.approx.ftz.f32 %0, %1;', [F], 75), (F, 'add.sat.f32 %0, %1, %2;', [F, F], 75), (F, 'fma.rz.ftz.sat.f32 %0, %1, %2, %3;', [F, F, F], 75), (F, 'min.xorsign.abs.f32 %0, %1, %2;', [F, F], 86), (F, 'max.NaN.f32 %0, %1, %2;', [F, F], 80), (D, 'rcp.approx.ftz.f64 %0, %1;', [D], 75), (D, 'rsqrt.approx.f64 %0, %1;', [D], 75), (F, 'testp.normal.f32 p, %1; selp.f32 %0, %1, %2, p;', [F, F], 75),
             (U, 'redux.sync.add.s32 %0, %1, 0xffffffff;', [U], 80), (U, 'redux.sync.min.u32 %0, %1, 0xffffffff;', [U], 80), (U, 'redux.sync.xor.b32 %0, %1, 0xffffffff;', [U], 80), (U, 'cvt.rn.f16x2.f32 %0, %1, %2;', [F, F], 80), (U, 'cvt.rn.relu.bf16x2.f32 %0, %1, %2;', [F, F], 80), (U, 'cvt.rna.tf32.f32 %0, %1;', [F], 80), (U, 'min.f16x2 %0, %1, %2;', [U, U], 80), (U, 'max.NaN.bf16x2 %0, %1, %2;', [U, U], 80), (U, 'tanh.approx.f16x2 %0, %1;', [U], 75), (U, 'ex2.approx.f16x2 %0, %1;', [U], 75), (U, 'tanh.approx.bf16x2 %0, %1;', [U], 90), (U, 'fma.rn.bf16x2 %0, %1, %2, %3;', [U, U, U], 80), (U, 'fma.rn.f16x2 %0, %1, %2, %3;', [U, U, U], 75), (U, 'set.gt.u32.f16x2 %0, %1, %2;', [U, U], 75), (U, '{.reg .b16 h; cvt.rn.satfinite.e4m3x2.f32 h, %1, %2; mov.b32 %0, {h, h};}', [F, F], 89), (U, '{.reg .b16 h; cvt.rn.satfinite.e5m2x2.f16x2 h, %1; mov.b32 %0, {h, h};}', [U], 89), (U, '{.reg .b16 h,l; mov.b32 {h,l}, %1; cvt.rn.f16x2.e4m3x2 %0, h;}', [U], 89),
             (U, 'add.s16x2 %0, %1, %2;', [U, U], 90), (U, 'min.u16x2 %0, %1, %2;', [U, U], 90), (U, 'max.s16x2 %0, %1, %2;', [U, U], 90), (I, 'min.relu.s32 %0, %1, %2;', [I, I], 90), (U, 'elect.sync _|p, 0xffffffff; selp.u32 %0, 1, %1, p;', [U], 90), (U, 'mov.u32 %0, %%cluster_ctarank;', [], 90), (X, 'add.rn.f32x2 %0, %1, %2;', [X, X], 100), (X, 'fma.rn.f32x2 %0, %1, %2, %3;', [X, X, X], 100), (X, 'mul.rz.ftz.f32x2 %0, %1, %2;', [X, X], 100), (F, 'max.f32 %0, %1, %2, %3;', [F, F, F], 100), (F, 'min.NaN.abs.f32 %0, %1, %2, %3;', [F, F, F], 100)]
LETTER = {I: 'r', U: 'r', L: 'l', X: 'l', F: 'f', D: 'd'}


class Kernel:
    """One random kernel."""

    def __init__(self, seed, number, oldest):
        self.random = random.Random(f'{seed}.{number}')
        self.number, self.oldest = number, oldest
        pick = self.random
        self.types = pick.sample([I, U, L, X, F, D], pick.randint(2, 4))
        if I not in self.types:
            self.types.append(I)
        if pick.random() < 0.2:
            self.types.append(pick.choice([H, H2] if oldest < 80 else [H, H2, B, B2]))
        self.variables = {t: [] for t in OPERATIONS}
        self.fixed = set()
        self.lines, self.indent, self.count, self.depth = [], 1, 0, 0
        self.shared, self.functions, self.parameters = [], [], []
        self.is_uniform = True
        self.budget = pick.choice([8, 15, 25, 40])

    def line(self, text):
        self.lines.append('    ' * self.indent + text)

    def name(self):
        self.count += 1
        return f'v{self.count}'

    def parameter(self, text):
        name = f'p{len(self.parameters)}'
        self.parameters.append(f'{text} {name}')
        return name

    def leaf(self, kind):
        pick, own = self.random, self.variables[kind]
        dice = pick.random()
        if own and dice < 0.75:
            return pick.choice(own)
        if dice < 0.9 and kind in self.scalars:
            return pick.choice(self.scalars[kind])
        return self.constant(kind)

    def constant(self, kind):
        pick = self.random
        value = pick.choice([0, 1, 2, 3, 5, 7, 8, 15, 31, 63, 100, 255, 1023, 65535, 1 << 20, 0x7fffffff, pick.randint(0, 1 << 30)])
        if kind == I:
            return str(value if pick.random() < 0.7 else -value)
        if kind in (U, L, X):
            return f'{value}{ {U: "u", L: "ll", X: "ull"}[kind] }'
        number = pick.choice([0.0, 1.0, 0.5, 2.0, -1.0, 3.14159265358979, 1e-6, 0.1, 1e10, pick.uniform(-9, 9)])
        if kind == F:
            return f'{number!r}f'
        if kind == D:
            return repr(number)
        return {H: f'__float2half({number!r}f)', H2: f'__float2half2_rn({number!r}f)', B: f'__float2bfloat16({number!r}f)', B2: f'__float2bfloat162_rn({number!r}f)'}[kind]

    def uniform(self, kind):
        return self.random.choice(self.scalars[kind]) if kind in self.scalars else self.constant(kind)

    def expression(self, kind, depth):
        pick = self.random
        if depth <= 0 or pick.random() < 0.15:
            return self.leaf(kind)
        if pick.random() < 0.08:
            fits = [a for a in ASSEMBLY if a[0] == kind and a[3] <= self.oldest]
            if fits:
                return self.assembly(pick.choice(fits))
        if pick.random() < 0.08 and self.functions:
            fits = [f for f in self.functions if f[1] == kind]
            if fits:
                name, _, operands = pick.choice(fits)
                return f'{name}({", ".join(self.expression(o, depth - 2) for o in operands)})'
        for _ in range(20):
            text = pick.choice(OPERATIONS[kind])
            needs = re.findall(r'\{([^}]*?)(_u)?\}', text)
            bare = {need for need, _ in needs}
            if '_sync' in text and not self.is_uniform:
                continue
            if not all(b in self.types or b in (I, kind) for b in bare) and pick.random() < 0.8:
                continue
            if any(b in (B, B2) for b in bare) and self.oldest < 80:
                continue
            break
        else:
            return self.leaf(kind)
        return re.sub(r'\{([^}]*?)(_u)?\}', lambda m: self.uniform(m[1]) if m[2] else self.expression(m[1], depth - 1), text)

    def assembly(self, row):
        kind, text, operands, _ = row
        values = [self.leaf(o) for o in operands]
        name = self.name()
        inner = '{ .reg .pred p; ' + text + ' }'
        inputs = ', '.join(f'"{LETTER[o]}"(({o}){v})' for o, v in zip(operands, values))
        self.line(f'{kind} {name}; asm volatile("{inner}" : "={LETTER[kind]}"({name}) : {inputs});')
        return name

    def declare(self, kind, text):
        name = self.name()
        self.line(f'{kind} {name} = {text};')
        self.variables[kind].append(name)
        return name

    def assign(self):
        kind = self.random.choice(self.types)
        text = self.expression(kind, self.random.choice([1, 1, 2, 2, 3]))
        mine = [v for v in self.variables[kind] if v not in self.fixed]
        if mine and self.random.random() < 0.6:
            self.line(f'{self.random.choice(mine)} = {text};')
        else:
            self.declare(kind, text)

    def condition(self):
        pick = self.random
        if pick.random() < 0.25:
            return f'{self.uniform(I)} {pick.choice(["<", ">", "==", "!="])} {self.constant(I)}', True
        kind = pick.choice([t for t in self.types if t in (I, U, L, X, F, D)])
        return f'{self.expression(kind, 1)} {pick.choice(["<", ">=", "==", "!=", "<="])} {self.expression(kind, 1)}', False

    def scope(self, is_uniform, statements):
        """Variables of a block end with it."""
        before, was = {k: list(v) for k, v in self.variables.items()}, self.is_uniform
        self.is_uniform = was and is_uniform
        self.indent += 1
        self.depth += 1
        for _ in range(statements):
            self.statement()
        self.indent -= 1
        self.depth -= 1
        self.variables, self.is_uniform = before, was

    def branch(self):
        text, is_uniform = self.condition()
        self.line(f'if ({text}) {{')
        self.scope(is_uniform, self.random.randint(1, 4))
        if self.random.random() < 0.4:
            self.line('} else {')
            self.scope(is_uniform, self.random.randint(1, 3))
        self.line('}')

    def loop(self):
        pick = self.random
        index = self.name()
        shape = pick.random()
        unroll = pick.choice(['', '#pragma unroll 1', '#pragma unroll 4', '#pragma unroll'])
        if unroll:
            self.line(unroll)
        if shape < 0.3:
            self.line(f'for (int {index} = 0; {index} < {pick.choice([3, 4, 7, 8, 16])}; ++{index}) {{')
            is_uniform = True
        elif shape < 0.7:
            self.line(f'for (int {index} = {pick.choice(["0", "1", self.uniform(I)])}; {index} < {self.uniform(I)}; {index} += {pick.choice(["1", "1", "2", "16", "blockDim.x"])}) {{')
            is_uniform = True
        elif shape < 0.85:
            self.line(f'for (int {index} = t; {index} < {self.leaf(I)}; {index} += blockDim.x * gridDim.x) {{')
            is_uniform = False
        else:
            self.line(f'for (int {index} = {self.uniform(I)}; {index} > 0; {index} >>= 1) {{')
            is_uniform = True
        self.variables[I].append(index)
        self.fixed.add(index)
        self.scope(is_uniform, pick.randint(1, 5))
        self.variables[I].remove(index)
        if pick.random() < 0.25:
            self.line(f'    if ({self.condition()[0]}) {pick.choice(["break", "continue"])};')
        self.line('}')

    def place(self):
        """An index: coalesced, strided, gathered, or the same for all."""
        pick = self.random
        base = pick.choice(['i', 't', 'i * 2', f'i + {pick.randint(0, 8)}', f'{self.uniform(I)} + t', f'{self.uniform(I)} * {self.uniform(I)} + t', self.uniform(I), self.leaf(I), f'(long long)i * {self.uniform(I)}', f'{self.leaf(I)} * {self.uniform(I)} + {self.leaf(I)}'])
        return base

    def load(self):
        pick = self.random
        kind = pick.choice(self.types)
        array = pick.choice(self.arrays)
        element, name, space = array
        at = self.place()
        at = f'({at}) & 255' if space in ('shared', 'constant', 'local') else at
        text = f'{name}[{at}]'
        if space == 'read-only' and pick.random() < 0.4:
            text = f'{pick.choice(["__ldg", "__ldg", "__ldcg", "__ldcs", "__ldca"])}(&{text})'
        vector = re.search(r'(\d)$', element) if element[0] not in '_' else None
        if vector:
            value = self.name()
            self.line(f'{element} {value} = {text};')
            self.mix(element, value, kind)
            return
        self.declare(element if element in self.variables else {'signed char': I, 'short': I}.get(element, U), text)

    def mix(self, element, value, kind):
        parts = 'xyzw'[:int(element[-1])]
        scalar = next(s for s, vs in VECTORS.items() if element in vs)
        scalar = {'unsigned char': U, 'short': I}.get(scalar, scalar)
        for part in parts:
            self.declare(scalar, f'{value}.{part}')

    def store(self):
        pick = self.random
        arrays = [a for a in self.arrays if a[2] in ('global', 'shared', 'local')]
        element, name, space = pick.choice(arrays)
        at = pick.choice(['i', 't', f'i + {pick.randint(0, 5)}', f'{self.leaf(I)}', f'{self.uniform(I)} + t'])
        at = f'({at}) & 255' if space != 'global' else at
        if re.search(r'\d$', element) and element[0] != '_':
            scalar = next(s for s, vs in VECTORS.items() if element in vs)
            wide = {'unsigned char': U, 'short': I}.get(scalar, scalar)
            values = ', '.join(f'({scalar}){self.leaf(wide)}' for _ in range(int(element[-1])))
            self.line(f'{name}[{at}] = make_{element}({values});')
            return
        wide = element if element in OPERATIONS else {'signed char': I, 'short': I}.get(element, U)
        self.line(f'{name}[{at}] = ({element}){self.expression(wide, 1)};' if wide == element or element not in OPERATIONS else '')

    def barrier(self):
        if self.is_uniform:
            self.line(self.random.choice(['__syncthreads();', '__syncthreads();', '__syncthreads();', '__syncwarp();', '__threadfence();', '__threadfence_block();']))
            if self.random.random() < 0.1:
                kind = self.declare(I, f'__syncthreads_count({self.leaf(I)} > {self.leaf(I)})')

    def atomic(self):
        pick = self.random
        kinds = {I: ['Add', 'Min', 'Max', 'And', 'Or', 'Xor', 'Exch', 'CAS'], U: ['Add', 'Min', 'Max', 'Inc', 'Dec', 'Or', 'Exch', 'CAS'], X: ['Add', 'Min', 'Max', 'And', 'Exch', 'CAS'], F: ['Add', 'Exch'], D: ['Add']}
        arrays = [a for a in self.arrays if a[2] in ('global', 'shared') and a[0] in kinds]
        if not arrays:
            return self.assign()
        element, name, space = pick.choice(arrays)
        operation = pick.choice(kinds[element])
        at = f'({self.leaf(I)}) & 255' if pick.random() < 0.7 else '0'
        values = [self.leaf(element) for _ in range(2 if operation == 'CAS' else 1)]
        scope = pick.choice(['', '', '', '_block', '_system']) if operation != 'CAS' or element != F else ''
        call = f'atomic{operation}{scope}(&{name}[{at}], {", ".join(values)})'
        if operation in ('Inc', 'Dec'):
            call = call.replace(f'{operation}_block', operation).replace(f'{operation}_system', operation)
        if pick.random() < 0.5:
            self.line(call + ';')
        else:
            self.declare(element, call)

    def switch(self):
        pick = self.random
        self.line(f'switch ({self.leaf(I)} & 7) {{')
        for case in range(pick.randint(3, 8)):
            self.line(f'case {case}: {{')
            self.scope(False, pick.randint(1, 2))
            self.line('} break;' if pick.random() < 0.9 else '}')
        self.line('}')

    def reduction(self):
        """A sum over the warp or the block."""
        kind = self.random.choice([t for t in self.types if t in (I, U, F, D, L, X)])
        if not self.is_uniform or not self.variables[kind]:
            return self.assign()
        value = self.declare(kind, self.leaf(kind))
        operator = self.random.choice(['{0} + {1}', 'max({0}, {1})', 'min({0}, {1})'])
        if self.random.random() < 0.5:
            step = self.name()
            other = f'__shfl_{self.random.choice(["xor", "down"])}_sync(~0u, {value}, {step})'
            self.line(f'for (int {step} = 16; {step} > 0; {step} /= 2) {value} = {operator.format(value, other)};')
            return
        shared, step = f's{len(self.shared)}', self.name()
        self.shared.append((kind, shared))
        self.line(f'{shared}[t & 255] = {value}; __syncthreads();')
        self.line(f'for (int {step} = blockDim.x / 2; {step} > 0; {step} >>= 1) {{')
        self.line(f'    if (t < {step}) {shared}[t & 255] = {operator.format(f"{shared}[t & 255]", f"{shared}[(t + {step}) & 255]")};')
        self.line('    __syncthreads();')
        self.line('}')
        self.declare(kind, f'{shared}[{self.random.choice(["0", "t & 255", "(t ^ 1) & 255"])}]')

    def tile(self):
        """A product of two tiles of shared memory."""
        kind = self.random.choice([t for t in self.types if t in (I, U, F, D, L, X)])
        if not self.is_uniform:
            return self.assign()
        a, b, k, total, step = f's{len(self.shared)}', f's{len(self.shared) + 1}', self.name(), self.name(), self.name()
        self.shared += [(kind, a), (kind, b)]
        size = self.random.choice([8, 16])
        self.line(f'{kind} {total} = 0;')
        self.line(f'for (int {k} = 0; {k} < {self.uniform(I)}; {k} += {size}) {{')
        self.line(f'    {a}[t & 255] = ({kind})in0[{k} * {self.uniform(I)} + t]; {b}[t & 255] = ({kind})in1[({k} + t) * {self.uniform(I)}]; __syncthreads();')
        self.line('    #pragma unroll')
        self.line(f'    for (int {step} = 0; {step} < {size}; ++{step}) {total} += {a}[(t / {size} * {size} + {step}) & 255] * {b}[({step} * {size} + t % {size}) & 255];')
        self.line('    __syncthreads();')
        self.line('}')
        self.variables[kind].append(total)

    def leave(self):
        if self.depth:
            self.line(f'if ({self.condition()[0]}) return;')
        else:
            self.assign()

    def statement(self):
        if self.budget <= 0 or self.depth > 3:
            return self.assign()
        self.budget -= 1
        table = [(self.assign, 10), (self.load, 5), (self.store, 3), (self.branch, 3), (self.loop, 3), (self.barrier, 1), (self.atomic, 0.7), (self.switch, 0.3), (self.reduction, 0.6), (self.tile, 0.3), (self.leave, 0.2)]
        if not self.is_uniform:
            table = [(f, w) for f, w in table if f not in (self.barrier, self.reduction, self.tile)]
        functions, weights = zip(*table)
        self.random.choices(functions, weights)[0]()

    def function(self, number):
        """A device function, inlined or called."""
        pick = self.random
        kind = pick.choice([t for t in self.types if t in (I, U, L, X, F, D)])
        operands = [pick.choice([t for t in self.types if t in (I, U, L, X, F, D)]) for _ in range(pick.randint(1, 3))]
        name = f'f{self.number}_{number}'
        was = self.variables, self.lines, self.is_uniform
        self.variables = {t: [] for t in OPERATIONS}
        self.lines, self.is_uniform = [], False
        for place, operand in enumerate(operands):
            self.variables[operand].append(f'a{place}')
        keep = self.scalars
        self.scalars = {}
        for _ in range(pick.randint(1, 4)):
            self.assign()
        self.line(f'return {self.expression(kind, 2)};')
        head = f'{pick.choice(["__noinline__ ", "__forceinline__ ", "__forceinline__ "])}__device__ {kind} {name}({", ".join(f"{o} a{n}" for n, o in enumerate(operands))}) {{'
        text = '\n'.join([head, *self.lines, '}'])
        self.variables, self.lines, self.is_uniform = was
        self.scalars = keep
        self.functions.append((name, kind, operands))
        return text

    def text(self):
        pick = self.random
        self.scalars = {}
        heads = []
        for place in range(2):
            element = pick.choice([*self.types, *self.types, *NARROW]) if place else pick.choice([t for t in self.types if t in (I, U, L, X, F, D)])
            heads.append((element, f'in{place}', 'read-only'))
        for place in range(pick.randint(1, 2)):
            element = pick.choice([*self.types, *NARROW, *(v for t in self.types for v in VECTORS.get(t, []))])
            heads.append((element, f'extra{place}', pick.choice(['read-only', 'global'])))
        for place, element in enumerate(pick.sample(self.types, min(2, len(self.types)))):
            heads.append((element, f'out{place}', 'global'))
        if heads[1][0] in (H, H2, B, B2):
            heads[1] = (I, 'in1', 'read-only')
        texts = [f'{"const " if space == "read-only" else ""}{element}* {"__restrict__ " if pick.random() < 0.5 else ""}{name}' for element, name, space in heads]
        for kind in {I, *self.types} & {I, U, L, X, F, D}:
            for _ in range(pick.randint(1, 3)):
                self.scalars.setdefault(kind, []).append(f'p{len(self.parameters)}')
                self.parameters.append(f'{kind} p{len(self.parameters)}')
        self.arrays = [h for h in heads]
        if pick.random() < 0.6:
            kind = pick.choice([t for t in (*self.types, *NARROW) if t not in (H, H2, B, B2)])
            self.shared.append((kind, f's{len(self.shared)}'))
            self.arrays.append((kind, self.shared[-1][1], 'shared'))
        element, constant = pick.choice([I, F, D, U, 'unsigned char', L]), f'c{self.number}'
        constants = []
        if pick.random() < 0.3:
            self.arrays.append((element, constant, 'constant'))
            constants = [f'__constant__ {element} {constant}[256];']
        functions = [self.function(n) for n in range(pick.choice([0, 0, 1, 2]))]
        if pick.random() < 0.12:
            self.line(f'{pick.choice([I, F, D])} local[256];')
            self.arrays.append((self.lines[-1].split()[0], 'local', 'local'))
        bound = pick.choice(['', '', f'__launch_bounds__({pick.choice([64, 128, 256, 512, 1024])}) ', '__launch_bounds__(256, 4) '])
        self.line(pick.choice(['int t = threadIdx.x; int i = blockIdx.x * blockDim.x + t;', 'int t = threadIdx.y * 16 + threadIdx.x; int i = (blockIdx.y * 16 + threadIdx.y) * gridDim.x * 16 + blockIdx.x * 16 + threadIdx.x;']))
        if pick.random() < 0.5:
            self.line(f'if (i >= {self.uniform(I)}) return;')
            self.is_uniform = False
        self.variables[I] += ['t', 'i']
        self.fixed |= {'t', 'i'}
        for _ in range(pick.randint(1, 3)):
            self.load()
        for kind in self.types:
            self.declare(kind, self.constant(kind))
        while self.budget > 0:
            self.statement()
        for element, name, space in heads:
            if space == 'global' and element in OPERATIONS and self.variables[element]:
                many = self.random.sample(self.variables[element], min(4, len(self.variables[element])))
                for place, value in enumerate(many):
                    self.line(f'{name}[i * {len(many)} + {place}] = {value};')
        shared = [f'    __shared__ {kind} {name}[256];' for kind, name in self.shared]
        head = f'extern "C" __global__ {bound}void k{self.number}({", ".join([*texts, *self.parameters])}) {{'
        return '\n'.join([*constants, *functions, head, *shared, *self.lines, '}', ''])


def source(seed, oldest, kernels=10):
    heads = '#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n'
    return heads + '\n'.join(Kernel(seed, number, oldest).text() for number in range(kernels))


def make_one(folder, seed, source):
    """PTX and cubins of one seed; the errors of the tools."""
    oldest = [75, 75, 80, 75, 90, 75, 80, 100][seed % 8]
    stem = os.path.join(folder, f's{seed:04}')
    with open(stem + '.cu', 'w') as out:
        out.write(source(seed, oldest))
    errors = []
    flags = ['--use_fast_math'] if seed % 5 == 3 else []
    done = subprocess.run(['nvcc', '-w', '-ptx', f'-arch=compute_{oldest}', *flags, stem + '.cu', '-o', stem + '.ptx'], capture_output=True, text=True)
    if done.returncode:
        return [(seed, 'nvcc', done.stderr[:300])]
    for place, sm in enumerate(sm for sm in ARCHITECTURES if sm >= oldest):
        way = WAYS[(seed + place) % len(WAYS)]
        os.makedirs(f'{folder}/sm_{sm}', exist_ok=True)
        done = subprocess.run(['ptxas', f'-arch=sm_{sm}', *way, stem + '.ptx', '-o', f'{folder}/sm_{sm}/s{seed:04}.{"".join(way).replace("-", "").replace("=", "")}.cubin'], capture_output=True, text=True)
        if done.returncode:
            errors.append((seed, f'ptxas sm_{sm}', done.stderr[:300]))
    return errors


def make(options, source=source):
    os.makedirs(options.folder, exist_ok=True)
    first, last = map(int, options.seeds.split('..'))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for errors in pool.map(lambda seed: make_one(options.folder, seed, source), range(first, last)):
            for error in errors:
                print(*error, file=sys.stderr)


COMMANDS = {'liveness': ['sass', 'liveness', 'A'], 'roundtrip': ['sass', 'roundtrip', 'A'], 'check A A': ['check', 'A', 'A'],
            'dead-instructions': ['pass', 'dead-instructions', 'A', '-o', 'B', '--block', '256'],
            'spill-to-shared': ['pass', 'spill-to-shared', 'A', '-o', 'B', '--block', '256', '--dynamic-smem', '0']}


def reason(text):
    """The first line that says why, without names and numbers."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ['nothing']
    line = next((line for line in lines if re.match(r'error|refused|×', line)), lines[0])
    line = re.sub(r"`[^`]*`|\S*/\S*|\bk\d+\b", '…', line)
    return re.sub(r'0x[0-9a-f]+|\d+', '#', line)[:160]


def ask(tool, path):
    """What every command says of a cubin: its exit code and, if that is not 0, why."""
    answers = {}
    with tempfile.TemporaryDirectory() as work:
        for name, command in COMMANDS.items():
            names = {'A': path, 'B': os.path.join(work, 'b.cubin')}
            done = subprocess.run([tool, *(names.get(word, word) for word in command)], capture_output=True, text=True, errors='replace')
            answers[name] = '0' if done.returncode == 0 else f'{done.returncode}: {reason(done.stderr or done.stdout)}'
        whole = subprocess.run([tool, 'sass', '--whole', path], capture_output=True)
        text, again = os.path.join(work, 'a.sass'), os.path.join(work, 'a.cubin')
        with open(text, 'wb') as out:
            out.write(whole.stdout)
        subprocess.run([tool, 'sass', 'assemble', text, '-o', again], capture_output=True)
        is_same = os.path.exists(again) and open(again, 'rb').read() == open(path, 'rb').read()
        answers['sass --whole, assembled'] = '0' if is_same else '1: other bytes'
    return answers


def judge(options):
    result = {'schema': 'warpwright.varied/1', 'made_by': options.note, 'hazards': {}, 'commands': {}}
    for place, folder in enumerate(options.folders):
        found = json.loads(subprocess.run([options.miner, 'suspects', '--json', folder], capture_output=True, text=True, check=True).stdout)
        result['hazards'][os.path.basename(os.path.normpath(folder))] = {f'sm_{sm}': row for sm, row in found.items()}
        if not options.tool:
            continue
        cubins = sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name.endswith('.cubin'))
        counts = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for path, answers in zip(cubins, pool.map(lambda path: ask(options.tool, path), cubins)):
                for command, answer in answers.items():
                    counts[os.path.basename(os.path.dirname(path))][command][answer] += 1
        result['commands'][os.path.basename(os.path.normpath(folder))] = counts
    with open(options.output, 'w') as out:
        json.dump(result, out, indent=1, sort_keys=True)
        out.write('\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser('make')
    command.set_defaults(run=make)
    command.add_argument('folder'), command.add_argument('--seeds', required=True), command.add_argument('--jobs', type=int, default=1)
    command = commands.add_parser('judge')
    command.set_defaults(run=judge)
    command.add_argument('folders', nargs='+'), command.add_argument('--miner', required=True), command.add_argument('--tool')
    command.add_argument('-o', '--output', required=True), command.add_argument('--note', default=''), command.add_argument('--jobs', type=int, default=1)
    options = parser.parse_args()
    options.run(options)


if __name__ == '__main__':
    main()
