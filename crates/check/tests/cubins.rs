//! Cubins that ptxas builds here: what surrounds a kernel, and what launches may be like.

use warpwright_check::{Cause, CubinOptions, Verdict, check_kernels};
use warpwright_sass::Elf;
use warpwright_toolkit::PtxasJob;
use warpwright_toolkit::testing::require_toolkit;

const HEAD: &str =
    ".version 8.0\n.target sm_90\n.address_size 64\n.extern .shared .align 4 .b8 more[];\n";

/// Touches no shared memory.
const PLAIN: &str = ".visible .entry plain(.param .u64 data)\n{\n.reg .b64 %d;\n.reg .b32 %t;\n\
    ld.param.u64 %d, [data];\nmov.u32 %t, %tid.x;\nst.global.u32 [%d], %t;\nret;\n}\n";

/// Uses dynamic shared memory.
const DYNAMIC: &str = ".visible .entry dynamic(.param .u64 data)\n{\n.reg .b64 %d;\n.reg .b32 %t, %a, %s;\n\
    ld.param.u64 %d, [data];\nmov.u32 %t, %tid.x;\nmov.u32 %s, more;\nmad.lo.u32 %a, %t, 4, %s;\n\
    st.shared.u32 [%a], %t;\nbar.sync 0;\nld.shared.u32 %t, [%s+64];\nst.global.u32 [%d], %t;\nret;\n}\n";

/// Takes the address of a local array, which is outside the model.
const ARRAY: &str = ".visible .entry array(.param .u64 data)\n{\n.local .align 4 .b8 q[256];\n\
    .reg .b64 %d, %o, %q;\n.reg .b32 %t;\nld.param.u64 %d, [data];\nmov.u32 %t, %tid.x;\n\
    mul.wide.u32 %o, %t, 4;\nmov.u64 %q, q;\nadd.s64 %o, %o, %q;\nst.local.u32 [%o], %t;\n\
    ld.local.u32 %t, [%q+16];\nst.global.u32 [%d], %t;\nret;\n}\n";

fn build(test: &str, kernels: &[&str]) -> Option<Elf> {
    let toolkit = require_toolkit(test)?;
    let text = HEAD.to_owned() + &kernels.concat();
    let job = PtxasJob::new(&text, "sm_90");
    let built = toolkit.ptxas().ok()?.run(&job);
    let cubin = built.expect("ptxas takes it").cubin;
    Some(Elf::parse(&cubin).expect("a cubin"))
}

fn with_shared(elf: &Elf, kernel: &str, bytes: u64) -> Elf {
    let mut grown = elf.clone();
    grown.set_shared_bytes(kernel, bytes).expect("a kernel");
    grown
}

fn with_dynamic(bytes: Option<u32>) -> CubinOptions {
    CubinOptions {
        dynamic_smem: bytes,
        ..CubinOptions::default()
    }
}

#[test]
fn dynamic_shared_memory_that_is_not_stated_is_not_taken_for_none() {
    let test = "dynamic_shared_memory_that_is_not_stated_is_not_taken_for_none";
    let Some(elf) = build(test, &[PLAIN, DYNAMIC]) else {
        return;
    };
    let grown = with_shared(&elf, "dynamic", 8192);
    let verdict = check_kernels(&elf, &grown, "dynamic", &with_dynamic(None));
    assert_eq!(verdict.cause(), Some(Cause::DynamicSharedMemory));
    let verdict = check_kernels(&elf, &grown, "dynamic", &with_dynamic(Some(0)));
    assert_eq!(verdict, Verdict::Proved);
    // A kernel that touches no shared memory cannot miss any.
    let grown = with_shared(&elf, "plain", 8192);
    let verdict = check_kernels(&elf, &grown, "plain", &with_dynamic(None));
    assert_eq!(verdict, Verdict::Proved);
}

#[test]
fn a_block_that_the_original_refuses_says_nothing() {
    for directive in [".maxntid 32", ".reqntid 32"] {
        let bounded = PLAIN.replace("data)", &format!("data)\n{directive}"));
        let Some(elf) = build(
            "a_block_that_the_original_refuses_says_nothing",
            &[&bounded],
        ) else {
            return;
        };
        let grown = with_shared(&elf, "plain", 8192);
        let options = CubinOptions {
            block: Some([64, 1, 1]),
            ..CubinOptions::default()
        };
        let verdict = check_kernels(&elf, &grown, "plain", &options);
        assert_eq!(verdict, Verdict::Proved, "{directive}");
    }
}

#[test]
fn other_kernels_and_the_order_of_symbols_make_no_difference() {
    let test = "other_kernels_and_the_order_of_symbols_make_no_difference";
    let (Some(elf), Some(alone)) = (build(test, &[DYNAMIC, PLAIN]), build(test, &[PLAIN])) else {
        return;
    };
    let grown = with_shared(&elf, "dynamic", 8192);
    for new in [&grown, &alone] {
        let verdict = check_kernels(&elf, new, "plain", &CubinOptions::default());
        assert_eq!(verdict, Verdict::Proved);
    }
    let symbol = |elf: &Elf| elf.kernel("plain").expect("a kernel").symbol;
    assert_ne!(symbol(&elf), symbol(&alone), "they test nothing");
}

/// An H200's driver loads no file whose first symbol has another binding.
#[test]
fn the_empty_symbol_stays_empty() {
    let Some(elf) = build("the_empty_symbol_stays_empty", &[PLAIN]) else {
        return;
    };
    let table = elf.section_index(".symtab").expect("symbols");
    for binding in [1u8, 2] {
        let mut bound = elf.clone();
        bound.sections[table].data[4] = binding << 4;
        let verdict = check_kernels(&elf, &bound, "plain", &CubinOptions::default());
        assert!(!verdict.is_proved(), "{binding}");
    }
}

#[test]
fn a_kernel_outside_the_model_is_a_version_of_itself_and_of_no_other() {
    let test = "a_kernel_outside_the_model_is_a_version_of_itself_and_of_no_other";
    let Some(elf) = build(test, &[ARRAY, DYNAMIC]) else {
        return;
    };
    let options = CubinOptions::default();
    let grown = with_shared(&elf, "dynamic", 8192);
    for new in [&elf, &grown] {
        assert_eq!(check_kernels(&elf, new, "array", &options), Verdict::Proved);
    }
    let code = elf
        .kernel("array")
        .and_then(|kernel| elf.instructions(&kernel));
    let code = code.expect("a kernel");
    let store = code.iter().position(|inst| inst.bits() & 0xfff == 0x387);
    let store = store.expect("a store to the array");
    for bit in [16, 24, 32, 42, 110] {
        let mut bad = elf.clone();
        let mut code = code.clone();
        code[store] = code[store].with_bits(code[store].bits() ^ 1 << bit);
        bad.set_instructions("array", &code).expect("a kernel");
        assert!(
            !check_kernels(&elf, &bad, "array", &options).is_proved(),
            "bit {bit}"
        );
    }
    let smaller = with_shared(&elf, "array", 16);
    assert_ne!(
        check_kernels(&elf, &smaller, "array", &options),
        Verdict::Proved
    );
}

/// One store, of `value`, at byte `offset` of the data.
fn storing(stores: &[(u32, u32)]) -> String {
    let mut text = String::from(
        ".visible .entry storing(.param .u64 data)\n{\n.reg .b64 %d;\n.reg .b32 %t, %v;\n\
         ld.param.u64 %d, [data];\nmov.u32 %t, %tid.x;\n",
    );
    for (add, offset) in stores {
        text += &format!("add.u32 %v, %t, {add};\nst.volatile.global.u32 [%d+{offset}], %v;\n");
    }
    text + "ret;\n}\n"
}

#[test]
fn only_what_is_certainly_wrong_is_refuted() {
    let test = "only_what_is_certainly_wrong_is_refuted";
    let two = [(5, 0), (7, 64)];
    let Some(original) = build(test, &[&storing(&two)]) else {
        return;
    };
    let against = |stores: &[(u32, u32)]| {
        let new = build(test, &[&storing(stores)]).expect("the toolkit that built the first");
        check_kernels(&original, &new, "storing", &CubinOptions::default())
    };
    assert_eq!(against(&two), Verdict::Proved);
    for wrong in [
        &[(5, 0), (8, 64)][..],
        &two[..1],
        &[(5, 0), (7, 64), (9, 128)],
    ] {
        let verdict = against(wrong);
        assert_eq!(verdict.word(), "refuted", "{wrong:?}: {verdict}");
    }
    // Another offset may belong to another base, and another order is not looked into.
    for unclear in [[(5, 0), (7, 68)], [(7, 64), (5, 0)]] {
        let verdict = against(&unclear);
        assert_eq!(verdict.word(), "undecided", "{unclear:?}: {verdict}");
    }
}
