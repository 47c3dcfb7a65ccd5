"""What comes back, as objects; in a notebook the page that the command line writes with `--report`."""

import contextlib
import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Generic, Iterator, List, Optional, Tuple, TypeVar, Union

from . import _native

# Kernels that a page explains at length, as the command line's does.
_EXPLAINED = 8

Block = Tuple[int, int, int]


def _spills(resources: Dict[str, Any]) -> int:
    return int(resources["spill_store_bytes"]) + int(resources["spill_load_bytes"])


@dataclass(frozen=True)
class Candidate:
    """One way to build a kernel. Times are relative to the default build; less is faster."""

    recipe: str
    registers: Optional[int]
    spill_bytes: Optional[int]
    shared_bytes: Optional[int]
    blocks: Optional[int]
    warps: Optional[int]
    predicted: Optional[float]
    measured: Optional[float]
    rejected: Optional[str]
    same_code_as: Optional[str]

    @classmethod
    def _of(cls, raw: Dict[str, Any]) -> "Candidate":
        resources = raw.get("resources") or {}
        residency = raw.get("residency") or {}
        rejected = raw.get("rejected")
        return cls(
            recipe=raw["recipe"],
            registers=resources.get("registers"),
            spill_bytes=_spills(resources) if resources else None,
            shared_bytes=resources.get("shared_bytes"),
            blocks=residency.get("blocks"),
            warps=residency.get("warps"),
            predicted=(raw.get("score") or {}).get("relative_time"),
            measured=(raw.get("measured") or {}).get("relative_time"),
            rejected=rejected if rejected is None else str(rejected),
            same_code_as=raw.get("same_code_as"),
        )

    @property
    def time(self) -> Optional[float]:
        """Measured if it was, else predicted."""
        return self.predicted if self.measured is None else self.measured


@dataclass(frozen=True, repr=False)
class Kernel:
    """What was found for one kernel."""

    symbol: str
    name: str
    block: Block
    dynamic_smem: int
    candidates: Tuple[Candidate, ...]
    chosen: Candidate
    is_kept: bool
    reason: str
    notes: Tuple[str, ...]

    @classmethod
    def _of(cls, raw: Dict[str, Any]) -> "Kernel":
        x, y, z = raw["block"]
        candidates = tuple(Candidate._of(candidate) for candidate in raw["candidates"])
        return cls(
            symbol=raw["name"],
            name=_native.source_name(raw["name"]),
            block=(x, y, z),
            dynamic_smem=raw["dynamic_smem"],
            candidates=candidates,
            chosen=candidates[raw["chosen"]],
            # Of a recipe that was named, the first candidate is what it made.
            is_kept=raw["chosen"] == 0 and candidates[0].recipe == "default",
            reason=raw["reason"],
            notes=(*raw["notes"], *raw.get("promises", ())),
        )

    @property
    def default(self) -> Candidate:
        """The build as it was."""
        return self.candidates[0]

    @property
    def speedup(self) -> Optional[float]:
        """How many times as fast as the default build; 1 where it is kept."""
        if self.is_kept:
            return 1.0
        return None if not self.chosen.time else 1.0 / self.chosen.time

    def __repr__(self) -> str:
        gain = f", {self.speedup:.2f} times as fast" if self.speedup and not self.is_kept else ""
        return f"<{self.name}: {self.chosen.recipe}{gain}: {self.reason}>"


@dataclass(frozen=True, repr=False)
class Explanation:
    """What limits a kernel. `bound` is what its predicted time consists of (`latency`, `issue` or `traffic`), `lines` are
    source lines and their parts of a warp's cycles, `pressure` is by instruction, in 32-bit registers."""

    symbol: str
    name: str
    block: Block
    registers: int
    spill_bytes: int
    shared_bytes: int
    blocks: Optional[int]
    warps: Optional[int]
    limiters: Tuple[str, ...]
    estimated: bool
    registers_for_one_more_block: Optional[int]
    bound: Optional[str]
    lines: Tuple[Tuple[str, float], ...]
    pressure: Tuple[int, ...]

    @classmethod
    def _of(cls, raw: Dict[str, Any]) -> "Explanation":
        x, y, z = raw["block"]
        resources = raw["resources"]
        residency = raw.get("residency") or {}
        places = (raw.get("causes") or {}).get("places", ())
        return cls(
            symbol=raw["kernel"],
            name=_native.source_name(raw["kernel"]),
            block=(x, y, z),
            registers=resources["registers"],
            spill_bytes=_spills(resources),
            shared_bytes=resources["shared_bytes"],
            blocks=residency.get("blocks"),
            warps=residency.get("warps"),
            limiters=tuple(residency.get("limiters", ())),
            estimated=raw["estimated"],
            registers_for_one_more_block=raw["registers_for_one_more_block"],
            bound=(raw.get("cycles") or {}).get("bound"),
            lines=tuple((place["line"], place["share"]) for place in places if place["line"]),
            pressure=tuple((raw.get("pressure") or {}).get("curve", ())),
        )

    def __repr__(self) -> str:
        threads = "×".join(str(extent) for extent in self.block if extent > 1) or "1"
        lines = [f"{self.name}, {threads} threads per block"]
        about = " (estimated: no ptxas)" if self.estimated else ""
        spills = f"{self.spill_bytes} B spills" if self.spill_bytes else "no spills"
        lines.append(f"  {self.registers} registers, {spills}, {self.shared_bytes} B shared{about}")
        if self.blocks is not None:
            limiters = " and ".join(self.limiters)
            blocks = "1 block" if self.blocks == 1 else f"{self.blocks} blocks"
            lines.append(f"  {blocks}, {self.warps} warps on an SM, limited by {limiters}")
        if self.bound is not None:
            lines.append(f"  time bound by {self.bound} (predicted)")
        most = ", ".join(f"{line} {100 * share:.0f}%" for line, share in self.lines[:3])
        if most:
            lines.append(f"  where a warp's cycles go: {most}")
        if self.pressure:
            lines.append(f"  register pressure: {max(self.pressure)} at its peak")
        return "\n".join(lines)


@dataclass(frozen=True)
class Verdict:
    """On one function: `proved`, `refuted` or `undecided`, and why."""

    symbol: str
    verdict: str
    text: str

    @property
    def name(self) -> str:
        """As the source has it."""
        return _native.source_name(self.symbol)


Item = TypeVar("Item", Kernel, Explanation, Verdict)


class _Document(Generic[Item]):
    """A document of the command line, and its items by symbol or by name in the source."""

    def __init__(self, document: str, items: List[Item]) -> None:
        self._text = document
        self._items: List[Item] = items

    def to_dict(self) -> Dict[str, Any]:
        """What the command line prints with `--json`, but for stencils, which it alone reads."""
        found: Dict[str, Any] = json.loads(self._text)
        return found

    def to_html(self) -> str:
        """The self-contained page that the command line writes with `--report`."""
        return _native.page(self._text)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __getitem__(self, key: Union[int, str]) -> Item:
        if isinstance(key, int):
            return self._items[key]
        for item in self._items:
            if key in (item.symbol, item.name, item.name.split("(")[0]):
                return item
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return key in self._items
        try:
            return self[key] is not None
        except KeyError:
            return False

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self._text)

    def _repr_html_(self) -> str:
        # In a frame of its own: the page's styles stay in it, and its script sees nothing else.
        page = html.escape(self.to_html(), quote=True)
        style = "width:100%;height:40rem;border:1px solid #8884;border-radius:6px"
        return f'<iframe sandbox="allow-scripts" title="Warpwright" style="{style}" srcdoc="{page}"></iframe>'


class Outcome(_Document[Kernel]):
    """What `optimise` gives back: `code`, and its kernels, by index or name."""

    def __init__(
        self,
        code: bytes,
        document: str,
        text: str,
        given: Optional["_native.Code"] = None,
        asked: Optional["_native.Asked"] = None,
    ) -> None:
        raw = json.loads(document)
        super().__init__(document, [Kernel._of(kernel) for kernel in raw["kernels"]])
        self.code = code
        self.gpu: str = raw["gpu"]
        self.ptxas: Optional[str] = raw["ptxas"]
        # What the command line says to do next is for the command line.
        self._screen = text.split("\n  next  ")[0]
        # For the page: what the build that was there is like, and the call that makes it.
        self._given = given
        self._asked = asked

    @property
    def kernels(self) -> Tuple[Kernel, ...]:
        """All of them."""
        return tuple(self._items)

    @property
    def is_changed(self) -> bool:
        """Was anything better than what there is?"""
        return any(not kernel.is_kept for kernel in self._items)

    def save(self, path: Union[str, Path]) -> None:
        """Writes `code`."""
        Path(path).write_bytes(self.code)

    def to_html(self) -> str:
        """The self-contained page that the command line writes with `--report`."""
        document = self.to_dict()
        document["python"] = {"code": "code", "how": ""}
        if self._given is not None and self._asked is not None:
            document["python"] = _call(self._given, self._asked)
            if len(self) <= _EXPLAINED:
                with contextlib.suppress(_native.WarpwrightError):
                    explained = json.loads(_native.explain(self._given, self._asked))
                    document["explained"] = explained["kernels"]
        return _native.page(json.dumps(document))

    def __repr__(self) -> str:
        return f"{self._screen}\n  next    `code` has it, save(path) writes it, to_html() is the page"


def _call(given: "_native.Code", asked: "_native.Asked") -> Dict[str, str]:
    """The arguments of the call that was made: its code, and how."""
    _, name, path = given
    how = {
        "gpu": asked.gpu,
        "block": asked.block,
        "dynamic_smem": asked.dynamic_smem,
        "nvcc": asked.nvcc or None,
        "name": name if path is None and name != "kernel" else None,
        "use_toolkit": None if asked.use_toolkit else False,
    }
    words = [f", {what}={value!r}" for what, value in how.items() if value is not None]
    return {"code": "code" if path is None else repr(str(path)), "how": "".join(words)}


class Explained(_Document[Explanation]):
    """What `explain` gives back: its kernels, by index or name."""

    def __init__(self, document: str) -> None:
        raw = json.loads(document)
        super().__init__(document, [Explanation._of(kernel) for kernel in raw["kernels"]])
        self.gpu: str = raw["gpu"]

    @property
    def kernels(self) -> Tuple[Explanation, ...]:
        """All of them."""
        return tuple(self._items)

    def __repr__(self) -> str:
        return "\n".join(repr(kernel) for kernel in self._items)


class Checked(_Document[Verdict]):
    """What `check` gives back; true only if every function is proved."""

    def __init__(self, document: str) -> None:
        raw = json.loads(document)
        found = raw["functions"]
        super().__init__(document, [Verdict(f["name"], f["verdict"], f["text"]) for f in found])
        self.verdict: str = raw["verdict"]

    def __bool__(self) -> bool:
        return self.verdict == "proved"

    def __repr__(self) -> str:
        return "\n".join(f"{f.name}: {f.text}" for f in self._items)


class Compared(_Document[Verdict]):
    """What `check` with inputs gives back; true only if its verdict is the accepted one or better."""

    def __init__(self, document: str, accept: str) -> None:
        raw = json.loads(document)
        words = ["proved", "proved-at-launches", "equal-but-for-nans", "equal-up-to-rounding", "tested"]
        launches = raw["launches"]
        texts = ["; ".join(reason["text"] for reason in launch["why"]) for launch in launches]
        found = [Verdict(f["size"], f["verdict"], text) for f, text in zip(launches, texts)]
        super().__init__(document, found)
        self.verdict: str = raw["verdict"]
        self._is_accepted = self.verdict in words[: words.index(accept) + 1]

    def __bool__(self) -> bool:
        return self._is_accepted

    def __repr__(self) -> str:
        return "\n".join([self.verdict, *(f.text for f in self._items if f.text)])
