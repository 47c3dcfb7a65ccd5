//! The text section itself, its symbols and its relocations.

use std::collections::BTreeMap;

use super::returns::Returns;
use super::{Arrangement, Edit, EditError, Moves, Undo};
use crate::branch::{CodeOperand, target};
use crate::elf::kernel::INSTRUCTION;
use crate::elf::{Elf, ElfError, refused};
use crate::inst::Instruction;
use crate::operation::Operation;

/// Sections of code are whole groups of so many instructions.
const GROUP: usize = 8;
/// The NOP of the padding as ptxas writes it on every architecture.
const PADDING: u128 = 0x000f_c000_0000_0000_0000_0000_0000_7918;

/// Old offsets of instructions whose code offset the linker or driver fills in, with the offset
/// that they name if it is in the same section.
pub(super) type Relocated = BTreeMap<u64, Option<u64>>;

/// The relocations of the text section, as far as they concern code offsets.
pub(super) fn relocated_targets(elf: &Elf, text: usize) -> Result<Relocated, ElfError> {
    let symbols = elf.symbols()?;
    let mut found = Relocated::new();
    for r in elf.relocations_of(text)? {
        let symbol = symbols.get(r.symbol as usize);
        let here = symbol.filter(|s| usize::from(s.section) == text);
        let named = here.map(|s| s.value.wrapping_add_signed(r.addend.unwrap_or(0)));
        let start = r.offset - r.offset % INSTRUCTION as u64;
        found.insert(start, named);
    }
    Ok(found)
}

/// The new code, and where everything went.
pub(super) fn rebuild(
    edit: &Edit,
    old: &[Instruction],
    relocated: &Relocated,
    returns: &Returns,
) -> Result<(Vec<Instruction>, Moves), EditError> {
    let wishes = (edit.before.keys()).chain(edit.after.keys());
    let wishes = wishes.chain(edit.replaced.keys()).chain(&edit.deleted);
    if let Some(at) = wishes.copied().find(|&at| at >= old.len()) {
        return Err(EditError::NoInstruction(at));
    }
    let end = end(old);
    let first_in_padding = |keys: Option<&usize>| keys.is_some_and(|&at| at >= end);
    if first_in_padding(edit.before.keys().next_back())
        || first_in_padding(edit.after.keys().next_back())
        || first_in_padding(edit.deleted.last())
    {
        return Err(EditError::InPadding);
    }
    let mut code = Vec::with_capacity(old.len());
    let mut origin = Vec::with_capacity(old.len());
    let mut moves = Moves {
        places: Vec::with_capacity(old.len()),
        starts: Vec::with_capacity(old.len() + 1),
    };
    let none = Vec::new();
    for (at, &instruction) in old.iter().enumerate().take(end) {
        moves.starts.push((code.len() * INSTRUCTION) as u64);
        let before = edit.before.get(&at).unwrap_or(&none);
        code.extend(before);
        origin.resize(code.len(), None);
        if edit.deleted.contains(&at) {
            moves.places.push(None);
        } else {
            moves.places.push(Some((code.len() * INSTRUCTION) as u64));
            code.push(edit.replaced.get(&at).copied().unwrap_or(instruction));
            origin.push(Some(at));
        }
        code.extend(edit.after.get(&at).unwrap_or(&none));
        origin.resize(code.len(), None);
    }
    finish(code, &origin, moves, old, relocated, returns)
}

/// Where the padding begins.
pub(super) fn end(old: &[Instruction]) -> usize {
    let padding = old.iter().rev();
    let padding = padding.take_while(|i| i.operation() == Operation::NOP);
    old.len() - padding.count()
}

/// The new code of an arrangement, and where everything went.
pub(super) fn arrange(
    arrangement: &Arrangement,
    old: &[Instruction],
    relocated: &Relocated,
    returns: &Returns,
) -> Result<(Vec<Instruction>, Moves), EditError> {
    let end = end(old);
    if arrangement.starts.len() != end {
        return Err(EditError::OtherCode);
    }
    let mut places = vec![None; end];
    for (place, origin) in arrangement.code.iter().map(|op| op.1).enumerate() {
        let Some(at) = origin else { continue };
        let known = places.get_mut(at);
        let free = known.ok_or(EditError::NoInstruction(at))?;
        if free.replace((place * INSTRUCTION) as u64).is_some() {
            return Err(EditError::TwoPlaces(at));
        }
    }
    let starts = arrangement.starts.iter();
    let starts = starts.map(|&place| (place * INSTRUCTION) as u64).collect();
    let (mut code, origin): (Vec<_>, Vec<_>) = arrangement.code.iter().copied().unzip();
    for &(place, target) in &arrangement.jumps {
        let distance = (target as i64 - place as i64 - 1) * INSTRUCTION as i64;
        let moved = code
            .get(place)
            .and_then(|jump| jump.with_distance(distance));
        code[place] = moved.ok_or(EditError::NewOutOfReach(place))?;
    }
    finish(
        code,
        &origin,
        Moves { places, starts },
        old,
        relocated,
        returns,
    )
}

/// Padding and distances.
fn finish(
    mut code: Vec<Instruction>,
    origin: &[Option<usize>],
    mut moves: Moves,
    old: &[Instruction],
    relocated: &Relocated,
    returns: &Returns,
) -> Result<(Vec<Instruction>, Moves), EditError> {
    let end = end(old);
    let filled = code.len().next_multiple_of(GROUP) + (old.len() - end) / GROUP * GROUP;
    let nop = match (old.get(end), old.first()) {
        (Some(&nop), _) => nop,
        (None, Some(any)) => Instruction::new(any.sm(), PADDING),
        (None, None) => return Err(EditError::NoCode),
    };
    for at in end..old.len() {
        let new = (code.len() + at - end).min(filled) * INSTRUCTION;
        moves.starts.push(new as u64);
        moves.places.push(Some(new as u64));
    }
    moves.starts.push((filled * INSTRUCTION) as u64);
    retarget(&mut code, origin, returns, relocated, &moves)?;
    code.resize(filled, nop);
    Ok((code, moves))
}

/// Gives every instruction that came from the old code its new distance or return address.
fn retarget(
    code: &mut [Instruction],
    origin: &[Option<usize>],
    returns: &Returns,
    relocated: &Relocated,
    moves: &Moves,
) -> Result<(), EditError> {
    for (place, origin) in origin.iter().enumerate() {
        let Some(at) = *origin else { continue };
        let instruction = code[place];
        let old = at * INSTRUCTION;
        if let Some(&address) = returns.get(&at) {
            let new = moves.behind(address).and_then(|a| u32::try_from(a).ok());
            let new = new.ok_or(EditError::ReturnOutOfReach(old))?;
            if instruction.loaded_constant() != u32::try_from(address).ok() {
                return Err(EditError::ReturnReplaced(old));
            }
            code[place] = instruction.with_constant(new);
            continue;
        }
        if relocated.contains_key(&(old as u64)) {
            continue;
        }
        match instruction.code_operand() {
            CodeOperand::None => {}
            CodeOperand::Indirect(name) => return Err(EditError::Indirect(name, old)),
            CodeOperand::Relative(distance) | CodeOperand::Table(distance) => {
                let named = target(old, distance).and_then(|t| match instruction.operation() {
                    Operation::LEPC => moves.behind(t),
                    _ => moves.boundary(t),
                });
                let named = named.ok_or(EditError::Leaves(old))?;
                let next = ((place + 1) * INSTRUCTION) as i64;
                let moved = instruction.with_distance(named as i64 - next);
                code[place] = moved.ok_or(EditError::OutOfReach(old))?;
            }
        }
    }
    Ok(())
}

/// Symbols in the section, and sizes, follow.
pub(super) fn move_symbols(
    elf: &mut Elf,
    text: usize,
    moves: &Moves,
    undo: &mut Undo,
) -> Result<(), ElfError> {
    let mut symbols = elf.symbols()?;
    for symbol in symbols
        .iter_mut()
        .filter(|s| usize::from(s.section) == text)
    {
        let value = moves.boundary(symbol.value);
        let size = moves.stretch(symbol.value, symbol.size);
        let (Some(value), Some(size)) = (value, size) else {
            return Err(refused(format!(
                "symbol {} lies outside its section",
                symbol.name
            )));
        };
        (symbol.value, symbol.size) = (value, size);
    }
    if let Some(table) = elf.symbol_table() {
        undo.take(elf, table);
        elf.set_symbols(&symbols)?;
    }
    Ok(())
}

/// Relocations of the section, and those of other sections that name a place inside it.
pub(super) fn move_relocations(
    elf: &mut Elf,
    text: usize,
    code: &[Instruction],
    moves: &Moves,
    undo: &mut Undo,
) -> Result<(), ElfError> {
    // A call returns to what was inserted behind it.
    let returns_to = |named: u64| {
        let call = (named as usize / INSTRUCTION).checked_sub(1);
        call.and_then(|call| code.get(call))
            .is_some_and(|call| call.is_call())
    };
    let symbols = elf.symbols()?;
    for i in 0..elf.sections.len() {
        if !elf.sections[i].is_relocations() {
            continue;
        }
        let name = elf.sections[i].name.clone();
        let inside = elf.sections[i].info as usize == text;
        let mut relocations = elf.relocations(i)?;
        let old = relocations.clone();
        for r in &mut relocations {
            if inside {
                let moved = moves.instruction(r.offset);
                r.offset =
                    moved.ok_or_else(|| refused(format!("{name} needs a deleted instruction")))?;
            }
            let symbol = symbols.get(r.symbol as usize);
            let here = symbol.filter(|s| usize::from(s.section) == text);
            if let (Some(symbol), Some(addend)) = (here, &mut r.addend) {
                let named = symbol.value.checked_add_signed(*addend);
                let named = named.unwrap_or(u64::MAX);
                let to = match inside && returns_to(named) {
                    true => moves.behind(named),
                    false => moves.boundary(named),
                };
                let (Some(from), Some(to)) = (moves.boundary(symbol.value), to) else {
                    return Err(refused(format!("{name} names a place outside the code")));
                };
                *addend = to as i64 - from as i64;
            }
        }
        if relocations != old {
            undo.take(elf, i);
            elf.set_relocations(i, &relocations)?;
        }
    }
    Ok(())
}
