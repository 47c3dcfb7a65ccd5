__device__ inline int wrap(int i, int n) { return (i + n) % n; }
__global__ void gs(const float* u, const float* v, float* un, float* vn, int n, float Du, float Dv, float F, float k)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    int id = j * n + i;
    int l = j * n + wrap(i - 1, n), r = j * n + wrap(i + 1, n), t = wrap(j - 1, n) * n + i, b = wrap(j + 1, n) * n + i;
    float lu = u[l] + u[r] + u[t] + u[b] - 4.0f * u[id];
    float lv = v[l] + v[r] + v[t] + v[b] - 4.0f * v[id];
    float uvv = u[id] * v[id] * v[id];
    un[id] = u[id] + Du * lu - uvv + F * (1.0f - u[id]);
    vn[id] = v[id] + Dv * lv + uvv - (F + k) * v[id];
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function gs (u, v, un, vn, Du, Dv, F, k) {
//   float lu = u[j][i-1] + u[j][i+1] + u[j-1][i] + u[j+1][i] - 4.0f * u[j][i];
//   float lv = v[j][i-1] + v[j][i+1] + v[j-1][i] + v[j+1][i] - 4.0f * v[j][i];
//   float uvv = u[j][i] * v[j][i] * v[j][i];
//   un[j][i] = u[j][i] + Du * lu - uvv + F * (1.0f - u[j][i]);
//   vn[j][i] = v[j][i] + Dv * lv + uvv - (F + k) * v[j][i];
// }
// // other points of j = 0 : n, i = 0 : n, wrapped along j, wrapped along i:
// //   float lu = u[j][i-1] + u[j][i+1] + u[j-1][i] + u[j+1][i] - 4.0f * u[j][i];
// //   float lv = v[j][i-1] + v[j][i+1] + v[j-1][i] + v[j+1][i] - 4.0f * v[j][i];
// //   float uvv = u[j][i] * v[j][i] * v[j][i];
// //   un[j][i] = u[j][i] + Du * lu - uvv + F * (1.0f - u[j][i]);
// //   vn[j][i] = v[j][i] + Dv * lv + uvv - (F + k) * v[j][i];
// parameter n;
// iterator j, i;
// float u[n][n], v[n][n], un[n][n], vn[n][n], Du, Dv, F, k;
// gs (u, v, un, vn, Du, Dv, F, k);
// return un, vn;
