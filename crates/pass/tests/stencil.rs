//! The passes over stencils: their options print and parse, refuse what cannot be, and what the emulator finds wrong
//! does not leave the executor.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;

use warpwright_check::Verdict;
use warpwright_ladder::CompileError;
use warpwright_pass::source::stencil::way;
use warpwright_pass::{
    Artifact, Builders, Caution, Executor, Fuel, Invocation, Language, Level, Recipe, Refusal,
    RunError, Rung, Setting, SourceFile, Target,
};
use warpwright_stencil::dsl;
use warpwright_stencil::versions::{Family, versions};
use warpwright_target::lookup;
use warpwright_toolkit::testing::{require_toolkit, unfused_ptx};

const STAR: &str = r"
__global__ void star(const float *in, float *out, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || x >= nx - 1 || y < 1 || y >= ny - 1) return;
    out[y * nx + x] = 0.25f * (in[y * nx + x - 1] + in[y * nx + x + 1] + in[(y - 1) * nx + x] + in[(y + 1) * nx + x]);
}
";

const LANGUAGE: &str = "function star (out, in) { out[j][i] = in[j][i-1] + in[j][i+1] + in[j-1][i] + in[j+1][i]; }\n\
                        parameter M, N; iterator j, i; double in[M][N], out[M][N]; star (out, in); return out;";

type Compile<'a> = &'a dyn Fn(&SourceFile) -> Result<String, CompileError>;

fn run(
    language: Language,
    pass: &str,
    (fuel, reassociate): (Fuel, bool),
    compile: Compile<'_>,
) -> Result<warpwright_pass::Run, RunError> {
    let gpu = lookup("h200").unwrap();
    let mut executor = Executor::new(Builders {
        compile_unfused: Some(compile),
        ..Builders::default()
    });
    executor.fuel = fuel;
    let target = Target {
        kernel: Some("star"),
        setting: Setting {
            reassociate,
            ..Setting::new(&gpu)
        },
    };
    let text = match language {
        Language::Cuda => STAR,
        Language::Stencil => LANGUAGE,
    };
    let file = Artifact::source(SourceFile {
        name: "star".to_owned(),
        text: text.to_owned(),
        language,
    });
    let recipe: Recipe = pass.parse().unwrap();
    executor.run(&file, &target, &recipe, Level::Source)
}

fn missing(_: &SourceFile) -> Result<String, CompileError> {
    Err(CompileError::Missing("none here".to_owned()))
}

#[test]
fn what_is_printed_of_a_way_is_read_back() {
    let gpu = lookup("h200").unwrap();
    let mut stencil = dsl::parse(LANGUAGE).unwrap();
    stencil.reassociate = true;
    let sizes = [1000, 1000].into_iter().collect();
    let all = versions(&stencil, &gpu, (&sizes, None), 16, true);
    let families: std::collections::BTreeSet<Family> = all.iter().map(|v| v.family).collect();
    assert_eq!(families.len(), 4, "{families:?}");
    for version in all.into_iter().filter(|v| v.family != Family::Original) {
        let pass = Invocation::from(version.way.clone());
        let read: Invocation = pass.to_string().parse().unwrap();
        assert_eq!(way(&read), Some(version.way), "{pass}");
    }
    for text in [
        "boxes",
        "boxes(4x)",
        "boxes(4x1, block=32x4)",
        "boxes(4x1, scheduled=true)",
        "stream",
        "stream(32)",
        "stream(32x1, points=2)",
        "stream(32x1, ahead=two)",
        "lower(1)",
    ] {
        assert!(text.parse::<Invocation>().is_err(), "{text}");
    }
}

#[test]
fn numbers_that_are_no_kernel_are_refused() {
    for pass in [
        "boxes(0x1)",
        "boxes(4x1x1)",
        "boxes(4294967295x4294967295)",
        "boxes(65x1)",
        "boxes(4x1, block=0x4x1)",
        "boxes(4x1, block=4294967295x4294967295x2)",
        "boxes(4x1, registers=0)",
        "boxes(4x1, registers=256)",
        "stream(0x1)",
        "stream(65536x65536)",
        "stream(32x2)",
        "stream(32x1, points=0x1)",
        "stream(32x1, points=65536x65536)",
        "stream(32x1, ahead=0)",
        "stream(32x1, ahead=4294967295)",
        "stream(32x1, chunk=4294967295)",
        "stream(32x1, unroll=4294967295)",
        "stream(32x1, min_blocks=0)",
        "stream(32x1, reassociate=yes)",
    ] {
        for language in [Language::Cuda, Language::Stencil] {
            let found = run(language, pass, (Fuel::default(), false), &missing);
            let is_refused = matches!(
                found,
                Err(RunError::Refused {
                    refusal: Refusal::Sweep(_),
                    ..
                })
            );
            assert!(is_refused, "{pass}: {found:?}");
        }
    }
    let found = run(Language::Cuda, "lower", (Fuel::default(), false), &missing);
    assert!(matches!(found, Err(RunError::Refused { .. })), "{found:?}");
}

#[test]
fn sums_move_where_it_is_permitted_and_that_is_said() {
    let run = |permitted| {
        let pass = "stream(32x1, chunk=8, reassociate=yes)";
        run(Language::Cuda, pass, (Fuel::default(), permitted), &missing)
    };
    assert!(run(false).is_err());
    assert_eq!(run(true).unwrap().cautions(), [Caution::Reordered]);
}

#[test]
fn without_a_compiler_nothing_is_shown_and_without_fuel_nothing_is_changed() {
    for (language, text) in [(Language::Cuda, STAR), (Language::Stencil, LANGUAGE)] {
        let run = |fuel| run(language, "boxes(4x1)", (fuel, false), &missing).unwrap();
        let unseen = run(Fuel::default());
        assert!(unseen.steps[0].is_changed);
        assert_eq!(
            unseen.unproved().as_source().unwrap().language,
            Language::Cuda
        );
        let verdict = unseen.prove().unwrap_err().verdict;
        assert!(matches!(*verdict, Verdict::Undecided(_)), "{verdict}");
        let unchanged = run(Fuel::limited(0));
        assert_eq!(unchanged.unproved().bytes(), text.as_bytes());
        assert_eq!(unchanged.unproved().as_source().unwrap().language, language);
        assert_eq!(unchanged.prove().unwrap().rungs[0].0, Rung::Unchanged);
    }
}

#[test]
fn what_computes_something_else_does_not_leave() {
    let Some(toolkit) = require_toolkit("what_computes_something_else_does_not_leave") else {
        return;
    };
    let is_broken = Cell::new(false);
    let compile = |file: &SourceFile| {
        let ptx = unfused_ptx(&toolkit, &file.text);
        let ptx = ptx.map_err(|e| CompileError::Rejected(e.to_string()))?;
        if !is_broken.get() {
            return Ok(ptx);
        }
        // In the kernel of boxes alone.
        let at = ptx.find("star_sweep_box").unwrap();
        let wrong = ptx[at..].replacen("add.rn.f", "sub.rn.f", 1);
        assert_ne!(wrong, &ptx[at..]);
        Ok(format!("{}{wrong}", &ptx[..at]))
    };
    for language in [Language::Cuda, Language::Stencil] {
        is_broken.set(false);
        for pass in [
            "boxes(4x1)",
            "boxes(4x1, scheduled=yes)",
            "stream(32x1, chunk=8)",
        ] {
            let right = run(language, pass, (Fuel::default(), false), &compile).unwrap();
            let rungs = right.prove().unwrap().rungs;
            assert_eq!(rungs[0].0, Rung::Emulated, "{pass}");
        }
        is_broken.set(true);
        let wrong = run(language, "boxes(4x1)", (Fuel::default(), false), &compile).unwrap();
        let verdict = wrong.prove().unwrap_err().verdict;
        assert!(matches!(*verdict, Verdict::Refuted(_)), "{verdict}");
    }
    is_broken.set(false);
    let lowered = run(
        Language::Stencil,
        "lower",
        (Fuel::default(), false),
        &compile,
    )
    .unwrap();
    assert_eq!(lowered.prove().unwrap().rungs[0].0, Rung::Emulated);
}
