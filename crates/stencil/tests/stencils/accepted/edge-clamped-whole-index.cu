#define AMB_TEMP 80.0f
__global__ void hotspotOpt1(float *p, float *tIn, float *tOut, float sdc,
                            int nx, int ny, float ce, float cw, float cn, float cs, float cc)
{
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    int j = blockDim.y * blockIdx.y + threadIdx.y;
    if (i >= nx || j >= ny) return;
    int c = i + j * nx;
    int W = (i == 0)      ? c : c - 1;
    int E = (i == nx - 1) ? c : c + 1;
    int N = (j == 0)      ? c : c - nx;
    int S = (j == ny - 1) ? c : c + nx;
    tOut[c] = cc * tIn[c] + cw * tIn[W] + ce * tIn[E] + cs * tIn[S] + cn * tIn[N]
            + sdc * p[c] + ce * AMB_TEMP;
}
void run(float *p, float *a, float *b, int nx, int ny) {
    dim3 block(64, 4), grid((nx + 63) / 64, (ny + 3) / 4);
    hotspotOpt1<<<grid, block>>>(p, a, b, 0.1f, nx, ny, .1f, .1f, .1f, .1f, .5f);
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function hotspotOpt1 (p, tIn, tOut, sdc, ce, cw, cn, cs, cc) {
//   tOut[j][i] = cc * tIn[j][i] + cw * tIn[j][i-1] + ce * tIn[j][i+1] + cs * tIn[j+1][i] + cn * tIn[j-1][i] + sdc * p[j][i] + ce * 80.0f;
// }
// // other points of j = 0 : ny, i = 0 : nx, clamped along j, clamped along i:
// //   tOut[j][i] = cc * tIn[j][i] + cw * tIn[j][i-1] + ce * tIn[j][i+1] + cs * tIn[j+1][i] + cn * tIn[j-1][i] + sdc * p[j][i] + ce * 80.0f;
// parameter nx, ny;
// iterator j, i;
// float p[ny][nx], tIn[ny][nx], tOut[ny][nx], sdc, ce, cw, cn, cs, cc;
// hotspotOpt1 (p, tIn, tOut, sdc, ce, cw, cn, cs, cc);
// return tOut;
