//! A longest common subsequence of two versions of a code.
//!
//! Goal: to know which instructions of the rewritten version are the original's, however many stand between them.
//! Method: Myers, An O(ND) Difference Algorithm (Algorithmica 1986), section 4b, in linear space: the middle of a
//! shortest script is found from both ends, then both halves. Departures: what stands in one version alone is left
//! out before (it is in no common subsequence, and there is much of it where every access of a stack has another
//! base); a script of more than [`MOST`] edits is cut where the search from the front came furthest, so that code of
//! another origin costs no quadratic time; what is found then is common, but perhaps not the longest.

use std::hash::Hash;

use rustc_hash::FxHashSet;

/// Edits within one search.
const MOST: usize = 1_000;

/// For each element of `new` the one of `old` that it is, ascending.
pub(super) fn align<T: Eq + Hash>(old: &[T], new: &[T]) -> Vec<Option<u32>> {
    let [olds, news] = [shared(old, new), shared(new, old)];
    let of_old: Vec<&T> = olds.iter().map(|&at| &old[at as usize]).collect();
    let of_new: Vec<&T> = news.iter().map(|&at| &new[at as usize]).collect();
    let mut found = vec![None; new.len()];
    for (at, one) in subsequence(&of_old, &of_new).into_iter().enumerate() {
        found[news[at] as usize] = one.map(|one| olds[one as usize]);
    }
    found
}

/// Where the elements of one version stand that the other has, too.
fn shared<T: Eq + Hash>(these: &[T], others: &[T]) -> Vec<u32> {
    let others: FxHashSet<&T> = others.iter().collect();
    let places = these.iter().enumerate();
    let places = places.filter(|(_, one)| others.contains(one));
    places.map(|(at, _)| at as u32).collect()
}

fn subsequence<T: Eq>(old: &[T], new: &[T]) -> Vec<Option<u32>> {
    let mut found = vec![None; new.len()];
    let mut work = vec![(0..old.len(), 0..new.len())];
    while let Some((mut a, mut b)) = work.pop() {
        while !a.is_empty() && !b.is_empty() && old[a.start] == new[b.start] {
            found[b.start] = Some(a.start as u32);
            (a.start, b.start) = (a.start + 1, b.start + 1);
        }
        while !a.is_empty() && !b.is_empty() && old[a.end - 1] == new[b.end - 1] {
            (a.end, b.end) = (a.end - 1, b.end - 1);
            found[b.end] = Some(a.end as u32);
        }
        if a.is_empty() || b.is_empty() {
            continue;
        }
        let (x, y) = middle(&old[a.clone()], &new[b.clone()]);
        let (x, y) = (a.start + x, b.start + y);
        let halves = [(a.start..x, b.start..y), (x..a.end, y..b.end)];
        // Both ends are no middle: nothing is common.
        if halves
            .iter()
            .all(|half| half.0.len() + half.1.len() < a.len() + b.len())
        {
            work.extend(halves);
        }
    }
    found
}

/// Another one as long, if there is one, in which elements that are also the same by a stricter measure (`exact`) are
/// taken for each other first.
pub(super) fn align_exactly<T: Eq + Hash, E: Eq + Hash>(
    (old, new): (&[T], &[T]),
    (exact_old, exact_new): (&[E], &[E]),
) -> Option<Vec<Option<u32>>> {
    let mut found = align(exact_old, exact_new);
    let mut a = 0;
    let mut b = 0;
    for at in 0..=new.len() {
        let (next, is_end) = match found.get(at) {
            Some(Some(next)) => (*next as usize, false),
            Some(None) => continue,
            None => (old.len(), true),
        };
        let between = align(&old[a..next], &new[b..at]);
        for (gap, one) in between.into_iter().enumerate() {
            found[b + gap] = one.map(|one| one + a as u32);
        }
        if !is_end {
            (a, b) = (next + 1, at + 1);
        }
    }
    let count = |kept: &[Option<u32>]| kept.iter().flatten().count();
    (count(&found) == count(&align(old, new))).then_some(found)
}

/// Another one as long: what is taken for something that it is not by a stricter measure (`is_same`) goes to
/// the nearest neighbour that it is, if only what is in neither pair lies between. So the original's instructions stay
/// where they are behind an insertion that looks like them.
pub(super) fn slide(
    kept: &[Option<u32>],
    old: usize,
    is_same: impl Fn(&(usize, usize)) -> bool,
) -> Vec<Option<u32>> {
    let mut pairs: Vec<(usize, usize)> = kept
        .iter()
        .enumerate()
        .filter_map(|(at, one)| Some(((*one)? as usize, at)))
        .collect();
    for n in (0..pairs.len()).rev().chain(0..pairs.len()) {
        let (a, b) = pairs[n];
        if is_same(&(a, b)) {
            continue;
        }
        let before = n.checked_sub(1).map(|n| pairs[n]);
        let behind = pairs.get(n + 1);
        let (from_a, from_b) = before.map_or((0, 0), |(a, b)| (a + 1, b + 1));
        let (to_a, to_b) = behind.copied().unwrap_or((old, kept.len()));
        let in_new = (b + 1..to_b).rev().chain((from_b..b).rev());
        let in_old = (a + 1..to_a).rev().chain((from_a..a).rev());
        let others = in_new.map(|b| (a, b)).chain(in_old.map(|a| (a, b)));
        if let Some(other) = { others }.find(&is_same) {
            pairs[n] = other;
        }
    }
    let mut found = vec![None; kept.len()];
    for (a, b) in pairs {
        found[b] = Some(a as u32);
    }
    found
}

/// A point on a shortest script between two sequences that differ at both ends.
fn middle<T: Eq>(old: &[T], new: &[T]) -> (usize, usize) {
    let (n, m) = (old.len() as isize, new.len() as isize);
    let (delta, odd) = (n - m, (n - m) % 2 != 0);
    let most = (old.len() + new.len()).div_ceil(2).min(MOST);
    let center = most as isize + 1;
    let mut front = vec![0isize; 2 * most + 3];
    let mut back = vec![0isize; 2 * most + 3];
    let at = |k: isize| (center + k) as usize;
    for d in 0..=most as isize {
        for k in (-d..=d).step_by(2) {
            let down = k == -d || k != d && front[at(k - 1)] < front[at(k + 1)];
            let mut x = if down {
                front[at(k + 1)]
            } else {
                front[at(k - 1)] + 1
            };
            while x < n
                && x - k < m
                && x >= 0
                && x - k >= 0
                && old[x as usize] == new[(x - k) as usize]
            {
                x += 1;
            }
            front[at(k)] = x;
            let other = delta - k;
            let met = odd && (1 - d..d).contains(&other) && x + back[at(other)] >= n;
            if met && is_within(x, x - k, n, m) {
                return (x as usize, (x - k) as usize);
            }
        }
        for k in (-d..=d).step_by(2) {
            let down = k == -d || k != d && back[at(k - 1)] < back[at(k + 1)];
            let mut x = if down {
                back[at(k + 1)]
            } else {
                back[at(k - 1)] + 1
            };
            while x < n
                && x - k < m
                && x >= 0
                && x - k >= 0
                && old[(n - 1 - x) as usize] == new[(m - 1 - (x - k)) as usize]
            {
                x += 1;
            }
            back[at(k)] = x;
            let other = delta - k;
            let met = !odd && (-d..=d).contains(&other) && x + front[at(other)] >= n;
            if met && is_within(n - x, m - (x - k), n, m) {
                return ((n - x) as usize, (m - (x - k)) as usize);
            }
        }
    }
    let ends = (-(most as isize)..=most as isize).step_by(2);
    let ends = ends.map(|k| (front[at(k)], front[at(k)] - k));
    let within = ends.filter(|&(x, y)| is_within(x, y, n, m));
    let (x, y) = within.max_by_key(|(x, y)| x + y).unwrap_or((n, m));
    (x as usize, y as usize)
}

fn is_within(x: isize, y: isize, n: isize, m: isize) -> bool {
    (0..=n).contains(&x) && (0..=m).contains(&y)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length of a longest common subsequence, by the table of all prefixes.
    fn longest(a: &[u8], b: &[u8]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut corner = 0;
            for (j, y) in b.iter().enumerate() {
                let above = row[j + 1];
                row[j + 1] = if x == y {
                    corner + 1
                } else {
                    above.max(row[j])
                };
                corner = above;
            }
        }
        row[b.len()]
    }

    #[test]
    fn it_is_common_and_as_long_as_it_can_be() {
        let mut state = 1u64;
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for letters in [1, 2, 3, 9] {
            for _ in 0..2_000 {
                let lengths = [next(14), next(14)];
                let [a, b] = lengths
                    .map(|length| (0..length).map(|_| next(letters) as u8).collect::<Vec<_>>());
                let found = align(&a, &b);
                let pairs: Vec<(usize, u32)> = found
                    .iter()
                    .enumerate()
                    .filter_map(|(j, i)| Some((j, (*i)?)))
                    .collect();
                assert!(
                    pairs.windows(2).all(|two| two[0].1 < two[1].1),
                    "{a:?} {b:?} {found:?}"
                );
                assert!(
                    pairs.iter().all(|&(j, i)| a[i as usize] == b[j]),
                    "{a:?} {b:?} {found:?}"
                );
                assert_eq!(pairs.len(), longest(&a, &b), "{a:?} {b:?} {found:?}");
            }
        }
    }

    #[test]
    fn what_is_the_same_exactly_comes_first() {
        let exactly = |a: &[(u8, u8)], b: &[(u8, u8)]| {
            let names = [a, b].map(|list| list.iter().map(|one| one.0).collect::<Vec<_>>());
            align_exactly((&names[0], &names[1]), (a, b))
        };
        // Inserted before the same instruction with another control field.
        let [a, b] = [&[(1, 4), (2, 0)][..], &[(1, 5), (3, 0), (1, 4), (2, 0)]];
        assert_eq!(exactly(a, b), Some(vec![None, None, Some(0), Some(1)]));
        // Made weaker: no way round it by taking one for the other.
        let [a, b] = [&[(1, 4), (1, 3)][..], &[(1, 3), (1, 3)]];
        let found = exactly(a, b);
        assert!(found.is_none_or(|kept| kept == [Some(0), Some(1)]));
        let [a, b] = [&[(7, 0), (1, 4)][..], &[(7, 0), (1, 3), (9, 0)]];
        assert_eq!(exactly(a, b), Some(vec![Some(0), Some(1), None]));
    }

    #[test]
    fn an_insertion_that_looks_like_the_original_is_passed_over() {
        // (shape, control): the prologue computes anew what the original computes, with other control fields.
        let old = [(1, 7), (2, 1), (3, 0), (9, 0), (1, 2)];
        let new = [(1, 2), (2, 2), (5, 0), (1, 7), (2, 1), (3, 0), (1, 2)];
        let names = |list: &[(u8, u8)]| list.iter().map(|one| one.0).collect::<Vec<_>>();
        let first = vec![Some(0), Some(1), None, None, None, Some(2), Some(4)];
        let kept = align(&names(&old), &names(&new));
        assert_eq!(kept.iter().flatten().count(), 4);
        for kept in [first, kept] {
            let slid = slide(&kept, old.len(), |&(a, b)| old[a] == new[b]);
            let right = [None, None, None, Some(0), Some(1), Some(2), Some(4)];
            assert_eq!(slid, right);
        }
        // What is weaker and stands alone stays weaker.
        let kept = [Some(0), Some(1)];
        let (old, new) = ([(1, 7), (2, 1)], [(1, 2), (2, 1)]);
        assert_eq!(slide(&kept, 2, |&(a, b)| old[a] == new[b]), kept);
    }

    #[test]
    fn what_stands_in_one_version_alone_hides_nothing() {
        // Far more edits than one search has; what is common begins with an insertion that looks like it.
        let common = |i: u32| i % 7;
        let old: Vec<u32> = (0..3 * MOST as u32)
            .flat_map(|i| [common(i), 1_000_000 + i])
            .collect();
        let new: Vec<u32> = [common(3), common(5)]
            .into_iter()
            .chain((0..3 * MOST as u32).flat_map(|i| [2_000_000 + i, common(i)]))
            .collect();
        let kept = align(&old, &new).into_iter().flatten().count();
        assert_eq!(kept, 3 * MOST);
    }

    #[test]
    fn code_of_another_origin_costs_no_quadratic_time() {
        let a: Vec<u32> = (0..30_000).collect();
        let b: Vec<u32> = a.iter().rev().copied().collect();
        assert!(align(&a, &b).iter().any(Option::is_some));
    }
}
