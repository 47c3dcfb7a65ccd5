// Acoustic wave equation on a regular grid: one time step of second order in time and eighth
// order in space, as in seismic imaging.
//
// A block owns a column of 32 x 16 points and marches along z. The plane that it stands in lies in
// shared memory with a halo of four points; the four planes before and behind it are needed only
// at the thread's own x and y, and travel through a queue in registers. Every thread owns two
// points of each plane, eight rows apart. The outermost four points of the grid stay as they are.

namespace {

constexpr int R = 4;        // half the order
constexpr int BX = 32;      // block: 32 x 8 threads
constexpr int BY = 8;
constexpr int ROWS = 2;     // points per thread along y
constexpr int TILE_X = BX + 2 * R, TILE_Y = BY * ROWS + 2 * R;

// Second derivative, eighth order.
__device__ constexpr float C[R + 1] = {-205.0f / 72.0f, 8.0f / 5.0f, -1.0f / 5.0f, 8.0f / 315.0f,
                                       -1.0f / 560.0f};

}  // namespace

// previous, current, next, velocity: [nz][ny][nx]; scale = (dt / h)^2
extern "C" __global__ void wave_step(int nx, int ny, int nz, float scale,
                                     const float* __restrict__ previous,
                                     const float* __restrict__ current,
                                     const float* __restrict__ velocity, float* __restrict__ next) {
    __shared__ float tile[TILE_Y][TILE_X];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int x = blockIdx.x * BX + tx + R;
    const int y0 = blockIdx.y * (BY * ROWS) + ty + R;
    const int plane = nx * ny;

    int at[ROWS];        // the thread's points in the plane at z = 0
    bool inside[ROWS];   // may be updated
    float queue[ROWS][2 * R + 1];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        int y = y0 + r * BY;
        inside[r] = x < nx - R && y < ny - R;
        // Threads beyond the end keep to the last valid point, so that loads need no guard.
        at[r] = min(y, ny - 1) * nx + min(x, nx - 1);
#pragma unroll
        for (int k = 0; k < 2 * R; ++k) queue[r][k + 1] = current[k * plane + at[r]];
    }

    for (int z = R; z < nz - R; ++z) {
        const float* center = current + (long long)z * plane;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
#pragma unroll
            for (int k = 0; k < 2 * R; ++k) queue[r][k] = queue[r][k + 1];
            queue[r][2 * R] = center[R * plane + at[r]];
        }

        __syncthreads();
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            int row = ty + r * BY + R;
            tile[row][tx + R] = queue[r][R];
            int line = min(y0 + r * BY, ny - 1) * nx;
            if (tx < R) {
                tile[row][tx] = center[line + min(x - R, nx - 1)];
                tile[row][tx + BX + R] = center[line + min(x + BX, nx - 1)];
            }
        }
        if (ty < R) {
            int column = min(x, nx - 1);
            tile[ty][tx + R] = center[min(y0 - R, ny - 1) * nx + column];
            tile[ty + BY * ROWS + R][tx + R] = center[min(y0 + BY * ROWS, ny - 1) * nx + column];
        }
        __syncthreads();

#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            int row = ty + r * BY + R, column = tx + R;
            float u = queue[r][R];
            float laplacian = 3.0f * C[0] * u;
#pragma unroll
            for (int k = 1; k <= R; ++k) {
                float ring = tile[row][column - k] + tile[row][column + k]
                           + tile[row - k][column] + tile[row + k][column]
                           + queue[r][R - k] + queue[r][R + k];
                laplacian += C[k] * ring;
            }
            if (inside[r]) {
                long long here = (long long)z * plane + at[r];
                float v = velocity[here];
                next[here] = 2.0f * u - previous[here] + scale * v * v * laplacian;
            }
        }
    }
}
