//! Spill code: the text of loads, stores and slot addresses in shared or local memory.
//!
//! Goal: what it takes in PTX to keep a register in memory for a while. *Which* register, where and
//! in which slot is decided elsewhere. Accesses are untyped (`.b16`, `.b32`, `.b64`), which every
//! register type of that size takes (PTX ISA, 'Operand Size Exceeding Instruction-Type Size' and
//! 'Type Checking'), and carry their offset themselves, so one base register serves all slots of a
//! kernel in shared memory. Local memory needs none: each thread sees its own copy at the variable's
//! name. (CRAT's Listing 4 holds that address in a register; PTX has had `[variable+offset]` since.)

use crate::ir::{Body, Reg};
use crate::types::{Space, Type, TypeKind};

/// Can a register be stored and loaded by one access of its own size? Not predicates, opaque
/// references, vector declarations and sizes that an untyped access of up to 64 bits does not have.
pub fn is_spillable(body: &Body, reg: Reg) -> bool {
    let data = &body.regs[reg];
    let is_value = !matches!(data.ty.kind(), TypeKind::Opaque | TypeKind::Predicate);
    is_value && body.reg_decls[data.decl].vector <= 1 && matches!(data.ty.bits(), 16 | 32 | 64)
}

/// `[base+offset]`
fn address(base: &str, offset: u32) -> String {
    match offset {
        0 => format!("[{base}]"),
        _ => format!("[{base}+{offset}]"),
    }
}

/// Loads a register of `bits` bits from a slot: `base` is a register or a variable.
pub fn load(space: Space, bits: u32, register: &str, base: &str, offset: u32) -> String {
    format!(
        "ld.{}.b{bits} {register}, {};",
        space.text(),
        address(base, offset)
    )
}

/// Stores a register of `bits` bits to a slot.
pub fn store(space: Space, bits: u32, register: &str, base: &str, offset: u32) -> String {
    format!(
        "st.{}.b{bits} {}, {register};",
        space.text(),
        address(base, offset)
    )
}

/// Registers of type `.b32` that [`bases`] needs beside its results.
pub const SCRATCH: usize = 2;

/// The type of a base address in shared memory.
pub const ADDRESS: Type = Type::B32;

/// Computes base addresses in the shared variable `area`: one for each register of `bases`, at
/// `area` + stride · T, where T is the thread's number in its block (Eq. 3 of You & Tsai, 2011).
///
/// With the block's exact size (`.reqntid`) T needs no more than the indices that vary. Otherwise
/// only the number of threads is bounded and not their shape, and T is computed from `%ntid`.
pub fn bases(
    area: &str,
    block: Option<[u32; 3]>,
    scratch: [&str; SCRATCH],
    bases: &[(&str, u32)],
) -> Vec<String> {
    let Some((any, _)) = bases.first() else {
        return Vec::new();
    };
    let [thread, other] = scratch;
    let mut lines = thread_number(block, thread, other, any);
    lines.push(format!("mov.u32 {other}, {area};"));
    for (base, stride) in bases {
        lines.push(format!("mad.lo.u32 {base}, {thread}, {stride}, {other};"));
    }
    lines
}

/// T = tid.x + ntid.x · (tid.y + ntid.y · tid.z) in `thread`, with two more registers.
fn thread_number(block: Option<[u32; 3]>, thread: &str, size: &str, index: &str) -> Vec<String> {
    let [_, y, z] = block.unwrap_or([2; 3]);
    let outermost = match (y, z) {
        (_, 2..) => 2,
        (2.., _) => 1,
        _ => 0,
    };
    let names = ["x", "y", "z"];
    let mut lines = vec![format!("mov.u32 {thread}, %tid.{};", names[outermost])];
    for dim in (0..outermost).rev() {
        let name = names[dim];
        lines.push(format!("mov.u32 {index}, %tid.{name};"));
        let factor = match block {
            Some(block) => block[dim].to_string(),
            None => {
                lines.push(format!("mov.u32 {size}, %ntid.{name};"));
                size.to_owned()
            }
        };
        lines.push(format!("mad.lo.u32 {thread}, {thread}, {factor}, {index};"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_number_reads_no_index_that_does_not_vary() {
        let lines = |block| bases("spill", block, ["%t", "%u"], &[("%b", 4)]).join("\n");
        assert_eq!(
            lines(Some([64, 1, 1])),
            "mov.u32 %t, %tid.x;\nmov.u32 %u, spill;\nmad.lo.u32 %b, %t, 4, %u;"
        );
        assert_eq!(
            lines(Some([16, 4, 1])),
            "mov.u32 %t, %tid.y;\nmov.u32 %b, %tid.x;\nmad.lo.u32 %t, %t, 16, %b;\n\
             mov.u32 %u, spill;\nmad.lo.u32 %b, %t, 4, %u;"
        );
        assert!(lines(None).contains("mov.u32 %u, %ntid.y;\nmad.lo.u32 %t, %t, %u, %b;"));
    }

    #[test]
    fn accesses_carry_their_offsets() {
        assert_eq!(
            load(Space::Shared, 32, "%r1", "%b", 0),
            "ld.shared.b32 %r1, [%b];"
        );
        assert_eq!(
            store(Space::Local, 64, "%rd1", "stack", 16),
            "st.local.b64 [stack+16], %rd1;"
        );
    }
}
