//! The analyses against brute force on small random functions.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use warpwright_flow::{
    Block, Cfg, DefUse, Dominators, Function, Inst, LiveRanges, Liveness, Loop, Loops, Point,
    Pressure, Source, Transfer, Value, Webs,
};
use warpwright_toy::{Toy, ToyInst};

const VALUES: u32 = 5;

/// A random function of up to `max` instructions over five values of all classes.
fn function(max: usize) -> impl Strategy<Value = Toy> {
    (1..=max).prop_flat_map(|len| {
        prop::collection::vec(instruction(len as u32), len).prop_map(|insts| {
            let mut toy = Toy {
                insts,
                ..Toy::default()
            };
            for name in ["p0", "p1", "v2", "v3", "d4"] {
                toy.value(name);
            }
            toy
        })
    })
}

fn instruction(len: u32) -> impl Strategy<Value = ToyInst> {
    let transfer = prop_oneof![
        8 => Just(Transfer::Next),
        3 => Just(Transfer::Branch),
        2 => Just(Transfer::Jump),
        1 => Just(Transfer::Indirect),
        1 => Just(Transfer::Exit),
    ];
    let values = || prop::collection::vec((0..VALUES).prop_map(Value), 0..3);
    let targets = prop::collection::vec((0..=len).prop_map(Inst), 2);
    (transfer, values(), values(), any::<bool>(), targets).prop_map(
        |(transfer, uses, defs, predicated, targets)| {
            let mut inst = ToyInst::new(transfer);
            inst.uses = uses;
            inst.predicated = predicated;
            match transfer {
                Transfer::Next => inst.defs = defs,
                Transfer::Indirect => inst.targets = targets,
                Transfer::Branch | Transfer::Jump => inst.targets = targets[..1].to_vec(),
                _ => {}
            }
            inst
        },
    )
}

/// The instructions that may follow `inst`, by definition of [`Transfer`].
fn followers(func: &Toy, inst: usize) -> Vec<usize> {
    let data = &func.insts[inst];
    let mut next: Vec<usize> = data
        .targets
        .iter()
        .map(|target| target.0 as usize)
        .collect();
    if data.predicated || matches!(data.transfer, Transfer::Next | Transfer::Branch) {
        next.push(inst + 1);
    }
    next.retain(|&target| target < func.insts.len());
    next
}

/// Is `value` live before `inst`? A search over all paths.
fn live_before(func: &Toy, inst: usize, value: Value) -> bool {
    let mut seen = BTreeSet::new();
    let mut work = vec![inst];
    while let Some(at) = work.pop() {
        let data = &func.insts[at];
        if data.uses.contains(&value) {
            return true;
        }
        let killed = !data.predicated && data.defs.contains(&value);
        if !killed && seen.insert(at) {
            work.extend(followers(func, at));
        }
    }
    false
}

fn live_after(func: &Toy, inst: usize, value: Value) -> bool {
    followers(func, inst)
        .into_iter()
        .any(|next| live_before(func, next, value))
}

/// Blocks reachable from `from` without entering `without`.
fn reach(
    from: &[Block],
    without: Option<Block>,
    next: impl Fn(Block) -> Vec<Block>,
) -> BTreeSet<Block> {
    let mut seen = BTreeSet::new();
    let mut work: Vec<Block> = from.to_vec();
    while let Some(block) = work.pop() {
        if Some(block) != without && seen.insert(block) {
            work.extend(next(block));
        }
    }
    seen
}

/// Loops by definition: the strongly connected regions, and within each, without its header (the
/// block that depth-first search meets first), again. Maps a header to its blocks and its parent.
type Nest = BTreeMap<Block, (BTreeSet<Block>, Option<Block>)>;

fn loop_nest(
    cfg: &Cfg,
    within: &BTreeSet<Block>,
    parent: Option<Block>,
    order: &[Block],
    nest: &mut Nest,
) {
    let mut left = within.clone();
    for &header in order {
        if !left.contains(&header) {
            continue;
        }
        let inside = |list: &[Block]| -> Vec<Block> {
            list.iter()
                .copied()
                .filter(|block| within.contains(block))
                .collect()
        };
        let down = reach(&inside(cfg.succs(header)), None, |block| {
            inside(cfg.succs(block))
        });
        let up = reach(&inside(cfg.preds(header)), None, |block| {
            inside(cfg.preds(block))
        });
        let region: BTreeSet<Block> = down.intersection(&up).copied().collect();
        left.remove(&header);
        if region.contains(&header) {
            left = left.difference(&region).copied().collect();
            let mut body = region.clone();
            body.remove(&header);
            nest.insert(header, (region, parent));
            loop_nest(cfg, &body, Some(header), order, nest);
        }
    }
}

fn preorder(cfg: &Cfg) -> Vec<Block> {
    fn visit(cfg: &Cfg, block: Block, order: &mut Vec<Block>) {
        if !order.contains(&block) {
            order.push(block);
            for &succ in cfg.succs(block) {
                visit(cfg, succ, order);
            }
        }
    }
    let mut order = Vec::new();
    visit(cfg, Block(0), &mut order);
    order
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn liveness_pressure_and_ranges(func in function(12)) {
        let cfg = Cfg::new(&func);
        let liveness = Liveness::new(&func, &cfg);
        let pressure = Pressure::new(&func, &cfg, &liveness);
        let ranges = LiveRanges::new(&func, &cfg, &liveness);
        let all: Vec<Value> = (0..VALUES).map(Value).collect();
        for index in 0..func.insts.len() {
            let inst = Inst(index as u32);
            let before: Vec<Value> =
                all.iter().copied().filter(|&v| live_before(&func, index, v)).collect();
            let after: Vec<Value> =
                all.iter().copied().filter(|&v| live_after(&func, index, v)).collect();
            prop_assert_eq!(&liveness.live_before(&func, &cfg, inst), &before);
            prop_assert_eq!(&liveness.live_after(&func, &cfg, inst), &after);
            let held: Vec<Value> = all
                .iter()
                .copied()
                .filter(|v| after.contains(v) || func.insts[index].defs.contains(v))
                .collect();
            let units = |set: &[Value]| set.iter().map(|&v| func.units(v)).sum::<u32>();
            if cfg.is_reachable(cfg.block_of(inst)) {
                prop_assert_eq!(pressure.before(inst), units(&before));
                prop_assert_eq!(pressure.during(inst), units(&before).max(units(&held)));
            }
            for &value in &all {
                prop_assert_eq!(
                    ranges.is_live_at(value, Point::before(inst)), before.contains(&value));
                prop_assert_eq!(
                    ranges.is_live_at(value, Point::after(inst)), held.contains(&value));
            }
        }
        for &value in &all {
            let length = (0..func.insts.len()).filter(|&i| live_before(&func, i, value)).count();
            prop_assert_eq!(ranges.length(value) as usize, length);
        }
    }

    #[test]
    fn dominators(func in function(16)) {
        let cfg = Cfg::new(&func);
        let dom = Dominators::new(&cfg);
        let post = Dominators::post(&cfg);
        let succs = |block: Block| cfg.succs(block).to_vec();
        let leaves = |set: &BTreeSet<Block>| set.iter().any(|&block| cfg.leaves(block));
        let all_exit = cfg
            .reverse_postorder()
            .iter()
            .all(|&block| leaves(&reach(&[block], None, succs)));
        for a in cfg.blocks() {
            let without = reach(&[Block(0)], Some(a), succs);
            for b in cfg.blocks() {
                let dominated =
                    cfg.is_reachable(a) && cfg.is_reachable(b) && !without.contains(&b);
                prop_assert_eq!(dom.dominates(a, b), dominated, "{} dom {}", a, b);
                if all_exit {
                    let post_dominated = cfg.is_reachable(a)
                        && cfg.is_reachable(b)
                        && !leaves(&reach(&[b], Some(a), succs));
                    prop_assert_eq!(post.dominates(a, b), post_dominated, "{} pdom {}", a, b);
                }
            }
            for (tree, what) in [(&dom, "dom"), (&post, "post")] {
                // The immediate dominator is the strict dominator that all others dominate.
                if let Some(idom) = tree.idom(a) {
                    for b in cfg.blocks().filter(|&b| b != a && tree.dominates(b, a)) {
                        prop_assert!(tree.dominates(b, idom), "{} of {}", what, a);
                    }
                }
                prop_assert_eq!(tree.dominates(a, a), cfg.is_reachable(a));
            }
        }
    }

    #[test]
    fn loops(func in function(20)) {
        let cfg = Cfg::new(&func);
        let loops = Loops::new(&cfg);
        let order = preorder(&cfg);
        let mut expected = Nest::new();
        loop_nest(&cfg, &order.iter().copied().collect(), None, &order, &mut expected);
        prop_assert_eq!(loops.len(), expected.len());
        for each in loops.iter() {
            let (blocks, parent) = &expected[&loops.header(each)];
            prop_assert_eq!(&loops.blocks(each).iter().copied().collect::<BTreeSet<_>>(), blocks);
            prop_assert_eq!(loops.blocks(each).len(), blocks.len());
            prop_assert_eq!(loops.parent(each).map(|outer| loops.header(outer)), *parent);
            prop_assert!(loops.parent(each).is_none_or(|outer: Loop| outer < each));
            let entered_beside_header = blocks.iter().any(|&block| {
                block != loops.header(each)
                    && cfg.preds(block).iter().any(|pred| {
                        cfg.is_reachable(*pred) && !blocks.contains(pred)
                    })
            });
            prop_assert_eq!(loops.is_irreducible(each), entered_beside_header);
            for block in cfg.blocks() {
                prop_assert_eq!(loops.contains(each, block), blocks.contains(&block));
            }
        }
        for block in cfg.blocks() {
            let depth = expected.values().filter(|(blocks, _)| blocks.contains(&block)).count();
            prop_assert_eq!(loops.block_depth(block) as usize, depth);
        }
    }

    #[test]
    fn webs_are_the_classes_of_reaching_definitions(func in function(12)) {
        let cfg = Cfg::new(&func);
        // What an unreachable block reads has no definition, and joins those that meet there.
        if !cfg.blocks().all(|block| cfg.is_reachable(block)) {
            return Ok(());
        }
        let liveness = Liveness::new(&func, &cfg);
        let def_use = DefUse::new(&func, &liveness);
        let webs = Webs::new(&func, &cfg, &liveness, &def_use);
        for value in (0..VALUES).map(Value) {
            // Classes by repeated merging of the sets that reach uses and predicated definitions.
            let mut classes: Vec<BTreeSet<Source>> =
                def_use.defs(value).iter().map(|&def| BTreeSet::from([Source::Inst(def)])).collect();
            let mut sets: Vec<BTreeSet<Source>> = Vec::new();
            for &at in def_use.uses(value) {
                sets.push(def_use.reaching(&func, &cfg, at, value).into_iter().collect());
            }
            for &at in def_use.defs(value).iter().filter(|&&at| func.is_predicated(at)) {
                if live_after(&func, at.0 as usize, value) {
                    let mut set: BTreeSet<Source> =
                        def_use.reaching(&func, &cfg, at, value).into_iter().collect();
                    set.insert(Source::Inst(at));
                    sets.push(set);
                }
            }
            for mut set in sets {
                classes.retain(|class| {
                    let meets = !class.is_disjoint(&set);
                    if meets {
                        set.extend(class.iter().copied());
                    }
                    !meets
                });
                classes.push(set);
            }
            for a in def_use.defs(value) {
                for b in def_use.defs(value) {
                    let together = classes.iter().any(|class| {
                        class.contains(&Source::Inst(*a)) && class.contains(&Source::Inst(*b))
                    });
                    let same = webs.of_def(*a, value) == webs.of_def(*b, value);
                    prop_assert_eq!(same, together || a == b, "{} and {} of {}", a, b, value);
                }
            }
        }
    }
}
