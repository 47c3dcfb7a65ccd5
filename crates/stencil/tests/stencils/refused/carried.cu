__global__ void f(double *out, const double *in, int l, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double below = in[i];
    for (int k = 1; k < l; k++) {
        double here = in[k * n + i];
        out[k * n + i] = here - below;
        below = here;
    }
}

// expect:
// stencil::carried
//
//   × `below` is carried from one point to the next
//    ╭─[carried.cu:8:9]
//  7 │         out[k * n + i] = here - below;
//  8 │         below = here;
//    ·         ──┬──
//    ·           ╰── assigned inside the loop over points
//  9 │     }
//    ╰────
//   help: declare it inside the loop, and compute it from the loop's counter
