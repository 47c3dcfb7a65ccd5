__global__ void hotspot3d(const float *p, const float* tIn, float *tOut, float sdc,
                          int nx, int ny, int nz, float ce, float cw, float cn, float cs, float ct, float cb, float cc)
{
    float amb_temp = 80.0;
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    int j = blockDim.y * blockIdx.y + threadIdx.y;
    if (i >= nx || j >= ny) return;
    for (int k = 0; k < nz; ++k) {
        int c = i + j * nx + k * nx * ny;
        int W = (i == 0) ? c : c - 1;
        int E = (i == nx - 1) ? c : c + 1;
        int N = (j == 0) ? c : c - nx;
        int S = (j == ny - 1) ? c : c + nx;
        int B = (k == 0) ? c : c - nx * ny;
        int T = (k == nz - 1) ? c : c + nx * ny;
        tOut[c] = cc * tIn[c] + cn * tIn[N] + cs * tIn[S] + ce * tIn[E] + cw * tIn[W]
                + ct * tIn[T] + cb * tIn[B] + sdc * p[c] + ct * amb_temp;
    }
}
// expect:
// k: 1 and 1 cells are not computed
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function hotspot3d (p, tIn, tOut, sdc, ce, cw, cn, cs, ct, cb, cc) {
//   tOut[k][j][i] = cc * tIn[k][j][i] + cn * tIn[k][j-1][i] + cs * tIn[k][j+1][i] + ce * tIn[k][j][i+1] + cw * tIn[k][j][i-1] + ct * tIn[k+1][j][i] + cb * tIn[k-1][j][i] + sdc * p[k][j][i] + ct * 80.0f;
// }
// // other points of k = 0 : nz, j = 0 : ny, i = 0 : nx, clamped along k, clamped along j, clamped along i:
// //   tOut[k][j][i] = cc * tIn[k][j][i] + cn * tIn[k][j-1][i] + cs * tIn[k][j+1][i] + ce * tIn[k][j][i+1] + cw * tIn[k][j][i-1] + ct * tIn[k+1][j][i] + cb * tIn[k-1][j][i] + sdc * p[k][j][i] + ct * 80.0f;
// parameter nx, ny, nz;
// iterator k, j, i;
// float p[nz][ny][nx], tIn[nz][ny][nx], tOut[nz][ny][nx], sdc, ce, cw, cn, cs, ct, cb, cc;
// hotspot3d (p, tIn, tOut, sdc, ce, cw, cn, cs, ct, cb, cc);
// return tOut;
