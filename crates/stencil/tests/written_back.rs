//! What is understood of a kernel beside its inner points is written back: borders, arrays of the file, planes that the
//! grid counts, templates, files that need the preprocessor. nvcc compiles the output, and every kernel of it computes
//! what the input computes, in the emulator. A sweep without its border is caught.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use warpwright_cudac::diag::Source;
use warpwright_cudac::{File, marked};
use warpwright_ladder::{CompileError, Fall, Rung, Tools};
use warpwright_stencil::extract;
use warpwright_stencil::ir::Edge;
use warpwright_stencil::replace::Refusal;
use warpwright_stencil::stream::Plan;
use warpwright_stencil::versions::{Boxes, Problem, Version, Way, climb};
use warpwright_toolkit::testing::require_toolkit;
use warpwright_toolkit::{NvccJob, Toolkit};

fn path(name: &str) -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stencils");
    own.join(format!("{name}.cu"))
}

/// The options behind `// nvcc:` of a text.
fn options(text: &str) -> Vec<String> {
    let told = text.lines().find_map(|line| line.strip_prefix("// nvcc: "));
    let words = told.unwrap_or("").split_whitespace();
    words.map(str::to_owned).collect()
}

fn read(toolkit: &Toolkit, path: &Path, source: Source) -> Option<File> {
    let mut job = NvccJob::new(path, "sm_90");
    job.include_dirs = vec![path.parent()?.to_owned()];
    job.extra = options(&source.text).iter().map(Into::into).collect();
    let output = toolkit
        .nvcc()
        .ok()?
        .preprocess(&job, &marked(&source.text))
        .ok()?;
    let copy = format!("/{}", path.file_name()?.to_str()?);
    File::parse_preprocessed(source, &copy, &output).ok()
}

fn problem(toolkit: &Toolkit, name: &str) -> Problem {
    let path = path(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let file = read(toolkit, &path, Source::new(name, text)).unwrap();
    let header = extract::choose(&file, None).unwrap()[0].clone();
    Problem::of_cuda(file, &header, false).unwrap()
}

/// A version against a file.
fn rung(toolkit: &Toolkit, name: &str, problem: &Problem, version: &Version) -> Rung<Refusal> {
    let tools = Tools {
        compile: &|text| compile(toolkit, name, text),
        read: &|source| read(toolkit, &path(name), source),
    };
    climb(problem, version, tools)
}

fn compile(toolkit: &Toolkit, name: &str, text: &str) -> Result<String, CompileError> {
    let path = path(name);
    let mut job = NvccJob::new(Path::new(""), "sm_90");
    job.include_dirs = vec![path.parent().unwrap().to_owned()];
    job.extra = options(text).iter().map(Into::into).collect();
    job.extra.push("-fmad=false".into());
    let output = toolkit.nvcc().unwrap().text_to_ptx(text, &job);
    output
        .map(|o| o.ptx)
        .map_err(|e| CompileError::Rejected(e.to_string()))
}

/// Two ways to compute it: several points a thread, and streamed where there are planes.
fn ways(problem: &Problem) -> Vec<Version> {
    let stencil = &problem.stencil;
    let boxes = Boxes {
        points: vec![2; stencil.dims.len()],
        scheduled: true,
        ..Boxes::AS_WRITTEN
    };
    let flat = stencil.dims.len() == 2;
    let plan = Plan {
        block: if flat { [32, 1] } else { [32, 4] },
        points: [1, 1],
        ahead: 1,
        chunk: 8,
        unroll: 1,
        reassociate: false,
        stage: false,
        reload: false,
        min_blocks: 1,
    };
    let ways = [Way::Boxes(boxes), Way::Stream(plan)].into_iter();
    ways.filter_map(|way| Version::new(stencil, way).ok())
        .collect()
}

const FILES: [&str; 27] = [
    "accepted/border-by-return",
    "accepted/border-copied",
    "accepted/border-in-a-column",
    "accepted/border-in-else",
    "accepted/constant-memory",
    "accepted/constant-rows",
    "accepted/course-struct-grid",
    "accepted/edge-clamped-along-a-march",
    "accepted/edge-clamped-by-min-and-max",
    "accepted/edge-clamped-here-wrapped-there",
    "accepted/edge-clamped-rows-with-a-pitch",
    "accepted/edge-clamped-tile",
    "accepted/edge-clamped-whole-index",
    "accepted/edge-wrapped-by-a-remainder",
    "accepted/edge-wrapped-by-ifs",
    "accepted/integers-bits-and-truth",
    "accepted/members-in-a-structure-in-a-structure",
    "accepted/pixels-clamped-edge-saturated",
    "accepted/pixels-counted-neighbours",
    "accepted/pixels-threshold-argument",
    "accepted/plane-without-end",
    "accepted/style-struct-params",
    "accepted/template",
    "accepted/template-launched",
    "accepted/tile-zeros-outside",
    "preprocessed/included-header",
    "preprocessed/sizes-from-elsewhere",
];

#[test]
fn outputs_compute_what_the_inputs_compute() {
    let Some(toolkit) = require_toolkit("written_back") else {
        return;
    };
    let mut compared = 0;
    for name in FILES {
        let problem = problem(&toolkit, name);
        let source = std::fs::read_to_string(path(name)).unwrap();
        for version in ways(&problem) {
            let output = problem.output(&version).unwrap();
            // A grid without an inner point is the original's.
            let leaves = "return cudaErrorNotSupported;  // nothing but a border";
            let has_border = problem.stencil.border.is_some();
            assert_eq!(output.text.contains(leaves), has_border, "{name}");
            // Lines are added, and launches changed: nothing else.
            let kept = source.lines().filter(|line| !line.contains("<<<"));
            for line in kept {
                assert!(output.text.contains(line), "{name}: {line}");
            }
            match rung(&toolkit, name, &problem, &version) {
                Rung::Agrees(checked) => {
                    compared += 1;
                    let border = checked.kernels.iter().any(|k| k.ends_with("_border"));
                    assert_eq!(border, has_border, "{name}");
                }
                other => panic!("{name}, {:?}: {other:?}", version.family),
            }
        }
    }
    assert!(compared >= 39, "only {compared} were compared");
}

#[test]
fn a_lost_border_is_caught() {
    let Some(toolkit) = require_toolkit("written_back") else {
        return;
    };
    let name = "accepted/border-copied";
    let problem = problem(&toolkit, name);
    let mut version = ways(&problem).remove(0);
    for choice in &mut version.sweep.choices {
        choice.entries.pop();
    }
    let rung = rung(&toolkit, name, &problem, &version);
    assert!(
        matches!(rung, Rung::Falls(Fall::Differs { .. })),
        "{rung:?}"
    );
}

#[test]
fn the_wrong_edge_is_caught() {
    let Some(toolkit) = require_toolkit("written_back") else {
        return;
    };
    for name in [
        "accepted/edge-clamped-whole-index",
        "accepted/edge-wrapped-by-ifs",
    ] {
        let problem = problem(&toolkit, name);
        let mut wrong = problem.clone();
        let border = wrong.stencil.border.as_mut().unwrap();
        for dim in border.dims.values_mut() {
            dim.edge = match dim.edge {
                Some(Edge::Clamped) => Some(Edge::Wrapped),
                Some(Edge::Wrapped) => Some(Edge::Clamped),
                None => None,
            };
        }
        let version = ways(&wrong).remove(0);
        let rung = rung(&toolkit, name, &problem, &version);
        assert!(
            matches!(rung, Rung::Falls(Fall::Differs { .. })),
            "{name}: {rung:?}"
        );
    }
}
