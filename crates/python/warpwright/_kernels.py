"""A decorator for kernels of Triton and CuPy: the machine code that they compile is optimised before it is loaded.

It starts from the finished cubin, so whatever options the host gave its compiler hold; of Triton from its PTX, where
Triton's own ptxas makes that very cubin of it again, for register limits are chosen there. What is not better and proved
stays as it is, and so does everything where something goes wrong; `outcomes` says what became of each build.
"""

import os
import struct
import tempfile
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from . import _native
from ._api import optimise, optimise_made
from ._results import Outcome

Result = Union[Outcome, Exception]


def optimised(kernel: Any = None, *, gpu: Optional[str] = None, budget: Optional[float] = None) -> Any:
    """Decorates a `triton.jit` function or a `cupy.RawKernel`, which is then called as before.

    >>> import triton, triton.language as tl  # doctest: +SKIP
    >>> @warpwright.optimised  # doctest: +SKIP
    ... @triton.jit
    ... def add(x, y, out, n, BLOCK: tl.constexpr): ...
    >>> add[(grid,)](x, y, out, n, BLOCK=1024)  # doctest: +SKIP
    >>> add.outcomes[0]  # doctest: +SKIP

    `gpu` is the GPU by name, where the architecture in the cubin says too little.
    """
    if kernel is None:
        return lambda kernel: optimised(kernel, gpu=gpu, budget=budget)
    maker = _Maker(gpu, budget)
    if hasattr(kernel, "run") and hasattr(kernel, "__getitem__"):
        return TritonKernel(kernel, maker)
    if callable(kernel) and hasattr(kernel, "code") and hasattr(kernel, "name"):
        return CupyKernel(kernel, maker)
    raise _native.UsageError(
        f"a triton.jit function or a cupy.RawKernel is wanted, not {type(kernel).__name__} (a triton.autotune goes outside)"
    )


class _Maker:
    """Optimises cubins, and remembers what became of each."""

    def __init__(self, gpu: Optional[str], budget: Optional[float]) -> None:
        self.gpu = gpu
        self.budget = budget
        self.outcomes: List[Result] = []

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


class TritonKernel:
    """A `triton.jit` function whose cubins are optimised as they are compiled."""

    def __init__(self, kernel: Any, maker: _Maker, knobs: Any = None) -> None:
        self.fn = kernel
        self._maker = maker
        self._knobs = knobs

    @property
    def outcomes(self) -> List[Result]:
        """What became of each build, in order."""
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
        return getattr(self.fn, name)

    def _hooked(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls it with the hook that Triton has for the stages of its compiler (3.4 and later)."""
        runtime = (self._knobs or _triton_knobs()).runtime
        with _LOCK:
            earlier = runtime.add_stages_inspection_hook
            runtime.add_stages_inspection_hook = _stages_hook(self._maker, earlier)
            try:
                return call(*args, **kwargs)
            finally:
                runtime.add_stages_inspection_hook = earlier


def _triton_knobs() -> Any:
    from triton import knobs

    return knobs


def _stages_hook(maker: _Maker, earlier: Optional[Callable[..., Any]]) -> Callable[..., Any]:
    def hook(*args: Any) -> Any:
        if not args:
            # Part of the key of Triton's own cache.
            key, digest = earlier() if earlier else ("", "")
            own = f"warpwright-{_native.__version__}-{maker.gpu}-{maker.budget}"
            return key + own, digest + own
        if earlier:
            earlier(*args)
        stages: Dict[str, Callable[..., bytes]] = args[1]
        plain = stages.get("cubin")
        if plain is not None:
            stages["cubin"] = lambda source, metadata: _cubin(plain, maker, source, metadata)
        return None

    return hook


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
        return getattr(self.kernel, name)

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
