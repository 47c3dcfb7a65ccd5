//! The 0-1 knapsack: which spill slots go into the shared memory that is free.
//!
//! Paper: CRAT section 5.3 (spilling optimisation), by dynamic programming over the capacity.
//! Departure: capacity is counted in the greatest common divisor of all sizes, which keeps the
//! table small (sizes are multiples of four bytes times the block size). Ties prefer the smaller
//! total size, then the earlier items, so that the answer never depends on anything but its input.

/// Something that may be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// What it takes, in the unit of the capacity (bytes per block, say). Must not be 0.
    pub size: u64,
    /// What choosing it saves, in any unit (loop-weighted accesses, say).
    pub gain: u64,
}

/// The indices, ascending, of the items whose sizes fit into `capacity` together and whose gain is
/// the largest possible. Items of no gain are never chosen.
///
/// Time and memory are O(items × capacity / gcd of the sizes).
pub fn choose(items: &[Item], capacity: u64) -> Vec<usize> {
    let useful: Vec<usize> = (0..items.len())
        .filter(|&i| items[i].gain > 0 && (1..=capacity).contains(&items[i].size))
        .collect();
    let total: u64 = useful.iter().map(|&i| items[i].size).sum();
    if total <= capacity {
        return useful;
    }
    let unit = useful.iter().fold(0, |unit, &i| gcd(unit, items[i].size));
    let room = (capacity / unit) as usize;
    // best[n]: the largest gain within n units; taken[k][n]: does it take the k-th useful item?
    let mut best = vec![0u64; room + 1];
    let mut taken = vec![vec![false; room + 1]; useful.len()];
    for (k, &i) in useful.iter().enumerate().rev() {
        let size = (items[i].size / unit) as usize;
        for n in (size..=room).rev() {
            let with = best[n - size] + items[i].gain;
            if with >= best[n] {
                best[n] = with;
                taken[k][n] = true;
            }
        }
    }
    // The smallest capacity that still has the best gain.
    let mut left = best.partition_point(|&gain| gain < best[room]);
    let mut chosen = Vec::new();
    for (k, &i) in useful.iter().enumerate() {
        if taken[k][left] {
            left -= (items[i].size / unit) as usize;
            chosen.push(i);
        }
    }
    chosen
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(list: &[(u64, u64)]) -> Vec<Item> {
        list.iter()
            .map(|&(size, gain)| Item { size, gain })
            .collect()
    }

    #[test]
    fn the_best_set_is_not_the_greedy_one() {
        // The densest item alone blocks the two that fill the sack.
        let all = items(&[(24, 30), (20, 20), (20, 20)]);
        assert_eq!(choose(&all, 40), [1, 2]);
        assert_eq!(choose(&all, 44), [0, 1]);
        assert_eq!(choose(&all, 64), [0, 1, 2]);
        assert_eq!(choose(&all, 4), []);
    }

    #[test]
    fn useless_items_stay_out() {
        assert_eq!(choose(&items(&[(4, 0), (8, 1), (0, 5)]), 100), [1]);
        assert_eq!(choose(&[], 100), []);
    }

    /// Against exhaustive search over all subsets, on small pseudo-random cases.
    #[test]
    fn agrees_with_exhaustive_search() {
        let mut state = 1u64;
        let mut next = |n: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for _ in 0..300 {
            let all: Vec<Item> = (0..next(9))
                .map(|_| Item {
                    size: 4 * (1 + next(6)),
                    gain: next(10),
                })
                .collect();
            let capacity = next(70);
            let value = |set: &[usize]| set.iter().map(|&i| all[i].gain).sum::<u64>();
            let size = |set: &[usize]| set.iter().map(|&i| all[i].size).sum::<u64>();
            let chosen = choose(&all, capacity);
            assert!(size(&chosen) <= capacity);
            let best = (0..1u32 << all.len())
                .map(|bits| {
                    (0..all.len())
                        .filter(|i| bits >> i & 1 == 1)
                        .collect::<Vec<_>>()
                })
                .filter(|set| size(set) <= capacity)
                .map(|set| value(&set))
                .max();
            assert_eq!(Some(value(&chosen)), best, "{all:?} {capacity}");
        }
    }
}
