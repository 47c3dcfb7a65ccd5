"""PolyBench-ACC: the sequential loops of each program as a kernel of one thread, against its CUDA kernels.

The CUDA kernels of the repository have one version each (HMPP and OpenACC are directives on the loops). Its other
version is the function for the processor that each program checks its results with. That one becomes a kernel here by
substitutions in its text; launches are those of the program's host code.
"""
import re

REPO = "cavazos-lab+PolyBench-ACC"
# Extents are macros there; here they are the parameters of the same name.
EXTENTS = ["NI", "NJ", "NK", "NL", "NM", "NX", "NY", "NR", "NQ", "NP", "N", "M", "TMAX", "TSTEPS"]
HEAD = """#include <math.h>
#undef M_PI
typedef float DATA_TYPE;
struct Row { DATA_TYPE *at; __device__ DATA_TYPE &operator[](int i) { return at[i]; } };
struct Plane { DATA_TYPE *at; int n; __device__ DATA_TYPE *operator[](int i) { return at + i * n; } };
struct Space { DATA_TYPE *at; int m, n; __device__ Plane operator[](int i) { return {at + i * m * n, n}; } };
"""
VIEWS = {1: "Row", 2: "Plane", 3: "Space"}
LINE, TILE = "256", "32 8"


def program(path, loops, args, order, launches, sizes):
    """`order`: the parameters of the loops; `launches`: kernel, extents of its threads, block, its parameters."""
    return dict(path="CUDA/" + path, loops=loops, args=args, order=order, launches=launches, sizes=sizes)


def over(threads, block):
    return " ".join("ceil_div(%s,%s)" % pair for pair in zip(threads.split(), block.split()))


def programs():
    gemm = [dict(ni=33, nj=40, nk=12), dict(ni=7, nj=31, nk=9), dict(ni=16, nj=64, nk=5)]
    chain = [dict(ni=9, nj=12, nk=7, nl=10, nm=5), dict(ni=8, nj=32, nk=4, nl=33, nm=3), dict(ni=1, nj=5, nk=6, nl=7, nm=2)]
    # The loops take a row of C to be as long as the second of its extents, the kernel as the first: they are the same here.
    even = [dict(size, nl=size["nj"]) for size in chain]
    pair = [dict(nx=40, ny=33), dict(nx=7, ny=300), dict(nx=257, ny=3)]
    square = [dict(n=n) for n in (24, 7, 33)]
    grid = [dict(nx=12, ny=33), dict(nx=8, ny=32), dict(nx=5, ny=7)]
    scalars = {"alpha": "f32 = 1.5", "beta": "f32 = 1.25"}
    found = [
        program("linear-algebra/kernels/gemm/gemm.cu", "gemm",
                dict(scalars, A="f32 ni,nk in", B="f32 nk,nj in", C="f32 ni,nj in out"), "ni nj nk alpha beta A B C",
                [("gemm_kernel", "nj ni", TILE, "ni nj nk alpha beta A B C")], gemm),
        program("linear-algebra/kernels/2mm/2mm.cu", "mm2_cpu",
                dict(scalars, tmp="f32 ni,nj out", A="f32 ni,nk in", B="f32 nk,nj in", C="f32 nl,nj in", D="f32 ni,nl in out"),
                "ni nj nk nl alpha beta tmp A B C D",
                [("mm2_kernel1", "nj ni", TILE, "ni nj nk nl alpha beta tmp A B"),
                 ("mm2_kernel2", "nl ni", TILE, "ni nj nk nl alpha beta tmp C D")], even),
        program("linear-algebra/kernels/3mm/3mm.cu", "mm3_cpu",
                dict(E="f32 ni,nj out", A="f32 ni,nk in", B="f32 nk,nj in", F="f32 nj,nl out", C="f32 nj,nm in", D="f32 nm,nl in",
                     G="f32 ni,nl out"), "ni nj nk nl nm E A B F C D G",
                [("mm3_kernel1", "nj ni", TILE, "ni nj nk nl nm A B E"), ("mm3_kernel2", "nl nj", TILE, "ni nj nk nl nm C D F"),
                 ("mm3_kernel3", "nl ni", TILE, "ni nj nk nl nm E F G")], chain),
        program("linear-algebra/kernels/atax/atax.cu", "atax_cpu",
                dict(A="f32 nx,ny in", x="f32 ny in", y="f32 ny out", tmp="f32 nx out"), "nx ny A x y tmp",
                [("atax_kernel1", "nx", LINE, "nx ny A x tmp"), ("atax_kernel2", "ny", LINE, "nx ny A y tmp")], pair),
        program("linear-algebra/kernels/bicg/bicg.cu", "bicg_cpu",
                dict(A="f32 nx,ny in", r="f32 nx in", s="f32 ny out", p="f32 ny in", q="f32 nx out"), "nx ny A r s p q",
                [("bicg_kernel1", "ny", LINE, "nx ny A r s"), ("bicg_kernel2", "nx", LINE, "nx ny A p q")], pair),
        # The loops copy back as many as the first extent has, the kernel as many as the last: they are the same here.
        program("linear-algebra/kernels/doitgen/doitgen.cu", "kernel_doitgenCpu",
                dict(A="f32 nr,nq,np in out", C4="f32 np,np in", sum="f32 nr,nq,np out"), "nr nq np A C4 sum",
                [("doitgen_kernel%d" % k, "np nq", TILE, "nr nq np sum A C4 =%d" % r) for r in range(3) for k in (1, 2)],
                [dict(nr=3, nq=q, np=3) for q in (9, 1, 17)]),
        program("linear-algebra/kernels/gemver/gemver.cu", "gemver",
                dict(scalars, A="f32 n,n in out", u1="f32 n in", v1="f32 n in", u2="f32 n in", v2="f32 n in", w="f32 n in out",
                     x="f32 n in out", y="f32 n in", z="f32 n in"), "n alpha beta A u1 v1 u2 v2 w x y z",
                [("gemver_kernel1", "n n", TILE, "n alpha beta A v1 v2 u1 u2"),
                 ("gemver_kernel2", "n", LINE, "n alpha beta A x y z"), ("gemver_kernel3", "n", LINE, "n alpha beta A x w")], square),
        # The kernel adds to what both outputs begin with, and the loops begin at zero.
        program("linear-algebra/kernels/gesummv/gesummv.cu", "gesummv",
                dict(scalars, A="f32 n,n in", B="f32 n,n in", tmp="f32 n zeros out", x="f32 n in", y="f32 n zeros out"),
                "n alpha beta A B tmp x y", [("gesummv_kernel", "n", LINE, "n alpha beta A B tmp x y")], square),
        program("linear-algebra/kernels/mvt/mvt.cu", "runMvt",
                dict(A="f32 n,n in", x1="f32 n in out", x2="f32 n in out", y1="f32 n in", y2="f32 n in"), "n A x1 x2 y1 y2",
                [("mvt_kernel1", "n", LINE, "n A x1 y1"), ("mvt_kernel2", "n", LINE, "n A x2 y2")], square),
        program("linear-algebra/kernels/syrk/syrk.cu", "syrk",
                dict(scalars, A="f32 ni,nj in", C="f32 ni,ni in out"), "ni nj alpha beta A C",
                [("syrk_kernel", "ni ni", TILE, "ni nj alpha beta A C")], [dict(ni=i, nj=j) for i, j in ((33, 8), (7, 11), (16, 5))]),
        program("linear-algebra/kernels/syr2k/syr2k.cu", "syr2kCpu",
                dict(scalars, A="f32 ni,nj in", B="f32 ni,nj in", C="f32 ni,ni in out"), "ni nj alpha beta A B C",
                [("syr2k_kernel", "ni ni", TILE, "ni nj alpha beta A B C")],
                [dict(ni=i, nj=j) for i, j in ((33, 8), (7, 11), (16, 5))]),
        program("linear-algebra/solvers/gramschmidt/gramschmidt.cu", "gramschmidt",
                dict(A="f32 ni,nj in out", R="f32 nj,nj in out", Q="f32 ni,nj in out"), "ni nj A R Q",
                [("gramschmidt_kernel%d" % k, {1: "1", 2: "ni", 3: "nj"}[k], LINE, "ni nj A R Q =%d" % t)
                 for t in range(3) for k in (1, 2, 3)], [dict(ni=i, nj=3) for i in (12, 3, 7)]),
        program("linear-algebra/solvers/lu/lu.cu", "lu", dict(A="f32 n,n in out"), "n A",
                [launch for t in range(7) for launch in (("lu_kernel1", "n", LINE, "n A =%d" % t),
                                                         ("lu_kernel2", "n n", TILE, "n A =%d" % t))], [dict(n=n) for n in (7, 3, 5)]),
        # The host sets the last number of the diagonal.
        program("datamining/correlation/correlation.cu", "correlation",
                dict(data="f32 n,m in out", mean="f32 m out", stddev="f32 m out", symmat="f32 m,n ones out"), "m n data mean stddev symmat",
                [("mean_kernel", "m", LINE, "m n mean data"), ("std_kernel", "m", LINE, "m n mean stddev data"),
                 ("reduce_kernel", "m n", TILE, "m n mean stddev data"), ("corr_kernel", "m", LINE, "m n symmat data")],
                [dict(m=n, n=n) for n in (9, 4, 13)]),
        program("datamining/covariance/covariance.cu", "covariance",
                dict(data="f32 n,m in out", symmat="f32 m,n out", mean="f32 m out"), "m n data symmat mean",
                [("mean_kernel", "m", LINE, "m n mean data"), ("reduce_kernel", "m n", TILE, "m n mean data"),
                 ("covar_kernel", "m", LINE, "m n symmat data")], [dict(m=n, n=n) for n in (9, 4, 13)]),
        program("stencils/convolution-2d/2DConvolution.cu", "conv2D", dict(A="f32 ni,nj in", B="f32 ni,nj in out"), "ni nj A B",
                [("convolution2D_kernel", "nj ni", TILE, "ni nj A B")], [dict(ni=i, nj=j) for i, j in ((33, 40), (8, 32), (3, 5))]),
        program("stencils/convolution-3d/3DConvolution.cu", "conv3D", dict(A="f32 ni,nj,nk in", B="f32 ni,nj,nk in out"),
                "ni nj nk A B", [("convolution3D_kernel", "nk nj", TILE, "ni nj nk A B =%d" % i) for i in range(1, 6)],
                [dict(ni=i, nj=j, nk=k) for i, j, k in ((7, 9, 33), (5, 8, 32), (3, 4, 5))]),
        program("stencils/fdtd-2d/fdtd2d.cu", "runFdtd",
                dict(fict="f32 2 in", ex="f32 nx,ny in out", ey="f32 nx,ny in out", hz="f32 nx,ny in out"), "=2 nx ny fict ex ey hz",
                [("fdtd_step%d_kernel" % k, "ny nx", TILE, "nx ny %sex ey hz =%d" % ("fict " if k == 1 else "", t))
                 for t in range(2) for k in (1, 2, 3)], grid),
        program("stencils/jacobi-1d-imper/jacobi1D.cu", "runJacobi1DCpu", dict(A="f32 n in out", B="f32 n in out"), "=2 n A B",
                [("runJacobiCUDA_kernel%d" % k, "n", LINE, "n A B") for _ in range(2) for k in (1, 2)],
                [dict(n=n) for n in (300, 7, 256)]),
        program("stencils/jacobi-2d-imper/jacobi2D.cu", "runJacobi2DCpu", dict(A="f32 n,n in out", B="f32 n,n in out"), "=2 n A B",
                [("runJacobiCUDA_kernel%d" % k, "n n", TILE, "n A B") for _ in range(2) for k in (1, 2)], square),
    ]
    return found


def arguments(order, args):
    """As description() of rewrites.py reads them; `=4` is a number, other names without an entry are extents."""
    words = []
    for number, name in enumerate(order.split()):
        if name.startswith("="):
            words.append("number%d s32 = %s" % (number, name[1:]))
        else:
            words.append(name + " " + args.get(name, "s32 = " + name))
    return "; ".join(words)


def pairs():
    for p in programs():
        once = (p["loops"] + "_loops", "1", "1", 0, arguments(p["order"], p["args"]))
        launches = [(kernel, over(threads, block), block, 0, arguments(order, p["args"]))
                    for kernel, threads, block, order in p["launches"]]
        yield dict(name="polybench/" + p["path"].split("/")[-2], source=("polybench", p["path"], p["loops"]), rewrite=launches,
                   plain=once, sizes=p["sizes"], both=True)


def loops_as_kernel(text, name):
    """The function for the processor with views for its arrays, and a kernel of one thread that calls it."""
    start = re.search(r"^void\s+%s\s*\((.*?)\)\s*\{" % name, text, re.S | re.M)
    depth, end = 1, start.end()
    while depth:
        depth += (text[end] == "{") - (text[end] == "}")
        end += 1
    mine, theirs, passed = [], [], []
    for word in re.split(r",(?![^(]*\))", start.group(1)):
        array = re.search(r"POLYBENCH_(\d)D\(([^)]*)\)", word)
        if array:
            rank, inside = int(array.group(1)), [w.strip() for w in array.group(2).split(",")]
            mine.append("%s %s" % (VIEWS[rank], inside[0]))
            theirs.append("DATA_TYPE *" + inside[0])
            passed.append("%s{%s}" % (VIEWS[rank], ", ".join([inside[0]] + [w.lower() for w in inside[rank + 2:]])))
        else:
            mine.append(word.strip())
            theirs.append(word.strip())
            passed.append(word.split()[-1])
    return "__device__ void %s(%s) {%s\n__global__ void %s_loops(%s) { %s(%s); }\n" % (
        name, ", ".join(mine), text[start.end():end], name, ", ".join(theirs), name, ", ".join(passed))


def source(text, device, loops):
    """A program's kernels and its loops."""
    extents = "".join("#define _PB_%s %s\n#define %s %s\n" % (e, e.lower(), e, e.lower()) for e in EXTENTS)
    return HEAD + extents + device(text) + "\n" + loops_as_kernel(text, loops)
