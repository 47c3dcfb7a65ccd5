//! Every atomic schedule of a tree, one by one: what the scheduler's results are held against.
//!
//! Shares no code with `schedule_tree`: it permutes children and counts MAXLIVE on the
//! steps. Only for small trees; the number of schedules is the product of the factorials of the
//! numbers of children.

use warpwright_stencil::schedule::dag::{Dag, Kind, Node};
use warpwright_stencil::schedule::straight::{Context, Profile, Step};

/// The smallest MAXLIVE of any atomic schedule of a tree in a context, and how many schedules there
/// are; `None` if there are more than `most`.
pub fn smallest_max_live(
    dag: &Dag,
    root: Node,
    context: &Context,
    most: usize,
) -> Option<(u32, usize)> {
    let schedules = schedules(dag, root, most)?;
    let max_live = schedules
        .iter()
        .map(|s| Profile::new(dag, s, context).max_live());
    Some((max_live.min().unwrap_or(0), schedules.len()))
}

/// All atomic schedules of a subtree.
fn schedules(dag: &Dag, node: Node, most: usize) -> Option<Vec<Vec<Step>>> {
    let children = &dag.nodes[node].children;
    let accumulates = dag.is_accumulation(node);
    let mut parts: Vec<Vec<Vec<Step>>> = Vec::new();
    for (child, at) in children.iter().zip(0..) {
        let mut part = schedules(dag, child.node, most)?;
        if accumulates {
            part.iter_mut()
                .for_each(|steps| steps.push(Step::Accumulate(node, at)));
        }
        parts.push(part);
    }
    let orders = match dag.is_ordered(node) {
        true => vec![(0..parts.len()).collect()],
        false => permutations(parts.len(), most)?,
    };
    let mut all = Vec::new();
    for order in orders {
        let mut sequences: Vec<Vec<Step>> = vec![Vec::new()];
        for at in order {
            let mut longer = Vec::new();
            for sequence in &sequences {
                for part in &parts[at] {
                    longer.push([&sequence[..], part].concat());
                }
            }
            sequences = longer;
            if sequences.len() > most {
                return None;
            }
        }
        all.extend(sequences);
        if all.len() > most {
            return None;
        }
    }
    if matches!(dag.nodes[node].kind, Kind::Operator(_)) {
        all.iter_mut()
            .for_each(|steps| steps.push(Step::Compute(node)));
    }
    Some(all)
}

fn permutations(count: usize, most: usize) -> Option<Vec<Vec<usize>>> {
    let mut all = vec![Vec::new()];
    for at in 0..count {
        let insert = |order: Vec<usize>| {
            (0..=order.len()).map(move |place| {
                let mut longer = order.clone();
                longer.insert(place, at);
                longer
            })
        };
        all = all.into_iter().flat_map(insert).collect();
        if all.len() > most {
            return None;
        }
    }
    Some(all)
}
