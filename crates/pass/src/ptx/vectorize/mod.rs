//! `vectorize`: neighbouring loads and stores of a thread as one of two or four elements.
//!
//! Goal: fewer instructions for the same bytes, and whole sectors at once, where a thread reads members of a structure or,
//! behind `unroll`, neighbouring elements. Yang et al. (PLDI 2010, section 3.1) vectorise accesses in the source, pairs of
//! neighbours; here it is done to finished PTX.
//!
//! Method: within a block, addresses are a register's value and a constant (`addresses`). Accesses by one opcode and under
//! one guard that lie side by side become one: a load where the first of them stands, a store where the last one does.
//! The address must be a multiple of the whole: that follows from what it is made of (`congruence`), and of pointers among
//! the parameters, whose alignment the guard asks for.
//!
//! Departures: elements of 8 and 16 bits are left to nvcc, and so are accesses across blocks; nothing that writes memory may
//! stand between loads, and nothing that touches global memory between stores.
//!
//! Requires a kernel whose opcodes are all known. Preserves every value and what each thread reads and writes, at launches
//! that meet the guard. A block's accesses by volatile, ordered or asynchronous instructions keep their text.

mod addresses;
mod congruence;

use std::collections::BTreeSet;

use warpwright_diag::count;
use warpwright_flow::Cfg;
use warpwright_launch::{Field, Guard, Quantity};
use warpwright_ptx::opcode::{Control, Op, SpaceSet};
use warpwright_ptx::{Edits, Inst, Opcode, Operand, Reg, Space, Type, View};

use crate::pass::{Fuel, Outcome, Pass, Rewritten, Work};
use crate::ptx::facts::view;
use crate::ptx::specialize::guard_text;
use crate::refusal::Refusal;
use crate::site::Site;
use addresses::{Addresses, Place};
use congruence::Congruences;

/// The pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vectorize {
    /// Bytes of one access at most.
    pub bytes: u32,
}

/// Bytes of the widest access.
const MOST_BYTES: u32 = 16;

crate::options!(Vectorize: [];
    [bytes: u32 = MOST_BYTES, "bytes of an access at most: 8 or 16"]);

impl Pass for Vectorize {
    const NAME: &'static str = "vectorize";
    const ABOUT: &'static str = "join neighbouring loads and stores of a thread";

    fn work(&self) -> Work<Self> {
        Work::Ptx(vectorize)
    }
}

fn vectorize(pass: &Vectorize, site: &Site, fuel: &mut Fuel) -> Outcome<String> {
    if !matches!(pass.bytes, 8 | 16) {
        return Err(Refusal::InTheWay("accesses have 8 or 16 bytes at most"));
    }
    let view = view(site.module, site.kernel)?;
    let cfg = Cfg::new(&view);
    let congruences = Congruences::new(&view, &cfg);
    let mut edits = Edits::new(site.module);
    let mut guard = Guard::always();
    let (mut made, mut joined) = (0, 0);
    for block in cfg.blocks() {
        let insts: Vec<Inst> = cfg.insts(block).map(|at| Inst::from_u32(at.0)).collect();
        let addresses = Addresses::new(&view, &insts);
        for group in groups(&view, &insts, &addresses) {
            for vector in vectors(pass, &view, &group, &congruences) {
                if !fuel.burn() {
                    continue;
                }
                vector.write(site, &view, &mut edits)?;
                made += 1;
                joined += vector.accesses.len();
                for &pointer in &vector.pointers {
                    guard = guard.multiple(Quantity::Param(pointer), vector.bytes().into());
                }
            }
        }
    }
    if joined == 0 && fuel.left() > 0 {
        return Err(Refusal::NothingToDo(
            "neighbouring accesses that may be one",
        ));
    }
    let text = edits.apply()?;
    let note = format!("{} of {}", count(made, "vector"), count(joined, "element"));
    Ok(Rewritten::new(text).note(note).under(guard))
}

/// A load or store of one element of 32 or 64 bits.
#[derive(Clone, Copy)]
struct Access {
    inst: Inst,
    place: Place,
    /// What is loaded or stored.
    value: Reg,
}

/// Accesses that may stand where the first (of loads) or the last one (of stores) does.
struct Group {
    is_load: bool,
    bytes: u32,
    accesses: Vec<Access>,
}

/// The element of a global access that can be one of a vector.
fn element(view: &View<'_>, inst: Inst) -> Option<(bool, u32, Reg)> {
    let body = view.body();
    let opcode = view.module().opcode(&body.insts[inst]);
    let is_plain = opcode.space == Some(Space::Global)
        && opcode.vector.is_none()
        && !opcode.mods().any(is_ordered);
    let &[ty] = opcode.types.as_slice() else {
        return None;
    };
    let (is_load, value) = match (opcode.op, body.operands(inst)) {
        (Some(Op::Ld), [Operand::Reg(value), Operand::Mem(_)]) => (true, *value),
        (Some(Op::St), [Operand::Mem(_), Operand::Reg(value)]) => (false, *value),
        _ => return None,
    };
    let fits = matches!(ty.bytes(), 4 | 8) && body.reg_type(value).bits() == ty.bits();
    (is_plain && fits).then_some((is_load, ty.bytes(), value))
}

fn is_ordered(modifier: &str) -> bool {
    const ORDERED: [&str; 9] = [
        "volatile", "relaxed", "acquire", "release", "mmio", "async", "bulk", "cv", "lu",
    ];
    ORDERED.contains(&modifier) || modifier == "L2::cache_hint"
}

/// Does an instruction come between accesses of global memory: between loads what may write it, between stores what may
/// touch it at all?
fn comes_between(opcode: &Opcode, is_load: bool) -> bool {
    let effect = opcode.effect();
    let orders = effect.convergent
        || effect.barrier
        || effect.fence
        || effect.acquire
        || effect.release
        || effect.strong
        || effect.is_async
        || effect.other;
    let is_global = |spaces: SpaceSet| spaces.overlaps(SpaceSet::GLOBAL);
    opcode.control() != Control::Next
        || orders
        || is_global(effect.writes)
        || (!is_load && is_global(effect.reads))
}

/// The accesses of a block that can be moved together.
fn groups(view: &View<'_>, insts: &[Inst], addresses: &Addresses) -> Vec<Group> {
    let body = view.body();
    let mut done: Vec<Group> = Vec::new();
    let mut open: Vec<Group> = Vec::new();
    for &inst in insts {
        let own = element(view, inst).zip(addresses.place(inst));
        let opcode = view.module().opcode(&body.insts[inst]);
        let joins = |group: &Group| {
            let ((is_load, bytes, _), place) = own?;
            let first = group.accesses.first()?;
            let data = [first.inst, inst].map(|inst| &body.insts[inst]);
            let is_like = group.is_load == is_load
                && group.bytes == bytes
                && view.module().opcode(data[0]).text == opcode.text
                && data[0].guard == data[1].guard
                && first.place.root == place.root;
            let mut others = group.accesses.iter();
            let overlaps =
                others.any(|access| access.place.offset.abs_diff(place.offset) < u64::from(bytes));
            (is_like && !overlaps).then_some(())
        };
        let joined = open.iter().position(|group| joins(group).is_some());
        let mut kept = Vec::new();
        for (number, group) in open.into_iter().enumerate() {
            let ends = comes_between(opcode, group.is_load) && joined != Some(number);
            let is_changed = writes_what_it_needs(view, &group, inst) && joined != Some(number);
            match ends || is_changed {
                true => done.push(group),
                false => kept.push((number, group)),
            }
        }
        open = Vec::new();
        for (number, mut group) in kept {
            if let (true, Some(((_, _, value), place))) = (joined == Some(number), own) {
                group.accesses.push(Access { inst, place, value });
            }
            open.push(group);
        }
        if let (None, Some(((is_load, bytes, value), place))) = (joined, own) {
            open.push(Group {
                is_load,
                bytes,
                accesses: vec![Access { inst, place, value }],
            });
        }
    }
    done.extend(open);
    done
}

/// Can a load's result be there from an earlier instruction on: is its register left alone between?
fn is_free(view: &View<'_>, from: Inst, access: &Access) -> bool {
    let touches = |inst: Inst| {
        let guard = view.body().insts[inst].guard;
        view.defs(inst).contains(&access.value)
            || view.uses(inst).contains(&access.value)
            || guard.is_some_and(|guard| guard.reg == access.value)
    };
    let mut between = (from.as_u32()..access.inst.as_u32()).map(Inst::from_u32);
    !between.any(touches)
}

/// Does an instruction write the guard of a group, or what its stores still have to store?
fn writes_what_it_needs(view: &View<'_>, group: &Group, inst: Inst) -> bool {
    let written: BTreeSet<Reg> = view.defs(inst).into_iter().collect();
    let guard = group
        .accesses
        .first()
        .and_then(|access| view.body().insts[access.inst].guard);
    let is_stored = |access: &Access| !group.is_load && written.contains(&access.value);
    guard.is_some_and(|guard| written.contains(&guard.reg)) || group.accesses.iter().any(is_stored)
}

/// Accesses that become one, the lowest first.
struct Vector {
    is_load: bool,
    element: u32,
    accesses: Vec<Access>,
    /// Where it stands.
    at: Inst,
    /// Pointers whose alignment is asked for.
    pointers: Vec<Field>,
}

impl Vector {
    fn bytes(&self) -> u32 {
        self.element * self.accesses.len() as u32
    }

    /// Loads whose registers are in use before them get there by a move from a new one.
    fn write(&self, site: &Site, view: &View<'_>, edits: &mut Edits<'_>) -> Result<(), Refusal> {
        let body = view.body();
        let here = self.accesses.iter().find(|access| access.inst == self.at);
        let Some((here, first)) = here.zip(self.accesses.first()) else {
            return Ok(());
        };
        let mut names = Vec::new();
        let mut moves = Vec::new();
        for access in &self.accesses {
            let own = body.reg_name(access.value).to_string();
            if !self.is_load || is_free(view, self.at, access) {
                names.push(own);
                continue;
            }
            let bits = 8 * self.element;
            let ty = if bits == 32 { Type::B32 } else { Type::B64 };
            let new = edits.fresh_name("%dv");
            edits.add_register(site.kernel, ty, &new)?;
            let prefix = guard_text(view, access.inst);
            moves.push((access.inst, format!("{prefix}mov.b{bits} {own}, {new};")));
            names.push(new);
        }
        let lanes = format!("{{{}}}", names.join(", "));
        let offset = here.place.written + first.place.offset - here.place.offset;
        let base = body.reg_name(here.place.base);
        let address = match offset {
            0 => format!("[{base}]"),
            offset => format!("[{base}+{offset}]"),
        };
        let opcode = &view.module().opcode(&body.insts[self.at]).text;
        let opcode = match opcode.rsplit_once('.') {
            Some((start, ty)) => format!("{start}.v{}.{ty}", names.len()),
            None => return Ok(()),
        };
        let prefix = guard_text(view, self.at);
        let line = match self.is_load {
            true => format!("{prefix}{opcode} {lanes}, {address};"),
            false => format!("{prefix}{opcode} {address}, {lanes};"),
        };
        for access in &self.accesses {
            let moved = moves.iter().find(|(inst, _)| *inst == access.inst);
            let here = (access.inst == self.at).then_some(&line);
            let lines: Vec<String> = (here.into_iter().cloned())
                .chain(moved.map(|(_, text)| text.clone()))
                .collect();
            match lines.is_empty() {
                true => edits.delete_inst(site.kernel, access.inst),
                false => edits.replace_by_lines(site.kernel, access.inst, &lines),
            }
        }
        Ok(())
    }
}

/// The vectors of a group, widest first.
fn vectors(
    pass: &Vectorize,
    view: &View<'_>,
    group: &Group,
    congruences: &Congruences,
) -> Vec<Vector> {
    let mut left: Vec<Access> = group.accesses.clone();
    left.sort_by_key(|access| access.place.offset);
    let mut found = Vec::new();
    for lanes in [4, 2] {
        let bytes = lanes * group.bytes;
        if bytes > pass.bytes {
            continue;
        }
        let mut from = 0;
        while from + lanes as usize <= left.len() {
            let run = &left[from..from + lanes as usize];
            let is_dense = run
                .windows(2)
                .all(|pair| pair[1].place.offset - pair[0].place.offset == i64::from(group.bytes));
            let aligned = is_dense
                .then(|| aligned(view, &run[0], bytes, congruences))
                .flatten();
            let Some(pointers) = aligned else {
                from += 1;
                continue;
            };
            let accesses: Vec<Access> = left.drain(from..from + lanes as usize).collect();
            let places = accesses.iter().map(|access| access.inst);
            let at = if group.is_load {
                places.min()
            } else {
                places.max()
            };
            found.extend(at.map(|at| Vector {
                is_load: group.is_load,
                element: group.bytes,
                accesses,
                at,
                pointers,
            }));
        }
    }
    found
}

/// The pointers that must be multiples of so many bytes for an access to be at one.
fn aligned(
    view: &View<'_>,
    access: &Access,
    bytes: u32,
    congruences: &Congruences,
) -> Option<Vec<Field>> {
    let of = congruences.before(view, access.inst, access.place.base)?;
    let step = u64::from(bytes);
    let rest = of.rest.wrapping_add_signed(access.place.written);
    (of.modulus() >= step && rest % step == 0).then(|| of.pointers.iter().copied().collect())
}
