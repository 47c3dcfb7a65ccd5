//! The instruction offsets in `.nv.info.KERNEL`.
//!
//! Most attributes are lists of offsets; some are lists of records that begin with one ([`LAYOUTS`]).
//! Layouts were read off cuobjdump's printing and held against the corpus (ptxas 13.0 and 13.5): every
//! word taken for an offset names an instruction of the kind that the attribute is about.

use std::collections::BTreeSet;

use super::{EditError, Moves, Undo};
use crate::elf::info::{Attribute, Info, Record, Value, branch_entries};
use crate::elf::kernel::INSTRUCTION;
use crate::elf::{Elf, ElfError, KernelSections, refused, unedited};

/// Attributes that are lists of records: words in a record, and which of them are offsets.
const LAYOUTS: [(Attribute, usize, &[usize]); 17] = [
    (Attribute::EXIT_INSTR_OFFSETS, 1, &[0]),
    (Attribute::S2RCTAID_INSTR_OFFSETS, 1, &[0]),
    (Attribute::LD_CACHEMOD_INSTR_OFFSETS, 1, &[0]),
    (Attribute::ATOM_SYS_INSTR_OFFSETS, 1, &[0]),
    (Attribute::COOP_GROUP_INSTR_OFFSETS, 1, &[0]),
    (Attribute::ATOMF16_EMUL_INSTR_OFFSETS, 1, &[0]),
    (Attribute::INT_WARP_WIDE_INSTR_OFFSETS, 1, &[0]),
    (Attribute::SYSCALL_OFFSETS, 1, &[0]),
    (Attribute::STACK_CANARY_TRAP_OFFSETS, 1, &[0]),
    (Attribute::LOCAL_CTA_ASYNC_STORE_OFFSETS, 1, &[0]),
    (Attribute::IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS, 1, &[0]),
    (Attribute::INSTR_OFFSETS, 1, &[0]),
    // Offset and register.
    (Attribute::ATOM16_EMUL_INSTR_REG_MAP, 2, &[0]),
    // Offset of a load (LDS, LDG), and a mask of its bytes.
    (Attribute::UNUSED_LOAD_BYTE_OFFSET, 2, &[0]),
    // Offset, registers, mask.
    (Attribute::INSTR_REG_MAP, 3, &[0]),
    // Offset, base register, its offset, kind of instruction with a uniform base register.
    (Attribute::MBARRIER_INSTR_OFFSETS, 4, &[0]),
    // Kind, and an offset: see OFFSET_ANNOTATION.
    (Attribute::ANNOTATIONS, 2, &[1]),
];

/// Attributes with a sized value that has nothing to do with offsets of instructions.
const HARMLESS: [Attribute; 20] = [
    Attribute::MAX_THREADS,
    Attribute::PARAM_CBANK,
    Attribute::EXTERNS,
    Attribute::REQNTID,
    Attribute::KPARAM_INFO,
    Attribute::KPARAM_INFO_V2,
    Attribute::CRS_STACK_SIZE,
    Attribute::COOP_GROUP_MASK_REGIDS,
    Attribute::SW_WAR,
    Attribute::CUDA_API_VERSION,
    Attribute::CTA_PER_CLUSTER,
    Attribute::MAX_CLUSTER_RANK,
    Attribute::NUM_MBARRIERS,
    Attribute::RESERVED_SMEM_0_SIZE,
    Attribute::BINDLESS_IMAGE_OFFSETS,
    Attribute::SAM_REGION_STACK_SIZE,
    Attribute::LANGUAGE,
    Attribute::CUDA_REQ,
    Attribute::SHARED_SCRATCH,
    Attribute::MIN_PER_CTA_MEMORY_SIZE,
];

/// The kind of annotation that is followed by one instruction offset.
const OFFSET_ANNOTATION: u32 = 1;

/// Which words of a record are offsets of instructions, as far as its layout is known.
pub(crate) fn offsets(record: &Record) -> Vec<usize> {
    let words = record.words();
    if record.attribute == Attribute::INDIRECT_BRANCH_TARGETS {
        let entries = branch_entries(&words).unwrap_or_default();
        let places = entries.into_iter();
        return places
            .flat_map(|e| std::iter::once(e.branch).chain(e.targets))
            .collect();
    }
    let layout = LAYOUTS.iter().find(|layout| layout.0 == record.attribute);
    let Some(&(_, size, inside)) = layout.filter(|layout| words.len().is_multiple_of(layout.1))
    else {
        return Vec::new();
    };
    let is_offset =
        |at: usize| record.attribute != Attribute::ANNOTATIONS || words[at] == OFFSET_ANNOTATION;
    let records = (0..words.len()).step_by(size).filter(|&at| is_offset(at));
    records
        .flat_map(|at| inside.iter().map(move |place| at + place))
        .collect()
}

pub(super) fn follow(
    elf: &mut Elf,
    kernel: &KernelSections,
    moves: &Moves,
    undo: &mut Undo,
) -> Result<(), ElfError> {
    let Some(section) = kernel.info else {
        return Ok(());
    };
    let name = elf.sections[section].name.clone();
    let mut info = Info::parse(&elf.sections[section].data)?;
    for record in &mut info.records {
        move_record(record, moves).map_err(|why| unedited(&name, why))?;
    }
    undo.replace(elf, section, info.write()?);
    Ok(())
}

/// Attributes that name registers of the instructions that they list.
const NAMING: [Attribute; 4] = [
    Attribute::COOP_GROUP_INSTR_OFFSETS,
    Attribute::ATOM16_EMUL_INSTR_REG_MAP,
    Attribute::INSTR_REG_MAP,
    Attribute::MBARRIER_INSTR_OFFSETS,
];

/// Refuses other registers in instructions whose registers an attribute names.
pub(super) fn allow_renaming(
    elf: &Elf,
    kernel: &KernelSections,
    renamed: &BTreeSet<usize>,
) -> Result<(), ElfError> {
    let Some(section) = kernel.info.filter(|_| !renamed.is_empty()) else {
        return Ok(());
    };
    let info = Info::parse(&elf.sections[section].data)?;
    for record in info
        .records
        .iter()
        .filter(|r| NAMING.contains(&r.attribute))
    {
        let layout = LAYOUTS.iter().find(|layout| layout.0 == record.attribute);
        let words = record.words();
        let mut listed = words.chunks(layout.map_or(1, |layout| layout.1));
        if listed.any(|r| renamed.contains(&(r[0] as usize / INSTRUCTION))) {
            let name = record.attribute.name().unwrap_or_default();
            return Err(refused(format!(
                "{}: EIATTR_{name} names the registers of a renamed instruction",
                kernel.name
            )));
        }
    }
    Ok(())
}

fn move_record(record: &mut Record, moves: &Moves) -> Result<(), EditError> {
    let attribute = record.attribute;
    if !matches!(record.value, Value::Sized(_)) || HARMLESS.contains(&attribute) {
        return Ok(());
    }
    if attribute == Attribute::INDIRECT_BRANCH_TARGETS {
        return move_targets(record, moves);
    }
    let words = record.words();
    let layout = LAYOUTS.iter().find(|layout| layout.0 == attribute);
    let Some(&(_, size, inside)) = layout else {
        return Err(EditError::Attribute(attribute));
    };
    let whole =
        matches!(&record.value, Value::Sized(bytes) if bytes.len().is_multiple_of(4 * size));
    if !whole {
        return Err(EditError::Layout(attribute));
    }
    let unknown = |pair: &[u32]| pair[0] != OFFSET_ANNOTATION;
    if attribute == Attribute::ANNOTATIONS && words.chunks(size).any(unknown) {
        return Err(EditError::Kind(attribute));
    }
    let records = (0..words.len()).step_by(size);
    let offsets = records.flat_map(|record| inside.iter().map(move |at| record + at));
    for i in offsets {
        let moved = moves.instruction(u64::from(words[i]));
        let moved = moved.and_then(|at| u32::try_from(at).ok());
        let moved = moved.ok_or(EditError::Deleted(attribute))?;
        record.set_word(i, moved);
    }
    Ok(())
}

fn move_targets(record: &mut Record, moves: &Moves) -> Result<(), EditError> {
    let words = record.words();
    let attribute = record.attribute;
    let entries = branch_entries(&words).ok_or(EditError::Layout(attribute))?;
    for entry in entries {
        let branch = moves.instruction(u64::from(words[entry.branch]));
        let branch = branch.ok_or(EditError::Deleted(attribute))?;
        record.set_word(entry.branch, branch as u32);
        for i in entry.targets {
            let target = moves.boundary(u64::from(words[i]));
            let target = target.ok_or(EditError::Nowhere(attribute))?;
            record.set_word(i, target as u32);
        }
    }
    Ok(())
}
