"""Which kernels programs launch, and where their GPU time goes."""

import contextlib
import datetime
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from . import _native

File = Union[str, "os.PathLike[str]"]

_LIBRARY = "libwarpwright_inject.so"


@dataclass(frozen=True)
class Launches:
    """Launches of one kernel with one block, dynamic shared memory and order of grid; `seconds` on the GPU."""

    symbol: str
    name: str
    grid: Tuple[int, int, int]
    block: Tuple[int, int, int]
    dynamic_smem: int
    count: int
    seconds: float
    share: float
    registers: Optional[int]
    spill_bytes: Optional[int]
    hint: str


class Trace:
    """What was launched; empty until the `with` block ends."""

    def __init__(self) -> None:
        self._document: Dict[str, Any] = {}
        self.launches: Tuple[Launches, ...] = ()

    def _read(self, folder: Path) -> None:
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._document = json.loads(_native.read_trace(folder, [], date))
        self.launches = tuple(
            Launches(
                symbol=raw["kernel"],
                name=raw["name"],
                grid=tuple(raw["grid"]),
                block=tuple(raw["block"]),
                dynamic_smem=raw["dynamic_smem"],
                count=raw["launches"] + raw["in_graphs"],
                seconds=raw["gpu_ns"] * 1e-9,
                share=raw["share"],
                registers=raw["registers"],
                spill_bytes=raw["spill_bytes"],
                hint=raw["hint"],
            )
            for raw in self._document["launches"]
        )

    def to_dict(self) -> Dict[str, Any]:
        """The document of `warpwright trace --json`."""
        return self._document

    def save(self, path: File) -> None:
        """Writes it for `--trace` of the command line."""
        Path(path).write_text(json.dumps(self._document, indent=2))

    def __iter__(self) -> Iterator[Launches]:
        return iter(self.launches)

    def __len__(self) -> int:
        return len(self.launches)

    def __repr__(self) -> str:
        if not self.launches:
            return "<no launch was seen>"
        rows = [f"{l.seconds * 1e3:10.3f} ms {l.share:6.1%} {l.count:8} {l.name}: {l.hint}" for l in self.launches]
        return "\n".join(rows)


@contextlib.contextmanager
def trace(library: Optional[File] = None) -> Iterator[Trace]:
    """Traces the programs that are started inside the block (`subprocess`, `multiprocessing` with "spawn").

    This process itself is not: the library has to be there when a process starts. Python itself can be started
    by `warpwright trace -- python …`. `library` is `libwarpwright_inject.so`; without it, WARPWRIGHT_INJECT and the
    wheel are looked at.

    >>> import subprocess, sys, warpwright
    >>> with warpwright.trace() as seen:  # doctest: +SKIP
    ...     subprocess.run([sys.executable, "train.py"], check=True)
    >>> print(seen)  # doctest: +SKIP
    """
    found = _library(library)
    seen = Trace()
    with tempfile.TemporaryDirectory(prefix="warpwright-") as folder:
        preload = os.environ.get("LD_PRELOAD")
        changes = {
            "LD_PRELOAD": f"{found}:{preload}" if preload else str(found),
            "WARPWRIGHT": "trace",
            "WARPWRIGHT_DIR": folder,
            "WARPWRIGHT_LOG": os.environ.get("WARPWRIGHT_LOG", os.path.join(folder, "log")),
        }
        before = {name: os.environ.get(name) for name in changes}
        os.environ.update(changes)
        try:
            yield seen
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
            seen._read(Path(folder))


def _library(named: Optional[File]) -> Path:
    places: List[Path] = []
    if named is not None:
        places = [Path(named)]
    elif os.environ.get("WARPWRIGHT_INJECT"):
        places = [Path(os.environ["WARPWRIGHT_INJECT"])]
    else:
        places = [Path(__file__).parent / "lib" / _LIBRARY]
    for place in places:
        if place.is_file():
            path = place.resolve()
            if " " in str(path) or ":" in str(path):
                raise _native.InputError(f"`{path}`: a path with a blank or a colon cannot be preloaded")
            return path
    raise _native.MissingToolError(f"{_LIBRARY} is not at {places[0]} (WARPWRIGHT_INJECT names another place)")
