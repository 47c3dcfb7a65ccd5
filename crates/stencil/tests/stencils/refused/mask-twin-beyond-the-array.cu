// Cells at the rim are masked, says a comment; nothing in the code does.
__global__ void ocean(double *out, const double *in, const double *mask, int nx, int ny) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= nx || j >= ny) return;
    int c = j * nx + i;
    if (mask[c] == 0.0) return;
    out[c] = 0.25 * (in[c - 1] + in[c + 1] + in[c - nx] + in[c + nx]);
}
// expect:
// stencil::bounds
//
//   × `in` is read or written outside its bounds
//    ╭─[mask-twin-beyond-the-array.cu:8:22]
//  7 │     if (mask[c] == 0.0) return;
//  8 │     out[c] = 0.25 * (in[c - 1] + in[c + 1] + in[c - nx] + in[c + nx]);
//    ·                      ────┬────
//    ·                          ╰── `i` begins too early for this
//  9 │ }
//    ╰────
//   help: leave out the points at the edge whose neighbours do not exist
// stencil::bounds
//
//   × `in` is read or written outside its bounds
//    ╭─[mask-twin-beyond-the-array.cu:8:34]
//  7 │     if (mask[c] == 0.0) return;
//  8 │     out[c] = 0.25 * (in[c - 1] + in[c + 1] + in[c - nx] + in[c + nx]);
//    ·                                  ────┬────
//    ·                                      ╰── `i` ends too late for this
//  9 │ }
//    ╰────
//   help: leave out the points at the edge whose neighbours do not exist
// stencil::bounds
//
//   × `in` is read or written outside its bounds
//    ╭─[mask-twin-beyond-the-array.cu:8:46]
//  7 │     if (mask[c] == 0.0) return;
//  8 │     out[c] = 0.25 * (in[c - 1] + in[c + 1] + in[c - nx] + in[c + nx]);
//    ·                                              ─────┬────
//    ·                                                   ╰── `j` begins too early for this
//  9 │ }
//    ╰────
//   help: leave out the points at the edge whose neighbours do not exist
