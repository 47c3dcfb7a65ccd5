//! May a cubin of a store stand in a kernel's place? What a driver makes of a damaged cubin nobody knows, and a kernel
//! that takes other parameters than its caller passes reads memory of somebody else: so both are found out first.
//!
//! Nothing here says that the code computes the same; that is for the proof.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_launch::{Condition, Extent, Guard, Quantity, Shape};
use warpwright_sass::Elf;
use warpwright_sass::elf::info::{Attribute, Info};
use warpwright_sass::elf::symbol::Symbol;
use warpwright_sass::elf::{ElfError, KernelSections, Section};

use crate::graft::{Addition, GraftError, graft};
use crate::record::Winner;
use crate::ties::{Bond, Tie, bond_in, tables_in};

/// Why a cubin may not stand in a kernel's place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It cannot be read.
    #[error("the winner is no cubin: {0}")]
    Elf(#[from] ElfError),
    /// Another architecture, another ABI, or an object that must be linked.
    #[error("the winner is for another architecture")]
    Target,
    /// A section that refers to another one that does not exist.
    #[error("the winner's section `{0}` refers to nothing")]
    Section(String),
    /// A symbol of no section, or one that reaches beyond its own.
    #[error("the winner's symbol `{0}` is outside of its section")]
    Symbol(String),
    /// A relocation of no symbol, or of a place beyond the section.
    #[error("a relocation of the winner is outside of `{0}`")]
    Relocation(String),
    /// The kernel is not there, twice, or no kernel.
    #[error("the winner's cubin does not have the kernel `{0}` once")]
    Kernel(String),
    /// Code that is not whole instructions of the architecture.
    #[error("the winner's code is cut short")]
    Code,
    /// Other parameters.
    #[error("the winner takes other parameters")]
    Parameters,
    /// Clusters of another kind.
    #[error("the winner runs in other clusters")]
    Clusters,
    /// Blocks of these launches are none of the winner's.
    #[error("the winner does not take the blocks of its launches")]
    Block,
    /// A parameter that the kernel does not have.
    #[error("the winner's guard names a parameter that the kernel does not have")]
    Guard,
    /// The kernel, whatever is to stand in its place.
    #[error("{0}")]
    Original(Tie),
    /// What it shares with its module.
    #[error("the winner is tied otherwise: {0}")]
    Tie(#[from] Tie),
    /// It uses variables, and the original does not.
    #[error("the winner uses variables, and the kernel does not")]
    Variables,
    /// It does not fit into the module.
    #[error("{0}")]
    Graft(#[from] GraftError),
}

/// A parameter: its first byte in the buffer of parameters, and its size.
pub type Place = (u32, u32);

/// The module that a kernel is in, as far as versions of it must agree.
pub struct Original {
    elf: Elf,
    symbols: Vec<Symbol>,
}

impl Original {
    /// The module.
    ///
    /// # Errors
    /// It is no cubin.
    pub fn new(cubin: &[u8]) -> Result<Original, ElfError> {
        let elf = Elf::parse(cubin)?;
        let symbols = elf.symbols()?;
        Ok(Original { elf, symbols })
    }

    /// Places of a kernel's parameters; `None` where the cubin does not describe them in a known way.
    pub fn parameters(&self, kernel: &str) -> Option<Vec<Place>> {
        parameters(&self.elf.info_of(&self.elf.kernel(kernel).ok()?).ok()?)
    }

    /// May a winner stand in a kernel's place?
    ///
    /// # Errors
    /// [`Unfit`]: why not.
    pub fn fits(&self, kernel: &str, winner: &Winner) -> Result<Bond, Unfit> {
        let own = self.elf.kernel(kernel)?;
        let elf = Elf::parse(&winner.cubin)?;
        let symbols = elf.symbols()?;
        if elf.target() != self.elf.target() || elf.is_relocatable() {
            return Err(Unfit::Target);
        }
        references_hold(&elf, &symbols)?;
        let new = once(&elf, &symbols, &winner.symbol)?;
        let facts = (self.elf.info_of(&own)?, elf.info_of(&new)?);
        if !are_same(&facts, &PARAMETERS)
            || bank(&self.elf, &own) != bank(&elf, &new)
            || parameters(&facts.0) != parameters(&facts.1)
        {
            return Err(Unfit::Parameters);
        }
        if !are_same(&facts, &CLUSTERS) {
            return Err(Unfit::Clusters);
        }
        takes_blocks(&facts.1, &winner.guard, winner.shape)?;
        if !names_parameters(&winner.guard, &parameters(&facts.0)) {
            return Err(Unfit::Guard);
        }
        self.ties(&own, (&elf, &symbols, &new))
    }

    /// Whoever shares nothing with its module may bring along the tables that the original reads, and no more.
    fn ties(
        &self,
        own: &KernelSections,
        (elf, symbols, new): (&Elf, &[Symbol], &KernelSections),
    ) -> Result<Bond, Unfit> {
        let before = bond_in(&self.elf, &self.symbols, own).map_err(Unfit::Original)?;
        let after = bond_in(elf, symbols, new)?;
        if before == Bond::None {
            if after != Bond::None {
                return Err(Unfit::Variables);
            }
            let known = tables_in(&self.elf, &self.symbols, own)?;
            let brought = tables_in(elf, symbols, new)?;
            let mut unknown = brought.iter().filter(|(k, v)| known.get(*k) != Some(v));
            if let Some((table, _)) = unknown.next() {
                return Err(Unfit::Tie(Tie::Symbol(table.clone())));
            }
        }
        Ok(before)
    }
}

/// Does a version fit into the module of a kernel that uses variables?
///
/// # Errors
/// It does not.
pub fn joins(module: &[u8], kernel: &str, cubin: &[u8], symbol: &str) -> Result<(), Unfit> {
    let name = format!("{kernel}.version");
    let addition = Addition {
        kernel,
        name: &name,
        cubin,
        symbol,
    };
    graft(module, &[addition])?;
    Ok(())
}

const PARAMETERS: [Attribute; 2] = [Attribute::KPARAM_INFO_V2, Attribute::CBANK_PARAM_SIZE];
const CLUSTERS: [Attribute; 3] = [
    Attribute::CTA_PER_CLUSTER,
    Attribute::EXPLICIT_CLUSTER,
    Attribute::MAX_CLUSTER_RANK,
];

/// Do the records of these kinds say the same in both?
fn are_same((old, new): &(Info, Info), kinds: &[Attribute]) -> bool {
    let of = |info: &Info| -> BTreeSet<String> {
        let records = info.records.iter();
        let own = records.filter(|record| kinds.contains(&record.attribute));
        own.map(|record| format!("{record:?}")).collect()
    };
    of(old) == of(new)
}

/// Bytes of the constant bank with the parameters, and where in it they begin.
fn bank(elf: &Elf, kernel: &KernelSections) -> Option<(u64, u32)> {
    let size = elf.sections.get(kernel.parameters?)?.size();
    let info = elf.info_of(kernel).ok()?;
    let layout = info.get(Attribute::PARAM_CBANK)?.words();
    Some((size, *layout.get(1)?))
}

/// EIATTR_KPARAM_INFO: an index, then the ordinal below the offset, then flags below the size.
fn parameters(info: &Info) -> Option<Vec<Place>> {
    let records = info.records.iter();
    if records
        .clone()
        .any(|r| r.attribute == Attribute::KPARAM_INFO_V2)
    {
        return None;
    }
    let mut found = BTreeMap::new();
    for record in records.filter(|r| r.attribute == Attribute::KPARAM_INFO) {
        let [_, place, size] = record.words()[..] else {
            return None;
        };
        found.insert(place & 0xffff, (place >> 16, size >> 18));
    }
    let is_whole = found.keys().copied().eq(0..found.len() as u32);
    is_whole.then(|| found.into_values().collect())
}

/// All fields of a guard lie in parameters that there are.
fn names_parameters(guard: &Guard, known: &Option<Vec<Place>>) -> bool {
    let mut fields = guard.conditions().flat_map(|condition| match condition {
        Condition::In(Quantity::Param(field), _) => vec![field],
        Condition::In(..) => Vec::new(),
        Condition::Disjoint(disjoint) => disjoint.pointers.to_vec(),
    });
    fields.all(|field| {
        let place = known.as_ref().and_then(|all| all.get(field.param()));
        place.is_some_and(|&(_, size)| field.at() + field.bytes() <= size as usize)
    })
}

/// What the version says of its blocks holds for all launches of the guard.
fn takes_blocks(info: &Info, guard: &Guard, shape: Shape) -> Result<(), Unfit> {
    let launched = |axis: Extent| match shape.block {
        Some([x, y, z]) => u64::from([x, y, z][axis as usize]),
        None => guard.known(Quantity::Block(axis)).high(),
    };
    let dims = Extent::AXES.map(launched);
    let stated = |attribute| {
        let words = info.get(attribute).map(|record| record.words());
        words.map(|words| <[u32; 3]>::try_from(words).unwrap_or_default())
    };
    let is_known = |required: [u32; 3]| required.map(u64::from) == dims;
    let holds = |bound: [u32; 3]| {
        let product = |dims: [u64; 3]| dims.into_iter().fold(1, u64::saturating_mul);
        product(dims) <= product(bound.map(u64::from))
    };
    let required = stated(Attribute::REQNTID).is_none_or(is_known);
    // A guard that leaves the block open leaves it to the driver to refuse larger ones.
    let is_open = dims.iter().any(|&n| n >= u32::MAX.into());
    let bounded = is_open || stated(Attribute::MAX_THREADS).is_none_or(holds);
    match required && bounded && dims.iter().all(|&n| n > 0) {
        true => Ok(()),
        false => Err(Unfit::Block),
    }
}

/// The kernel, which begins its section.
fn once(elf: &Elf, symbols: &[Symbol], name: &str) -> Result<KernelSections, Unfit> {
    let none = || Unfit::Kernel(name.to_owned());
    let named = symbols.iter().filter(|s| s.name == name && s.is_kernel());
    let text = format!(".text.{name}");
    let sections = elf.sections.iter().filter(|s| s.name == text);
    if named.count() != 1 || sections.count() != 1 {
        return Err(none());
    }
    let kernel = elf.kernel(name).map_err(|_| none())?;
    let code = elf.instructions(&kernel).map_err(|_| Unfit::Code)?;
    match symbols[kernel.symbol as usize].value == 0 && !code.is_empty() {
        true => Ok(kernel),
        false => Err(Unfit::Code),
    }
}

/// Sections, symbols and relocations lead somewhere.
fn references_hold(elf: &Elf, symbols: &[Symbol]) -> Result<(), Unfit> {
    /// Indices from here on are no sections: absolute and common symbols.
    const RESERVED: u16 = 0xff00;
    let count = elf.sections.len();
    for section in &elf.sections {
        let links = section.is_relocations();
        let leads = |index: u32| (index as usize) < count;
        if !leads(section.link) || links && !leads(section.info) {
            return Err(Unfit::Section(section.name.clone()));
        }
    }
    for symbol in symbols {
        let outside = |section: &Section| {
            let end = symbol.value.checked_add(symbol.size);
            end.is_none_or(|end| end > section.size())
        };
        let index = symbol.section;
        let is_wrong = match elf.sections.get(usize::from(index)) {
            _ if index == 0 || index >= RESERVED => false,
            Some(section) => outside(section),
            None => true,
        };
        if is_wrong {
            return Err(Unfit::Symbol(symbol.name.clone()));
        }
    }
    for (index, section) in elf.sections.iter().enumerate() {
        if !section.is_relocations() {
            continue;
        }
        let target = &elf.sections[section.info as usize];
        let is_inside = |offset: u64| offset < target.size();
        let all = elf.relocations(index)?;
        let mut wrong = all
            .iter()
            .filter(|r| !is_inside(r.offset) || r.symbol as usize >= symbols.len());
        if wrong.next().is_some() {
            return Err(Unfit::Relocation(target.name.clone()));
        }
    }
    Ok(())
}
