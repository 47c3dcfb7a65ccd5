//! Sequences: what one instruction leaves for the next (flags, predicates, barriers, fragments).

use std::fmt::Write as _;

use super::snippet::Snippet;
use super::values::{Sort, scramble};

/// Chains of each sort.
const CHAINS: u64 = 160;

/// All sequences.
pub fn all() -> Vec<Snippet> {
    let carries = (0..CHAINS).map(carries);
    let predicates = (0..CHAINS).map(predicates);
    let written = WRITTEN
        .iter()
        .map(|(name, text, words)| written(name, text, *words));
    carries.chain(predicates).chain(written).collect()
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = scramble(self.0);
        self.0 % end
    }

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}

fn loads(class: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|i| {
            let at = Sort::Bits.offset(i);
            format!(".reg .b{class} %a{i}; ld.global.b{class} %a{i}, [%in+{at}];")
        })
        .collect()
}

/// Additions, subtractions and products in a chain, each reading the flag of the one before, some of them under a
/// guard, some with an instruction between that does not touch the flag.
fn carries(seed: u64) -> Snippet {
    let mut random = Random(seed);
    let bits = random.pick(&["32", "64"]).to_owned();
    let mut before = loads(&bits, 6);
    before.push(".reg .pred %g; setp.lt.s32 %g, %me, 700;".into());
    let (mut after, mut words) = (Vec::new(), 0);
    let steps = 3 + random.below(6);
    for step in 0..steps {
        let first = step == 0;
        let sign = random.pick(&["u", "s"]);
        let ops: &[&str] = match first {
            true => &["add.cc", "sub.cc", "mad.lo.cc", "mad.hi.cc"],
            false => &[
                "addc.cc",
                "subc.cc",
                "addc.cc",
                "subc.cc",
                "madc.lo.cc",
                "madc.hi.cc",
                "sub.cc",
                "addc",
                "subc",
            ],
        };
        let op = random.pick(ops);
        let mut operands = format!("%r{step}, %a{}, %a{}", random.below(6), random.below(6));
        if op.starts_with("mad") {
            let _ = write!(operands, ", %a{}", random.below(6));
        } else if random.below(4) == 0 {
            operands = format!("%r{step}, %a{}, 0", random.below(6));
        }
        let guard = if !first && random.below(5) == 0 {
            "@%g "
        } else {
            ""
        };
        before.push(format!(
            ".reg .b{bits} %r{step}; mov.b{bits} %r{step}, %a0; {guard}{op}.{sign}{bits} {operands};"
        ));
        if random.below(4) == 0 {
            before.push(format!(
                "xor.b{bits} %a1, %a1, %r{step}; add.s{bits} %a2, %a2, %a1;"
            ));
        }
        let widen = if bits == "32" {
            "cvt.u64.u32"
        } else {
            "mov.b64"
        };
        after.push(format!("{widen} %t64, %r{step}; st.global.b64 OUT, %t64;"));
        words += 1;
    }
    before.push(".reg .b32 %flag, %none; addc.u32 %flag, 0, 0; subc.u32 %none, 0, 0;".into());
    for name in ["flag", "none"] {
        after.push(format!(
            "cvt.u64.u32 %t64, %{name}; st.global.b64 OUT, %t64;"
        ));
        words += 1;
    }
    Snippet::sequence(format!("chain of carries {seed}"), before, after, words)
}

/// Predicates computed from predicates, with guards, selections and votes.
fn predicates(seed: u64) -> Snippet {
    let mut random = Random(seed ^ 0x5eed);
    let mut before = loads("32", 6);
    before.push(
        ".reg .b32 %v; mov.u32 %v, 0; .reg .pred %p0, %p1; setp.lt.s32 %p0|%p1, %a0, %a1;".into(),
    );
    let steps = 4 + random.below(6);
    for step in 2..2 + steps {
        let (q, r) = (random.below(step), random.below(step));
        let (a, b) = (random.below(6), random.below(6));
        let compare = random.pick(&["eq", "ne", "lt", "le", "gt", "ge"]);
        let combine = random.pick(&["and", "or", "xor"]);
        let not = random.pick(&["", "!"]);
        let make = match random.below(8) {
            0 => format!("setp.{compare}.{combine}.s32 %p{step}, %a{a}, %a{b}, {not}%p{q};"),
            1 => format!("setp.{compare}.{combine}.u32 %p{step}|%p{r}, %a{a}, %a{b}, {not}%p{q};"),
            2 => format!("setp.{compare}u.{combine}.f32 %p{step}, %a{a}, %a{b}, {not}%p{q};")
                .replace("equu", "equ"),
            3 => format!("{combine}.pred %p{step}, %p{q}, %p{r};"),
            4 => format!("not.pred %p{step}, %p{q};"),
            5 => format!(
                "vote.sync.{}.pred %p{step}, {not}%p{q}, 0xffffffff;",
                random.pick(&["all", "any", "uni"])
            ),
            6 => format!(
                "lop3.{}.b32 %v|%p{step}, %a{a}, %a{b}, %v, {}, %p{q};",
                random.pick(&["and", "or"]),
                random.below(256)
            ),
            _ => format!("mov.pred %p{step}, %p{q};"),
        };
        before.push(format!(".reg .pred %p{step}; {make}"));
        let guard = random.below(step + 1);
        before.push(match random.below(3) {
            0 => format!("@{not}%p{guard} add.u32 %v, %v, %a{a};"),
            1 => format!("@{not}%p{guard} setp.{compare}.s32 %p{q}, %v, %a{b};"),
            _ => format!("selp.b32 %v, %v, %a{b}, %p{guard};"),
        });
    }
    let mut after = vec![
        "cvt.u64.u32 %t64, %v; st.global.b64 OUT, %t64;".to_owned(),
        "mov.u32 %u32, 0;".into(),
    ];
    for step in 0..2 + steps {
        after.push(format!(
            "selp.b32 %t32, {:#x}, 0, %p{step}; or.b32 %u32, %u32, %t32;",
            1 << step
        ));
    }
    after.push("cvt.u64.u32 %t64, %u32; st.global.b64 OUT, %t64;".into());
    Snippet::sequence(format!("chain of predicates {seed}"), before, after, 2)
}

fn written(name: &str, text: &str, words: usize) -> Snippet {
    let lines = text.lines().map(|line| {
        let mut line = line.to_owned();
        for place in 0..8 {
            for (mark, sort) in [
                ("BITS", Sort::Bits),
                ("HALF", Sort::WholeHalf),
                ("SINGLE", Sort::WholeSingle),
            ] {
                line = line.replace(
                    &format!("{mark}{place}"),
                    &format!("[%in+{}]", sort.offset(place)),
                );
            }
        }
        line
    });
    Snippet::sequence(name.to_owned(), lines.collect(), Vec::new(), words)
}

/// Name, text, and words of output.
const WRITTEN: &[(&str, &str, usize)] = &[
    (
        "bar.red",
        "bar.sync 0;
.reg .b32 %a, %n; .reg .pred %p, %q; ld.global.b32 %a, BITS0; and.b32 %a, %a, 1; setp.ne.b32 %p, %a, 0;
bar.red.popc.u32 %n, 0, %p; cvt.u64.u32 %t64, %n; st.global.b64 OUT, %t64;
bar.red.and.pred %q, 0, %p; selp.b64 %t64, 1, 0, %q; st.global.b64 OUT, %t64;
bar.red.or.pred %q, 0, !%p; selp.b64 %t64, 1, 0, %q; st.global.b64 OUT, %t64;
barrier.sync 1; barrier.sync.aligned 2, 128; barrier.red.popc.aligned.u32 %n, 3, 128, !%p;
cvt.u64.u32 %t64, %n; st.global.b64 OUT, %t64;",
        4,
    ),
    (
        "elect",
        ".reg .b32 %a; .reg .pred %p; elect.sync %a|%p, 0xffffffff;
cvt.u64.u32 %t64, %a; st.global.b64 OUT, %t64; selp.b64 %t64, 1, 0, %p; st.global.b64 OUT, %t64;",
        2,
    ),
    (
        "mbarrier: arrive and wait, twice",
        ".shared .align 8 .b64 bar; .reg .pred %first, %done; .reg .b64 %state; .reg .b32 %count, %t; mov.u32 %t, %tid.x;
setp.eq.u32 %first, %t, 0; @%first mbarrier.init.shared.b64 [bar], 128; bar.sync 0;
mbarrier.arrive.shared.b64 %state, [bar];
W0: mbarrier.test_wait.shared.b64 %done, [bar], %state; @!%done bra W0;
selp.b64 %t64, 1, 0, %done; st.global.b64 OUT, %t64;
mbarrier.arrive.shared.b64 %state, [bar];
W1: mbarrier.try_wait.parity.shared.b64 %done, [bar], 1; @!%done bra W1;
bar.sync 0; mbarrier.test_wait.parity.shared.b64 %done, [bar], 0; selp.b64 %t64, 1, 0, %done; st.global.b64 OUT, %t64;
bar.sync 0; @%first mbarrier.inval.shared.b64 [bar]; bar.sync 0;",
        2,
    ),
    (
        "cp.async",
        "ld.global.b64 %t64, BITS0; st.global.b64 [%mem], %t64; ld.global.b64 %t64, BITS1; st.global.b64 [%mem+8], %t64;
mov.u64 %t64, 0x1111; st.shared.b64 [%shared+16], %t64; st.shared.b64 [%shared+24], %t64;
cp.async.ca.shared.global [%shared], [%mem], 8; cp.async.cg.shared.global [%shared+16], [%mem], 16, 4;
cp.async.commit_group; cp.async.wait_group 0;
ld.shared.b64 %t64, [%shared]; st.global.b64 OUT, %t64; ld.shared.b64 %t64, [%shared+16]; st.global.b64 OUT, %t64;
ld.shared.b64 %t64, [%shared+24]; st.global.b64 OUT, %t64;",
        3,
    ),
    (
        "cp.async.bulk with mbarrier",
        ".shared .align 8 .b64 bulk; .reg .pred %first, %done; .reg .b32 %t, %base; mov.u32 %t, %tid.x; mov.u32 %base, sh;
ld.global.b64 %t64, BITS0; st.global.b64 [%mem], %t64; st.global.b64 [%mem+8], %t64; st.global.b64 [%mem+16], %t64; st.global.b64 [%mem+24], %t64;
membar.gl; bar.sync 0; setp.eq.u32 %first, %t, 0; @%first mbarrier.init.shared.b64 [bulk], 1; fence.proxy.async; bar.sync 0;
@%first mbarrier.arrive.expect_tx.shared.b64 _, [bulk], 4096;
@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%base], [%mem], 4096, [bulk];
W2: mbarrier.try_wait.parity.shared.b64 %done, [bulk], 0; @!%done bra W2;
ld.shared.b64 %t64, [%shared]; st.global.b64 OUT, %t64; ld.shared.b64 %t64, [%shared+24]; st.global.b64 OUT, %t64; bar.sync 0;",
        2,
    ),
    (
        "wmma m16n16k16",
        ".shared .align 32 .b8 wa[2048]; .reg .b32 %w, %l, %m; .reg .b32 %fa<8>, %fb<8>; .reg .f32 %fc<8>; .reg .b32 %wt;
mov.u32 %w, %tid.x; and.b32 %l, %w, 31; shr.u32 %w, %w, 5; mov.u32 %wt, wa; mad.lo.u32 %m, %w, 512, %wt; mad.lo.u32 %wt, %l, 16, %m;
ld.global.b64 %t64, HALF0; st.shared.b64 [%wt], %t64; ld.global.b64 %t64, HALF1; st.shared.b64 [%wt+8], %t64; bar.sync 0;
wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%fa0,%fa1,%fa2,%fa3,%fa4,%fa5,%fa6,%fa7}, [%m];
wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 {%fb0,%fb1,%fb2,%fb3,%fb4,%fb5,%fb6,%fb7}, [%m];
mov.f32 %fc0, 0f3F800000; mov.f32 %fc1, %fc0; mov.f32 %fc2, %fc0; mov.f32 %fc3, %fc0; mov.f32 %fc4, %fc0; mov.f32 %fc5, %fc0; mov.f32 %fc6, %fc0; mov.f32 %fc7, %fc0;
wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%fc0,%fc1,%fc2,%fc3,%fc4,%fc5,%fc6,%fc7}, {%fa0,%fa1,%fa2,%fa3,%fa4,%fa5,%fa6,%fa7}, {%fb0,%fb1,%fb2,%fb3,%fb4,%fb5,%fb6,%fb7}, {%fc0,%fc1,%fc2,%fc3,%fc4,%fc5,%fc6,%fc7};
.shared .align 32 .b8 wd[4096]; mov.u32 %wt, wd; mad.lo.u32 %m, %w, 1024, %wt; mad.lo.u32 %wt, %l, 32, %m;
wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%m], {%fc0,%fc1,%fc2,%fc3,%fc4,%fc5,%fc6,%fc7}; bar.sync 0;
ld.shared.b64 %t64, [%wt]; st.global.b64 OUT, %t64; ld.shared.b64 %t64, [%wt+8]; st.global.b64 OUT, %t64;
ld.shared.b64 %t64, [%wt+16]; st.global.b64 OUT, %t64; ld.shared.b64 %t64, [%wt+24]; st.global.b64 OUT, %t64; bar.sync 0;",
        4,
    ),
    (
        "generic addresses",
        ".reg .pred %p; .reg .b64 %g; cvt.u64.u32 %g, %shared; cvta.shared.u64 %g, %g;
ld.global.b64 %t64, BITS0; st.shared.b64 [%shared], %t64; ld.b64 %t64, [%g]; st.global.b64 OUT, %t64;
isspacep.shared %p, %g; selp.b64 %t64, 1, 0, %p; st.global.b64 OUT, %t64;
isspacep.global %p, %mem; selp.b64 %t64, 1, 0, %p; st.global.b64 OUT, %t64;
isspacep.local %p, %g; selp.b64 %t64, 1, 0, %p; st.global.b64 OUT, %t64;
cvta.local.u64 %g, %local; isspacep.local %p, %g; selp.b64 %t64, 1, 0, %p; st.global.b64 OUT, %t64;
cvta.to.local.u64 %g, %g; sub.s64 %t64, %g, %local; st.global.b64 OUT, %t64;",
        6,
    ),
    (
        "shuffles under partial masks",
        ".reg .b32 %l, %a, %v, %k; .reg .pred %p, %half; mov.u32 %l, %laneid; and.b32 %k, %l, 16; setp.eq.u32 %half, %k, 0; ld.global.b32 %a, BITS0;
mov.u32 %v, 0; @%half shfl.sync.bfly.b32 %v|%p, %a, 5, 0x1f, 0x0000ffff; @!%half shfl.sync.up.b32 %v|%p, %a, 3, 0x1000, 0xffff0000;
cvt.u64.u32 %t64, %v; st.global.b64 OUT, %t64; selp.b64 %t64, 1, 0, %p; st.global.b64 OUT, %t64;
@%half redux.sync.add.s32 %v, %a, 0x0000ffff; @!%half redux.sync.xor.b32 %v, %a, 0xffff0000; cvt.u64.u32 %t64, %v; st.global.b64 OUT, %t64;
and.b32 %a, %a, 3; @%half match.any.sync.b32 %v, %a, 0x0000ffff; @!%half match.all.sync.b32 %v|%p, %a, 0xffff0000; cvt.u64.u32 %t64, %v; st.global.b64 OUT, %t64;
setp.eq.u32 %p, %a, 1; @%half vote.sync.ballot.b32 %v, %p, 0x0000ffff; @!%half vote.sync.ballot.b32 %v, !%p, 0xffff0000; cvt.u64.u32 %t64, %v; st.global.b64 OUT, %t64;",
        5,
    ),
];
