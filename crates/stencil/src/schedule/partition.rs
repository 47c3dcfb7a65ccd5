//! Partitioning a large cluster into groups that are small enough to be ordered exhaustively.
//!
//! Paper: section 3.3: clusters of more than 8 subtrees are partitioned recursively, by label
//! affinity or by release potential.

use super::labels::LabelSet;

/// What decides which subtrees are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// Those that share the most labels.
    Affinity,
    /// Those with the last uses of labels come first and together; then by affinity.
    Release,
}

/// A subtree, or a group that is evaluated as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The index of a subtree.
    One(u32),
    /// At most as many parts as a group may have.
    Group(Vec<Part>),
}

/// Partitions the subtrees `members` (indices into `uses`) into nested groups of at most `most`.
/// `released` are the labels that are not alive after the cluster.
pub fn partition(
    members: &[u32],
    uses: &[LabelSet],
    released: &LabelSet,
    most: usize,
    criterion: Criterion,
) -> Part {
    let mut parts: Vec<(Part, LabelSet)> = members
        .iter()
        .map(|&index| (Part::One(index), uses[index as usize].clone()))
        .collect();
    if criterion == Criterion::Release {
        parts.sort_by_key(|(_, labels)| std::cmp::Reverse(labels.common(released)));
    }
    while parts.len() > most {
        parts = group(parts, most);
    }
    Part::Group(parts.into_iter().map(|(part, _)| part).collect())
}

/// Each group grows from the first part left, by the one that shares most with it.
fn group(mut parts: Vec<(Part, LabelSet)>, most: usize) -> Vec<(Part, LabelSet)> {
    let mut groups = Vec::new();
    while !parts.is_empty() {
        let (seed, mut labels) = parts.remove(0);
        let mut members = vec![seed];
        while members.len() < most {
            let sharing = parts
                .iter()
                .enumerate()
                .map(|(at, p)| (p.1.common(&labels), at));
            let best = sharing.max_by_key(|&(shared, at)| (shared, std::cmp::Reverse(at)));
            let Some((_, at)) = best else { break };
            let (part, more) = parts.remove(at);
            labels.add_all(&more);
            members.push(part);
        }
        groups.push((Part::Group(members), labels));
    }
    groups
}

impl Part {
    /// The subtrees in it, in order.
    pub fn members(&self) -> Vec<u32> {
        match self {
            Part::One(index) => vec![*index],
            Part::Group(parts) => parts.iter().flat_map(Part::members).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::labels::Label;
    use cranelift_entity::EntityRef;

    #[test]
    fn sharing_subtrees_meet_in_a_group() {
        // Subtree i uses labels i % 3: three families of five.
        let uses: Vec<LabelSet> = (0..15)
            .map(|i| [Label::new(i % 3)].into_iter().collect())
            .collect();
        let members: Vec<u32> = (0..15).collect();
        let Part::Group(groups) =
            partition(&members, &uses, &LabelSet::new(), 5, Criterion::Affinity)
        else {
            panic!("a group");
        };
        let families: Vec<Vec<u32>> = groups.iter().map(Part::members).collect();
        assert_eq!(families[0], [0, 3, 6, 9, 12]);
        assert_eq!(families[1], [1, 4, 7, 10, 13]);
    }

    #[test]
    fn every_subtree_is_in_one_group() {
        let uses = vec![LabelSet::new(); 100];
        let members: Vec<u32> = (0..100).collect();
        let part = partition(&members, &uses, &LabelSet::new(), 7, Criterion::Release);
        let mut found = part.members();
        found.sort_unstable();
        assert_eq!(found, members);
    }
}
