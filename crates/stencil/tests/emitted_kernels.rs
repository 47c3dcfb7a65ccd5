//! Generated kernels against the host's values: nvcc makes PTX, the emulator runs it.
//!
//! Without permission to reassociate, and with nvcc's own contraction off (`-fmad=false`), the
//! results are bit-identical. With it, every value must be within 1e-12 of the host's, relative to
//! the largest value of the array: the terms of one point are of the same size as its result or
//! smaller, and there are at most a few hundred of them.

#![allow(clippy::unwrap_used)]

mod fission;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use fission::{Crossing, split};
use warpwright_emu::{Emulator, Options as EmuOptions, Outcome};
use warpwright_flow::{Cfg, Function as _, LiveSet, Liveness, Value};
use warpwright_launch::{Launch, LaunchFile};
use warpwright_ptx::Module;
use warpwright_stencil::dsl;
use warpwright_stencil::emit::{Generated, Kernel, Options, generate};
use warpwright_stencil::evaluate::{Data, Sizes, evaluate, extent};
use warpwright_stencil::ir::{Element, Stencil};
use warpwright_stencil::sweep::Entry;
use warpwright_toolkit::testing::require_toolkit;
use warpwright_toolkit::{NvccJob, Toolkit};

fn benchmark(name: &str) -> Stencil {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/stencils");
    let text = std::fs::read_to_string(folder.join(format!("{name}.stencil"))).unwrap();
    dsl::parse(&text).unwrap_or_else(|_| panic!("{name}"))
}

fn compile(toolkit: &Toolkit, text: &str, arguments: &[&str]) -> Module {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("stencil.cu");
    std::fs::write(&source, text).unwrap();
    let mut job = NvccJob::new(&source, "sm_90");
    job.extra = arguments.iter().map(Into::into).collect();
    let ptx = toolkit
        .nvcc()
        .unwrap()
        .to_ptx(&job)
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
        .ptx;
    let (module, diagnostics) = Module::parse("stencil", &ptx);
    assert!(!diagnostics.iter().any(|d| d.is_error()));
    module
}

fn c_name(element: Element) -> &'static str {
    match element {
        Element::F32 => "f32",
        Element::F64 => "f64",
        other => panic!("no launch description here has {other:?}"),
    }
}

/// The launch of one kernel of a part.
fn launch(part: &Stencil, kernel: &str, entry: &Entry, sizes: &Sizes, data: &Data) -> Launch {
    let grid = entry.grid.blocks(sizes).unwrap();
    let mut text = format!(
        "source = \"stencil.cu\"\nkernel = \"{kernel}\"\n[sizes.small]\nunused = 1\n[launch]\ngrid = {grid:?}\nblock = {:?}\n",
        entry.block
    );
    for array in part.arrays.values() {
        let shape: Vec<i64> = array.extents.iter().map(|&e| extent(e, sizes)).collect();
        let _ = write!(
            text,
            "[[args]]\nname = \"{}\"\ntype = \"{}\"\nshape = {shape:?}\noutput = {}\ninit = {{ kind = \"zeros\" }}\n",
            array.name,
            c_name(array.element),
            array.written
        );
    }
    for (id, scalar) in &part.scalars {
        let _ = write!(
            text,
            "[[args]]\nname = \"{}\"\ntype = \"{}\"\nvalue = {:?}\n",
            scalar.name,
            c_name(scalar.element),
            data.scalars[id]
        );
    }
    for (id, name) in &part.parameters {
        let _ = write!(
            text,
            "[[args]]\nname = \"{name}\"\ntype = \"s32\"\nvalue = {}\n",
            sizes[id]
        );
    }
    let file = LaunchFile::parse(&text, "launch.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    file.resolve("small", &[])
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Runs the kernels one after the other on the sample data; returns all arrays.
fn run(
    module: &Module,
    original: &Stencil,
    parts: &[Stencil],
    generated: &Generated,
    sizes: &Sizes,
) -> Vec<Vec<f64>> {
    let data = Data::sample(original, sizes).unwrap();
    let stencil = &parts[0];
    let mut buffers: Vec<Vec<u8>> = Vec::new();
    for (id, array) in &stencil.arrays {
        buffers.push(match data.arrays.get(id) {
            Some(values) => array.element.bytes(values),
            // Promoted: whatever is in it must not matter.
            None => {
                let cells: i64 = array.extents.iter().map(|&e| extent(e, sizes)).product();
                array.element.bytes(&vec![f64::NAN; cells as usize])
            }
        });
    }
    for (part, kernel) in parts.iter().zip(&generated.kernels) {
        let entries = &generated.sweep.entries;
        let entry = entries.iter().find(|e| e.suffix == kernel.suffix).unwrap();
        let launch = launch(part, &kernel.name, entry, sizes, &data);
        let program = Emulator::new(module, &kernel.name).unwrap();
        let checks = EmuOptions {
            uninitialised: true,
            races: true,
            ..EmuOptions::default()
        };
        match program.run(&launch, buffers, &checks).unwrap() {
            Outcome::Finished(results) => buffers = results.buffers,
            Outcome::Faulted(fault) => panic!("{fault}\n{}", generated.text()),
        }
    }
    let elements = stencil.arrays.values().map(|a| a.element);
    elements
        .zip(&buffers)
        .map(|(element, bytes)| element.values(bytes))
        .collect()
}

#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    reassociate: bool,
    factors: [u32; 3],
    block: [u32; 3],
    sizes: [i64; 3],
    constant: bool,
    parts: usize,
    crossing: Crossing,
}

/// One small odd domain, one point a thread, in one kernel.
const PLAIN: Case = Case {
    name: "",
    reassociate: true,
    factors: [1, 1, 1],
    block: [4, 2, 1],
    sizes: [13, 14, 15],
    constant: false,
    parts: 1,
    crossing: Crossing::Recompute,
};

fn check(toolkit: &Toolkit, case: Case) {
    check_stencil(toolkit, case, benchmark(case.name));
}

fn check_stencil(toolkit: &Toolkit, case: Case, mut stencil: Stencil) {
    stencil.reassociate = case.reassociate;
    let dims = stencil.dims.len();
    let sizes: Sizes = case.sizes[3 - dims..].iter().copied().collect();
    let options = Options {
        factors: case.factors[3 - dims..].to_vec(),
        block: case.block,
        sizes: case.constant.then(|| sizes.clone()),
        ..Options::default()
    };
    let parts = split(&stencil, case.parts, case.crossing).unwrap();
    let generated = generate(&parts, &options).unwrap();
    let fmad: &[&str] = if case.reassociate {
        &[]
    } else {
        &["-fmad=false"]
    };
    let module = compile(toolkit, &generated.text(), fmad);
    let found = run(&module, &stencil, &parts, &generated, &sizes);
    let mut expected = Data::sample(&stencil, &sizes).unwrap();
    evaluate(&stencil, &sizes, &mut expected).unwrap();
    let mut compared = 0;
    for ((id, array), found) in stencil.arrays.iter().zip(&found) {
        let expected = &expected.arrays[id];
        let largest = expected.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
        for (at, (a, b)) in found.iter().zip(expected).enumerate() {
            let good = match case.reassociate {
                true => (a - b).abs() <= 1e-12 * largest,
                false => a.to_bits() == b.to_bits(),
            };
            assert!(
                good,
                "{} {}[{at}]: {a:e} instead of {b:e}\n{}",
                case.name,
                array.name,
                generated.text()
            );
        }
        compared += if array.written { found.len() } else { 0 };
    }
    assert!(compared > 0);
}

fn check_all(name: &str, cases: &[Case]) {
    if let Some(toolkit) = require_toolkit(name) {
        cases.iter().for_each(|&case| check(&toolkit, case));
    }
}

#[test]
fn unrolled_in_the_plane() {
    let sizes = [0, 25, 27];
    check_all(
        "unrolled_in_the_plane",
        &[
            Case {
                name: "2d25pt",
                factors: [1, 4, 1],
                sizes,
                ..PLAIN
            },
            Case {
                name: "2d64pt",
                factors: [1, 3, 2],
                sizes,
                constant: true,
                ..PLAIN
            },
            Case {
                name: "2d81pt",
                factors: [1, 1, 3],
                sizes,
                ..PLAIN
            },
        ],
    );
}

#[test]
fn unrolled_in_space() {
    check_all(
        "unrolled_in_space",
        &[
            Case {
                name: "3d27pt",
                factors: [4, 1, 1],
                ..PLAIN
            },
            Case {
                name: "3d27pt",
                factors: [2, 3, 2],
                constant: true,
                ..PLAIN
            },
            Case {
                name: "3d125pt",
                factors: [2, 4, 1],
                sizes: [9, 11, 12],
                ..PLAIN
            },
        ],
    );
}

#[test]
fn one_dimension_in_place() {
    let Some(toolkit) = require_toolkit("one_dimension_in_place") else {
        return;
    };
    let line = dsl::parse(
        "function f (y, x) { y[i] += 3.0 * (x[i-1] + x[i+1]); } parameter N; iterator i;\n\
         double y[N], x[N]; f (y, x); return y;",
    );
    for factor in [1, 4] {
        let case = Case {
            name: "line",
            factors: [1, 1, factor],
            sizes: [1, 1, 77],
            reassociate: false,
            ..PLAIN
        };
        check_stencil(&toolkit, case, line.clone().unwrap());
    }
}

#[test]
fn many_statements() {
    let sizes = [10, 11, 9];
    check_all(
        "many_statements",
        &[
            Case {
                name: "hypterm",
                sizes: [11, 10, 12],
                ..PLAIN
            },
            Case {
                name: "rhs4th3fort",
                sizes,
                factors: [1, 1, 2],
                ..PLAIN
            },
            Case {
                name: "derivative",
                sizes,
                factors: [2, 1, 1],
                constant: true,
                ..PLAIN
            },
        ],
    );
}

#[test]
fn split_kernels() {
    let sizes = [10, 11, 9];
    check_all(
        "split_kernels",
        &[
            Case {
                name: "hypterm",
                sizes: [11, 10, 12],
                parts: 3,
                ..PLAIN
            },
            Case {
                name: "rhs4th3fort",
                sizes,
                parts: 3,
                crossing: Crossing::Promote,
                ..PLAIN
            },
            Case {
                name: "rhs4th3fort",
                sizes,
                parts: 2,
                ..PLAIN
            },
            Case {
                name: "derivative",
                sizes,
                parts: 6,
                crossing: Crossing::Promote,
                factors: [1, 2, 1],
                ..PLAIN
            },
        ],
    );
}

#[test]
fn without_reassociation_bits_are_kept() {
    let sizes = [10, 11, 9];
    check_all(
        "without_reassociation_bits_are_kept",
        &[
            Case {
                name: "2d25pt",
                reassociate: false,
                factors: [1, 4, 1],
                sizes: [0, 15, 14],
                ..PLAIN
            },
            Case {
                name: "3d27pt",
                reassociate: false,
                factors: [2, 2, 1],
                sizes,
                ..PLAIN
            },
            Case {
                name: "rhs4th3fort",
                reassociate: false,
                sizes,
                ..PLAIN
            },
            Case {
                name: "derivative",
                reassociate: false,
                sizes,
                parts: 2,
                ..PLAIN
            },
        ],
    );
}

/// The largest number of `double` registers alive in the PTX of a kernel, but for parameters and
/// literals, which the hardware reads from constant memory.
fn max_live_doubles(module: &Module, kernel: &Kernel) -> u32 {
    let view = module.view(module.function(&kernel.name).unwrap()).unwrap();
    let cfg = Cfg::new(&view);
    let liveness = Liveness::new(&view, &cfg);
    let mut constants: HashSet<Value> = HashSet::new();
    for at in 0..view.inst_count() {
        let inst = warpwright_flow::Inst(at as u32);
        let text = view.inst_text(inst);
        if text.contains("ld.param") || (text.contains("mov.") && text.contains(", 0d")) {
            view.for_each_def(inst, |value| {
                constants.insert(value);
            });
        }
    }
    let doubles: Vec<bool> = (0..view.value_count())
        .map(|at| Value(at as u32))
        .map(|v| view.value_name(v).starts_with("%fd") && !constants.contains(&v))
        .collect();
    let mut set = LiveSet::new(view.value_count());
    let mut most = 0;
    for &block in cfg.reverse_postorder() {
        let mut walk = liveness.walk(&view, &cfg, block, &mut set);
        while walk.step().is_some() {
            let live = walk.live().members().iter();
            most = most.max(live.filter(|v| doubles[v.0 as usize]).count());
        }
    }
    most as u32
}

/// What the schedule promises is what nvcc's PTX holds, but for a load or a product that its
/// optimizer moves by a step or two: at most two values more.
#[test]
fn max_live_of_the_ptx_is_what_the_schedule_promises() {
    let Some(toolkit) = require_toolkit("max_live_of_the_ptx_is_what_the_schedule_promises") else {
        return;
    };
    let mut told = String::new();
    let mut wrong = false;
    for (name, factors) in [
        ("2d25pt", vec![4]),
        ("2d64pt", vec![4]),
        ("2d81pt", vec![4]),
        ("3d27pt", vec![4]),
        ("3d125pt", vec![4]),
        ("3d27pt", vec![2, 2]),
        ("hypterm", vec![]),
        ("rhs4th3fort", vec![]),
        ("derivative", vec![]),
    ] {
        let mut stencil = benchmark(name);
        stencil.reassociate = true;
        let sizes: Sizes = stencil.parameters.values().map(|_| 304).collect();
        let options = Options {
            factors: factors.clone(),
            sizes: Some(sizes),
            ..Options::default()
        };
        let generated = generate(std::slice::from_ref(&stencil), &options).unwrap();
        let module = compile(&toolkit, &generated.text(), &[]);
        let kernel = &generated.kernels[0];
        let found = max_live_doubles(&module, kernel);
        let promised = kernel.schedule.max_live;
        let _ = writeln!(
            told,
            "{name} {factors:?}: promised {promised}, in the PTX {found}"
        );
        wrong |= found > promised + 2 || found < promised;
    }
    println!("{told}");
    assert!(!wrong, "{told}");
}
