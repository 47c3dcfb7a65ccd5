#!/usr/bin/env python3
"""PTX in which common operations have operands that they seldom have: floating point, wide products and conversions with
uniform registers, the uniform datapath with immediates and carries, constants at a uniform index. Beside
scripts/rare-arithmetic.py, for the mining programs (docs/sass.md).

    scripts/rare-operands.py DIR PTXAS [ARCH...]

writes DIR/ARCH.LEVEL.cubin at -O1 and -O3, for sm_75 to sm_90 unless others are named."""

import os
import subprocess
import sys

# Values that each kernel works on at once: they take different registers.
LIVE = (2, 5, 11, 18, 30)


def entry(name, body):
    return f""".visible .entry {name}(.param .u64 p, .param .u64 d, .param .u32 i, .param .u32 j) {{
 .reg .b64 %d<400>; .reg .b32 %r<400>; .reg .pred %p<100>; .reg .f32 %f<300>; .reg .f64 %g<100>;
 ld.param.u64 %d1,[p]; ld.param.u64 %d2,[d]; ld.param.u32 %r1,[i]; ld.param.u32 %r2,[j];
 cvta.to.global.u64 %d1,%d1; mov.u32 %r9,%tid.x; mul.wide.u32 %d9,%r9,8; add.u64 %d8,%d1,%d9;
{body}
 ret;
}}
"""


def load(n, base, kind, file):
    return "".join(f" ld.global.{kind} %{file}{base + k},[%d8+{64 * k}];\n" for k in range(n))


def uniform(n, base):
    """Computed from parameters alone: the uniform datapath does it."""
    return "".join(f" xor.b32 %r{base + k},%r1,{0x1357 * (k + 1)}; shf.l.wrap.b32 %r{base + k},%r{base + k},%r2,{k % 7 + 1};\n"
                   for k in range(n))


def store(n, base, kind, file):
    return "".join(f" st.global.{kind} [%d8+{64 * k}],%{file}{base + k};\n" for k in range(n))


def kernels():
    for n in LIVE:
        u = min(n, 12)
        floats = load(n, 10, "f32", "f") + uniform(u, 300) + "".join(f" mov.b32 %f{100 + k},%r{300 + k};\n" for k in range(u))
        for op in ("max.f32", "min.f32", "div.rn.f32", "div.full.f32"):
            yield floats + "".join(f" {op} %f{200 + k},%f{10 + k},%f{100 + k % u};\n" for k in range(n)) + store(n, 200, "f32", "f")
        for compare in ("ge", "lt", "neu", "eq"):
            yield floats + "".join(
                f" setp.{compare}.f32 %p{k},%f{10 + k},%f{100 + k % u}; selp.u32 %r{200 + k},{k},%r{300 + k % u},%p{k};\n"
                for k in range(n)) + store(n, 200, "u32", "r")
        words = load(n, 10, "u32", "r") + uniform(u, 300)
        for kind in ("s32", "u32"):
            yield uniform(u, 300) + load(n, 50, "f64", "g") + "".join(
                f" cvt.rn.f64.{kind} %g{k},%r{300 + k % u}; fma.rn.f64 %g{k},%g{k},%g{50 + k},%g{k};\n"
                for k in range(n)) + store(n, 0, "f64", "g")
            bases = "".join(f" xor.b64 %d{100 + k},%d2,{0x77 * (k + 1)};\n" for k in range(u))
            for factor in ("%r{0}", "24"):
                yield words + bases + "".join(
                    f" mad.wide.{kind} %d{200 + k},%r{10 + k},{factor.format(10 + (k + 1) % n)},%d{100 + k % u};\n"
                    for k in range(n)) + store(n, 200, "u64", "d")
            # In a loop the bases stay in uniform registers.
            yield (words + bases + " mov.u32 %r50,0;\nLOOP:\n" + "".join(
                f" mad.wide.{kind} %d{200 + k},%r{10 + k},4,%d{100 + k % u}; ld.global.u32 %r{10 + k},[%d{200 + k}];\n"
                for k in range(n)) + " add.u32 %r50,%r50,1; setp.lt.u32 %p50,%r50,%r2; @%p50 bra LOOP;\n" + store(n, 10, "u32", "r"))
        yield words + "".join(
            f" sub.cc.u32 %r{100 + k},%r{10 + k},%r{10 + (k + 1) % n}; subc.u32 %r{200 + k},0,0;\n"
            for k in range(n)) + store(n, 200, "u32", "r")
        yield words + "".join(
            f" add.cc.u32 %r{100 + k},%r{10 + k},%r{10 + (k + 1) % n}; addc.u32 %r{200 + k},0,-1; xor.b32 %r{200 + k},%r{200 + k},%r{100 + k};\n"
            for k in range(n)) + store(n, 200, "u32", "r")
        for shift in (1, 5, 16, 19, 31):
            for op in ("sub", "add"):
                yield words + "".join(
                    f" shr.s32 %r{100 + k},%r{10 + k},{shift}; {op}.s32 %r{200 + k},%r{100 + k},%r{300 + k % u};\n"
                    for k in range(n)) + store(n, 200, "u32", "r")
            for kind in ("u32", "s32"):
                yield words + "".join(
                    f" shr.{kind} %r{100 + k},%r{300 + k % u},{shift}; add.s32 %r{100 + k},%r{100 + k},{-1 - k % 3};"
                    f" mad.lo.u32 %r{200 + k},%r{10 + k},%r{100 + k},%r{10 + k};\n" for k in range(n)) + store(n, 200, "u32", "r")
        for shift in (0, 1, 2, 3):
            yield words + "".join(
                f" cvt.s64.s32 %d{100 + k},%r{300 + k}; shl.b64 %d{100 + k},%d{100 + k},{shift}; add.s64 %d{100 + k},%d{100 + k},{-8 * (k + 1)};"
                f" add.s64 %d{100 + k},%d{100 + k},%d2;\n" for k in range(u)) + "".join(
                f" ld.global.u32 %r{200 + k},[%d{100 + k % u}+{4 * (k + 1)}]; add.u32 %r{200 + k},%r{200 + k},%r{10 + k};\n"
                for k in range(n)) + store(n, 200, "u32", "r")
        for shift in (0, 1, 3):
            yield uniform(u, 300) + load(n, 200, "u64", "d") + "".join(
                f" cvt.s64.s32 %d{100 + k},%r{300 + k}; shl.b64 %d{100 + k},%d{100 + k},{shift}; add.s64 %d{100 + k},%d{100 + k},{-4 * (k + 1)};\n"
                for k in range(u)) + "".join(
                f" xor.b64 %d{200 + k},%d{200 + k},%d{100 + k % u};\n" for k in range(n)) + store(n, 200, "u64", "d")
        for width, file in (("u64", "d"), ("u32", "r")):
            size = int(width[1:]) // 8
            yield words + "".join(
                f" and.b32 %r{100 + k},%r{300 + k},31; mul.wide.u32 %d{50 + k},%r{100 + k},{size}; mov.u64 %d{300 + k},table;"
                f" add.u64 %d{50 + k},%d{50 + k},%d{300 + k};\n" for k in range(u)) + load(n, 200, width, file) + "".join(
                f" ld.const.{width} %{file}{100 + k},[%d{50 + k % u}+{size * (k % 9)}]; add.{width} %{file}{200 + k},%{file}{200 + k},%{file}{100 + k};\n"
                for k in range(n)) + store(n, 200, width, file)
        constants = "".join(
            f" ld.const.u64 %d{100 + k},[%d50+{8 * k}]; ld.global.u64 %d{200 + k},[%d8+{64 * k}]; xor.b64 %d{200 + k},%d{200 + k},%d{100 + k};"
            f" st.global.u64 [%d8+{64 * k}],%d{200 + k};\n" for k in range(n))
        yield (" mov.u64 %d50,table; mov.u32 %r50,0;\nAGAIN:\n" + constants +
               " add.u64 %d50,%d50,8; add.u32 %r50,%r50,1; setp.lt.u32 %p50,%r50,24; @%p50 bra AGAIN;\n")


def main():
    folder, ptxas, *gpus = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    table = ".const .align 8 .b8 table[4096];\n"
    text = "".join(entry(f"k{number}", body) for number, body in enumerate(kernels()))
    for gpu in gpus or ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90"]:
        source = f"{folder}/{gpu}.ptx"
        with open(source, "w") as out:
            out.write(f".version 7.8\n.target {gpu}\n.address_size 64\n{table}{text}")
        for level in ("1", "3"):
            subprocess.run([ptxas, "-arch=" + gpu, "-O" + level, source, "-o", f"{folder}/{gpu}.{level}.cubin"], check=True)


main()
