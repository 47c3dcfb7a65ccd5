//! The instruction offsets in `.nv.info.KERNEL`.

use super::Moves;
use crate::elf::info::{Attribute, Record, Value};
use crate::elf::{Elf, ElfError, KernelSections, refused};

/// Attributes that are lists of instruction offsets.
const LISTS: [Attribute; 12] = [
    Attribute::EXIT_INSTR_OFFSETS,
    Attribute::S2RCTAID_INSTR_OFFSETS,
    Attribute::LD_CACHEMOD_INSTR_OFFSETS,
    Attribute::ATOM_SYS_INSTR_OFFSETS,
    Attribute::COOP_GROUP_INSTR_OFFSETS,
    Attribute::ATOMF16_EMUL_INSTR_OFFSETS,
    Attribute::INT_WARP_WIDE_INSTR_OFFSETS,
    Attribute::SYSCALL_OFFSETS,
    Attribute::STACK_CANARY_TRAP_OFFSETS,
    Attribute::LOCAL_CTA_ASYNC_STORE_OFFSETS,
    Attribute::IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS,
    Attribute::INSTR_OFFSETS,
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

pub(super) fn follow(
    elf: &mut Elf,
    kernel: &KernelSections,
    moves: &Moves,
) -> Result<(), ElfError> {
    let Some(section) = kernel.info else {
        return Ok(());
    };
    let name = elf.sections[section].name.clone();
    let mut info = elf.info(&name)?.unwrap_or_default();
    for record in &mut info.records {
        move_record(record, moves).map_err(|why| refused(format!("{name}: {why}")))?;
    }
    elf.set_info(&name, &info)
}

fn move_record(record: &mut Record, moves: &Moves) -> Result<(), String> {
    let attribute = record.attribute;
    let name = || match attribute.name() {
        Some(name) => format!("EIATTR_{name}"),
        None => format!("attribute {:#x}", attribute.0),
    };
    if !matches!(record.value, Value::Sized(_)) || HARMLESS.contains(&attribute) {
        return Ok(());
    }
    let words = record.words();
    let offsets: Vec<usize> = if LISTS.contains(&attribute) {
        (0..words.len()).collect()
    } else if attribute == Attribute::ATOM16_EMUL_INSTR_REG_MAP {
        // Pairs of offset and register.
        (0..words.len()).step_by(2).collect()
    } else if attribute == Attribute::ANNOTATIONS {
        let known = words
            .chunks(2)
            .all(|pair| pair.len() == 2 && pair[0] == OFFSET_ANNOTATION);
        if !known {
            return Err(format!("{} of an unknown kind", name()));
        }
        (1..words.len()).step_by(2).collect()
    } else {
        return Err(format!("{} is not understood", name()));
    };
    for i in offsets {
        let moved = moves.instruction(u64::from(words[i]));
        let moved = moved.and_then(|at| u32::try_from(at).ok());
        let moved = moved.ok_or_else(|| format!("{} names a deleted instruction", name()))?;
        record.set_word(i, moved);
    }
    Ok(())
}
