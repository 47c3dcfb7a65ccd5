//! Versions that are made while the program waits, of kernels that use variables: the module that they belong in is loaded
//! already ([`crate::grafts`]). Such a version brings variables of its own along. They get the contents of the program's
//! before it runs, and the program's get theirs afterwards.

use std::ffi::CString;

use warpwright_winners::digest::{self, Variable};
use warpwright_winners::ties::{Bond, bond};

use crate::abi::{Code, Handle, NOT_FOUND, SUCCESS};
use crate::driver;
use crate::functions::{current_context, identify};
use crate::state::state;

/// A module or library with the program's variables.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    /// Its handle.
    pub handle: usize,
    /// Is it a library?
    pub is_library: bool,
}

impl Owner {
    /// The one that a function of the program belongs to.
    fn of(function: Handle) -> Option<Owner> {
        let module = identify(function)?.module?;
        let owners = state().modules.owners(current_context());
        let mut own = owners
            .into_iter()
            .filter(|(.., other)| std::sync::Arc::ptr_eq(other, &module));
        own.next()
            .map(|(handle, is_library, _)| Owner { handle, is_library })
    }

    /// Place and bytes of a variable.
    ///
    /// # Errors
    /// The driver's code where it knows none of that name.
    pub fn variable(self, name: &str) -> Result<(u64, u64), Code> {
        let text = CString::new(name).unwrap_or_default();
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: a module that is loaded, a C string, and outputs of the right types.
        let code = unsafe {
            let (address, bytes, owner) = (&raw mut address, &raw mut bytes, self.handle as Handle);
            match self.is_library {
                true => driver::library_variable(address, bytes, owner, text.as_ptr()),
                false => driver::module_variable(address, bytes, owner, text.as_ptr()),
            }
        };
        match code {
            SUCCESS => Ok((address, bytes as u64)),
            code => Err(code),
        }
    }
}

/// A variable of the program and a version's own.
#[derive(Debug)]
struct Pair {
    program: u64,
    own: u64,
    bytes: u64,
    is_constant: bool,
}

/// The variables that a version brings along.
#[derive(Debug)]
pub struct Brought {
    library: usize,
    variables: Vec<Variable>,
}

impl Brought {
    /// Those of a library that was loaded from `cubin`, if the kernel shares any with its module.
    pub fn new(cubin: &[u8], symbol: &str, library: Handle) -> Option<Brought> {
        matches!(bond(cubin, symbol), Ok(Bond::Variables)).then(|| Brought {
            library: library as usize,
            variables: digest::variables(cubin).unwrap_or_default(),
        })
    }

    /// Beside those that a function of the program uses.
    ///
    /// # Errors
    /// The driver's code where a variable is not found, or has another size.
    pub fn mirror(&self, function: Handle) -> Result<Mirror, Code> {
        let program = Owner::of(function).ok_or(NOT_FOUND)?;
        let version = Owner {
            handle: self.library,
            is_library: true,
        };
        let pairs = self.variables.iter().map(|variable| {
            let name = &variable.name;
            let (address, bytes) = program.variable(name)?;
            let (own, size) = version.variable(name)?;
            match bytes == size {
                true => Ok(Pair {
                    program: address,
                    own,
                    bytes,
                    is_constant: variable.is_constant,
                }),
                false => Err(NOT_FOUND),
            }
        });
        pairs.collect::<Result<_, _>>().map(Mirror)
    }
}

/// A version's own variables beside the program's.
#[derive(Debug, Default)]
pub struct Mirror(Vec<Pair>);

impl Mirror {
    /// `__constant__` variables get the program's contents: no kernel changes them.
    pub fn give_constants(
        &self,
        copy: impl Fn(u64, u64, u64) -> Result<(), Code>,
    ) -> Result<(), Code> {
        let mut constants = self.0.iter().filter(|pair| pair.is_constant);
        constants.try_for_each(|pair| copy(pair.own, pair.program, pair.bytes))
    }

    /// Before a run: the others do. `copy` takes where to, where from, bytes.
    pub fn give(&self, copy: impl Fn(u64, u64, u64) -> Result<(), Code>) -> Result<(), Code> {
        self.written()
            .try_for_each(|pair| copy(pair.own, pair.program, pair.bytes))
    }

    /// After a run: the program's get what it left.
    pub fn take(&self, copy: impl Fn(u64, u64, u64) -> Result<(), Code>) -> Result<(), Code> {
        self.written()
            .try_for_each(|pair| copy(pair.program, pair.own, pair.bytes))
    }

    fn written(&self) -> impl Iterator<Item = &Pair> {
        self.0
            .iter()
            .filter(|pair| !pair.is_constant && pair.bytes > 0)
    }
}
