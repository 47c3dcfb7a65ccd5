//! Schedules of random small trees against an exhaustive search, and of random DAGs against the
//! rules that every schedule keeps.

#![allow(clippy::unwrap_used)]

mod dag;
mod exhaustive;

use std::collections::HashMap;
use std::ops::{Add, Div, Mul, Neg};

use dag::{parse, validate};
use exhaustive::smallest_max_live;
use proptest::prelude::*;
use warpwright_stencil::schedule::dag::{Dag, Kind, Node, Operator, Order};
use warpwright_stencil::schedule::interleave::{Targets, interleave};
use warpwright_stencil::schedule::labels::Label;
use warpwright_stencil::schedule::order_trees::order_trees;
use warpwright_stencil::schedule::schedule_dag::{Schedule, atomic, schedule};
use warpwright_stencil::schedule::schedule_tree::{Options, Scheduler};
use warpwright_stencil::schedule::straight::{Context, Profile, Step, Values};

/// Expressions over a few labels, so that many are shared.
fn expression(labels: &'static str) -> impl Strategy<Value = String> {
    let leaf =
        proptest::sample::select(labels.split(' ').collect::<Vec<_>>()).prop_map(str::to_owned);
    leaf.prop_recursive(3, 14, 4, |inner| {
        let some = proptest::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            3 => some.clone().prop_map(|terms| format!("({})", terms.join(" + "))),
            1 => some.clone().prop_map(|terms| format!("({})", terms.join(" - "))),
            2 => some.prop_map(|factors| factors.join(" * ")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) / ({b})")),
            1 => inner.prop_map(|a| format!("sqrt({a})")),
        ]
    })
}

/// A context over the first eight labels: `bits` say which are alive before and after.
fn context(dag: &Dag, bits: u16) -> Context {
    let root = dag.trees.values().next().unwrap().root;
    let used = dag.uses(root);
    let mut context = Context::default();
    for (at, label) in used.iter().take(8).enumerate() {
        if bits >> at & 1 != 0 {
            context.live_in.insert(label);
        }
        if bits >> (at + 8) & 1 != 0 {
            context.live_out.insert(label);
        }
    }
    context
}

fn exact() -> Options {
    Options {
        d: 0,
        exact: 12,
        threshold: 1_000_000,
        ..Options::default()
    }
}

fn only_tree(dag: &Dag) -> Node {
    dag.trees.values().next().unwrap().root
}

/// The steps of the only tree.
fn steps_of(dag: &Dag, options: Options, context: &Context) -> Vec<Step> {
    let mut steps = Vec::new();
    Scheduler::new(dag, options).schedule(only_tree(dag), context, &mut steps);
    steps
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// su' is the smallest MAXLIVE of all atomic schedules, and the schedule attains it.
    #[test]
    fn optimal_among_atomic_schedules(source in expression("a b c d e $k 2.0"), bits: u16) {
        let Ok(dag) = parse(&format!("out = {source}"), Order::Any) else {
            return Ok(());
        };
        let context = context(&dag, bits);
        let root = only_tree(&dag);
        let Some((smallest, _)) = smallest_max_live(&dag, root, &context, 3000) else {
            return Ok(());
        };
        let promised = Scheduler::new(&dag, exact()).su(root, &context);
        let steps = steps_of(&dag, exact(), &context);
        validate(&dag, &steps).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(Profile::new(&dag, &steps, &context).max_live(), promised);
        prop_assert_eq!(promised, smallest);
    }

    /// With `d`, at each node, the schedule stays valid and keeps its promise; it may only be worse.
    #[test]
    fn the_heuristics_keep_their_promise(source in expression("a b c d e f g h"), bits: u16) {
        let Ok(dag) = parse(&format!("out = {source}"), Order::Any) else {
            return Ok(());
        };
        let context = context(&dag, bits);
        let root = only_tree(&dag);
        let best = Scheduler::new(&dag, exact()).su(root, &context);
        let hasty = Options { exact: 0, largest_cluster: 2, partition: 2, threshold: 40, ..Options::default() };
        for options in [Options::default(), Options { memoize: false, ..exact() }, hasty] {
            let promised = Scheduler::new(&dag, options).su(root, &context);
            let steps = steps_of(&dag, options, &context);
            validate(&dag, &steps).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert!(promised >= best);
            // With a budget, planning alone and planning on the way to the steps may differ.
            if options.threshold > 1000 {
                prop_assert_eq!(Profile::new(&dag, &steps, &context).max_live(), promised);
            }
        }
    }

    /// Theorems 3.1 to 3.3: clusters of one subtree each are ordered optimally.
    #[test]
    fn single_clusters_are_ordered_optimally(
        shapes in proptest::collection::vec(0_usize..6, 2..5),
        bits: u16,
    ) {
        let terms: Vec<String> = shapes.iter().enumerate().map(|(n, shape)| match shape {
            0 => format!("a{n}"),
            1 => format!("a{n} * b{n}"),
            2 => format!("(a{n} + b{n}) / c{n}"),
            3 => format!("(a{n} - b{n}) / (c{n} - d{n})"),
            4 => format!("sqrt(a{n})"),
            _ => format!("(a{n} * b{n} + c{n}) / a{n}"),
        }).collect();
        let dag = parse(&format!("out = {}", terms.join(" + ")), Order::Any).unwrap();
        let context = context(&dag, bits);
        let root = only_tree(&dag);
        let Some((smallest, _)) = smallest_max_live(&dag, root, &context, 600) else {
            return Ok(());
        };
        let by_theorem = Options { exact: 0, d: 0, ..Options::default() };
        prop_assert_eq!(Scheduler::new(&dag, by_theorem).su(root, &context), smallest);
    }

    /// Algorithm 3 keeps the schedule valid, never raises MAXLIVE, and the values stay the same.
    #[test]
    fn interleaving_never_raises_max_live(
        sources in proptest::collection::vec(expression("a b c d e f t0 t1 t2"), 1..5),
        written: bool,
        together: bool,
    ) {
        let order = if written { Order::Written } else { Order::Any };
        let mut lines = String::new();
        for (at, source) in sources.iter().enumerate() {
            let kind = if at % 2 == 0 { ":=" } else { "=" };
            // Only earlier trees can be read.
            let source = (at..3).fold(source.clone(), |s, later| s.replace(&format!("t{later}"), "f"));
            lines += &format!("t{at} {kind} {source}\n");
        }
        let dag = parse(&lines, order).unwrap();
        let trees = order_trees(&dag);
        let (mut steps, _) = atomic(&dag, &trees, Options::default());
        validate(&dag, &steps).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let none = Context::default();
        let before = Profile::new(&dag, &steps, &none).max_live();
        let targets = if together { Targets::Together } else { Targets::Alone };
        interleave(&dag, &mut steps, &none, targets);
        validate(&dag, &steps).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert!(Profile::new(&dag, &steps, &none).max_live() <= before);
        let as_written = Schedule::as_written(&dag).steps;
        let reference: HashMap<Label, Field> = evaluate(&dag, &as_written);
        prop_assert_eq!(reference, evaluate(&dag, &steps));
        if written {
            let reference: HashMap<Label, f64> = evaluate(&dag, &as_written);
            for (label, value) in evaluate::<f64>(&dag, &steps) {
                prop_assert_eq!(value.to_bits(), reference[&label].to_bits());
            }
        }
    }
}

/// What expressions are evaluated in.
trait Number:
    Copy + Add<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    fn literal(value: f64) -> Self;
    fn sqrt(self) -> Self;
}

impl Number for f64 {
    fn literal(value: f64) -> f64 {
        value
    }

    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }
}

/// An integer modulo 2^61 - 1: a field, so that sums and products reordered or reassociated are
/// equal exactly, where floating point would need a tolerance that cancellation breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field(u64);

impl Field {
    const MODULUS: u64 = (1 << 61) - 1;

    fn power(self, mut exponent: u64) -> Field {
        let (mut base, mut result) = (self, Field(1));
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result * base;
            }
            base = base * base;
            exponent >>= 1;
        }
        result
    }
}

impl Add for Field {
    type Output = Field;

    fn add(self, other: Field) -> Field {
        Field((self.0 + other.0) % Field::MODULUS)
    }
}

impl Mul for Field {
    type Output = Field;

    fn mul(self, other: Field) -> Field {
        Field((u128::from(self.0) * u128::from(other.0) % u128::from(Field::MODULUS)) as u64)
    }
}

impl Div for Field {
    type Output = Field;

    /// By the inverse; 0 where the divisor is 0.
    fn div(self, other: Field) -> Field {
        self * other.power(Field::MODULUS - 2)
    }
}

impl Neg for Field {
    type Output = Field;

    fn neg(self) -> Field {
        Field((Field::MODULUS - self.0) % Field::MODULUS)
    }
}

impl Number for Field {
    /// Exact for literals that are whole hundredths.
    fn literal(value: f64) -> Field {
        let hundredths = (value.abs() * 100.0).round() as u64;
        let value_of = Field(hundredths) / Field(100);
        if value < 0.0 { -value_of } else { value_of }
    }

    /// Some function: that it is no root does not matter here.
    fn sqrt(self) -> Field {
        self * self * self + Field(7)
    }
}

/// The labels' values after the steps, each step rounded as it stands.
fn evaluate<N: Number>(dag: &Dag, steps: &[Step]) -> HashMap<Label, N> {
    let values = Values::new(dag);
    let mut labels: HashMap<Label, N> = HashMap::new();
    let mut nodes: HashMap<Node, N> = HashMap::new();
    let produced: Vec<Label> = dag.trees.values().map(|t| t.target).collect();
    for (at, label) in dag.labels.keys().enumerate() {
        if !produced.contains(&label) {
            labels.insert(label, N::literal(1.0 + 0.37 * at as f64));
        }
    }
    fn value<N: Number>(
        dag: &Dag,
        labels: &HashMap<Label, N>,
        nodes: &HashMap<Node, N>,
        node: Node,
    ) -> N {
        let children = &dag.nodes[node].children;
        match dag.nodes[node].kind {
            Kind::Leaf(label) => labels[&label],
            Kind::Literal(value) => N::literal(value),
            Kind::Multiply => {
                value(dag, labels, nodes, children[0].node)
                    * value(dag, labels, nodes, children[1].node)
            }
            _ => nodes[&node],
        }
    }
    for &step in steps {
        let node = step.node();
        let result = match step {
            Step::Compute(_) => {
                let operands: Vec<N> = dag.nodes[node]
                    .children
                    .iter()
                    .map(|c| value(dag, &labels, &nodes, c.node))
                    .collect();
                match dag.nodes[node].kind {
                    Kind::Operator(Operator::Divide) => operands[0] / operands[1],
                    Kind::Operator(Operator::Negate) => -operands[0],
                    _ => operands[0].sqrt(),
                }
            }
            Step::Accumulate(_, index) => {
                let child = dag.nodes[node].children[index as usize];
                let operand = value(dag, &labels, &nodes, child.node);
                let operand = if child.negative { -operand } else { operand };
                match (nodes.get(&node).copied(), dag.nodes[node].kind) {
                    (None, _) => operand,
                    (Some(so_far), Kind::Product(_)) => so_far * operand,
                    (Some(so_far), _) => so_far + operand,
                }
            }
        };
        nodes.insert(node, result);
        if let Some(target) = values.target(node) {
            labels.insert(target, result);
        }
    }
    labels
}

/// Evaluating one cluster after the other (theorems 3.1 to 3.3) is not always optimal: where two
/// clusters release registers early and need them again late, their members are better mixed.
#[test]
fn clusters_in_a_row_are_not_always_optimal() {
    let found = (0..400_u32).find_map(|seed| {
        let dag = parse(&two_clusters(seed), Order::Any).unwrap();
        let root = only_tree(&dag);
        let context = context(&dag, ((seed * 40503) >> 3) as u16);
        let (smallest, _) = smallest_max_live(&dag, root, &context, 600)?;
        let by_theorem = Options {
            exact: 0,
            d: 0,
            ..Options::default()
        };
        let found = Scheduler::new(&dag, by_theorem).su(root, &context);
        (found > smallest).then_some((seed, found, smallest))
    });
    println!(
        "{found:?} {}",
        found.map_or(String::new(), |f| two_clusters(f.0))
    );
    assert!(found.is_some());
}

/// A sum of two pairs of terms; the terms of a pair share a label.
fn two_clusters(seed: u32) -> String {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = |n: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % n
    };
    let mut terms = Vec::new();
    for cluster in 0..2 {
        for member in 0..2 {
            let own = format!("v{cluster}{member}");
            terms.push(match next(4) {
                0 => format!("s{cluster} * {own}a"),
                1 => format!("(s{cluster} - {own}a) / ({own}b - {own}c)"),
                2 => format!("({own}a - {own}b) / s{cluster}"),
                _ => format!("sqrt(s{cluster})"),
            });
        }
    }
    format!("out = {}", terms.join(" + "))
}

/// What the threshold and memoization are for: the same schedule with far fewer plans.
#[test]
fn memoisation_saves_plans() {
    let terms: Vec<String> = (0..8)
        .map(|n| format!("(a{n} - a{}) / (b{n} - a{n})", (n + 1) % 8))
        .collect();
    let dag = parse(&format!("out = {}", terms.join(" + ")), Order::Any).unwrap();
    let trees: Vec<_> = dag.trees.keys().collect();
    let with = schedule(&dag, &trees, exact());
    let without = schedule(
        &dag,
        &trees,
        Options {
            memoize: false,
            ..exact()
        },
    );
    assert_eq!(with.steps, without.steps);
    assert!(
        with.statistics.made * 10 < without.statistics.made,
        "{:?} {:?}",
        with.statistics,
        without.statistics
    );
}
