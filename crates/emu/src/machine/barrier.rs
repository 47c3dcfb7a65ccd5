//! Barriers of a block: `bar` and `barrier.cta`.
//!
//! A barrier counts threads, in whole warps: a warp has arrived when all its lanes that have not
//! exited have. Without an expected count it waits for every thread of the block that has not
//! exited. What the ISA leaves undefined is a fault: the lanes of a warp coming to an aligned
//! barrier at different instructions, and warps that disagree about the count.

use super::access::Trouble;
use super::block::Block;
use super::warp::{Next, Strand, Wait, Warp};
use crate::fault::FaultKind;
use crate::lanes::{Lanes, Mask, lanes_of};
use crate::program::{Barrier, BarrierKind, Reduce};

/// Named barriers of a block.
const BARRIERS: usize = 16;

/// The barriers of one block.
pub(crate) struct Barriers {
    all: Vec<State>,
}

#[derive(Clone, Debug)]
struct State {
    /// Lanes of each warp that have arrived.
    arrived: Vec<Mask>,
    /// Lanes of each warp that only arrived and do not wait.
    passing: Vec<Mask>,
    /// Expected threads of the current round.
    count: Option<Option<u64>>,
    popc: u64,
    and: bool,
    or: bool,
}

impl State {
    fn new(warps: usize) -> Self {
        State {
            arrived: vec![0; warps],
            passing: vec![0; warps],
            count: None,
            popc: 0,
            and: true,
            or: false,
        }
    }
}

impl Barriers {
    pub fn new(warps: usize) -> Self {
        Barriers {
            all: vec![State::new(warps); BARRIERS],
        }
    }

    /// Releases the barriers that are complete. Did any?
    pub fn release(
        block: &mut Block<'_>,
        warps: &mut [Warp],
    ) -> Result<bool, (usize, Box<Trouble>, Strand)> {
        let mut any = false;
        for id in 0..BARRIERS {
            let Some(state) = block.barriers.all.get(id) else {
                continue;
            };
            if state.count.is_none() || !complete(state, warps) {
                continue;
            }
            any = true;
            let fresh = State::new(warps.len());
            let Some(slot) = block.barriers.all.get_mut(id) else {
                continue;
            };
            let state = std::mem::replace(slot, fresh);
            if let Some(races) = &mut block.shared.races {
                let arrived = |w: &usize| state.arrived[*w] != 0;
                let waiting = |w: &usize| state.arrived[*w] & !state.passing[*w] != 0;
                let all: Vec<usize> = (0..warps.len()).filter(arrived).collect();
                let waiters: Vec<usize> = (0..warps.len()).filter(waiting).collect();
                races.barrier(&all, &waiters);
            }
            for warp in warps.iter_mut() {
                wake(block, warp, id as u32, &state)?;
            }
        }
        Ok(any)
    }
}

/// Have all expected threads arrived?
fn complete(state: &State, warps: &[Warp]) -> bool {
    match state.count {
        None => false,
        Some(None) => warps
            .iter()
            .all(|w| w.live() & !state.arrived[w.index] == 0),
        Some(Some(count)) => {
            let full = |w: &&Warp| {
                let arrived = state.arrived[w.index];
                arrived != 0 && w.live() & !arrived == 0
            };
            32 * warps.iter().filter(full).count() as u64 >= count
        }
    }
}

/// Lets the strands of a warp that wait at a barrier go on.
fn wake(
    block: &mut Block<'_>,
    warp: &mut Warp,
    id: u32,
    state: &State,
) -> Result<(), (usize, Box<Trouble>, Strand)> {
    let mut place = None;
    for index in 0..warp.strands.len() {
        let strand = warp.strands[index].clone();
        if strand.wait != Wait::Barrier(id) {
            continue;
        }
        let Some(barrier) = barrier_at(block, warp, &strand) else {
            continue;
        };
        let here = (strand.frame, strand.pc);
        if barrier.aligned && place.is_some_and(|p| p != here) {
            let message = format!(
                "lanes of warp {} wait at barrier {id} in different places",
                warp.index
            );
            let trouble = Trouble::new(
                FaultKind::BarrierDivergence,
                Warp::first(strand.mask),
                message,
            );
            return Err((warp.index, trouble, strand));
        }
        place = Some(here);
        if let BarrierKind::Reduce { op, dst, .. } = barrier.kind {
            let value = match op {
                Reduce::Popc => state.popc,
                Reduce::And => state.and as u64,
                Reduce::Or => state.or as u64,
            };
            if let Some(frame) = warp.frames.get_mut(strand.frame) {
                let values: Lanes = [value; 32];
                frame.set(dst, strand.mask, &values);
            }
        }
        let strand = &mut warp.strands[index];
        strand.wait = Wait::Ready;
        strand.pc += 1;
    }
    Ok(())
}

fn barrier_at(block: &Block<'_>, warp: &Warp, strand: &Strand) -> Option<Barrier> {
    let frame = warp.frames.get(strand.frame)?;
    let step = block
        .program
        .functions
        .get(frame.function)?
        .code
        .get(strand.pc as usize)?;
    match &step.op {
        crate::program::Op::Barrier(barrier) => Some(*barrier),
        _ => None,
    }
}

impl Warp {
    /// Comes to a barrier with some lanes of a strand.
    pub fn arrive(
        &mut self,
        block: &mut Block<'_>,
        current: usize,
        mask: Mask,
        barrier: &Barrier,
    ) -> Result<Next, Box<Trouble>> {
        let strand = self.strands[current].clone();
        let first = Warp::first(mask);
        let id = self.value(block, strand.frame, barrier.id)[first];
        let count = barrier
            .count
            .map(|c| self.value(block, strand.frame, c)[first]);
        let uniform = |src| {
            let values = self.value(block, strand.frame, src);
            lanes_of(mask).all(|l| values[l] == values[first])
        };
        if !uniform(barrier.id) || !barrier.count.is_none_or(uniform) {
            let message = "the lanes of a warp name different barriers or counts";
            return Err(Trouble::new(FaultKind::BarrierDivergence, first, message));
        }
        if count.is_some_and(|c| c == 0 || c % 32 != 0) {
            let message = format!(
                "a count of {} threads, no multiple of 32",
                count.unwrap_or(0)
            );
            return Err(Trouble::new(FaultKind::BadOperand, first, message));
        }
        let votes = match barrier.kind {
            BarrierKind::Reduce { src, .. } => {
                let values = self.value(block, strand.frame, src);
                lanes_of(mask).fold(0, |m: Mask, l| m | ((values[l] & 1) as Mask) << l)
            }
            _ => 0,
        };
        let index = self.index;
        let Some(state) = block.barriers.all.get_mut(id as usize) else {
            let message = format!("barrier {id}: a block has 16");
            return Err(Trouble::new(FaultKind::BadOperand, first, message));
        };
        if state.count.is_some_and(|known| known != count) {
            let message = format!("warps expect different numbers of threads at barrier {id}");
            return Err(Trouble::new(FaultKind::BarrierDivergence, first, message));
        }
        if state.arrived[index] & mask != 0 {
            let message = format!("a thread comes to barrier {id} again before it is complete");
            return Err(Trouble::new(FaultKind::BarrierDivergence, first, message));
        }
        state.count = Some(count);
        state.arrived[index] |= mask;
        state.popc += votes.count_ones() as u64;
        state.and &= votes == mask;
        state.or |= votes != 0;
        if barrier.kind == BarrierKind::Arrive {
            state.passing[index] |= mask;
            return Ok(Next::Fall);
        }
        // Lanes that the guard keeps out go on; the others stay here until the block releases them.
        let out = strand.mask & !mask;
        if out != 0 {
            self.split(current, out, strand.pc + 1, Wait::Ready);
        }
        if let Some(strand) = self.strands.get_mut(current) {
            strand.wait = Wait::Barrier(id as u32);
        }
        Ok(Next::Reschedule)
    }
}
