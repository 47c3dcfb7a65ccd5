//! What functions keep in local memory, with lengths that host code says.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use warpwright_cudac::File;
use warpwright_cudac::diag::Source;
use warpwright_host::number;

#[test]
fn arrays_structures_and_parameters_by_value_have_their_sizes() {
    let text = "#define N 4\ntypedef float real;\nstruct I3 { unsigned long long k, l; int c; };\n\
        __device__ void f(I3 *p) { __shared__ float s[8]; real v[2 * N], x = 1; }\n\
        __global__ void k(I3 p, const I3 q, int n, float *o) {\n  for (;;) { I3 ok[N]; float4 w; f(ok); }\n\
        char c[3][5];\n}\n";
    let file = File::parse(Source::new("k.cu", text)).unwrap();
    let found: Vec<_> = file.locals(&number);
    let found: Vec<_> = found
        .iter()
        .map(|l| (&*l.function, &*l.name.text, l.parameter, l.bytes))
        .collect();
    assert_eq!(
        found,
        [
            ("k", "p", Some(0), Some(24)),
            ("k", "q", Some(1), Some(24)),
            ("k", "ok", None, Some(96)),
            ("k", "w", None, Some(16)),
            ("k", "c", None, Some(15)),
            ("f", "v", None, Some(32)),
        ]
    );
}
