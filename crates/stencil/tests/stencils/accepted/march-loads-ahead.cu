// launch: 2 1 1 32 1 1
#define ROWS 131
#define COLUMNS 58
__global__ void loads_ahead(double *out, const double *in) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COLUMNS) {
        double below = in[i], here = in[COLUMNS + i];
        for (int j = 1; j < ROWS - 1; ++j) {
            const double above = in[(j + 1) * COLUMNS + i];
            out[j * COLUMNS + i] = here - below;
            below = here;
            here = above;
        }
    }
}
// expect:
// j: 1 and 0 cells are not computed
// i: 0 and 0 cells are not computed
// function loads_ahead (out, in) {
//   double below = in[j-1][i];
//   double here = in[j][i];
//   out[j][i] = here - below;
// }
// iterator j, i;
// double out[130][58], in[131][58];
// loads_ahead (out, in);
// return out;
