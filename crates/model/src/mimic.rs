//! A mimic of the greedy-then-oldest warp scheduler (CRAT, section 4.1, figure 10 b).
//!
//! One scheduler of an SM, with its share of the warps and of the memory bandwidth. A warp goes
//! through its segments: it occupies the scheduler for the issue cycles, then waits for the
//! segment's memory accesses. The scheduler stays with a warp while it can go on (greedy) and then
//! takes the oldest that can. A block that ends makes room for the next.
//!
//! Departure from the paper: a segment's arithmetic latency, beyond what it takes to issue, does
//! not occupy the scheduler, because other warps issue in its gaps.

/// A segment at a given residency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Cycles that it occupies the scheduler.
    pub issue: f64,
    /// Cycles that it takes alone, memory aside.
    pub alone: f64,
    /// Cycles until its memory accesses come back, if nobody else uses the memory; 0: none.
    pub latency: f64,
    /// Cycles that they occupy the scheduler's share of the memory system.
    pub transfer: f64,
}

/// What the mimic saw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// Cycles until all blocks were done.
    pub cycles: f64,
    /// Blocks that had issued something when the first one was done.
    pub involved: u32,
}

struct Warp {
    block: u32,
    next: usize,
    /// When it can go on; never, once all its segments have issued.
    ready: f64,
    /// When the last segment that it issued is over.
    back: f64,
}

/// Runs `blocks` blocks of `warps` warps each, `resident` at a time.
pub fn mimic(work: &[Work], warps: u32, resident: u32, blocks: u32) -> Run {
    let mut run = Run {
        cycles: 0.0,
        involved: 0,
    };
    if work.is_empty() || warps == 0 {
        return run;
    }
    let mut active: Vec<Warp> = Vec::new();
    let mut started = 0;
    let mut begin = |active: &mut Vec<Warp>, now: f64| {
        if started < blocks {
            active.extend((0..warps).map(|_| Warp {
                block: started,
                next: 0,
                ready: now,
                back: now,
            }));
            started += 1;
        }
    };
    for _ in 0..resident.max(1) {
        begin(&mut active, 0.0);
    }
    let (mut now, mut memory_free, mut current) = (0.0f64, 0.0f64, 0);
    while !active.is_empty() {
        // Warps stand in the order of their age.
        let at = match active.get(current).filter(|w| w.ready <= now) {
            Some(_) => current,
            None => oldest_ready(&active, now),
        };
        let warp = &mut active[at];
        now = now.max(warp.ready);
        let segment = work[warp.next];
        let issued = now + segment.issue;
        warp.ready = now + segment.alone.max(segment.issue);
        if segment.latency > 0.0 {
            memory_free = memory_free.max(warp.ready) + segment.transfer;
            warp.ready = memory_free.max(warp.ready + segment.latency);
        }
        warp.next += 1;
        warp.back = warp.ready;
        if warp.next == work.len() {
            warp.ready = f64::INFINITY;
        }
        now = issued;
        current = at;
        if run.involved == 0 && warp.next == work.len() {
            let of_first = warp.block;
            let is_done = |w: &Warp| w.block != of_first || w.next == work.len();
            if active.iter().all(is_done) {
                run.involved = involved(&active);
            }
        }
        retire(&mut active, work.len(), &mut run.cycles, &mut begin);
        current = current.min(active.len());
    }
    run
}

/// The oldest warp that is ready, or the first to be.
fn oldest_ready(active: &[Warp], now: f64) -> usize {
    if let Some(at) = active.iter().position(|w| w.ready <= now) {
        return at;
    }
    let earliest = active
        .iter()
        .enumerate()
        .min_by(|(_, a), (_, b)| a.ready.total_cmp(&b.ready));
    earliest.map_or(0, |(at, _)| at)
}

/// Blocks of which some warp has issued.
fn involved(active: &[Warp]) -> u32 {
    let mut blocks: Vec<u32> = active
        .iter()
        .filter(|w| w.next > 0)
        .map(|w| w.block)
        .collect();
    blocks.dedup();
    blocks.len() as u32
}

/// Takes out blocks whose warps have all issued their last segment; each successor may start when
/// the slowest of them is back.
fn retire(
    active: &mut Vec<Warp>,
    length: usize,
    end: &mut f64,
    begin: &mut impl FnMut(&mut Vec<Warp>, f64),
) {
    let mut at = 0;
    while at < active.len() {
        let block = active[at].block;
        let of_block = active[at..].iter().take_while(|w| w.block == block);
        let (count, open, back) = of_block.fold((0, 0, 0.0f64), |(n, open, back), w| {
            (n + 1, open + usize::from(w.next < length), back.max(w.back))
        });
        if open > 0 {
            at += count;
            continue;
        }
        active.drain(at..at + count);
        *end = end.max(back);
        begin(active, back);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(issue: f64, latency: f64, transfer: f64) -> Work {
        Work {
            issue,
            alone: issue,
            latency,
            transfer,
        }
    }

    #[test]
    fn three_of_four_blocks_hide_a_latency_of_two_segments() {
        // Compute 10, wait 20: two other blocks fill the gap, the fourth never starts before the
        // first is done (the shape of the paper's figure 10 b).
        let segments = [work(10.0, 20.0, 0.0); 6];
        let run = mimic(&segments, 1, 4, 8);
        assert_eq!(run.involved, 3);
        let few = mimic(&segments, 1, 2, 8).cycles;
        let three = mimic(&segments, 1, 3, 8).cycles;
        let four = mimic(&segments, 1, 4, 8).cycles;
        assert!(three < few, "{three} {few}");
        assert!(four <= three && four > 0.9 * three, "{four} {three}");
    }

    #[test]
    fn a_block_ends_with_its_slowest_warp() {
        let run = mimic(&[work(10.0, 50.0, 0.0)], 2, 1, 2);
        // Two warps issue one after the other; the second comes back at 70, and so does the block.
        assert_eq!(run.cycles, 140.0);
    }

    #[test]
    fn without_waits_one_block_is_enough() {
        let run = mimic(&[work(10.0, 0.0, 0.0); 4], 1, 4, 4);
        assert_eq!(
            run,
            Run {
                cycles: 160.0,
                involved: 1
            }
        );
    }

    #[test]
    fn bandwidth_bounds_what_more_blocks_bring() {
        let segments = [work(1.0, 100.0, 50.0); 4];
        let two = mimic(&segments, 1, 2, 16).cycles;
        let eight = mimic(&segments, 1, 8, 16).cycles;
        assert!(eight >= 50.0 * 4.0 * 16.0, "{eight}");
        assert!(
            two <= 1.1 * eight,
            "two blocks reach the bandwidth: {two} {eight}"
        );
    }

    #[test]
    fn nothing_to_do() {
        assert_eq!(mimic(&[], 4, 4, 4).cycles, 0.0);
    }
}
