//! Winners of the store in the place of what ptxas made.
//!
//! A winner is one kernel in a cubin of its own, for launches of one class, and ptxas does not know how its code
//! will be launched. So a winner stands in only where none of that can matter: the module has this kernel and
//! nothing else, all winners for it on the GPU are the same code, and that code asks no more of a launch than the
//! original does (block size, shared memory).

use std::collections::BTreeSet;

use warpwright_launch::Quantity;
use warpwright_pass::names::source_name;
use warpwright_sass::{Cubin, Elf, ElfError, Kernel};
use warpwright_target::{UnknownGpu, lookup};
use warpwright_winners::fit::{Original, Unfit};
use warpwright_winners::{StoreError, Winner, identities};

use crate::Better;
use crate::messages::Facts;
use crate::policy::Settings;

/// Why no winner was looked for.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// There is no place for a store.
    #[error("there is no store of winners (HOME and WARPWRIGHT_DB are not set)")]
    Nowhere,
    /// The store has none at all.
    #[error("no winner is recorded in `{}` yet (`warpwright tune` does; WARPWRIGHT_PTXAS=safe predicts)", .0.display())]
    Empty(std::path::PathBuf),
    /// The store has none for these kernels, on the GPU that is named.
    #[error("no winner is recorded for it")]
    Unknown,
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What ptxas wrote, or what was recorded.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// The GPU's name.
    #[error("{0}")]
    Gpu(#[from] UnknownGpu),
    /// There is a winner, and it does not fit.
    #[error("a winner is recorded, but {0}")]
    Unfit(&'static str),
    /// Its cubin is not what a build may hold.
    #[error("a winner is recorded, but {0}")]
    Cubin(#[from] Unfit),
}

/// The winner for the one kernel of a cubin.
///
/// # Errors
/// Why it is not used.
pub fn better(settings: &Settings, cubin: &[u8]) -> Result<Better, RecordedError> {
    let winners = settings.winners().ok_or(RecordedError::Nowhere)?;
    let known = winners.index()?;
    if known.is_empty() {
        return Err(RecordedError::Empty(winners.folder().to_owned()));
    }
    let found = identities(cubin)?;
    let mut recorded = found.iter().filter(|k| !known.of(&k.digest).is_empty());
    let Some(kernel) = recorded.next() else {
        return Err(RecordedError::Unknown);
    };
    if found.len() != 1 {
        return Err(RecordedError::Unfit("the module has other kernels, too"));
    }
    let named = settings.gpu.as_deref().map(lookup).transpose()?;
    let is_meant = |winner: &Winner| match &named {
        Some(gpu) => lookup(&winner.gpu).is_ok_and(|own| own == *gpu),
        None => true,
    };
    let all = winners.of(&known, &kernel.digest).into_iter();
    let all: Vec<Winner> = all.filter(is_meant).collect();
    let gpus: BTreeSet<&str> = all.iter().map(|w| w.gpu.as_str()).collect();
    let codes: BTreeSet<&[u8]> = all.iter().map(|w| w.cubin.as_slice()).collect();
    let Some(winner) = all.first() else {
        return Err(RecordedError::Unknown);
    };
    if gpus.len() > 1 {
        return Err(RecordedError::Unfit(
            "on several GPUs; WARPWRIGHT_GPU names one",
        ));
    }
    if codes.len() > 1 {
        return Err(RecordedError::Unfit("another one for other launches"));
    }
    if !is_for_all_values(winner) {
        return Err(RecordedError::Unfit("it is right for some launches alone"));
    }
    let (old, new) = (Cubin::parse(cubin)?, Cubin::parse(&winner.cubin)?);
    let (Some(before), Some(after)) = (old.kernel(&kernel.name), new.kernel(&winner.symbol)) else {
        return Err(RecordedError::Unfit("its kernel is not in it"));
    };
    if old.sm != new.sm {
        return Err(RecordedError::Unfit("it is for another architecture"));
    }
    if winner.symbol != kernel.name {
        return Err(RecordedError::Unfit("its kernel has another name"));
    }
    asks_no_more(before, after)?;
    Original::new(cubin)?.fits(&kernel.name, winner)?;
    if has_variables(cubin)? {
        return Err(RecordedError::Unfit("the module has variables of its own"));
    }
    let gpu = match named {
        Some(gpu) => gpu,
        None => lookup(&format!("sm_{}", new.sm))?,
    };
    let resources = warpwright_driver::build::resources_of(after, &gpu);
    Ok(Better {
        cubin: winner.cubin.clone(),
        changed: vec![Facts {
            kernel: kernel.name.clone(),
            registers: resources.registers,
            frame: resources.stack_bytes,
            spills: (resources.spill_store_bytes, resources.spill_load_bytes),
            shared: resources.shared_bytes,
        }],
        what: format!(
            "{}: {} (recorded, {:.2} times as fast)",
            source_name(&kernel.name),
            winner.recipe,
            winner.speedup()
        ),
    })
}

/// Is it right whatever the parameters hold, at the launches as they are?
fn is_for_all_values(winner: &Winner) -> bool {
    use warpwright_launch::Condition;
    let mut conditions = winner.guard.conditions();
    let is_of_values = |c| {
        matches!(
            c,
            Condition::Disjoint(_) | Condition::In(Quantity::Param(_), _)
        )
    };
    winner.shape.is_same() && !conditions.any(is_of_values)
}

fn asks_no_more(before: &Kernel, after: &Kernel) -> Result<(), RecordedError> {
    if after.max_threads != before.max_threads {
        return Err(RecordedError::Unfit("it bounds its blocks otherwise"));
    }
    if after.shared_bytes > before.shared_bytes {
        return Err(RecordedError::Unfit(
            "it takes more shared memory, and launches are not known here",
        ));
    }
    Ok(())
}

/// Variables that the host may look for by name.
fn has_variables(cubin: &[u8]) -> Result<bool, RecordedError> {
    let elf = Elf::parse(cubin)?;
    let named = |name: &str| {
        [".nv.global", ".nv.constant3", ".nv.constant4"]
            .iter()
            .any(|p| name.starts_with(p))
    };
    Ok(elf.sections.iter().any(|section| named(&section.name)))
}
