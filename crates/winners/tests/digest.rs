//! What a kernel's digest depends on, and which kernels stand alone, on what ptxas writes.

use std::collections::{BTreeMap, BTreeSet};

use warpwright_sass::{Elf, HeldConstants, Instruction, Operation, isa};
use warpwright_toolkit::testing::require_toolkit;
use warpwright_toolkit::{BuildCache, PtxasJob};
use warpwright_winners::digest::{Variable, variables};
use warpwright_winners::identities;
use warpwright_winners::ties::{Bond, Tie, bond, tables};

const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

fn build(name: &str, body: &str) -> Option<Vec<u8>> {
    build_for(90, name, body)
}

fn build_for(sm: u32, name: &str, body: &str) -> Option<Vec<u8>> {
    let toolkit = require_toolkit(name)?;
    let head = match sm < 90 {
        true => HEAD.replace("sm_90", &format!("sm_{sm}")),
        false => HEAD.to_owned(),
    };
    let text = format!("{head}{body}");
    let arch = format!("sm_{sm}");
    let job = PtxasJob::new(&text, &arch);
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
    assert_eq!(bond(&cubin, "constant"), Ok(Bond::Variables));
    assert_eq!(bond(&cubin, "variable"), Ok(Bond::Variables));
    assert_eq!(bond(&cubin, "prints"), Err(Tie::Prints));
    assert_eq!(bond(&cubin, "shared"), Ok(Bond::None));
}

/// An assertion beside a variable: the address of the driver's function is read through a register that holds a constant.
const ASSERTS: &str = r#"
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 $str[3] = {105, 48, 0};
.visible .global .align 4 .u32 sums[64];
.visible .entry asserts(.param .u64 p) { .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %q;
    ld.param.u64 %d0, [p]; ld.global.u32 %r0, [%d0]; setp.lt.u32 %q, %r0, 64; @%q bra FINE;
    mov.u64 %d1, $str; cvta.global.u64 %d1, %d1; mov.u64 %d2, 1; mov.u32 %r1, 7;
    { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], %d1; st.param.b64 [b], %d1;
    st.param.b32 [c], %r1; st.param.b64 [d], %d1; st.param.b64 [e], %d2; call.uni __assertfail, (a, b, c, d, e); }
FINE: mul.wide.u32 %d3, %r0, 4; mov.u64 %d2, sums; add.u64 %d2, %d2, %d3; atom.global.add.u32 %r2, [%d2], 1;
    st.global.u32 [%d0], %r2; ret; }
"#;

#[test]
fn assertions_stand_beside_variables() {
    for sm in [75, 80, 90, 120] {
        let Some(cubin) = build_for(sm, "assertions_stand_beside_variables", ASSERTS) else {
            return;
        };
        assert_eq!(bond(&cubin, "asserts"), Ok(Bond::Variables), "sm_{sm}");
        let elf = Elf::parse(&cubin).expect("a cubin");
        let kernel = elf.kernel("asserts").expect("a kernel");
        let code = elf.instructions(&kernel).expect("code");
        let text = |i: &Instruction| isa::decode(*i).text(0);
        let reads = |i: &Instruction| text(i).contains("c[0x4][R") && !text(i).contains("[RZ");
        let at = code.iter().position(reads).expect("it reads an address");
        let (_, rest) = text(&code[at])
            .split_once("[R")
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .expect("a register");
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let register: u16 = digits.parse().expect("a number");
        assert!(
            HeldConstants::new(&code, &BTreeSet::new())
                .at(at, register)
                .is_some()
        );
        let loads = |i: &&Instruction| {
            i.loaded_constant().is_some() && text(i).contains(&format!("R{register},"))
        };
        let load = code[..at]
            .iter()
            .rposition(|i| loads(&i))
            .expect("it is loaded");
        // Without the constant, under a condition, and with a way into the middle nobody knows what it holds.
        let held = |place: usize, new: Instruction| {
            let mut code = code.clone();
            code[place] = new;
            HeldConstants::new(&code, &BTreeSet::new()).at(at, register)
        };
        // Nor where the loader changes the instruction that loads it.
        let relocated = BTreeSet::from([load]);
        let loaded = HeldConstants::new(&code, &relocated).at(at, register);
        assert_eq!(loaded, None, "sm_{sm}");
        let bits = code[load].bits();
        let guarded = Instruction::new(sm, bits & !(0xf << 12));
        assert_eq!(held(load, guarded), None, "sm_{sm}");
        assert_eq!(held(load, code[0]).filter(|_| load != 0), None, "sm_{sm}");
        let jumps = |i: &Instruction| i.operation() == Operation::BRA;
        let jump = code
            .iter()
            .rposition(jumps)
            .expect("the last branch leads to itself");
        let distance = |to: usize| (to as i64 - jump as i64 - 1) * 16;
        for to in load + 1..=at {
            let led = code[jump].with_distance(distance(to)).expect("it fits");
            assert_eq!(held(jump, led), None, "sm_{sm}: {to}");
        }
        let led = code[jump].with_distance(distance(load)).expect("it fits");
        assert!(held(jump, led).is_some(), "sm_{sm}");
    }
}

#[test]
fn what_no_copy_can_have_is_named() {
    let body = "
.global .attribute(.managed) .align 4 .u32 moves;
.global .texref colours;
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.visible .entry managed() { .reg .b32 %r; atom.global.add.u32 %r, [moves], 1; ret; }
.visible .entry texture(.param .u64 p) { .reg .b64 %d; .reg .f32 %f<4>; .reg .b32 %r; ld.param.u64 %d, [p];
    mov.u32 %r, %tid.x; tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [colours, {%r}]; st.global.f32 [%d], %f0; ret; }
.visible .entry heap(.param .u64 p) { .reg .b64 %d<3>; ld.param.u64 %d0, [p]; mov.u64 %d1, 8; { .param .b64 n;
    .param .b64 r; st.param.b64 [n], %d1; call.uni (r), malloc, (n); ld.param.b64 %d2, [r]; } st.global.u64 [%d0], %d2;
    ret; }
.visible .entry asserts() { .reg .b64 %d; .reg .b32 %r; mov.u64 %d, 0; mov.u32 %r, 0; { .param .b64 a; .param .b64 b;
    .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], %d; st.param.b64 [b], %d; st.param.b32 [c], %r;
    st.param.b64 [d], %d; st.param.b64 [e], %d; call.uni __assertfail, (a, b, c, d, e); } ret; }
";
    let test = "what_no_copy_can_have_is_named";
    // Each in a module of its own.
    let heads = |of: &str| {
        let lines = body
            .lines()
            .filter(|l| l.starts_with('.') && !l.contains(".entry"));
        let start = body
            .find(&format!(".visible .entry {of}"))
            .expect("a kernel");
        let end = body[start + 1..]
            .find("\n.")
            .map_or(body.len(), |end| start + 1 + end);
        let heads: Vec<&str> = lines.collect();
        format!("{}\n{}", heads.join("\n"), &body[start..end])
    };
    let ties = [
        ("managed", Tie::Managed("moves".into())),
        ("texture", Tie::Texture("colours".into())),
        ("heap", Tie::Heap("malloc".into())),
    ];
    for (kernel, tie) in ties {
        let Some(cubin) = build(test, &heads(kernel)) else {
            return;
        };
        assert_eq!(bond(&cubin, kernel), Err(tie));
    }
    // `assert` is in every module, whatever else is there.
    let lines = heads("asserts");
    assert_eq!(
        build(test, &lines).map(|cubin| bond(&cubin, "asserts")),
        Some(Ok(Bond::None))
    );
    let variable = ".visible .global .align 4 .u32 own;\n";
    let asserts: Vec<&str> = lines
        .lines()
        .filter(|line| !line.contains("moves") && !line.contains("colours"))
        .collect();
    let alone = asserts
        .join("\n")
        .replace(".extern .func (.param .b64 r) malloc(.param .b64 n);", "");
    let of = |text: &str| build(test, text).expect("a toolkit");
    assert_eq!(bond(&of(&alone), "asserts"), Ok(Bond::None));
    let beside = format!("{variable}{alone}{}", reader("user", "own"));
    assert_eq!(bond(&of(&beside), "asserts"), Ok(Bond::None));
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
    assert_eq!(bond(&alone, "k"), Ok(Bond::None));
    assert_eq!(tables(&alone, "k").expect("tables").len(), 1);
    assert_eq!(variables(&alone).expect("a cubin"), []);
    // Other contents are another kernel.
    let other = with(&[&table.replace("3, 4", "3, 9"), &k]);
    assert_eq!(bond(&other, "k"), Ok(Bond::None));
    assert_ne!(digests(&alone)["k"], digests(&other)["k"]);
    assert_ne!(tables(&alone, "k"), tables(&other, "k"));
    // A variable of the program is none, whatever it holds; the code is the same.
    let named = with(&[own, &user]);
    assert_eq!(bond(&named, "user"), Ok(Bond::Variables));
    let variable = Variable {
        name: "own".into(),
        bytes: 16,
        is_constant: false,
    };
    assert_eq!(variables(&named).expect("a cubin"), [variable]);
    let constant = with(&[
        ".visible .const .align 4 .u32 own[2];\n",
        &reader("c", "own").replace("ld.global", "ld.const"),
    ]);
    let constant = variables(&constant).expect("a cubin").remove(0);
    assert_eq!((constant.bytes, constant.is_constant), (8, true));
    assert_ne!(digests(&alone)["k"], digests(&named)["user"]);
    // Nor is one without initial contents.
    let empty = with(&[".global .align 4 .u32 __cudart_t[4];\n", &k]);
    assert_eq!(bond(&empty, "k"), Ok(Bond::Variables));
    // Beside a variable of the program, the kernel of the table still stands alone.
    let both = with(&[own, table, &user, &k]);
    assert_eq!(bond(&both, "user"), Ok(Bond::Variables));
    assert_eq!(bond(&both, "k"), Ok(Bond::None));
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

/// A version of a kernel may rest on what it knew of variables: size, alignment, first contents, place.
#[test]
fn what_variables_are_matters() {
    let test = "what_variables_are_matters";
    let kernel = ".visible .entry k(.param .u64 p) { .reg .b64 %d; .reg .b32 %r<3>; ld.param.u64 %d, [p];
        ld.const.u32 %r0, [c]; ld.global.u32 %r1, [g]; add.u32 %r2, %r0, %r1; st.global.u32 [%d], %r2; ret; }\n";
    let make = |constant: &str, global: &str| build(test, &format!("{constant}{global}{kernel}"));
    let (c, g) = (
        ".const .align 4 .u32 c[2] = {1, 2};\n",
        ".global .align 4 .u32 g[2] = {3, 4};\n",
    );
    let Some(plain) = make(c, g) else {
        return;
    };
    let own = digests(&plain)["k"].clone();
    let again = make(c, g).expect("a toolkit");
    assert_eq!(own, digests(&again)["k"]);
    for (constant, global) in [
        (c.replace("1, 2", "1, 3"), g.to_owned()),
        (c.replace("c[2]", "c[4]"), g.to_owned()),
        (format!("{c}.const .u32 next;\n"), g.to_owned()),
        (c.to_owned(), g.replace("3, 4", "3, 5")),
        (c.to_owned(), g.replace(".align 4", ".align 16")),
        (c.to_owned(), g.replace("g[2]", "g[4]")),
    ] {
        let other = make(&constant, &global).expect("a toolkit");
        assert_ne!(own, digests(&other)["k"], "{constant}{global}");
    }
}

/// Device-linked code calls functions that have sections of their own.
fn linked(name: &str, function: &str) -> Option<Vec<u8>> {
    let toolkit = require_toolkit(name)?;
    let text = format!(
        "{HEAD}{function}
.visible .entry k(.param .u64 p) {{ .reg .b64 %d; .reg .b32 %r<2>;
 ld.param.u64 %d, [p]; ld.global.u32 %r0, [%d];
 {{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; call (b), f, (a); ld.param.b32 %r1, [b]; }}
 st.global.u32 [%d], %r1; ret; }}\n"
    );
    let mut job = PtxasJob::new(&text, "sm_90");
    job.extra = vec!["-c".into()];
    let built = BuildCache::standard().ptxas(&toolkit.ptxas().expect("ptxas"), &job);
    Some(built.expect("ptxas takes it").cubin.to_vec())
}

#[test]
fn functions_of_the_module_are_part_of_a_kernel() {
    let function = |before: &str, body: &str| {
        format!(
            "{before}.visible .func (.param .b32 out) f(.param .b32 in) {{ .reg .b32 %r<3>; .reg .b64 %d;
             ld.param.b32 %r0, [in]; {body} st.param.b32 [out], %r1; ret; }}"
        )
    };
    let test = "functions_of_the_module_are_part_of_a_kernel";
    let Some(three) = linked(test, &function("", "mul.lo.u32 %r1, %r0, 3;")) else {
        return;
    };
    let five = linked(test, &function("", "mul.lo.u32 %r1, %r0, 5;")).expect("a toolkit");
    assert_eq!(bond(&three, "k"), Ok(Bond::None));
    assert_eq!(bond(&five, "k"), Ok(Bond::None));
    assert_ne!(digests(&three)["k"], digests(&five)["k"]);
    // One that uses a variable of the module ties the kernel to it, and so does one that is defined elsewhere.
    let counter = ".visible .global .u32 counter;\n";
    let counts = "mov.u64 %d, counter; atom.global.add.u32 %r1, [%d], %r0;";
    let counting = linked(test, &function(counter, counts)).expect("a toolkit");
    let tie = bond(&counting, "k").expect_err("tied");
    assert!(matches!(&tie, Tie::Calls(_) | Tie::Symbol(_)), "{tie}");
    let elsewhere = ".extern .func (.param .b32 out) f(.param .b32 in);";
    let elsewhere = linked(test, elsewhere).expect("a toolkit");
    assert_eq!(bond(&elsewhere, "k"), Err(Tie::Calls("f".to_owned())));
}
