//! A launch: is it one that the GPU takes, what is recorded of it, and does its kernel run?

use std::ffi::CString;

use warpwright_emu::{Extents, FaultKind, Options, Spent};
use warpwright_target::{Gpu, LaunchError, Resources, occupancy};
use warpwright_winners::LaunchClass;
use warpwright_winners::lines::{Arguments, Pointer, Stored};
use warpwright_winners::sha256;

use crate::abi::{
    ASSERT, COOPERATIVE_LAUNCH_TOO_LARGE, Code, Data, Dim3, ILLEGAL_ADDRESS, INVALID_CONFIGURATION,
    INVALID_VALUE, LAUNCH_FAILURE, LAUNCH_OUT_OF_RESOURCES, MISALIGNED_ADDRESS, SUCCESS,
};
use crate::again::{Done, price};
use crate::memory::{Block, Digests, is_ours};
use crate::modules::{Function, Needs};
use crate::record::{Kind, Seen};
use crate::state::{Answer, State};

/// Warp instructions that stand for one second of the budget: a fixed number, so that the same budget runs the same
/// kernels everywhere. An estimate of what two cores execute.
pub const SECOND: f64 = 5e6;
/// Contents of allocations are digested up to this size in bytes.
const DIGESTED: u64 = 16 << 20;
/// Kinds of launches that are written when they are first seen.
const AT_ONCE: usize = 64;
/// So many times a program may read back what was not computed before it is taken for one that waits for it.
const PATIENCE: u64 = 1000;

/// A launch with its arguments.
#[derive(Clone)]
pub struct Call {
    /// The function of the program.
    pub function: usize,
    pub extents: Extents,
    pub cooperative: bool,
    /// The bytes of the parameters, if their sizes are known.
    pub params: Option<Vec<u8>>,
}

/// Grid and block.
pub fn extents(grid: Dim3, block: Dim3, dynamic_smem: usize) -> Result<Extents, Code> {
    Ok(Extents {
        grid: grid.array(),
        block: block.array(),
        cluster: None,
        dynamic_smem: u32::try_from(dynamic_smem).map_err(|_| INVALID_VALUE)?,
    })
}

impl State {
    /// Copies the arguments of a launch.
    ///
    /// # Safety
    /// `args` points to a pointer for each of the kernel's parameters.
    pub unsafe fn call(
        &mut self,
        function: Data,
        extents: Extents,
        args: *const Data,
    ) -> Result<Call, Code> {
        let known = self.modules.function(function as usize)?;
        let places = self.parameters(&known)?;
        let gather = |places: Vec<(u64, u64)>| {
            let end = places.last().map_or(0, |&(start, len)| start + len);
            let mut bytes = vec![0; end as usize];
            for (at, (start, len)) in places.into_iter().enumerate() {
                let to = &mut bytes[start as usize..(start + len) as usize];
                // SAFETY: as the caller says; a parameter has as many bytes as the kernel declares.
                unsafe {
                    let from = *args.add(at);
                    std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.as_mut_ptr(), to.len());
                }
            }
            bytes
        };
        Ok(Call {
            function: function as usize,
            extents,
            cooperative: false,
            params: places
                .filter(|places| places.is_empty() || !args.is_null())
                .map(gather),
        })
    }

    /// Launches a kernel.
    pub fn launch(&mut self, call: &Call, in_graph: bool) -> Answer {
        if self.sticky != SUCCESS {
            return Err(self.sticky);
        }
        let gpu = self.gpu()?;
        let function = self.modules.function(call.function)?;
        let needs = self.needs(&function)?;
        let resident = self.admit(&gpu, call, needs)?;
        let digest = self.module(function.module)?.digest.clone();
        let module = digest.unwrap_or_else(|| "-".to_owned());
        let Extents {
            grid,
            block,
            cluster,
            dynamic_smem,
        } = call.extents;
        let class = LaunchClass::new(grid, block, dynamic_smem, cluster.unwrap_or_default());
        let class = class.ok_or(INVALID_CONFIGURATION)?;
        let kind = self.record.launch(&Seen {
            module: &module,
            kernel: &function.name,
            class,
            grid,
            cooperative: call.cooperative,
            in_graph,
            resident,
        });
        let is_new = kind.is_some_and(|kind| kind.is_new);
        if is_new {
            let arguments = self.arguments(call, &function, module, class);
            self.record.arguments(arguments);
        }
        if let Some(kind) = kind {
            self.observe(kind, call, &function);
        }
        // A program may end without a word, or be ended while a kernel runs: the first of each kind are written at once,
        // as long as they are few.
        let now = is_new && self.record.kinds() < AT_ONCE;
        if now {
            self.record.write(self.gpu.as_ref(), now);
        }
        let done = self.execute(call, &function);
        self.record.write(self.gpu.as_ref(), now);
        done
    }

    /// How many blocks an SM holds; or why the GPU does not take the launch.
    fn admit(&self, gpu: &Gpu, call: &Call, needs: Option<Needs>) -> Result<u32, Code> {
        let Extents {
            grid,
            block,
            dynamic_smem,
            ..
        } = call.extents;
        let limits = warpwright_target::BLOCK_DIMENSIONS;
        let is_long = (0..3).any(|at| block[at] > limits[at] || grid[at] > GRID[at]);
        if grid.contains(&0) || block.contains(&0) || is_long {
            return Err(INVALID_CONFIGURATION);
        }
        let threads: u64 = block.iter().map(|&n| u64::from(n)).product();
        if threads > u64::from(gpu.arch.threads.per_block) {
            return Err(INVALID_CONFIGURATION);
        }
        let needs = needs.unwrap_or(Needs {
            registers: 0,
            static_smem: 0,
            local: 0,
            max_threads: None,
        });
        let most = self.dynamic_smem_limit(gpu, call.function, needs.static_smem);
        if dynamic_smem > most {
            return Err(INVALID_VALUE);
        }
        if let Some(most) = needs.max_threads
            && threads > most.iter().map(|&n| u64::from(n)).product()
        {
            return Err(INVALID_VALUE);
        }
        let held = occupancy(gpu, &resources(needs, threads as u32, dynamic_smem));
        let blocks = held.map_err(refusal)?.blocks;
        let all: u64 = grid.iter().map(|&n| u64::from(n)).product();
        let room = gpu
            .typical_sms()
            .map(|sms| u64::from(sms) * u64::from(blocks));
        match call.cooperative && room.is_some_and(|room| all > room) {
            true => Err(COOPERATIVE_LAUNCH_TOO_LARGE),
            false => Ok(blocks),
        }
    }

    /// The most dynamic shared memory that a function may have: what the program set, or what needs no attribute.
    pub fn dynamic_smem_limit(&self, gpu: &Gpu, function: usize, fixed: u32) -> u32 {
        let usual = gpu.arch.shared.per_block.saturating_sub(fixed);
        let set = self.dynamic_smem.get(&function).copied();
        set.map_or(usual, |set| set.max(usual))
    }

    /// What a launch is given; what it reads is kept, if that is wanted.
    fn arguments(
        &mut self,
        call: &Call,
        function: &Function,
        module: String,
        class: LaunchClass,
    ) -> Arguments {
        let bytes = call.params.clone().unwrap_or_default();
        let places = self.parameters(function).ok().flatten().unwrap_or_default();
        let (arena, record) = (&self.arena, &mut self.record);
        let mut digest = |base, block: &Block| {
            let contents = (block.len <= DIGESTED).then(|| arena.bytes(base, block))?;
            let digest = sha256(contents);
            record.contents(&digest, contents);
            Some(digest)
        };
        // Two numbers side by side are no pointer.
        let is_of_one = |at: usize| {
            let mut of = places.iter();
            of.any(|&(start, len)| start <= at as u64 && at as u64 + 8 <= start + len)
        };
        let words = bytes.chunks_exact(8).enumerate();
        let words = words.filter(|(at, _)| is_of_one(8 * at));
        let pointers = words.filter_map(|(at, word)| {
            let address = u64::from_le_bytes(word.try_into().ok()?);
            let (base, block) = arena.find(address).filter(|_| address != 0)?;
            Some(Pointer {
                at: 8 * at as u32,
                allocation: block.number,
                size: block.len,
                offset: address - base,
                digest: digest(base, &block),
            })
        });
        let pointers = pointers.collect();
        let variables = self.modules.variables(function.module);
        let variables = variables.filter_map(|(name, place)| {
            let (base, block) = arena.find(place)?;
            Some(Stored {
                size: block.len,
                digest: digest(base, &block),
                name: name.to_owned(),
            })
        });
        let variables = variables.collect();
        Arguments {
            number: self.record.number,
            pointers,
            variables,
            module,
            class,
            bytes,
            kernel: function.name.to_string(),
        }
    }

    /// What of its parameters is as at the launches before it.
    fn observe(&mut self, kind: Kind, call: &Call, function: &Function) {
        let Some(bytes) = &call.params else { return };
        if !kind.is_new {
            return self.record.goes_on(kind, call.extents.grid, bytes);
        }
        let Ok(Some(places)) = self.parameters(function) else {
            return;
        };
        let places = places.iter().map(|&(at, len)| (at as u32, len as u32));
        let arena = &self.arena;
        let is_pointer = |word| is_ours(word) || arena.find(word).is_some();
        (self.record).begins(kind, bytes, places.collect(), is_pointer);
    }

    /// Runs the kernel, if all before it ran.
    fn execute(&mut self, call: &Call, function: &Function) -> Answer {
        if self.record.gap.is_some() {
            self.record
                .not_computed(&function.name, "an earlier kernel was not computed");
            return Ok(());
        }
        let program = match self.program(function, call.cooperative)? {
            Ok(program) => program,
            Err(why) => {
                self.record.not_computed(&function.name, &why.to_string());
                return Ok(());
            }
        };
        if let Some(what) = self.unread_texture.filter(|_| program.uses_textures()) {
            let why = format!("not supported by the emulator: {what}");
            self.record.not_computed(&function.name, &why);
            return Ok(());
        }
        let before = self.looked(call);
        if let Some(done) = before.as_ref().and_then(|held| self.again.done(call, held)) {
            return self.repeat(done, function);
        }
        self.arena.all_written();
        if program.uses_heap() {
            self.again.heap();
        }
        let options = Options {
            budget: self.work,
            total: self.work,
            sequential: std::process::id() != self.process,
            ..Options::default()
        };
        let params = call.params.clone().unwrap_or_default();
        match program.run_on(&self.arena.device, &call.extents, &params, &options) {
            Err(error) => self.record.not_computed(&function.name, &error.to_string()),
            Ok(Ok(spent)) => {
                self.work = self.work.saturating_sub(spent.work);
                self.again.ran(call, spent.work);
                self.outcome(&spent, function);
                if let Some(before) = before {
                    let bytes = self.arena.unknown();
                    self.work = self.work.saturating_sub(price(bytes));
                    let written = self.arena.changed(&before);
                    self.again.keep(call, before, Done { spent, written });
                }
            }
            Ok(Err(fault)) if fault.kind == FaultKind::Budget => {
                self.work = 0;
                self.record
                    .not_computed(&function.name, "the budget is spent");
            }
            Ok(Err(fault)) => {
                self.record.fault(&function.name, &fault.to_string());
                match code_of(fault.kind).filter(|_| !self.is_near(fault.address)) {
                    Some(code) => self.sticky = code,
                    None => self.record.not_computed(&function.name, fault.kind.name()),
                }
            }
        }
        Ok(())
    }

    /// What memory holds, where that may tell that a call was computed before.
    fn looked(&mut self, call: &Call) -> Option<Digests> {
        let bytes = self.arena.unknown();
        if !self.again.is_worth(call, bytes) {
            return None;
        }
        self.work = self.work.saturating_sub(price(bytes));
        Some(self.arena.digests())
    }

    /// Does what the same launch did before on the same memory.
    fn repeat(&mut self, done: Done, function: &Function) -> Answer {
        for (base, (digest, bytes)) in done.written {
            self.arena.rewrite(base, digest, &bytes);
        }
        self.outcome(&done.spent, function);
        Ok(())
    }

    /// What is said and shown of a kernel that ran to its end.
    fn outcome(&mut self, spent: &Spent, function: &Function) {
        if spent.is_approximate {
            self.record.approximate(&function.name);
        }
        show(&spent.printed);
    }

    /// Is it an address next to an allocation? A GPU maps whole pages and says nothing there.
    fn is_near(&self, address: Option<u64>) -> bool {
        let distance = address.and_then(|address| self.arena.distance(address));
        distance.is_some_and(|bytes| bytes < warpwright_target::PAGE_BYTES)
    }

    /// The program reads what kernels left.
    pub fn look(&mut self) {
        self.record.looked_at();
        if self.record.gap.is_none() {
            return;
        }
        self.record.looks += 1;
        if self.record.looks > PATIENCE {
            self.record
                .ended("it went on waiting for a result that was not computed");
            self.finish();
            // SAFETY: the end of the process; what it has printed is written.
            unsafe {
                libc::fflush(std::ptr::null_mut());
                libc::_exit(0);
            }
        }
    }

    /// Host and device meet: a fault comes to light here, and memory that both see may be read.
    pub fn meet(&mut self) -> Answer {
        if self.record.minds_looks() && self.arena.is_shared_with_host() {
            self.look();
        }
        self.healthy()
    }

    /// No kernel has done anything wrong.
    pub fn healthy(&self) -> Answer {
        match self.sticky {
            SUCCESS => Ok(()),
            code => Err(code),
        }
    }

    /// The last word.
    pub fn finish(&mut self) {
        self.record.write(self.gpu.as_ref(), true);
    }
}

/// The most blocks along x, y and z.
const GRID: [u32; 3] = warpwright_target::GRID_DIMENSIONS;

/// What a block takes.
pub fn resources(needs: Needs, threads: u32, dynamic_smem: u32) -> Resources {
    Resources::new(needs.registers, threads)
        .static_smem(needs.static_smem)
        .dynamic_smem(dynamic_smem)
}

fn refusal(error: LaunchError) -> Code {
    match error {
        LaunchError::SharedMemoryExceeded { .. } => INVALID_VALUE,
        _ => LAUNCH_OUT_OF_RESOURCES,
    }
}

/// What CUDA says of it. Of what the emulator alone is strict about, nothing.
fn code_of(kind: FaultKind) -> Option<Code> {
    Some(match kind {
        FaultKind::OutOfBounds | FaultKind::UseAfterScope | FaultKind::ReadOnly => ILLEGAL_ADDRESS,
        FaultKind::Misaligned => MISALIGNED_ADDRESS,
        FaultKind::Assertion => ASSERT,
        FaultKind::Trap | FaultKind::BadTarget | FaultKind::StackOverflow => LAUNCH_FAILURE,
        _ => return None,
    })
}

unsafe extern "C" {
    static stdout: *mut libc::FILE;
}

/// What kernels print goes where the program's own output goes, in its order.
fn show(printed: &str) {
    let printed = CString::new(printed.replace('\0', "")).unwrap_or_default();
    if !printed.is_empty() {
        // SAFETY: C's standard output, and a text that ends in a zero.
        unsafe { libc::fputs(printed.as_ptr(), stdout) };
    }
}
