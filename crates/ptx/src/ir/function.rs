//! Functions: head, parameters and directives.

use smallvec::SmallVec;

use super::{Attribute, Body, Inst, Item, Linkage, Name, Reg, VarId};
use crate::Span;

/// Kernel or device function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// `.entry`: a kernel.
    Entry,
    /// `.func`: a device function.
    Func,
}

/// A function: a kernel or a device function, declared or defined.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// Linkage of the definition (of the first declaration, if there is none).
    pub linkage: Linkage,
    /// `.attribute(…)` list.
    pub attributes: Vec<Attribute>,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Return parameters in order.
    pub returns: Vec<Param>,
    /// Directives between the parameters and the body, in order.
    pub directives: Vec<Directive>,
    /// The body, if it is defined here.
    pub body: Option<Body>,
    /// The whole function, from linkage to `}` or `;`.
    pub span: Span,
    /// From linkage to the last directive: everything before the body.
    pub head_span: Span,
    /// The name.
    pub name_span: Span,
}

impl Function {
    /// Instructions whose opcode is not known, in program order. `Some` marks the function as
    /// opaque: it may be inspected and printed, not transformed.
    pub fn opaque(&self) -> Option<&[Inst]> {
        let list = self.body.as_ref().map(|b| &b.opaque[..])?;
        (!list.is_empty()).then_some(list)
    }

    /// `.maxntid` in threads, missing dimensions as 1.
    pub fn max_ntid(&self) -> Option<[u32; 3]> {
        self.find_directive(|d| match &d.kind {
            DirectiveKind::MaxNtid(dims) => Some(dims.full()),
            _ => None,
        })
    }

    /// `.minnctapersm`, blocks wanted per SM.
    pub fn min_nctapersm(&self) -> Option<u32> {
        self.find_directive(|d| match d.kind {
            DirectiveKind::MinNctaPerSm(blocks) => Some(blocks),
            _ => None,
        })
    }

    /// `.maxnreg`, registers a thread.
    pub fn max_nreg(&self) -> Option<u32> {
        self.find_directive(|d| match d.kind {
            DirectiveKind::MaxNreg(registers) => Some(registers),
            _ => None,
        })
    }

    /// `.reqntid` in threads, missing dimensions as 1.
    pub fn req_ntid(&self) -> Option<[u32; 3]> {
        self.find_directive(|d| match &d.kind {
            DirectiveKind::ReqNtid(dims) => Some(dims.full()),
            _ => None,
        })
    }

    /// All `.pragma` strings of the head, in order (those inside the body are
    /// [`Item::Pragma`]s).
    pub fn pragmas(&self) -> impl Iterator<Item = &str> {
        let lists = self.directives.iter().filter_map(|d| match &d.kind {
            DirectiveKind::Pragma(strings) => Some(strings),
            _ => None,
        });
        lists.flatten().map(String::as_str)
    }

    /// All `.pragma` strings of the head and of the body, in order.
    pub fn all_pragmas(&self) -> impl Iterator<Item = &str> {
        let items = self.body.iter().flat_map(|b| &b.items);
        let inner = items.filter_map(|item| match item {
            Item::Pragma(strings, _) => Some(strings),
            _ => None,
        });
        self.pragmas().chain(inner.flatten().map(String::as_str))
    }

    fn find_directive<T>(&self, pick: impl FnMut(&Directive) -> Option<T>) -> Option<T> {
        self.directives.iter().find_map(pick)
    }
}

/// A parameter or return parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Name, type, size: a variable of space `.param`, or `.reg` for a register parameter.
    pub var: VarId,
    /// The register of the body, for a register parameter of a defined function.
    pub reg: Option<Reg>,
}

/// A directive of a function's head.
#[derive(Clone, Debug, PartialEq)]
pub struct Directive {
    /// Which one, and its arguments.
    pub kind: DirectiveKind,
    /// The directive with its arguments (and `;` where it has one).
    pub span: Span,
}

/// One to three sizes, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dims(pub SmallVec<[u32; 3]>);

impl Dims {
    /// x, y and z, missing ones as 1.
    pub fn full(&self) -> [u32; 3] {
        let at = |i: usize| self.0.get(i).copied().unwrap_or(1);
        [at(0), at(1), at(2)]
    }
}

/// What a directive of a function's head says.
#[derive(Clone, Debug, PartialEq)]
pub enum DirectiveKind {
    /// `.maxntid`: largest block, threads.
    MaxNtid(Dims),
    /// `.reqntid`: exact block, threads.
    ReqNtid(Dims),
    /// `.minnctapersm`: blocks wanted per SM.
    MinNctaPerSm(u32),
    /// `.maxnctapersm`: the deprecated name of the same.
    MaxNctaPerSm(u32),
    /// `.maxnreg`: registers a thread.
    MaxNreg(u32),
    /// `.reqnctapercluster`: exact cluster, blocks.
    ReqNctaPerCluster(Dims),
    /// `.explicitcluster`
    ExplicitCluster,
    /// `.maxclusterrank`: largest number of blocks in a cluster.
    MaxClusterRank(u32),
    /// `.blocksareclusters`
    BlocksAreClusters,
    /// `.pragma` with its strings.
    Pragma(Vec<String>),
    /// `.noreturn`
    NoReturn,
    /// `.abi_preserve`: registers.
    AbiPreserve(u32),
    /// `.abi_preserve_control`: registers.
    AbiPreserveControl(u32),
    /// A directive that this front end does not know, as text.
    Unknown(String),
}
