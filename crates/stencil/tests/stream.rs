//! Streaming kernels in the PTX emulator against the values of the sweep on the host.
//!
//! Without a toolkit (`WARPWRIGHT_TOOLKIT`) the tests are skipped, with a word on stderr.

use std::fmt::Write;
use std::path::Path;

use warpwright_emu::{Emulator, Options, Outcome};
use warpwright_launch::LaunchFile;
use warpwright_ptx::Module;
use warpwright_stencil::dsl;
use warpwright_stencil::evaluate::{Data, Sizes, evaluate};
use warpwright_stencil::ir::{Element, Stencil};
use warpwright_stencil::stream::{Kernel, Plan, generate};
use warpwright_stencil::sweep::standalone;
use warpwright_toolkit::{FindOptions, NvccJob, Toolkit};

const SIMPLE: Plan = Plan {
    block: [32, 1],
    points: [1, 1],
    ahead: 1,
    chunk: 7,
    unroll: 1,
    reassociate: false,
    stage: false,
    reload: false,
    min_blocks: 1,
};

fn benchmark(name: &str) -> Stencil {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/stencils")
        .join(format!("{name}.stencil"));
    let text = std::fs::read_to_string(path).expect("the benchmark's file");
    dsl::parse(&text).expect("the benchmark is a stencil")
}

/// Runs one sweep of the kernel; `wide` selects the variant with 128-bit accesses.
fn run(kernel: &Kernel, stencil: &Stencil, sizes: &Sizes, wide: bool) -> Option<Data> {
    let toolkit = match Toolkit::find(&FindOptions::default()) {
        Ok(toolkit) if toolkit.nvcc().is_ok() => toolkit,
        _ => {
            eprintln!("SKIPPED: generated kernels need nvcc");
            return None;
        }
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("kernel.cu");
    let text = standalone(stencil, Some(&kernel.sweep), None);
    std::fs::write(&path, &text).expect("a file");
    let mut job = NvccJob::new(&path, "sm_90");
    job.extra = vec!["-fmad=false".into(), "-std=c++17".into()];
    let nvcc = toolkit.nvcc().expect("nvcc");
    let ptx = nvcc
        .to_ptx(&job)
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
        .ptx;
    let (module, diagnostics) = Module::parse("kernel", &ptx);
    assert!(!diagnostics.iter().any(|d| d.is_error()), "{diagnostics:?}");
    let suffix = if wide { "wide" } else { "any" };
    let entry = format!("{}_sweep_{suffix}", stencil.name);
    let mut data = Data::sample(stencil, sizes).expect("sizes that make sense");
    let launch = LaunchFile::parse(
        &description(kernel, stencil, sizes, &data, &entry),
        "kernel.toml",
    )
    .and_then(|f| f.resolve("small", &[]))
    .unwrap_or_else(|e| panic!("{e}"));
    let inputs = stencil
        .arrays
        .iter()
        .map(|(id, a)| a.element.bytes(&data.arrays[id]))
        .collect();
    let emulator = Emulator::new(&module, &entry).unwrap_or_else(|e| panic!("{e}"));
    // Threads at the edge of a tile look at shared memory that nobody wrote; they store nothing.
    let options = Options {
        races: true,
        ..Options::default()
    };
    let results = match emulator
        .run(&launch, inputs, &options)
        .unwrap_or_else(|e| panic!("{e}"))
    {
        Outcome::Finished(results) => results,
        Outcome::Faulted(fault) => panic!("{fault}\n{text}"),
    };
    for ((id, array), buffer) in stencil.arrays.iter().zip(&results.buffers) {
        data.arrays[id] = array.element.values(buffer);
    }
    Some(data)
}

fn description(
    kernel: &Kernel,
    stencil: &Stencil,
    sizes: &Sizes,
    data: &Data,
    entry: &str,
) -> String {
    let grid = kernel.sweep.entries[0].grid.blocks(sizes);
    let grid = grid.expect("points");
    let mut text = format!(
        "kernel = \"{entry}\"\n[sizes.small]\nq = 1\n[launch]\ngrid = {grid:?}\nblock = {:?}\n\
         dynamic_smem = {}\n",
        kernel.plan.block, kernel.shared_bytes
    );
    let kind = |element| {
        if element == Element::F64 {
            "f64"
        } else {
            "f32"
        }
    };
    for (id, array) in &stencil.arrays {
        let _ = write!(
            text,
            "[[args]]\nname = \"{}\"\ntype = \"{}\"\nshape = [{}]\noutput = true\ninit = \"zeros\"\n",
            array.name,
            kind(array.element),
            data.arrays[id].len()
        );
    }
    for (id, scalar) in &stencil.scalars {
        let value = data.scalars[id];
        let _ = write!(
            text,
            "[[args]]\nname = \"{}\"\ntype = \"{}\"\nvalue = {value:?}\n",
            scalar.name,
            kind(scalar.element)
        );
    }
    for (id, parameter) in &stencil.parameters {
        let value = sizes[id];
        let _ = write!(
            text,
            "[[args]]\nname = \"{parameter}\"\ntype = \"s32\"\nvalue = {value}\n"
        );
    }
    text
}

/// The kernel of a plan gives what the host gives: to the bit without reassociation, else up to
/// rounding.
fn check(stencil: &Stencil, sizes: &[i64], plan: &Plan, wide: bool) {
    let sizes: Sizes = sizes.iter().copied().collect();
    let kernel = generate(stencil, plan).unwrap_or_else(|e| panic!("{plan}: {e}"));
    let Some(found) = run(&kernel, stencil, &sizes, wide) else {
        return;
    };
    let mut expected = Data::sample(stencil, &sizes).expect("sizes that make sense");
    evaluate(stencil, &sizes, &mut expected).expect("sizes that make sense");
    let epsilon = if stencil.arrays.values().all(|a| a.element == Element::F64) {
        1e-13
    } else {
        1e-5
    };
    for (id, array) in &stencil.arrays {
        let largest = expected.arrays[id]
            .iter()
            .fold(0.0, |m: f64, v| m.max(v.abs()));
        for (n, (a, b)) in found.arrays[id]
            .iter()
            .zip(&expected.arrays[id])
            .enumerate()
        {
            let close = if plan.reassociate {
                (a - b).abs() <= epsilon * largest
            } else {
                a.to_bits() == b.to_bits()
            };
            assert!(close, "{plan}: `{}`[{n}] is {a:?}, not {b:?}", array.name);
        }
    }
}

fn check_all(name: &str, sizes: &[i64], plans: &[(Plan, bool)]) {
    let exact = benchmark(name);
    let mut free = exact.clone();
    free.reassociate = true;
    for (plan, wide) in plans {
        let even = sizes.last().is_some_and(|s| s % 2 == 0);
        assert!(even || !wide, "128-bit accesses need even rows");
        check(&exact, sizes, plan, *wide);
        let retimed = Plan {
            reassociate: true,
            ..plan.clone()
        };
        check(&free, sizes, &retimed, *wide);
    }
}

#[test]
fn a_star_of_two_dimensions() {
    let points = |points, block, ahead| Plan {
        block: [block, 1],
        points: [points, 1],
        ahead,
        ..SIMPLE
    };
    check_all(
        "2d25pt",
        &[17, 71],
        &[(points(1, 64, 1), false), (points(2, 16, 3), false)],
    );
    check_all("2d64pt", &[19, 50], &[(points(2, 32, 2), true)]);
    check_all(
        "2d81pt",
        &[23, 50],
        &[(points(4, 32, 2), true), (points(1, 32, 4), false)],
    );
}

#[test]
fn boxes_of_three_dimensions() {
    let plan = |block, points, chunk| Plan {
        block,
        points,
        chunk,
        ..SIMPLE
    };
    check_all("3d27pt", &[9, 11, 37], &[(plan([16, 2], [2, 2], 4), false)]);
    check_all("3d27pt", &[7, 9, 36], &[(plan([16, 4], [2, 1], 50), true)]);
    check_all("3d125pt", &[9, 10, 24], &[(plan([8, 2], [2, 4], 3), true)]);
}

#[test]
fn a_star_with_thirteen_arrays() {
    let plan = Plan {
        block: [16, 8],
        ahead: 2,
        ..SIMPLE
    };
    check_all("hypterm", &[13, 14, 27], &[(plan, false)]);
}

#[test]
fn fields_are_given_to_neighbours() {
    let plan = |stage, reload| Plan {
        block: [16, 8],
        stage,
        reload,
        ..SIMPLE
    };
    for name in ["derivative", "rhs4th3fort"] {
        check_all(name, &[8, 9, 21], &[(plan(true, false), false)]);
        check_all(
            name,
            &[9, 8, 20],
            &[(plan(true, true), true), (plan(false, false), true)],
        );
    }
}

/// A stencil of the planes `low..=high` around the point, each read to the side as well.
fn planes(low: i64, high: i64) -> Stencil {
    let terms = (low..=high).map(|k| format!("{}.5 * v[k{k:+}][i+{}]", k.abs(), k.rem_euclid(3)));
    let sum = terms.collect::<Vec<_>>().join(" + ");
    let text = format!(
        "function f (o, v) {{ o[k][i] = {sum}; }} parameter M, N; iterator k, i;\n\
         double o[M][N], v[M][N]; f (o, v); return o;"
    );
    dsl::parse(&text).expect("a stencil")
}

#[test]
fn planes_that_do_not_surround_the_point() {
    for (low, high) in [(0, 8), (3, 5), (-8, -3), (-1, 0), (7, 7)] {
        for ahead in [1, 3] {
            let plan = Plan { ahead, ..SIMPLE };
            let exact = planes(low, high);
            check(&exact, &[21, 41], &plan, false);
            let free = Stencil {
                reassociate: true,
                ..exact
            };
            let plan = Plan {
                reassociate: true,
                ..plan
            };
            check(&free, &[21, 41], &plan, false);
        }
    }
}

#[test]
fn floats_factors_and_scalars() {
    let text = "function f (o, v, w, a, b) {\n\
        float t = a * v[k][j][i] + b * (v[k-1][j][i] + v[k+1][j][i] + v[k][j-1][i] + v[k][j+1][i]);\n\
        o[k][j][i] = t * w[j] + w[j+1] / w[j] * v[k][j][i-2] - 3.0f * v[k][j][i+1];\n\
        }\nparameter L, M, N; iterator k, j, i; float o[L][M][N], v[L][M][N], w[M], a, b;\n\
        f (o, v, w, a, b); return o;";
    let exact = dsl::parse(text).expect("a stencil");
    let mut free = exact.clone();
    free.reassociate = true;
    for (block, points) in [([16, 2], [2, 2]), ([32, 2], [1, 1])] {
        let plan = Plan {
            block,
            points,
            ..SIMPLE
        };
        check(&exact, &[7, 9, 39], &plan, false);
        let retimed = Plan {
            reassociate: true,
            ..plan
        };
        check(&free, &[7, 9, 38], &retimed, true);
    }
}

#[test]
fn domains_that_are_empty_or_one_point_wide() {
    let stencil = benchmark("3d27pt");
    check(
        &stencil,
        &[3, 3, 3],
        &Plan {
            block: [16, 2],
            ..SIMPLE
        },
        false,
    );
    let kernel = generate(&stencil, &SIMPLE).expect("a kernel");
    let sizes: Sizes = [2, 9, 9].into_iter().collect();
    assert_eq!(kernel.domain(&sizes)[2], 0);
}

#[test]
fn refusals_have_a_reason() {
    let one = dsl::parse(
        "function f (o, v) { o[i] = v[i-1]; } parameter N; iterator i; double o[N], v[N]; f (o, v); \
         return o;",
    )
    .expect("a stencil");
    let reason = generate(&one, &SIMPLE)
        .expect_err("one dimension")
        .to_string();
    assert!(reason.contains("one dimension"), "{reason}");
    let stencil = benchmark("derivative");
    let tiny = Plan {
        block: [4, 4],
        stage: true,
        reassociate: true,
        ..SIMPLE
    };
    let reason = generate(&stencil, &tiny)
        .expect_err("no permission")
        .to_string();
    assert!(reason.contains("permit"), "{reason}");
    let mut free = stencil.clone();
    free.reassociate = true;
    let reason = generate(&free, &tiny)
        .expect_err("no tile is left")
        .to_string();
    assert!(reason.contains("smaller"), "{reason}");
    let odd = Plan {
        block: [25, 12],
        ..SIMPLE
    };
    let reason = generate(&stencil, &odd)
        .expect_err("an odd tile")
        .to_string();
    assert!(reason.contains("25 columns"), "{reason}");
    for bad in [
        Plan {
            block: [0, 1],
            ..SIMPLE
        },
        Plan {
            block: [64, 32],
            ..SIMPLE
        },
        Plan { ahead: 0, ..SIMPLE },
    ] {
        assert!(generate(&stencil, &bad).is_err(), "{bad}");
    }
}
