//! How far apart a warp's accesses to the same sector lie, and so how many of them miss the
//! first-level cache when many warps share it.
//!
//! The distance of an access is the number of different cache lines touched since the sector was
//! last touched (LRU stack distance, Mattson et al. 1970). Warps that run in turns stretch each
//! other's distances: with `w` of them a distance `d` in lines of their own becomes `d · w`, while
//! lines that all blocks read count once.

use crate::sample::Segment;

/// Share of the cache up to which what is reached hits, and from which it misses: fitted, docs/regs.md.
const ALL_HIT: f64 = 0.6;
const NONE_HIT: f64 = 1.5;

/// Distance to the last access of the same sector, in lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Distance {
    private: u32,
    shared: u32,
}

/// What one segment reads.
#[derive(Debug, Clone, PartialEq, Default)]
struct Reads {
    /// Sectors that no access of this warp, and no other warp, touched before.
    cold: u32,
    again: Vec<Distance>,
    /// The same, of sectors that this very segment touched before: a warp's loads between two waits
    /// issue one after the other (greedy), so nobody comes in between.
    within: Vec<Distance>,
}

/// The reuse of a sampled warp, segment by segment.
#[derive(Debug, Clone, PartialEq)]
pub struct Reuse {
    segments: Vec<Reads>,
}

impl Reuse {
    /// The reuse in a warp's `segments`. Lines that `other`, a warp of another block, reads too are
    /// shared by all.
    pub fn new(segments: &[Segment], other: &[Segment], line_bytes: u32) -> Self {
        let line = |sector: i64| sector.div_euclid(i64::from(line_bytes));
        let elsewhere = sorted(touched(other).map(line));
        let sectors = sorted(touched(segments));
        let lines = sorted(sectors.iter().map(|&s| line(s)));
        let is_shared: Vec<bool> = lines
            .iter()
            .map(|line| elsewhere.binary_search(line).is_ok())
            .collect();
        let all_shared = is_shared.iter().filter(|s| **s).count() as u32;
        let touches = touched(segments).count();
        let mut stack = Stack::new(touches, lines.len());
        // The segment that last touched a sector.
        let mut seen: Vec<Option<usize>> = vec![None; sectors.len()];
        let reads = segments.iter().enumerate().map(|(number, segment)| {
            let mut reads = Reads::default();
            for sector in &segment.sectors {
                let place = (
                    sectors.binary_search(sector),
                    lines.binary_search(&line(*sector)),
                );
                let (Ok(name), Ok(index)) = place else {
                    continue;
                };
                let distance = stack.touch(index, is_shared[index]);
                match (seen[name].replace(number), is_shared[index], distance) {
                    (Some(before), _, Some(distance)) if before == number => {
                        reads.within.push(distance);
                    }
                    (Some(_), _, Some(distance)) => reads.again.push(distance),
                    // Some other warp has brought it.
                    (_, true, _) => reads.again.push(Distance {
                        private: 0,
                        shared: all_shared,
                    }),
                    _ => reads.cold += 1,
                }
            }
            reads
        });
        Reuse {
            segments: reads.collect(),
        }
    }

    /// Sectors of a segment that come from beyond the first level whatever its size.
    pub fn cold(&self, segment: usize) -> f64 {
        self.segments
            .get(segment)
            .map_or(0.0, |s| f64::from(s.cold))
    }

    /// Sectors of a segment that were there before and are gone, with `warps` warps in a cache of
    /// `capacity` lines.
    ///
    /// A reach of [`ALL_HIT`] of the capacity hits, one of [`NONE_HIT`] misses, and the share falls
    /// linearly in between: caches are not fully associative, other accesses take their part, and
    /// warps do not take strict turns.
    pub fn lost(&self, segment: usize, warps: f64, capacity: f64) -> f64 {
        let Some(reads) = self.segments.get(segment) else {
            return 0.0;
        };
        let reach = |d: &Distance| f64::from(d.private) * warps + f64::from(d.shared);
        let alone = |d: &Distance| f64::from(d.private + d.shared);
        let miss = |reach: f64| (reach / capacity.max(1.0) - ALL_HIT) / (NONE_HIT - ALL_HIT);
        let reaches = reads.again.iter().map(reach);
        let reaches = reaches.chain(reads.within.iter().map(alone));
        reaches.map(|reach| miss(reach).clamp(0.0, 1.0)).sum()
    }
}

/// The sectors that segments read, in order.
fn touched(segments: &[Segment]) -> impl Iterator<Item = i64> {
    segments.iter().flat_map(|s| &s.sectors).copied()
}

fn sorted(names: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut names: Vec<i64> = names.collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    names
}

/// Stack distances by two Fenwick trees over the times of access: a line counts at its latest.
struct Stack {
    now: usize,
    latest: Vec<Option<usize>>,
    private: Vec<u32>,
    shared: Vec<u32>,
}

impl Stack {
    fn new(touches: usize, lines: usize) -> Self {
        Stack {
            now: 0,
            latest: vec![None; lines],
            private: vec![0; touches + 1],
            shared: vec![0; touches + 1],
        }
    }

    fn touch(&mut self, line: usize, is_shared: bool) -> Option<Distance> {
        self.now += 1;
        let last = self.latest[line].replace(self.now);
        let distance = last.map(|last| Distance {
            private: sum(&self.private, self.now - 1) - sum(&self.private, last),
            shared: sum(&self.shared, self.now - 1) - sum(&self.shared, last),
        });
        let tree = if is_shared {
            &mut self.shared
        } else {
            &mut self.private
        };
        if let Some(last) = last {
            add(tree, last, u32::MAX);
        }
        add(tree, self.now, 1);
        distance
    }
}

/// Adds modulo 2³², so that `u32::MAX` takes one away.
fn add(tree: &mut [u32], mut at: usize, value: u32) {
    while at < tree.len() {
        tree[at] = tree[at].wrapping_add(value);
        at += at & at.wrapping_neg();
    }
}

fn sum(tree: &[u32], mut at: usize) -> u32 {
    let mut total = 0u32;
    while at > 0 {
        total = total.wrapping_add(tree[at]);
        at -= at & at.wrapping_neg();
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(sectors: &[&[i64]]) -> Vec<Segment> {
        let segment = |s: &&[i64]| Segment {
            sectors: s.to_vec(),
            ..Segment::default()
        };
        sectors.iter().map(segment).collect()
    }

    #[test]
    fn distances_count_different_lines() {
        // Lines of 128 bytes: 0, 1, 2, 1, 0.
        let segments = reading(&[&[0], &[128], &[256], &[128], &[0]]);
        let reuse = Reuse::new(&segments, &[], 128);
        let own = |private| Distance { private, shared: 0 };
        assert_eq!(reuse.segments[3].again, [own(1)]);
        assert_eq!(reuse.segments[4].again, [own(2)]);
        assert_eq!(reuse.cold(2), 1.0);
        assert_eq!(reuse.lost(4, 1.0, 4.0), 0.0, "two lines between fit");
        assert_eq!(reuse.lost(4, 4.0, 4.0), 1.0, "four warps' do not");
    }

    #[test]
    fn another_sector_of_a_line_is_another_fetch() {
        let reuse = Reuse::new(&reading(&[&[0], &[32], &[32]]), &[], 128);
        assert_eq!((reuse.cold(0), reuse.cold(1)), (1.0, 1.0));
        assert_eq!(reuse.segments[2].again.len(), 1);
        assert_eq!(reuse.cold(2), 0.0);
    }

    #[test]
    fn nobody_comes_between_the_loads_of_one_segment() {
        let reuse = Reuse::new(&reading(&[&[0, 128, 256, 0], &[128]]), &[], 128);
        assert_eq!(reuse.lost(0, 64.0, 8.0), 0.0);
        assert_eq!(reuse.lost(1, 64.0, 8.0), 1.0, "between segments they do");
    }

    #[test]
    fn what_all_blocks_read_counts_once() {
        let segments = reading(&[&[0, 128], &[0, 128]]);
        let reuse = Reuse::new(&segments, &segments, 128);
        assert_eq!(reuse.cold(0), 0.0, "another warp has brought it");
        assert_eq!(reuse.lost(1, 64.0, 4.0), 0.0);
    }
}
