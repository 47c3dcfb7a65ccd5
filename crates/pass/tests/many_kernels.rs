//! A module of thousands of kernels: each is worked on apart, and the text comes out as if the kernels had been
//! rewritten one after the other in the whole module.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use warpwright_pass::{Artifact, CarriedOut, Demand, Executor, Fuel, Level, Recipe, Scope};
use warpwright_pass::{carry_out, plans};

const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

/// A kernel with an instruction whose result nobody reads.
fn kernel(number: usize) -> String {
    format!(
        ".visible .entry k{number}(.param .u64 k{number}_p)\n{{\n\t.reg .b32 %r<6>;\n\t.reg .b64 %d<2>;\n\
         \tld.param.u64 %d1, [k{number}_p];\n\tmov.u32 %r1, %tid.x;\n\tadd.s32 %r2, %r1, {number};\n\
         \tmul.lo.s32 %r3, %r1, %r1;\n\tst.global.u32 [%d1], %r2;\n\tret;\n}}\n\n"
    )
}

fn module(count: usize, between: &str) -> Artifact {
    let kernels: Vec<String> = (0..count).map(kernel).collect();
    Artifact::parse("many.ptx", &format!("{HEAD}{}", kernels.join(between))).unwrap()
}

fn carried(input: &Artifact, scope: &Scope, recipe: &str, fuel: Fuel) -> CarriedOut {
    let recipe: Recipe = recipe.parse().unwrap();
    let gpu = warpwright_target::lookup("h200").unwrap();
    let mut executor = Executor {
        fuel,
        ..Executor::default()
    };
    let plans = plans(input, scope, &recipe).unwrap();
    let until = (Level::Ptx, Demand::Proved);
    carry_out(&mut executor, input, (scope, &gpu), &plans, until).unwrap()
}

fn text(artifact: &Artifact) -> String {
    String::from_utf8(artifact.bytes().to_vec()).unwrap()
}

/// Every kernel is rewritten and proved, and nothing else changes. Half a minute in a debug build would be a module
/// that is read again for every kernel.
#[test]
fn two_thousand_kernels_are_rewritten_and_proved() {
    let input = module(2000, "");
    let found = carried(&input, &Scope::default(), "dead-code", Fuel::default());
    let expected = text(&input);
    let expected = expected
        .split_inclusive('\n')
        .filter(|line| !line.contains("mul.lo"));
    assert_eq!(text(&found.artifact), expected.collect::<String>());
    assert_eq!(found.kernels.len(), 2000);
    for done in &found.kernels {
        assert!(
            done.steps.len() == 1 && done.steps[0].rung.is_ok(),
            "{done:?}"
        );
        // What the step was proved on is one kernel and not the whole.
        let read = done.steps[0].step.given;
        assert!(
            read < 2 * (HEAD.len() + kernel(1999).len()),
            "{read} bytes for a kernel"
        );
    }
}

/// Functions, variables and kernels that call stand between the others.
#[test]
fn the_bytes_are_those_of_one_kernel_after_the_other() {
    let called = ".func f()\n{\n\tret;\n}\n.visible .entry caller()\n{\n\t.reg .b32 %r<3>;\n\tmov.u32 %r1, 1;\n\
                  \tcall f;\n\tret;\n}\n.global .u32 g;\n";
    for between in ["", "\n\n", "// a comment\n", called] {
        let count = if between == called { 2 } else { 5 };
        let input = module(count, between);
        for recipe in [
            "dead-code",
            "dead-code; maxnreg(64)",
            "allocate(24)",
            "reduce(20); maxntid(128)",
        ] {
            let together = carried(&input, &Scope::default(), recipe, Fuel::default());
            let mut one_by_one = input.clone();
            for name in Scope::default().kernels(&input).unwrap() {
                let names = [name];
                let scope = Scope {
                    kernels: &names,
                    ..Scope::default()
                };
                one_by_one = carried(&one_by_one, &scope, recipe, Fuel::default()).artifact;
            }
            assert_eq!(text(&together.artifact), text(&one_by_one), "{recipe}");
            // Debug information keeps the module whole.
            let section = ".section .debug_info\n{\n.b32 1\n}\n";
            let whole =
                Artifact::parse("whole.ptx", &format!("{}{section}", text(&input))).unwrap();
            let whole = carried(&whole, &Scope::default(), recipe, Fuel::default());
            let together = format!("{}{section}", text(&together.artifact));
            assert_eq!(text(&whole.artifact), together, "{recipe}");
        }
    }
}

#[test]
fn fuel_is_used_up_in_the_order_of_the_kernels() {
    let input = module(5, "");
    let found = carried(&input, &Scope::default(), "dead-code", Fuel::limited(3));
    let text = text(&found.artifact);
    assert_eq!(text.matches("mul.lo").count(), 2);
    assert!(text.find("mul.lo") > text.find("entry k3"), "{text}");
}
