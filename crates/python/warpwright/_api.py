"""The three things that the library does, for bytes, text and paths."""

import math
import numbers
import operator
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Literal, Mapping, Optional, Sequence, Tuple, Union

from . import _native
from ._results import Checked, Compared, Explained, Outcome
from ._rewrites import compare

Code = Union[bytes, bytearray, memoryview, str, "os.PathLike[str]"]
Block = Union[int, Sequence[int]]

# A child has none of the threads that work in its parent: a fork waits for the calls of other threads.
os.register_at_fork(
    before=_native.before_fork, after_in_parent=_native.after_fork, after_in_child=_native.after_fork
)


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
    kernels: Union[str, Sequence[str]] = (),
    block: Optional[Block] = None,
    dynamic_smem: Optional[int] = None,
    recipe: Optional[str] = None,
    budget: Optional[float] = None,
    emit: Literal["cubin", "ptx"] = "cubin",
    nvcc: Sequence[str] = (),
    name: Optional[str] = None,
    use_toolkit: bool = True,
) -> Outcome:
    """Chooses the best build of each kernel, proves it, and gives it back.

    `code` is PTX or CUDA C (text or bytes), a cubin, or a path to one of them or to a program; `name` is what code in no
    file is called. `block` is threads per block, `dynamic_smem` bytes per block, where the code does not state them;
    `emit` is "cubin" or "ptx"; `recipe` is carried out in the place of a choice; `budget` is work for each kernel in
    nominal seconds; `nvcc` are its arguments. Raises a `WarpwrightError`.
    """
    if emit not in ("cubin", "ptx"):
        raise _native.UsageError(f"emit is 'cubin' or 'ptx', not {emit!r}")
    given = _input("code", code, name)
    asked = _asked(gpu, kernels, block, dynamic_smem, nvcc, use_toolkit)
    how = (_text("recipe", recipe), seconds(budget), emit == "ptx")
    return Outcome(*_native.optimise(given, asked, how), given, asked)


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
    given = (ptx.encode(), "kernel", None)
    return Outcome(*_native.optimise(given, asked, (None, budget, False)), given, asked)


def explain(
    code: Code,
    *,
    gpu: Optional[str] = None,
    kernels: Union[str, Sequence[str]] = (),
    block: Optional[Block] = None,
    dynamic_smem: Optional[int] = None,
    nvcc: Sequence[str] = (),
    name: Optional[str] = None,
    use_toolkit: bool = True,
) -> Explained:
    """Resources, occupancy staircase and register pressure of each kernel; the arguments are those of `optimise`."""
    given = _input("code", code, name)
    asked = _asked(gpu, kernels, block, dynamic_smem, nvcc, use_toolkit)
    return Explained(_native.explain(given, asked))


def check(
    original: Any,
    rewritten: Any,
    *,
    inputs: Optional[Mapping[str, Any]] = None,
    outputs: Optional[Mapping[str, Any]] = None,
    accept: str = "proved-at-launches",
    fixed: Sequence[str] = (),
    kernel: Optional[str] = None,
    block: Optional[Block] = None,
    dynamic_smem: Optional[int] = None,
    nvcc: Sequence[str] = (),
    name: Optional[str] = None,
) -> Union[Checked, Compared]:
    """Is `rewritten` a correct version of `original`? Two cubins, or two of PTX and CUDA C.

    Two builds of ptxas are not compared, so an outcome with another register limit than its input is undecided here:
    what `optimise` proves is each rewrite of its own, against what stood before it.

    With `inputs` and `outputs` (arrays or tensors by name; of an output shape and type count), each is a `Launch`, or
    several in order, launched in its own way: the verdict holds for every input of these shapes. The original may be a
    function of the inputs, called by name: then the verdict is "tested" at best. The result is true where the verdict
    is `accept` or better. No GPU is needed.
    """
    if inputs is not None or outputs is not None:
        read = lambda code: _input("code", code, name)  # noqa: E731
        how: Any = {"accept": accept, "fixed": fixed, "nvcc": _texts("nvcc", nvcc), "read": read}
        return compare(original, rewritten, inputs or {}, outputs or {}, **how)
    first, second = _input("original", original, name), _input("rewritten", rewritten, name)
    how = (_text("kernel", kernel), _block(block), _bytes(dynamic_smem), _texts("nvcc", nvcc))
    return Checked(_native.check(first, second, how))


def toolkit() -> Optional[Path]:
    """The ptxas that would be used; `None` without one (`warpwright toolkit install` fetches it)."""
    return _native.toolkit()


def seconds(budget: Any) -> Optional[float]:
    """A budget that is one."""
    if budget is None:
        return None
    if not isinstance(budget, numbers.Real):
        raise TypeError(f"budget is a number of seconds, not {type(budget).__name__}")
    number = float(budget)
    if not math.isfinite(number) or number <= 0:
        raise _native.UsageError(f"budget is more than 0 seconds, not {number}")
    return number


def known_gpu(gpu: Any) -> Optional[str]:
    """The name of a GPU that is known."""
    name = _text("gpu", gpu)
    if name is not None:
        _native.known_gpu(name)
    return name


def _input(what: str, code: Any, name: Any) -> "_native.Code":
    name = _text("name", name)
    if isinstance(code, str) and ("\n" in code or ("{" in code and not os.path.exists(code))):
        # A path is one line without braces; PTX and CUDA C are not.
        code = code.encode()
    if isinstance(code, (bytes, bytearray, memoryview)):
        data = bytes(code)
        # CUDA C shows by nothing at its begin, and is told by names elsewhere.
        is_cuda = b"__global__" in data and b".version" not in data and data[:4] != b"\x7fELF"
        return data, name or ("kernel.cu" if is_cuda else "kernel"), None
    try:
        path = Path(os.fsdecode(code))
    except TypeError:
        raise TypeError(f"{what} is bytes, text or a path, not {type(code).__name__}") from None
    if not code:
        raise _native.InputError(f"{what} is empty")
    try:
        return path.read_bytes(), name or str(path), path
    except (OSError, ValueError) as error:
        shown = str(path) if len(str(path)) <= _SHOWN else f"{str(path)[:_SHOWN]}…"
        reason = getattr(error, "strerror", None) or str(error)
        raise _native.InputError(f"cannot read `{shown}`: {reason}") from error


# Characters of a path in a message.
_SHOWN = 200


def _text(what: str, value: Any) -> Optional[str]:
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"{what} is a str, not {type(value).__name__}")


def _texts(what: str, value: Any) -> List[str]:
    texts = [value] if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__") else list(value)
    if texts == [value] or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{what} is a sequence of str, not {value!r}")
    return texts


def _whole(what: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{what}, not {type(value).__name__}") from None


def _bytes(dynamic_smem: Any) -> Optional[int]:
    if dynamic_smem is None:
        return None
    number = _whole("dynamic_smem is an int", dynamic_smem)
    if not 0 <= number < 1 << 32:
        raise _native.UsageError(f"dynamic_smem is from 0 bytes on, not {number}")
    return number


def _block(block: Any) -> Optional[Tuple[int, int, int]]:
    if block is None:
        return None
    what = "block is an int or one to three of them"
    is_one = isinstance(block, (str, bytes)) or not hasattr(block, "__iter__")
    dims = [_whole(what, extent) for extent in ([block] if is_one else block)]
    if not 1 <= len(dims) <= 3 or not all(0 < extent < 1 << 32 for extent in dims):
        raise _native.UsageError(f"block has one to three extents of at least 1, not {block!r}")
    x, y, z = dims + [1] * (3 - len(dims))
    return x, y, z


def _asked(
    gpu: Any, kernels: Any, block: Any, dynamic_smem: Any, nvcc: Any, use_toolkit: Any
) -> _Asked:
    named = [kernels] if isinstance(kernels, str) else _texts("kernels", kernels)
    return _Asked(
        _text("gpu", gpu), named, _block(block), _bytes(dynamic_smem), _texts("nvcc", nvcc), bool(use_toolkit)
    )
