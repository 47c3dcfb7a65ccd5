#define IDX(i,j) ((j)*(nx)+(i))
__global__ void swe(const float* __restrict__ h, const float* __restrict__ u, const float* __restrict__ v,
                    float* __restrict__ hn, float* __restrict__ un, float* __restrict__ vn,
                    int nx, int ny, float dt, float dx, float g, float H)
{
    const int i = blockIdx.x*blockDim.x+threadIdx.x, j = blockIdx.y*blockDim.y+threadIdx.y;
    if (i >= nx || j >= ny) return;
    const int ip = (i + 1) % nx, im = (i - 1 + nx) % nx;
    const int jp = (j + 1) % ny, jm = (j - 1 + ny) % ny;
    const float s = dt / (2.0f * dx);
    un[IDX(i,j)] = u[IDX(i,j)] - g * s * (h[IDX(ip,j)] - h[IDX(im,j)]);
    vn[IDX(i,j)] = v[IDX(i,j)] - g * s * (h[IDX(i,jp)] - h[IDX(i,jm)]);
    hn[IDX(i,j)] = h[IDX(i,j)] - H * s * (u[IDX(ip,j)] - u[IDX(im,j)] + v[IDX(i,jp)] - v[IDX(i,jm)]);
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function swe (h, u, v, hn, un, vn, dt, dx, g, H) {
//   float s = dt / (2.0f * dx);
//   un[j][i] = u[j][i] - g * s * (h[j][i+1] - h[j][i-1]);
//   vn[j][i] = v[j][i] - g * s * (h[j+1][i] - h[j-1][i]);
//   hn[j][i] = h[j][i] - H * s * (u[j][i+1] - u[j][i-1] + v[j+1][i] - v[j-1][i]);
// }
// // other points of j = 0 : ny, i = 0 : nx, wrapped along j, wrapped along i:
// //   float s = dt / (2.0f * dx);
// //   un[j][i] = u[j][i] - g * s * (h[j][i+1] - h[j][i-1]);
// //   vn[j][i] = v[j][i] - g * s * (h[j+1][i] - h[j-1][i]);
// //   hn[j][i] = h[j][i] - H * s * (u[j][i+1] - u[j][i-1] + v[j+1][i] - v[j-1][i]);
// parameter nx, ny;
// iterator j, i;
// float h[ny][nx], u[ny][nx], v[ny][nx], hn[ny][nx], un[ny][nx], vn[ny][nx], dt, dx, g, H;
// swe (h, u, v, hn, un, vn, dt, dx, g, H);
// return hn, un, vn;
