//! Union-find.

/// Sets of numbers; the smallest of each set stands for it.
#[derive(Clone, Debug)]
pub(crate) struct Union {
    parent: Vec<u32>,
}

impl Union {
    pub(crate) fn new(count: usize) -> Union {
        Union {
            parent: (0..count as u32).collect(),
        }
    }

    pub(crate) fn find(&mut self, item: usize) -> usize {
        let mut at = item as u32;
        while self.parent[at as usize] != at {
            let above = self.parent[at as usize];
            self.parent[at as usize] = self.parent[above as usize];
            at = above;
        }
        at as usize
    }

    pub(crate) fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.parent[a.max(b)] = a.min(b) as u32;
    }
}
