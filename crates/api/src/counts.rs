//! How often a warp executes each instruction: counted in the emulator, where a launch description says how.
//!
//! Loops are the reason: the model takes each level of them for ten turns, which is wrong by much where a loop has two.

use std::collections::HashMap;

use warpwright_emu::{Emulator, Options, Outcome};
use warpwright_flow::Function as _;
use warpwright_launch::Launch;
use warpwright_ptx::{FuncId, Module};
use warpwright_sass::Elf;
use warpwright_sass::function::{Calls, Code};

use crate::optimise::launch_among;

/// A launch that is run to count, and the first contents of its buffers.
#[derive(Debug, Clone)]
pub struct Counted {
    /// The launch.
    pub launch: Launch,
    /// The contents of [`Launch::buffers`].
    pub inputs: Vec<Vec<u8>>,
    /// What it is, in words.
    pub at: String,
    /// Somebody described it, and wants to know if it could not be counted.
    pub is_described: bool,
}

/// Blocks that are run: a few where each takes long, else enough to count.
const FEW: u64 = 4;
const BLOCKS: u64 = 24;
/// Warp instructions that are long: tens of milliseconds.
const LONG: u64 = 1 << 18;
/// Warp instructions of a block, and of all blocks: some seconds.
const OF_BLOCK: u64 = 1 << 24;
const OF_ALL: u64 = 1 << 27;

impl Counted {
    /// How often a warp executes each instruction of a kernel's PTX, on average, by its index. `None` for another kernel,
    /// where it does not come to its end, and where half of the instructions are not executed at all.
    pub(crate) fn of(
        &self,
        module: &Module,
        id: FuncId,
        kernel: &str,
        file: &str,
    ) -> Option<Vec<f64>> {
        let kernels: Vec<String> = module.kernels().map(|(_, f)| f.name.to_string()).collect();
        let launch = launch_among(&self.launch, file, &kernels).ok()?;
        if launch.kernel != kernel {
            return None;
        }
        let emulator = Emulator::new(module, kernel).ok()?;
        let run = |blocks| {
            let options = Options {
                budget: OF_BLOCK,
                total: OF_ALL,
                sample: Some(blocks),
                ..Options::default()
            };
            match emulator.run(&launch, self.inputs.clone(), &options) {
                Ok(Outcome::Finished(results)) => Some(results),
                _ => None,
            }
        };
        let mut results = run(FEW)?;
        let all: u64 = launch.grid.iter().map(|&n| u64::from(n)).product();
        if all > FEW && results.statistics.warp_instructions < LONG {
            results = run(BLOCKS)?;
        }
        let body = module.functions[id].body.as_ref()?;
        let mut counts = vec![0.0; body.insts.len()];
        let own = results.statistics.instructions.iter();
        for of in own.filter(|of| of.function == id) {
            counts[of.inst.as_u32() as usize] += of.warps as f64;
        }
        // All warps of the blocks that ran begin at the first instruction.
        let warps = counts.first().copied().filter(|&warps| warps > 0.0)?;
        counts.iter_mut().for_each(|count| *count /= warps);
        // Where nearly all of the kernel is passed by, the launch is no example of it.
        let executed = counts.iter().filter(|&&count| count > 0.0).count();
        (2 * executed > counts.len()).then_some(counts)
    }
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
