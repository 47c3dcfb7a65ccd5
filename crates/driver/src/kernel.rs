//! What the driver knows of a kernel before any build: its launch bounds, its shared memory, and
//! what forbids some decisions. Read off the PTX.

use serde::Serialize;
use warpwright_launch::Launch;
use warpwright_ptx::ir::{DirectiveKind, Function, Item, Module, Operand, Symbol};
use warpwright_ptx::types::Space;

/// Where the block size comes from; the later ones are guesses or promises of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlockSource {
    /// `.reqntid` in the kernel.
    Required,
    /// `--block`.
    Option,
    /// The launch description.
    Launch,
    /// `.maxntid` in the kernel: an upper bound, taken as the size.
    Bound,
    /// Nobody said; 256 is assumed.
    Assumed,
}

/// Threads per block, and how we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Block {
    /// Threads per block in x, y, z.
    pub dims: [u32; 3],
    /// How we know.
    pub source: BlockSource,
}

/// The block size that is assumed when nobody states one.
const ASSUMED_BLOCK: u32 = 256;

impl Block {
    /// Threads per block. What a damaged cubin says of them may not be a number of threads.
    pub fn threads(&self) -> u32 {
        let all = self.dims.iter();
        all.fold(1, |all, &n| all.saturating_mul(n))
    }

    /// May a bound on the block size be written into the kernel?
    pub fn is_given(&self) -> bool {
        !matches!(self.source, BlockSource::Assumed)
    }
}

/// Determines the block size of a kernel: what it requires wins over what the caller says, which
/// wins over its upper bound. Errors name the contradiction.
pub fn block_of(
    function: &Function,
    option: Option<[u32; 3]>,
    launch: Option<&Launch>,
) -> Result<Block, String> {
    let product = |d: [u32; 3]| d.iter().fold(1u64, |all, &n| all.saturating_mul(n.into()));
    let (dims, source) = match (function.req_ntid(), option, launch, function.max_ntid()) {
        (Some(required), Some(asked), _, _) if required != asked => {
            return Err(format!(
                "--block {} contradicts .reqntid {} of kernel `{}`",
                show(asked),
                show(required),
                function.name
            ));
        }
        (Some(required), ..) => (required, BlockSource::Required),
        (None, Some(asked), _, bound) => {
            if let Some(bound) = bound.filter(|&b| product(asked) > product(b)) {
                return Err(format!(
                    "--block {} is larger than .maxntid {} of kernel `{}`",
                    show(asked),
                    show(bound),
                    function.name
                ));
            }
            (asked, BlockSource::Option)
        }
        (None, None, Some(launch), _) => (launch.block, BlockSource::Launch),
        (None, None, None, Some(bound)) => (bound, BlockSource::Bound),
        (None, None, None, None) => ([ASSUMED_BLOCK, 1, 1], BlockSource::Assumed),
    };
    let threads = product(dims);
    if let (Some(bound), BlockSource::Launch) = (function.max_ntid(), source)
        && threads > product(bound)
    {
        return Err(format!(
            "the launch's block {} is larger than .maxntid {} of kernel `{}`",
            show(dims),
            show(bound),
            function.name
        ));
    }
    if threads == 0 || threads > 1024 {
        return Err(format!(
            "a block of {} is {threads} threads; a block has 1 to 1024",
            show(dims)
        ));
    }
    Ok(Block { dims, source })
}

fn show(dims: [u32; 3]) -> String {
    format!("{},{},{}", dims[0], dims[1], dims[2])
}

/// Bytes of static shared memory declared inside `function` or at module scope and used by it.
///
/// Only an estimate for when ptxas is missing: ptxas drops what is not used.
pub fn static_shared_bytes(module: &Module, function: &Function) -> u32 {
    let used = used_variables(function);
    let bytes: u64 = module
        .variables
        .iter()
        .filter(|(id, v)| v.space == Space::Shared && used.contains(id))
        .map(|(_, v)| v.bytes())
        .sum();
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Does the kernel address dynamic shared memory (an open `.extern .shared` array)?
pub fn uses_dynamic_shared(module: &Module, function: &Function) -> bool {
    used_variables(function)
        .iter()
        .any(|&id| module.variables[id].space == Space::Shared && module.variables[id].is_open())
}

fn used_variables(function: &Function) -> std::collections::BTreeSet<warpwright_ptx::ir::VarId> {
    use warpwright_ptx::ir::{Address, Base};
    let Some(body) = &function.body else {
        return Default::default();
    };
    body.operands
        .values()
        .filter_map(|operand| match operand {
            Operand::Symbol {
                symbol: Symbol::Var(id),
                ..
            }
            | Operand::Mem(Address {
                base: Base::Symbol(Symbol::Var(id)),
                ..
            }) => Some(*id),
            _ => None,
        })
        .collect()
}

/// Why ptxas would reject or ignore `.pragma "enable_smem_spilling"` for this kernel, if so
/// (docs/facts.md: dynamic shared memory, setmaxnreg, ABI calls).
pub fn shared_spilling_obstacle(
    module: &Module,
    function: &Function,
    dynamic_smem: u32,
) -> Option<&'static str> {
    if module.header.version < (9, 0) {
        return Some("the pragma needs PTX ISA 9.0");
    }
    if dynamic_smem > 0 || uses_dynamic_shared(module, function) {
        return Some("the kernel uses dynamic shared memory");
    }
    if has_operation(module, function, "setmaxnreg") {
        return Some("the kernel uses setmaxnreg");
    }
    if has_operation(module, function, "call") {
        return Some("the kernel calls functions");
    }
    None
}

/// Has `function` an instruction whose opcode begins with `word`?
pub fn has_operation(module: &Module, function: &Function, word: &str) -> bool {
    let mut insts = function.body.iter().flat_map(|body| body.insts.values());
    insts.any(|inst| module.opcode(inst).text.split('.').next() == Some(word))
}

/// Does the kernel already ask for spilling to shared memory?
pub fn has_shared_spilling(function: &Function) -> bool {
    let is_it = |strings: &Vec<String>| strings.iter().any(|s| s == SMEM_PRAGMA);
    let in_head = function
        .directives
        .iter()
        .any(|d| matches!(&d.kind, DirectiveKind::Pragma(strings) if is_it(strings)));
    let in_body = function
        .body
        .iter()
        .flat_map(|b| &b.items)
        .any(|item| matches!(item, Item::Pragma(strings, _) if is_it(strings)));
    in_head || in_body
}

/// The pragma's string (CUDA 13.0 and later).
pub const SMEM_PRAGMA: &str = "enable_smem_spilling";
