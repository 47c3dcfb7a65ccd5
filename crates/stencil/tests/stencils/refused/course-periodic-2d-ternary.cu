__global__ void diffuse(const float *a, float *b, int nx, int ny, float k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= nx || j >= ny) return;
    int im = (i == 0) ? nx - 1 : i - 1;
    int ip = (i == nx - 1) ? 0 : i + 1;
    int jm = (j == 0) ? ny - 1 : j - 1;
    int jp = (j == ny - 1) ? 0 : j + 1;
    b[j * nx + i] = a[j * nx + i] + k * (a[j * nx + im] + a[j * nx + ip] + a[jm * nx + i] + a[jp * nx + i] - 4.f * a[j * nx + i]);
}
// expect:
// stencil::choice
//
//   × a choice by the place of the point is not understood
//    ╭─[course-periodic-2d-ternary.cu:5:14]
//  4 │     if (i >= nx || j >= ny) return;
//  5 │     int im = (i == 0) ? nx - 1 : i - 1;
//    ·              ────────────┬────────────
//    ·                          ╰── a neighbour that is clamped, wrapped or zero outside?
//  6 │     int ip = (i == nx - 1) ? 0 : i + 1;
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
