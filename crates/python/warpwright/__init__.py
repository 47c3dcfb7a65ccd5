"""Faster CUDA kernels after the compiler.

PTX, a cubin or CUDA C goes in; the better build comes out, with the reasons. What leaves is proved, or it does not leave.

>>> import warpwright
>>> ptx = '''.version 8.5
... .target sm_90
... .address_size 64
... .visible .entry k(.param .u64 p)
... {
...     .reg .b32 %r<2>;
...     .reg .b64 %d;
...     ld.param.u64 %d, [p];
...     mov.u32 %r1, %tid.x;
...     st.global.u32 [%d], %r1;
...     ret;
... }
... '''
>>> found = warpwright.explain(ptx, block=256, use_toolkit=False)
>>> found["k"].registers, found["k"].warps
(16, 64)
>>> outcome = warpwright.optimise(ptx, gpu="h200", block=256, emit="ptx", use_toolkit=False)
>>> outcome["k"].is_kept
True
>>> warpwright.check(ptx, outcome.code, block=256).verdict
'proved'
"""

from ._api import check, explain, optimise, toolkit
from ._kernels import optimised
from ._native import (
    InputError,
    InternalError,
    MissingToolError,
    UndecidedError,
    UsageError,
    WarpwrightError,
    __version__,
)
from ._results import Candidate, Checked, Compared, Explained, Explanation, Kernel, Outcome, Verdict
from ._rewrites import Launch
from ._trace import Launches, Trace, trace

__all__ = [
    "Candidate",
    "Checked",
    "Compared",
    "Explained",
    "Explanation",
    "InputError",
    "InternalError",
    "Kernel",
    "Launch",
    "Launches",
    "MissingToolError",
    "Outcome",
    "Trace",
    "UndecidedError",
    "UsageError",
    "Verdict",
    "WarpwrightError",
    "__version__",
    "check",
    "explain",
    "optimise",
    "optimised",
    "toolkit",
    "trace",
]
