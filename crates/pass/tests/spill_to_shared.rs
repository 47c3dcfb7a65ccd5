//! `spill-to-shared` on cubins that ptxas builds here: moved, proved, read by nvdisasm; and what the
//! checker says of damaged results.

use std::fmt::Write as _;
use std::path::Path;

use warpwright_check::{CubinOptions, check_kernels};
use warpwright_pass::passes::SpillToShared;
use warpwright_pass::{
    Artifact, Block, BlockSource, Executor, Level, Need, Recipe, Refusal, RunError, Setting, Target,
};
use warpwright_sass::elf::Record;
use warpwright_sass::elf::info::Attribute;
use warpwright_sass::{Cubin, Elf, Instruction, Kernel, Operation, Unit};
use warpwright_target::lookup;
use warpwright_toolkit::testing::require_toolkit;
use warpwright_toolkit::{BuildCache, NvccJob, PtxasJob};

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

/// How many slots move.
#[derive(Clone, Copy)]
enum Extent {
    All,
    Beside(u32),
}

/// The pass through the executor; what it gives must be proved.
fn spill_to_shared(
    cubin: &[u8],
    kernel: &str,
    setting: &Setting,
    extent: Extent,
) -> Result<Vec<u8>, RunError> {
    let blocks = match extent {
        Extent::All => None,
        Extent::Beside(blocks) => Some(blocks),
    };
    let recipe = Recipe::default().with(SpillToShared { blocks });
    let target = Target {
        kernel: Some(kernel),
        setting: *setting,
    };
    let start = Artifact::cubin(cubin.to_vec()).expect("a cubin");
    let run = Executor::default().run(&start, &target, &recipe, Level::MachineCode)?;
    let proved = run.prove().unwrap_or_else(|why| panic!("{why}"));
    Ok(proved.artifact().bytes().to_vec())
}

/// `.nv.info` names the vector loads of which a part is not used; they move with the code around them.
#[test]
fn vectors_that_are_used_in_part_keep_their_places() {
    let gpu = lookup("h200").expect("a known GPU");
    let text = include_str!("vector-unused.ptx").replacen(")\n{", ")\n.maxnreg 64\n{", 1);
    let Some(cubin) = build("vectors_that_are_used_in_part_keep_their_places", &text) else {
        return;
    };
    let before = Cubin::parse(&cubin).expect("a cubin");
    assert!(before.kernels[0].frame_bytes > 0, "no spills");
    let setting = setting(&gpu, [256, 1, 1]);
    let moved = spill_to_shared(&cubin, "vector_unused", &setting, Extent::All);
    let after = moved.unwrap_or_else(|why| panic!("{why}"));
    let after = Cubin::parse(&after).expect("a cubin");
    assert_eq!(after.kernels[0].frame_bytes, 0);
}

/// Of a kernel with 255 registers most instructions stand in both versions, and thousands of accesses in one alone: all
/// the same the kept ones are found, and a wait that one of them lacks.
#[test]
fn a_long_kernel_is_proved_and_no_lost_wait_in_it() {
    let Some(toolkit) = require_toolkit("a_long_kernel_is_proved_and_no_lost_wait_in_it") else {
        return;
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/opt/spills.cu");
    let nvcc = toolkit.nvcc().expect("nvcc");
    let mut job = NvccJob::new(&source, "sm_90");
    job.lineinfo = false;
    let output = BuildCache::standard().nvcc(&nvcc, &job);
    let text = output.expect("nvcc takes the source").ptx;
    let text = text.replacen(".maxntid", ".maxnreg 255\n.maxntid", 1);
    let Some(cubin) = build("a_long_kernel_is_proved_and_no_lost_wait_in_it", &text) else {
        return;
    };
    let gpu = lookup("h200").expect("a known GPU");
    let setting = setting(&gpu, [128, 1, 1]);
    let moved = spill_to_shared(&cubin, "spills", &setting, Extent::Beside(2));
    let moved = moved.unwrap_or_else(|why| panic!("{why}"));
    let [original, moved] = [&cubin, &moved].map(|bytes| Elf::parse(bytes).expect("a cubin"));
    let kernel = moved.kernel("spills").expect("it was written");
    let words = moved.instructions(&kernel).expect("code");
    // Behind the new prologue: what waits there is the original's.
    let waiting = words.iter().enumerate().skip(64);
    // Accesses of slots are none of the original's: some wait for more than they need.
    let is_kept =
        |word: &Instruction| ![0x183, 0x184, 0x187, 0x188].contains(&(word.bits() & 0x1ff));
    let waiting = waiting.filter(|(_, word)| word.control().wait_mask != 0 && is_kept(word));
    let waiting: Vec<usize> = waiting.map(|(at, _)| at).collect();
    assert!(waiting.len() > 100, "{}", waiting.len());
    for &at in waiting.iter().step_by(waiting.len() / 12) {
        let mut control = words[at].control();
        control.wait_mask &= control.wait_mask - 1;
        let mut changed = words.clone();
        changed[at] = words[at].with_control(control).expect("a control field");
        let mut wrong = moved.clone();
        wrong.set_instructions("spills", &changed).expect("as many");
        let options = CubinOptions {
            block: Some([128, 1, 1]),
            dynamic_smem: Some(0),
        };
        let verdict = check_kernels(&original, &wrong, "spills", &options);
        assert!(!verdict.is_proved(), "without a wait at {:#x}", at * 16);
    }
}

/// The refusal of a run.
fn refusal<T: std::fmt::Debug>(result: Result<T, RunError>) -> Refusal {
    match result {
        Err(RunError::Refused { refusal, .. }) => refusal,
        other => panic!("no refusal: {other:?}"),
    }
}

fn setting(gpu: &warpwright_target::Gpu, dims: [u32; 3]) -> Setting<'_> {
    let source = BlockSource::Option;
    Setting {
        block: Block { dims, source },
        dynamic_smem: Some(0),
        ..Setting::new(gpu)
    }
}

fn build(test: &str, text: &str) -> Option<Vec<u8>> {
    build_for("sm_90", test, text)
}

fn build_for(arch: &str, test: &str, text: &str) -> Option<Vec<u8>> {
    let toolkit = require_toolkit(test)?;
    let ptxas = toolkit.ptxas().ok()?;
    let mut text = text.replace("sm_90", arch);
    if arch != "sm_90" {
        text = text.replace(".version 8.0", ".version 8.7");
    }
    let job = PtxasJob::new(&text, arch);
    let build = BuildCache::standard().ptxas(&ptxas, &job);
    Some(build.expect("ptxas takes the module").cubin.to_vec())
}

/// The helper of a division keeps its return address in a slot; before sm_90 it states no frame of its own.
#[test]
fn a_division_whose_return_address_spills_moves_and_is_proved() {
    let test = "a_division_whose_return_address_spills_moves_and_is_proved";
    let divisions: String = (0..4)
        .map(|n| format!("div.rn.f64 %f{n}, %f{}, %f{n};\n", n + 7))
        .collect();
    let end = "sub.u32 %n, %n, 1;";
    let text = module(20, 64, ".maxntid 64").replacen(end, &format!("{divisions}{end}"), 1);
    for arch in ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90"] {
        let gpu = lookup(arch).expect("a known GPU");
        let Some(cubin) = build_for(arch, test, &text) else {
            return;
        };
        let before = Cubin::parse(&cubin).expect("a cubin");
        assert!(before.kernels[0].frame_bytes > 0, "no spills on {arch}");
        let setting = setting(&gpu, [64, 1, 1]);
        let moved = spill_to_shared(&cubin, "spilling", &setting, Extent::All);
        let moved = moved.unwrap_or_else(|why| panic!("{arch}: {why}"));
        let after = Cubin::parse(&moved).expect("a cubin");
        assert_eq!(after.kernels[0].frame_bytes, 0);
        another_frame_of_the_helper_is_not_proved(&cubin, &moved);
    }
}

/// What the helper states of its frame stays, or is what the kernel states.
fn another_frame_of_the_helper_is_not_proved(original: &[u8], moved: &[u8]) {
    let [original, good] = [original, moved].map(|bytes| Elf::parse(bytes).expect("as before"));
    let kernel = good.kernel("spilling").expect("as before").symbol;
    let proved = |bytes: u32| {
        let mut elf = good.clone();
        let mut info = elf.info(".nv.info").expect("readable").expect("there");
        let is_helper = |record: &&mut Record| {
            record.attribute == Attribute::FRAME_SIZE && record.words().first() != Some(&kernel)
        };
        let helper = info.records.iter_mut().find(is_helper);
        helper.expect("a helper").set_word(1, bytes);
        elf.set_info(".nv.info", &info).expect("as before");
        check_kernels(&original, &elf, "spilling", &CubinOptions::default()).is_proved()
    };
    assert!(proved(0));
    assert!(!proved(8));
}

/// Sums in global memory, with the result used and without: single, double, and pairs of half precision.
#[test]
fn slots_move_beside_atomics_of_floating_point_numbers() {
    let test = "slots_move_beside_atomics_of_floating_point_numbers";
    let gpu = lookup("h200").expect("a known GPU");
    let atomics = "cvt.rn.f32.f64 %s, %f0;\nmov.b32 %h, %s;\n\
        red.global.add.f32 [%d], %s;\natom.global.add.f32 %s, [%d+4], %s;\n\
        red.global.add.f64 [%d+8], %f1;\natom.global.add.f64 %f2, [%d+16], %f3;\n\
        red.global.add.noftz.f16x2 [%d+24], %h;\natom.global.add.noftz.f16x2 %h, [%d+28], %h;\n\
        red.global.add.noftz.bf16x2 [%d+32], %h;\natom.global.add.noftz.bf16x2 %h, [%d+36], %h;\n\
        mov.b64 %f5, {%h, %s};\n";
    // Before the loop: a loop that reads what other blocks write may wait for them.
    let text = module(20, 64, ".maxntid 64")
        .replacen("again:", &format!("{atomics}again:"), 1)
        .replacen(".reg .pred", ".reg .f32 %s;\n.reg .b32 %h;\n.reg .pred", 1);
    let Some(cubin) = build(test, &text) else {
        return;
    };
    let before = Cubin::parse(&cubin).expect("a cubin");
    assert!(before.kernels[0].frame_bytes > 0, "no spills");
    let setting = setting(&gpu, [64, 1, 1]);
    let moved = spill_to_shared(&cubin, "spilling", &setting, Extent::All);
    let moved = moved.unwrap_or_else(|why| panic!("{why}"));
    let after = Cubin::parse(&moved).expect("a cubin");
    assert_eq!(after.kernels[0].frame_bytes, 0);
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
    let all = Refusal::InTheWay("all slots fit beside that many blocks");
    assert_eq!(refusal(move_beside(2)), all);
    let none = Refusal::InTheWay("no spill slot fits into the shared memory that is free");
    assert_eq!(refusal(move_beside(1000)), none);
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
    let (original, good) = (
        Elf::parse(original).expect("it was read before"),
        Elf::parse(moved).expect("it was read before"),
    );
    let code = good
        .instructions(&good.kernel("spilling").expect("it was read before"))
        .expect("it was read before");
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
        elf.set_instructions("spilling", code)
            .expect("it was read before");
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

/// A launch may have less dynamic shared memory than was stated, or none: the section alone must hold the
/// slots, behind all that the kernel itself may use.
#[test]
fn slots_stand_behind_static_and_dynamic_memory_whatever_a_launch_has() {
    let test = "slots_stand_behind_static_and_dynamic_memory_whatever_a_launch_has";
    const DYNAMIC: u32 = 4096;
    const OWN: u32 = 1024 + 1000;
    let gpu = lookup("h200").expect("a known GPU");
    let Some(cubin) = build(test, &module(48, 32, ".reqntid 64")) else {
        return;
    };
    let mut original = Elf::parse(&cubin).expect("a cubin");
    original
        .set_shared_bytes("spilling", u64::from(OWN))
        .unwrap();
    let cubin = original.write().unwrap();
    let mut setting = setting(&gpu, [64, 1, 1]);
    setting.dynamic_smem = Some(DYNAMIC);
    let moved = spill_to_shared(&cubin, "spilling", &setting, Extent::All);
    let moved = moved.unwrap_or_else(|why| panic!("{why}"));
    let good = Elf::parse(&moved).unwrap();
    let kernel = good.kernel("spilling").unwrap();
    let accesses = shared_accesses(&good.instructions(&kernel).unwrap());
    let first = accesses.iter().map(|access| access.offset).min().unwrap();
    let ends = accesses.iter().map(|a| a.offset + 63 * a.scale + a.bytes);
    assert_eq!(first, (OWN + DYNAMIC).next_multiple_of(16));
    assert_eq!(good.shared_bytes(&kernel), u64::from(ends.max().unwrap()));
    let options = CubinOptions {
        dynamic_smem: Some(DYNAMIC),
        ..CubinOptions::default()
    };
    for less in [4, DYNAMIC] {
        let mut bad = good.clone();
        let bytes = good.shared_bytes(&kernel) - u64::from(less);
        bad.set_shared_bytes("spilling", bytes).unwrap();
        let verdict = check_kernels(&original, &bad, "spilling", &options);
        // Sections are rounded up to 16 bytes, which hardware gives.
        assert_eq!(
            verdict.is_proved(),
            less < 16 && !bytes.is_multiple_of(16),
            "{less}: {verdict}"
        );
    }
    let mut small = good.clone();
    small
        .set_shared_bytes("spilling", u64::from(OWN - 1))
        .unwrap();
    assert!(!check_kernels(&original, &small, "spilling", &options).is_proved());
}

/// A program whose dynamic shared memory fits without opting in does not opt in: no slots may be in its way.
#[test]
fn launches_that_need_no_opting_in_need_none_afterwards() {
    let test = "launches_that_need_no_opting_in_need_none_afterwards";
    let gpu = lookup("h200").expect("a known GPU");
    let Some(cubin) = build(test, &module(48, 32, ".reqntid 64")) else {
        return;
    };
    let original = Elf::parse(&cubin).expect("a cubin");
    let moved = |dynamic: u32| {
        let mut setting = setting(&gpu, [64, 1, 1]);
        setting.dynamic_smem = Some(dynamic);
        spill_to_shared(&cubin, "spilling", &setting, Extent::All)
    };
    // The section holds the dynamic memory, and a launch adds it once more.
    let [small, plain, large] = [8, 40, 60].map(|kib| kib << 10);
    assert!(moved(small).is_ok());
    let why = moved(plain).expect_err("no room without opting in");
    assert!(
        why.to_string().contains("without opting in to more"),
        "{why}"
    );
    let large = moved(large).unwrap_or_else(|why| panic!("{why}"));
    let large = Elf::parse(&large).expect("a cubin");
    let verdict = |dynamic: u32| {
        let options = CubinOptions {
            dynamic_smem: Some(dynamic),
            ..CubinOptions::default()
        };
        check_kernels(&original, &large, "spilling", &options)
    };
    assert!(verdict(60 << 10).is_proved());
    let narrower = verdict(plain);
    assert!(!narrower.is_proved());
    assert!(
        narrower.to_string().contains("asks for no more"),
        "{narrower}"
    );
}

/// An access to shared memory at `index · scale + offset`.
struct SharedAccess {
    offset: u32,
    scale: u32,
    bytes: u32,
}

fn shared_accesses(code: &[Instruction]) -> Vec<SharedAccess> {
    const SHARED: [u128; 2] = [0x388, 0x984];
    let spills = code
        .iter()
        .filter(|inst| SHARED.contains(&(inst.bits() & 0xfff)));
    let access = |inst: &Instruction| SharedAccess {
        offset: (inst.bits() >> 40) as u32 & 0xff_ffff,
        scale: match (inst.bits() >> 78) as u32 & 3 {
            0 => 1,
            power => 2 << power,
        },
        bytes: inst.access_bytes(),
    };
    spills.map(access).collect()
}

/// What the code at the entry leaves in R1: S2R, LDC and IMAD executed for one thread.
fn index_of(code: &[Instruction], thread: [u32; 3], block: [u32; 3]) -> u32 {
    let mut registers = [0u32; 256];
    let field =
        |inst: &Instruction, at: u32, width: u32| (inst.bits() >> at) as usize & ((1 << width) - 1);
    for inst in code {
        let value = match inst.bits() & 0xfff {
            0x919 => thread[field(inst, 72, 8) - 0x21],
            0xb82 => match block.get(field(inst, 40, 14)) {
                Some(&size) => size,
                None => break,
            },
            0x224 => {
                let [a, b, c] = [24, 32, 64].map(|at| registers[field(inst, at, 8)]);
                a * b + c
            }
            _ => break,
        };
        registers[field(inst, 16, 8)] = value;
    }
    registers[1]
}

/// Blocks of one to three dimensions, also such whose rows are no whole warps: in each access of a warp
/// every bank gives one word per pass of 128 bytes (so many threads as have 128 bytes of the slot), threads
/// share no byte, and all stays in the section.
#[test]
fn no_access_has_a_bank_conflict_for_any_shape_of_block() {
    let gpu = lookup("h200").expect("a known GPU");
    for block in [
        [64, 1, 1],
        [33, 1, 1],
        [8, 8, 1],
        [7, 5, 3],
        [1, 1, 64],
        [95, 2, 1],
    ] {
        for (bits, is_exact) in [(32, true), (64, false)] {
            let [x, y, z] = block;
            let bound = match is_exact {
                true => format!(".reqntid {x}, {y}, {z}"),
                false => String::new(),
            };
            let text = module(48, bits, &bound);
            let test = "no_access_has_a_bank_conflict_for_any_shape_of_block";
            let Some(cubin) = build(test, &text) else {
                return;
            };
            let moved = spill_to_shared(&cubin, "spilling", &setting(&gpu, block), Extent::All);
            let moved = moved.unwrap_or_else(|why| panic!("{block:?}: {why}"));
            let elf = Elf::parse(&moved).unwrap();
            let kernel = elf.kernel("spilling").unwrap();
            let code = elf.instructions(&kernel).unwrap();
            // Warps are made of threads in this order.
            let threads =
                (0..z).flat_map(|k| (0..y).flat_map(move |j| (0..x).map(move |i| [i, j, k])));
            // The code waits in between, which changes nothing.
            let entry = code.iter().take(8).copied();
            let entry: Vec<Instruction> =
                entry.filter(|inst| inst.bits() & 0xfff != 0x918).collect();
            let indices: Vec<u32> = threads.map(|t| index_of(&entry, t, block)).collect();
            let mut owners = vec![None; elf.shared_bytes(&kernel) as usize];
            let accesses = shared_accesses(&code);
            assert!(accesses.len() > 10 && accesses.iter().any(|a| a.bytes * 8 == bits));
            for access in accesses {
                let address = |index: &u32| access.offset + index * access.scale;
                for (thread, start) in indices.iter().map(address).enumerate() {
                    assert_eq!(start % access.bytes, 0);
                    for byte in start..start + access.bytes {
                        let owner = owners[byte as usize].get_or_insert(thread);
                        assert_eq!(*owner, thread, "{block:?}: byte {byte}");
                    }
                }
                for warp in indices.chunks(32) {
                    for pass in warp.chunks((128 / access.scale) as usize) {
                        let words = pass.iter().flat_map(|index| {
                            (0..access.bytes / 4).map(move |word| address(index) / 4 + word)
                        });
                        let banks: Vec<u32> = words.map(|word| word % 32).collect();
                        let different: std::collections::BTreeSet<_> = banks.iter().collect();
                        assert_eq!(different.len(), banks.len(), "{block:?}: {}", access.offset);
                    }
                }
            }
        }
    }
}

#[test]
fn what_cannot_move_is_refused_by_name() {
    let gpu = lookup("h200").expect("a known GPU");
    let Some(cubin) = build("what_cannot_move_is_refused_by_name", &module(48, 32, "")) else {
        return;
    };
    let known = setting(&gpu, [64, 1, 1]);
    let mut unknown = known;
    unknown.block.source = BlockSource::Assumed;
    let found = refusal(spill_to_shared(&cubin, "spilling", &unknown, Extent::All));
    assert_eq!(found, Refusal::NotStated(Need::BlockSize));
    let found = refusal(spill_to_shared(&cubin, "other", &known, Extent::All));
    assert!(matches!(found, Refusal::Elf(_)), "{found}");
    let small = module(4, 32, "");
    let cubin = build("what_cannot_move_is_refused_by_name", &small).expect("a toolkit");
    let found = refusal(spill_to_shared(&cubin, "spilling", &known, Extent::All));
    assert_eq!(
        found,
        Refusal::Spill(warpwright_sass::spill::Refusal::NoSpills)
    );
    let barrier = "barrier.cluster.arrive;\nbarrier.cluster.wait;\nret;";
    let clusters = module(48, 32, "").replacen("ret;", barrier, 1);
    let cubin = build("what_cannot_move_is_refused_by_name", &clusters).expect("a toolkit");
    let found = refusal(spill_to_shared(&cubin, "spilling", &known, Extent::All));
    let cluster = |found: &Refusal| {
        matches!(
            found,
            Refusal::Spill(warpwright_sass::spill::Refusal::Cluster { .. })
        )
    };
    assert!(cluster(&found), "{found}");
}

/// Outside sm_90 all is proved; more than launches everywhere is never taken, and from sm_100 on a second
/// copy of the program is in the way, which is looked at last.
#[test]
fn other_architectures_are_proved_and_second_copies_refused() {
    let test = "other_architectures_are_proved_and_second_copies_refused";
    for arch in ["sm_75", "sm_80", "sm_86", "sm_89", "sm_100", "sm_120"] {
        let gpu = lookup(arch).expect("a known architecture");
        let text = module(48, 64, ".reqntid 8, 4, 2");
        let Some(cubin) = build_for(arch, test, &text) else {
            return;
        };
        let small = setting(&gpu, [8, 4, 2]);
        match spill_to_shared(&cubin, "spilling", &small, Extent::All) {
            Ok(moved) => {
                assert!(!["sm_100", "sm_120"].contains(&arch));
                assert_eq!(Cubin::parse(&moved).unwrap().kernels[0].frame_bytes, 0);
            }
            Err(why) => {
                assert!(["sm_100", "sm_120"].contains(&arch), "{arch}: {why}");
                let why = refusal::<()>(Err(why));
                assert!(matches!(why, Refusal::Obstacle { .. }), "{arch}: {why}");
            }
        }
        let text = module(48, 64, ".reqntid 1024");
        let cubin = build_for(arch, test, &text).expect("as before");
        let large = setting(&gpu, [1024, 1, 1]);
        let why = refusal(spill_to_shared(&cubin, "spilling", &large, Extent::All));
        let too_large = Refusal::InTheWay("its spill slots do not all fit into shared memory");
        assert_eq!(why, too_large, "{arch}");
    }
}

/// A loop of divisions: helpers that save registers in which their callers leave return addresses.
fn divisions() -> String {
    let text = module(48, 32, ".reqntid 64");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let products = lines
        .iter_mut()
        .filter(|line| line.starts_with("fma.rn.f32"));
    for line in products.step_by(7) {
        let operands: Vec<String> = line["fma.rn.f32 ".len()..]
            .split([',', ';'])
            .map(|operand| operand.trim().to_owned())
            .collect();
        *line = format!(
            "div.rn.f32 {}, {}, {};",
            operands[0], operands[1], operands[2]
        );
    }
    lines.join("\n")
}

/// The slow path of a division returns to an address that is a constant before the call. It may go
/// through slots, but nowhere that shows: a store of it is another value in other code.
#[test]
fn return_addresses_may_go_nowhere_but_into_returns() {
    let test = "return_addresses_may_go_nowhere_but_into_returns";
    let gpu = lookup("h200").expect("a known GPU");
    let Some(cubin) = build(test, &divisions()) else {
        return;
    };
    let moved = spill_to_shared(&cubin, "spilling", &setting(&gpu, [64, 1, 1]), Extent::All);
    let moved = moved.unwrap_or_else(|why| panic!("{why}"));
    let elves = [cubin, moved].map(|bytes| Elf::parse(&bytes).unwrap());
    let calls = |elf: &Elf| {
        let code = elf.instructions(&elf.kernel("spilling").unwrap()).unwrap();
        code.iter().filter(|inst| inst.is_call()).count()
    };
    assert!(calls(&elves[0]) > 3);
    // What the store takes the place of may be needed; then neither is proved.
    let mut proved = 0;
    for call in 0..calls(&elves[0]) {
        let [zero, leaked] = [false, true].map(|is_leak| {
            let both = elves.each_ref().map(|elf| with_store(elf, call, is_leak));
            check_kernels(&both[0], &both[1], "spilling", &CubinOptions::default())
        });
        assert!(!leaked.is_proved(), "call {call}");
        proved += u32::from(zero.is_proved());
    }
    assert!(proved > 1, "only {proved} stores of zero were proved");
}

/// The kernel with a store in the place of what follows a call: of the return address, or of zero.
fn with_store(elf: &Elf, call: usize, is_leak: bool) -> Elf {
    let kernel = elf.kernel("spilling").expect("the kernel");
    let mut code = elf.instructions(&kernel).expect("its code");
    let mut calls = (0..code.len()).filter(|&at| code[at].is_call());
    let call = calls.nth(call).expect("as many calls");
    let address = Some((call as u32 + 1) * 16);
    let mut before = code[..call].iter().rev();
    let load = before.find(|inst| inst.loaded_constant() == address);
    let register = (load.expect("its return address").bits() >> 16) & 0xff;
    let store = code
        .iter()
        .rev()
        .find(|inst| inst.operation() == Operation::STG);
    let store = *store.expect("a store");
    // 32 bits of RZ or of the return address, at an address in RZ.
    let data = if is_leak { register } else { 0xff };
    let bits = store.bits() & !(0xff << 32 | 7 << 73) | data << 32 | 4 << 73 | 0xff << 24;
    let place = (call + 1..code.len()).find(|&at| code[at].unit() != Unit::Control);
    code[place.expect("something behind the call")] = store.with_bits(bits);
    let mut changed = elf.clone();
    changed
        .set_instructions("spilling", &code)
        .expect("as many instructions");
    changed
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
        why.contains("before the pass") && why.contains("nothing waits for"),
        "{why}"
    );
}
