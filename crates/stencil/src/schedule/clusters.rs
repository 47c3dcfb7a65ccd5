//! Maximal clusters of children that share data, and the order of clusters.
//!
//! Paper: section 3.2, equation 3 and theorems 3.1 to 3.3.
//!
//! Departures. The accumulator makes the first cluster special: it takes no register while the
//! first child is evaluated, and is one more live value after it. So each cluster is tried as the
//! first, and the theorems order the others. The theorems evaluate clusters one after the other;
//! where two clusters of several children each could be mixed, that is not always optimal
//! (`tests/stencil_schedule.rs` holds a case), so few children are ordered together, exactly.

use super::labels::LabelSet;

/// Groups indices whose sets share labels outside `passthrough`, transitively. Clusters and their
/// members are in ascending order.
pub fn maximal_clusters(uses: &[LabelSet], passthrough: &LabelSet) -> Vec<Vec<u32>> {
    let mut clusters: Vec<(LabelSet, Vec<u32>)> = Vec::new();
    for (index, labels) in uses.iter().enumerate() {
        let mut labels = labels.difference(passthrough);
        let mut members = vec![index as u32];
        clusters.retain_mut(|(other, their)| {
            let apart = other.is_disjoint(&labels);
            if !apart {
                labels.add_all(other);
                members.append(their);
            }
            apart
        });
        members.sort_unstable();
        clusters.push((labels, members));
    }
    clusters.sort_by_key(|(_, members)| members[0]);
    clusters.into_iter().map(|(_, members)| members).collect()
}

/// What a cluster does to the registers, relative to the level at which it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The highest level within it, if it starts the accumulator.
    pub rise_as_first: i64,
    /// The highest level within it, the accumulator being live before it.
    pub rise: i64,
    /// |out| - |in|: the level after it, accumulators aside.
    pub change: i64,
}

/// The order of clusters with the lowest peak by the theorems, and that peak, relative to the
/// level before the first; ties keep the given order.
pub fn sequence(effects: &[Effect]) -> (Vec<usize>, i64) {
    let mut by_theorem: Vec<usize> = (0..effects.len()).collect();
    // Theorem 3.2: releasing clusters first. Theorem 3.3: the smaller su' first among them.
    // Theorem 3.1: the larger su' - |out| first among the others.
    by_theorem.sort_by_key(|&c| match effects[c] {
        Effect { rise, change, .. } if change < 0 => (0, rise),
        Effect { rise, change, .. } => (1, change - rise),
    });
    let mut best: Option<(usize, i64)> = None;
    for at in 0..by_theorem.len() {
        let peak = peak(effects, &by_theorem, at);
        if best.is_none_or(|(_, least)| peak < least) {
            best = Some((at, peak));
        }
    }
    let Some((first, peak)) = best else {
        return (Vec::new(), 0);
    };
    let first = by_theorem.remove(first);
    by_theorem.insert(0, first);
    (by_theorem, peak)
}

/// The peak of an order, with the cluster at `first` moved to the front.
fn peak(effects: &[Effect], order: &[usize], first: usize) -> i64 {
    let front = effects[order[first]];
    let mut level = front.change + 1;
    let mut peak = front.rise_as_first.max(level);
    for (at, &cluster) in order.iter().enumerate() {
        if at != first {
            peak = peak.max(level + effects[cluster].rise);
            level += effects[cluster].change;
        }
    }
    peak
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::labels::Label;
    use cranelift_entity::EntityRef;

    fn set(labels: &[usize]) -> LabelSet {
        labels.iter().map(|&l| Label::new(l)).collect()
    }

    #[test]
    fn sharing_is_transitive_and_passthrough_labels_do_not_count() {
        let uses = [
            set(&[1, 9]),
            set(&[5, 9]),
            set(&[1, 2]),
            set(&[2, 3]),
            set(&[9]),
        ];
        let clusters = maximal_clusters(&uses, &set(&[9]));
        assert_eq!(clusters, [vec![0, 2, 3], vec![1], vec![4]]);
    }

    #[test]
    fn clusters_that_release_come_first() {
        let effect = |rise, change| Effect {
            rise_as_first: rise,
            rise,
            change,
        };
        // Theorem 3.3 puts 3 before 1, theorem 3.2 both before the others, 3.1 puts 2 before 0.
        let effects = [effect(2, 1), effect(5, -2), effect(4, 1), effect(1, -1)];
        assert_eq!(sequence(&effects).0, [3, 1, 2, 0]);
    }
}
