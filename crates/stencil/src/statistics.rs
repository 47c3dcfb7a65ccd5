//! The columns of Table 1 of Rawat et al. (PPoPP 2018): what a stencil reads and computes.
//!
//! The paper says what its columns are, not how they are counted. Here:
//!
//! - `k`, the order: the largest distance, along one dimension, of an element from the point.
//! - `F`, FLOPs per point: operators as written, each accumulation (`+=`) one more, a call one
//!   (`fma` two). A sign is free, and what is known when the kernel is compiled is not computed.
//! - `R`: arrays, whatever their number of dimensions.
//! - `A`, elements accessed per thread: array elements and scalar arguments as often as they are
//!   written down, and one for the target of each statement that stores, times the points of a
//!   thread.
//! - `U`, unique elements accessed per thread: the different ones among them.
//!
//! With these, the numbers of the simple stencils are the paper's; bench/results/stencils.md has the table
//! and the differences.

use std::collections::BTreeSet;

use super::ir::{Access, Expr, Function, ScalarId, Stencil, Subscript, Target};

/// The numbers of one stencil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// `UF`: points per thread, the product of the factors that the input asks for.
    pub unroll: u64,
    /// `k`, in cells.
    pub order: i64,
    /// `F`, per point.
    pub flops: u64,
    /// `R`.
    pub arrays: usize,
    /// `A`, per thread that computes `unroll` points.
    pub accessed: u64,
    /// `U`, per thread that computes `unroll` points.
    pub unique: u64,
}

/// An element of an array, or a scalar argument.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Element(Access),
    Scalar(ScalarId),
}

/// Counts everything.
pub fn statistics(stencil: &Stencil) -> Statistics {
    let items = items(stencil);
    let points = instances(stencil);
    let mut unique = BTreeSet::new();
    for point in &points {
        unique.extend(items.iter().map(|item| shifted(item, point)));
    }
    Statistics {
        unroll: points.len() as u64,
        order: order(&items),
        flops: flops(stencil),
        arrays: stencil.arrays.len(),
        accessed: (items.len() * points.len()) as u64,
        unique: unique.len() as u64,
    }
}

/// All uses of elements and scalars by one point.
fn items(stencil: &Stencil) -> Vec<Item> {
    let mut items = Vec::new();
    for statement in &stencil.statements {
        for expr in stencil.reachable(statement.value) {
            match &stencil.exprs[expr] {
                Expr::Load(access) => items.push(Item::Element(access.clone())),
                Expr::Scalar(scalar) => items.push(Item::Scalar(*scalar)),
                _ => {}
            }
        }
        if let Target::Store(access) = &statement.target {
            items.push(Item::Element(access.clone()));
        }
    }
    items
}

/// The points of one thread: offsets along each dimension.
fn instances(stencil: &Stencil) -> Vec<Vec<i64>> {
    let mut points = vec![Vec::new()];
    for dim in stencil.dims.values() {
        let factor = i64::from(dim.unroll.unwrap_or(1));
        points = points
            .into_iter()
            .flat_map(|point| {
                (0..factor).map(move |n| {
                    let mut point = point.clone();
                    point.push(n);
                    point
                })
            })
            .collect();
    }
    points
}

/// The same use by another point of the thread.
fn shifted(item: &Item, point: &[i64]) -> Item {
    let Item::Element(access) = item else {
        return item.clone();
    };
    let shift = |s: &Subscript| {
        let by = s.dim.and_then(|d| point.get(d.as_u32() as usize));
        Subscript {
            offset: s.offset + by.unwrap_or(&0),
            ..*s
        }
    };
    Item::Element(Access {
        array: access.array,
        subscripts: access.subscripts.iter().map(shift).collect(),
    })
}

fn order(items: &[Item]) -> i64 {
    let subscripts = items.iter().flat_map(|item| match item {
        Item::Element(access) => access.subscripts.as_slice(),
        Item::Scalar(_) => &[],
    });
    let along = subscripts.filter(|s| s.dim.is_some());
    along.map(|s| s.offset.abs()).max().unwrap_or(0)
}

fn flops(stencil: &Stencil) -> u64 {
    let of = |expr: &Expr| match expr {
        Expr::Binary(..) => 1,
        Expr::Call(Function::Fma, _) => 2,
        Expr::Call(Function::When, _) => 0,
        Expr::Call(..) => 1,
        Expr::Constant(..)
        | Expr::Scalar(_)
        | Expr::Temp(_)
        | Expr::Load(_)
        | Expr::Neg(_)
        | Expr::Choice(..) => 0,
    };
    let statements = stencil.statements.iter().map(|statement| {
        let nodes = stencil.reachable(statement.value);
        let operations: u64 = nodes.iter().map(|&e| of(&stencil.exprs[e])).sum();
        operations + u64::from(statement.accumulate)
    });
    statements.sum()
}
