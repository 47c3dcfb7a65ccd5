//! Sets of labels: dense bit sets, compared and hashed by content.

use cranelift_entity::{EntityRef, entity_impl};

/// A memory location, a scalar or the result of a tree: what section 3 of the paper calls a label.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(u32);
entity_impl!(Label, "label");

/// A set of labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelSet {
    /// Without trailing zeros, so that equal sets are equal vectors.
    words: Vec<u64>,
}

impl LabelSet {
    /// The empty set.
    pub fn new() -> LabelSet {
        LabelSet::default()
    }

    fn trim(mut self) -> LabelSet {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
        self
    }

    /// Adds a label; true if it was not there.
    pub fn insert(&mut self, label: Label) -> bool {
        let (word, bit) = (label.index() / 64, 1 << (label.index() % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Is the label in the set?
    pub fn contains(&self, label: Label) -> bool {
        let word = self.words.get(label.index() / 64).copied().unwrap_or(0);
        word >> (label.index() % 64) & 1 != 0
    }

    /// Labels in the set.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// No label?
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// In either.
    pub fn union(&self, other: &LabelSet) -> LabelSet {
        let (long, short) = match self.words.len() >= other.words.len() {
            true => (self, other),
            false => (other, self),
        };
        let mut words = long.words.clone();
        for (word, other) in words.iter_mut().zip(&short.words) {
            *word |= other;
        }
        LabelSet { words }
    }

    /// In both.
    pub fn intersection(&self, other: &LabelSet) -> LabelSet {
        let words = self.words.iter().zip(&other.words).map(|(a, b)| a & b);
        let words = words.collect();
        LabelSet { words }.trim()
    }

    /// In this one only.
    pub fn difference(&self, other: &LabelSet) -> LabelSet {
        let mut words = self.words.clone();
        for (word, other) in words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
        LabelSet { words }.trim()
    }

    /// Adds all labels of another set.
    pub fn add_all(&mut self, other: &LabelSet) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Labels in both, without building the set.
    pub fn common(&self, other: &LabelSet) -> u32 {
        let words = self.words.iter().zip(&other.words);
        words.map(|(a, b)| (a & b).count_ones()).sum()
    }

    /// No label in both?
    pub fn is_disjoint(&self, other: &LabelSet) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| a & b == 0)
    }

    /// The labels, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Label> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 != 0);
            bits.map(move |bit| Label::new(at * 64 + bit))
        })
    }
}

impl FromIterator<Label> for LabelSet {
    fn from_iter<T: IntoIterator<Item = Label>>(labels: T) -> LabelSet {
        let mut set = LabelSet::new();
        for label in labels {
            set.insert(label);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(labels: &[usize]) -> LabelSet {
        labels.iter().map(|&l| Label::new(l)).collect()
    }

    #[test]
    fn sets_of_equal_content_are_equal() {
        assert_eq!(set(&[1, 200]).difference(&set(&[200])), set(&[1]));
        assert_eq!(set(&[1, 200]).intersection(&set(&[1])), set(&[1]));
        assert_eq!(set(&[1]).union(&set(&[70])), set(&[70, 1]));
        assert!(set(&[1, 65]).is_disjoint(&set(&[2, 66])));
        assert_eq!(set(&[3, 64, 130]).iter().collect::<LabelSet>().len(), 3);
        assert_eq!(set(&[3, 64, 130]).common(&set(&[64, 130, 131])), 2);
    }
}
