//! Where sides of a branch meet again, which registers anybody reads there, and which steps pass a barrier by.

use crate::program::{Function, Op, Src, Step};

/// A function's control flow, step by step.
pub(crate) struct Flow {
    /// The first step that every path from here comes to, or the number of steps: the end.
    meets: Vec<u32>,
    /// Registers live at the entry of each step, as bits.
    live: Vec<Vec<u64>>,
}

fn successors(function: &Function, at: usize) -> Vec<usize> {
    let step = &function.code[at];
    let end = function.code.len();
    let mut next = Vec::new();
    match &step.op {
        Op::Branch { target } => next.push(*target as usize),
        Op::BranchTable { targets, .. } => next.extend(targets.iter().map(|&t| t as usize)),
        Op::Return | Op::Exit | Op::Trap => next.push(end),
        _ => next.push(at + 1),
    }
    let falls = step.guard.is_some()
        && matches!(
            step.op,
            Op::Branch { .. } | Op::BranchTable { .. } | Op::Return | Op::Exit | Op::Trap
        );
    if falls {
        next.push(at + 1);
    }
    next.iter_mut().for_each(|n| *n = (*n).min(end));
    next.sort_unstable();
    next.dedup();
    next
}

fn all_successors(function: &Function) -> Vec<Vec<usize>> {
    let all = 0..function.code.len();
    all.map(|at| successors(function, at)).collect()
}

/// The steps that may come behind one.
pub(crate) fn reached(code: &[Step], from: u32) -> Vec<bool> {
    let mut reached = vec![false; code.len()];
    let mut stack = vec![from];
    while let Some(pc) = stack.pop() {
        let Some(step) = code.get(pc as usize) else {
            continue;
        };
        if std::mem::replace(&mut reached[pc as usize], true) {
            continue;
        }
        let falls = match &step.op {
            Op::Branch { target } => {
                stack.push(*target);
                step.guard.is_some()
            }
            Op::BranchTable { targets, .. } => {
                stack.extend(targets.iter());
                step.guard.is_some()
            }
            Op::Return | Op::Exit => step.guard.is_some(),
            _ => true,
        };
        if falls {
            stack.push(pc + 1);
        }
    }
    reached
}

/// The steps at which lanes have passed a barrier by at which others of their warp wait: those behind it from which there
/// is a way around it. In a loop what is ahead of it is behind it, too.
///
/// All threads of a warp must execute an aligned barrier, or have exited (PTX ISA, `barrier`; CUDA C++ Programming
/// Guide, 'Independent Thread Scheduling').
pub(crate) fn strays(function: &Function, barrier: u32) -> Vec<bool> {
    let code = &function.code;
    match code.get(barrier as usize).map(|step| &step.op) {
        Some(Op::Barrier(barrier)) if barrier.aligned => {}
        _ => return vec![false; code.len()],
    }
    let meets = post_dominators(&all_successors(function));
    let must_come = |at: usize| {
        let mut way =
            std::iter::successors(Some(at), |&at| meets.get(at).map(|&next| next as usize));
        way.any(|at| at == barrier as usize)
    };
    let behind = reached(code, barrier + 1).into_iter().enumerate();
    behind
        .map(|(at, is_behind)| is_behind && !must_come(at))
        .collect()
}

impl Flow {
    pub fn of(function: &Function) -> Flow {
        let next = all_successors(function);
        Flow {
            meets: post_dominators(&next),
            live: liveness(function, &next),
        }
    }

    /// The immediate post-dominator of a step; the number of steps where it is the end.
    pub fn meets(&self, at: u32) -> u32 {
        self.meets
            .get(at as usize)
            .copied()
            .unwrap_or(self.meets.len() as u32)
    }

    pub fn is_live(&self, at: u32, reg: u32) -> bool {
        let word = self
            .live
            .get(at as usize)
            .and_then(|l| l.get(reg as usize / 64));
        word.is_some_and(|word| word >> (reg % 64) & 1 != 0)
    }
}

/// Cooper, Harvey and Kennedy's iteration on the reversed graph, whose root is the end.
fn post_dominators(next: &[Vec<usize>]) -> Vec<u32> {
    let end = next.len();
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); end + 1];
    for (at, all) in next.iter().enumerate() {
        all.iter().for_each(|&n| before[n].push(at));
    }
    // Post-order of the reversed graph.
    let mut order = Vec::new();
    let mut number = vec![usize::MAX; end + 1];
    let mut seen = vec![false; end + 1];
    let mut stack = vec![(end, 0)];
    seen[end] = true;
    while let Some((at, child)) = stack.pop() {
        match before[at].get(child) {
            Some(&p) => {
                stack.push((at, child + 1));
                if !seen[p] {
                    seen[p] = true;
                    stack.push((p, 0));
                }
            }
            None => {
                number[at] = order.len();
                order.push(at);
            }
        }
    }
    let mut meets = vec![usize::MAX; end + 1];
    meets[end] = end;
    let mut changed = true;
    while changed {
        changed = false;
        for &at in order.iter().rev().filter(|&&at| at != end) {
            let mut best = usize::MAX;
            for &n in &next[at] {
                if meets[n] == usize::MAX {
                    continue;
                }
                best = match best {
                    usize::MAX => n,
                    other => intersect(&meets, &number, other, n),
                };
            }
            if best != meets[at] {
                meets[at] = best;
                changed = true;
            }
        }
    }
    meets[..end]
        .iter()
        .map(|&m| {
            if m == usize::MAX {
                end as u32
            } else {
                m as u32
            }
        })
        .collect()
}

fn intersect(meets: &[usize], number: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while number[a] < number[b] {
            a = meets[a];
        }
        while number[b] < number[a] {
            b = meets[b];
        }
    }
    a
}

fn liveness(function: &Function, next: &[Vec<usize>]) -> Vec<Vec<u64>> {
    let words = function.regs.div_ceil(64);
    let mut live = vec![vec![0u64; words]; function.code.len() + 1];
    let mut changed = true;
    while changed {
        changed = false;
        for at in (0..function.code.len()).rev() {
            let step = &function.code[at];
            let mut out = vec![0u64; words];
            for &n in &next[at] {
                out.iter_mut().zip(&live[n]).for_each(|(o, l)| *o |= l);
            }
            // A guarded write need not happen.
            if step.guard.is_none() {
                step.writes.iter().for_each(|&reg| clear(&mut out, reg));
            }
            step.reads.iter().for_each(|&reg| set(&mut out, reg));
            if let Some(guard) = step.guard {
                set(&mut out, guard.reg);
            }
            if let Op::Alu { srcs, .. } = &step.op {
                for src in srcs {
                    if let Src::Reg(reg) = src {
                        set(&mut out, *reg);
                    }
                }
            }
            if out != live[at] {
                live[at] = out;
                changed = true;
            }
        }
    }
    live
}

fn set(words: &mut [u64], reg: u32) {
    if let Some(word) = words.get_mut(reg as usize / 64) {
        *word |= 1 << (reg % 64);
    }
}

fn clear(words: &mut [u64], reg: u32) {
    if let Some(word) = words.get_mut(reg as usize / 64) {
        *word &= !(1 << (reg % 64));
    }
}
