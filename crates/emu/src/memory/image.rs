//! Where the variables of a module lie.

use std::collections::BTreeMap;

use warpwright_ptx::ir::{FuncId, Init, InitRef, Linkage, Module, Symbol, VarId};
use warpwright_ptx::types::Space;

use super::{Allocation, FUNCTION_WINDOW, SHARED_WINDOW, slot_address};
use crate::program::Layout;

/// First address of user data in shared memory; what lies below is the system's on recent GPUs,
/// and an access there is a fault.
const SHARED_BASE: u64 = 0x400;

/// Bytes between shared variables, so that running off one is noticed.
const SHARED_GAP: u64 = 256;

/// Addresses of variables and functions.
pub(crate) struct Image {
    /// Slot of the first of the global variables.
    pub first: usize,
    /// Global and constant variables, in the order of their allocations.
    pub globals: Vec<GlobalVariable>,
    /// Shared variables, static ones first.
    pub shared: Layout,
    shared_addresses: BTreeMap<VarId, u64>,
    /// Address and alignment of dynamic shared memory, and the variables that stand for it.
    pub dynamic: (u64, Vec<String>),
    /// Parameters of the kernel.
    pub params: Layout,
    /// Functions by number; their addresses follow from it.
    pub functions: Vec<FuncId>,
    /// Behind the global variables lies the memory in which blocks of a cooperative launch wait for each other.
    pub has_workspace: bool,
}

/// What an access there is said to be of.
const WORKSPACE: &str = "the memory of the grid's barrier";

/// Its size (`driver_abi.h` of CUDA's cooperative groups).
const WORKSPACE_BYTES: usize = 8;

/// A variable in global or constant memory.
pub(crate) struct GlobalVariable {
    pub var: VarId,
    pub name: String,
    pub bytes: Vec<u8>,
    pub constant: bool,
    /// Others see it by its name, and may have set it. Constants without a linkage, too: nvcc writes every `__constant__` so
    /// unless code is relocatable, and tells the runtime its name. Not of one that holds addresses.
    pub exported: bool,
    /// Its declaration says what it holds.
    pub given: bool,
}

/// Why a module's variables have no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ImageError {
    #[error("variable `{0}` is too large")]
    TooLarge(String),
    #[error("a reference outside its initialiser")]
    Reference,
}

impl Image {
    /// Lays out all global variables of a module, the shared variables named, and the functions.
    ///
    /// # Errors
    /// A variable is too large, or its initialiser refers to places that it does not have.
    pub fn new(
        module: &Module,
        shared: &[VarId],
        functions: Vec<FuncId>,
        first: usize,
    ) -> Result<Image, ImageError> {
        let mut image = Image {
            first,
            globals: Vec::new(),
            shared: Layout {
                regions: Vec::new(),
                len: SHARED_BASE,
            },
            shared_addresses: BTreeMap::new(),
            dynamic: (0, Vec::new()),
            params: Layout::default(),
            functions,
            has_workspace: false,
        };
        image.place_shared(module, shared);
        for (var, data) in module.variables.iter() {
            if matches!(data.space, Space::Global | Space::Const) {
                let (name, constant) = (data.name.to_string(), data.space == Space::Const);
                if data.bytes() > crate::decode::MAX_VARIABLE {
                    return Err(ImageError::TooLarge(name));
                }
                let bytes = vec![0; data.bytes() as usize];
                let has_addresses = matches!(&data.init, Some(Init::Data(i)) if !i.refs.is_empty());
                image.globals.push(GlobalVariable {
                    var,
                    name,
                    bytes,
                    constant,
                    exported: !has_addresses && (data.linkage != Linkage::Local || constant),
                    given: data.init.is_some(),
                });
            }
        }
        for index in 0..image.globals.len() {
            let var = image.globals[index].var;
            if let Some(Init::Data(init)) = &module.variables[var].init {
                let mut bytes = init.bytes.clone();
                bytes.resize(image.globals[index].bytes.len(), 0);
                for reference in &init.refs {
                    image.relocate(module, &mut bytes, reference)?;
                }
                image.globals[index].bytes = bytes;
            }
        }
        Ok(image)
    }

    fn place_shared(&mut self, module: &Module, shared: &[VarId]) {
        let mut dynamic_align = 16;
        for &var in shared
            .iter()
            .filter(|&&var| !module.variables[var].is_open())
        {
            let data = &module.variables[var];
            let gap = if self.shared.regions.is_empty() {
                0
            } else {
                SHARED_GAP
            };
            let start = self
                .shared
                .place(&data.name, data.bytes(), data.alignment().into(), gap);
            self.shared_addresses.insert(var, start);
        }
        let open = shared
            .iter()
            .filter(|&&var| module.variables[var].is_open());
        for &var in open.clone() {
            dynamic_align = dynamic_align.max(module.variables[var].alignment() as u64);
            self.dynamic.1.push(module.variables[var].name.to_string());
        }
        let gap = if self.shared.regions.is_empty() {
            0
        } else {
            SHARED_GAP
        };
        let end = self.shared.len.saturating_add(gap);
        self.dynamic.0 = end.checked_next_multiple_of(dynamic_align).unwrap_or(end);
        for &var in open {
            self.shared_addresses.insert(var, self.dynamic.0);
        }
    }

    /// The layout of shared memory for a launch with this many dynamic bytes.
    pub fn shared_layout(&self, dynamic: u64) -> Layout {
        let mut layout = self.shared.clone();
        if dynamic > 0 {
            let name = match &self.dynamic.1[..] {
                [] => "dynamic shared memory".to_owned(),
                names => names.join(" / "),
            };
            let gap = self.dynamic.0 - layout.len;
            layout.place(&name, dynamic, 1, gap);
        }
        layout
    }

    /// The address of a symbol in its own state space; `None` for one that has none here
    /// (parameters, local variables, unplaced shared variables, undeclared functions).
    pub fn address(&self, module: &Module, symbol: Symbol) -> Option<u64> {
        match symbol {
            Symbol::Func(func) => {
                let reached = self.functions.contains(&func);
                reached.then(|| function_address(func))
            }
            Symbol::Var(var) => match module.variables[var].space {
                Space::Shared => self.shared_addresses.get(&var).copied(),
                Space::Global | Space::Const => self
                    .globals
                    .iter()
                    .position(|g| g.var == var)
                    .map(|index| slot_address(self.first + index)),
                _ => None,
            },
        }
    }

    /// The number of the function at an address.
    pub fn function_at(&self, address: u64) -> Option<usize> {
        let is_there = |&func: &FuncId| function_address(func) == address;
        self.functions.iter().position(is_there)
    }

    fn relocate(
        &self,
        module: &Module,
        bytes: &mut [u8],
        reference: &InitRef,
    ) -> Result<(), ImageError> {
        let mut address = self
            .address(module, reference.symbol)
            .unwrap_or_else(|| unreached(reference.symbol));
        let shared = matches!(reference.symbol, Symbol::Var(v) if module.variables[v].space == Space::Shared);
        if reference.generic && shared {
            address += SHARED_WINDOW;
        }
        let address = address.wrapping_add_signed(reference.offset);
        // The mask's bits, moved down to bit 0.
        let value = match reference.mask {
            0 => 0,
            mask => (address & mask) >> mask.trailing_zeros(),
        };
        let (at, width) = (reference.at as usize, reference.width as usize);
        let place = bytes.get_mut(at..at + width).ok_or(ImageError::Reference)?;
        place.copy_from_slice(&value.to_le_bytes()[..width]);
        Ok(())
    }

    /// Adds the memory in which blocks of a cooperative launch wait for each other: its address.
    pub fn place_workspace(&mut self) -> u64 {
        self.has_workspace = true;
        slot_address(self.first + self.globals.len())
    }

    /// Fresh allocations for all global variables, and behind them for the grid's barrier.
    pub fn allocations(&self) -> Vec<Allocation> {
        let all = self.globals.iter().enumerate();
        let variables = all.map(|(i, g)| {
            let base = slot_address(self.first + i);
            Allocation::new(g.name.clone(), base, &g.bytes, g.constant)
        });
        let workspace = self.has_workspace.then(|| {
            let base = slot_address(self.first + self.globals.len());
            Allocation::new(WORKSPACE.to_owned(), base, &[0; WORKSPACE_BYTES], false)
        });
        variables.chain(workspace).collect()
    }
}

/// The address of a function, for all kernels of its module the same.
fn function_address(func: FuncId) -> u64 {
    use cranelift_entity::EntityRef;
    FUNCTION_WINDOW + 16 * func.index() as u64
}

/// The address of a symbol that the kernel cannot reach but an initialiser names (the tables of
/// virtual functions of other kernels): its use in this kernel is a fault.
fn unreached(symbol: Symbol) -> u64 {
    match symbol {
        Symbol::Func(func) => function_address(func),
        Symbol::Var(_) => 0,
    }
}
