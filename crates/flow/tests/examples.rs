//! The analyses on small functions whose answers are worked out by hand.

use warpwright_flow::{
    Block, Cfg, DefUse, Dominators, Function, Inst, LiveRanges, Liveness, Loops, Point, Pressure,
    Source, Webs,
};
use warpwright_toy::Toy;

struct All {
    func: Toy,
    cfg: Cfg,
    dom: Dominators,
    post: Dominators,
    loops: Loops,
    liveness: Liveness,
    pressure: Pressure,
    ranges: LiveRanges,
    def_use: DefUse,
    webs: Webs,
}

fn analyse(text: &str) -> All {
    analyse_toy(Toy::parse(text))
}

fn analyse_toy(func: Toy) -> All {
    let cfg = Cfg::new(&func);
    let (dom, post) = (Dominators::new(&cfg), Dominators::post(&cfg));
    let loops = Loops::new(&cfg);
    let liveness = Liveness::new(&func, &cfg);
    let pressure = Pressure::new(&func, &cfg, &liveness);
    let ranges = LiveRanges::new(&func, &cfg, &liveness);
    let def_use = DefUse::new(&func, &liveness);
    let webs = Webs::new(&func, &cfg, &liveness, &def_use);
    All {
        func,
        cfg,
        dom,
        post,
        loops,
        liveness,
        pressure,
        ranges,
        def_use,
        webs,
    }
}

impl All {
    fn live_in(&self, block: u32) -> String {
        self.func.show(self.liveness.live_in(Block(block)))
    }

    fn before(&self, inst: u32) -> String {
        self.func
            .show(&self.liveness.live_before(&self.func, &self.cfg, Inst(inst)))
    }

    fn after(&self, inst: u32) -> String {
        self.func
            .show(&self.liveness.live_after(&self.func, &self.cfg, Inst(inst)))
    }

    fn during(&self) -> Vec<u32> {
        (0..self.func.inst_count() as u32)
            .map(|i| self.pressure.during(Inst(i)))
            .collect()
    }

    fn segments(&self, name: &str) -> Vec<(u32, u32)> {
        let segments = self.ranges.segments(self.func.named(name));
        segments
            .iter()
            .map(|segment| (segment.start.0, segment.end.0))
            .collect()
    }
}

#[test]
fn empty_function() {
    let a = analyse("");
    assert_eq!(a.cfg.block_count(), 0);
    assert!(a.loops.is_empty() && a.webs.is_empty());
    assert_eq!(a.pressure.max(), 0);
    assert_eq!(a.pressure.peak(), None);
    assert!(a.pressure.peak_regions().is_empty());
    assert!(a.ranges.crossing_peak(&a.pressure, &a.def_use).is_empty());
}

#[test]
fn diamond() {
    let a = analyse(
        "b0: p = setp v0; br p b2
         b1: v1 = op v0; jmp b3
         b2: v1 = op v2
         b3: ret v1",
    );
    assert_eq!(a.cfg.block_count(), 4);
    assert_eq!(a.cfg.succs(Block(0)), [Block(2), Block(1)]);
    assert_eq!(a.cfg.preds(Block(3)), [Block(1), Block(2)]);
    assert_eq!(a.dom.idom(Block(3)), Some(Block(0)));
    assert_eq!(a.post.idom(Block(0)), Some(Block(3)));
    assert_eq!(a.post.idom(Block(3)), None);
    assert!(!a.dom.dominates(Block(1), Block(3)));
    assert!(a.post.dominates(Block(3), Block(1)));
    assert_eq!(a.dom.common(Block(1), Block(2)), Some(Block(0)));
    assert_eq!(a.live_in(0), "v0 v2");
    assert_eq!(a.live_in(3), "v1");
    // The two definitions of v1 meet in one use: one web.
    let v1 = a.func.named("v1");
    assert_eq!(a.webs.of_def(Inst(2), v1), a.webs.of_def(Inst(4), v1));
    assert_eq!(
        a.def_use.reaching(&a.func, &a.cfg, Inst(5), v1),
        [Source::Inst(Inst(2)), Source::Inst(Inst(4))]
    );
}

#[test]
fn pressure_during_counts_dying_operands_and_dead_results_once() {
    let a = analyse("v1 = op; d1 = op v1; v2, v3 = op d1; ret v2");
    // v1 | d1 over v1 | v2 and v3 (dead) over d1 | v2
    assert_eq!(a.during(), [1, 2, 2, 1]);
    assert_eq!(a.pressure.before(Inst(2)), 2);
    assert_eq!(a.pressure.peak(), Some(Inst(1)));
}

#[test]
fn predicates_take_no_units() {
    let a = analyse("p1 = op; p2 = op p1; ret p2");
    assert_eq!(a.during(), [0, 0, 0]);
}

#[test]
fn predicated_definition_does_not_kill() {
    let a = analyse("v1 = op; p = op; @p v1 = op; ret v1");
    assert_eq!(a.before(2), "v1 p");
    assert_eq!(a.segments("v1"), [(1, 6)]);
    let v1 = a.func.named("v1");
    assert_eq!(a.webs.of_def(Inst(0), v1), a.webs.of_def(Inst(2), v1));
    assert_eq!(
        a.def_use.reaching(&a.func, &a.cfg, Inst(3), v1),
        [Source::Inst(Inst(0)), Source::Inst(Inst(2))]
    );
}

#[test]
fn dead_predicated_definition_needs_a_register_but_is_not_live() {
    let a = analyse("p = op; @p v1 = op; ret");
    assert_eq!(a.during(), [0, 1, 0]);
    assert_eq!(a.before(1), "p");
    assert_eq!(a.segments("v1"), [(3, 3)]);
}

#[test]
fn predicated_exit_and_jump_fall_through() {
    let a = analyse("b0: @p exit; @p jmp b2; b1: v1 = op; b2: ret v1");
    assert_eq!(a.cfg.block_count(), 4);
    assert_eq!(a.cfg.succs(Block(0)), [Block(1)]);
    assert!(a.cfg.leaves(Block(0)));
    assert_eq!(a.cfg.succs(Block(1)), [Block(3), Block(2)]);
    assert_eq!(a.post.idom(Block(0)), None);
}

#[test]
fn reused_register_falls_into_webs_and_segments() {
    let a = analyse("v1 = op; v2 = op v1; v1 = op v2; ret v1");
    let v1 = a.func.named("v1");
    assert_ne!(a.webs.of_def(Inst(0), v1), a.webs.of_def(Inst(2), v1));
    assert_eq!(
        a.webs.before(&a.cfg, &a.liveness, Inst(1), v1),
        a.webs.of_def(Inst(0), v1)
    );
    assert_eq!(a.segments("v1"), [(1, 2), (5, 6)]);
    assert_eq!(a.ranges.length(v1), 2);
    assert!(!a.ranges.interfere(v1, a.func.named("v2")));
}

#[test]
fn value_from_entry_is_a_web() {
    let a = analyse("b0: br p b1; v1 = op; b1: ret v1");
    let v1 = a.func.named("v1");
    let web = a.webs.of_def(Inst(1), v1).unwrap();
    assert!(a.webs.is_from_entry(web));
    assert_eq!(a.webs.value(web), v1);
}

#[test]
fn loop_keeps_its_values_live_around_the_back_edge() {
    let a = analyse(
        "b0: v0 = op; v1 = op
         b1: v1 = op v1, v0; p = op v1; br p b1
         b2: ret v1",
    );
    assert_eq!(a.live_in(1), "v0 v1");
    assert_eq!(a.after(4), "v0 v1");
    assert_eq!(a.loops.len(), 1);
    assert_eq!(a.loops.block_depth(Block(1)), 1);
    assert_eq!(a.loops.block_depth(Block(2)), 0);
    assert_eq!(a.segments("v0"), [(1, 9)]);
    let v0 = a.func.named("v0");
    assert_eq!(a.ranges.length(v0), 4);
    assert!(a.ranges.is_live_at(v0, Point::before(Inst(4))));
    assert!(!a.ranges.is_live_at(v0, Point::before(Inst(5))));
}

#[test]
fn one_instruction_loop_without_exit() {
    let a = analyse("b0: jmp b0");
    assert_eq!(a.loops.len(), 1);
    assert!(!a.cfg.leaves(Block(0)));
    assert_eq!(a.dom.idom(Block(0)), None);
    assert_eq!(a.post.idom(Block(0)), None);
    assert!(a.post.dominates(Block(0), Block(0)));
}

#[test]
fn unreachable_block_takes_part_in_nothing() {
    let a = analyse("b0: v1 = op; jmp b2; b1: v9 = op v8; b2: ret v1");
    assert!(!a.cfg.is_reachable(Block(1)));
    assert!(!a.dom.dominates(Block(0), Block(1)) && !a.dom.dominates(Block(1), Block(1)));
    assert!(!a.post.dominates(Block(2), Block(1)));
    assert_eq!(a.during(), [1, 1, 0, 1]);
    assert_eq!(a.live_in(0), "");
}

#[test]
fn control_that_falls_off_the_end_leaves() {
    let a = analyse("v1 = op");
    assert!(a.cfg.leaves(Block(0)));
    assert!(a.cfg.succs(Block(0)).is_empty());
}

#[test]
fn label_after_the_last_instruction_leaves() {
    let a = analyse("b0: br p b1; v1 = op; b1:");
    assert!(a.cfg.leaves(Block(0)) && a.cfg.leaves(Block(1)));
    assert_eq!(a.cfg.succs(Block(0)), [Block(1)]);
}

#[test]
fn call_does_not_end_a_block_but_switch_does() {
    let a = analyse("b0: call v1; switch v2 b1 b2 b1; b1: trap; b2: exit");
    assert_eq!(a.cfg.block_count(), 3);
    assert_eq!(a.cfg.succs(Block(0)), [Block(1), Block(2)]);
}

#[test]
fn nested_loops() {
    let a = analyse(
        "b0: v = op
         b1: v = op
         b2: br p b2
         b3: br p b1
         b4: br p b4
         b5: ret",
    );
    assert_eq!(a.loops.len(), 3);
    let depth: Vec<_> = a
        .cfg
        .blocks()
        .map(|block| a.loops.block_depth(block))
        .collect();
    assert_eq!(depth, [0, 1, 2, 1, 1, 0]);
    let outer = a.loops.innermost(Block(1)).unwrap();
    let inner = a.loops.innermost(Block(2)).unwrap();
    assert_eq!(a.loops.parent(inner), Some(outer));
    assert_eq!(a.loops.blocks(outer), [Block(1), Block(3), Block(2)]);
    assert!(a.loops.contains(outer, Block(2)) && !a.loops.contains(inner, Block(3)));
    assert!(!a.loops.contains(outer, Block(4)));
    assert!(a.loops.iter().all(|each| !a.loops.is_irreducible(each)));
}

#[test]
fn irreducible_region_is_flagged() {
    let a = analyse("b0: br p b2; b1: v = op; b2: br p b1; b3: ret");
    assert_eq!(a.loops.len(), 1);
    let region = a.loops.innermost(Block(1)).unwrap();
    assert!(a.loops.is_irreducible(region));
    assert!(a.loops.contains(region, Block(2)));
}

#[test]
fn held_values_live_until_the_wait() {
    let a = analyse("v1 = op; v2 = op; hold0 v1; v3 = op v2; wait0; ret v3");
    assert_eq!(a.before(4), "v1 v3");
    assert_eq!(a.after(4), "v3");
    // Another queue's wait releases nothing.
    let b = analyse("v1 = op; hold0 v1; wait1; wait0; ret");
    assert_eq!(b.before(3), "v1");
}

#[test]
fn held_values_live_across_blocks_until_the_first_wait_on_each_path() {
    let a = analyse(
        "b0: v1 = op; hold3 v1; br p b2
         b1: wait3; jmp b3
         b2: v2 = op
         b3: v3 = op; wait3; wait3; ret",
    );
    assert_eq!(a.live_in(1), "v1");
    assert_eq!(a.live_in(2), "v1");
    assert_eq!(a.live_in(3), "v1");
    assert_eq!(a.before(8), "");
}

#[test]
fn regions_of_highest_pressure() {
    let a = analyse(
        "v1 = op; v2 = op; v3 = op v1, v2; v4 = op v3
         v5 = op v4; d1 = op v5; v6 = op; ret d1, v6",
    );
    assert_eq!(a.during(), [1, 2, 2, 1, 1, 2, 3, 3]);
    let show = |regions: Vec<warpwright_flow::PressureRegion>| -> Vec<(u32, u32, u32)> {
        regions
            .iter()
            .map(|r| (r.first.0, r.last.0, r.units))
            .collect()
    };
    assert_eq!(show(a.pressure.peak_regions()), [(6, 7, 3)]);
    assert_eq!(show(a.pressure.regions_from(2)), [(1, 2, 2), (5, 7, 3)]);
    assert_eq!(show(a.pressure.highest(5)), [(6, 7, 3), (1, 2, 2)]);
    assert_eq!(show(a.pressure.highest(1)), [(6, 7, 3)]);
}

#[test]
fn ranges_across_the_peak_longest_first() {
    let a = analyse("v1 = op; v2 = op; v3 = op; d1 = op; v4 = op v3, d1; ret v2, v1, v4");
    let crossing = a.ranges.crossing_peak(&a.pressure, &a.def_use);
    assert_eq!(a.pressure.peak(), Some(Inst(3)));
    assert_eq!(a.func.show(&crossing), "v1 v2 v3");
}

/// A ladder of `count` early exits to one block, then `count` nested loops: shapes on which
/// quadratic methods or recursion would not end in reasonable time.
fn degenerate(count: usize) -> Toy {
    let mut text = String::new();
    for i in 0..count {
        text += &format!("e{i}: v = op v; br p end\n");
    }
    for i in 0..count {
        text += &format!("h{i}: v = op v\n");
    }
    for i in (0..count).rev() {
        text += &format!("l{i}: br p h{i}\n");
    }
    text += "end: ret v\n";
    Toy::parse(&text)
}

#[test]
fn a_hundred_thousand_blocks() {
    let count = 40_000;
    let a = analyse_toy(degenerate(count));
    // The innermost loop is a single block.
    assert_eq!(a.cfg.block_count(), 3 * count);
    assert_eq!(a.loops.len(), count);
    let deepest = Block(2 * count as u32 - 1);
    assert_eq!(a.loops.block_depth(deepest), count as u32);
    let end = Block(3 * count as u32 - 1);
    assert_eq!(a.dom.idom(end), Some(Block(0)));
    assert_eq!(a.post.idom(Block(0)), Some(end));
    assert_eq!(a.pressure.max(), 1);
    // p and v from the entry, and the one that all definitions of v form.
    assert_eq!(a.webs.len(), 3);
}
