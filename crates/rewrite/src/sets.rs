//! Sets of numbers as numbers: the same set has the same number, unions share what they have in common.
//!
//! Big-endian Patricia trees over words of 64 members (Okasaki & Gill, 'Fast Mergeable Integer Maps', 1998), every
//! node once.

use rustc_hash::FxHashMap;

/// A set's number.
pub type Set = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    /// Members `64 * key ..`, as bits.
    Leaf { key: u32, bits: u64 },
    /// Keys that agree above the bit `bit`, those without it on the left.
    Branch {
        prefix: u32,
        bit: u32,
        left: Set,
        right: Set,
    },
}

impl Node {
    fn hash(self) -> usize {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let (key, below) = match self {
            Node::Leaf { key, bits } => (u64::from(key), bits),
            Node::Branch {
                prefix,
                bit,
                left,
                right,
            } => (
                u64::from(prefix | bit) << 32,
                u64::from(left) << 32 | u64::from(right),
            ),
        };
        let hash = (key.wrapping_mul(FACTOR) ^ below).wrapping_mul(FACTOR);
        (hash ^ hash >> 32) as usize
    }
}

/// All sets.
#[derive(Default)]
pub struct Sets {
    nodes: Vec<Node>,
    /// Numbers by the hash of what they stand for, [`NOBODY`] between.
    table: Vec<Set>,
    unions: FxHashMap<(Set, Set), Set>,
}

const NOBODY: Set = Set::MAX;

impl Sets {
    fn intern(&mut self, node: Node) -> Set {
        if 2 * self.nodes.len() >= self.table.len() {
            self.grow();
        }
        let at = self.place(node);
        if self.table[at] == NOBODY {
            self.table[at] = self.nodes.len() as Set;
            self.nodes.push(node);
        }
        self.table[at]
    }

    /// Where a node stands, or would.
    fn place(&self, node: Node) -> usize {
        let mask = self.table.len() - 1;
        let mut at = node.hash() & mask;
        while self.table[at] != NOBODY && self.nodes[self.table[at] as usize] != node {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        self.table = vec![NOBODY; (4 * self.nodes.len()).next_power_of_two().max(64)];
        for number in 0..self.nodes.len() {
            let at = self.place(self.nodes[number]);
            self.table[at] = number as Set;
        }
    }

    /// The set of one member.
    pub fn one(&mut self, member: u32) -> Set {
        self.intern(Node::Leaf {
            key: member / 64,
            bits: 1 << (member % 64),
        })
    }

    /// The only member, if there is only one.
    pub fn only(&self, set: Set) -> Option<u32> {
        match self.nodes[set as usize] {
            Node::Leaf { key, bits } if bits.is_power_of_two() => {
                Some(64 * key + bits.trailing_zeros())
            }
            _ => None,
        }
    }

    fn prefix(&self, set: Set) -> (u32, u32) {
        match self.nodes[set as usize] {
            Node::Leaf { key, .. } => (key, 0),
            Node::Branch { prefix, bit, .. } => (prefix, bit),
        }
    }

    fn join(&mut self, a: Set, b: Set) -> Set {
        let (x, y) = (self.prefix(a).0, self.prefix(b).0);
        let bit = 1 << (31 - (x ^ y).leading_zeros());
        let prefix = x & !(bit | (bit - 1));
        let (left, right) = if x & bit == 0 { (a, b) } else { (b, a) };
        self.intern(Node::Branch {
            prefix,
            bit,
            left,
            right,
        })
    }

    /// The members of both.
    pub fn union(&mut self, a: Set, b: Set) -> Set {
        if a == b {
            return a;
        }
        // A way down a tree is as short as looking it up.
        let is_leaf = |set: Set| matches!(self.nodes[set as usize], Node::Leaf { .. });
        if is_leaf(a) || is_leaf(b) {
            return self.united(a, b);
        }
        let pair = (a.min(b), a.max(b));
        if let Some(&known) = self.unions.get(&pair) {
            return known;
        }
        let both = self.united(a, b);
        self.unions.insert(pair, both);
        both
    }

    fn united(&mut self, a: Set, b: Set) -> Set {
        match (self.nodes[a as usize], self.nodes[b as usize]) {
            (
                Node::Leaf { key, bits },
                Node::Leaf {
                    key: other,
                    bits: more,
                },
            ) if key == other => self.intern(Node::Leaf {
                key,
                bits: bits | more,
            }),
            (
                Node::Branch {
                    prefix,
                    bit,
                    left,
                    right,
                },
                Node::Branch {
                    prefix: other,
                    bit: same,
                    left: l,
                    right: r,
                },
            ) if prefix == other && bit == same => {
                let (left, right) = (self.union(left, l), self.union(right, r));
                self.intern(Node::Branch {
                    prefix,
                    bit,
                    left,
                    right,
                })
            }
            (Node::Branch { bit, .. }, _) if self.holds(a, b, bit) => self.inserted(a, b),
            (_, Node::Branch { bit, .. }) if self.holds(b, a, bit) => self.inserted(b, a),
            _ => self.join(a, b),
        }
    }

    /// Does the smaller tree lie below the larger one's branch?
    fn holds(&self, larger: Set, smaller: Set, bit: u32) -> bool {
        let (prefix, _) = self.prefix(larger);
        let (key, below) = self.prefix(smaller);
        below < bit && key & !(bit | (bit - 1)) == prefix
    }

    fn inserted(&mut self, larger: Set, smaller: Set) -> Set {
        let Node::Branch {
            prefix,
            bit,
            left,
            right,
        } = self.nodes[larger as usize]
        else {
            return larger;
        };
        let (key, _) = self.prefix(smaller);
        let (left, right) = match key & bit {
            0 => (self.union(left, smaller), right),
            _ => (left, self.union(right, smaller)),
        };
        self.intern(Node::Branch {
            prefix,
            bit,
            left,
            right,
        })
    }

    /// Is it a member?
    pub fn has(&self, set: Set, member: u32) -> bool {
        match self.nodes[set as usize] {
            Node::Leaf { key, bits } => key == member / 64 && bits >> (member % 64) & 1 != 0,
            Node::Branch {
                bit, left, right, ..
            } => {
                let side = if (member / 64) & bit == 0 {
                    left
                } else {
                    right
                };
                self.has(side, member)
            }
        }
    }

    /// The set without a member; `None` if nothing is left.
    pub fn without(&mut self, set: Set, member: u32) -> Option<Set> {
        if !self.has(set, member) {
            return Some(set);
        }
        match self.nodes[set as usize] {
            Node::Leaf { key, bits } => {
                let bits = bits & !(1 << (member % 64));
                (bits != 0).then(|| self.intern(Node::Leaf { key, bits }))
            }
            Node::Branch {
                prefix,
                bit,
                left,
                right,
            } => {
                let is_left = (member / 64) & bit == 0;
                let (side, other) = if is_left {
                    (left, right)
                } else {
                    (right, left)
                };
                let Some(side) = self.without(side, member) else {
                    return Some(other);
                };
                let (left, right) = if is_left {
                    (side, other)
                } else {
                    (other, side)
                };
                Some(self.intern(Node::Branch {
                    prefix,
                    bit,
                    left,
                    right,
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Whatever the order of unions, the same members are the same set.
    #[test]
    fn sets_have_one_number_each() {
        let mut sets = Sets::default();
        let mut state = 1u64;
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let mut known: FxHashMap<BTreeSet<u32>, Set> = FxHashMap::default();
        let mut all: Vec<(BTreeSet<u32>, Set)> = Vec::new();
        for round in 0..3000 {
            let (members, set) = if round % 3 == 0 || all.len() < 2 {
                let member = next(400) as u32;
                (BTreeSet::from([member]), sets.one(member))
            } else {
                let pick = |n: u64| n as usize % all.len();
                let (a, b) = (&all[pick(next(1 << 30))], &all[pick(next(1 << 30))]);
                (&a.0 | &b.0, sets.union(a.1, b.1))
            };
            let number = *known.entry(members.clone()).or_insert(set);
            assert_eq!(number, set, "{members:?}");
            let member = next(400) as u32;
            assert_eq!(sets.has(set, member), members.contains(&member));
            let less: BTreeSet<u32> = members.iter().copied().filter(|&m| m != member).collect();
            match sets.without(set, member) {
                None => assert!(less.is_empty()),
                Some(without) => {
                    let number = *known.entry(less).or_insert(without);
                    assert_eq!(number, without);
                }
            }
            all.push((members, set));
            if all.len() > 200 {
                all.swap_remove(next(200) as usize);
            }
        }
    }
}
