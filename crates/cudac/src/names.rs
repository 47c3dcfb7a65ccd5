//! Names in nested scopes.

use std::collections::{BTreeMap, BTreeSet};

/// What the names of a function mean where its code stands, the innermost scope last.
#[derive(Clone, Debug)]
pub struct Scopes<T>(Vec<BTreeMap<String, T>>);

impl<T> Default for Scopes<T> {
    fn default() -> Self {
        Scopes(vec![BTreeMap::new()])
    }
}

impl<T> Scopes<T> {
    /// Opens a scope.
    pub fn open(&mut self) {
        self.0.push(BTreeMap::new());
    }

    /// Closes the innermost scope; what it held.
    pub fn close(&mut self) -> BTreeMap<String, T> {
        self.0.pop().unwrap_or_default()
    }

    /// All meanings, to be changed.
    pub fn meanings_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flat_map(BTreeMap::values_mut)
    }

    /// How many scopes are open.
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// The meaning of a name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().rev().find_map(|scope| scope.get(name))
    }

    /// The scope that a name stands in, counted from the outermost.
    pub fn depth_of(&self, name: &str) -> Option<usize> {
        self.0.iter().rposition(|scope| scope.contains_key(name))
    }

    /// Gives a name of the innermost scope a meaning.
    pub fn declare(&mut self, name: &str, meaning: T) {
        if let Some(scope) = self.0.last_mut() {
            scope.insert(name.to_owned(), meaning);
        }
    }

    /// Changes the meaning of a name where it stands; false if it stands nowhere.
    pub fn assign(&mut self, name: &str, meaning: T) -> bool {
        let Some(depth) = self.depth_of(name) else {
            return false;
        };
        self.0[depth].insert(name.to_owned(), meaning);
        true
    }
}

/// A name, with as many `_` behind it as it takes until nothing has it.
pub fn free(wish: impl Into<String>, is_taken: impl Fn(&str) -> bool) -> String {
    let mut name = wish.into();
    while is_taken(&name) {
        name.push('_');
    }
    name
}

/// Is it one of these words, which have blanks between them?
pub fn among(words: &str, word: &str) -> bool {
    words.split(' ').any(|own| own == word)
}

/// What the generated names of a kernel begin with: its own name, or `kernel_2` and so on where a word of the text
/// begins with that and one of `parts`.
pub fn free_stem(kernel: &str, words: &BTreeSet<String>, parts: &[&str]) -> String {
    let is_taken = |stem: &str| {
        words.iter().any(|word| {
            let rest = word.strip_prefix(stem);
            rest.is_some_and(|rest| parts.iter().any(|part| rest.starts_with(part)))
        })
    };
    let mut stem = kernel.to_owned();
    let mut number = 1;
    while is_taken(&stem) {
        number += 1;
        stem = format!("{kernel}_{number}");
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_names_hide_outer_ones_until_their_scope_closes() {
        let mut scopes = Scopes::default();
        scopes.declare("a", 1);
        scopes.open();
        scopes.declare("b", 2);
        assert!(scopes.assign("a", 3) && !scopes.assign("c", 4));
        scopes.declare("a", 5);
        assert_eq!((scopes.get("a"), scopes.depth_of("a")), (Some(&5), Some(1)));
        assert_eq!(scopes.close().len(), 2);
        assert_eq!((scopes.get("a"), scopes.get("b")), (Some(&3), None));
    }
}
