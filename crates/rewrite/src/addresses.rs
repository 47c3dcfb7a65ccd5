//! Launches that are too large for terms: their addresses alone, in some of their blocks.
//!
//! An index of 32 bits that overflows shows at no small size. Without data a block of any launch runs, so what a
//! description claims of large sizes is looked at: the first and the last block, and others as far apart.

use warpwright_emu::symbolic::{Buffer, Met, Options as MachineOptions, Stop, Visited};

use crate::standing::{Which, Why};
use crate::{Side, Step};

/// How much of a launch is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Blocks.
    pub blocks: u64,
    /// Warp instructions that they may take together.
    pub budget: u64,
}

impl Look {
    /// At a size that is described.
    pub const THOROUGH: Look = Look {
        blocks: 64,
        budget: 1 << 21,
    };
    /// At one that nobody has described.
    pub const QUICK: Look = Look {
        blocks: 64,
        budget: 1 << 18,
    };
    /// At one of many.
    pub const SHORT: Look = Look {
        blocks: 12,
        budget: 1 << 17,
    };
}

/// Blocks that were looked at, of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Those that ran to their end.
    pub blocks: u64,
    /// All of the launches.
    pub of: u64,
    /// One that wrote nothing to memory, other than by an atomic operation.
    pub silent: Option<u32>,
    /// Where two of them wrote to one place.
    pub met: Option<Met>,
    /// Where two threads of one of them did.
    pub twice: Option<Met>,
}

/// Runs blocks of a side's launches for their addresses. [`Step::contents`] is not read. `None`: what is done here does not
/// tell, since addresses or branches are made of data.
///
/// # Errors
/// [`Why`]: a fault.
pub fn addresses(side: &Side, which: Which, look: Look) -> Result<Option<Looked>, Why> {
    let mut all = Looked::default();
    for step in &side.steps {
        match blocks_of(step, look) {
            Ok(visited) => {
                all.blocks += visited.blocks as u64;
                all.of += step.launch.grid_blocks();
                all.silent = all.silent.or(visited.silent);
                all.met = all.met.or(visited.met);
                all.twice = all.twice.or(visited.twice);
            }
            Err(Stop::Fault(fault)) => return Err(Why::Faulty { which, fault }),
            Err(Stop::Refused(..) | Stop::Launch(_)) => return Ok(None),
        }
    }
    Ok(Some(all))
}

fn blocks_of(step: &Step, look: Look) -> Result<Visited, Stop> {
    let launch = &step.launch;
    let bare = |buffer: &warpwright_launch::Buffer| {
        let bytes = buffer.len as u64 * buffer.ty.size() as u64;
        Buffer::bare(&buffer.name, buffer.ty, bytes)
    };
    let mut memory: Vec<Buffer> = launch.buffers().map(bare).collect();
    let places: Vec<usize> = (0..memory.len()).collect();
    let options = MachineOptions {
        budget: look.budget,
        ..MachineOptions::default()
    };
    let mut blocks = some_of(launch.grid_blocks(), look.blocks);
    let edges = around_edges(step).into_iter();
    let new: Vec<u32> = edges.filter(|block| !blocks.contains(block)).collect();
    // Behind the last block and the first one.
    let behind = blocks.len().min(2);
    blocks.splice(behind..behind, new);
    let program = &step.program;
    program.addresses(launch, &mut memory, &places, &blocks, &options)
}

/// Elements, or bytes, at which numbers of fewer bits end.
const EDGES: [u64; 6] = [1 << 15, 1 << 16, 1 << 24, 1 << 31, 1 << 32, 1 << 33];

/// The blocks that come to the elements, and bytes, of the largest buffer at which numbers of fewer bits end, if blocks
/// take elements in order; and those beside them.
fn around_edges(step: &Step) -> Vec<u32> {
    let buffers = step.launch.buffers();
    let Some(largest) = buffers.max_by_key(|buffer| buffer.size()) else {
        return Vec::new();
    };
    let all = step.launch.grid_blocks();
    let (elements, bytes) = (largest.len as u64, largest.size() as u64);
    let ends = |of: u64| EDGES.into_iter().filter(move |&edge| edge < of);
    let number = |edge: u64, of: u64| (u128::from(all) * u128::from(edge) / u128::from(of)) as u64;
    let of_elements = ends(elements).map(|edge| number(edge, elements));
    let numbers = of_elements.chain(ends(bytes).map(|edge| number(edge, bytes)));
    let beside = numbers.flat_map(|n| [n, n + 1, n.saturating_sub(1)]);
    let mut blocks: Vec<u32> = Vec::new();
    for block in beside.filter(|&n| n < all) {
        match u32::try_from(block) {
            Ok(block) if !blocks.contains(&block) => blocks.push(block),
            _ => {}
        }
    }
    blocks
}

/// The last block, the first one, and others in between.
fn some_of(all: u64, count: u64) -> Vec<u32> {
    let last = all.saturating_sub(1);
    let between =
        (1..count - 1).map(|at| (u128::from(last) * u128::from(at) / u128::from(count - 1)) as u64);
    let mut blocks = vec![last, 0];
    for block in between {
        if !blocks.contains(&block) {
            blocks.push(block);
        }
    }
    blocks.truncate(all as usize);
    blocks
        .into_iter()
        .filter_map(|n| u32::try_from(n).ok())
        .collect()
}
