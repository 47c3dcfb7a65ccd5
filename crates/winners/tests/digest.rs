//! What a kernel's digest depends on, and which kernels stand alone, on what ptxas writes.

use std::collections::BTreeMap;

use warpwright_toolkit::testing::require_toolkit;
use warpwright_toolkit::{BuildCache, PtxasJob};
use warpwright_winners::digest::{Tie, stands_alone, tables, variables};
use warpwright_winners::identities;

const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

fn build(name: &str, body: &str) -> Option<Vec<u8>> {
    let toolkit = require_toolkit(name)?;
    let text = format!("{HEAD}{body}");
    let job = PtxasJob::new(&text, "sm_90");
    let built = BuildCache::standard().ptxas(&toolkit.ptxas().expect("ptxas"), &job);
    Some(built.expect("ptxas takes it").cubin.to_vec())
}

fn kernel(name: &str, number: u32) -> String {
    format!(
        ".visible .entry {name}(.param .u64 p) {{ .reg .b64 %d; .reg .b32 %r;
         ld.param.u64 %d, [p]; mov.u32 %r, {number}; st.global.u32 [%d], %r; ret; }}\n"
    )
}

fn digests(cubin: &[u8]) -> BTreeMap<String, String> {
    let all = identities(cubin).expect("a cubin").into_iter();
    all.map(|kernel| (kernel.name, kernel.digest)).collect()
}

#[test]
fn names_and_neighbours_do_not_matter_but_code_does() {
    let test = "names_and_neighbours_do_not_matter_but_code_does";
    let Some(alone) = build(test, &kernel("a", 5)) else {
        return;
    };
    let texts = [kernel("first", 7), kernel("renamed", 5), kernel("other", 6)].concat();
    let several = build(test, &texts).expect("a toolkit");
    let (alone, several) = (digests(&alone), digests(&several));
    assert_eq!(alone["a"], several["renamed"]);
    assert_ne!(alone["a"], several["other"]);
    assert_ne!(alone["a"], several["first"]);
}

#[test]
fn launch_bounds_matter() {
    let Some(plain) = build("launch_bounds_matter", &kernel("a", 5)) else {
        return;
    };
    let bound = kernel("a", 5).replace(") {", ") .maxntid 128 {");
    let bound = build("launch_bounds_matter", &bound).expect("a toolkit");
    assert_ne!(digests(&plain)["a"], digests(&bound)["a"]);
}

#[test]
fn what_a_kernel_shares_with_its_module_is_found() {
    let body = "
.const .align 4 .f32 table[4] = {0f3F800000, 0f40000000, 0f40400000, 0f40800000};
.global .align 4 .u32 counter;
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.visible .entry constant(.param .u64 p) { .reg .b64 %d<3>; .reg .f32 %f; .reg .b32 %r;
    ld.param.u64 %d0, [p]; mov.u32 %r, %tid.x; and.b32 %r, %r, 3; mul.wide.u32 %d1, %r, 4;
    mov.u64 %d2, table; add.u64 %d2, %d2, %d1; ld.const.f32 %f, [%d2]; st.global.f32 [%d0], %f; ret; }
.visible .entry variable() { .reg .b32 %r; atom.global.add.u32 %r, [counter], 1; ret; }
.visible .entry shared(.param .u64 p) { .shared .align 4 .b8 s[128]; .reg .b64 %d; .reg .b32 %r<3>;
    ld.param.u64 %d, [p]; mov.u32 %r0, s; mov.u32 %r1, %tid.x; st.shared.u32 [%r0], %r1; bar.sync 0;
    ld.shared.u32 %r2, [%r0]; st.global.u32 [%d], %r2; ret; }
.visible .entry prints() { .param .b64 f; .reg .b64 %d; mov.u64 %d, 0; { .param .b64 x; .param .b64 y;
    .param .b32 z; st.param.b64 [x], %d; st.param.b64 [y], %d; call.uni (z), vprintf, (x, y); } ret; }
"
    .replace(".param .b64 f; .reg .b64 %d; mov", ".reg .b64 %d; mov");
    let test = "what_a_kernel_shares_with_its_module_is_found";
    let Some(cubin) = build(test, &body) else {
        return;
    };
    assert_eq!(stands_alone(&cubin, "constant"), Err(Tie::Constants));
    assert_eq!(stands_alone(&cubin, "variable"), Err(Tie::Variables));
    assert_eq!(stands_alone(&cubin, "prints"), Err(Tie::Variables));
    assert_eq!(stands_alone(&cubin, "shared"), Ok(()));
}

/// A kernel that reads element `at` of a variable.
fn reader(name: &str, variable: &str) -> String {
    format!(
        ".visible .entry {name}(.param .u64 p) {{ .reg .b64 %d<4>; .reg .b32 %r<3>;
         ld.param.u64 %d0, [p]; mov.u32 %r0, %tid.x; and.b32 %r0, %r0, 3; mul.wide.u32 %d1, %r0, 4;
         mov.u64 %d2, {variable}; add.u64 %d2, %d2, %d1; ld.global.u32 %r1, [%d2]; st.global.u32 [%d0], %r1; ret; }}\n"
    )
}

#[test]
fn tables_of_the_mathematical_library_are_everywhere_the_same() {
    let test = "tables_of_the_mathematical_library_are_everywhere_the_same";
    let table = ".global .align 4 .u32 __cudart_t[4] = {1, 2, 3, 4};\n";
    let own = ".visible .global .align 4 .u32 own[4] = {1, 2, 3, 4};\n";
    let text = |parts: &[&str]| parts.concat();
    let (k, user) = (reader("k", "__cudart_t"), reader("user", "own"));
    let Some(alone) = build(test, &text(&[table, &k])) else {
        return;
    };
    let with = |parts: &[&str]| build(test, &text(parts)).expect("a toolkit");
    assert_eq!(stands_alone(&alone, "k"), Ok(()));
    assert_eq!(tables(&alone, "k").expect("tables").len(), 1);
    assert_eq!(variables(&alone).expect("a cubin"), [""; 0]);
    // Other contents are another kernel.
    let other = with(&[&table.replace("3, 4", "3, 9"), &k]);
    assert_eq!(stands_alone(&other, "k"), Ok(()));
    assert_ne!(digests(&alone)["k"], digests(&other)["k"]);
    assert_ne!(tables(&alone, "k"), tables(&other, "k"));
    // A variable of the program is none, whatever it holds; the code is the same.
    let named = with(&[own, &user]);
    assert_eq!(stands_alone(&named, "user"), Err(Tie::Variables));
    assert_eq!(variables(&named).expect("a cubin"), ["own"]);
    assert_ne!(digests(&alone)["k"], digests(&named)["user"]);
    // Nor is one without initial contents.
    let empty = with(&[".global .align 4 .u32 __cudart_t[4];\n", &k]);
    assert_eq!(stands_alone(&empty, "k"), Err(Tie::Variables));
    // Beside a variable of the program, the kernel of the table still stands alone.
    let both = with(&[own, table, &user, &k]);
    assert_eq!(stands_alone(&both, "user"), Err(Tie::Variables));
    assert_eq!(stands_alone(&both, "k"), Ok(()));
    assert_eq!(tables(&alone, "k"), tables(&both, "k"));
}

/// Which variable a place of constant bank 4 stands for is not in the code.
#[test]
fn kernels_with_the_same_code_and_other_variables_are_others() {
    let test = "kernels_with_the_same_code_and_other_variables_are_others";
    let variables = |names: [&str; 2]| {
        let one =
            |name: &str| format!(".visible .global .align 4 .u32 {name}[4] = {{1, 2, 3, 4}};\n");
        format!("{}{}", one(names[0]), one(names[1]))
    };
    let kernels = |names: [&str; 2]| format!("{}{}", reader("a", names[0]), reader("b", names[1]));
    let make = |names| build(test, &format!("{}{}", variables(names), kernels(names)));
    let Some(first) = make(["x", "y"]) else {
        return;
    };
    let second = make(["y", "z"]).expect("a toolkit");
    assert_ne!(digests(&first)["a"], digests(&second)["a"]);
    assert_ne!(digests(&first)["b"], digests(&second)["b"]);
}
