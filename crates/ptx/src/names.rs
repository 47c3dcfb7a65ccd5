//! Scoped names: what a name stands for at a place in the source.

use rustc_hash::FxHashMap;

use crate::Span;
use crate::ir::{BranchTable, CallTable, FuncId, Label, Prototype, Reg, RegDeclId, VarId};

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entity {
    /// A single register.
    Reg(Reg),
    /// A register range `base<count>`.
    Range {
        /// The declaration.
        decl: RegDeclId,
        /// Number of registers.
        count: u32,
    },
    /// A register of a range, which need not have been used before.
    Ranged {
        /// The declaration.
        decl: RegDeclId,
        /// Its number.
        number: u32,
    },
    /// A variable or parameter.
    Var(VarId),
    /// A function.
    Func(FuncId),
    /// A label.
    Label(Label),
    /// A `.branchtargets` list.
    BranchTable(BranchTable),
    /// A `.calltargets` list.
    CallTable(CallTable),
    /// A `.callprototype`.
    Prototype(Prototype),
}

/// A name found.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// What it stands for; never a range.
    pub entity: Entity,
    /// The depth of the scope that declares it: 0 is the module.
    pub depth: u32,
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Binding<'s> {
    key: &'s str,
    entity: Entity,
    span: Span,
    depth: u32,
    /// The binding of the same key in an outer scope.
    shadowed: u32,
}

impl Binding<'_> {
    fn is_range(&self) -> bool {
        matches!(self.entity, Entity::Range { .. })
    }

    /// Is it the range of this register?
    fn holds(&self, entity: Entity) -> bool {
        match (self.entity, entity) {
            (Entity::Range { decl, .. }, Entity::Ranged { decl: of, .. }) => decl == of,
            _ => false,
        }
    }

    /// Is it a single name like those of most ranges (`%r5`)?
    fn is_like_ranged(&self) -> bool {
        let numbered = self.key.ends_with(|c: char| c.is_ascii_digit());
        !self.is_range() && self.key.starts_with('%') && numbered
    }
}

/// All names visible at the place that the parser has reached.
///
/// Ranges such as `%r<100>` are kept by their prefix, so that a module with a million registers
/// costs a handful of entries.
#[derive(Default)]
pub struct Names<'s> {
    plain: FxHashMap<&'s str, u32>,
    ranges: FxHashMap<&'s str, u32>,
    bindings: Vec<Binding<'s>>,
    /// Length of `bindings` when each open scope began.
    marks: Vec<usize>,
    /// How many bindings are [`Binding::is_like_ranged`]; nearly always none, which saves a
    /// look-up for every register.
    like_ranged: usize,
}

impl<'s> Names<'s> {
    /// Depth of the innermost open scope; 0 is the module.
    pub fn depth(&self) -> u32 {
        self.marks.len() as u32
    }

    /// Opens a scope.
    pub fn open(&mut self) {
        self.marks.push(self.bindings.len());
    }

    /// Closes the innermost scope and forgets its names.
    pub fn close(&mut self) {
        let Some(mark) = self.marks.pop() else { return };
        while self.bindings.len() > mark {
            let Some(binding) = self.bindings.pop() else {
                return;
            };
            self.like_ranged -= usize::from(binding.is_like_ranged());
            let map = if binding.is_range() {
                &mut self.ranges
            } else {
                &mut self.plain
            };
            match binding.shadowed {
                NONE => map.remove(binding.key),
                outer => map.insert(binding.key, outer),
            };
        }
    }

    /// Declares a name in the innermost scope. If the scope has it already, changes nothing and
    /// returns where it was declared.
    pub fn declare(&mut self, key: &'s str, entity: Entity, span: Span) -> Result<(), Span> {
        if let Some(old) = self.in_the_way(key, entity) {
            return Err(old);
        }
        let depth = self.depth();
        let index = self.bindings.len() as u32;
        let is_range = matches!(entity, Entity::Range { .. });
        let map = if is_range {
            &mut self.ranges
        } else {
            &mut self.plain
        };
        let outer = map.get(key).copied().unwrap_or(NONE);
        if let Some(old) = self.bindings.get(outer as usize)
            && old.depth == depth
        {
            return Err(old.span);
        }
        map.insert(key, index);
        let binding = Binding {
            key,
            entity,
            span,
            depth,
            shadowed: outer,
        };
        self.like_ranged += usize::from(binding.is_like_ranged());
        self.bindings.push(binding);
        Ok(())
    }

    /// A register of the innermost scope that a range and a single declaration would both name.
    fn in_the_way(&self, key: &str, entity: Entity) -> Option<Span> {
        let mark = self.marks.last().copied().unwrap_or(0);
        let scope = self.bindings.get(mark..)?;
        match entity {
            Entity::Range { count, .. } => {
                // Inline assembly has a handful of single registers; a scope with thousands of
                // both kinds is not searched to the end.
                let recent = scope.iter().rev().take(256);
                let singles = recent.filter(|b| matches!(b.entity, Entity::Reg(_)));
                let mut inside = singles.filter(|b| {
                    let number = b.key.strip_prefix(key).and_then(|n| n.parse::<u32>().ok());
                    number.is_some_and(|n| n < count)
                });
                inside.next().map(|b| b.span)
            }
            Entity::Reg(_) => {
                let found = self
                    .find_in_range(key)
                    .filter(|f| f.depth == self.depth())?;
                scope.iter().find(|b| b.holds(found.entity)).map(|b| b.span)
            }
            _ => None,
        }
    }

    /// Lets a name that is declared stand for something else.
    pub fn replace(&mut self, key: &str, entity: Entity) {
        let index = self.plain.get(key).map(|&i| i as usize);
        if let Some(binding) = index.and_then(|i| self.bindings.get_mut(i)) {
            binding.entity = entity;
        }
    }

    /// What `name` stands for: the innermost declaration of the name itself or of a range that
    /// holds it.
    #[inline]
    pub fn find(&self, name: &str) -> Option<Found> {
        let ranged = self.find_in_range(name);
        if ranged.is_some() && self.like_ranged == 0 && name.starts_with('%') {
            return ranged;
        }
        match self.plain.get(name) {
            None => ranged,
            Some(&index) => {
                let binding = &self.bindings[index as usize];
                let plain = Found {
                    entity: binding.entity,
                    depth: binding.depth,
                };
                Some(ranged.filter(|r| r.depth > plain.depth).unwrap_or(plain))
            }
        }
    }

    fn find_in_range(&self, name: &str) -> Option<Found> {
        let bytes = name.as_bytes();
        let digits = bytes
            .iter()
            .rev()
            .take_while(|b| b.is_ascii_digit())
            .count();
        // A leading zero names no register of a range, unless it is the number zero.
        let (prefix, number) = name.split_at_checked(name.len() - digits)?;
        if digits == 0 || digits > 9 || (digits > 1 && number.starts_with('0')) {
            return None;
        }
        let number = number.bytes().fold(0, |n, b| n * 10 + u32::from(b - b'0'));
        let mut index = *self.ranges.get(prefix)?;
        while let Some(binding) = self.bindings.get(index as usize) {
            if let Entity::Range { decl, count } = binding.entity
                && number < count
            {
                return Some(Found {
                    entity: Entity::Ranged { decl, number },
                    depth: binding.depth,
                });
            }
            index = binding.shadowed;
        }
        None
    }

    /// Where a name of the innermost scope was declared.
    pub fn span_of(&self, name: &str) -> Option<Span> {
        let index = *self.plain.get(name)?;
        self.bindings.get(index as usize).map(|b| b.span)
    }

    /// All visible names, for suggestions: the last register stands for its range. The order is
    /// that of declaration.
    pub fn visible(&self) -> impl Iterator<Item = String> + '_ {
        self.bindings.iter().map(|b| match b.entity {
            Entity::Range { count, .. } => format!("{}{}", b.key, count.saturating_sub(1)),
            _ => b.key.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The declaration and number of a register; a single one has no number.
    fn reg(found: Option<Found>) -> Option<(u32, Option<u32>)> {
        match found?.entity {
            Entity::Reg(r) => Some((r.as_u32(), None)),
            Entity::Ranged { decl, number } => Some((decl.as_u32(), Some(number))),
            _ => None,
        }
    }

    #[test]
    fn inner_ranges_and_names_shadow_outer_ones() {
        let mut names = Names::default();
        let span = Span::default();
        let range = |decl, count| Entity::Range {
            decl: RegDeclId::from_u32(decl),
            count,
        };
        names.open();
        names.declare("%r", range(0, 100), span).unwrap();
        names.open();
        names.declare("%r", range(1, 5), span).unwrap();
        names
            .declare("%r7", Entity::Reg(Reg::from_u32(200)), span)
            .unwrap();
        assert_eq!(reg(names.find("%r4")), Some((1, Some(4))));
        assert_eq!(reg(names.find("%r5")), Some((0, Some(5))));
        assert_eq!(reg(names.find("%r7")), Some((200, None)));
        assert!(names.find("%r07").is_none());
        assert!(names.find("%r100").is_none());
        names.open();
        names.declare("%r", range(3, 9), span).unwrap();
        assert_eq!(reg(names.find("%r7")), Some((3, Some(7))));
        names.close();
        names.close();
        assert_eq!(reg(names.find("%r4")), Some((0, Some(4))));
        assert_eq!(reg(names.find("%r7")), Some((0, Some(7))));
        names.close();
        assert!(names.find("%r4").is_none());
    }

    #[test]
    fn a_register_is_not_declared_singly_and_in_a_range() {
        let span = Span::new(1, 2);
        let range = |count| Entity::Range {
            decl: RegDeclId::from_u32(0),
            count,
        };
        let single = Entity::Reg(Reg::from_u32(9));
        let mut names = Names::default();
        names.open();
        names.declare("a", range(4), span).unwrap();
        assert_eq!(names.declare("a3", single, Span::default()), Err(span));
        names.declare("a4", single, span).unwrap();
        names.declare("b2", single, span).unwrap();
        assert_eq!(names.declare("b", range(3), Span::default()), Err(span));
        names.declare("b", range(2), span).unwrap();
    }

    #[test]
    fn a_second_declaration_in_one_scope_is_refused() {
        let mut names = Names::default();
        let var = Entity::Var(VarId::from_u32(0));
        names.declare("a", var, Span::new(3, 4)).unwrap();
        assert_eq!(
            names.declare("a", var, Span::new(8, 9)),
            Err(Span::new(3, 4))
        );
        names.open();
        assert_eq!(names.declare("a", var, Span::new(8, 9)), Ok(()));
    }
}
