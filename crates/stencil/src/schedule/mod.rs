//! Scheduling the expressions of a stencil for registers.
//!
//! Paper: Rawat, Sukumaran-Rajam, Rountev, Rastello, Pouchet and Sadayappan, 'Register optimizations
//! for stencils on GPUs', PPoPP 2018. docs/stencils.md tells what is kept and what differs.
//!
//! In the order in which a stencil passes through:
//!
//! ```text
//! expression      operators become k-ary accumulations         section 3
//! distribute      products over sums, for multiply-adds        section 5
//! lower, dag      labelled trees with dependence edges         section 3
//! build           all that for a stencil, unrolled             section 3
//! order_trees     the order of the trees                       section 3.4, algorithm 2
//! schedule_tree   su' and the order within a tree              sections 3.2, 3.3, algorithm 1
//!   clusters        maximal clusters and their order           section 3.2
//!   orders          the best permutation                       sections 3.2, 3.3
//!   partition       large clusters in groups                   section 3.3
//! interleave      slices are evaluated early                   section 4, algorithm 3
//! schedule_dag    all of it for one kernel                     algorithm 2
//! straight        the result: steps, their pressure, MAXLIVE
//! ```
//! Beside them: [`labels`] (sets).

pub mod build;
pub mod clusters;
pub mod dag;
pub mod distribute;
pub mod expression;
pub mod interleave;
pub mod labels;
pub mod lower;
pub mod order_trees;
pub mod orders;
pub mod partition;
pub mod schedule_dag;
pub mod schedule_tree;
pub mod straight;
