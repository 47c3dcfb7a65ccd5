//! Many short lists in one allocation: `lists.get(key)` is a slice.

/// For each key below a fixed bound, a list of items.
#[derive(Clone, Debug)]
pub(crate) struct Lists<T> {
    /// Start of each key's list in `items`, and the end of the last one.
    starts: Vec<u32>,
    items: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Lists {
            starts: vec![0],
            items: Vec::new(),
        }
    }
}

impl<T: Copy> Lists<T> {
    /// Distributes `pairs` over `keys` lists; pairs of one key keep their order.
    pub(crate) fn from_pairs(keys: usize, pairs: &[(u32, T)]) -> Self {
        let mut starts = vec![0u32; keys + 1];
        for (key, _) in pairs {
            starts[*key as usize + 1] += 1;
        }
        for key in 0..keys {
            starts[key + 1] += starts[key];
        }
        let Some((_, filler)) = pairs.first() else {
            return Lists {
                starts,
                items: Vec::new(),
            };
        };
        let mut items = vec![*filler; pairs.len()];
        let mut next = starts.clone();
        for (key, item) in pairs {
            let slot = &mut next[*key as usize];
            items[*slot as usize] = *item;
            *slot += 1;
        }
        Lists { starts, items }
    }

    /// Joins one list per key.
    pub(crate) fn from_nested(lists: &[Vec<T>]) -> Self {
        let mut joined = Lists::default();
        joined.starts.reserve(lists.len());
        joined.items.reserve(lists.iter().map(Vec::len).sum());
        for list in lists {
            joined.push_list(list.iter().copied());
        }
        joined
    }

    /// Appends the list of the next key.
    pub(crate) fn push_list(&mut self, list: impl IntoIterator<Item = T>) {
        self.items.extend(list);
        self.starts.push(self.items.len() as u32);
    }

    /// The list of `key`.
    pub(crate) fn get(&self, key: usize) -> &[T] {
        &self.items[self.range(key)]
    }

    /// Where the list of `key` stands among all items.
    pub(crate) fn range(&self, key: usize) -> std::ops::Range<usize> {
        self.starts[key] as usize..self.starts[key + 1] as usize
    }

    /// Number of items in all lists together.
    pub(crate) fn item_count(&self) -> usize {
        self.items.len()
    }
}

impl<T: Ord> Lists<T> {
    /// Sorts every list.
    pub(crate) fn sort_each(&mut self) {
        for range in self.starts.windows(2) {
            self.items[range[0] as usize..range[1] as usize].sort_unstable();
        }
    }
}
