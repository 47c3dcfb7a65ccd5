"""The package on this machine: no GPU is needed. What needs NVIDIA's tools is skipped without them, unless
WARPWRIGHT_REQUIRE_TOOLKIT is set."""

import copy
import doctest
import html
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest
import warpwright
from warpwright import _kernels

PTX = """.version 8.5
.target sm_90
.address_size 64

.visible .entry _Z5scalePfi(.param .u64 p, .param .u32 n)
.reqntid 256
{
    .reg .b32 %r<3>; .reg .f32 %f<3>; .reg .b64 %d<4>;
    ld.param.u64 %d1, [p];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    add.s64 %d3, %d1, %d2;
    ld.global.f32 %f1, [%d3];
    mul.f32 %f2, %f1, 0f40000000;
    st.global.f32 [%d3], %f2;
    ret;
}
"""


def ptxas():
    """ptxas, or the test is skipped."""
    found = warpwright.toolkit()
    if found is None:
        if os.environ.get("WARPWRIGHT_REQUIRE_TOOLKIT"):
            pytest.fail("there is no toolkit")
        pytest.skip("there is no toolkit")
    return found


def cubin(tmp_path, ptx=PTX):
    """What ptxas makes of it."""
    source, out = tmp_path / "k.ptx", tmp_path / "k.cubin"
    source.write_text(ptx)
    command = [ptxas(), "-arch=sm_90", source, "-o", out]
    subprocess.run([str(word) for word in command], check=True)
    return out.read_bytes()


def spilling(values=48):
    """PTX of a kernel that holds so many values across a loop, which 32 registers do not."""
    loads = "".join(f"ld.global.f32 %v{i}, [%d3+{4 * i}];\n" for i in range(values))
    folds = "".join(f"fma.rn.f32 %v{i}, %v{i}, %v{(i + 1) % values}, %f2;\n" for i in range(values))
    stores = "".join(f"st.global.f32 [%d3+{4 * i}], %v{i};\n" for i in range(values))
    head, rest = PTX.split("ld.global.f32 %f1, [%d3];\n")
    body = (
        f".reg .f32 %v<{values}>; .reg .pred %p; .reg .b32 %i;\n"
        + "ld.global.f32 %f2, [%d3];\nmov.u32 %i, 0;\n"
        + loads
        + "LOOP:\n"
        + folds
        + "add.u32 %i, %i, 1;\nsetp.lt.u32 %p, %i, 100;\n@%p bra LOOP;\n"
        + stores
        + "ret;\n}\n"
    )
    assert "st.global.f32" in rest
    return head + body


def test_the_examples_of_the_documentation():
    for module in (warpwright, sys.modules["warpwright._trace"], _kernels):
        found = doctest.testmod(module, globs={"warpwright": warpwright})
        assert found.failed == 0, module
    assert doctest.testmod(warpwright).attempted > 4


def test_ptx_without_any_tool():
    outcome = warpwright.optimise(PTX, gpu="h200", emit="ptx", use_toolkit=False)
    kernel = outcome["scale"]
    assert kernel is outcome["_Z5scalePfi"] is outcome[0] is outcome.kernels[0]
    assert kernel.name == "scale(float*, int)" and kernel.block == (256, 1, 1)
    assert kernel.is_kept and kernel.speedup == 1.0 and kernel.default is kernel.chosen
    assert outcome.code.startswith(b"// warpwright:") and outcome.ptxas is None
    assert "kernel scale(float*, int)" in repr(outcome)
    # What is to be done next is not what the command line says.
    assert "save(path)" in repr(outcome) and "--all" not in repr(outcome).split("next  ")[-1]
    assert outcome.to_dict()["schema"] == "warpwright.opt/1"
    with pytest.raises(KeyError):
        outcome["other"]


def test_a_notebook_shows_the_page():
    outcome = warpwright.optimise(PTX, gpu="h200", emit="ptx", use_toolkit=False)
    for found in (outcome, warpwright.explain(PTX, use_toolkit=False), warpwright.check(PTX, PTX)):
        shown = found._repr_html_()
        assert shown.startswith("<iframe sandbox") and shown.count("<") == 2, "the page is escaped"
        assert "<!doctype html>" in found.to_html() and "scale(float*, int)" in found.to_html()


def test_bytes_text_and_paths_are_the_same(tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text(PTX)
    how = {"gpu": "h200", "emit": "ptx", "use_toolkit": False}
    codes = [PTX, PTX.encode(), bytearray(PTX.encode()), path, str(path)]
    assert len({warpwright.optimise(code, **how).code for code in codes}) == 1


def test_explain():
    kernel = warpwright.explain(PTX, gpu="h200", use_toolkit=False)["scale"]
    assert kernel.estimated and kernel.block == (256, 1, 1)
    assert kernel.blocks == 8 and kernel.warps == 64 and "warps" in kernel.limiters
    assert len(kernel.pressure) == 8 and max(kernel.pressure) > 2


def test_check():
    assert warpwright.check(PTX, PTX)
    other = warpwright.check(PTX, PTX.replace("0f40000000", "0f40400000"))
    assert not other and other.verdict == "refuted" and other["scale"].verdict == "refuted"


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (warpwright.InputError, lambda: warpwright.optimise(b"")),
        (warpwright.InputError, lambda: warpwright.optimise(b"hello\n")),
        (warpwright.InputError, lambda: warpwright.optimise("missing.ptx")),
        (warpwright.InputError, lambda: warpwright.optimise(PTX.replace("ret;", "{"))),
        (warpwright.InputError, lambda: warpwright.optimise(PTX, gpu="v100")),
        (warpwright.InputError, lambda: warpwright.optimise(PTX, kernels=["typo"], emit="ptx")),
        (warpwright.InputError, lambda: warpwright.optimise(PTX, block=64, emit="ptx")),
        (warpwright.InputError, lambda: warpwright.check(PTX, b"\x7fELF\2\1\1")),
        (warpwright.UsageError, lambda: warpwright.optimise(PTX, block=0)),
        (warpwright.UsageError, lambda: warpwright.optimise(PTX, block=(1, 2, 3, 4))),
        (warpwright.UsageError, lambda: warpwright.optimise(PTX, emit="sass")),
        (warpwright.UsageError, lambda: warpwright.optimise(PTX, budget=-1.0)),
        (warpwright.UsageError, lambda: warpwright.optimise(PTX, recipe="no-such-pass")),
        (warpwright.UsageError, lambda: warpwright.optimised(3)),
        (warpwright.MissingToolError, lambda: warpwright.optimise(PTX, use_toolkit=False)),
    ],
)
def test_errors_are_types(error, call):
    with pytest.raises(error) as raised:
        call()
    assert isinstance(raised.value, warpwright.WarpwrightError) and str(raised.value)


@pytest.mark.parametrize(
    ("parameter", "value", "call"),
    [
        ("code", 3, lambda value: warpwright.optimise(value)),
        ("original", None, lambda value: warpwright.check(value, PTX)),
        *[
            (parameter, value, lambda value, parameter=parameter: warpwright.optimise(PTX, **{parameter: value}))
            for parameter, value in [
                ("gpu", 90),
                ("block", "256"),
                ("block", 1.5),
                ("block", (1, "2")),
                ("dynamic_smem", 1.5),
                ("kernels", [3]),
                ("nvcc", "-O3"),
                ("recipe", 3),
                ("budget", "5"),
                ("name", 3),
            ]
        ],
    ],
)
def test_a_wrong_type_is_named_by_its_parameter(parameter, value, call):
    with pytest.raises(TypeError, match=f"^{parameter} is "):
        call(value)


class Index:
    """A whole number of another library."""

    def __index__(self):
        return 256


def test_whole_numbers_of_others_are_numbers():
    text = PTX.replace(".reqntid 256", "")
    assert warpwright.explain(text, block=Index(), use_toolkit=False)[0].block == (256, 1, 1)
    assert warpwright.explain(text, block=(Index(), 2), use_toolkit=False)[0].block == (256, 2, 1)


CUDA = "__global__ void twice(float *p) { p[threadIdx.x] *= 2; }\n"


def words_of(value):
    if isinstance(value, dict):
        return [word for part in value.values() for word in words_of(part)]
    if isinstance(value, list):
        return [word for part in value for word in words_of(part)]
    return [str(value)]


def is_python(text):
    return not any(word in text for word in ("--", "`tune`", "`opt`", "FILE", "explain-term", " -o "))


@pytest.mark.parametrize(
    ("says", "call"),
    [
        ("block=64,1,1 contradicts", lambda: warpwright.optimise(PTX, block=64)),
        ("block=64,1,1 contradicts", lambda: warpwright.check(PTX, PTX, block=64)),
        ("`nvcc=` is for CUDA C", lambda: warpwright.optimise(PTX, nvcc=["-O3"])),
        ("`gpu=`", lambda: warpwright.optimise(PTX.replace("sm_90", "sm_900"), emit="ptx")),
        ("use_toolkit=False turns them off", lambda: warpwright.optimise(PTX, use_toolkit=False)),
        ("use_toolkit=False turns them off", lambda: warpwright.optimise(CUDA, use_toolkit=False)),
        ("code is empty", lambda: warpwright.optimise("")),
        ("too long", lambda: warpwright.optimise("a" * 5000)),
    ],
)
def test_errors_are_in_python_words(says, call):
    with pytest.raises(warpwright.WarpwrightError) as raised:
        call()
    text = str(raised.value)
    assert says in text and len(text) < 400
    assert is_python(text.replace("`warpwright occupancy --list`", "")), text


def test_results_are_in_python_words(tmp_path):
    ptxas()
    text = spilling(60).replace(".reqntid 256\n", "")
    several = text + PTX.split(".address_size 64")[1]
    outcomes = [
        warpwright.optimise(text, gpu="h200", budget=0.2),
        warpwright.optimise(text, gpu="h200", block=256),
        warpwright.optimise(cubin(tmp_path, text), gpu="h200"),
        warpwright.optimise(several.replace("_Z5scalePfi", "other", 1), gpu="h200"),
        warpwright.explain(text),
        warpwright.check(text, PTX),
    ]
    for outcome in outcomes:
        assert is_python(repr(outcome)), repr(outcome)
        for words in words_of(outcome.to_dict()):
            assert is_python(words), words


def test_source_text_is_told_from_a_path():
    one_line = PTX.replace("\n", " ")
    assert warpwright.explain(one_line, use_toolkit=False)["scale"].block == (256, 1, 1)
    ptxas()
    assert warpwright.explain(CUDA, gpu="h200")["twice"].registers > 0
    assert warpwright.check(CUDA, CUDA) and warpwright.check(CUDA, CUDA, name="twice.cu")


def test_an_outcome_knows_its_kernels_and_equals_itself():
    how = {"gpu": "h200", "emit": "ptx", "use_toolkit": False}
    one, two = warpwright.optimise(PTX, **how), warpwright.optimise(PTX, **how)
    for key in ("scale", "_Z5scalePfi", "scale(float*, int)", one[0]):
        assert key in one
    assert "other" not in one and 3 not in one
    assert one == two and hash(one) == hash(two) and one != warpwright.optimise(PTX, **{**how, "gpu": "h100"})
    assert "1 block, " in repr(warpwright.explain(PTX, dynamic_smem=120000, gpu="h200", use_toolkit=False))


def test_the_page_has_the_call_and_what_limits_the_build(tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text(PTX.replace(".reqntid 256", ""))
    ptxas()
    page = warpwright.optimise(path, gpu="h200", block=256, recipe="maxnreg(32)").to_html()
    call = f"warpwright.optimise('{path}', gpu='h200', block=(256, 1, 1), kernels="
    assert call in html.unescape(page) and "warpwright opt" not in page
    assert "What limits it now" in page


def test_candidates_are_built_and_replayed():
    ptxas()
    outcome = warpwright.optimise(spilling(), gpu="h200", recipe="maxnreg(32)")
    again = warpwright.optimise(spilling(), gpu="h200", recipe="maxnreg(32)")
    assert outcome.code == again.code and outcome.code.startswith(b"\x7fELF")
    kernel = warpwright.explain(outcome.code)["scale"]
    assert kernel.registers == 32 and kernel.spill_bytes > 0


class Runtime:
    """What Triton documents of its `knobs.runtime`."""

    add_stages_inspection_hook = None


class Knobs:
    runtime = Runtime


class Target:
    backend = "cuda"


class Active:
    get_current_target = staticmethod(Target)


class Driver:
    active = Active


class TritonRuntime:
    driver = Driver


class Triton:
    """What is used of the package."""

    __version__ = "3.9.0"
    knobs = Knobs
    runtime = TritonRuntime


class Triton36(Triton):
    """It does not ask the hook for its keys."""

    __version__ = "3.6.0"


class Compiled:
    """A kernel of Triton: its metadata as they come back from the cache, and its code."""

    def __init__(self, cubin, metadata):
        self.asm = {"cubin": cubin}
        self.metadata = types.SimpleNamespace(**json.loads(json.dumps(metadata)))


class JitFunction:
    """The interface of a `triton.jit` function that a launch goes through: `run` compiles by stages."""

    def __init__(self, compiled, ptx=PTX):
        self.compiled, self.ptx, self.keys, self.loaded = compiled, ptx, [], None

    def __getitem__(self, grid):
        raise AssertionError("the wrapper launches by `run`")

    def run(self, *args, grid, warmup, **kwargs):
        stages = {"ptx": lambda source, metadata: source, "cubin": lambda source, metadata: self.compiled}
        hook = Runtime.add_stages_inspection_hook
        self.keys.append(hook()[0])
        hook(object(), stages, object(), "triton", 90)
        self.loaded = stages["cubin"](self.ptx, {"shared": 0, "num_warps": 8})
        return grid, args, kwargs


def better(code, **how):
    """What a pass makes of it that is always to be had: the model would keep so small a kernel."""
    return warpwright.optimise(code, **{"gpu": "h200", "dynamic_smem": 0, **how, "recipe": "throttle(2)"})


@pytest.fixture
def eager(monkeypatch):
    monkeypatch.setattr(_kernels, "optimise", better)


def test_a_triton_kernel_is_optimised_as_it_compiles(tmp_path, eager):
    compiled = cubin(tmp_path)
    expected = better(compiled)
    assert expected.is_changed and warpwright.check(compiled, expected.code, dynamic_smem=0, block=256)
    function = JitFunction(compiled)
    wrapped = _kernels.TritonKernel(function, _kernels._Maker("h200", None), Triton)
    assert wrapped[(4,)](1, 2, BLOCK=3) == ((4,), (1, 2), {"BLOCK": 3})
    assert function.loaded == expected.code != compiled
    assert isinstance(wrapped.outcomes[0], warpwright.Outcome)
    assert "warpwright" in function.keys[0], "Triton's cache tells the two apart"
    assert Runtime.add_stages_inspection_hook is None, "the hook is there while it compiles alone"
    assert wrapped.compiled is compiled, "other attributes are the function's own"


def test_a_triton_kernel_that_spills_is_built_again_from_its_ptx(tmp_path, monkeypatch):
    monkeypatch.setattr(_kernels, "_triton_ptxas", lambda metadata: str(ptxas()))
    text = spilling(60).replace(".reqntid 256\n", ".reqntid 256\n.minnctapersm 8\n")

    def made(compiled):
        function = JitFunction(compiled, text)
        wrapped = _kernels.TritonKernel(function, _kernels._Maker("h200", None), Triton)
        wrapped[(1,)]()
        [outcome] = wrapped.outcomes
        return function.loaded, outcome["scale"].chosen.recipe

    compiled = cubin(tmp_path, text)
    loaded, recipe = made(compiled)
    assert recipe.startswith("maxnreg(") and loaded != compiled
    spills = [warpwright.explain(code)["scale"].spill_bytes for code in (compiled, loaded)]
    assert spills[0] > spills[1]
    # Of other options or another version: the cubin is what there is.
    _, recipe = made(cubin(tmp_path, spilling(61)))
    assert "maxnreg" not in recipe


def test_what_cannot_be_read_stays_as_it_is():
    function = JitFunction(b"\x7fELF no cubin")
    wrapped = _kernels.TritonKernel(function, _kernels._Maker("h200", None), Triton)
    wrapped[(1,)]()
    assert function.loaded == b"\x7fELF no cubin"
    assert isinstance(wrapped.outcomes[0], warpwright.InputError)


def test_an_earlier_hook_goes_on_working(tmp_path):
    seen = []
    Runtime.add_stages_inspection_hook = lambda *args: seen.append(args) or ("key", "digest")
    try:
        function = JitFunction(b"no cubin")
        _kernels.TritonKernel(function, _kernels._Maker(None, None), Triton)[(1,)]()
        assert [len(args) for args in seen] == [0, 5] and function.keys[0].startswith("key")
    finally:
        Runtime.add_stages_inspection_hook = None


class CachingFunction:
    """The same with a cache on disk, whose keys are those of a version of Triton."""

    def __init__(self, triton, cubin, disk):
        self.triton, self.cubin, self.disk = triton, cubin, disk
        self.__module__, self.__qualname__ = __name__, "CACHING"

    def __getitem__(self, grid):
        return lambda *args: self.run(*args, grid=grid, warmup=False)

    def run(self, *args, grid, warmup, ir_override=None):
        hook = Runtime.add_stages_inspection_hook
        asked = hook is not None and self.triton is Triton
        key = f"key-{ir_override}-{hook()[0] if asked else ''}"
        if key not in self.disk:
            stages = {"cubin": lambda source, metadata: self.cubin}
            if hook is not None:
                hook(object(), stages, object(), "triton", 90)
            metadata = {"hash": key, "shared": 0}
            self.disk[key] = stages["cubin"](object(), metadata), metadata
        return Compiled(*self.disk[key])


CACHING = None


@pytest.mark.parametrize("triton", [Triton, Triton36])
def test_the_cache_of_triton_tells_builds_apart_and_keeps_what_became_of_them(tmp_path, eager, triton):
    compiled, disk = cubin(tmp_path), {}
    expected = better(compiled)

    def decorated(gpu="h200", budget=None):
        function = CachingFunction(triton, compiled, disk)
        return _kernels.TritonKernel(function, _kernels._Maker(gpu, budget), triton)

    plain = CachingFunction(triton, compiled, disk)
    assert plain[(1,)]().asm["cubin"] == compiled
    kernel = decorated()
    assert kernel[(1,)]().asm["cubin"] == expected.code != compiled, "not what the plain one has left"
    assert plain[(1,)]().asm["cubin"] == compiled, "nor the other way round"
    decorated(budget=3.0)[(1,)]()
    assert len(disk) == 3, "other settings are another build"
    # Another process finds both the code and what became of it.
    again = decorated()
    assert again[(1,)]().asm["cubin"] == expected.code
    again[(1,)]()
    [was], [found] = kernel.outcomes, again.outcomes
    assert found.to_dict() == was.to_dict() and found.code == was.code and found["scale"].chosen == was["scale"].chosen
    assert repr(found) == repr(was)


def test_an_error_is_found_in_the_cache_of_triton():
    disk = {}
    for _ in range(2):
        function = CachingFunction(Triton, b"\x7fELF no cubin", disk)
        wrapped = _kernels.TritonKernel(function, _kernels._Maker(None, None), Triton)
        wrapped[(1,)]()
        [error] = wrapped.outcomes
        assert type(error) is warpwright.InputError and str(error)


def test_another_thread_compiles_as_it_would(tmp_path, eager):
    compiled, disk = cubin(tmp_path), {}

    class Busy(CachingFunction):
        def run(self, *args, **kwargs):
            made = super().run(*args, **kwargs)
            other = CachingFunction(Triton, compiled, disk)
            thread = threading.Thread(target=lambda: others.append(other[(1,)]()))
            thread.start()
            thread.join()
            return made

    others = []
    wrapped = _kernels.TritonKernel(Busy(Triton, compiled, disk), _kernels._Maker("h200", None), Triton)
    assert wrapped[(1,)]().asm["cubin"] != compiled
    assert others[0].asm["cubin"] == compiled


def test_a_decorated_kernel_is_copied_and_pickled_as_a_function():
    global CACHING
    function = CachingFunction(Triton, b"", {})
    CACHING = warpwright.optimised(function)
    assert copy.copy(CACHING) is CACHING and copy.deepcopy(CACHING) is CACHING
    assert pickle.loads(pickle.dumps(CACHING)) is CACHING
    raw = warpwright.optimised(RawKernel(), gpu="h200")
    for one in (copy.copy(raw), copy.deepcopy(raw), pickle.loads(pickle.dumps(raw))):
        assert isinstance(one, _kernels.CupyKernel) and one.outcomes == [] and one._maker.gpu == "h200"


class Autotuner:
    """What `triton.autotune` makes."""

    def __init__(self, fn):
        self.fn = fn

    def __getitem__(self, grid):
        raise AssertionError("it is not launched")

    def run(self, *args, **kwargs):
        raise AssertionError("it is not launched")


def test_the_decorator_refuses_what_would_have_no_effect(monkeypatch):
    with pytest.raises(warpwright.UsageError, match="next to @triton.jit"):
        warpwright.optimised(Autotuner(JitFunction(b"")))
    with pytest.raises(warpwright.UsageError, match="next to @triton.jit"):
        warpwright.optimised(warpwright.optimised(JitFunction(b"")))
    monkeypatch.setitem(sys.modules, "triton", types.SimpleNamespace(__version__="3.5.1"))
    with pytest.raises(warpwright.MissingToolError, match="3.6 or later"):
        warpwright.optimised(JitFunction(b""))


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (warpwright.InputError, {"gpu": "v100"}),
        (TypeError, {"gpu": 90}),
        (warpwright.UsageError, {"budget": 0}),
        (warpwright.UsageError, {"budget": float("nan")}),
        (TypeError, {"budget": "5"}),
    ],
)
def test_the_decorator_checks_its_settings_at_once(error, how):
    with pytest.raises(error):
        warpwright.optimised(**how)


class RawKernel:
    """The interface of a `cupy.RawKernel`."""

    code, name, options, backend = "…", "_Z5scalePfi", (), "nvrtc"
    enable_cooperative_groups, file_path = False, None

    def __init__(self):
        self.launches = []

    def __call__(self, grid, block, args, *, shared_mem=0):
        self.launches.append((grid, block, args, shared_mem))


def test_a_cupy_kernel_is_optimised_at_its_first_launch(tmp_path, eager):
    compiled = cubin(tmp_path)
    loaded = []

    def loader(path, name):
        loaded.append((Path(path).read_bytes(), name))
        return RawKernel()

    plain = RawKernel()
    wrapped = _kernels.CupyKernel(plain, _kernels._Maker("h200", None), lambda kernel: compiled, loader)
    for _ in range(2):
        wrapped((4,), (256,), (1, 2))
    assert plain.launches == [] and loaded == [(better(compiled).code, "_Z5scalePfi")]
    wrapped((4,), (128,), (1, 2))
    assert len(loaded) == 2 and plain.launches == [], "another block is another build"


def test_a_cupy_kernel_that_cannot_be_compiled_runs_as_it_is():
    def compiler(kernel):
        raise RuntimeError("no NVRTC")

    plain = RawKernel()
    wrapped = _kernels.CupyKernel(plain, _kernels._Maker("h200", None), compiler)
    wrapped((4,), (256,), (1, 2), shared_mem=16)
    assert plain.launches == [((4,), (256,), (1, 2), 16)]
    assert isinstance(wrapped.outcomes[0], RuntimeError)


def test_the_decorator_knows_both():
    assert isinstance(warpwright.optimised(JitFunction(b"")), _kernels.TritonKernel)
    assert isinstance(warpwright.optimised(gpu="h200")(RawKernel()), _kernels.CupyKernel)


def child(work):
    """What a forked child's work returns (true or false); it has a minute."""
    pid = os.fork()
    if pid == 0:
        ok = False
        try:
            ok = work()
        finally:
            os._exit(0 if ok else 1)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pytest.fail("the child hangs")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_optimises(tmp_path):
    compiled = cubin(tmp_path, spilling())

    def optimises():
        return warpwright.optimise(compiled, gpu="h200", dynamic_smem=0).code == code

    code = warpwright.optimise(compiled, gpu="h200", dynamic_smem=0).code
    assert child(optimises)
    # Also while another thread works.
    stop = threading.Event()

    def works():
        while not stop.is_set():
            assert optimises()

    threads = [threading.Thread(target=works) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        assert all(child(optimises) for _ in range(5))
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_launches_a_kernel_though_another_thread_did(tmp_path):
    held, free = threading.Event(), threading.Event()

    class Slow(JitFunction):
        def run(self, *args, **kwargs):
            held.set()
            free.wait()

    slow = _kernels.TritonKernel(Slow(b""), _kernels._Maker(None, None), Triton)
    thread = threading.Thread(target=slow[(1,)])
    thread.start()
    held.wait()

    def launches():
        function = JitFunction(b"no cubin")
        wrapped = _kernels.TritonKernel(function, _kernels._Maker(None, None), Triton)
        wrapped[(1,)]()
        return len(wrapped.outcomes) == 1

    try:
        assert child(launches)
    finally:
        free.set()
        thread.join()
        Runtime.add_stages_inspection_hook = None


def test_a_signal_ends_a_call():
    ptxas()

    class Told(Exception):
        pass

    def tells(number, frame):
        raise Told

    # No build of it is in the cache.
    slow = spilling(400).replace("%i, 100;", f"%i, {time.time_ns() % 1000000 + 1000};")
    before = signal.signal(signal.SIGALRM, tells)
    began = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(Told):
            warpwright.optimise(slow, gpu="h200")
        assert time.monotonic() - began < 1.0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert warpwright.explain(PTX, use_toolkit=False)["scale"].warps == 64, "the next call works"


PROGRAM = Path(__file__).parents[2] / "inject" / "tests" / "program"


def test_programs_are_traced(tmp_path):
    library = os.environ.get("WARPWRIGHT_INJECT")
    if not library:
        pytest.skip("WARPWRIGHT_INJECT does not name the library that programs load")
    module = cubin(tmp_path, PTX.replace("_Z5scalePfi", "scale"))
    (tmp_path / "scale.cubin").write_bytes(module)
    shared = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "fake_driver.c"]
    for out, words in (("libcuda.so.1", shared), ("host", ["host.c"])):
        command = ["cc", "-w", "-o", str(tmp_path / out), *words, "-ldl", "-lpthread"]
        subprocess.run(command, cwd=PROGRAM, check=True)
    environment = {**os.environ}
    with warpwright.trace() as seen:
        assert len(seen) == 0 and os.environ["WARPWRIGHT"] == "trace"
        traced = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
        subprocess.run([str(tmp_path / "host"), *HOST_WORDS], cwd=tmp_path, env=traced, check=True)
    assert dict(os.environ) == environment, "the variables are as they were"
    assert seen.launches[0].symbol == "scale" and seen.launches[0].count > 0
    assert "scale" in repr(seen) and seen.to_dict()["schema"] == "warpwright.trace/1"
    seen.save(tmp_path / "T.json")
    assert (tmp_path / "T.json").stat().st_size > 100


HOST_WORDS = ("proc2", "plain", "scale.cubin")


def test_a_library_that_is_not_there():
    with pytest.raises(warpwright.MissingToolError):
        with warpwright.trace(Path("nowhere.so")):
            pass


def test_a_cubin_that_lacks_its_last_byte_gets_it() -> None:
    from warpwright._kernels import _whole

    header = b"\x7fELF".ljust(0x20, b"\0") + struct.pack("<QQ", 64, 0) + b"\0" * 6 + struct.pack("<4H", 56, 1, 64, 0)
    whole = header.ljust(64, b"\0") + bytes(range(1, 56)) + b"\0"
    assert len(whole) == 64 + 56
    assert _whole(whole) == whole
    assert _whole(whole[:-1]) == whole
    assert _whole(whole[:-2]) == whole[:-2]
    assert _whole(b"no cubin") == b"no cubin"


# ---- rewritten kernels

ROWS = """.version 8.0
.target sm_80
.address_size 64

.visible .entry NAME(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %d<6>; .reg .pred %p;
    ld.param.u64 %d0, [x];
    ld.param.u64 %d1, [y];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    setp.ge.s32 %p, %r4, %r0;
    @%p bra END;
    mul.wide.s32 %d2, %r4, 4;
    add.s64 %d3, %d0, %d2;
    add.s64 %d4, %d1, %d2;
    ld.global.f32 %f0, [%d3];
    BODY
    st.global.f32 [%d4], %f1;
END:
    ret;
}
"""


def rows(name, body, block, n=100, count=None):
    """A launch of a kernel that computes `y[i]` of `x[i]`."""
    code = ROWS.replace("NAME", name).replace("BODY", body)
    return warpwright.Launch(code, name, -(-n // block), block, ["x", "y", (count or n, "u32")])


PLAIN = "mul.rn.f32 %f2, %f0, 0f40000000; mul.rn.f32 %f1, %f2, %f2;"


def arrays(n=100):
    numpy = pytest.importorskip("numpy")
    x = numpy.linspace(-1, 1, n, dtype=numpy.float32)
    return {"inputs": {"x": x}, "outputs": {"y": x}}


def test_rewritten_kernels_are_compared_for_every_input():
    plain = rows("plain", PLAIN, 32)
    same = warpwright.check(plain, rows("other", PLAIN, 64), **arrays())
    assert same and same.verdict == "proved-at-launches"
    rounded = rows("rounded", "mul.rn.f32 %f2, %f0, 0f40800000; mul.rn.f32 %f1, %f2, %f0;", 64)
    found = warpwright.check(plain, rounded, **arrays())
    assert not found and found.verdict == "equal-up-to-rounding"
    assert warpwright.check(plain, rounded, accept="equal-up-to-rounding", **arrays())
    wrong = warpwright.check(plain, rows("wrong", "mul.rn.f32 %f1, %f0, 0f40800000;", 64), **arrays())
    assert not wrong and wrong.verdict == "refuted" and "y[" in repr(wrong)
    tail = warpwright.check(plain, rows("tail", PLAIN, 64, count=99), **arrays())
    assert tail.verdict == "refuted" and "does not write `y[99]`" in repr(tail)


def test_a_function_of_arrays_may_be_the_original():
    def reference(x):
        return (2 * x) ** 2

    found = warpwright.check(reference, rows("plain", PLAIN, 64), accept="tested", **arrays())
    assert found and found.verdict == "tested"
    assert not warpwright.check(reference, rows("plain", PLAIN, 64), **arrays())
    # Wrong for negative inputs alone.
    absolute = "abs.f32 %f2, %f0; mul.rn.f32 %f1, %f2, 0f40800000; mul.rn.f32 %f1, %f1, %f0;"
    wrong = warpwright.check(reference, rows("wrong", absolute, 64), accept="tested", **arrays())
    assert wrong.verdict == "refuted" and "in place of" in repr(wrong)
    tail = warpwright.check(reference, rows("tail", PLAIN, 64, count=99), accept="tested", **arrays())
    assert tail.verdict == "refuted"


@pytest.mark.parametrize(
    "error, how",
    [
        (warpwright.UsageError, {"accept": "refuted"}),
        (warpwright.UsageError, {"outputs": {}}),
        (TypeError, {"inputs": {"x": [1.0]}}),
    ],
)
def test_what_is_wrong_with_a_comparison_is_said(error, how):
    plain = rows("plain", PLAIN, 32)
    with pytest.raises(error):
        warpwright.check(plain, plain, **{**arrays(), **how})
