//! PTX: lossless syntax, typed IR, printer, verifier, edits.

pub mod check;
pub mod diag;
pub mod edit;
pub mod ir;
mod names;
pub mod opcode;
mod parse;
pub mod print;
pub mod repeat;
pub mod span;
pub mod special;
pub mod spill;
pub mod syntax;
pub mod types;
pub mod verify;
pub mod view;

pub use diag::{Diagnostic, Severity};
pub use edit::{EditError, Edits};
pub use ir::*;
pub use opcode::Opcode;
pub use span::{LineCol, LineIndex, Span};
pub use special::SpecialReg;
pub use types::{Space, Type, TypeKind};
pub use verify::{Verified, verify};
pub use view::View;
