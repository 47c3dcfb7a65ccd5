"""A kernel against its rewritten version, or against a function of tensors: `check` with `inputs`."""

import json
import math
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _native
from ._results import Compared

Extents = Union[int, Sequence[int]]

# From the best verdict to the worst.
WORDS = (
    "proved",
    "proved-at-launches",
    "equal-but-for-nans",
    "equal-up-to-rounding",
    "tested",
    "refuted",
    "wrong-input",
)
_TYPES = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "int8": "s8", "int16": "s16", "int32": "s32", "int64": "s64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip
# Bits of a significand, less those that long sums may lose.
_CLOSE = {"f16": 2.0**-6, "bf16": 2.0**-4, "f32": 2.0**-13, "f64": 2.0**-40}


@dataclass(frozen=True)
class Launch:
    """A kernel and its launch.

    `code` is PTX, CUDA C or a path to either. `args` are its parameters in order: the name of an input, of an output or
    of scratch memory, or a scalar as `(value, type)` with a type like "s32" or "f32". `scratch` are the arrays that
    only this side has: their contents are what it begins with.
    """

    code: Any
    kernel: str
    grid: Extents
    block: Extents
    args: Sequence[Union[str, Tuple[Union[int, float], str]]]
    dynamic_smem: int = 0
    scratch: Mapping[str, Any] = field(default_factory=dict)


Side = Union[Launch, Sequence[Launch]]


def compare(
    reference: Union[Side, Callable[..., Any]],
    candidate: Side,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    *,
    accept: str,
    fixed: Sequence[str],
    nvcc: Sequence[str],
    read: Callable[[Any], Any],
) -> Compared:
    """What `check` does where inputs are given."""
    acceptable = WORDS[: WORDS.index("tested") + 1]
    if accept not in acceptable:
        raise _native.UsageError(f"accept is one of {', '.join(acceptable)}, not {accept!r}")
    if not outputs:
        raise _native.UsageError("outputs: name each array that is written, with one of its shape and type")
    arrays = _Arrays(inputs, outputs)
    second = arrays.side("candidate", candidate, read)
    if callable(reference) and not isinstance(reference, Launch):
        return Compared(json.dumps(_tested(reference, arrays, second, fixed, nvcc)), accept)
    first = arrays.side("reference", reference, read)
    return Compared(_native.check_launched(first, second, (list(fixed), list(nvcc))), accept)


def _launches(side: Any, what: str) -> List[Launch]:
    launches = [side] if isinstance(side, Launch) else list(side)
    if not launches or not all(isinstance(launch, Launch) for launch in launches):
        raise TypeError(f"{what} is a warpwright.Launch, or several in order")
    if any(launch.code is not launches[0].code for launch in launches):
        raise _native.UsageError(f"the launches of {what} are of one code: put its kernels into one")
    return launches


class _Arrays:
    """Inputs and outputs as launch descriptions and bytes; what is both is changed in place."""

    def __init__(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        self.inputs = dict(inputs)
        self.outputs = {name: _array(name, value) for name, value in outputs.items()}
        self.given = {name: _array(name, value) for name, value in inputs.items()}

    def side(self, what: str, side: Any, read: Callable[[Any], Any]) -> Any:
        launches = _launches(side, what)
        files: Dict[str, bytes] = {}
        texts = [self._description(launch, files) for launch in launches]
        return read(launches[0].code), texts, files

    def _description(self, launch: Launch, files: Dict[str, bytes]) -> str:
        grid, block = _extents("grid", launch.grid), _extents("block", launch.block)
        text = f"kernel = {json.dumps(launch.kernel)}\n[sizes.given]\n[launch]\n"
        text += f"grid = {grid}\nblock = {block}\ndynamic_smem = {int(launch.dynamic_smem)}\n"
        scratch = {name: _array(name, value) for name, value in dict(launch.scratch).items()}
        for at, arg in enumerate(launch.args):
            text += "[[args]]\n"
            if not isinstance(arg, str):
                value, ty = arg
                text += f'name = "arg{at}"\ntype = {json.dumps(ty)}\nvalue = {_number(value)}\n'
                continue
            array = scratch.get(arg) or self.given.get(arg) or self.outputs.get(arg)
            if array is None:
                raise _native.UsageError(f"{launch.kernel}: no input, output or scratch memory is called {arg!r}")
            ty, shape, content = array
            text += f"name = {json.dumps(arg)}\ntype = {json.dumps(ty)}\nshape = {shape}\n"
            if arg in self.outputs and arg not in scratch:
                text += "output = true\n"
                if arg not in self.given:
                    continue
            files[arg] = content()
            text += f'init = {{ kind = "file", path = {json.dumps(arg + ".bin")} }}\n'
        return text


def _number(value: Any) -> str:
    number = float(value)
    if not math.isfinite(number):
        raise _native.UsageError(f"a scalar is a finite number, not {value}")
    return repr(int(value)) if float(value).is_integer() and not isinstance(value, float) else repr(number)


def _extents(what: str, extents: Extents) -> List[int]:
    found = [extents] if isinstance(extents, int) else [int(extent) for extent in extents]
    if not 1 <= len(found) <= 3 or any(extent < 1 for extent in found):
        raise _native.UsageError(f"{what} is one to three numbers from 1 on, not {extents}")
    return found


def _array(name: str, value: Any) -> Tuple[str, List[int], Callable[[], bytes]]:
    """An array or tensor as type, shape, and a function that gives its bytes."""
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        raise TypeError(f"{name} is an array or a tensor, not {type(value).__name__}")
    ty = _TYPES.get(str(value.dtype).split(".")[-1])
    if ty is None:
        raise TypeError(f"{name}: no launch has elements of {value.dtype}")
    return ty, [int(extent) for extent in value.shape], lambda: _bytes(value)


def _bytes(value: Any) -> bytes:
    if hasattr(value, "detach"):
        value = value.detach().cpu().contiguous()
        if str(value.dtype) == "torch.bfloat16":
            import torch

            value = value.view(torch.int16)
        value = value.numpy()
    return bytes(value.tobytes())


# ---- a function of tensors


def _tested(
    function: Callable[..., Any], arrays: _Arrays, candidate: Any, fixed: Sequence[str], nvcc: Sequence[str]
) -> Dict[str, Any]:
    """A function is called: what it computes for every input nobody can tell. The candidate itself is run on terms, so
    that its races, its accesses and what it leaves unset do not depend on the inputs."""
    document: Dict[str, Any] = json.loads(
        _native.check_launched(candidate, candidate, (list(fixed), list(nvcc)))
    )
    document["original"] = getattr(function, "__name__", "a function")
    launch = document["launches"][0]
    if document["verdict"] in ("refuted", "wrong-input"):
        document["verdict"] = launch["verdict"] = "refuted"
        for reason in launch["why"]:
            reason["text"] = reason["text"].replace("the original", "the rewritten kernel")
        return document
    launch["why"] = []
    code, texts, files = candidate
    for number, filled in enumerate(_fillings(arrays.inputs)):
        expected = function(**filled)
        if not isinstance(expected, Mapping):
            several = expected if isinstance(expected, (tuple, list)) else [expected]
            expected = dict(zip(arrays.outputs, several))
        own = {name: _bytes(filled[name]) if name in filled else content for name, content in files.items()}
        try:
            found = dict(_native.run_launched((code, texts, own), list(nvcc)))
            reason = _difference(number, arrays, expected, found)
        except _native.InputError as fault:
            reason = str(fault)
        if reason is not None:
            document["verdict"] = launch["verdict"] = "refuted"
            launch["why"] = [{"code": "shown", "text": reason}]
            return document
    document["verdict"] = launch["verdict"] = "tested"
    text = f"the outputs agree with the function's, within rounding, on {number + 1} fillings of the inputs"
    launch["why"] = [{"code": "agrees", "text": text}]
    return document


def _fillings(inputs: Mapping[str, Any]) -> Any:
    """The inputs as given, then others of their shapes: of either sign, negative, whole, all the same."""
    import random

    yield inputs
    draws: List[Callable[[random.Random], float]] = [
        lambda rng: rng.uniform(-1.0, 1.0),
        lambda rng: rng.uniform(-9.0, -1.0),
        lambda rng: float(rng.randint(-8, 8)),
        lambda rng: 0.5,
    ]
    for seed, draw in enumerate(draws):
        rng = random.Random(seed)
        yield {name: _redrawn(value, lambda: draw(rng)) for name, value in inputs.items()}


def _redrawn(value: Any, draw: Callable[[], float]) -> Any:
    """Another array of the same kind; integers may be indices, and stay."""
    if "float" not in str(value.dtype):
        return value
    count = math.prod(int(extent) for extent in value.shape)
    if hasattr(value, "detach"):
        import torch

        return torch.tensor([draw() for _ in range(count)], dtype=value.dtype).reshape(value.shape)
    import numpy

    return numpy.array([draw() for _ in range(count)], dtype=value.dtype).reshape(value.shape)


def _difference(number: int, arrays: _Arrays, expected: Mapping[str, Any], found: Mapping[str, bytes]) -> Optional[str]:
    import numpy

    for name, (ty, shape, _) in arrays.outputs.items():
        if name not in expected:
            raise _native.UsageError(f"the function gives back no {name}")
        value = expected[name]
        own, size, _ = _array(name, value)
        if (own, size) != (ty, shape):
            raise _native.UsageError(f"{name}: the function gives {own} {size}, outputs say {ty} {shape}")
        if ty == "bf16":
            # The upper half of a single.
            halves = (numpy.frombuffer(side, numpy.uint16) for side in (_bytes(value), found[name]))
            x, y = ((half.astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64) for half in halves)
        else:
            kind = {"f": "float", "s": "int", "u": "uint"}[ty[0]] + ty[1:]
            x, y = (numpy.frombuffer(side, kind).astype(numpy.float64) for side in (_bytes(value), found[name]))
        most = numpy.abs(x[numpy.isfinite(x)]).max(initial=0.0)
        agrees = (x == y) | (numpy.isnan(x) & numpy.isnan(y)) | (numpy.abs(x - y) <= most * _CLOSE.get(ty, 0.0))
        if not agrees.all():
            at = int(numpy.argmin(agrees))
            which = "the inputs as given" if number == 0 else f"filling {number} of the inputs"
            return f"with {which}, `{name}[{at}]` is {y[at]} in place of {x[at]}"
    return None
