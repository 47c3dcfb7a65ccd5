//! What is written of CUDA C compiles: nvcc is asked about the file as a whole before it is written.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use warpwright_toolkit::NvccJob;
use warpwright_toolkit::testing::require_toolkit;

/// A local variable that is named like the tag of its struct.
const LOCAL: &str = "
typedef struct place { float lat; float lng; } Place;
__global__ void distances(Place* places, float* d, int n, float lat, float lng) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) {
        Place place = places[i];
        d[i] = sqrtf((lat - place.lat) * (lat - place.lat) + (lng - place.lng) * (lng - place.lng));
    }
}
";
/// An instance that a template host function names by its own parameter.
const CALLER: &str = "
template <typename V>
__global__ void mirror(const V* in, V* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = in[i] + in[n - 1 - i];
}
template <typename V>
void turn(int n) {
    V *a, *b;
    cudaMalloc(&a, n * sizeof(V)); cudaMalloc(&b, n * sizeof(V));
    mirror<V><<<(n + 255) / 256, 256>>>(a, b, n);
}
int main() { turn<float>(1 << 20); }
";

#[test]
fn what_is_written_compiles() {
    let Some(toolkit) = require_toolkit("what_is_written_compiles") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("local", LOCAL), ("caller", CALLER)] {
        let (input, output) = (format!("{name}.cu"), format!("{name}.out.cu"));
        std::fs::write(folder.path().join(&input), text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpwright"));
        let command = command.args(["opt", &input, "--gpu", "h200", "-o", &output]);
        let said = command.current_dir(folder.path()).output().unwrap();
        let file = folder.path().join(&output);
        if file.exists() {
            let compiled = toolkit
                .nvcc()
                .unwrap()
                .to_ptx(&NvccJob::new(&file, "sm_90"));
            assert!(compiled.is_ok(), "{name}: {compiled:?}\n{said:?}");
        } else {
            assert_ne!(said.status.code(), Some(0), "{name}: {said:?}");
        }
    }
}
