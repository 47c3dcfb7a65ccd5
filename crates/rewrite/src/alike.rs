//! Blocks that are alike: of groups of blocks that do the same to other elements one is compared, and stands for all.
//!
//! A group has the blocks of both sides that write the same output elements. Two groups are alike where their blocks have
//! the same digests in the same order and touch places in the same pattern ([`warpwright_emu::symbolic::Footprint`]):
//! then the n-th place of the one can be exchanged for the n-th of the other, and what is found of an element holds for
//! the one in its place.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use warpwright_emu::symbolic::{Buffer, Digest, Footprint, Options as MachineOptions, Place, Stop};

use crate::Side;

/// Warp instructions that the blocks of a side may take for their records: some seconds.
const BUDGET: u64 = 1 << 27;

/// A side before its only launch.
pub(crate) struct Launched<'s> {
    pub side: &'s Side,
    /// What its buffers hold.
    pub memory: &'s mut Vec<Buffer>,
    /// Place of each of the launch's buffers in it.
    pub places: Vec<usize>,
    /// What each memory is to the first side: the same name is the same memory.
    pub names: Vec<String>,
}

/// What is compared in the place of all.
pub(crate) struct Chosen {
    /// Blocks of each side.
    pub blocks: [Vec<u32>; 2],
    /// Groups of blocks that are compared, and all that there are.
    pub groups: [usize; 2],
    /// For each place that a chosen group writes, how many groups it stands for.
    weights: FxHashMap<Place, usize>,
    /// Places that no block writes.
    untouched: Vec<bool>,
    layout: Layout,
}

impl Chosen {
    /// For how many elements one stands; `None` if it is not compared. Of a word of several elements all count.
    pub fn weight(&self, name: &str, byte: usize) -> Option<usize> {
        let (base, unit, _) = self.layout.of(name)?;
        let place = base + (byte / unit) as Place;
        match self.untouched.get(place as usize) {
            Some(true) => Some(1),
            _ => self.weights.get(&place).copied(),
        }
    }
}

/// Places of memories by name: the first one, bytes of a place, places.
#[derive(Default)]
struct Layout {
    all: BTreeMap<String, (Place, usize, usize)>,
    end: usize,
}

impl Layout {
    fn of(&self, name: &str) -> Option<(Place, usize, usize)> {
        self.all.get(name).copied()
    }

    /// The first place of a memory; `None` where it is another one on the other side, or where there are too many.
    fn place(&mut self, name: &str, buffer: &Buffer) -> Option<Place> {
        let unit = (buffer.bits as usize / 8).max(4);
        let count = (buffer.len as usize).div_ceil(unit);
        let base = Place::try_from(self.end).ok()?;
        if let Some(&(base, own, places)) = self.all.get(name) {
            return ((own, places) == (unit, count)).then_some(base);
        }
        self.end += count;
        self.all.insert(name.to_owned(), (base, unit, count));
        Place::try_from(self.end).ok().map(|_| base)
    }
}

/// The groups that stand for all; `None` where nothing is spared, or where it is not known.
///
/// # Errors
/// A fault, which a run on terms would find, too.
pub(crate) fn chosen(
    sides: &mut [Launched<'_>; 2],
    outputs: &[String],
    options: &MachineOptions,
) -> Result<Option<Chosen>, (usize, Stop)> {
    // A block that does all that its side does is in one group with all that write the same.
    let is_one = |side: &Launched<'_>| side.side.steps[0].launch.grid_blocks() == 1;
    if sides.iter().any(is_one) {
        return Ok(None);
    }
    let mut layout = Layout::default();
    let mut all: Vec<Vec<Footprint>> = Vec::new();
    let options = &MachineOptions {
        budget: options.budget.min(BUDGET),
        ..options.clone()
    };
    for (at, side) in sides.iter_mut().enumerate() {
        match footprints(side, &mut layout, options) {
            Ok(found) => all.push(found),
            Err(Stop::Refused(..) | Stop::Launch(_)) => return Ok(None),
            Err(fault) => return Err((at, fault)),
        }
    }
    let [Some(first), Some(second)] = [all.first(), all.get(1)] else {
        return Ok(None);
    };
    let groups = Groups::of([first, second], layout.end);
    let written = groups
        .owners
        .iter()
        .enumerate()
        .filter(|(_, owner)| **owner != 0);
    let is_output = |place: usize| {
        let mut spans = outputs.iter().filter_map(|name| layout.of(name));
        spans.any(|(base, _, count)| (base as usize..base as usize + count).contains(&place))
    };
    if written.into_iter().any(|(place, _)| !is_output(place)) {
        return Ok(None);
    }
    Ok(groups.chosen([first, second], layout))
}

fn footprints(
    side: &mut Launched<'_>,
    layout: &mut Layout,
    options: &MachineOptions,
) -> Result<Vec<Footprint>, Stop> {
    let step = &side.side.steps[0];
    let names = &side.names;
    let mut at = 0;
    let mut bases = |buffer: &Buffer| {
        // Variables of the module stand behind what is described: each side has its own.
        let name = names.get(at).cloned();
        let name = name.unwrap_or_else(|| format!("{} of {}", buffer.name, side.side.name));
        at += 1;
        layout.place(&name, buffer)
    };
    let places = &side.places;
    step.program
        .footprints(&step.launch, side.memory, places, &mut bases, options)
}

/// Blocks of both sides that write the same places.
struct Groups {
    /// For each place the block that writes it, from 1: those of the second side stand behind those of the first.
    owners: Vec<u32>,
    parents: Vec<u32>,
}

impl Groups {
    fn of(sides: [&[Footprint]; 2], places: usize) -> Groups {
        let [a, b] = sides;
        let mut groups = Groups {
            owners: vec![0; places],
            parents: (0..(a.len() + b.len()) as u32).collect(),
        };
        for (block, footprint) in a.iter().chain(b).enumerate() {
            for &place in &footprint.written {
                let Some(owner) = groups.owners.get(place as usize).copied() else {
                    continue;
                };
                match owner {
                    0 => groups.owners[place as usize] = block as u32 + 1,
                    other => groups.unite(other - 1, block as u32),
                }
            }
        }
        groups
    }

    fn root(&mut self, mut block: u32) -> u32 {
        while self.parents[block as usize] != block {
            let above = self.parents[self.parents[block as usize] as usize];
            self.parents[block as usize] = above;
            block = above;
        }
        block
    }

    fn unite(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b) as usize] = a.min(b);
    }

    /// The first group of each kind.
    fn chosen(mut self, [a, b]: [&[Footprint]; 2], layout: Layout) -> Option<Chosen> {
        let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for block in 0..(a.len() + b.len()) as u32 {
            members.entry(self.root(block)).or_default().push(block);
        }
        let footprints: Vec<&Footprint> = a.iter().chain(b).collect();
        let mut names = Names::new(layout.end);
        let mut kinds: FxHashMap<Digest, (Vec<u32>, usize)> = FxHashMap::default();
        let all = members.len();
        for (number, (_, blocks)) in members.into_iter().enumerate() {
            let mut digest = Digest::default();
            for &block in &blocks {
                digest.mix(u64::from(block as usize >= a.len()));
                digest.join(footprints[block as usize].digest);
                let touched = &footprints[block as usize].touched;
                digest.mix(touched.len() as u64);
                for &place in touched {
                    digest.mix(names.of(number as u32, place));
                }
            }
            kinds.entry(digest).or_insert((blocks, 0)).1 += 1;
        }
        if kinds.len() == all {
            return None;
        }
        let mut chosen = Chosen {
            blocks: [Vec::new(), Vec::new()],
            groups: [kinds.len(), all],
            weights: FxHashMap::default(),
            untouched: self.owners.iter().map(|&owner| owner == 0).collect(),
            layout,
        };
        for (blocks, count) in kinds.into_values() {
            for block in blocks {
                for &place in &footprints[block as usize].written {
                    chosen.weights.insert(place, count);
                }
                match (block as usize).checked_sub(a.len()) {
                    None => chosen.blocks[0].push(block),
                    Some(block) => chosen.blocks[1].push(block as u32),
                }
            }
        }
        chosen
            .blocks
            .iter_mut()
            .for_each(|side| side.sort_unstable());
        Some(chosen)
    }
}

/// Numbers of places in the order in which a group touches them.
struct Names {
    /// The group, from 1, and the number.
    all: Vec<(u32, u32)>,
    next: u32,
    group: u32,
}

impl Names {
    fn new(places: usize) -> Names {
        Names {
            all: vec![(0, 0); places],
            next: 0,
            group: u32::MAX,
        }
    }

    fn of(&mut self, group: u32, place: Place) -> u64 {
        if group != self.group {
            (self.group, self.next) = (group, 0);
        }
        let known = &mut self.all[place as usize];
        if known.0 != group + 1 {
            *known = (group + 1, self.next);
            self.next += 1;
        }
        u64::from(known.1)
    }
}
