//! Inputs that showed a difference at one launch, tried at another one of other sizes.

use warpwright_launch::ElemType;

use crate::Side;
use crate::pairing::{self, Known, Paired};
use crate::standing::{AtLaunch, Standing, Which, Why};
use crate::tested::{self, Filling, Memory, Ran, Scale, differences, filled, run_within};

/// Inputs on which two kernels differ, and where they do.
#[derive(Clone, Debug)]
pub struct Witness {
    /// What the original's buffers hold.
    memory: Memory,
    /// The output element that showed it.
    index: usize,
}

/// Warp instructions of a block, and of all blocks, of each.
const BUDGET: tested::Budget = [1 << 20, 1 << 22];

impl Witness {
    /// What shows the difference at a launch, where numbers do.
    pub fn of(found: &AtLaunch) -> Option<Witness> {
        found.why.iter().find_map(|why| match why {
            Why::Shown { index, witness, .. } => Some(Witness {
                memory: witness[0].clone(),
                index: *index,
            }),
            _ => None,
        })
    }

    /// Do buffers hold numbers of these ranges alone?
    pub fn is_within(&self, ranges: &[(String, ElemType, [f64; 2])]) -> bool {
        ranges.iter().all(|(name, ty, [low, high])| {
            let bytes = self.memory.get(name).into_iter();
            let mut elements = bytes.flat_map(|bytes| bytes.chunks_exact(ty.size()));
            elements.all(|element| (*low..=*high).contains(&ty.to_f64(ty.read(element))))
        })
    }

    /// Refutes what is found at another launch, where its values show a difference there, too: from the element on that
    /// showed it, from the first one on, or that one throughout.
    pub fn tried(&self, a: &Side, b: &Side, paired: &Paired, found: &mut AtLaunch) {
        let fixed = found.why.iter().flat_map(|why| match why {
            Why::Fixed(names) | Why::Stated(names) => &names[..],
            _ => &[],
        });
        let fixed: Vec<String> = fixed.cloned().collect();
        let known = Known {
            fixed: &fixed,
            open: &[],
            ranges: &[],
        };
        let ways = [(self.index, true), (0, true), (self.index, false)];
        let shown = ways.into_iter().find_map(|way| {
            let before = self.memory(a, b, paired, known, way);
            self.shown([a, b], paired, before)
        });
        if let Some(shown) = shown {
            found.standing = Standing::Refuted;
            found.why.push(shown);
        }
    }

    fn shown(&self, [a, b]: [&Side; 2], paired: &Paired, before: [Memory; 2]) -> Option<Why> {
        let mut after = before.clone();
        let [first, second] = &mut after;
        run_within(a, Which::First, first, BUDGET).ok()?;
        run_within(b, Which::Second, second, BUDGET).ok()?;
        let ran = Ran {
            before: &before,
            after: &after,
            budget: BUDGET,
        };
        let how = (Filling::Whole(0), &Scale::new());
        let found = differences([a, b], paired, how, &ran);
        let shown = found.into_iter().find(|difference| !difference.small)?;
        Some(Why::Shown {
            output: shown.output,
            index: shown.index,
            inputs: "the values that show it elsewhere".to_owned(),
            values: shown.values,
            witness: Box::new(before),
        })
    }

    /// What both begin with: data from an element of the witness on, or that one alone.
    fn memory(
        &self,
        a: &Side,
        b: &Side,
        paired: &Paired,
        known: Known<'_>,
        (from, is_turning): (usize, bool),
    ) -> [Memory; 2] {
        let mut memory = filled(a, b, paired, known, Filling::Described);
        for (name, own) in pairing::buffers(a) {
            let is_kept = known.is_kept(&name, &own) || !pairing::is_data(&own);
            let Some(values) = self.memory.get(&name).filter(|_| !is_kept) else {
                continue;
            };
            let step = usize::from(is_turning);
            let Some(bytes) = taken(own.buffer.ty, values, own.bytes.len(), (from, step)) else {
                continue;
            };
            let partner = paired.partner.iter().find(|(_, x)| **x == name);
            if let Some((partner, _)) = partner {
                memory[1].insert(partner.clone(), bytes.clone());
            }
            memory[0].insert(name, bytes);
        }
        memory
    }
}

/// Elements among some values, so many bytes in all.
fn taken(
    ty: ElemType,
    values: &[u8],
    bytes: usize,
    (from, step): (usize, usize),
) -> Option<Vec<u8>> {
    let elements: Vec<&[u8]> = values.chunks_exact(ty.size()).collect();
    let count = elements.len().max(1);
    let one = |at: usize| elements.get((from + step * at) % count).copied();
    let all: Option<Vec<&[u8]>> = (0..bytes / ty.size()).map(one).collect();
    Some(all?.concat())
}
