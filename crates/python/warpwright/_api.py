"""The three things that the library does, for bytes, text and paths."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Sequence, Tuple, Union

from . import _native
from ._results import Checked, Explained, Outcome

Code = Union[bytes, bytearray, memoryview, str, "os.PathLike[str]"]
Block = Union[int, Sequence[int]]


@dataclass(frozen=True)
class _Asked:
    gpu: Optional[str]
    kernels: List[str]
    block: Optional[Tuple[int, int, int]]
    dynamic_smem: Optional[int]
    nvcc: List[str]
    use_toolkit: bool
    ptxas: Optional[str] = None
    ptxas_options: Sequence[str] = ()
    made: Optional[bytes] = None


def optimise(
    code: Code,
    *,
    gpu: Optional[str] = None,
    kernels: Sequence[str] = (),
    block: Optional[Block] = None,
    dynamic_smem: Optional[int] = None,
    recipe: Optional[str] = None,
    budget: Optional[float] = None,
    emit: str = "cubin",
    nvcc: Sequence[str] = (),
    name: Optional[str] = None,
    use_toolkit: bool = True,
) -> Outcome:
    """Chooses the best build of each kernel, proves it, and gives it back.

    `code` is PTX (text or bytes), a cubin, a path to one of them or to a program, or CUDA C by path or with a `name` that
    ends in `.cu`. `block` is threads per block, `dynamic_smem` bytes per block, where the code does not state them;
    `emit` is "cubin" or "ptx"; `recipe` is carried out in the place of a choice; `budget` is work for each kernel in
    nominal seconds. Raises a `WarpwrightError`.
    """
    if emit not in ("cubin", "ptx"):
        raise _native.UsageError(f"emit is 'cubin' or 'ptx', not {emit!r}")
    data, place = _input(code, name)
    asked = _asked(gpu, kernels, block, dynamic_smem, nvcc, use_toolkit)
    result, document, text = _native.optimise(data, place, asked, (recipe, budget, emit == "ptx"))
    return Outcome(result, document, text)


def optimise_made(
    ptx: str,
    made: bytes,
    ptxas: str,
    ptxas_options: Sequence[str],
    *,
    gpu: Optional[str] = None,
    dynamic_smem: Optional[int] = None,
    budget: Optional[float] = None,
) -> Outcome:
    """The same for PTX that a program has compiled already, with its ptxas and its options.

    Raises an `InputError` if they do not make the code of `made`: then something else differs, too.
    """
    asked = _Asked(gpu, [], None, dynamic_smem, [], True, ptxas, list(ptxas_options), made)
    result, document, text = _native.optimise(ptx.encode(), ("kernel", None), asked, (None, budget, False))
    return Outcome(result, document, text)


def explain(
    code: Code,
    *,
    gpu: Optional[str] = None,
    kernels: Sequence[str] = (),
    block: Optional[Block] = None,
    dynamic_smem: Optional[int] = None,
    nvcc: Sequence[str] = (),
    name: Optional[str] = None,
    use_toolkit: bool = True,
) -> Explained:
    """Resources, occupancy staircase and register pressure of each kernel; the arguments are those of `optimise`."""
    data, place = _input(code, name)
    asked = _asked(gpu, kernels, block, dynamic_smem, nvcc, use_toolkit)
    return Explained(_native.explain(data, place, asked))


def check(
    original: Code,
    rewritten: Code,
    *,
    kernel: Optional[str] = None,
    block: Optional[Block] = None,
    dynamic_smem: Optional[int] = None,
    nvcc: Sequence[str] = (),
) -> Checked:
    """Is `rewritten` a correct version of `original`? Two cubins, or two of PTX and CUDA C."""
    (first, (first_name, first_path)) = _input(original, None)
    (second, (second_name, second_path)) = _input(rewritten, None)
    document = _native.check(
        (first, first_name, first_path),
        (second, second_name, second_path),
        (kernel, _block(block), dynamic_smem, list(nvcc)),
    )
    return Checked(document)


def toolkit() -> Optional[Path]:
    """The ptxas that would be used; `None` without one (`warpwright toolkit install` fetches it)."""
    return _native.toolkit()


def _input(code: Code, name: Optional[str]) -> Tuple[bytes, Tuple[str, Optional[Path]]]:
    if isinstance(code, (bytes, bytearray, memoryview)):
        return bytes(code), (name or "kernel", None)
    # A path is one line; PTX and CUDA C are several.
    if isinstance(code, str) and "\n" in code:
        return code.encode(), (name or "kernel", None)
    path = Path(os.fspath(code))
    try:
        return path.read_bytes(), (name or str(path), path)
    except OSError as error:
        raise _native.InputError(f"cannot read `{path}`: {error.strerror}") from error


def _block(block: Optional[Block]) -> Optional[Tuple[int, int, int]]:
    if block is None:
        return None
    dims = [block] if isinstance(block, int) else list(block)
    if not 1 <= len(dims) <= 3 or not all(isinstance(n, int) and n > 0 for n in dims):
        raise _native.UsageError(f"a block has one to three extents of at least 1, not {block!r}")
    x, y, z = dims + [1] * (3 - len(dims))
    return x, y, z


def _asked(
    gpu: Optional[str],
    kernels: Sequence[str],
    block: Optional[Block],
    dynamic_smem: Optional[int],
    nvcc: Sequence[str],
    use_toolkit: bool,
) -> _Asked:
    named = [kernels] if isinstance(kernels, str) else list(kernels)
    return _Asked(gpu, named, _block(block), dynamic_smem, list(nvcc), use_toolkit)
