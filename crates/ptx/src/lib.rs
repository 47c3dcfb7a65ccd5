//! PTX: lossless syntax, typed IR, printer, verifier, edits.

pub mod check;
pub mod edit;
pub mod ir;
mod names;
pub mod opcode;
mod parse;
pub mod print;
pub mod repeat;
pub mod special;
pub mod spill;
pub mod syntax;
pub mod types;
pub mod verify;
pub mod view;

pub use edit::{EditError, Edits};
pub use ir::*;
pub use opcode::Opcode;
pub use special::SpecialReg;
pub use types::{Space, Type, TypeKind};
pub use verify::{Verified, verify};
pub use view::View;
pub use warpwright_diag::{Diagnostic, LineCol, LineIndex, Severity, SourceText, Span};
