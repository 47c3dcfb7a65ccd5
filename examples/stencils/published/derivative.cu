// The mixed derivatives of SW4 in the form in which Rawat et al. timed them (PPoPP 2018): sums where the mathematics has
// differences, stretchings of neighbouring rows and planes within a sum, five statements that accumulate, a thread for
// each column. Harder than ../derivative.cu: a term is not one field that is seen from several points. The text is ours.
#define P 304
// First derivatives of fourth order at point (i, j, k), along the slowest, the middle and the fastest dimension.
#define DI(u, i, j, k) (c2 * (u[(i) + 2][j][k] - u[(i) - 2][j][k]) + c1 * (u[(i) + 1][j][k] - u[(i) - 1][j][k]))
#define DJ(u, i, j, k) (c2 * (u[i][(j) + 2][k] - u[i][(j) - 2][k]) + c1 * (u[i][(j) + 1][k] - u[i][(j) - 1][k]))
#define DK(u, i, j, k) (c2 * (u[i][j][(k) + 2] - u[i][j][(k) - 2]) + c1 * (u[i][j][(k) + 1] - u[i][j][(k) - 1]))
// Material times metric at a point.
#define MM(i, j, k) mu[i][j][k] * met1[i][j][k] * met1[i][j][k]
#define LL(i, j, k) la[i][j][k] * met1[i][j][k] * met1[i][j][k]
#define PM(i, j, k) (2 * mu[i][j][k] + la[i][j][k]) * met2[i][j][k] * met1[i][j][k]
#define MU(m, i, j, k) mu[i][j][k] * m[i][j][k] * met1[i][j][k]
#define LA(m, i, j, k) la[i][j][k] * m[i][j][k] * met1[i][j][k]
// What the three components add, seen from both sides of a point.
#define ALONG_K(k, s) PM(i, j, k) * DI(u1, i, j, k) * (s) * stry[j] \
    + MU(met3, i, j, k) * DI(u2, i, j, k) + MU(met4, i, j, k) * DI(u3, i, j, k) * stry[j]
#define ALONG_I(i, s) PM(i, j, k) * DK(u1, i, j, k) * (s) \
    + LA(met3, i, j, k) * DK(u2, i, j, k) * stry[j] + LA(met4, i, j, k) * DK(u3, i, j, k)
#define KJ(j, s) MU(met3, i, j, k) * DK(u1, i, j, k) * (s) * strx[i] + MU(met2, i, j, k) * DK(u2, i, j, k)
#define JK(k, s) MU(met3, i, j, k) * DJ(u1, i, j, k) * (s) * strx[i] + LA(met2, i, j, k) * DJ(u2, i, j, k)

__global__ void derivative(double* __restrict__ r1, double* __restrict__ u1_, double* __restrict__ u2_,
                           double* __restrict__ u3_, double* __restrict__ mu_, double* __restrict__ la_,
                           double* __restrict__ met1_, double* __restrict__ met2_, double* __restrict__ met3_,
                           double* __restrict__ met4_, double* __restrict__ strx, double* __restrict__ stry, double c1,
                           double c2, int N) {
    int k = max((int)blockIdx.x * (int)blockDim.x, 0) + (int)threadIdx.x;
    int j = max((int)blockIdx.y * (int)blockDim.y, 0) + (int)threadIdx.y;
    double (*u1)[P][P] = (double (*)[P][P])u1_;
    double (*u2)[P][P] = (double (*)[P][P])u2_;
    double (*u3)[P][P] = (double (*)[P][P])u3_;
    double (*mu)[P][P] = (double (*)[P][P])mu_;
    double (*la)[P][P] = (double (*)[P][P])la_;
    double (*met1)[P][P] = (double (*)[P][P])met1_;
    double (*met2)[P][P] = (double (*)[P][P])met2_;
    double (*met3)[P][P] = (double (*)[P][P])met3_;
    double (*met4)[P][P] = (double (*)[P][P])met4_;

    if (j >= 2 & k >= 2 & j <= N - 3 & k <= N - 3) {
        for (int i = 2; i <= N - 3; i++) {
            r1[i * N * N + j * N + k] +=
                c2 * (MM(i, j + 2, k) * DI(u2, i, j + 2, k) + MM(i, j - 2, k) * DI(u2, i, j - 2, k)) +
                c1 * (MM(i, j + 1, k) * DI(u2, i, j + 1, k) + MM(i, j - 1, k) * DI(u2, i, j - 1, k)) +
                c2 * (LL(i + 2, j, k) * DJ(u2, i + 2, j, k) + LL(i - 2, j, k) * DJ(u2, i - 2, j, k)) +
                c1 * (LL(i + 1, j, k) * DJ(u2, i + 1, j, k) + LL(i - 1, j, k) * DJ(u2, i - 1, j, k));
            r1[i * N * N + j * N + k] += c2 * (ALONG_K(k + 2, strx[i]) + (ALONG_K(k - 2, strx[i]))) +
                c1 * (ALONG_K(k + 1, strx[i + 2]) + (ALONG_K(k - 1, strx[i - 2])));
            r1[i * N * N + j * N + k] += (c2 * (ALONG_I(i + 2, strx[i]) + (ALONG_I(i - 2, strx[i]))) +
                c1 * (ALONG_I(i + 1, strx[i]) + (ALONG_I(i - 1, strx[i])))) * stry[j];
            r1[i * N * N + j * N + k] += c2 * (KJ(j + 2, stry[j + 1]) + (KJ(j - 2, stry[j]))) +
                c1 * (KJ(j + 1, stry[j - 1]) + (KJ(j - 1, stry[j])));
            r1[i * N * N + j * N + k] += c2 * (JK(k + 2, stry[j + 2]) + (JK(k - 2, stry[j]))) +
                c1 * (JK(k + 1, stry[j - 2]) + (JK(k - 1, stry[j])));
        }
    }
}
