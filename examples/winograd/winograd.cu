// 3 x 3 convolution by Winograd's minimal filtering, F(4 x 4, 3 x 3).
//
// One thread computes a 4 x 4 tile of one output channel. Tiles of 6 x 6 inputs are transformed,
// multiplied entry by entry with the transformed filter, summed over the input channels and
// transformed back: 36 multiplications instead of 144 (Lavin and Gray, CVPR 2016). All threads of a
// block work on the same output channel and share its filters, transformed, in shared memory. In
// the loop over channels a thread holds 36 sums and the 36 entries of a tile.

namespace {

constexpr int TILE = 4, REACH = 6;

// Transforms of a column, over the points 0, 1, -1, 2, -2 and infinity. Input: B^T d.
__device__ __forceinline__ void transform_input(float (&d)[REACH]) {
    const float inner = d[4] - 4.0f * d[2], outer = d[3] - 4.0f * d[1];
    const float even = d[4] - d[2], odd = 2.0f * (d[3] - d[1]);
    const float first = 4.0f * d[0] - 5.0f * d[2] + d[4];
    const float last = 4.0f * d[1] - 5.0f * d[3] + d[5];
    d[0] = first;
    d[1] = inner + outer;
    d[2] = inner - outer;
    d[3] = even + odd;
    d[4] = even - odd;
    d[5] = last;
}

// Filter: G g.
__device__ __forceinline__ void transform_filter(float a, float b, float c, float (&u)[REACH]) {
    u[0] = 0.25f * a;
    u[1] = (-1.0f / 6.0f) * (a + b + c);
    u[2] = (-1.0f / 6.0f) * (a - b + c);
    u[3] = (1.0f / 24.0f) * a + (1.0f / 12.0f) * b + (1.0f / 6.0f) * c;
    u[4] = (1.0f / 24.0f) * a - (1.0f / 12.0f) * b + (1.0f / 6.0f) * c;
    u[5] = c;
}

// Output: A^T m.
__device__ __forceinline__ void transform_output(const float (&m)[REACH], float (&y)[TILE]) {
    const float near = m[1] + m[2], near_odd = m[1] - m[2];
    const float far = m[3] + m[4], far_odd = m[3] - m[4];
    y[0] = m[0] + near + far;
    y[1] = near_odd + 2.0f * far_odd;
    y[2] = near + 4.0f * far;
    y[3] = near_odd + 8.0f * far_odd + m[5];
}

}  // namespace

// in: [images][channels][4 rows + 2][4 columns + 2]; filter: [outputs][channels][3][3]
// out: [images][outputs][4 rows][4 columns]; rows and columns count tiles
extern "C" __global__ void winograd(int images, int channels, int rows, int columns,
                                    const float* __restrict__ in, const float* __restrict__ filter,
                                    float* __restrict__ out) {
    extern __shared__ float filters[];  // [channels][REACH][REACH]
    const int output = blockIdx.y, outputs = gridDim.y;
    for (int c = threadIdx.x; c < channels; c += blockDim.x) {
        const float* const g = filter + (output * channels + c) * 9;
        float half[3][REACH], u[REACH];
#pragma unroll
        for (int j = 0; j < 3; ++j) transform_filter(g[j], g[3 + j], g[6 + j], half[j]);
#pragma unroll
        for (int i = 0; i < REACH; ++i) {
            transform_filter(half[0][i], half[1][i], half[2][i], u);
#pragma unroll
            for (int j = 0; j < REACH; ++j) filters[(c * REACH + i) * REACH + j] = u[j];
        }
    }
    __syncthreads();

    const int tile = blockIdx.x * blockDim.x + threadIdx.x;
    if (tile >= images * rows * columns) return;
    const int column = tile % columns, row = tile / columns % rows, image = tile / (columns * rows);
    const int width = TILE * columns + 2, height = TILE * rows + 2;
    const float* corner = in + ((long long)image * channels * height + TILE * row) * width + TILE * column;

    float sum[REACH][REACH] = {};
    for (int c = 0; c < channels; ++c, corner += (long long)height * width) {
        float d[REACH][REACH];  // by columns
#pragma unroll
        for (int j = 0; j < REACH; ++j) {
#pragma unroll
            for (int i = 0; i < REACH; ++i) d[j][i] = corner[i * width + j];
            transform_input(d[j]);
        }
#pragma unroll
        for (int i = 0; i < REACH; ++i) {
            float across[REACH];
#pragma unroll
            for (int j = 0; j < REACH; ++j) across[j] = d[j][i];
            transform_input(across);
#pragma unroll
            for (int j = 0; j < REACH; ++j)
                sum[i][j] += across[j] * filters[(c * REACH + i) * REACH + j];
        }
    }

    float half[REACH][TILE];
#pragma unroll
    for (int i = 0; i < REACH; ++i) transform_output(sum[i], half[i]);
    float* const to = out + (((long long)image * outputs + output) * TILE * rows + TILE * row) * TILE * columns
                    + TILE * column;
#pragma unroll
    for (int j = 0; j < TILE; ++j) {
        const float m[REACH] = {half[0][j], half[1][j], half[2][j], half[3][j], half[4][j], half[5][j]};
        float y[TILE];
        transform_output(m, y);
#pragma unroll
        for (int i = 0; i < TILE; ++i) to[(long long)i * TILE * columns + j] = y[i];
    }
}
