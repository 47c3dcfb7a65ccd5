//! Solutions of the n queens problem, found queen by queen by comparing coordinates.

use crate::data::{Data, Output, words};

/// Do two queens in different rows attack each other?
fn attack(a: (usize, usize), b: (usize, usize)) -> bool {
    a.1 == b.1 || a.0.abs_diff(b.0) == a.1.abs_diff(b.1)
}

/// Calls `found` with the columns of every solution that begins with `columns`.
fn extend(n: usize, columns: &mut Vec<usize>, found: &mut dyn FnMut(&[usize])) {
    let row = columns.len();
    if row == n {
        found(columns);
        return;
    }
    for column in 0..n {
        let mut placed = columns.iter().copied().enumerate();
        if placed.all(|queen| !attack(queen, (row, column))) {
            columns.push(column);
            extend(n, columns, found);
            columns.pop();
        }
    }
}

/// How many solutions begin with each choice of the first five columns.
fn count(n: usize) -> Vec<u64> {
    let mut solutions = vec![0; n.pow(5)];
    extend(n, &mut Vec::new(), &mut |columns| {
        let id = columns.iter().take(5).rev().fold(0, |id, c| id * n + c);
        solutions[id] += 1;
    });
    solutions
}

pub(crate) fn reference(data: &Data<'_>) -> Option<Vec<Output>> {
    Some(vec![words("solutions", count(data.param("n")?))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_the_known_ones() {
        // OEIS A000170.
        for (n, solutions) in [(6, 4), (7, 40), (8, 92), (9, 352)] {
            assert_eq!(count(n).iter().sum::<u64>(), solutions, "{n}");
        }
    }
}
