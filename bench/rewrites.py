#!/usr/bin/env python3
"""Rewritten kernels of public repositories against plain ones: what `warpwright check --launch-a --launch-b` says.

    rewrites.py MIRRORS WORK --nvcc NVCC --warpwright BIN --out FILE [--only NAME] [--ptx-only]

PolyBench's plain versions are its own loops, robust-kbench's its own plain kernels where it has them.

MIRRORS has a bare clone of each repository in OWNER+NAME/repo. Sources are taken apart into WORK; nothing of them is
kept here. The file has for each pair its verdict at three sizes, the reasons, terms and seconds.
"""
import argparse, json, os, re, statistics, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "rewrites"))
import polybench, robust_kbench  # noqa: E402

SAMPLES = "NVIDIA+cuda-samples"
RODINIA = "yuhc+gpu-rodinia"
L1 = "deepreinforce-ai+CUDA-L1"
HERE = os.path.dirname(os.path.abspath(__file__))
# Pairs whose rewrite is faulty in its source, by reading it: a refutation of any other is wrong.
MASK = "shuffles from lanes that its member mask does not have, or that are elsewhere: what they give is undefined"
OFFSET = "reads B at A's offset and by A's width (`&B[a + wA * threadIdx.y + t4x]`); the sample fills both with one number each"
FAULTY = {
    "samples/reduce7-float": MASK,
    "samples/reduce7-double": MASK,
    "samples/MatrixMulAsyncCopyMultiStageLargeChunk": OFFSET,
    "samples/MatrixMulAsyncCopyMultiStage": "copies a fifth tile into a ring of four (`aStage <= a + aStep * maxPipelineStages`), where the "
                                            "first one still arrives: seen from five tiles on",
    "samples/MatrixMulAsyncCopyLargeChunk": OFFSET,
    "samples/MatrixMulNaiveLargeChunk": OFFSET,
    "samples/MatrixMulAsyncCopyLargeChunkAWBarrier": OFFSET + "; and 16 threads initialise its barrier (`threadIdx.x == 0` alone)",
    "cuda-l1/10-tensor_matrix_multiply_kernel": "tiles of 32 columns by 16 threads: columns up to 43 of a row are read in shared memory",
    "cuda-l1/23-softmax_vectorized_multiblock_kernel": "two blocks have half a row each and exchange maxima and sums in shared memory, "
                                                       "of which each block has its own: half is never written",
    "cuda-l1/24-log_softmax_forward_kernel": "warps write their sums over `shared_data[0]`, which others still read as the maximum",
    "cuda-l1/26-fast_gelu_kernel": "tanh by a fraction of low degree: another function, by more than rounding",
    "cuda-l1/48-mean_dim1_kernel": "threads without four elements of their own add single ones that others have added",
    "cuda-l1/48-mean_dim2_kernel": "threads without four elements of their own add single ones that others have added",
    "cuda-l1/89-cumsum_kernel": "on the way down a thread overwrites the element that its neighbour reads in the same step",
    "cuda-l1/91-efficient_reverse_cumsum_kernel": "each thread sums its own part, and nobody adds those behind it",
    "cuda-l1/96-huber_loss_kernel": MASK,
    **robust_kbench.FAULTY,
}
PRELUDE = "#include <cuda_runtime.h>\n#include <float.h>\n#include <math.h>\n#include <stdint.h>\n#include <cuda_fp16.h>\n#include <limits>\n"
ROWS = "g_idata {t} rows,n in; g_odata {t} rows out"


def pair(name, source, rewrite, plain, sizes):
    return dict(name=name, source=source, rewrite=rewrite, plain=plain, sizes=sizes)


def sizes(**lists):
    """Three sizes from lists of three values."""
    return [dict((k, v[i]) for k, v in lists.items()) for i in range(3)]


def names(kernel, template, ty):
    """As cu++filt writes the instance."""
    return kernel + template.format(ty=ty).replace(",128", ", (unsigned int)128").replace(",false", ", false")


def reductions():
    found = []
    for ty, t, ref in (("float", "f32", "row_sums"), ("int", "s32", "row_sums_int"), ("double", "f64", "row_sums_double")):
        plain = (ref, "ceil_div(rows,32)", "32", 0, ROWS.format(t=t) + "; rows s32 = rows; n s32 = n")
        args = "g_idata {t} n in; g_odata {t} 1 out; n u32 = n".format(t=t)
        plain_one = (ref, "1", "32", 0, "g_idata {t} n in; g_odata {t} 1 out; rows s32 = 1; n s32 = n".format(t=t))
        for k, template, per in (
            ("reduce0", "<{ty}>", 1), ("reduce1", "<{ty}>", 1), ("reduce2", "<{ty}>", 1), ("reduce3", "<{ty}>", 2),
            ("reduce4", "<{ty},128>", 2), ("reduce5", "<{ty},128>", 2), ("reduce6", "<{ty},128,false>", 9),
            ("reduce7", "<{ty},128,false>", 9), ("cg_reduce", "<{ty}>", 9),
        ):
            const = "const " if k == "reduce7" else ""
            inst = "template __global__ void %s%s(%s%s *, %s *, unsigned int);" % (
                k, template.format(ty=ty), const, ty, ty)
            most = {1: [128, 101, 33], 2: [256, 200, 129], 9: [256, 500, 1000]}[per]
            found.append(pair("samples/%s-%s" % (k, ty), ("reduction", inst), (names(k, template, ty), "1", "128", 128 * 8, args), plain_one,
                              sizes(n=most)))
    return found


def of_file(name, repo, path, rewrite, plain, at, inst="", before=""):
    """A kernel of a file; instances of templates are compiled with those of the file's other pairs."""
    return pair(name, ("file", repo, path, inst, before), rewrite, plain, at)


def copies(square, at):
    """Products whose tiles are copied asynchronously."""
    path = "Samples/3_CUDA_Features/globalToShmemAsyncCopy/globalToShmemAsyncCopy.cu"
    before = "#include <assert.h>\n#include <cuda/pipeline>\n#include <cuda/barrier>\n#include <cooperative_groups.h>\n" \
             "namespace cg = cooperative_groups;\n"
    args = "C f32 m,n out; A f32 m,k in; B f32 k,n in; wA s32 = k; wB s32 = n"
    for k, block in (("MatrixMulAsyncCopyMultiStageLargeChunk", "16 16"), ("MatrixMulAsyncCopyLargeChunk", "16 16"),
                     ("MatrixMulAsyncCopyLargeChunkAWBarrier", "16 16"), ("MatrixMulAsyncCopySingleStage", "16 16"),
                     ("MatrixMulAsyncCopyMultiStage", "16 16"), ("MatrixMulNaive", "16 16"),
                     ("MatrixMulNaiveLargeChunk", "16 16")):
        const = "const " if "Async" in k else ""
        inst = "template __global__ void %s<16>(float *, %sfloat *, %sfloat *, int, int);" % (k, const, const)
        yield of_file("samples/" + k, SAMPLES, path, (k + "<16>", "n/16 m/16", block, 0, args), square, at, inst, before)


def samples(square, at):
    found = list(copies(square, at))
    fence = "Samples/2_Concepts_and_Techniques/threadFenceReduction/threadFenceReduction_kernel.cuh"
    before = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
    args = "g_idata f32 n in; g_odata f32 parts out; n u32 = n"
    for k, every in (("reduceMultiPass", 0), ("reduceSinglePass", 1)):
        inst = "template __global__ void %s<128, false>(const float *, float *, unsigned int);" % k
        found.append(of_file("samples/" + k, SAMPLES, fence, (k + "<(unsigned int)128, false>", "parts", "128", 512, args),
                             ("part_sums", "1", "32", 0, "g_idata f32 n in; g_odata f32 parts out; parts s32 = parts; "
                              "per s32 = 256; n s32 = n; all s32 = %d" % every),
                             sizes(n=[1000, 511, 700], parts=[4, 2, 3]), inst, before))
    found.append(of_file("samples/scalarProd", SAMPLES, "Samples/2_Concepts_and_Techniques/scalarProd/scalarProd_kernel.cuh",
                         ("scalarProdGPU", "2", "256", 0, "c f32 rows out; a f32 rows,n in; b f32 rows,n in; rows s32 = rows; n s32 = n"),
                         ("dots", "1", "32", 0, "a f32 rows,n in; b f32 rows,n in; c f32 rows out; rows s32 = rows; n s32 = n"),
                         sizes(rows=[3, 5, 2], n=[1024, 300, 2500]), "", before))
    return found


def rodinia():
    flows = "sdc f32 = 0.1; nx s32 = nx; ny s32 = ny; nz s32 = nz; ce f32 = 0.11; cw f32 = 0.12; cn f32 = 0.13; " \
            "cs f32 = 0.14; ct f32 = 0.15; cb f32 = 0.16; cc f32 = 0.17"
    cells = "p f32 nz,ny,nx in; tin f32 nz,ny,nx in; tout f32 nz,ny,nx out; "
    n = sizes(n=[40, 7, 65], t=[3, 0, 63])
    return [
        of_file("rodinia/hotspotOpt1", RODINIA, "cuda/hotspot3D/opt1.cu", ("hotspotOpt1", "nx/64 ny/4", "64 4", 0, cells + flows),
                ("heat", "ceil_div(nx*ny*nz,64)", "64", 0, cells + flows), sizes(nx=[64, 128, 64], ny=[4, 8, 12], nz=[4, 2, 8])),
        of_file("rodinia/Fan1", RODINIA, "cuda/gaussian/gaussian.cu",
                ("Fan1", "ceil_div(n,512)", "512", 0, "m f32 n,n in out; a f32 n,n in; n s32 = n; t s32 = t"),
                ("factors", "ceil_div(n,64)", "64", 0, "m f32 n,n in out; a f32 n,n in; n s32 = n; t s32 = t"), n),
        of_file("rodinia/Fan2", RODINIA, "cuda/gaussian/gaussian.cu",
                ("Fan2", "ceil_div(n,4) ceil_div(n,4)", "4 4", 0,
                 "m f32 n,n in; a f32 n,n in out; b f32 n in out; n s32 = n; j1 s32 = n-t; t s32 = t"),
                ("eliminated", "ceil_div(n*n,64)", "64", 0, "m f32 n,n in; a f32 n,n in out; b f32 n in out; n s32 = n; t s32 = t"), n),
        of_file("rodinia/invert_mapping", RODINIA, "cuda/kmeans/kmeans_cuda_kernel.cu",
                ("invert_mapping", "ceil_div(n,256)", "256", 0, "input f32 n,m in; output f32 m,n out; n s32 = n; m s32 = m"),
                ("transposed", "ceil_div(n*m,64)", "64", 0, "input f32 n,m in; output f32 m,n out; m s32 = m; n s32 = n"),
                sizes(n=[300, 37, 256], m=[34, 5, 9])),
        of_file("rodinia/euclid", RODINIA, "cuda/nn/nn_cuda.cu",
                ("euclid", "ceil_div(n,256)", "256", 0, "at f32 n,2 in; out f32 n out; n s32 = n; lat f32 = 30.5; lng f32 = 90.25"),
                ("distances", "ceil_div(n,64)", "64", 0, "at f32 n,2 in; out f32 n out; n s32 = n; lat f32 = 30.5; lng f32 = 90.25"),
                sizes(n=[1000, 37, 512]), "", "typedef struct latLong { float lat; float lng; } LatLong;\n"),
    ]


def norms_and_losses(first, last, cube, table, rows):
    four = "input f32 a,n,b in; output f32 a,b out; a s32 = a; n s32 = n; b s32 = b"
    second = ("max_middle", "ceil_div(a*b,32)", "32", 0, four)
    outer = "input f32 n,a,b in; output f32 a,b out; n s32 = n; a s32 = a; b s32 = b"
    inner = "input f32 a,b,n in; output f32 a,b out; a s32 = a; b s32 = b; n s32 = n"
    inst = "<float>(const float *, float *, int, int, int)"
    tiled = "<float, 256>(const float *, float *, int, int, int)"
    wide = sizes(a=[3, 2, 5], n=[64, 32, 300], b=[5, 4, 3])
    triplets = "anchor f32 rows,n in; positive f32 rows,n in; negative f32 rows,n in; output f32 rows out; " \
               "margin f32 = 0.5; rows s32 = rows; n s32 = n"
    return [
        l1(10, "tensor_matrix_multiply_kernel", "<float>(const float *, const float *, float *, int, int, int, int)",
           ("ceil_div(n,16) ceil_div(m,16) 2", "16 16", 0, "A f32 2,m,k in; B f32 k,n in; C f32 2,m,n out; batch s32 = 2; "
            "m s32 = m; k s32 = k; n s32 = n"),
           ("product", "ceil_div(2*m*n,64)", "64", 0, "A f32 2,m,k in; B f32 k,n in; C f32 2,m,n out; m s32 = 2*m; n s32 = n; k s32 = k"),
           sizes(m=[32, 20, 64], n=[32, 24, 48], k=[32, 40, 24])),
        l1(36, "rmsnorm_optimized_kernel", "", ("ceil_div(a*b,256)", "256", 0,
           "output f32 a,n,b out; input f32 a,n,b in; a s32 = a; n s32 = n; b s32 = b; one s32 = 1; eps f32 = 0.00001"),
           ("rms_middle", "ceil_div(a*b,32)", "32", 0,
            "input f32 a,n,b in; output f32 a,n,b out; a s32 = a; n s32 = n; b s32 = b; eps f32 = 0.00001"), cube),
        l1(49, "max_dim0_kernel", inst, ("ceil_div(a,16) ceil_div(b,16)", "16 16", 0, outer), first("max_middle"), cube),
        l1(49, "max_dim1_kernel", inst, ("a ceil_div(b,64)", "1 64", 0, four), second, cube),
        l1(49, "max_dim1_optimized_kernel", tiled, ("a b", "256", 0, four), second, cube),
        l1(49, "max_dim2_kernel", inst, ("a ceil_div(b,64)", "1 64", 0, inner), last("max_middle"), wide),
        l1(49, "max_dim2_optimized_kernel", tiled, ("a b", "256", 0, inner), last("max_middle"), wide),
        l1(91, "efficient_reverse_cumsum_kernel", "<float>(const float *, float *, int, int)", ("rows", "128", 0, table),
           rows("reversed_sum"), sizes(rows=[3, 2, 4], n=[300, 37, 128])),
        l1(91, "reverse_cumsum_kernel", "<float>(const float *, float *, int, int)", ("rows", "128", 0, table),
           rows("reversed_sum"), sizes(rows=[3, 2, 4], n=[64, 37, 128])),
        l1(96, "huber_loss_kernel", "<float, 256>(const float *, const float *, float *, int)",
           ("ceil_div(n,256)", "256", 0, "predictions f32 n in; targets f32 n in; result f32 1 zeros out; n s32 = n"),
           ("huber", "1", "1", 0, "predictions f32 n in; targets f32 n in; result f32 1 out; n s32 = n"), sizes(n=[256, 37, 700])),
        l1(99, "triplet_margin_loss_kernel", "", ("ceil_div(rows,256)", "256", 0, triplets),
           ("triplet", "ceil_div(rows,32)", "32", 0, triplets), sizes(rows=[5, 300, 2], n=[64, 3, 500])),
    ]


def l1(task, kernel, inst, launch, plain, at):
    """A kernel of CUDA-L1's level 1."""
    return pair("cuda-l1/%d-%s" % (task, kernel), ("l1", task, inst), (kernel,) + launch, plain, at)


def pairs():
    flat = "input f32 n in; output f32 n out; n s32 = n"
    point = lambda ref: (ref, "ceil_div(n,64)", "64", 0, flat)
    n = sizes(n=[1000, 37, 2051])
    table = "input f32 rows,n in; output f32 rows,n out; rows s32 = rows; n s32 = n"
    rows = lambda ref: (ref, "ceil_div(rows,32)", "32", 0, table)
    middle = "input f32 a,n,b in; output f32 a,b out; a s32 = a; n s32 = n; b s32 = b"
    over = lambda ref: (ref, "ceil_div(a*b,32)", "32", 0, middle)
    cube = sizes(a=[3, 2, 5], n=[70, 33, 300], b=[5, 4, 3])
    # The first and the last dimension are middle ones of arrays with an extent of 1.
    first = lambda ref: (ref, "ceil_div(a*b,32)", "32", 0,
                         "input f32 n,a,b in; output f32 a,b out; one s32 = 1; n s32 = n; inner s32 = a*b")
    last = lambda ref: (ref, "ceil_div(a*b,32)", "32", 0,
                        "input f32 a,b,n in; output f32 a,b out; outer s32 = a*b; n s32 = n; one s32 = 1")
    three = "a s32 = a; n s32 = n; b s32 = b"
    found = reductions()
    wide = sizes(n=[64, 32, 96], m=[32, 96, 64])
    for k in ("transposeNaive", "transposeCoalesced", "transposeNoBankConflicts", "transposeDiagonal"):
        found.append(pair("samples/" + k, ("transpose", ""), (k, "n/32 m/32", "32 16", 0,
                     "odata f32 n,m out; idata f32 m,n in; width s32 = n; height s32 = m"),
                     ("transposed", "ceil_div(n*m,64)", "64", 0,
                      "idata f32 m,n in; odata f32 n,m out; width s32 = n; height s32 = m"),
                     sizes(n=[64, 32, 64], m=[64, 32, 64]) if k == "transposeDiagonal" else wide))
    for k in ("copy", "copySharedMem"):
        found.append(pair("samples/" + k, ("transpose", ""), (k, "n/32 m/32", "32 16", 0,
                     "odata f32 m,n out; idata f32 m,n in; width s32 = n; height s32 = m"),
                     ("copied", "ceil_div(n*m,64)", "64", 0,
                      "idata f32 m,n in; odata f32 m,n out; width s32 = n; height s32 = m"),
                     sizes(n=[64, 32, 96], m=[64, 32, 96])))
    square = ("product", "ceil_div(m*n,64)", "64", 0,
              "A f32 m,k in; B f32 k,n in; C f32 m,n out; m s32 = m; n s32 = n; k s32 = k")
    for b in (16, 32):
        found.append(pair("samples/matrixMul%d" % b,
                     ("matrixMul", "template __global__ void MatrixMulCUDA<%d>(float *, float *, float *, int, int);" % b),
                     ("MatrixMulCUDA<%d>" % b, "n/%d m/%d" % (b, b), "%d %d" % (b, b), 0,
                      "C f32 m,n out; A f32 m,k in; B f32 k,n in; wA s32 = k; wB s32 = n"), square,
                     sizes(m=[32, 64, 32], n=[64, 32, 96], k=[32, 96, 64])))
    found += [
        l1(5, "matrix_scalar_mul_kernel", "", ("ceil_div(n,256)", "256", 0,
           "input f32 n,m in; output f32 n,m out; scalar f32 = 3.14; n s32 = n; m s32 = m"),
           ("scaled", "ceil_div(n*m,64)", "64", 0, "input f32 n,m in; output f32 n,m out; scalar f32 = 3.14; n s32 = n*m"),
           sizes(n=[40, 7, 300], m=[8, 13, 21])),
        l1(12, "diagonal_matmul_kernel", "", ("ceil_div(m,32) ceil_div(n,32)", "32 32", 0,
           "A f32 n in; B f32 n,m in; C f32 n,m out; n s32 = n; m s32 = m"),
           ("diagonal", "ceil_div(n*m,64)", "64", 0, "A f32 n in; B f32 n,m in; C f32 n,m out; n s32 = n; m s32 = m"),
           sizes(n=[40, 7, 65], m=[40, 13, 33])),
        l1(9, "tall_skinny_matmul_kernel", "", ("ceil_div(n,32) ceil_div(m,32)", "32 32", 0,
           "A f32 m,k in; B f32 k,n in; C f32 m,n out; m s32 = m; k s32 = k; n s32 = n"), square,
           sizes(m=[64, 32, 96], n=[64, 96, 32], k=[16, 9, 7])),
        l1(13, "matmul_kernel_fp32", "", ("n/16 n/16", "16 16", 0, "A f32 n,n in; B f32 n,n in; C f32 n,n out; n s32 = n"),
           ("product", "ceil_div(n*n,64)", "64", 0,
            "A f32 n,n in; B f32 n,n in; C f32 n,n out; m s32 = n; n s32 = n; k s32 = n"), sizes(n=[32, 16, 48])),
        l1(15, "triangular_matmul", "", ("ceil_div(n,32) ceil_div(n,32)", "32 32", 0,
           "A f32 n,n in; B f32 n,n in; C f32 n,n zeros out; n s32 = n"),
           ("lower_product", "ceil_div(n*n,64)", "64", 0, "A f32 n,n in; B f32 n,n in; C f32 n,n zeros out; n s32 = n"),
           sizes(n=[64, 32, 96])),
        l1(19, "optimized_relu_kernel", "", ("ceil_div(n,1024)", "256", 0, flat), point("relu"), n),
        l1(23, "softmax_vectorized_multiblock_kernel", "", ("rows*2", "256", 0, table), rows("softmax"),
           sizes(rows=[3, 2, 1], n=[64, 256, 2048])),
        l1(24, "log_softmax_forward_kernel", "<float>(const float *, float *, int, int)", ("rows", "128", 16, table),
           rows("log_softmax"), sizes(rows=[3, 2, 4], n=[64, 37, 300])),
        l1(25, "swish_forward_kernel", "", ("2", "256", 0, flat), point("swish"), n),
        l1(26, "fast_gelu_kernel", "", ("2", "256", 0, flat), point("gelu"), n),
        l1(27, "selu_kernel", "<float,8>(const float *, float *, int)", ("2", "256", 0, flat), point("selu"), n),
        l1(28, "hardsigmoid_kernel_coarse", "", ("1", "256", 0, flat), point("hardsigmoid"), n),
        l1(28, "hardsigmoid_kernel", "", ("3", "128", 0, flat), point("hardsigmoid"), n),
        l1(32, "hardtanh_kernel", "", ("2", "256", 0, "data f32 n in out; n s32 = n"),
           ("hardtanh", "ceil_div(n,64)", "64", 0, "data f32 n in out; n s32 = n"), n),
        l1(41, "max_pool1d_benchmark_kernel", "<float>(const float *, float *, int, int, int, int)",
           ("2 rows", "128", 0, "input f32 2,rows,n in; output f32 2,rows,(n-6)/2+1 out; batch s32 = 2; rows s32 = rows; "
            "n s32 = n; outs s32 = (n-6)/2+1"),
           ("pool1", "ceil_div(2*rows*n,64)", "64", 0, "input f32 2,rows,n in; output f32 2,rows,(n-6)/2+1 out; "
            "rows s32 = 2*rows; n s32 = n; outs s32 = (n-6)/2+1"), sizes(rows=[3, 2, 5], n=[40, 33, 300])),
        l1(42, "max_pool2d_optimized_kernel", "<float>(const float *, float *, int, int, int, int, int, int)",
           ("1 ceil_div(n/2,8) 2", "32 8", 0, "input f32 2,3,n,n in; output f32 2,3,(n-2)/2+1,(n-2)/2+1 out; b s32 = 2; "
            "c s32 = 3; h s32 = n; w s32 = n; oh s32 = (n-2)/2+1; ow s32 = (n-2)/2+1"),
           ("pool2", "ceil_div(6*n*n,64)", "64", 0, "input f32 2,3,n,n in; output f32 2,3,(n-2)/2+1,(n-2)/2+1 out; "
            "planes s32 = 6; h s32 = n; w s32 = n; oh s32 = (n-2)/2+1; ow s32 = (n-2)/2+1"), sizes(n=[16, 11, 30])),
        l1(42, "max_pool2d_kernel", "<float>(const float *, float *, int, int, int, int, int, int)",
           ("1 ceil_div(n/2,8) 6", "32 8", 0, "input f32 2,3,n,n in; output f32 2,3,(n-2)/2+1,(n-2)/2+1 out; b s32 = 2; "
            "c s32 = 3; h s32 = n; w s32 = n; oh s32 = (n-2)/2+1; ow s32 = (n-2)/2+1"),
           ("pool2", "ceil_div(6*n*n,64)", "64", 0, "input f32 2,3,n,n in; output f32 2,3,(n-2)/2+1,(n-2)/2+1 out; "
            "planes s32 = 6; h s32 = n; w s32 = n; oh s32 = (n-2)/2+1; ow s32 = (n-2)/2+1"), sizes(n=[16, 11, 30])),
        l1(47, "sum_dim1_kernel", "", ("b a", "256", 0, "input f32 a,n,b in; output f32 a,b out; n s32 = n; b s32 = b"),
           over("sum_middle"), cube),
        l1(48, "mean_dim1_kernel", "<float>(const float *, float *, int, int, int)",
           ("a b", "256", 1024, "input f32 a,n,b in; output f32 a,b out; " + three), over("mean_middle"), cube),
        l1(48, "mean_dim0_kernel", "<float>(const float *, float *, int, int, int)",
           ("a b", "64", 256, "input f32 n,a,b in; output f32 a,b out; n s32 = n; a s32 = a; b s32 = b"),
           first("mean_middle"), cube),
        l1(48, "mean_dim2_kernel", "<float>(const float *, float *, int, int, int)",
           ("a*b", "256", 1024, "input f32 a,b,n in; output f32 a,b out; a s32 = a; b s32 = b; n s32 = n"),
           last("mean_middle"), sizes(a=[3, 2, 5], n=[64, 32, 300], b=[5, 4, 3])),
        l1(50, "product_reduction_kernel", "<float>(const float *, float *, int, int, int)",
           ("ceil_div(b,8) 1 a", "32 8", 0, "input f32 a,n,b in; output f32 a,b out; " + three), over("product_middle"), cube),
        l1(88, "optimized_gelu_kernel", "<16>(const float *, float *, int)", ("1", "256", 0, flat), point("gelu"), n),
        l1(89, "cumsum_kernel", "<float>(const float *, float *, int, int)", ("rows", "256", 2048, table),
           rows("running_sum"), sizes(rows=[3, 2, 1], n=[64, 256, 500])),
    ]
    found += samples(square, sizes(m=[32, 64, 32], n=[64, 32, 96], k=[32, 96, 64]))
    found += rodinia() + norms_and_losses(first, last, cube, table, rows)
    return found + robust_kbench.pairs() + list(polybench.pairs())


# ---- building

def show(mirrors, repo, path):
    return subprocess.check_output(["git", "-C", f"{mirrors}/{repo}/repo", "show", "HEAD:" + path], text=True)


def device(text, kernels=None):
    """Macros, constants, device functions and kernels of a text; of kernels only those that are named, if any are."""
    parts = []
    start = re.compile(
        r"^[ \t]*#define[^\n]*(?:\\\n[^\n]*)*"
        r"|^[ \t]*(?:__constant__|constexpr|static\s+constexpr|static\s+const)\s+(?:int|float)\s+\w+\s*=[^;]*;"
        r"|^const\s+(?:int|float)\s+\w+\s*=[^;]*;"
        r"|^__device__\s+[\w ]+=[^;{]*;"
        r"|(?:template\s*<[^>]*>\s*)?(?:extern \"C\"\s*)?(?:static\s+)?(?:__device__|__global__)[^;{]*\{", re.M)
    at = 0
    while m := start.search(text, at):
        end = m.end()
        if m.group(0).rstrip().endswith("{"):
            depth = 1
            while depth and end < len(text):
                depth += (text[end] == "{") - (text[end] == "}")
                end += 1
        name = re.search(r"__global__.*?(\w+)\s*\(", m.group(0), re.S)
        part = text[m.start():end].replace('extern "C"', "")
        # Constants of functions are moved out of them: the same one may come more than once.
        if part not in parts and (not name or kernels is None or name.group(1) in kernels):
            parts.append(part)
        at = end
    return "\n".join(parts)


def source(mirrors, what):
    kind = what[0]
    if kind == "reduction":
        text = show(mirrors, SAMPLES, "Samples/2_Concepts_and_Techniques/reduction/reduction_kernel.cu")
        head = text[: text.index('extern "C" bool isPow2')]
        head = re.sub(r"#include <stdio.h>|#include \"reduction.h\"|#ifndef _REDUCE_KERNEL_H_", "", head)
        return head + "\n" + "\n".join(p["source"][1] for p in reductions())
    if kind == "transpose":
        text = show(mirrors, SAMPLES, "Samples/6_Performance/transpose/transpose.cu")
        return "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n" + device(text)
    if kind == "matrixMul":
        text = show(mirrors, SAMPLES, "Samples/0_Introduction/matrixMul/matrixMul.cu")
        return PRELUDE + device(text) + "".join("\n" + p["source"][1] for p in pairs() if p["source"][0] == "matrixMul")
    if kind == "file":
        _, repo, path, _, before = what
        same = [(p[side], p[launch]) for p in pairs() for side, launch in (("source", "rewrite"), ("beside", "plain"))
                if side in p and p[side][0] == "file" and p[side][1:3] == what[1:3]]
        text = device(show(mirrors, repo, path), {launch[0].split("<")[0] for _, launch in same})
        return PRELUDE + before + text + "".join("\n" + inst for inst in dict.fromkeys(of[3] for of, _ in same))
    if kind == "polybench":
        return polybench.source(show(mirrors, polybench.REPO, what[1]), device, what[2])
    lines = show(mirrors, L1, "optimized_cuda_code/h100.json").splitlines()
    for line in filter(str.strip, lines):
        entry = json.loads(line)
        if (entry["level_id"], entry["task_id"]) == (1, what[1]):
            return PRELUDE + device(entry["custom_code"])
    raise SystemExit("no task %d" % what[1])


def description(launch, at):
    kernel, grid, block, smem, args = launch
    quote = lambda text, by: ", ".join('"%s"' % e for e in text.split(by))
    text = 'kernel = "%s"\n' % kernel
    for number, one in enumerate(at):
        text += "[sizes.s%d]\n" % number + "".join("%s = %d\n" % kv for kv in one.items())
    text += "[launch]\ngrid = [%s]\nblock = [%s]\ndynamic_smem = %d\n" % (quote(grid, None), quote(block, None), smem)
    for arg in args.split(";"):
        words = arg.split()
        text += '[[args]]\nname = "%s"\ntype = "%s"\n' % (words[0], words[1])
        if words[2] == "=":
            text += 'value = "%s"\n' % words[3]
        else:
            text += "shape = [%s]\n" % quote(words[2], ",")
        fill = 'init = { kind = "%s" }\n' % ("normal" if words[1][0] == "f" else "bits")
        text += "".join({"in": fill, "zeros": 'init = "zeros"\n', "out": "output = true\n",
                         "ones": 'init = { kind = "fill", value = 1 }\n', "classes": 'init = { kind = "indices", bound = "n" }\n'}.get(w, "") for w in words[3:])
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("mirrors", "work"):
        parser.add_argument(name)
    for name in ("--nvcc", "--warpwright", "--out"):
        parser.add_argument(name, required=True)
    parser.add_argument("--only")
    parser.add_argument("--ptx-only", action="store_true")
    o = parser.parse_args()
    os.makedirs(o.work, exist_ok=True)

    def compiled(name, text):
        cu, ptx = f"{o.work}/{name}.cu", f"{o.work}/{name}.ptx"
        if os.path.exists(cu) and open(cu).read() == text and os.path.exists(ptx):
            return ptx, 0.0
        open(cu, "w").write(text)
        begin = time.time()
        done = subprocess.run([o.nvcc, "-ptx", "-arch=sm_90", "-lineinfo", "-std=c++17", "--expt-relaxed-constexpr", "-o", ptx, cu],
                              capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[:500])
        return ptx, time.time() - begin

    def of_source(what, launch, key):
        """The PTX of a source, with the instance that a pair alone has."""
        text = source(o.mirrors, what)
        kind = what[0]
        unit = {"l1": key, "file": re.sub(r"\W", "_", "".join(map(str, what[1:3]))), "polybench": key}.get(kind, kind)
        if kind == "l1" and what[2]:
            text += "\ntemplate __global__ void %s%s;" % (launch[0], what[2])
        return compiled(unit, text)

    plain, _ = compiled("reference", open(HERE + "/rewrites/reference.cu").read())
    results = []
    for p in pairs():
        if o.only and o.only not in p["name"]:
            continue
        key = re.sub(r"\W", "_", p["name"])
        record = dict(name=p["name"], **({"faulty": FAULTY[p["name"]]} if p["name"] in FAULTY else {}))
        results.append(record)
        try:
            ptx, seconds = of_source(p["source"], p["rewrite"], key)
            original = ptx if "both" in p else plain
            if "beside" in p:
                original, more = of_source(p["beside"], p["plain"], key)
                seconds += more
        except (RuntimeError, subprocess.CalledProcessError) as error:
            record.update(verdict="not-compiled", why=str(error)[:300])
            print(p["name"], "not compiled", str(error)[:200])
            continue
        record["nvcc_seconds"] = round(seconds, 2)
        if o.ptx_only:
            continue
        options = []
        for side, launches in (("a", p["plain"]), ("b", p["rewrite"])):
            for number, launch in enumerate(launches if isinstance(launches, list) else [launches]):
                path = f"{o.work}/{key}.{side}{number}.toml"
                open(path, "w").write(description(launch, p["sizes"]))
                options += ["--launch-" + side, path]
        begin = time.time()
        with tempfile.TemporaryFile("w+") as told:
            process = subprocess.Popen([o.warpwright, "check", original, ptx, *options, "--only-described", "--json"],
                                       stdout=subprocess.PIPE, stderr=told, text=True)
            printed = process.stdout.read()
            _, _, used = os.wait4(process.pid, 0)
            process.returncode = 0
            told.seek(0)
            errors = told.read()
        record["seconds"] = round(time.time() - begin, 2)
        record["processor_seconds"] = round(used.ru_utime + used.ru_stime, 3)
        try:
            said = json.loads(printed)
        except ValueError:
            said = {}
        record["verdict"] = said.get("verdict", "no verdict")
        record["launches"] = [dict(verdict=l["verdict"], elements=l["elements"], terms=l["terms"],
                                   why=sorted({w["code"] for w in l["why"]})) for l in said.get("launches", [])]
        if not said.get("launches"):
            record["why"] = (errors or printed)[:300]
        last = [w["text"] for l in said.get("launches", []) for w in l["why"]][-1:]
        print(p["name"], record["verdict"], record["seconds"], [l["verdict"] for l in record["launches"]],
              "" if record["verdict"] in ("equal-up-to-rounding", "proved-at-launches") else (last or record.get("why")),
              flush=True)
    wrong = [r["name"] for r in results if not o.ptx_only and (r["verdict"] in ("refuted", "wrong-input")) != ("faulty" in r)]
    table = {}
    for record in results:
        table[record.get("verdict", "?")] = table.get(record.get("verdict", "?"), 0) + 1
    commits = {repo: subprocess.check_output(["git", "-C", f"{o.mirrors}/{repo}/repo", "rev-parse", "HEAD"], text=True).strip()
               for repo in (SAMPLES, L1, RODINIA, robust_kbench.REPO, polybench.REPO)}
    times = [r["processor_seconds"] for r in results if "processor_seconds" in r]
    document = dict(date=time.strftime("%Y-%m-%d"), commits=commits, pairs=len(results), verdicts=table,
                    right=sum("faulty" not in r for r in results), wrong=wrong,
                    median_processor_seconds=statistics.median(times) if times else None, results=results)
    open(o.out, "w").write(json.dumps(document, indent=1) + "\n")
    print(table, "wrong:", wrong)


if __name__ == "__main__":
    main()
