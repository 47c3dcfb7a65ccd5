//! The typed view of a PTX module: functions, variables, registers, instructions and operands.
//!
//! The source text stays the truth. Everything here points back into it by [`Span`]s, names are
//! resolved to typed ids, and nothing is rewritten in place: changes go through
//! [`crate::edit`], which produces a new text that is parsed again.
//!
//! Instructions lie flat and in program order in [`Body::insts`]; [`Body::items`] is the list of
//! all statements (declarations, labels, scopes, `.loc` …) in that order.

mod body;
mod function;
mod operand;
mod variable;

use std::sync::Arc;

use cranelift_entity::{PrimaryMap, entity_impl};

pub use body::*;
pub use function::*;
pub use operand::*;
pub use variable::*;

use crate::Span;
use crate::opcode::Opcode;
use crate::syntax::{Syntax, TileError};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident, $text:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);
        entity_impl!($name, $text);
    )*};
}

ids! {
    /// A distinct full opcode text of a module, such as `ld.global.nc.v4.f32`.
    OpcodeId, "opcode";
    /// A variable of a module: at module scope, local to a function, or a parameter.
    VarId, "var";
    /// A function (kernel or device function) of a module, one for each name.
    FuncId, "func";
    /// A register of a function body.
    Reg, "reg";
    /// A register declaration (`.reg .b32 %r<10>;` is one, with ten registers).
    RegDeclId, "regdecl";
    /// An instruction of a body, numbered in program order.
    Inst, "inst";
    /// A label of a body.
    Label, "label";
    /// A `{ … }` scope of a body; scope 0 is the body itself.
    Scope, "scope";
    /// A `.loc` directive of a body.
    LocId, "loc";
    /// An operand in a body's arena.
    OperandId, "operand";
    /// A `.branchtargets` list.
    BranchTable, "branchtable";
    /// A `.calltargets` list.
    CallTable, "calltable";
    /// A `.callprototype`.
    Prototype, "prototype";
}

/// A name as written in the source; cheap to clone.
pub type Name = Arc<str>;

/// A parsed PTX module.
#[derive(Clone, Debug)]
pub struct Module {
    /// Name of the input, for diagnostics (usually a path).
    pub name: String,
    /// The whole source text.
    pub source: Arc<str>,
    /// The source cut into tiles that cover every byte.
    pub syntax: Syntax,
    /// `.version`, `.target` and `.address_size`.
    pub header: Header,
    /// The distinct opcode texts, each parsed once.
    pub opcodes: PrimaryMap<OpcodeId, Opcode>,
    /// All variables and parameters, of module and function scope.
    pub variables: PrimaryMap<VarId, Variable>,
    /// All functions, in order of first mention.
    pub functions: PrimaryMap<FuncId, Function>,
    /// `.file` directives, in order.
    pub files: Vec<File>,
    /// All top-level statements in program order.
    pub items: Vec<TopItem>,
    /// Number of errors that parsing reported; such a module is for inspection alone.
    pub errors: usize,
}

impl warpwright_diag::SourceText for Module {
    fn name(&self) -> &str {
        &self.name
    }

    fn text(&self) -> &Arc<str> {
        &self.source
    }
}

impl Module {
    /// The function of this name.
    pub fn function(&self, name: &str) -> Option<FuncId> {
        self.functions
            .iter()
            .find(|(_, f)| &*f.name == name)
            .map(|(id, _)| id)
    }

    /// All kernels (`.entry` functions) with a body, in order.
    pub fn kernels(&self) -> impl Iterator<Item = (FuncId, &Function)> {
        self.functions
            .iter()
            .filter(|(_, f)| f.kind == FunctionKind::Entry && f.body.is_some())
    }

    /// The opcode of an instruction.
    pub fn opcode(&self, inst: &InstData) -> &Opcode {
        &self.opcodes[inst.opcode]
    }

    /// The module-scope variable of this name.
    pub fn variable(&self, name: &str) -> Option<VarId> {
        let mut all = self.variables.iter();
        all.find(|(_, v)| v.owner.is_none() && &*v.name == name)
            .map(|(id, _)| id)
    }

    /// The whole source, put together again from its tiles: byte-identical, or an error that says
    /// where the tiles do not cover it.
    ///
    /// # Errors
    /// The first byte that stands in no tile, or in two.
    pub fn print(&self) -> Result<String, TileError> {
        self.syntax.print(&self.source)
    }

    /// The source text of a span.
    pub fn text(&self, span: Span) -> &str {
        span.text(&self.source)
    }

    /// The name of the source file with this `.file` index.
    pub fn file(&self, index: u32) -> Option<&File> {
        self.files.iter().find(|f| f.index == index)
    }

    /// The file and the line of an instruction; what is inlined from a header of the toolkit or of the host compiler
    /// belongs to the line that calls it.
    pub fn own_line(&self, func: FuncId, inst: Inst) -> Option<(&str, u32)> {
        let body = self.functions[func].body.as_ref()?;
        let is_own = |file: u32| {
            let path = self.file(file).map(|file| &*file.path);
            path.is_some_and(is_own_file)
        };
        let (file, line) = body.own_line(inst, is_own)?;
        Some((&self.file(file)?.path, line))
    }
}

/// Is a file, by its path, no header of the toolkit or of the host compiler?
pub fn is_own_file(path: &str) -> bool {
    !HEADERS.iter().any(|part| path.contains(part))
}

/// Parts of the paths of headers that are nobody's own.
const HEADERS: [&str; 4] = [
    "/bin/../include/",
    "/targets/",
    "/usr/include/",
    "/usr/lib/gcc/",
];

/// The three directives every module begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// PTX ISA version: major, minor. (0, 0) when missing.
    pub version: (u32, u32),
    /// The `.target` list, such as `["sm_90a"]` or `["sm_70", "texmode_independent"]`.
    pub targets: Vec<String>,
    /// Address size in bits, 32 or 64; 64 when not stated (LLVM and nvcc always state it).
    pub address_size: u32,
    /// The `.version` directive.
    pub version_span: Span,
    /// The `.target` directive.
    pub target_span: Span,
    /// The `.address_size` directive; empty when missing.
    pub address_size_span: Span,
}

impl Header {
    /// The architecture number of the first `sm_NN` target: 90 for `sm_90a`.
    pub fn sm(&self) -> Option<u32> {
        self.targets.iter().find_map(|t| {
            let digits = t
                .strip_prefix("sm_")?
                .trim_end_matches(|c: char| !c.is_ascii_digit());
            digits.parse().ok()
        })
    }
}

/// A `.file` directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The index that `.loc` refers to.
    pub index: u32,
    /// The path as written, escapes undone.
    pub path: String,
    /// Time stamp and size, if stated.
    pub stamp: Option<(u64, u64)>,
    /// The directive.
    pub span: Span,
}

/// A statement at module scope, in program order.
#[derive(Clone, Debug, PartialEq)]
pub enum TopItem {
    /// `.version`; its value stands in [`Header`].
    Version(Span),
    /// `.target`.
    Target(Span),
    /// `.address_size`.
    AddressSize(Span),
    /// A variable.
    Variable(VarId),
    /// A declaration of a function without a body.
    Declare {
        /// The function.
        func: FuncId,
        /// Linkage of this declaration; the definition may state another.
        linkage: Linkage,
        /// Return parameters as declared here.
        returns: Vec<Param>,
        /// Parameters as declared here.
        params: Vec<Param>,
        /// Directives as declared here.
        directives: Vec<Directive>,
        /// The declaration.
        span: Span,
    },
    /// The definition of a function.
    Define(FuncId),
    /// A `.file` directive (index into [`Module::files`]).
    File(usize),
    /// `.section` with its contents (DWARF), kept as text.
    Section(Span),
    /// `.pragma` at module scope with its strings.
    Pragma(Vec<String>, Span),
    /// `.alias name, aliasee;`
    Alias {
        /// The new name, declared as a function of its own.
        alias: FuncId,
        /// The function it stands for.
        aliasee: FuncId,
        /// The directive.
        span: Span,
    },
    /// A directive that this front end does not know; kept as text.
    Unknown(Span),
}

/// Visibility of a symbol to other modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Linkage {
    /// No linkage directive: visible in this module only.
    #[default]
    Local,
    /// `.visible`
    Visible,
    /// `.extern`
    Extern,
    /// `.weak`
    Weak,
    /// `.common`
    Common,
}

impl Linkage {
    /// The directive with its dot; empty for [`Linkage::Local`].
    pub const fn text(self) -> &'static str {
        match self {
            Linkage::Local => "",
            Linkage::Visible => ".visible",
            Linkage::Extern => ".extern",
            Linkage::Weak => ".weak",
            Linkage::Common => ".common",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_stay_small() {
        assert!(std::mem::size_of::<Operand>() <= 32);
        assert!(std::mem::size_of::<InstData>() <= 48);
    }

    #[test]
    fn sm_number_of_a_target_list() {
        let header = |t: &[&str]| Header {
            targets: t.iter().map(|s| (*s).to_owned()).collect(),
            ..Header::default()
        };
        assert_eq!(header(&["sm_90a"]).sm(), Some(90));
        assert_eq!(header(&["texmode_independent", "sm_120f"]).sm(), Some(120));
        assert_eq!(header(&[]).sm(), None);
    }
}
