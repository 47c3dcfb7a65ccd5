#!/usr/bin/env python3
"""Times naive kernels, the kernels made of them, and libraries, on a machine with a GPU, nvcc and PyTorch.

    bench/naive.py --out RESULT.json [--candidates DIR] [--kernels mm,tp] [--seconds 0.4] [--jobs 12]

DIR/NAME/*.cu are candidates for examples/naive/NAME.cu: whole files, with the host function run_NAME. Every file is
compiled into a library of its own and called through run_NAME, so what is timed is what a program would call. All
versions of a kernel and the library's take turns in one process, each as a captured graph (`ms`) and, where a call is
short, as calls one after the other in a stream (`stream_ms`): memory that a call takes and gives back for itself costs a
graph nodes of its own, and a stream nothing while it is busy. Outputs are
compared with those of the naive kernel before: `equal` to the bit, else the largest |difference| over the tolerance of
examples/naive/NAME.toml (abs + rel * |expected|), which is meant for small sizes, and over the largest |expected|. What
a library computes is compared in the same way: it is the reference that shares nothing with this repository.

    bench/naive.py --table RESULT.json [--version opt]

prints a table of a result: for each kernel the fastest of its candidates, or that one, and of the libraries.

    bench/naive.py --variants DIR [--tool target/release/examples/naive]

writes candidates into DIR (no GPU, no nvcc): what docs/gallery has, and of each kernel the ways at places 1 to 5, 9, 17 and
33 in the order that the model gives them, so that a choice can be compared with what was not chosen
(`cargo build --release -p warpwright-naivegen --examples` makes the tool).
"""
import argparse, ctypes, glob, json, os, re, shutil, statistics, subprocess, sys, tempfile, threading, time, tomllib
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "examples", "naive")
FOURIER = ("fft2", "fft8")  # transforms in steps, from one buffer into another and back
WHOLE = {"s32": ctypes.c_int, "u32": ctypes.c_uint, "s64": ctypes.c_longlong, "f32": ctypes.c_float, "f64": ctypes.c_double}


def evaluate(expression, sizes):
    """An integer expression of a launch description."""
    if isinstance(expression, int):
        return expression
    names = dict(sizes, ceil_div=lambda a, b: -(-a // b), min=min, max=max)
    return int(eval(expression.replace("/", "//"), {"__builtins__": {}}, names))


def build(source, target, libraries=()):
    """Compiles a file; what nvcc says where it fails."""
    command = ["nvcc", "-O3", "-std=c++17", "-arch=native", "-shared", "-Xcompiler", "-fPIC", "-Xptxas", "-v",
               "-o", target, source, *libraries]
    done = subprocess.run(command, capture_output=True, text=True)
    text = done.stdout + done.stderr
    used = [int(r) for r in re.findall(r"Used (\d+) registers", text)]
    spilled = sum(int(b) for b in re.findall(r"(\d+) bytes spill stores", text))
    if done.returncode:
        return {"error": text[-600:]}
    return {"registers": max(used, default=0), "spill_bytes": spilled}


LIBRARY = r"""
// What CUB does for sums, prefixes and histograms.
#include <cub/cub.cuh>
extern "C" size_t cub_sum(void *t, size_t bytes, const float *a, float *s, int n, cudaStream_t stream) {
    cub::DeviceReduce::Sum(t, bytes, a, s, n, stream); return bytes;
}
struct Parts { __device__ float operator()(float2 z) const { return fabsf(z.x) + fabsf(z.y); } };
extern "C" size_t cub_parts(void *t, size_t bytes, const float2 *a, float *s, int n, cudaStream_t stream) {
    cub::DeviceReduce::TransformReduce(t, bytes, a, s, n, ::cuda::std::plus<float>{}, Parts{}, 0.0f, stream); return bytes;
}
extern "C" size_t cub_prefix(void *t, size_t bytes, const int *x, int *y, int n, cudaStream_t stream) {
    cub::DeviceScan::InclusiveSum(t, bytes, x, y, n, stream); return bytes;
}
extern "C" size_t cub_histogram(void *t, size_t bytes, const unsigned char *x, unsigned int *y, int n, cudaStream_t stream) {
    cub::DeviceHistogram::HistogramEven(t, bytes, x, y, 257, 0, 256, n, stream); return bytes;
}
"""


class Machine:
    """Memory, streams and libraries of the GPU."""

    def __init__(self, work):
        import torch
        self.torch = torch
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        self.work = work
        self.cub = self.cublas = None
        try:
            self.cub = ctypes.CDLL(os.path.join(work, "cub.so"))
        except OSError as error:
            print("no CUB:", error, file=sys.stderr)
        torch.mm(torch.ones(8, 8, device="cuda"), torch.ones(8, 8, device="cuda"))
        with open("/proc/self/maps") as maps:
            paths = sorted({line.split()[-1] for line in maps if re.search(r"/libcublas\.so", line)})
        if paths:
            self.cublas = ctypes.CDLL(paths[0])
            self.handle = ctypes.c_void_p()
            self.cublas.cublasCreate_v2(ctypes.byref(self.handle))

    @classmethod
    def only(cls, work):
        """The one of this process."""
        if not hasattr(cls, "machine"):
            cls.machine = cls(work)
        cls.machine.torch.cuda.empty_cache()
        return cls.machine

    def stream(self):
        return ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream)

    def cub_call(self, name, a, out, n):
        """A function of CUB with its temporary memory."""
        function = getattr(self.cub, name)
        function.restype = ctypes.c_size_t
        rest = (ctypes.c_void_p(a.data_ptr()), ctypes.c_void_p(out.data_ptr()), ctypes.c_int(n))
        size = function(ctypes.c_void_p(0), ctypes.c_size_t(0), *rest, self.stream())
        memory = self.torch.empty(max(size, 1), dtype=self.torch.uint8, device="cuda")
        return lambda: (function(ctypes.c_void_p(memory.data_ptr()), ctypes.c_size_t(size), *rest, self.stream()), memory)

    def blas(self, name, *arguments):
        """A function of cuBLAS; tensors become pointers, whole numbers ints; scalars come from the device."""
        function = getattr(self.cublas, name)

        def pass_on(value):
            if isinstance(value, self.torch.Tensor):
                return ctypes.c_void_p(value.data_ptr())
            return ctypes.c_int(value)

        def call():
            self.cublas.cublasSetStream_v2(self.handle, self.stream())
            self.cublas.cublasSetPointerMode_v2(self.handle, ctypes.c_int(1))
            status = function(self.handle, *map(pass_on, arguments))
            if status:
                raise RuntimeError(f"{name}: status {status}")
        return call

    def prices(self, t):
        """Both prices of options, as a program in PyTorch would have them."""
        torch, rate, volatility = self.torch, 0.02, 0.3
        spread = volatility * t["years"].sqrt()
        d = ((t["price"] / t["strike"]).log() + rate * t["years"]) / spread + spread / 2
        discounted = t["strike"] * (-rate * t["years"]).exp()
        call = t["price"] * torch.special.ndtr(d) - discounted * torch.special.ndtr(d - spread)
        return call, call - t["price"] + discounted


def libraries(m, name, t, s):
    """What libraries offer for a kernel: names with functions that fill the same outputs (`=`) or only take as long."""
    torch, F = m.torch, m.torch.nn.functional
    one, zero = torch.ones(1, device="cuda"), torch.zeros(1, device="cuda")
    minus = -one
    g = t.get
    copy = lambda o: (lambda: g(o + "'").copy_(t[o]))
    table = {
        "tmv": lambda: {"=cuBLAS gemv": lambda: torch.mv(t["a"].t(), t["x"], out=t["y"])},
        "mv": lambda: {"=cuBLAS gemv": lambda: torch.mv(t["a"], t["x"], out=t["y"])},
        "mm": lambda: {"=cuBLAS gemm": lambda: torch.mm(t["a"], t["b"], out=t["c"])},
        "mm_double": lambda: {"=cuBLAS gemm": lambda: torch.mm(t["a"], t["b"], out=t["c"])},
        "mm_strided": lambda: {"=cuBLAS gemm": lambda: torch.mm(t["a"][:, :s["k"]], t["b"][:, :s["n"]], out=t["c"][:, :s["n"]])},
        "mm_tn": lambda: {"=cuBLAS gemm": lambda: torch.addmm(t["c"], t["a"].t(), t["b"], beta=0.5, alpha=0.75, out=t["c"])},
        "bmm": lambda: {"=cuBLAS gemm": lambda: torch.bmm(t["a"], t["b"], out=t["c"])},
        "linear": lambda: {"=cuBLAS gemm, bias, ReLU": lambda: torch._addmm_activation(t["bias"], t["x"], t["w"].t(), out=t["y"])},
        "syrk": lambda: {"=cuBLAS gemm": lambda: torch.mm(t["a"].t(), t["a"], out=t["c"]),
                         "cuBLAS syrk": m.blas("cublasSsyrk_v2", 0, 0, s["n"], s["m"], one, t["a"], s["n"], zero, t["c"], s["n"])},
        "vv": lambda: {"=PyTorch outer": lambda: torch.outer(t["x"], t["y"], out=t["c"]), "device copy": copy("c"),
                       "fill": lambda: t["c"].fill_(1.0)},
        "rd": lambda: {"=CUB sum": m.cub_call("cub_sum", t["a"], t["s"], s["n"]),
                       "cuBLAS asum": m.blas("cublasSasum_v2", s["n"], t["a"], 1, t["s"])},
        "rd_atomic": lambda: {"=CUB sum": m.cub_call("cub_sum", t["a"], t["s"], s["n"])},
        "rd_complex": lambda: {"=cuBLAS scasum": m.blas("cublasScasum_v2", s["n"], t["a"], 1, t["s"]),
                               "=CUB sum": m.cub_call("cub_parts", t["a"], t["s"], s["n"])},
        # Row by row here is column by column there: X' L' = B'.
        "strsm": lambda: {"=cuBLAS trsm": m.blas("cublasStrsm_v2", 1, 1, 0, 0, s["n"], s["m"], one, t["l"], s["m"], t["b"], s["n"])},
        "conv": lambda: {"=cuDNN": lambda: t["out"].copy_(F.conv2d(t["in"][None, None], t["filter"][None, None])[0, 0])},
        "tp": lambda: {"=cuBLAS geam": m.blas("cublasSgeam", 1, 0, s["m"], s["n"], one, t["a"], s["n"], zero, t["b"], s["m"], t["b"], s["m"]),
                       "=PyTorch": lambda: t["b"].copy_(t["a"].t()), "device copy": copy("b")},
        "demosaic": lambda: {"device copy of the outputs": lambda: [copy(o)() for o in ("red", "green", "blue")]},
        "imregionmax": lambda: {"=PyTorch max_pool2d, eq": lambda: t["out"].copy_(
            F.max_pool2d(t["in"][None, None], 3, 1)[0, 0] == t["in"][1:-1, 1:-1]), "device copy": copy("out")},
        **dict.fromkeys(FOURIER, lambda: {"cuFFT": lambda: torch.fft.fft(torch.view_as_complex(t["x"].view(-1, 2)), out=t["spectrum"])}),
        "fir": lambda: {"=cuDNN": lambda: t["y"].copy_(F.conv1d(t["x"][None, None], t["h"][None, None])[0, 0])},
        "conv1d": lambda: {"=cuDNN": lambda: t["out"].copy_(F.conv1d(t["in"][None], t["w"])[0])},
        "conv2d": lambda: {"=cuDNN": lambda: t["out"].copy_(F.conv2d(t["in"][None], t["w"], t["bias"])[0])},
        "softmax": lambda: {"=PyTorch": lambda: torch.softmax(t["x"], 1, out=t["y"])},
        "layer_norm": lambda: {"=PyTorch": lambda: torch.ops.aten.native_layer_norm.out(
            t["x"], [s["n"]], t["scale"], t["shift"], 1e-5, out0=t["y"], out1=t["mean"], out2=t["inverse"])},
        "rms_norm": lambda: {"PyTorch": lambda: F.rms_norm(t["x"], [s["n"]], t["scale"], 1e-6)},
        "row_max": lambda: {"=PyTorch amax": lambda: torch.amax(t["x"], 1, out=t["y"])},
        "column_mean": lambda: {"=PyTorch mean": lambda: torch.mean(t["x"], 0, out=t["y"])},
        "histogram": lambda: {"=CUB": m.cub_call("cub_histogram", t["values"], t["counts"], s["n"])},
        "prefix_sum": lambda: {"=CUB": m.cub_call("cub_prefix", t["x"], t["y"], s["n"]),
                               "=PyTorch cumsum": lambda: torch.cumsum(t["x"], 0, dtype=torch.int32, out=t["y"])},
        "sweep5": lambda: {"device copy": copy("out")},
        "attention_scores": lambda: {"=cuBLAS gemm, mask": lambda: (torch.mm(t["q"] * 0.125, t["k"].t(), out=t["s"]),
                                                                    t["s"].masked_fill_(t["mask"], -1e30)),
                                     "cuBLAS gemm alone": lambda: torch.mm(t["q"], t["k"].t(), out=t["s"])},
        "attention_values": lambda: {"=cuBLAS gemm": lambda: torch.mm(t["p"], t["v"], out=t["o"])},
        "distances": lambda: {"=PyTorch cdist, square": lambda: torch.square(
            torch.cdist(t["a"], t["b"], compute_mode="donot_use_mm_for_euclid_dist"), out=t["out"])},
        "nearest4": lambda: {"PyTorch cdist, topk": lambda: torch.topk(torch.cdist(t["queries"], t["points"]), 4, 1, False)},
        "nbody": lambda: {},
        "add_transposed": lambda: {"PyTorch": lambda: torch.add(t["a"], t["b"].t(), out=t["c"]), "device copy": copy("c")},
        "grey": lambda: {"device copy of the output": copy("out")},
        "max_pool": lambda: {"=PyTorch": lambda: t["out"].copy_(F.max_pool2d(t["in"][None, None], 2)[0, 0])},
        "gelu": lambda: {"=PyTorch add, gelu": lambda: torch.ops.aten.gelu.out(t["x"] + t["bias"], approximate="tanh", out=t["y"])},
        "shortest_paths": lambda: {},
        "black_scholes": lambda: {"PyTorch, an operation at a time": lambda: m.prices(t), "device copy of the outputs": lambda: [
            copy(o)() for o in ("call", "put")]},
        "covariance": lambda: {"=cuBLAS gemm": lambda: torch.addmm(t["c"], t["x"].t(), t["x"], beta=0, alpha=1 / (s["m"] - 1), out=t["c"]),
                               "cuBLAS syrk": m.blas("cublasSsyrk_v2", 0, 0, s["n"], s["m"], one, t["x"], s["n"], zero, t["c"], s["n"])},
        "doitgen": lambda: {"=cuBLAS gemm": lambda: torch.mm(
            t["a"].view(-1, s["p"]), t["c4"], out=t["out"].view(-1, s["p"]))},
        # Entries behind the last row's are no entries of the matrix.
        "spmv": lambda: {"=cuSPARSE": lambda: torch.mv(t["matrix"], t["x"], out=t["y"])},
    }
    return table[name]()


def prepare(m, name, file, sizes):
    """Tensors for all buffers, by name; the arguments of run_NAME without the stream."""
    torch = m.torch
    types = {"f32": torch.float32, "f64": torch.float64, "s32": torch.int32, "u32": torch.int32, "u8": torch.uint8}
    generator = torch.Generator("cuda").manual_seed(1)
    tensors, arguments, outputs = {}, [], []
    for arg in file["args"]:
        if "shape" not in arg:
            value = arg["value"]
            whole = arg["type"][0] in "su"
            arguments.append(WHOLE[arg["type"]](evaluate(value, sizes) if whole else float(value)))
            continue
        shape, kind = [evaluate(e, sizes) for e in arg["shape"]], types[arg["type"]]
        init = arg.get("init", {"kind": "zeros"})
        init = {"kind": init} if isinstance(init, str) else init
        if init["kind"] == "uniform" and kind.is_floating_point:
            tensor = torch.rand(shape, generator=generator, device="cuda", dtype=kind) * (init["high"] - init["low"]) + init["low"]
        elif init["kind"] == "uniform":
            tensor = torch.randint(init["low"], init["high"] + 1, shape, generator=generator, device="cuda", dtype=kind)
        elif init["kind"] == "bits":
            tensor = torch.randint(0, 256, shape, generator=generator, device="cuda", dtype=kind)
        elif init["kind"] == "expr" and len(shape) == 2:  # a large diagonal
            tensor = (torch.rand(shape, generator=generator, device="cuda") - 0.5) / 8 + 4 * torch.eye(shape[0], device="cuda")
        else:
            tensor = torch.zeros(shape, device="cuda", dtype=kind)
        tensors[arg["name"]] = tensor
        if arg.get("output"):
            outputs.append((arg["name"], arg.get("tolerance", {}), tensor.clone()))
            tensors[arg["name"] + "'"] = tensor.clone()
        arguments.append(ctypes.c_void_p(tensor.data_ptr()))
    if name in FOURIER:
        n = sizes["n"]
        angle = torch.arange(tensors["w"].numel() // 2, device="cuda", dtype=torch.float64) * (-2 * torch.pi / n)
        tensors["w"].copy_(torch.stack([angle.cos(), angle.sin()], 1).flatten())
        tensors["spectrum"] = torch.empty(n, dtype=torch.complex64, device="cuda")
        tensors["y"].zero_()
    if name == "spmv":
        rows = sizes["rows"]
        first = torch.arange(rows + 1, device="cuda", dtype=torch.int32)
        tensors["first"].copy_(24 * first + first % 5)
        tensors["column"].random_(0, sizes["columns"], generator=generator)
        last = int(tensors["first"][-1])
        tensors["matrix"] = torch.sparse_csr_tensor(
            tensors["first"], tensors["column"][:last], tensors["value"][:last], (rows, sizes["columns"]))
    if name == "layer_norm":
        tensors["mean"] = torch.empty(sizes["m"], 1, device="cuda")
        tensors["inverse"] = torch.empty(sizes["m"], 1, device="cuda")
    if name == "attention_scores":
        tensors["mask"] = torch.ones(sizes["n"], sizes["n"], dtype=torch.bool, device="cuda").triu(1)
    return tensors, arguments, outputs


def compare(torch, found, expected, tolerance):
    if torch.equal(found, expected):
        return {"equal": True, "of_tolerance": 0.0, "of_largest": 0.0}
    a, b = found.double(), expected.double()
    largest = ((a - b).abs().max() / b.abs().max().clamp_min(1e-300)).nan_to_num(1e300, 1e300).item()
    wrong = (a - b).abs() / (tolerance.get("abs", 0.0) + tolerance.get("rel", 0.0) * b.abs() + 1e-300)
    worst = wrong.nan_to_num(1e300, 1e300).max().item()
    return {"equal": False, "of_tolerance": float(f"{worst:.3g}"), "of_largest": float(f"{largest:.3g}")}


def variants(folder, tool):
    """Candidates from docs/gallery and from places of the model's order."""
    for source in sorted(glob.glob(os.path.join(EXAMPLES, "*.cu"))):
        name = os.path.splitext(os.path.basename(source))[0]
        own, chosen = os.path.join(folder, name), os.path.join(HERE, "..", "docs", "gallery", name, "opt.cu")
        os.makedirs(own, exist_ok=True)
        if os.path.exists(chosen):
            shutil.copy(chosen, own)
        listed = subprocess.run([tool, source, "best=33"], capture_output=True, text=True).stdout.splitlines()
        ways = [line.split(" ", 2)[2] for line in listed]
        for place in (p for p in (0, 1, 2, 3, 4, 8, 16, 32) if p < len(ways)):
            made = subprocess.run([tool, source, "pass=" + ways[place]], capture_output=True, text=True)
            if made.returncode == 0:
                title = re.sub("[^a-z0-9]+", "-", ways[place]).strip("-")
                with open(os.path.join(own, f"{place + 1:02}-{title}.cu"), "w") as f:
                    f.write(made.stdout)


def in_stream(m, calls):
    """Milliseconds of a call among many: a long kernel before them keeps the stream busy until all are submitted."""
    torch = m.torch
    begun, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(4_000_000)
    begun.record()
    for call in calls:
        call()
    ended.record()
    ended.synchronize()
    return begun.elapsed_time(ended) / len(calls)


def measure(m, name, versions, tensors, outputs, seconds):
    """versions: (name, function, fills the outputs). Checks against the first, then times in turns."""
    torch = m.torch
    results, expected = [], None
    signal = tensors["x"].clone() if name in FOURIER else None
    for title, call, fills in versions:
        result = {"version": title}
        results.append(result)
        try:
            for key, _, first in outputs:
                tensors[key].copy_(first)
            if name in FOURIER:  # overwrites its input
                tensors["x"].copy_(signal)
            call()
            torch.cuda.synchronize()
            now = [tensors[key].clone() for key, _, _ in outputs]
            if name in FOURIER:  # 20 or 8 steps: the spectrum is where it began
                now = [tensors["x"].clone()]
            if expected is None:
                expected = now
                if name in FOURIER:
                    exact = torch.view_as_real(torch.fft.fft(torch.view_as_complex(signal.double().view(-1, 2)))).flatten()
                    result["against_cufft_double"] = ((expected[0] - exact).abs().max() / exact.abs().max()).item()
            elif fills:
                checks = [compare(torch, a, b, o[1] if name not in FOURIER else {"abs": 5e-3}) for a, b, o in zip(now, expected, outputs)]
                result["check"] = {"equal": all(c["equal"] for c in checks)} | {
                    key: max(c[key] for c in checks) for key in ("of_tolerance", "of_largest")}
            once = in_stream(m, [call]) / 1e3
            if once < 0.01:  # the first call may wait for memory
                once = in_stream(m, [call] * 5) / 1e3
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                call()
                stream.synchronize()
                graph = torch.cuda.CUDAGraph()
                repeats = max(1, min(20, int(0.002 / max(once, 1e-6))))
                with torch.cuda.graph(graph, stream=stream):
                    for _ in range(repeats):
                        keep = call()
            torch.cuda.synchronize()
            graph.replay()
            torch.cuda.synchronize()
            result.update(graph=graph, repeats=repeats, times=[], keep=keep, calls=[call] * 40 if once < 0.0005 else [], stream=[])
        except Exception as error:
            result["error"] = str(error)[-400:]
            if "CUDA error" in str(error) or "illegal" in str(error):
                break
    begin = time.perf_counter()
    begun, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    running = [r for r in results if "graph" in r]
    rounds = 0
    while rounds < 3 or (time.perf_counter() - begin < seconds and rounds < 40):
        for result in running:
            begun.record()
            result["graph"].replay()
            ended.record()
            ended.synchronize()
            result["times"].append(begun.elapsed_time(ended) / result["repeats"])
            if result["calls"] and rounds < 9:
                result["stream"].append(in_stream(m, result["calls"]))
        rounds += 1
    for result in running:
        times = result.pop("times")
        result.pop("graph"), result.pop("keep"), result.pop("repeats"), result.pop("calls")
        stream = result.pop("stream")
        if stream:
            result["stream_ms"] = float(f"{statistics.median(stream):.5g}")
        result["ms"] = float(f"{statistics.median(times):.5g}")
        result["least_ms"] = float(f"{min(times):.5g}")
        result["rounds"] = len(times)
    return results


def one(name, work, candidates, seconds):
    """Measures one kernel in this process."""
    with open(os.path.join(EXAMPLES, name + ".toml"), "rb") as f:
        file = tomllib.load(f)
    sizes = file["sizes"]["full"]
    m = Machine.only(work)
    tensors, arguments, outputs = prepare(m, name, file, sizes)
    versions, failed = [], []

    def load(title, stem):
        with open(os.path.join(work, stem + ".json")) as f:
            built = json.load(f)
        if "error" in built:
            failed.append({"version": title, "error": built["error"]})
            return None
        function = getattr(ctypes.CDLL(os.path.join(work, stem + ".so")), "run_" + name)
        function.restype = None
        return built, lambda: function(*arguments, m.stream())
    builds = {}
    for title, stem in [("naive", f"{name}--naive")] + [(c, f"{name}--{c}") for c in candidates]:
        loaded = load(title, stem)
        if loaded:
            builds[title] = loaded[0]
            versions.append((title, loaded[1], True))
    try:
        for title, call in libraries(m, name, tensors, sizes).items():
            versions.append((title.lstrip("="), call, title.startswith("=")))
    except Exception as error:
        failed.append({"version": "library", "error": str(error)[-400:]})
    results = measure(m, name, versions, tensors, outputs, seconds) + failed
    for result in results:
        result.update(builds.get(result["version"], {}))
    return {"kernel": name, "sizes": sizes, "versions": results}


def table(path, version):
    with open(path) as f:
        result = json.load(f)
    print(f"{result['gpu']}, {result['date']}. Milliseconds, medians of turns in one process.\n")
    print("| kernel | naive | generated | which | naive / generated | library | which | library / generated |")
    print("|---|--:|--:|---|--:|--:|---|--:|")
    for entry in result["kernels"]:
        timed = [v for v in entry.get("versions", []) if "ms" in v]
        if not timed:
            continue
        made = [v for v in timed if "registers" in v and v["version"] != "naive" and version in ("", v["version"])]
        naive = next((v for v in timed if v["version"] == "naive"), None)
        # Copies and fills are floors, and what does less than the kernel is no rival.
        others = [v for v in timed if "registers" not in v and "check" in v]
        best = lambda all: min(all, key=lambda v: v["ms"], default=None)
        ours, theirs = best(made), best(others)
        over = lambda a: f"{a['ms'] / ours['ms']:.2f}" if a and ours else "–"
        ms = lambda v: f"{v['ms']:.4g}" if v else "–"
        word = lambda v: v["version"] if v else "–"
        print(f"| {entry['kernel']} | {ms(naive)} | {ms(ours)} | {word(ours)} | {over(naive)} | {ms(theirs)} | {word(theirs)} | {over(theirs)} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="")
    parser.add_argument("--table", default="")
    parser.add_argument("--version", default="", help="of a table: this one, not the fastest")
    parser.add_argument("--candidates", default="")
    parser.add_argument("--kernels", default="")
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=240, help="seconds after which no kernel is begun")
    parser.add_argument("--variants", default="", help="writes candidates into this folder")
    parser.add_argument("--tool", default=os.path.join(HERE, "..", "target", "release", "examples", "naive"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        found = json.loads(os.environ["CANDIDATES"])
        for name in args.one.split(","):
            try:
                result = one(name, args.work, found[name], args.seconds)
            except Exception as error:
                result = {"kernel": name, "error": str(error)[-600:]}
            print("RESULT " + json.dumps(result), flush=True)
            if "CUDA error" in json.dumps(result):
                sys.exit(1)  # the next one gets a new process
        return
    if args.variants:
        variants(args.variants, args.tool)
        return
    if args.table:
        table(args.table, args.version)
        return
    if not args.out:
        parser.error("--out is wanted")
    begin = time.time()
    names = args.kernels.split(",") if args.kernels else sorted(
        os.path.basename(p)[:-3] for p in glob.glob(os.path.join(EXAMPLES, "*.cu")))
    work = tempfile.mkdtemp()
    jobs, found = [], {name: [] for name in names}
    with open(os.path.join(work, "cub.cu"), "w") as f:
        f.write(LIBRARY)
    jobs.append((os.path.join(work, "cub.cu"), "cub"))
    for name in names:
        jobs.append((os.path.join(EXAMPLES, name + ".cu"), f"{name}--naive"))
        for path in sorted(glob.glob(os.path.join(args.candidates, name, "*.cu"))) if args.candidates else []:
            title = os.path.basename(path)[:-3]
            found[name].append(title)
            jobs.append((path, f"{name}--{title}"))

    def make(job):
        result = build(job[0], os.path.join(work, job[1] + ".so"))
        with open(os.path.join(work, job[1] + ".json"), "w") as f:
            json.dump(result, f)
    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(make, jobs))
    built = time.time() - begin

    def ask(*command):
        try:
            return subprocess.run(command, capture_output=True, text=True).stdout.strip().splitlines()[-1]
        except (OSError, IndexError) as error:
            return str(error)
    result = {"schema": "warpwright.naive/1", "gpu": ask("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
              "nvcc": ask("nvcc", "--version"), "date": time.strftime("%Y-%m-%d", time.gmtime()), "build_s": round(built), "kernels": []}
    def show(v):
        if "ms" not in v:
            return f"{v['version']} FAILED {v.get('error', '')[:80]!r}"
        c = v.get("check")
        return f"{v['version']} {v['ms']:.4g}" + ("" if c is None else "=" if c["equal"] else f"~{c['of_tolerance']:.2g}")

    def keep(entry):
        result["kernels"].append(entry)
        with open(args.out, "w") as f:
            json.dump(result, f, indent=1)
        if "error" in entry:
            print(f"{entry['kernel']}: {entry['error'][-200:]}", flush=True)
            return
        versions = entry["versions"]
        titles = set(found[entry["kernel"]])
        best = sorted((v for v in versions if v["version"] in titles and "ms" in v), key=lambda v: v["ms"])[:2]
        bad = [v for v in versions if v["version"] in titles and ("ms" not in v or v.get("check", {}).get("of_largest", 0) > 1e-3)]
        rest = [v for v in versions if v["version"] not in titles]
        print(f"{entry['kernel']}: " + ", ".join(map(show, rest + best)) + (f"; {len(bad)} wrong" if bad else ""), flush=True)

    # One process for all kernels; where it dies, another one for the rest.
    left = list(names)
    while left and time.time() - begin < args.limit:
        command = [sys.executable, os.path.abspath(__file__), "--one", ",".join(left), "--work", work, "--out", "-", "--seconds", str(args.seconds)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "CANDIDATES": json.dumps(found)})
        watch = threading.Timer(max(1, args.limit - (time.time() - begin)), child.kill)
        watch.start()
        for line in child.stdout:
            if line.startswith("RESULT "):
                keep(json.loads(line[7:]))
                left.pop(0)
        child.wait()
        watch.cancel()
        if left and child.returncode and time.time() - begin < args.limit:
            if len(result["kernels"]) and result["kernels"][-1]["kernel"] not in left and child.returncode == 1:
                continue
            keep({"kernel": left.pop(0), "error": f"the process ended with {child.returncode}"})
    for name in left:
        keep({"kernel": name, "error": "no time left"})
    result["seconds"] = round(time.time() - begin)
    with open(args.out, "w") as f:
        json.dump(result, f, indent=1)
    shutil.rmtree(work, ignore_errors=True)
    print(f"wrote {args.out}, {result['seconds']} s, building {built:.0f} s")


if __name__ == "__main__":
    main()
