//! The best order of a few subtrees: all permutations, without trying all.
//!
//! Paper: section 3.2 tries all permutations of the children; section 3.3 prunes with `d` and
//! bounds their number by a threshold.
//!
//! Departure: what the evaluation of a child costs depends on which siblings came before it, not
//! on their order. So orders are paths through the subsets of the children, k · 2^(k-1) evaluations
//! stand for k! permutations, and the result is the same optimum. The search asks for an order
//! within a limit, which it raises from the lower bound plus `d` until there is one; the first
//! order found within a limit is the one closest to the order as written.

/// How an order was found, and what it costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordered {
    /// Indices in order of evaluation.
    pub order: Vec<u32>,
    /// The largest cost of any of them.
    pub peak: u32,
}

/// Most items that are ordered as one group.
pub const MAX_ITEMS: usize = 12;

/// The order of `count` items with the smallest largest cost, or the first one found that costs at
/// most `enough`. `cost(before, item, budget)` evaluates `item` after the set `before`. Every call
/// takes one from the budget; once it is spent, the order is chosen greedily.
pub fn best_order(
    count: usize,
    enough: u32,
    budget: &mut u64,
    cost: &mut dyn FnMut(u32, usize, &mut u64) -> u32,
) -> Ordered {
    debug_assert!(count <= MAX_ITEMS);
    let mut search = Search {
        count,
        known: vec![None; count << count],
        budget,
        cost,
    };
    let mut limit = enough;
    loop {
        let mut visited = vec![false; 1 << count];
        let mut order = Vec::new();
        let mut beyond = u32::MAX;
        match search.within(limit, 0, &mut visited, &mut order, &mut beyond) {
            Found::Yes => return search.priced(order),
            Found::No if beyond < u32::MAX => limit = beyond,
            Found::No | Found::Spent => break,
        }
    }
    search.greedy()
}

struct Search<'a> {
    count: usize,
    known: Vec<Option<u32>>,
    budget: &'a mut u64,
    cost: &'a mut dyn FnMut(u32, usize, &mut u64) -> u32,
}

enum Found {
    Yes,
    No,
    Spent,
}

impl Search<'_> {
    fn cost(&mut self, before: u32, item: usize) -> u32 {
        let at = (before as usize) * self.count + item;
        if let Some(cost) = self.known[at] {
            return cost;
        }
        *self.budget = self.budget.saturating_sub(1);
        let cost = (self.cost)(before, item, self.budget);
        self.known[at] = Some(cost);
        cost
    }

    /// Depth-first through the subsets; `beyond` becomes the smallest cost above the limit.
    fn within(
        &mut self,
        limit: u32,
        before: u32,
        visited: &mut [bool],
        order: &mut Vec<u32>,
        beyond: &mut u32,
    ) -> Found {
        if order.len() == self.count {
            return Found::Yes;
        }
        visited[before as usize] = true;
        for item in 0..self.count {
            let after = before | 1 << item;
            if after == before || visited[after as usize] {
                continue;
            }
            if *self.budget == 0 {
                return Found::Spent;
            }
            let cost = self.cost(before, item);
            if cost > limit {
                *beyond = cost.min(*beyond);
                continue;
            }
            order.push(item as u32);
            match self.within(limit, after, visited, order, beyond) {
                Found::No => order.pop(),
                found => return found,
            };
        }
        Found::No
    }

    fn priced(&mut self, order: Vec<u32>) -> Ordered {
        let (mut before, mut peak) = (0, 0);
        for &item in &order {
            peak = self.cost(before, item as usize).max(peak);
            before |= 1 << item;
        }
        Ordered { order, peak }
    }

    /// Always the item that is cheapest next.
    fn greedy(&mut self) -> Ordered {
        let mut order = Vec::new();
        let mut before: u32 = 0;
        for _ in 0..self.count {
            let left = (0..self.count).filter(|item| before >> item & 1 == 0);
            let left: Vec<usize> = left.collect();
            let next = left.into_iter().min_by_key(|&item| self.cost(before, item));
            let Some(next) = next else { break };
            order.push(next as u32);
            before |= 1 << next;
        }
        self.priced(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_order_wins_among_equals() {
        let found = best_order(4, 0, &mut 1000, &mut |_, _, _| 7);
        assert_eq!(found.order, [0, 1, 2, 3]);
        assert_eq!(found.peak, 7);
    }

    #[test]
    fn the_search_is_exact_within_its_budget_and_greedy_after() {
        // Item 0 is cheap at first, but makes item 1 dear; the best order starts with item 1.
        let mut cost = |before: u32, item: usize, _: &mut u64| match (before, item) {
            (0, 0) => 1,
            (1, 1) => 9,
            _ => 3,
        };
        assert_eq!(best_order(2, 0, &mut 100, &mut cost).order, [1, 0]);
        let greedy = best_order(2, 0, &mut 0, &mut cost);
        assert_eq!((greedy.order, greedy.peak), (vec![0, 1], 9));
    }
}
