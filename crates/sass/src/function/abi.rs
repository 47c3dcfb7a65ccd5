//! The calling convention of device functions, for calls whose other side cannot be seen.
//!
//! As nvdisasm 13.5 models CALL and RET in its life ranges, and as ptxas 13.0 and 13.5 use it:
//! R1 is the stack pointer. R0 and R3 to R15, from R32 on the first four of every eight registers, the
//! predicates, UR4 to UR35 and the uniform predicates are the callee's to overwrite; all others
//! are preserved. Arguments and results begin at R4. nvdisasm counts neither arguments nor
//! results as used; we do, wherever code is to be changed.

use super::Calls;
use crate::roles::{File, Role, Span};

const fn span(role: Role, file: File, first: u16, last: u16) -> Span {
    Span {
        role,
        file,
        first,
        count: last + 1 - first,
        bit: 0,
    }
}

/// The stack pointer.
pub const STACK: [Span; 1] = [span(Role::Use, File::Gpr, 1, 1)];

/// What `__assertfail` reads: the stack, and its parameters (message, file, line, function, size of a character).
pub const ASSERT_USES: [Span; 3] = [
    span(Role::Use, File::Gpr, 1, 1),
    span(Role::Use, File::Gpr, 4, 8),
    span(Role::Use, File::Gpr, 10, 13),
];

/// Groups of four from R32 on that belong to the callee; each is followed by four that it preserves.
const GROUPS: usize = 28;

/// Registers that a callee may overwrite.
pub const CALL_DEFS: [Span; 5 + GROUPS] = {
    let mut spans = [span(Role::Def, File::Gpr, 0, 0); 5 + GROUPS];
    spans[1] = span(Role::Def, File::Gpr, 3, 15);
    spans[2] = span(Role::Def, File::Pred, 0, 6);
    spans[3] = span(Role::Def, File::Uniform, 4, 35);
    spans[4] = span(Role::Def, File::UniformPred, 0, 6);
    let mut group = 0;
    while group < GROUPS {
        let first = 32 + 8 * group as u16;
        spans[5 + group] = span(Role::Def, File::Gpr, first, first + 3);
        group += 1;
    }
    spans
};

const CALL_USES: [Span; 1] = [span(Role::Use, File::Gpr, 0, 15)];
const CALL_USES_AS_NVDISASM: [Span; 1] = [span(Role::Use, File::Gpr, 0, 1)];

const RETURN_USES: [Span; 3] = [
    span(Role::Use, File::Gpr, 1, 2),
    span(Role::Use, File::Gpr, 4, 254),
    span(Role::Use, File::Uniform, 36, 254),
];
const RETURN_USES_AS_NVDISASM: [Span; 2 + GROUPS] = {
    let mut spans = [span(Role::Use, File::Gpr, 1, 2); 2 + GROUPS];
    spans[1] = span(Role::Use, File::Gpr, 16, 31);
    let mut group = 0;
    while group < GROUPS {
        let first = 36 + 8 * group as u16;
        // R255 is RZ.
        let last = if first + 3 > 254 { 254 } else { first + 3 };
        spans[2 + group] = span(Role::Use, File::Gpr, first, last);
        group += 1;
    }
    spans
};

/// Registers that a callee may read.
pub fn call_uses(view: Calls) -> &'static [Span] {
    match view {
        Calls::AsNvdisasm => &CALL_USES_AS_NVDISASM,
        Calls::Followed => &CALL_USES,
    }
}

/// Registers whose content the caller may read after the return.
pub fn return_uses(view: Calls) -> &'static [Span] {
    match view {
        Calls::AsNvdisasm => &RETURN_USES_AS_NVDISASM,
        Calls::Followed => &RETURN_USES,
    }
}
