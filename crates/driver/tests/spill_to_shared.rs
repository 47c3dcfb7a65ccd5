//! `spill-to-shared` on cubins that ptxas builds here: moved, proved, read by nvdisasm; and what the
//! checker says of damaged results.

use std::fmt::Write as _;

use warpwright_check::{CubinOptions, check_kernels};
use warpwright_driver::demote::{Extent, spill_to_shared};
use warpwright_driver::kernel::{Block, BlockSource};
use warpwright_driver::rewrite::Setting;
use warpwright_sass::{Cubin, Elf, Kernel, Unit};
use warpwright_target::lookup;
use warpwright_toolkit::testing::require_toolkit;
use warpwright_toolkit::{BuildCache, PtxasJob};

/// A loop that keeps `live` values of `bits` bits in registers and mixes them.
fn module(live: usize, bits: u32, bound: &str) -> String {
    let mut text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry spilling(.param .u64 data, .param .u32 rounds)\n\
         {bound}\n.maxnreg 32\n{{\n\
         .reg .f{bits} %f<{}>;\n.reg .b64 %d;\n.reg .b64 %o;\n.reg .b32 %t, %n;\n.reg .pred %p;\n\
         ld.param.u64 %d, [data];\nld.param.u32 %n, [rounds];\nmov.u32 %t, %tid.x;\n\
         mul.wide.u32 %o, %t, {};\nadd.s64 %d, %d, %o;\n",
        live + 1,
        live * bits as usize / 8
    );
    let address = |i: usize| i * bits as usize / 8;
    for i in 0..live {
        let _ = writeln!(text, "ld.global.f{bits} %f{i}, [%d+{}];", address(i));
    }
    text.push_str("again:\n");
    for i in 0..live {
        let other = (i * 7 + 3) % live;
        let _ = writeln!(text, "fma.rn.f{bits} %f{i}, %f{other}, %f{i}, %f{other};");
    }
    text.push_str("sub.u32 %n, %n, 1;\nsetp.ne.u32 %p, %n, 0;\n@%p bra again;\n");
    for i in 0..live {
        let _ = writeln!(text, "st.global.f{bits} [%d+{}], %f{i};", address(i));
    }
    text.push_str("ret;\n}\n");
    text
}

fn setting(gpu: &warpwright_target::Gpu, dims: [u32; 3]) -> Setting<'_> {
    let source = BlockSource::Option;
    Setting {
        gpu,
        block: Block { dims, source },
        dynamic_smem: 0,
    }
}

fn build(test: &str, text: &str) -> Option<Vec<u8>> {
    let toolkit = require_toolkit(test)?;
    let ptxas = toolkit.ptxas().ok()?;
    let job = PtxasJob::new(text, "sm_90");
    let build = BuildCache::standard().ptxas(&ptxas, &job);
    Some(build.expect("ptxas takes the module").cubin.to_vec())
}

#[test]
fn spills_of_both_widths_move_and_are_proved() {
    let gpu = lookup("h200").expect("a known GPU");
    for (bits, bound) in [
        (32, ".reqntid 64"),
        (64, ".reqntid 64"),
        (32, ".maxntid 64"),
        (64, ""),
    ] {
        let text = module(48, bits, bound);
        let Some(cubin) = build("spills_of_both_widths_move_and_are_proved", &text) else {
            return;
        };
        let before = Cubin::parse(&cubin).expect("a cubin");
        assert!(
            before.kernels[0].frame_bytes > 0,
            "{bits} {bound}: no spills"
        );
        let moved = spill_to_shared(&cubin, "spilling", &setting(&gpu, [64, 1, 1]), Extent::All);
        let moved = moved.unwrap_or_else(|why| panic!("{bits} {bound}: {why}"));
        let after = Cubin::parse(&moved).expect("a cubin");
        assert_eq!(after.kernels[0].frame_bytes, 0);
        assert!(after.kernels[0].shared_bytes > 1024);
        assert_eq!(after.kernels[0].registers, before.kernels[0].registers);
        // Launches with more threads than there is room for must fail.
        assert_eq!(after.kernels[0].max_threads.map(|b| b[0]), Some(64));
    }
}

/// Blocks of which so many reside leave room for a part of the slots: the rest stays in local memory,
/// and the hottest go (the loop's accesses weigh more than those before and after it).
#[test]
fn the_hottest_slots_move_where_not_all_fit() {
    let gpu = lookup("h200").expect("a known GPU");
    let text = module(90, 64, ".reqntid 64");
    let Some(cubin) = build("the_hottest_slots_move_where_not_all_fit", &text) else {
        return;
    };
    let before = Cubin::parse(&cubin).expect("a cubin").kernels[0].clone();
    let move_beside = |blocks| {
        let setting = setting(&gpu, [64, 1, 1]);
        spill_to_shared(&cubin, "spilling", &setting, Extent::Beside(blocks))
    };
    let moved = move_beside(16).unwrap_or_else(|why| panic!("{why}"));
    let after = Cubin::parse(&moved).expect("a cubin").kernels[0].clone();
    assert_eq!(after.frame_bytes, before.frame_bytes, "the frame stays");
    // 227 KB for 16 blocks with 1 KB reserved each.
    assert!(after.shared_bytes > 8 << 10 && after.shared_bytes <= 14 << 10);
    let count = |kernel: &Kernel, unit| kernel.code.iter().filter(|i| i.unit() == unit).count();
    let local = |kernel| count(kernel, Unit::LocalLoad) + count(kernel, Unit::LocalStore);
    assert!(local(&after) > 0 && local(&after) < local(&before));
    // One for the index, and the two that are not the kernel's own stay beyond it.
    assert_eq!(after.registers, before.registers + 1);
    let refusal = |blocks| {
        move_beside(blocks)
            .err()
            .map_or_else(String::new, |why| why.to_string())
    };
    assert!(refusal(2).contains("all slots fit"), "{}", refusal(2));
    assert!(
        refusal(1000).contains("no spill slot fits"),
        "{}",
        refusal(1000)
    );
}

/// 1,024 threads of 32 registers: one register more would cost one of the two blocks. Then the index takes
/// the stack pointer's, and what stays behind is addressed through a uniform register.
#[test]
fn at_the_edge_of_a_stair_no_register_is_needed() {
    let gpu = lookup("h200").expect("a known GPU");
    let text = module(90, 64, ".reqntid 1024");
    let Some(cubin) = build("at_the_edge_of_a_stair_no_register_is_needed", &text) else {
        return;
    };
    let before = Cubin::parse(&cubin).expect("a cubin").kernels[0].clone();
    let setting = setting(&gpu, [1024, 1, 1]);
    let moved = spill_to_shared(&cubin, "spilling", &setting, Extent::Beside(2));
    let moved = moved.unwrap_or_else(|why| panic!("{why}"));
    let after = Cubin::parse(&moved).expect("a cubin").kernels[0].clone();
    assert_eq!(after.registers, before.registers);
    assert_eq!(after.frame_bytes, before.frame_bytes, "the frame stays");
    assert!(after.shared_bytes > 64 << 10 && after.shared_bytes <= 114 << 10);
    let text = nvdisasm(&moved);
    let counts = ["LDL", "STL", "LDS", "STS"].map(|name| lines(&text, name).count());
    assert!(counts.iter().all(|&n| n > 3), "{counts:?}");
    for line in lines(&text, "LDL").chain(lines(&text, "STL")) {
        assert!(line.contains("[UR"), "{line}");
    }
    for line in lines(&text, "LDS").chain(lines(&text, "STS")) {
        assert!(line.contains("[R1.X"), "{line}");
    }
    wrong_bases_are_not_proved(&cubin, &moved);
}

/// Another uniform register, another start of the frame, another offset, an index that is overwritten.
fn wrong_bases_are_not_proved(original: &[u8], moved: &[u8]) {
    let (original, good) = (Elf::parse(original).unwrap(), Elf::parse(moved).unwrap());
    let code = good
        .instructions(&good.kernel("spilling").unwrap())
        .unwrap();
    let opcode = |at: usize| code[at].bits() & 0xfff;
    let find = |wanted: u128| (0..code.len()).find(|&at| opcode(at) == wanted);
    let damages = [
        ("another register in a load", find(0x983), 1u128 << 32),
        ("another register in a store", find(0x987), 1 << 64),
        ("R0 added to the address of a load", find(0x983), 0xff << 24),
        ("another offset in a load", find(0x983), 8 << 40),
        ("another offset in a store", find(0x987), 8 << 40),
        ("another start of the frame", find(0x890), 16 << 32),
        ("another constant", find(0xab9), 1 << 40),
        ("the index in another register", find(0x919), 2 << 16),
    ];
    let verdict = |code: &[_]| {
        let mut elf = good.clone();
        elf.set_instructions("spilling", code).unwrap();
        check_kernels(&original, &elf, "spilling", &CubinOptions::default())
    };
    assert!(verdict(&code).is_proved());
    for (what, at, bits) in damages {
        let at = at.unwrap_or_else(|| panic!("{what}: no such instruction"));
        let mut bad = code.clone();
        bad[at] = bad[at].with_bits(bad[at].bits() ^ bits);
        assert!(!verdict(&bad).is_proved(), "{what}");
    }
}

fn nvdisasm(cubin: &[u8]) -> String {
    let toolkit = require_toolkit("spill_to_shared").expect("the toolkit that built it");
    let nvdisasm = toolkit.nvdisasm().expect("nvdisasm");
    nvdisasm
        .disassemble(cubin, &["-c"])
        .expect("nvdisasm reads it")
}

/// The lines with an instruction of this name.
fn lines<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = &'t str> {
    text.lines().filter(move |line| {
        let mut words = line.split_whitespace();
        words.any(|word| word.split('.').next() == Some(name))
    })
}

/// Every shared access of the result, moved by one word, is a wrong version.
#[test]
fn a_damaged_slot_is_never_proved() {
    let gpu = lookup("h200").expect("a known GPU");
    let text = module(44, 32, ".reqntid 64");
    let Some(cubin) = build("a_damaged_slot_is_never_proved", &text) else {
        return;
    };
    let moved = spill_to_shared(&cubin, "spilling", &setting(&gpu, [64, 1, 1]), Extent::All);
    let moved = moved.unwrap_or_else(|why| panic!("{why}"));
    let (original, good) = (Elf::parse(&cubin).unwrap(), Elf::parse(&moved).unwrap());
    let options = CubinOptions::default();
    let kernel = good.kernel("spilling").unwrap();
    let code = good.instructions(&kernel).unwrap();
    const SHARED: [u128; 2] = [0x388, 0x984];
    let spills = code.iter().enumerate();
    let spills = spills.filter(|(_, inst)| SHARED.contains(&(inst.bits() & 0xfff)));
    let mut tried = 0;
    for (at, inst) in spills.step_by(3) {
        // One thread further, and one slot further.
        for distance in [4u128, 256] {
            let mut bad = good.clone();
            let mut code = code.clone();
            code[at] = inst.with_bits(inst.bits().wrapping_add(distance << 40));
            bad.set_instructions("spilling", &code).unwrap();
            let verdict = check_kernels(&original, &bad, "spilling", &options);
            assert!(!verdict.is_proved(), "instruction {at} moved by {distance}");
            tried += 1;
        }
    }
    assert!(tried > 10, "only {tried} damages were tried");
}

#[test]
fn what_cannot_move_is_refused_by_name() {
    let gpu = lookup("h200").expect("a known GPU");
    let Some(cubin) = build("what_cannot_move_is_refused_by_name", &module(48, 32, "")) else {
        return;
    };
    let mut unknown = setting(&gpu, [64, 1, 1]);
    unknown.block.source = BlockSource::Assumed;
    let error = spill_to_shared(&cubin, "spilling", &unknown, Extent::All).unwrap_err();
    assert!(error.to_string().contains("--block"), "{error}");
    let error =
        spill_to_shared(&cubin, "other", &setting(&gpu, [64, 1, 1]), Extent::All).unwrap_err();
    assert!(error.to_string().contains("no function other"), "{error}");
    let small = module(4, 32, "");
    let cubin = build("what_cannot_move_is_refused_by_name", &small).expect("a toolkit");
    let error =
        spill_to_shared(&cubin, "spilling", &setting(&gpu, [64, 1, 1]), Extent::All).unwrap_err();
    assert!(error.to_string().contains("does not spill"), "{error}");
}

/// What the pass does not change must be sound, too: the checker looks at the whole function.
#[test]
fn a_kernel_with_a_hazard_is_dropped_with_the_reason() {
    let gpu = lookup("h200").expect("a known GPU");
    let text = module(48, 32, ".reqntid 64");
    let Some(cubin) = build("a_kernel_with_a_hazard_is_dropped_with_the_reason", &text) else {
        return;
    };
    let mut elf = Elf::parse(&cubin).expect("a cubin");
    let sections = elf.kernel("spilling").expect("the kernel");
    let code = elf.instructions(&sections).expect("its code");
    let without_waits = code.into_iter().map(|inst| {
        let mut control = inst.control();
        control.wait_mask = 0;
        inst.with_control(control).expect("a control field")
    });
    let without_waits: Vec<_> = without_waits.collect();
    elf.set_instructions("spilling", &without_waits)
        .expect("as many instructions");
    let damaged = elf.write().expect("a cubin");
    let setting = setting(&gpu, [64, 1, 1]);
    let why = spill_to_shared(&damaged, "spilling", &setting, Extent::All)
        .expect_err("nothing waits for anything");
    let why = why.to_string();
    assert!(
        why.contains("a hazard in the rewritten code") && why.contains("nothing waits for"),
        "{why}"
    );
}
