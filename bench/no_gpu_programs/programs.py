"""The programs that `bench/no_gpu.py` builds and runs: where their sources lie, how they are built, what they are given.

Sizes are the programs' own defaults or, where those take an emulator long, smaller ones that their command lines take.
"""

from dataclasses import dataclass, field


#: names that CUDA 13 no longer has, and what stands for them
RENAMED = [
    "-DcudaThreadSynchronize=cudaDeviceSynchronize", "-DcudaThreadExit=cudaDeviceReset", "-DdeviceOverlap=asyncEngineCount",
    "-DclockRate=pciBusID", "-DmemoryClockRate=pciBusID", "-DcomputeMode=tccDriver", "-DkernelExecTimeoutEnabled=tccDriver",
]


@dataclass
class Program:
    """One program; paths are relative to the folder of the suites."""

    suite: str
    name: str
    folder: str
    sources: list
    options: list = field(default_factory=list)
    args: list = field(default_factory=list)
    #: names of functions of `inputs.py` that write what the program reads
    inputs: list = field(default_factory=list)
    #: what its output says if it finds its own results right, and if it finds them wrong; none: it does not look
    right: str = ""
    wrong: str = ""
    #: what is changed in its files: which files, a pattern, what takes its place
    edits: list = field(default_factory=list)
    #: other arguments that it takes, for kernels that it launches with these alone
    others: list = field(default_factory=list)


RODINIA = "gpu-rodinia/cuda"
POLYBENCH = "polybenchGpu/CUDA"
PARBOIL = "Parboil"
SAMPLES = "cuda-samples/Samples"
ALTIS = "altis/src"
SHOC = "shoc/src"

#: headers of Thrust that others no longer include
HEADERS_OF = {"segmentationTreeThrust": ["-include=thrust/tuple.h"]}
#: `Program.others`
OTHERS = {
    "reduction": [["--n=65536", f"--kernel={kernel}"] for kernel in range(10)],
    "bf16TensorCoreGemm": [["--kernel=1"], ["--kernel=2"]],
    "myocyte": [["10", "1", "1"]],
}


def rodinia(name, sources, args=(), inputs=(), options=(), folder=None, right="", wrong=""):
    return Program("Rodinia", name, f"{RODINIA}/{folder or name}", sources, list(options), list(args), list(inputs), right, wrong, others=OTHERS.get(name, []))


#: extents of PolyBench/GPU stand in its headers: all of them small, and at least a block of those that divide by one
SMALL = [
    ("*.cuh", r"(?m)^(#\s*define\s+(?:N[IJKLMXYPQR]?|M))\s+\d+\s*$", r"\1 256"),
    ("*.cuh", r"(?m)^(#\s*define\s+(?:TSTEPS|TMAX))\s+\d+\s*$", r"\1 2"),
]


def polybench(name, source):
    found = r"Beyond Error Threshold of [0-9.]+ Percent: {}"
    return Program(
        "PolyBench/GPU", name, f"{POLYBENCH}/{name}", [source], ["-DRUN_ON_CPU"],
        right=found.format("0"), wrong=found.format("[1-9]"), edits=SMALL,
    )


def parboil(name, args, inputs=(), sources=(), options=()):
    folder = f"{PARBOIL}/benchmarks/{name}/src/cuda"
    own = list(sources) or ["*.cu", "*.cc", "*.c"]
    common = ["../../../../common/src/parboil_cuda.c", "../../../../common/src/args.c"]
    include = ["-I../../../../common/include"]
    return Program("Parboil", name, folder, own + common, include + list(options), list(args), list(inputs))


def sample(group, name, args=()):
    return Program(
        "cuda-samples", name, f"{SAMPLES}/{group}/{name}", ["*.cu", "*.cpp"],
        ["-I../../../Common", "-std=c++17", *HEADERS_OF.get(name, [])], list(args), right="<exit code 0>", others=OTHERS.get(name, []),
    )


def altis(level, name, sources, args=()):
    common = ["../../common/main.cu", *(f"../../../common/{f}.cpp" for f in ("CTimer", "Option", "OptionParser", "ProgressBar", "ResultDatabase", "Timer"))]
    return Program(
        "Altis", name, f"{ALTIS}/cuda/{level}/{name}", [*sources, *common],
        ["-I../../common", "-I../../../common", "-I../../../../config/cuda_device_attr_gen", "-include=cuda_12.h"], ["-s", "1", "-n", "1", *args],
    )


def shoc(name, sources):
    common = ["../../common/main.cpp", *(f"../../../common/{f}.cpp" for f in ("CTimer", "Option", "OptionParser", "ProgressBar", "ResultDatabase", "Timer"))]
    return Program(
        "SHOC", name, f"{SHOC}/cuda/level1/{name}", [*sources, *common],
        ["-I../../common", "-I../../../common", "-I../../include", "-I../../../../config"], ["-s", "1", "-n", "1"],
    )


PROGRAMS = [
    rodinia("backprop", ["backprop.c", "facetrain.c", "imagenet.c", "backprop_cuda.cu"], ["1024"]),
    rodinia("bfs", ["bfs.cu"], ["graph.txt"], ["graph"]),
    rodinia("b+tree", ["main.c", "kernel/kernel_gpu_cuda_wrapper.cu", "kernel/kernel_gpu_cuda_wrapper_2.cu", "util/*/*.c", "util/*/*.cu"], ["file", "mil.txt", "command", "command.txt"], ["tree"]),
    rodinia("cfd", ["euler3d.cu"], ["domain.txt"], ["domain"], ["-Dblock_length=192", "-I../../../cuda-samples/Common"]),
    rodinia("gaussian", ["gaussian.cu"], ["-s", "16"]),
    rodinia("hotspot", ["hotspot.cu"], ["64", "2", "2", "temp.txt", "power.txt", "out.txt"], ["temperature"]),
    rodinia("hotspot3D", ["3D.cu"], ["64", "8", "4", "power.txt", "temp.txt", "out.txt"], ["temperature3d"]),
    rodinia("huffman", ["main_test_cu.cu", "scan.cu", "pack_kernels.cu", "stats_logger.cpp", "cpuencode.cpp"], ["text.in"], ["text"], ["-I."]),
    rodinia("kmeans", ["cluster.c", "getopt.c", "kmeans.c", "kmeans_clustering.c", "rmse.c", "kmeans_cuda.cu"], ["-o", "-i", "points.txt"], ["points"]),
    rodinia("lud", ["cuda/lud.cu", "cuda/lud_kernel.cu", "common/common.c"], ["-s", "64", "-v"], options=["-Icommon"]),
    rodinia("myocyte", ["main.cu"], ["10", "1", "0"], ["cell"]),
    rodinia("nn", ["nn_cuda.cu"], ["list.txt", "-r", "5", "-lat", "30", "-lng", "90"], ["records"]),
    rodinia("nw", ["needle.cu"], ["256", "10"]),
    rodinia("particlefilter_naive", ["ex_particle_CUDA_naive_seq.cu"], ["-x", "32", "-y", "32", "-z", "5", "-np", "200"], folder="particlefilter"),
    rodinia("particlefilter_float", ["ex_particle_CUDA_float_seq.cu"], ["-x", "32", "-y", "32", "-z", "5", "-np", "200"], folder="particlefilter"),
    rodinia("pathfinder", ["pathfinder.cu"], ["2000", "40", "10"]),
    rodinia("srad_v1", ["main.cu"], ["4", "0.5", "50", "40"], ["image"], folder="srad/srad_v1"),
    rodinia("srad_v2", ["srad.cu"], ["128", "128", "0", "31", "0", "31", "0.5", "2"], folder="srad/srad_v2"),
    rodinia("streamcluster", ["streamcluster_cuda_cpu.cpp", "streamcluster_cuda.cu"], ["4", "8", "16", "512", "512", "64", "none", "out.txt", "1"]),
    *(polybench(name, source) for name, source in [
        ("2DCONV", "2DConvolution.cu"), ("2MM", "2mm.cu"), ("3DCONV", "3DConvolution.cu"), ("3MM", "3mm.cu"), ("ADI", "adi.cu"),
        ("ATAX", "atax.cu"), ("BICG", "bicg.cu"), ("CORR", "correlation.cu"), ("COVAR", "covariance.cu"),
        ("DOITGEN", "doitgen.cu"), ("FDTD-2D", "fdtd2d.cu"), ("GEMM", "gemm.cu"), ("GEMVER", "gemver.cu"),
        ("GESUMMV", "gesummv.cu"), ("GRAMSCHM", "gramschmidt.cu"), ("JACOBI1D", "jacobi1D.cu"), ("JACOBI2D", "jacobi2D.cu"),
        ("LU", "lu.cu"), ("MVT", "mvt.cu"), ("SYR2K", "syr2k.cu"), ("SYRK", "syrk.cu"),
    ]),
    parboil("sgemm", ["-i", "a.txt,b.txt,bt.txt", "-o", "out.txt"], ["matrices"], ["main.cu", "io.cc"]),
    parboil("stencil", ["-i", "grid.bin", "-o", "out.bin", "--", "64", "64", "16", "2"], ["grid"], ["main.cu", "file.cc"]),
    parboil("mri-q", ["-i", "mri.bin", "-o", "out.bin"], ["mri"], ["main.cu", "file.cc"]),
    parboil("bfs", ["-i", "graph.txt", "-o", "out.txt"], ["graph"], ["main.cu"]),
    parboil("cp", ["--", "64", "64", "40"], (), ["*.cu"]),
    *(sample("0_Introduction", name, args) for name, args in [
        ("asyncAPI", ()), ("clock", ()), ("simpleAssert", ()), ("fp16ScalarProduct", ()),
        ("matrixMul", ("-wA=64", "-hA=64", "-wB=64", "-hB=64")), ("mergeSort", ()), ("simpleAWBarrier", ()), ("simpleAtomicIntrinsics", ()),
        ("simpleAttributes", ()), ("simpleCallback", ()), ("simpleCooperativeGroups", ()), ("simpleCubemapTexture", ()),
        ("simpleHyperQ", ()), ("simpleLayeredTexture", ()), ("simpleMultiCopy", ()), ("simpleMultiGPU", ()),
        ("simpleOccupancy", ()), ("simplePitchLinearTexture", ()), ("simplePrintf", ()), ("simpleStreams", ()),
        ("simpleSurfaceWrite", ()), ("simpleTemplates", ()), ("simpleTexture", ()), ("simpleVoteIntrinsics", ()),
        ("simpleZeroCopy", ()), ("systemWideAtomics", ()), ("template", ()), ("vectorAdd", ()),
    ]),
    sample("1_Utilities", "deviceQuery"),
    *(sample("2_Concepts_and_Techniques", name) for name in [
        "convolutionSeparable", "convolutionTexture", "dct8x8", "eigenvalues", "histogram", "inlinePTX", "interval", "radixSortThrust",
        "reduction", "reductionMultiBlockCG", "scalarProd", "scan", "segmentationTreeThrust", "shfl_scan", "sortingNetworks",
        "streamOrderedAllocation", "threadFenceReduction",
    ]),
    *(sample("3_CUDA_Features", name) for name in [
        "StreamPriorities", "binaryPartitionCG", "cudaTensorCoreGemm", "globalToShmemAsyncCopy", "jacobiCudaGraphs", "newdelete",
        "simpleCudaGraphs", "warpAggregatedAtomicsCG", "bf16TensorCoreGemm",
    ]),
    sample("4_CUDA_Libraries", "lineOfSight"),
    *(sample("5_Domain_Specific", name) for name in [
        "BlackScholes", "MonteCarloMultiGPU", "HSOpticalFlow", "SobolQRNG", "binomialOptions", "dwtHaar1D", "dxtc", "fastWalshTransform",
        "quasirandomGenerator", "stereoDisparity", "p2pBandwidthLatencyTest",
    ]),
    *(sample("6_Performance", name) for name in ["LargeKernelParameter", "alignedTypes", "transpose", "UnifiedMemoryPerf"]),
    altis("level1", "bfs", ["bfs.cu"]),
    altis("level1", "gups", ["gups.cu"]),
    altis("level1", "pathfinder", ["pathfinder.cu"]),
    altis("level1", "sort", ["Sort.cu", "sort_kernel.cu"]),
    altis("level2", "nw", ["needle.cu"]),
    altis("level2", "srad", ["srad.cu"]),
    altis("level2", "where", ["where.cu"]),
    altis("level2", "fdtd2d", ["fdtd2d.cu"]),
    shoc("triad", ["Triad.cu"]),
    shoc("reduction", ["Reduction.cu"]),
    shoc("scan", ["Scan.cu"]),
    shoc("sort", ["Sort.cu", "sort_kernel.cu"]),
    shoc("md5hash", ["MD5Hash.cu"]),
]
