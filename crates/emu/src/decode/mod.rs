//! Decoding: from the typed view of a module to a [`Program`].

mod arithmetic;
mod comparison;
mod control;
mod conversion;
mod floating;
mod memory;
mod operands;
mod scope;
mod synchronisation;
mod tensor;
mod texture;
mod video;
mod words;

use std::collections::BTreeSet;

use warpwright_ptx::ir::{DirectiveKind, FuncId, Inst, Module, VarId};
use warpwright_ptx::{LineIndex, Operand, Space, SpecialReg};

use crate::fault::{DecodeError, Place, Unsupported};
use crate::lanes::{Lanes, WARP};
use crate::machine::Variable;
use crate::memory::PARAM_WINDOW;
use crate::memory::image::Image;
use crate::program::{AccessSpace, BlockOf, Function, Layout, Op, Program, Site};
use scope::Reach;
use words::Reason;

/// The front door: turns a kernel of a module into a runnable [`Program`].
pub struct Emulator;

impl Emulator {
    /// Decodes a kernel and everything that it can call. One with a grid barrier is launched cooperatively, with the
    /// memory that the barrier takes behind its variables.
    ///
    /// # Errors
    /// If there is no such kernel, or if anything in the code that it can reach is not supported:
    /// all such places are listed, before anything runs.
    #[expect(
        clippy::new_ret_no_self,
        reason = "an emulator is made for one kernel: the program"
    )]
    pub fn new(module: &Module, kernel: &str) -> Result<Program, DecodeError> {
        Emulator::decoded(module, kernel, 0, (Workspace::Own, false))
    }

    /// The same, with the module's variables in the slots of memory from this one on
    /// ([`Emulator::variables`]), and with texture and surface objects ([`Device::put_texture`](crate::Device::put_texture)).
    ///
    /// # Errors
    /// As [`Emulator::new`].
    pub fn placed(module: &Module, kernel: &str, first: usize) -> Result<Program, DecodeError> {
        Emulator::decoded(module, kernel, first, (Workspace::None, true))
    }

    /// The same for cooperative launches, whose blocks wait for each other in a workspace: eight bytes of memory at this
    /// address that begin with zeros (`driver_abi.h` of CUDA's cooperative groups).
    ///
    /// # Errors
    /// As [`Emulator::new`].
    pub fn cooperative(
        module: &Module,
        kernel: &str,
        first: usize,
        workspace: u64,
    ) -> Result<Program, DecodeError> {
        Emulator::decoded(module, kernel, first, (Workspace::At(workspace), true))
    }

    fn decoded(
        module: &Module,
        kernel: &str,
        first: usize,
        (workspace, has_textures): (Workspace, bool),
    ) -> Result<Program, DecodeError> {
        let entry = module.kernels().find(|(_, f)| &*f.name == kernel);
        let Some((entry, _)) = entry else {
            return Err(DecodeError::NoKernel(kernel.to_owned()));
        };
        let reach = Reach::of(module, entry);
        let mut decoding = Decoding::new(module, entry, reach, first)?;
        decoding.workspace = match workspace {
            Workspace::Own if decoding.has_grid_barrier() => Some(decoding.image.place_workspace()),
            Workspace::At(address) => Some(address),
            Workspace::Own | Workspace::None => None,
        };
        decoding.has_textures = has_textures;
        decoding.functions();
        decoding.finish(kernel)
    }

    /// The variables of a module that lie in global and constant memory, in the slots from this one on.
    ///
    /// # Errors
    /// One is too large, or its initialiser is damaged.
    pub fn variables(module: &Module, first: usize) -> Result<Vec<Variable>, DecodeError> {
        let image = Image::new(module, &[], Vec::new(), first);
        let image = image.map_err(|error| {
            let (place, reason) = (Place::default(), error.to_string());
            DecodeError::Unsupported(vec![Unsupported { place, reason }])
        })?;
        Ok(image.variables())
    }
}

/// Largest variable, in bytes; well below the room that an allocation has.
pub(crate) const MAX_VARIABLE: u64 = 1 << 32;

/// Most `.local` or `.param` memory of a function per thread, in bytes: what hardware has.
const MAX_PRIVATE: u64 = 512 << 10;

/// Where the blocks of a cooperative launch wait for each other.
#[derive(Clone, Copy)]
enum Workspace {
    /// The launch is none.
    None,
    /// In memory of the program's own, if the kernel has a grid barrier.
    Own,
    /// At this address.
    At(u64),
}

/// Everything that is known while the functions of a program are decoded.
struct Decoding<'m> {
    module: &'m Module,
    lines: LineIndex,
    image: Image,
    entry: FuncId,
    constants: Constants,
    functions: Vec<Function>,
    sites: Vec<Site>,
    /// Where blocks of a cooperative launch wait for each other.
    workspace: Option<u64>,
    ordered: bool,
    fenced: bool,
    heap: bool,
    /// There may be texture and surface objects, and the program names some.
    has_textures: bool,
    textures: bool,
    unsupported: Vec<Unsupported>,
}

/// Immediates, each once.
#[derive(Default)]
struct Constants {
    values: Vec<Lanes>,
    index: std::collections::BTreeMap<u64, u32>,
}

impl Constants {
    fn intern(&mut self, value: u64) -> u32 {
        *self.index.entry(value).or_insert_with(|| {
            self.values.push([value; WARP]);
            self.values.len() as u32 - 1
        })
    }
}

impl<'m> Decoding<'m> {
    fn new(
        module: &'m Module,
        entry: FuncId,
        reach: Reach,
        first: usize,
    ) -> Result<Self, DecodeError> {
        let lines = LineIndex::new(&module.source);
        let place = |reason: Reason| {
            let place = Place {
                function: module.functions[entry].name.to_string(),
                ..Place::default()
            };
            DecodeError::Unsupported(vec![Unsupported { place, reason }])
        };
        if module.header.address_size != 64 {
            return Err(place("32-bit addresses".into()));
        }
        let shared: Vec<VarId> = reach.shared.into_iter().collect();
        let image = Image::new(module, &shared, reach.functions, first);
        let mut image = image.map_err(|error| place(error.to_string()))?;
        for param in &module.functions[entry].params {
            let var = &module.variables[param.var];
            if var.is_open() || var.space != Space::Param {
                return Err(place(format!(
                    "kernel parameter `{}` is no sized .param",
                    var.name
                )));
            }
            image
                .params
                .place(&var.name, var.bytes(), var.alignment().into(), 0);
        }
        Ok(Decoding {
            module,
            lines,
            image,
            entry,
            constants: Constants::default(),
            functions: Vec::new(),
            sites: Vec::new(),
            workspace: None,
            ordered: false,
            fenced: false,
            heap: false,
            has_textures: false,
            textures: false,
            unsupported: Vec::new(),
        })
    }

    /// Does anything that the kernel reaches ask where the grid's barrier lies (`this_grid().sync()`)?
    fn has_grid_barrier(&self) -> bool {
        let reached = self.image.functions.iter();
        let bodies = reached.filter_map(|&id| self.module.functions[id].body.as_ref());
        let mut operands = bodies.flat_map(|body| body.operands.values());
        operands.any(|operand| {
            matches!(
                operand,
                Operand::Special {
                    reg: SpecialReg::EnvReg(1 | 2),
                    ..
                }
            )
        })
    }

    fn functions(&mut self) {
        for number in 0..self.image.functions.len() {
            let func = self.image.functions[number];
            let function = self.function(func);
            self.functions.push(function);
        }
    }

    fn place(&self, func: FuncId, inst: Inst) -> Place {
        let function = &self.module.functions[func];
        let mut place = Place {
            function: function.name.to_string(),
            ..Place::default()
        };
        let Some(body) = &function.body else {
            return place;
        };
        let Some(data) = body.insts.get(inst) else {
            return place;
        };
        let text = self.module.text(data.span);
        place.instruction = text.split_whitespace().collect::<Vec<_>>().join(" ");
        place.span = data.span;
        place.ptx_line = self
            .lines
            .line_col(&self.module.source, data.span.start)
            .line;
        let source = self.module.own_line(func, inst);
        place.source = source.map(|(path, line)| (path.to_owned(), line));
        place
    }

    fn finish(self, kernel: &str) -> Result<Program, DecodeError> {
        if !self.unsupported.is_empty() {
            return Err(DecodeError::Unsupported(self.unsupported));
        }
        let entry = self.image.functions.iter().position(|&f| f == self.entry);
        let block = self.block();
        let entry_registers = self.entry_registers();
        let fenced = self.fenced && self.signals();
        Ok(Program {
            name: kernel.to_owned(),
            kernel: entry.unwrap_or(0),
            functions: self.functions,
            constants: self.constants.values,
            image: self.image,
            sites: self.sites,
            ordered: self.ordered || self.workspace.is_some(),
            cooperative: self.workspace.is_some(),
            fenced,
            heap: self.heap,
            textures: self.textures,
            entry_registers,
            block,
        })
    }

    /// Is anything written that another block may learn from what comes before? A fence orders nothing without (PTX ISA,
    /// 'Memory Consistency Model': release patterns end with a strong write).
    fn signals(&self) -> bool {
        let mut steps = self.functions.iter().flat_map(|f| &f.code);
        steps.any(|step| match &step.op {
            Op::Atomic(atomic) => atomic.access.space != AccessSpace::Shared,
            Op::Store { access, .. } => {
                let text = &self.sites[step.site as usize].place.instruction;
                let strong = [".volatile", ".relaxed", ".release", ".mmio"];
                access.space != AccessSpace::Shared && strong.iter().any(|w| text.contains(w))
            }
            Op::Atomic128 { .. } | Op::Mbarrier { .. } | Op::CopyBulk(_) | Op::Call { .. } => true,
            _ => false,
        })
    }

    /// Blocks that the kernel's directives take.
    fn block(&self) -> BlockOf {
        let kernel = &self.module.functions[self.entry];
        let is_cluster = |kind: &DirectiveKind| match kind {
            DirectiveKind::ReqNctaPerCluster(dims) => dims.full() != [1, 1, 1],
            _ => false,
        };
        BlockOf {
            required: kernel.req_ntid(),
            most: kernel.max_ntid(),
            clustered: kernel.directives.iter().any(|d| is_cluster(&d.kind)),
        }
    }

    /// Registers of a thread at entry as ptxas takes them from a kernel's directives; without any it ignores
    /// `setmaxnreg` (its message C7508).
    fn entry_registers(&self) -> Option<u32> {
        let directives = &self.module.functions[self.entry].directives;
        let find =
            |pick: fn(&DirectiveKind) -> Option<u32>| directives.iter().find_map(|d| pick(&d.kind));
        let named = find(|d| match d {
            DirectiveKind::MaxNreg(n) => Some(*n),
            _ => None,
        });
        let threads = find(|d| match d {
            DirectiveKind::MaxNtid(dims) | DirectiveKind::ReqNtid(dims) => {
                dims.0.iter().try_fold(1u32, |all, &n| all.checked_mul(n))
            }
            _ => None,
        });
        let blocks = find(|d| match d {
            DirectiveKind::MinNctaPerSm(n) => Some(*n),
            _ => None,
        });
        named.or_else(|| {
            let gpu = warpwright_target::lookup(self.module.header.targets.first()?).ok()?;
            warpwright_target::desired_registers(&gpu, threads?, blocks.unwrap_or(1).max(1))
        })
    }

    /// The functions without a body that calls may still name.
    fn host_function(name: &str) -> Option<crate::program::HostFunction> {
        use crate::program::HostFunction;
        Some(match name {
            "vprintf" => HostFunction::Printf,
            "malloc" => HostFunction::Malloc,
            "free" => HostFunction::Free,
            "__assertfail" => HostFunction::AssertFail,
            _ => return None,
        })
    }

    fn layout_of(
        &self,
        func: FuncId,
        space: Space,
    ) -> (Layout, Vec<(warpwright_ptx::ir::VarId, u64)>) {
        let mut layout = Layout::default();
        let mut addresses = Vec::new();
        let function = &self.module.functions[func];
        let formal = function
            .params
            .iter()
            .chain(&function.returns)
            .map(|p| p.var);
        let own = function.body.iter().flat_map(|b| b.vars.iter().copied());
        let mut seen = BTreeSet::new();
        for var in formal.chain(own).filter(|&v| seen.insert(v)) {
            let data = &self.module.variables[var];
            if data.space != space
                || (space == Space::Param
                    && func == self.entry
                    && function.params.iter().any(|p| p.var == var))
            {
                continue;
            }
            let gap = if layout.regions.is_empty() { 0 } else { 16 };
            let start = layout.place(&data.name, data.bytes(), data.alignment().into(), gap);
            addresses.push((var, start));
        }
        if space == Space::Param && func == self.entry {
            let params = function.params.iter().zip(&self.image.params.regions);
            addresses.extend(params.map(|(p, region)| (p.var, PARAM_WINDOW + region.start)));
        }
        (layout, addresses)
    }
}
