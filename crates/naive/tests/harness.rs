//! The program that measures a version beside the kernel as written: it compiles, for everyday files too.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_naive::harness::{NoSetup, Setup, program};
use warpwright_naive::search::shortlist;
use warpwright_naive::versions::Problem;
use warpwright_toolkit::testing::require_toolkit;

fn problem(text: &str) -> Problem {
    let file = File::parse(Source::new("kernel.cu", text)).unwrap();
    let header = file.kernels[0].clone();
    Problem::new(file, &header).unwrap()
}

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/naive");
    std::fs::read_to_string(folder.join(name).with_extension("cu")).unwrap()
}

/// A file of a course: its own `main`, macros, constant memory, headers.
const COURSE: &str = "#include <cstdio>\n#include <vector>\n#define R 2\n\
    __constant__ float F[2 * R + 1][2 * R + 1];\n\
    __global__ void blur(const float *in, float *out, int w, int h)\n{\n\
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n\
    if (x >= w || y >= h) return;\n\
    float s = 0;\n\
    for (int i = 0; i < 2 * R + 1; i++)\n\
    for (int j = 0; j < 2 * R + 1; j++) s += F[i][j] * in[(y + i) * (w + 2 * R) + x + j];\n\
    out[y * w + x] = s;\n}\n\
    int main() {\n    std::vector<float> v(16);\n    float *in, *out;\n\
    cudaMalloc(&in, 1 << 20);\n    cudaMalloc(&out, 1 << 20);\n\
    blur<<<dim3(4, 4), dim3(16, 16)>>>(in, out, 64, 64);\n    printf(\"%zu\\n\", v.size());\n}\n";

#[test]
fn the_launch_follows_from_the_sizes() {
    let mm = problem(&example("mm")).kernel;
    let setup = Setup::expected(&mm).unwrap();
    assert_eq!((setup.grid, setup.block), ([256, 256, 1], [16, 16, 1]));
    assert_eq!(setup.lengths, [4096 * 4096; 3]);
    let rd = Setup::expected(&problem(&example("rd")).kernel).unwrap();
    assert_eq!((rd.grid, rd.lengths), ([1, 1, 1], vec![16_777_216, 1]));
    let lookup = "__global__ void k(const int *a, const float *t, float *c, int n) {\n\
        int x = blockIdx.x * blockDim.x + threadIdx.x;\n    if (x < n) c[x] = t[a[x]];\n}\n";
    let refused = Setup::expected(&problem(lookup).kernel);
    assert_eq!(refused, Err(NoSetup::Length("t".into())));
}

#[test]
fn programs_compile_and_link() {
    let Some(toolkit) = require_toolkit("programs_compile_and_link") else {
        return;
    };
    let gpu = warpwright_target::lookup("h200").unwrap();
    let nvcc = toolkit.nvcc().unwrap();
    let made = nvcc.program("sm_90", Duration::from_secs(300)).unwrap();
    for (name, text) in [
        ("rd", example("rd")),
        ("grey", example("grey")),
        ("course", COURSE.to_owned()),
    ] {
        let problem = problem(&text);
        let setup = Setup::expected(&problem.kernel).unwrap();
        let (way, _) = shortlist(&problem.kernel, &gpu, 2).swap_remove(0);
        let generated = way.generate(&problem.kernel, 200 << 10).unwrap();
        let output = problem.output(&generated).unwrap();
        let text = program(&problem.kernel, &output, &setup).unwrap();
        let built = made.executable(name, &text, &[]);
        assert!(built.is_ok(), "{name}: {built:?}\n{text}");
    }
}
