"""A decorator for kernels of Triton and CuPy: the machine code that they compile is optimised before it is loaded.

It starts from the finished cubin, so whatever options the host gave its compiler hold; of Triton from its PTX, where
Triton's own ptxas makes that very cubin of it again, for register limits are chosen there. What is not better and proved
stays as it is, and so does everything where something goes wrong; `outcomes` says what became of each build.
"""

import os
import struct
import sys
import tempfile
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, TypeVar, Union, overload

from . import _native
from ._api import known_gpu, optimise, optimise_made, seconds
from ._results import Outcome

Result = Union[Outcome, Exception]
K = TypeVar("K")


@overload
def optimised(kernel: K, *, gpu: Optional[str] = None, budget: Optional[float] = None) -> K: ...
@overload
def optimised(*, gpu: Optional[str] = None, budget: Optional[float] = None) -> Callable[[K], K]: ...
def optimised(kernel: Any = None, *, gpu: Optional[str] = None, budget: Optional[float] = None) -> Any:
    """Decorates a `triton.jit` function or a `cupy.RawKernel`, which is then called as before.

    >>> import triton, triton.language as tl  # doctest: +SKIP
    >>> @warpwright.optimised  # doctest: +SKIP
    ... @triton.jit
    ... def add(x, y, out, n, BLOCK: tl.constexpr): ...
    >>> add[(grid,)](x, y, out, n, BLOCK=1024)  # doctest: +SKIP
    >>> add.outcomes[0]  # doctest: +SKIP

    `gpu` is the GPU by name, where the architecture in the cubin says too little; `budget` as for `optimise`. Triton is
    3.6 or later.
    """
    maker = _Maker(known_gpu(gpu), seconds(budget))
    if kernel is None:
        return lambda kernel: _wrapped(kernel, maker.like())
    return _wrapped(kernel, maker)


def _wrapped(kernel: Any, maker: "_Maker") -> Any:
    if hasattr(kernel, "run") and hasattr(kernel, "__getitem__"):
        if hasattr(getattr(kernel, "fn", None), "run"):
            # An autotuner, heuristics, or a kernel that is decorated already.
            raise _native.UsageError(
                f"the decorator stands next to @triton.jit, and {type(kernel).__name__} above it"
            )
        _check_triton()
        return TritonKernel(kernel, maker)
    if callable(kernel) and hasattr(kernel, "code") and hasattr(kernel, "name"):
        return CupyKernel(kernel, maker)
    raise _native.UsageError(f"a triton.jit function or a cupy.RawKernel is wanted, not {type(kernel).__name__}")


class _Maker:
    """Optimises cubins, and remembers what became of each."""

    def __init__(self, gpu: Optional[str], budget: Optional[float]) -> None:
        self.gpu = gpu
        self.budget = budget
        self.outcomes: List[Result] = []

    def like(self) -> "_Maker":
        """One more with the same settings."""
        return _Maker(self.gpu, self.budget)

    @property
    def key(self) -> str:
        """What its results depend on."""
        return f"warpwright-{_native.__version__}-{self.gpu}-{self.budget}"

    def better(
        self, cubin: bytes, block: Optional[Sequence[int]], dynamic_smem: int
    ) -> Optional[bytes]:
        """A better cubin; `None` if there is none."""
        try:
            outcome = optimise(
                cubin, gpu=self.gpu, block=block, dynamic_smem=dynamic_smem, budget=self.budget
            )
        except _native.WarpwrightError as error:
            self.outcomes.append(error)
            return None
        return self._kept(outcome)

    def better_of_ptx(
        self, ptx: str, cubin: bytes, ptxas: str, ptxas_options: Sequence[Sequence[str]], dynamic_smem: int
    ) -> Optional[bytes]:
        """The same by way of the PTX, with the options of ptxas that make this cubin of it; else of the cubin."""
        for options in ptxas_options:
            try:
                outcome = optimise_made(
                    ptx, cubin, ptxas, options, gpu=self.gpu, dynamic_smem=dynamic_smem, budget=self.budget
                )
            except _native.WarpwrightError:
                continue
            return self._kept(outcome)
        # Triton states the block in the PTX, and with it in the cubin.
        return self.better(cubin, None, dynamic_smem)

    def _kept(self, outcome: Outcome) -> Optional[bytes]:
        """The code of a changed outcome, which is remembered."""
        self.outcomes.append(outcome)
        return outcome.code if outcome.is_changed else None


_LOCK = threading.RLock()


def _unlock() -> None:
    """In a child whose parent's other threads may have held it."""
    global _LOCK
    _LOCK = threading.RLock()


os.register_at_fork(after_in_child=_unlock)


class TritonKernel:
    """A `triton.jit` function whose cubins are optimised as they are compiled."""

    def __init__(self, kernel: Any, maker: _Maker, triton: Any = None) -> None:
        self.fn = kernel
        self._maker = maker
        self._triton = triton
        # Builds by Triton's hash, of which the outcome is known.
        self._known: Set[Any] = set()
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            if hasattr(kernel, name):
                setattr(self, name, getattr(kernel, name))

    @property
    def outcomes(self) -> List[Result]:
        """What became of each build, in order; of one in Triton's cache, what became of it when it was made."""
        return self._maker.outcomes

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """As Triton's own."""
        return self._hooked(self.fn.run, *args, **kwargs)

    def warmup(self, *args: Any, **kwargs: Any) -> Any:
        """As Triton's own: compiles, and launches nothing."""
        return self._hooked(self.fn.warmup, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "fn":
            raise AttributeError(name)
        return getattr(self.fn, name)

    def __reduce__(self) -> str:
        # As of a function: copies are the same one, and it is pickled by its name.
        return str(getattr(self, "__qualname__"))

    def _hooked(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls it with the hook that Triton has for the stages of its compiler (3.6 and later)."""
        triton = self._triton or _imported_triton()
        runtime = triton.knobs.runtime
        if not _asks_the_hook(triton):
            # Nothing else of a launch that both of Triton's caches look at is without effect. What ends in no kind of
            # intermediate code overrides none. Only the options of CUDA have it.
            target = triton.runtime.driver.active.get_current_target()
            if kwargs.get("ir_override") or target.backend != "cuda":
                return call(*args, **kwargs)
            kwargs["ir_override"] = self._maker.key
        with _LOCK:
            earlier = runtime.add_stages_inspection_hook
            runtime.add_stages_inspection_hook = _stages_hook(self._maker, earlier, self._known)
            try:
                made = call(*args, **kwargs)
            finally:
                runtime.add_stages_inspection_hook = earlier
            self._note(made)
        return made

    def _note(self, made: Any) -> None:
        """The outcome of a build that Triton had in its cache."""
        metadata = getattr(made, "metadata", None)
        recorded, key = getattr(metadata, "warpwright", None), getattr(metadata, "hash", None)
        if recorded is not None and key not in self._known:
            self._known.add(key)
            self._maker.outcomes.append(_restored(recorded, made.asm["cubin"]))


def _imported_triton() -> Any:
    import triton
    import triton.knobs

    return triton


def _release(triton: Any) -> Tuple[int, ...]:
    return tuple(int(number) for number in str(triton.__version__).split(".")[:2])


def _check_triton() -> None:
    """Before 3.6 Triton has no hook."""
    triton = sys.modules.get("triton")
    if triton is not None and _release(triton) < (3, 6):
        raise _native.MissingToolError(f"Triton 3.6 or later is needed, this is {triton.__version__}")


def _asks_the_hook(triton: Any) -> bool:
    """Does this Triton ask the hook for a part of the keys of its caches?"""
    return _release(triton) >= (3, 7)


def _stages_hook(
    maker: _Maker, earlier: Optional[Callable[..., Any]], known: Set[Any]
) -> Callable[..., Any]:
    owner = threading.get_ident()

    def hook(*args: Any) -> Any:
        is_ours = threading.get_ident() == owner
        if not args:
            # Part of the keys of Triton's own caches.
            key, digest = earlier() if earlier else ("", "")
            own = maker.key if is_ours else ""
            return key + own, digest + own
        if earlier:
            earlier(*args)
        stages: Dict[str, Callable[..., bytes]] = args[1]
        plain = stages.get("cubin")
        # Whatever other threads compile meanwhile is theirs.
        if plain is not None and is_ours:
            stages["cubin"] = lambda source, metadata: _recorded(plain, maker, known, source, metadata)
        return None

    return hook


def _recorded(
    plain: Callable[..., bytes], maker: _Maker, known: Set[Any], source: Any, metadata: Dict[str, Any]
) -> bytes:
    """The cubin; what became of it stands beside it in Triton's cache."""
    cubin = _cubin(plain, maker, source, metadata)
    known.add(metadata.get("hash"))
    metadata["warpwright"] = _record(maker.outcomes[-1])
    return cubin


def _record(result: Result) -> Dict[str, str]:
    if isinstance(result, Outcome):
        return {"document": result._text, "screen": result._screen}
    return {"error": type(result).__name__, "text": str(result)}


def _restored(record: Dict[str, str], cubin: bytes) -> Result:
    if "document" in record:
        return Outcome(cubin, record["document"], record["screen"])
    error: Exception = getattr(_native, record["error"], _native.WarpwrightError)(record["text"])
    return error


def _cubin(plain: Callable[..., bytes], maker: _Maker, source: Any, metadata: Dict[str, Any]) -> bytes:
    cubin = plain(source, metadata)
    shared = int(metadata.get("shared", 0))
    ptxas = _triton_ptxas(metadata)
    if ptxas is None or not isinstance(source, str):
        return maker.better(cubin, None, shared) or cubin
    return maker.better_of_ptx(source, cubin, ptxas, _triton_options(metadata), shared) or cubin


def _triton_ptxas(metadata: Dict[str, Any]) -> Optional[str]:
    """The ptxas that Triton runs for its target; `None` where this Triton does not say."""
    try:
        from triton.backends.nvidia.compiler import get_ptxas

        return str(get_ptxas(metadata["target"].arch).path)
    except Exception:  # Of whatever version: the cubin will do.
        return None


def _triton_options(metadata: Dict[str, Any]) -> List[List[str]]:
    """The options with which Triton runs it, as far as they change code: 3.9's first, then those of versions before."""
    own = [] if metadata.get("enable_fp_fusion", True) else ["--fmad=false"]
    own += (metadata.get("ptx_options") or "").split()
    return [["--regAllocOptLevel=2", *own], own]


class CupyKernel:
    """A `cupy.RawKernel`; for each block and amount of dynamic shared memory its code is optimised at the first launch."""

    def __init__(
        self,
        kernel: Any,
        maker: _Maker,
        compiler: Optional[Callable[[Any], bytes]] = None,
        loader: Optional[Callable[[str, str], Any]] = None,
    ) -> None:
        self.kernel = kernel
        self._maker = maker
        self._compiler = compiler or _cupy_cubin
        self._loader = loader or _cupy_load
        self._functions: Dict[Tuple[Tuple[int, ...], int], Any] = {}

    @property
    def outcomes(self) -> List[Result]:
        """What became of each build, in order."""
        return self._maker.outcomes

    def __call__(self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], **kwargs: Any) -> Any:
        smem = int(kwargs.get("shared_mem", 0))
        key = (tuple(block), smem)
        with _LOCK:
            if key not in self._functions:
                self._functions[key] = self._made(tuple(block), smem)
        return self._functions[key](grid, block, args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "kernel":
            raise AttributeError(name)
        return getattr(self.kernel, name)

    def __reduce__(self) -> Any:
        # As the kernel that is decorated: its builds are made again.
        return _wrapped, (self.kernel, self._maker.like())

    def _made(self, block: Tuple[int, ...], smem: int) -> Any:
        try:
            cubin = self._compiler(self.kernel)
        except Exception as error:  # Whatever the host's compiler says, its own path says it again.
            self.outcomes.append(error)
            return self.kernel
        better = self._maker.better(cubin, block, smem)
        if better is None:
            return self.kernel
        with _temporary(better) as path:
            return self._loader(path, self.kernel.name)


class _temporary:
    """A file with these bytes, for as long as it is loaded."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __enter__(self) -> str:
        handle, self._path = tempfile.mkstemp(suffix=".cubin")
        with os.fdopen(handle, "wb") as file:
            file.write(self._content)
        return self._path

    def __exit__(self, *_: Any) -> None:
        os.unlink(self._path)


def _cupy_cubin(kernel: Any) -> bytes:
    """The cubin of a kernel: its file, or what NVRTC makes of its code with its own options."""
    if kernel.file_path:
        with open(kernel.file_path, "rb") as file:
            return file.read()
    if kernel.backend != "nvrtc" or kernel.enable_cooperative_groups:
        raise _native.InputError("only RawKernels of NVRTC without cooperative groups are compiled here")
    from cupy.cuda import compiler

    cubin, _ = compiler.compile_using_nvrtc(kernel.code, options=tuple(kernel.options))
    return _whole(bytes(cubin))


def _whole(cubin: bytes) -> bytes:
    """CuPy 14 takes the last byte of a cubin for the end of a text and strips it: a zero of the last header's."""
    if cubin[:4] != b"\x7fELF" or len(cubin) < 64:
        return cubin
    segments, sections = struct.unpack_from("<QQ", cubin, 0x20)
    segment_size, segment_count, section_size, section_count = struct.unpack_from("<4H", cubin, 0x36)
    end = max(segments + segment_size * segment_count, sections + section_size * section_count)
    return cubin + b"\0" if len(cubin) + 1 == end else cubin


def _cupy_load(path: str, name: str) -> Any:
    import cupy

    function = cupy.RawModule(path=path).get_function(name)
    # Loaded now: the file goes away.
    function.compile()
    return function
