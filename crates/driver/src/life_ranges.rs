//! Our liveness of machine code against nvdisasm's life ranges (`-plr`): the same registers, by name,
//! at every instruction. Roles, control flow and liveness are tested together.

use std::time::Duration;

use warpwright_sass::Elf;
use warpwright_sass::elf::{ElfError, KernelSections};
use warpwright_sass::function::compare::{self, COUNTED, Row, compare};
use warpwright_sass::function::{Calls, Code, register_of, value_of};
use warpwright_sass::roles;
use warpwright_toolkit::life_ranges::{File, Section};
use warpwright_toolkit::{Nvdisasm, ToolError};

/// One register that only one side takes for occupied (live before the instruction, or written by it).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Bytes from the start of the section.
    pub offset: u64,
    /// The instruction as nvdisasm writes it.
    pub text: String,
    /// The register: `R4`, `UP0`.
    pub register: String,
    /// Is it occupied for us, and not for nvdisasm?
    pub ours: bool,
}

/// What the comparison of one function came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every register agrees at every instruction, or differs as nvdisasm's rule for guarded writes says
    /// ([`warpwright_sass::function::Hyperblocks`]).
    Agrees {
        /// Registers times instructions for which that rule is needed.
        by_rule: usize,
    },
    /// These do not.
    Differs(Vec<Difference>),
    /// Instructions without roles, by offset and nvdisasm's text: nothing can be said.
    Opaque(Vec<(u64, String)>),
    /// Not compared, for this reason.
    LeftOut(String),
}

/// One function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// Its name.
    pub name: String,
    /// Its instructions that nvdisasm shows: not the padding, nor what it takes for dead.
    pub instructions: usize,
    /// Those that it does not show.
    pub not_shown: usize,
    /// What came of it.
    pub outcome: Outcome,
}

/// Why nothing could be compared.
#[derive(Debug, thiserror::Error)]
pub enum LifeRangeError {
    /// The bytes cannot be read.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// nvdisasm is missing or refuses the cubin.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// There is no table for the architecture.
    #[error("the roles of sm_{0} are not known")]
    NoTable(u32),
    /// nvdisasm shows no such section.
    #[error("nvdisasm shows no code of {0}")]
    NotShown(String),
}

/// Compares every function of a cubin.
///
/// nvdisasm must be done within `limit`.
///
/// # Errors
/// See [`LifeRangeError`].
pub fn compare_cubin(
    nvdisasm: Nvdisasm<'_>,
    cubin: &[u8],
    limit: Duration,
) -> Result<Vec<Compared>, LifeRangeError> {
    let elf = Elf::parse(cubin)?;
    let sm = elf.target().sm;
    if roles::Table::for_sm(sm).is_none() {
        return Err(LifeRangeError::NoTable(sm));
    }
    let sections = nvdisasm.life_ranges_within(cubin, limit)?;
    let kernels = elf.kernels()?;
    let compared = kernels.iter().map(|kernel| {
        let name = format!(".text.{}", kernel.name);
        let section = sections.iter().find(|section| section.name == name);
        let section = section.ok_or_else(|| LifeRangeError::NotShown(kernel.name.clone()))?;
        let all = elf.instructions(kernel)?.len();
        Ok(Compared {
            name: kernel.name.clone(),
            instructions: section.rows.len(),
            not_shown: all.saturating_sub(section.rows.len()),
            outcome: compare_function(&elf, kernel, section),
        })
    });
    compared.collect()
}

fn compare_function(elf: &Elf, kernel: &KernelSections, section: &Section) -> Outcome {
    let code = match Code::new(elf, kernel, Calls::AsNvdisasm) {
        Ok(code) => code,
        Err(error) => return Outcome::LeftOut(error.to_string()),
    };
    let text = |offset: u64| {
        let row = section.rows.binary_search_by_key(&offset, |row| row.offset);
        row.map_or_else(|_| String::new(), |at| section.rows[at].text.clone())
    };
    if !code.opaque().is_empty() {
        let offsets = code.opaque().iter().map(|inst| u64::from(inst.0) * 16);
        return Outcome::Opaque(offsets.map(|offset| (offset, text(offset))).collect());
    }
    let (rows, shown) = rows(section, code.instructions().len());
    let found = compare(&code, &rows, &shown);
    if found.differences.is_empty() {
        return Outcome::Agrees {
            by_rule: found.by_rule,
        };
    }
    let differences = found.differences.iter().map(|difference| {
        let offset = u64::from(difference.inst.0) * 16;
        Difference {
            offset,
            text: text(offset),
            register: register_name(difference),
            ours: difference.ours,
        }
    });
    Outcome::Differs(differences.collect())
}

fn register_name(difference: &compare::Difference) -> String {
    let Some((file, number)) = register_of(difference.value) else {
        return "?".into();
    };
    let prefix = match file {
        roles::File::Gpr => "R",
        roles::File::Pred => "P",
        roles::File::Uniform => "UR",
        roles::File::UniformPred => "UP",
        roles::File::Barrier => "B",
    };
    format!("{prefix}{number}")
}

/// What nvdisasm says of each of `count` instructions, and how many registers of each file it shows.
fn rows(section: &Section, count: usize) -> (Vec<Option<Row>>, [u16; COUNTED.len()]) {
    let mut shown = [0; COUNTED.len()];
    let mut rows = vec![None; count];
    for row in &section.rows {
        let mut said = Row {
            labelled: row.labelled,
            occupied: Vec::with_capacity(row.marks.len()),
        };
        for &(file, number, _) in &row.marks {
            let file = match file {
                File::Gpr => roles::File::Gpr,
                File::Pred => roles::File::Pred,
                File::Uniform => roles::File::Uniform,
                File::UniformPred => roles::File::UniformPred,
            };
            if let Some(place) = COUNTED.iter().position(|&known| known == file) {
                shown[place] = shown[place].max(number + 1);
            }
            said.occupied.extend(value_of(file, number));
        }
        if let Some(place) = rows.get_mut((row.offset / 16) as usize) {
            *place = Some(said);
        }
    }
    (rows, shown)
}
