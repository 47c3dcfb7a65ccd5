//! How often a warp executes each instruction: counted in the emulator, where a launch description says how.
//!
//! Loops are the reason: the model takes each level of them for ten turns, which is wrong by much where a loop has two.

use std::collections::HashMap;

use warpwright_emu::{
    Contention, DecodeError, EmuError, Emulator, FaultKind, InstructionCount, Options, Outcome,
};
use warpwright_flow::Function as _;
use warpwright_host::{Counted, MOST_BYTES};
use warpwright_launch::{Buffer, ContentsError, Init, Launch, no_files};
use warpwright_model::atomics::Atomics;
use warpwright_ptx::{FuncId, Module};
use warpwright_sass::Elf;
use warpwright_sass::function::{Calls, Code};

use crate::optimise::launch_among;

/// Why a launch is no example of its kernel.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Uncounted {
    /// More than is filled for this; MiB.
    #[error("its buffers take {0} MiB")]
    Large(u64),
    #[error("its buffers cannot be filled")]
    Unfilled,
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Emulator(#[from] EmuError),
    #[error("it takes too long to run in the emulator")]
    Long,
    #[error("it faults: {0}")]
    Faults(String),
    #[error("most of the kernel is passed by")]
    PassedBy,
}

/// What warps execute of a kernel's PTX.
pub(crate) struct Executions {
    /// How often a warp executes each instruction, on average, by its index.
    pub counts: Vec<f64>,
    /// The same as the emulator counted it, with how accesses lie in memory.
    pub instructions: Vec<InstructionCount>,
    /// Its atomic operations, for each warp of the launch.
    pub atomics: Atomics,
    /// The blocks that ran, and those of the launch.
    blocks: (u64, u64),
}

impl Executions {
    /// What was counted, in words: a launch, and how much of it.
    pub fn at(&self, launch: &str) -> String {
        match self.blocks {
            (ran, all) if ran < all => format!("{launch}, in {ran} of its {all} blocks"),
            _ => launch.to_owned(),
        }
    }
}

/// Blocks that are run: a few where each takes long, else enough to count.
const FEW: u64 = 4;
const BLOCKS: u64 = 24;
/// Warp instructions that are long: tens of milliseconds.
const LONG: u64 = 1 << 18;
/// Warp instructions of a block, and of all blocks: some seconds. Less where nobody asked for this launch.
const OF_BLOCK: u64 = 1 << 24;
const OF_BLOCK_UNASKED: u64 = 1 << 22;
const OF_ALL: u64 = 1 << 27;
/// Bytes of buffers that take longer to fill than some blocks to run.
const LARGE: u64 = 32 << 20;
fn inputs(counted: &Counted) -> Option<Vec<Vec<u8>>> {
    let file = |name: &str| -> Result<Vec<u8>, ContentsError> {
        let path = counted.folder.join(name);
        let read = || match std::fs::metadata(&path)? {
            found if found.is_file() && found.len() <= MOST_BYTES => std::fs::read(&path),
            _ => Err(std::io::ErrorKind::InvalidInput.into()),
        };
        read().map_err(|e| ContentsError::Reader(e.to_string().into()))
    };
    let all = counted.launch.buffers();
    all.map(|buffer| match repeats(buffer) {
        true => repeated(buffer),
        false => buffer.materialize(&file).ok(),
    })
    .collect()
}

/// What warps execute of a kernel, or why that cannot be counted. `None` for another kernel.
pub(crate) fn executed_by(
    counted: &Counted,
    module: &Module,
    id: FuncId,
    kernel: &str,
    file: &str,
) -> Option<Result<Executions, Uncounted>> {
    let kernels: Vec<String> = module.kernels().map(|(_, f)| f.name.to_string()).collect();
    let launch = launch_among(&counted.launch, file, &kernels).ok()?;
    let found = || executed(counted, module, id, &launch);
    (launch.kernel == kernel).then(found)
}

fn executed(
    counted: &Counted,
    module: &Module,
    id: FuncId,
    launch: &Launch,
) -> Result<Executions, Uncounted> {
    if !counted.fits() {
        return Err(Uncounted::Large(counted.bytes() >> 20));
    }
    let emulator = Emulator::new(module, &launch.kernel)?;
    let inputs = inputs(counted).ok_or(Uncounted::Unfilled)?;
    let budget = match counted.is_described() {
        true => OF_BLOCK,
        false => OF_BLOCK_UNASKED,
    };
    let run = |inputs, blocks| {
        let options = Options {
            budget,
            total: OF_ALL,
            sample: Some(blocks),
            patterns: true,
            ..Options::default()
        };
        match emulator.run(launch, inputs, &options) {
            Ok(Outcome::Finished(results)) => Ok(results),
            Ok(Outcome::Faulted(fault)) if fault.kind == FaultKind::Budget => Err(Uncounted::Long),
            Ok(Outcome::Faulted(fault)) => Err(Uncounted::Faults(fault.message)),
            Err(error) => Err(error.into()),
        }
    };
    // Where filling the buffers takes longer than running, they are filled once.
    let is_large = counted.bytes() > LARGE;
    let results = match is_large || launch.grid_blocks() <= FEW {
        true => run(inputs, FEW)?,
        false => match run(inputs.clone(), FEW)? {
            few if few.statistics.warp_instructions < LONG => run(inputs, BLOCKS)?,
            few => few,
        },
    };
    let body = module.functions[id]
        .body
        .as_ref()
        .ok_or(Uncounted::PassedBy)?;
    let mut counts = vec![0.0; body.insts.len()];
    let mut instructions = results.statistics.instructions;
    instructions.retain(|of| of.function == id);
    for of in &instructions {
        counts[of.inst.as_u32() as usize] += of.warps as f64;
    }
    // All warps of the blocks that ran begin at the first instruction.
    let warps = counts.first().copied().filter(|&warps| warps > 0.0);
    let warps = warps.ok_or(Uncounted::PassedBy)?;
    counts.iter_mut().for_each(|count| *count /= warps);
    // Where nearly all of the kernel is passed by, the launch is no example of it, unless somebody says that it is.
    let executed = counts.iter().filter(|&&count| count > 0.0).count();
    match counted.is_described() || 2 * executed > counts.len() {
        true => Ok(Executions {
            blocks: (results.statistics.contention.blocks, launch.grid_blocks()),
            counts,
            instructions,
            atomics: atomics(
                &results.statistics.contention,
                (warps, launch.grid_blocks()),
            ),
        }),
        false => Err(Uncounted::PassedBy),
    }
}

/// What the blocks that ran, of so many warps together, say of a launch of so many blocks. A line that most of them go to
/// is taken for one that all blocks go to.
fn atomics(found: &Contention, (warps, blocks): (f64, u64)) -> Atomics {
    let ran = found.blocks.max(1) as f64;
    let is_shared_by_all = 2 * found.line_blocks > found.blocks;
    let of_launch = match is_shared_by_all {
        true => found.line as f64,
        false => found.line as f64 * ran / blocks.max(1) as f64,
    };
    Atomics {
        blocks,
        line: of_launch / warps,
        turns: found.turns as f64 / warps,
    }
}

/// Bytes of random numbers that are made one by one: a large buffer has these again and again, in a tenth of the time.
const MADE: usize = 1 << 20;

/// Is it a large buffer of random numbers that do not go by their place?
fn repeats(buffer: &Buffer) -> bool {
    let is_random = match &buffer.init {
        Init::UniformInt { .. } | Init::Normal { .. } | Init::Bits { .. } => true,
        Init::UniformFloat { ranges, .. } => ranges.len() == 1,
        _ => false,
    };
    is_random && buffer.size() > MADE
}

fn repeated(buffer: &Buffer) -> Option<Vec<u8>> {
    let mut part = buffer.clone();
    part.len = MADE / buffer.ty.size().max(1);
    let part = part.materialize(&no_files).ok()?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(buffer.size()).ok()?;
    while bytes.len() < buffer.size() {
        let left = buffer.size() - bytes.len();
        bytes.extend_from_slice(&part[..part.len().min(left)]);
    }
    Some(bytes)
}

/// The same of machine code whose instructions were made of those of the PTX at `origins`. Copies that ptxas makes of one
/// when it unrolls a loop share its executions; what has no origin is executed as often as what stands before it.
pub(crate) fn of_machine_code(
    counts: &[f64],
    elf: &Elf,
    kernel: &str,
    origins: &[Option<u32>],
) -> Option<Vec<f64>> {
    let code = Code::new(elf, &elf.kernel(kernel).ok()?, Calls::Followed).ok()?;
    let name = |at: usize| {
        let text = code.inst_text(warpwright_flow::Inst(at as u32));
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default().to_owned();
        match first.starts_with('@') {
            true => words.next().unwrap_or_default().to_owned(),
            false => first,
        }
    };
    let mut copies: HashMap<(u32, String), u32> = HashMap::new();
    let names: Vec<String> = (0..code.inst_count()).map(name).collect();
    for (at, name) in names.iter().enumerate() {
        if let Some(origin) = origins.get(at).copied().flatten() {
            *copies.entry((origin, name.clone())).or_default() += 1;
        }
    }
    let mut last = 1.0;
    let mut of = |(at, name): (usize, String)| {
        if let Some(origin) = origins.get(at).copied().flatten() {
            let executed = counts.get(origin as usize).copied().unwrap_or(1.0);
            let copies = copies.get(&(origin, name)).copied().unwrap_or(1);
            last = executed / f64::from(copies.max(1));
        }
        last
    };
    Some(names.into_iter().enumerate().map(&mut of).collect())
}
