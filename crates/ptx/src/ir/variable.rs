//! Variables and parameters, and their initial values.

use smallvec::SmallVec;

use super::{FuncId, Linkage, Name, Symbol};
use crate::Span;
use crate::types::{Space, Type};

/// A variable or parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: Name,
    /// Its state space. `Reg` for a register parameter of a device function.
    pub space: Space,
    /// `.align` in bytes, if stated.
    pub align: Option<u32>,
    /// Vector length of an element: 1, 2, 4 or 8.
    pub vector: u8,
    /// Element type.
    pub ty: Type,
    /// Array dimensions, outermost first; `None` for an open `[]`. Empty for a scalar.
    pub dims: SmallVec<[Option<u64>; 2]>,
    /// Initial value.
    pub init: Option<Init>,
    /// Linkage.
    pub linkage: Linkage,
    /// `.ptr` attributes of a kernel parameter.
    pub ptr: Option<PtrAttr>,
    /// `.attribute(…)` list.
    pub attributes: Vec<Attribute>,
    /// The function that it is local to (or a parameter of); `None` at module scope.
    pub owner: Option<FuncId>,
    /// The whole declaration, from linkage to `;` (for a parameter, up to the separator).
    pub span: Span,
    /// The name.
    pub name_span: Span,
}

impl Variable {
    /// Size of one element in bytes.
    pub fn element_bytes(&self) -> u64 {
        u64::from(self.ty.bytes()) * u64::from(self.vector)
    }

    /// Size in bytes. An open dimension counts what the initial value holds, else 0 (as for
    /// `.extern .shared` arrays of dynamic size).
    pub fn bytes(&self) -> u64 {
        let mut size = self.element_bytes();
        let mut open = false;
        for dim in &self.dims {
            match dim {
                Some(n) => size = size.saturating_mul(*n),
                None => open = true,
            }
        }
        match (&self.init, open) {
            (Some(Init::Data(data)), true) => data.bytes.len() as u64,
            (_, true) => 0,
            _ => size,
        }
    }

    /// Alignment in bytes: the stated one, else the natural alignment of the element.
    pub fn alignment(&self) -> u32 {
        self.align
            .unwrap_or_else(|| (self.element_bytes() as u32).max(1))
    }

    /// Is it an array of open size, such as dynamic shared memory?
    pub fn is_open(&self) -> bool {
        self.dims.contains(&None)
    }
}

/// `.ptr` attributes of a kernel parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PtrAttr {
    /// The space it points into, `None` for generic.
    pub space: Option<Space>,
    /// Alignment of the memory pointed to, in bytes.
    pub align: Option<u32>,
}

/// One attribute of an `.attribute(…)` list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// `.managed`
    Managed,
    /// `.unified(a, b)`: the two halves of a 128-bit identifier.
    Unified(u64, u64),
    /// Anything else, as text.
    Unknown(String),
}

/// An initial value.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// Bytes and references to symbols.
    Data(InitData),
    /// A form kept as text (sampler and texture settings).
    Opaque(Span),
}

/// Initial bytes of a variable; what they do not cover is zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InitData {
    /// Little-endian bytes. References have zero bytes here.
    pub bytes: Vec<u8>,
    /// Addresses to be filled in.
    pub refs: Vec<InitRef>,
    /// The initialiser in the source.
    pub span: Span,
}

/// An address inside an initial value.
#[derive(Clone, Debug, PartialEq)]
pub struct InitRef {
    /// Byte offset in the variable.
    pub at: u64,
    /// Width in bytes of the place filled.
    pub width: u8,
    /// The symbol.
    pub symbol: Symbol,
    /// Constant added to its address.
    pub offset: i64,
    /// `generic(x)`: the generic address, not the one within the symbol's space.
    pub generic: bool,
    /// Which bits of the address are stored, moved down to bit 0 (`0xFF00(x)`).
    pub mask: u64,
}
