//! What the table says of instructions, one line each.

use super::*;

/// Roles as the table marks them, in one word: `=` written, `.` read, `+` both, `[` address, `#`
/// constant, `>` label, `%` branch targets, `(` part of a call; `?` if they cannot be told.
fn roles(opcode: &Opcode, operands: usize) -> String {
    let Some(roles) = opcode.roles(operands) else {
        return "?".to_owned();
    };
    let mark = |role: &Role| match role {
        Role::Def => '=',
        Role::Use => '.',
        Role::UseDef => '+',
        Role::Address => '[',
        Role::Immediate => '#',
        Role::Label => '>',
        Role::BranchTargets => '%',
        Role::CallPart => '(',
    };
    roles.iter().map(mark).collect()
}

/// Operands that stand in brackets, or plainly.
fn bracketed<const N: usize>(which: [bool; N]) -> [Shape; N] {
    which.map(|bracketed| match bracketed {
        true => Shape::Bracketed,
        false => Shape::Plain,
    })
}

#[test]
fn roles_of_operands() {
    let rows = [
        ("add.s32", "=.."),
        ("mad.wide.u32", "=..."),
        ("setp.lt.f32", "=.."),
        ("setp.lt.and.f32", "=..."),
        ("lop3.b32", "=...#"),
        ("lop3.or.b32", "=...#."),
        ("cvt.rn.f16.f32", "=."),
        ("cvt.rn.bf16x2.f32", "=.."),
        ("ld.global.v4.f32", "=["),
        ("ld.global.L2::cache_hint.v4.f32", "=[."),
        ("st.shared.v2.b64", "[."),
        (
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64",
            "[.[",
        ),
        ("prefetch.global.L2", "["),
        ("cp.async.cg.shared.global", "[[#"),
        ("cp.async.cg.shared.global", "[[#."),
        ("cp.async.cg.shared.global.L2::cache_hint", "[[#."),
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
            "[[.[",
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
            "[[[",
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes\
             .multicast::cluster.L2::cache_hint",
            "[[[..",
        ),
        (
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group",
            "[[",
        ),
        ("tex.2d.v4.f32.f32", "=["),
        ("tex.level.2d.v4.f32.f32", "=[."),
        ("sust.b.2d.b32.trap", "[."),
        ("atom.global.add.f32", "=[."),
        ("atom.global.cas.b32", "=[.."),
        ("red.global.add.f32", "[."),
        ("bra", ">"),
        ("brx.idx", ".%"),
        ("call.uni", "("),
        ("call", "(((("),
        ("ret", ""),
        ("bar.sync", "."),
        ("bar.red.popc.u32", "=.."),
        ("bar.red.popc.u32", "=..."),
        ("mbarrier.arrive.shared.b64", "=["),
        ("mbarrier.arrive.expect_tx.shared.b64", "=[."),
        ("mbarrier.try_wait.parity.shared.b64", "=[."),
        ("mbarrier.try_wait.parity.shared.b64", "=[.."),
        ("shfl.sync.bfly.b32", "=...."),
        ("vote.sync.ballot.b32", "=.."),
        ("match.all.sync.b32", "=.."),
        ("elect.sync", "=."),
        ("activemask.b32", "="),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "=["),
        ("stmatrix.sync.aligned.m8n8.x4.shared.b16", "[."),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
            "=...",
        ),
        (
            "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
            "=....#",
        ),
        ("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", "=[."),
        (
            "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16",
            "+...####",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16",
            "+...###",
        ),
        ("wgmma.wait_group.sync.aligned", "#"),
        ("tcgen05.ld.sync.aligned.32x32b.x8.b32", "=["),
        ("tcgen05.ld.red.sync.aligned.32x32b.x8.max.f32", "==["),
        ("tcgen05.st.sync.aligned.32x32b.x8.b32", "[."),
        ("tcgen05.mma.cta_group::1.kind::f16", "[...."),
        ("vadd.s32.s32.s32.sat.add", "=..."),
        ("alloca.u64", "=."),
        ("setmaxnreg.inc.sync.aligned.u32", "#"),
    ];
    for (text, want) in rows {
        let opcode = Opcode::parse(text);
        assert!(opcode.is_known(), "{text}");
        assert_eq!(roles(&opcode, want.len()), want, "{text}");
    }
}

#[test]
fn operand_counts_that_do_not_fit() {
    for (text, operands) in [
        ("add.s32", 2),
        ("add.s32", 4),
        ("ret", 1),
        ("ld.global.f32", 1),
        ("ld.global.f32", 3),
        ("ld.global.L2::cache_hint.f32", 2),
        ("setp.lt.and.f32", 3),
    ] {
        assert_eq!(
            roles(&Opcode::parse(text), operands),
            "?",
            "{text} {operands}"
        );
    }
}

#[test]
fn brackets_decide_where_the_number_of_operands_does_not() {
    let text = "mbarrier.try_wait.phase_type::primary.acquire.cta.shared::cta.b64";
    let opcode = Opcode::parse(text);
    assert_eq!(roles(&opcode, 3), "=[.");
    assert_eq!(roles(&opcode, 4), "?");
    let with_report = opcode.roles_of(&bracketed([false, false, true, false]));
    let roles = [Role::Def, Role::Def, Role::Address, Role::Use];
    assert_eq!(with_report.as_deref(), Some(&roles[..]));
    let with_hint = opcode.roles_of(&bracketed([false, true, false, false]));
    let roles = [Role::Def, Role::Address, Role::Use, Role::Use];
    assert_eq!(with_hint.as_deref(), Some(&roles[..]));
    assert_eq!(opcode.roles_of(&bracketed([true, false, false])), None);
    let descriptor = Opcode::parse("tcgen05.mma.cta_group::1.kind::f16");
    for bracket in [false, true] {
        let roles = descriptor.roles_of(&bracketed([true, bracket, false, false, false]));
        assert_eq!(roles.map(|r| r.len()), Some(5));
    }
}

/// Effects in words: `reads`/`writes` with the memories, then every flag that is set.
fn effect(text: &str) -> String {
    let opcode = Opcode::parse(text);
    assert!(opcode.is_known(), "{text}");
    let effect = opcode.effect();
    let mut words = Vec::new();
    for (verb, set) in [("reads", effect.reads), ("writes", effect.writes)] {
        if set == SpaceSet::GENERIC {
            words.push(format!("{verb} generic"));
        } else if !set.is_empty() {
            words.push(format!("{verb} {set:?}").replace(['{', '}', '"', ','], ""));
        }
    }
    let flags = [
        ("atomic", effect.atomic),
        ("strong", effect.strong),
        ("acquire", effect.acquire),
        ("release", effect.release),
        ("async", effect.is_async),
        ("barrier", effect.barrier),
        ("fence", effect.fence),
        ("convergent", effect.convergent),
        ("carry-in", effect.carry_in),
        ("carry-out", effect.carry_out),
        ("other", effect.other),
    ];
    let set = flags.iter().filter(|(_, on)| *on);
    words.extend(set.map(|(name, _)| (*name).to_owned()));
    words.join(" ")
}

#[test]
fn effects() {
    for (text, want) in [
        ("fma.rn.f32", ""),
        ("selp.b32", ""),
        ("cvta.to.global.u64", ""),
        ("mov.u32", ""),
        ("add.cc.u32", "carry-out"),
        ("addc.u32", "carry-in"),
        ("addc.cc.u32", "carry-in carry-out"),
        ("madc.hi.u32", "carry-in"),
        ("ld.global.f32", "reads global"),
        ("ld.f32", "reads generic"),
        ("ld.param.u64", "reads param"),
        ("ld.shared::cluster.b32", "reads shared"),
        ("ld.volatile.shared.b32", "reads shared strong"),
        ("ld.acquire.gpu.global.b32", "reads global strong acquire"),
        ("ld.relaxed.gpu.global.b32", "reads global strong"),
        ("st.local.b32", "writes local"),
        ("st.release.sys.b32", "writes generic strong release"),
        ("atom.shared.add.u32", "reads shared writes shared atomic"),
        (
            "atom.acq_rel.gpu.global.cas.b32",
            "reads global writes global atomic strong acquire release",
        ),
        ("red.global.add.f32", "reads global writes global atomic"),
        ("tex.2d.v4.f32.s32", "reads texture"),
        ("sust.b.1d.b32.trap", "writes texture"),
        (
            "cp.async.ca.shared.global",
            "reads global writes shared async",
        ),
        (
            "cp.async.bulk.global.shared::cta.bulk_group",
            "reads shared writes global async",
        ),
        ("cp.async.wait_group", "acquire barrier"),
        ("membar.gl", "acquire release fence"),
        ("fence.acq_rel.gpu", "acquire release fence"),
        ("bar.sync", "acquire release barrier convergent"),
        ("bar.warp.sync", "acquire release barrier convergent"),
        ("shfl.sync.idx.b32", "convergent"),
        ("vote.sync.any.pred", "convergent"),
        ("activemask.b32", "convergent other"),
        (
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
            "convergent",
        ),
        (
            "ldmatrix.sync.aligned.m8n8.x1.b16",
            "reads shared convergent",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
            "reads shared async convergent",
        ),
        (
            "tcgen05.ld.sync.aligned.32x32b.x1.b32",
            "reads tensor async convergent",
        ),
        (
            "tcgen05.mma.cta_group::1.kind::f16",
            "reads shared tensor writes tensor async",
        ),
        ("nanosleep.u32", "other"),
        ("prefetch.global.L1", "other"),
        ("discard.global.L2", "writes global other"),
    ] {
        assert_eq!(effect(text), want, "{text}");
    }
}

#[test]
fn purity_control_and_latency() {
    let class = |text| Opcode::parse(text).latency_class();
    for (text, want) in [
        ("add.s32", LatencyClass::Alu),
        ("mul.lo.s32", LatencyClass::IntMul),
        ("add.f16x2", LatencyClass::Fp16),
        ("fma.rn.f32", LatencyClass::Fp32),
        ("fma.rn.f64", LatencyClass::Fp64),
        ("ex2.approx.f32", LatencyClass::Sfu),
        ("div.rn.f64", LatencyClass::Division),
        ("rem.s64", LatencyClass::Division),
        ("cvt.f64.f32", LatencyClass::Conversion),
        ("ld.shared.f32", LatencyClass::SharedLoad),
        ("ld.local.f32", LatencyClass::LocalLoad),
        ("ld.const.f32", LatencyClass::ConstLoad),
        ("ld.param.u64", LatencyClass::ParamLoad),
        ("ld.global.nc.f32", LatencyClass::GlobalLoad),
        ("ld.f32", LatencyClass::GlobalLoad),
        ("atom.global.add.u32", LatencyClass::Atomic),
        ("bar.sync", LatencyClass::Barrier),
        ("bra", LatencyClass::Control),
        ("frob.b32", LatencyClass::Misc),
    ] {
        assert_eq!(class(text), want, "{text}");
    }
    assert!(class("ld.global.f32").is_long() && class("div.s32").is_long());
    assert!(!class("ld.shared.f32").is_long() && !class("sin.approx.f32").is_long());

    let control = |text| Opcode::parse(text).control();
    assert_eq!(control("bra.uni"), Control::Branch);
    assert_eq!(control("brx.idx"), Control::IndirectBranch);
    assert_eq!(control("call.uni"), Control::Call);
    assert_eq!(control("ret"), Control::Return);
    assert_eq!(control("exit"), Control::Exit);
    assert_eq!(control("trap"), Control::Trap);
    assert_eq!(control("bar.sync"), Control::Next);

    let pure = |text| Opcode::parse(text).is_pure();
    assert!(pure("mul.wide.s32") && pure("setp.ne.b64") && pure("rsqrt.approx.f32"));
    assert!(
        !pure("ld.param.u32") && !pure("add.cc.u32") && !pure("bra") && !pure("shfl.sync.up.b32")
    );

    let invariant = |text| Opcode::parse(text).is_invariant_load();
    assert!(
        invariant("ld.param.u64") && invariant("ld.const.f32") && invariant("ld.global.nc.f32")
    );
    assert!(
        !invariant("ld.global.f32")
            && !invariant("ld.volatile.global.b32")
            && !invariant("mov.u32")
    );
}

#[test]
fn parts_of_an_opcode() {
    let op = Opcode::parse("ld.global.L1::evict_last.L2::cache_hint.v4.f32");
    assert_eq!(op.op, Some(Op::Ld));
    assert_eq!((op.vector, op.space), (Some(4), Some(Space::Global)));
    assert_eq!(op.types.as_slice(), [Type::F32]);
    assert!(op.has_mod("L1::evict_last") && !op.has_mod("L2::evict_last"));
    let copy = Opcode::parse("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes");
    assert_eq!(
        copy.spaces().collect::<Vec<_>>(),
        [Space::Shared, Space::Global]
    );
    let target = |text| Opcode::parse(text).min_target().map(|t| t.to_string());
    assert_eq!(
        target("tcgen05.shift.cta_group::1.down").as_deref(),
        Some("sm_100a")
    );
    assert_eq!(Opcode::parse("elect.sync").min_version(), Some((8, 0)));
}

#[test]
fn the_order_of_modifiers_does_not_matter_but_that_of_types_does() {
    for text in [
        "add.f32.ftz.rn",
        "ld.u32.volatile.global",
        "cvt.rn.f32.f64",
        "cvt.f32.f64.rn",
    ] {
        assert!(Opcode::parse(text).is_known(), "{text}");
    }
    let swapped = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.f32.bf16";
    assert!(!Opcode::parse(swapped).is_known());
}

#[test]
fn types_of_operands() {
    let expected = |text: &str, i, n| Opcode::parse(text).operand_type(i, n);
    let ty = |text, i, n| expected(text, i, n).and_then(|e| e.ty);
    assert_eq!(ty("mul.wide.u32", 0, 3), Some(Type::U64));
    assert_eq!(ty("mul.wide.u32", 1, 3), Some(Type::U32));
    assert_eq!(ty("shl.b64", 2, 3), Some(Type::U32));
    assert_eq!(ty("cvt.rn.f16.f32", 1, 2), Some(Type::F32));
    assert_eq!(ty("setp.lt.f32", 0, 3), Some(Type::Pred));
    assert_eq!(ty("add.s32", 3, 3), None);
    let shuffle = expected("shfl.sync.up.b32", 0, 5);
    assert_eq!(shuffle.and_then(|e| e.second), Some(Type::Pred));
    assert!(expected("ld.global.u8", 0, 2).is_some_and(|e| e.accepts(Type::U32)));
    assert!(expected("add.u16", 0, 3).is_some_and(|e| !e.accepts(Type::U32)));

    let lanes = |text, i, n| expected(text, i, n).map(|e| e.lanes);
    assert_eq!(lanes("ld.global.v4.f32", 0, 2), Some(Lanes::Exactly(4)));
    assert_eq!(lanes("ld.global.f32", 0, 2), Some(Lanes::One));
    assert_eq!(lanes("mov.b64", 1, 2), Some(Lanes::Pack));
    let wgmma = "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16";
    assert_eq!(lanes(wgmma, 0, 8), Some(Lanes::Exactly(128)));
    let load = "tcgen05.ld.sync.aligned.16x256b.x32.b32";
    assert_eq!(lanes(load, 0, 2), Some(Lanes::Exactly(128)));
}

#[test]
fn unknown_words_and_modifiers_make_it_opaque() {
    for text in [
        "frob.u32",
        "add.frob.u32",
        "add",
        "mul.u32",
        "add.u32.u32",
        "",
        ".",
    ] {
        let opcode = Opcode::parse(text);
        assert!(!opcode.is_known(), "{text}");
        assert_eq!(opcode.roles(3), None);
        assert!(!opcode.is_pure() && !opcode.is_invariant_load());
        assert_eq!(opcode.effect().writes, SpaceSet::ALL);
        assert_eq!(opcode.family(), None);
    }
}

#[test]
fn no_line_is_shadowed_by_its_first_instruction() {
    for form in table() {
        let mods = form.slots.iter().filter(|s| !s.optional);
        let mods = mods.filter_map(|s| s.alternatives.first());
        let text = mods.fold(form.op.word().to_owned(), |t, m| t + "." + m);
        let opcode = Opcode::parse(&text);
        assert!(
            opcode.all_forms().any(|f| f.place == form.place),
            "{text} {:?}",
            form.place
        );
    }
}

/// Whatever has no effect at all counts as pure: so only arithmetic may have none.
#[test]
fn only_computations_are_free_of_effects() {
    for form in table().iter().filter(|f| f.control == Control::Next) {
        let reads = form.reads_space.is_some() || form.writes_space.is_some();
        let carry = form.slots.iter().any(|s| s.alternatives.contains(&"cc"));
        let computes = matches!(
            form.class,
            Some(
                LatencyClass::Alu
                    | LatencyClass::IntMul
                    | LatencyClass::Fp16
                    | LatencyClass::Fp32
                    | LatencyClass::Fp64
                    | LatencyClass::Sfu
                    | LatencyClass::Division
                    | LatencyClass::Conversion
                    | LatencyClass::Video
            )
        );
        if form.effect.is_none() && !reads && !carry {
            assert!(computes, "{:?} {}", form.place, form.pattern);
        }
        let defines = form.operands.iter().any(|o| o.role == Role::Def);
        assert!(
            defines || !form.effect.is_none() || reads,
            "{:?}",
            form.place
        );
    }
}
