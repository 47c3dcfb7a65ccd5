//! Which family is predicted to be the fastest for each of the example kernels, and that predictions are sane.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_naive::families::written;
use warpwright_naive::ir::Kernel;
use warpwright_naive::recognise::recognise;
use warpwright_naive::search::{Way, ranked};
use warpwright_naive::team::Lanes;
use warpwright_naive::versions::Problem;

fn kernel(name: &str) -> Kernel {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/naive");
    let text = std::fs::read_to_string(folder.join(name).with_extension("cu")).unwrap();
    let file = File::parse(Source::new("kernel.cu", text)).unwrap();
    recognise(&file, &file.kernels[0]).unwrap()
}

fn family(way: &Way) -> &'static str {
    match way {
        Way::Tiles(_) => "tiled",
        Way::Team(team) if team.blocks > 0 => "team in parts",
        Way::Team(team) if team.lanes == Lanes::Points => "team of warps",
        Way::Team(_) => "team",
        Way::Across(_) => "across",
        Way::Fours(_) => "fours",
        Way::Prefix(_) => "prefix",
        Way::Totals(_) => "totals",
    }
}

#[test]
fn each_kernel_gets_the_family_that_is_made_for_it() {
    let gpu = warpwright_target::lookup("h200").unwrap();
    for (name, wanted) in [
        ("mv", "team"),
        ("softmax", "team"),
        ("layer_norm", "team"),
        ("rms_norm", "team"),
        ("row_max", "team"),
        ("tmv", "team of warps"),
        ("rd", "team in parts"),
        ("rd_complex", "team in parts"),
        ("column_mean", "team of warps"),
        ("tp", "across"),
        ("add_transposed", "across"),
        ("vv", "fours"),
        ("gelu", "fours"),
        ("grey", "fours"),
        ("prefix_sum", "prefix"),
        ("mm", "tiled"),
        ("conv", "tiled"),
        ("nbody", "tiled"),
        ("shortest_paths", "tiled"),
        ("histogram", "totals"),
        ("rd_atomic", "totals"),
    ] {
        let kernel = kernel(name);
        let all = ranked(&kernel, &gpu);
        let (choice, first) = &all[0];
        assert_eq!(family(choice), wanted, "{name}: {choice:?}");
        let original = written(&kernel, &gpu).unwrap();
        assert!(
            first.ms > 0.0 && first.ms < original,
            "{name}: {} of {original}",
            first.ms
        );
        assert!(all.windows(2).all(|w| w[0].1.ms <= w[1].1.ms), "{name}");
    }
}

/// Without a loop, tiles of one point are the kernel as written: other blocks gain nothing.
#[test]
fn other_blocks_alone_gain_nothing() {
    let gpu = warpwright_target::lookup("h200").unwrap();
    for body in [
        "data[i] = data[i] + 10;",
        "data[i]++;",
        "data[i] = data[i] * data[i];",
        "data[i] += other[i];",
        "data[i] = other[i];",
        "data[i] = 3;",
    ] {
        for ty in ["int", "float", "double", "unsigned char"] {
            let text = format!(
                "__global__ void k({ty} *data, const {ty} *other, int n) {{\n\
                 int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < n) {body}\n}}\n"
            );
            let file = File::parse(Source::new("kernel.cu", text)).unwrap();
            let kernel = recognise(&file, &file.kernels[0]).unwrap();
            let original = written(&kernel, &gpu).unwrap();
            for (way, predicted) in ranked(&kernel, &gpu) {
                let Way::Tiles(tile) = &way else { continue };
                let one = tile.points.iter().all(|n| *n == 1);
                assert!(!one || predicted.ms >= original, "{ty}, {body}: {way:?}");
            }
        }
    }
}

/// Four neighbours in a thread read as many sectors where they are far apart.
#[test]
fn fours_of_what_is_far_apart_are_not_offered() {
    let gpu = warpwright_target::lookup("h200").unwrap();
    let offers = |step: u32| {
        let text = format!(
            "__global__ void k(const float *a, float *o, int n) {{\n\
             int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < n) o[i] = a[i * {step}];\n}}\n"
        );
        let file = File::parse(Source::new("kernel.cu", text)).unwrap();
        let kernel = recognise(&file, &file.kernels[0]).unwrap();
        let all = ranked(&kernel, &gpu);
        all.iter().any(|(way, _)| matches!(way, Way::Fours(_)))
    };
    assert!(offers(1));
    assert!(!offers(17));
}

/// What nobody states of a size is no more than an array of the file has that it counts over.
#[test]
fn usual_sizes_end_where_arrays_do() {
    let of = |body: &str| {
        let text = format!(
            "__constant__ float taps[64]; __constant__ float table[8][16];\n\
             __global__ void fir(const float *x, float *y, int n, int t) {{\n\
             int i = blockIdx.x * 256 + threadIdx.x; if (i >= n) return; float s = 0; {body} y[i] = s; }}\n"
        );
        let file = File::parse(Source::new("kernel.cu", text)).unwrap();
        let header = file.kernels[0].clone();
        Problem::new(file, &header).unwrap().expected_sizes()
    };
    for (body, t) in [
        ("for (int k = 0; k < t; k++) s += taps[k] * x[i + k];", 64),
        (
            "for (int k = 0; k < t; k++) s += taps[2 * k + 1] * x[i + k];",
            32,
        ),
        (
            "for (int k = 0; k < t; k++) s += table[k][3] * x[i + k];",
            8,
        ),
        ("for (int k = 0; k < t; k++) s += taps[5] * x[i + k];", 4096),
    ] {
        let sizes = of(body);
        assert!(sizes.contains(&("t".to_owned(), t)), "{body} {sizes:?}");
        assert!(sizes.contains(&("n".to_owned(), 4096)), "{body} {sizes:?}");
    }
}
