// Mixed derivatives of SW4 on a curvilinear grid (Rawat et al., PPoPP 2018, Table 1): what they add
// to the first component of the right-hand side, by differences of fourth order.
//
// u1 to u3 are the displacement; mu and la are the material (Lame's parameters); met1 to met4 are
// the metric of the grid; strx and stry stretch it; c1 = 2/3 and c2 = -1/12 are the weights of the
// first derivative. x, y and z are i, j and k here.
//
// A thread walks along k. The accessors look like those of SW4.

#define R1(k, j, i) r1[(k) * plane + (j) * n + (i)]
#define U1(k, j, i) u1[(k) * plane + (j) * n + (i)]
#define U2(k, j, i) u2[(k) * plane + (j) * n + (i)]
#define U3(k, j, i) u3[(k) * plane + (j) * n + (i)]
#define MU(k, j, i) mu[(k) * plane + (j) * n + (i)]
#define LA(k, j, i) la[(k) * plane + (j) * n + (i)]
#define MET1(k, j, i) met1[(k) * plane + (j) * n + (i)]
#define MET2(k, j, i) met2[(k) * plane + (j) * n + (i)]
#define MET3(k, j, i) met3[(k) * plane + (j) * n + (i)]
#define MET4(k, j, i) met4[(k) * plane + (j) * n + (i)]

typedef double real;

#pragma warpwright stencil
__global__ void derivative(real *__restrict__ r1, const real *__restrict__ u1,
                           const real *__restrict__ u2, const real *__restrict__ u3,
                           const real *__restrict__ mu, const real *__restrict__ la,
                           const real *__restrict__ met1, const real *__restrict__ met2,
                           const real *__restrict__ met3, const real *__restrict__ met4,
                           const real *__restrict__ strx, const real *__restrict__ stry,
                           real c1, real c2, int l, int m, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y;
    const int plane = m * n;
    if (i < 2 || i >= n - 2) return;
    if (j < 2 || j >= m - 2) return;
    for (int k = 2; k < l - 2; ++k) {
        real istrx = 1.0 / strx[i];
        real istry = 1.0 / stry[j];

        // Derivative along y of a derivative along x.
        R1(k, j, i) += c2 * (
            MU(k, j + 2, i) * MET1(k, j + 2, i) * MET1(k, j + 2, i) *
              (c2 * (U2(k, j + 2, i + 2) - U2(k, j + 2, i - 2)) +
               c1 * (U2(k, j + 2, i + 1) - U2(k, j + 2, i - 1))) -
            (MU(k, j - 2, i) * MET1(k, j - 2, i) * MET1(k, j - 2, i) *
              (c2 * (U2(k, j - 2, i + 2) - U2(k, j - 2, i - 2)) +
               c1 * (U2(k, j - 2, i + 1) - U2(k, j - 2, i - 1))))) +
          c1 * (
            MU(k, j + 1, i) * MET1(k, j + 1, i) * MET1(k, j + 1, i) *
              (c2 * (U2(k, j + 1, i + 2) - U2(k, j + 1, i - 2)) +
               c1 * (U2(k, j + 1, i + 1) - U2(k, j + 1, i - 1))) -
            (MU(k, j - 1, i) * MET1(k, j - 1, i) * MET1(k, j - 1, i) *
              (c2 * (U2(k, j - 1, i + 2) - U2(k, j - 1, i - 2)) +
               c1 * (U2(k, j - 1, i + 1) - U2(k, j - 1, i - 1)))));
        // Derivative along x of one along y.
        R1(k, j, i) += c2 * (
            LA(k, j, i + 2) * MET1(k, j, i + 2) * MET1(k, j, i + 2) *
              (c2 * (U2(k, j + 2, i + 2) - U2(k, j - 2, i + 2)) +
               c1 * (U2(k, j + 1, i + 2) - U2(k, j - 1, i + 2))) -
            (LA(k, j, i - 2) * MET1(k, j, i - 2) * MET1(k, j, i - 2) *
              (c2 * (U2(k, j + 2, i - 2) - U2(k, j - 2, i - 2)) +
               c1 * (U2(k, j + 1, i - 2) - U2(k, j - 1, i - 2))))) +
          c1 * (
            LA(k, j, i + 1) * MET1(k, j, i + 1) * MET1(k, j, i + 1) *
              (c2 * (U2(k, j + 2, i + 1) - U2(k, j - 2, i + 1)) +
               c1 * (U2(k, j + 1, i + 1) - U2(k, j - 1, i + 1))) -
            (LA(k, j, i - 1) * MET1(k, j, i - 1) * MET1(k, j, i - 1) *
              (c2 * (U2(k, j + 2, i - 1) - U2(k, j - 2, i - 1)) +
               c1 * (U2(k, j + 1, i - 1) - U2(k, j - 1, i - 1)))));
        // Derivative along z of derivatives along x.
        R1(k, j, i) += c2 * (
            (2.0 * MU(k + 2, j, i) + LA(k + 2, j, i)) * MET2(k + 2, j, i) * MET1(k + 2, j, i) *
              (c2 * (U1(k + 2, j, i + 2) - U1(k + 2, j, i - 2)) +
               c1 * (U1(k + 2, j, i + 1) - U1(k + 2, j, i - 1))) * strx[i] * istry +
            MU(k + 2, j, i) * MET3(k + 2, j, i) * MET1(k + 2, j, i) *
              (c2 * (U2(k + 2, j, i + 2) - U2(k + 2, j, i - 2)) +
               c1 * (U2(k + 2, j, i + 1) - U2(k + 2, j, i - 1))) +
            MU(k + 2, j, i) * MET4(k + 2, j, i) * MET1(k + 2, j, i) *
              (c2 * (U3(k + 2, j, i + 2) - U3(k + 2, j, i - 2)) +
               c1 * (U3(k + 2, j, i + 1) - U3(k + 2, j, i - 1))) * istry -
            ((2.0 * MU(k - 2, j, i) + LA(k - 2, j, i)) * MET2(k - 2, j, i) * MET1(k - 2, j, i) *
              (c2 * (U1(k - 2, j, i + 2) - U1(k - 2, j, i - 2)) +
               c1 * (U1(k - 2, j, i + 1) - U1(k - 2, j, i - 1))) * strx[i] * istry +
             MU(k - 2, j, i) * MET3(k - 2, j, i) * MET1(k - 2, j, i) *
              (c2 * (U2(k - 2, j, i + 2) - U2(k - 2, j, i - 2)) +
               c1 * (U2(k - 2, j, i + 1) - U2(k - 2, j, i - 1))) +
             MU(k - 2, j, i) * MET4(k - 2, j, i) * MET1(k - 2, j, i) *
              (c2 * (U3(k - 2, j, i + 2) - U3(k - 2, j, i - 2)) +
               c1 * (U3(k - 2, j, i + 1) - U3(k - 2, j, i - 1))) * istry)) +
          c1 * (
            (2.0 * MU(k + 1, j, i) + LA(k + 1, j, i)) * MET2(k + 1, j, i) * MET1(k + 1, j, i) *
              (c2 * (U1(k + 1, j, i + 2) - U1(k + 1, j, i - 2)) +
               c1 * (U1(k + 1, j, i + 1) - U1(k + 1, j, i - 1))) * strx[i] * istry +
            MU(k + 1, j, i) * MET3(k + 1, j, i) * MET1(k + 1, j, i) *
              (c2 * (U2(k + 1, j, i + 2) - U2(k + 1, j, i - 2)) +
               c1 * (U2(k + 1, j, i + 1) - U2(k + 1, j, i - 1))) +
            MU(k + 1, j, i) * MET4(k + 1, j, i) * MET1(k + 1, j, i) *
              (c2 * (U3(k + 1, j, i + 2) - U3(k + 1, j, i - 2)) +
               c1 * (U3(k + 1, j, i + 1) - U3(k + 1, j, i - 1))) * istry -
            ((2.0 * MU(k - 1, j, i) + LA(k - 1, j, i)) * MET2(k - 1, j, i) * MET1(k - 1, j, i) *
              (c2 * (U1(k - 1, j, i + 2) - U1(k - 1, j, i - 2)) +
               c1 * (U1(k - 1, j, i + 1) - U1(k - 1, j, i - 1))) * strx[i] * istry +
             MU(k - 1, j, i) * MET3(k - 1, j, i) * MET1(k - 1, j, i) *
              (c2 * (U2(k - 1, j, i + 2) - U2(k - 1, j, i - 2)) +
               c1 * (U2(k - 1, j, i + 1) - U2(k - 1, j, i - 1))) +
             MU(k - 1, j, i) * MET4(k - 1, j, i) * MET1(k - 1, j, i) *
              (c2 * (U3(k - 1, j, i + 2) - U3(k - 1, j, i - 2)) +
               c1 * (U3(k - 1, j, i + 1) - U3(k - 1, j, i - 1))) * istry));
        // Derivative along x of derivatives along z.
        R1(k, j, i) += (c2 * (
            (2.0 * MU(k, j, i + 2) + LA(k, j, i + 2)) * MET2(k, j, i + 2) * MET1(k, j, i + 2) *
              (c2 * (U1(k + 2, j, i + 2) - U1(k - 2, j, i + 2)) +
               c1 * (U1(k + 1, j, i + 2) - U1(k - 1, j, i + 2))) * strx[i + 2] +
            LA(k, j, i + 2) * MET3(k, j, i + 2) * MET1(k, j, i + 2) *
              (c2 * (U2(k + 2, j, i + 2) - U2(k - 2, j, i + 2)) +
               c1 * (U2(k + 1, j, i + 2) - U2(k - 1, j, i + 2))) * stry[j] +
            LA(k, j, i + 2) * MET4(k, j, i + 2) * MET1(k, j, i + 2) *
              (c2 * (U3(k + 2, j, i + 2) - U3(k - 2, j, i + 2)) +
               c1 * (U3(k + 1, j, i + 2) - U3(k - 1, j, i + 2))) -
            ((2.0 * MU(k, j, i - 2) + LA(k, j, i - 2)) * MET2(k, j, i - 2) * MET1(k, j, i - 2) *
              (c2 * (U1(k + 2, j, i - 2) - U1(k - 2, j, i - 2)) +
               c1 * (U1(k + 1, j, i - 2) - U1(k - 1, j, i - 2))) * strx[i - 2] +
             LA(k, j, i - 2) * MET3(k, j, i - 2) * MET1(k, j, i - 2) *
              (c2 * (U2(k + 2, j, i - 2) - U2(k - 2, j, i - 2)) +
               c1 * (U2(k + 1, j, i - 2) - U2(k - 1, j, i - 2))) * stry[j] +
             LA(k, j, i - 2) * MET4(k, j, i - 2) * MET1(k, j, i - 2) *
              (c2 * (U3(k + 2, j, i - 2) - U3(k - 2, j, i - 2)) +
               c1 * (U3(k + 1, j, i - 2) - U3(k - 1, j, i - 2))))) +
          c1 * (
            (2.0 * MU(k, j, i + 1) + LA(k, j, i + 1)) * MET2(k, j, i + 1) * MET1(k, j, i + 1) *
              (c2 * (U1(k + 2, j, i + 1) - U1(k - 2, j, i + 1)) +
               c1 * (U1(k + 1, j, i + 1) - U1(k - 1, j, i + 1))) * strx[i + 1] +
            LA(k, j, i + 1) * MET3(k, j, i + 1) * MET1(k, j, i + 1) *
              (c2 * (U2(k + 2, j, i + 1) - U2(k - 2, j, i + 1)) +
               c1 * (U2(k + 1, j, i + 1) - U2(k - 1, j, i + 1))) * stry[j] +
            LA(k, j, i + 1) * MET4(k, j, i + 1) * MET1(k, j, i + 1) *
              (c2 * (U3(k + 2, j, i + 1) - U3(k - 2, j, i + 1)) +
               c1 * (U3(k + 1, j, i + 1) - U3(k - 1, j, i + 1))) -
            ((2.0 * MU(k, j, i - 1) + LA(k, j, i - 1)) * MET2(k, j, i - 1) * MET1(k, j, i - 1) *
              (c2 * (U1(k + 2, j, i - 1) - U1(k - 2, j, i - 1)) +
               c1 * (U1(k + 1, j, i - 1) - U1(k - 1, j, i - 1))) * strx[i - 1] +
             LA(k, j, i - 1) * MET3(k, j, i - 1) * MET1(k, j, i - 1) *
              (c2 * (U2(k + 2, j, i - 1) - U2(k - 2, j, i - 1)) +
               c1 * (U2(k + 1, j, i - 1) - U2(k - 1, j, i - 1))) * stry[j] +
             LA(k, j, i - 1) * MET4(k, j, i - 1) * MET1(k, j, i - 1) *
              (c2 * (U3(k + 2, j, i - 1) - U3(k - 2, j, i - 1)) +
               c1 * (U3(k + 1, j, i - 1) - U3(k - 1, j, i - 1)))))) * istry;
        // Derivative along y of derivatives along z.
        R1(k, j, i) += c2 * (
            MU(k, j + 2, i) * MET3(k, j + 2, i) * MET1(k, j + 2, i) *
              (c2 * (U1(k + 2, j + 2, i) - U1(k - 2, j + 2, i)) +
               c1 * (U1(k + 1, j + 2, i) - U1(k - 1, j + 2, i))) * stry[j + 2] * istrx +
            MU(k, j + 2, i) * MET2(k, j + 2, i) * MET1(k, j + 2, i) *
              (c2 * (U2(k + 2, j + 2, i) - U2(k - 2, j + 2, i)) +
               c1 * (U2(k + 1, j + 2, i) - U2(k - 1, j + 2, i))) -
            (MU(k, j - 2, i) * MET3(k, j - 2, i) * MET1(k, j - 2, i) *
              (c2 * (U1(k + 2, j - 2, i) - U1(k - 2, j - 2, i)) +
               c1 * (U1(k + 1, j - 2, i) - U1(k - 1, j - 2, i))) * stry[j - 2] * istrx +
             MU(k, j - 2, i) * MET2(k, j - 2, i) * MET1(k, j - 2, i) *
              (c2 * (U2(k + 2, j - 2, i) - U2(k - 2, j - 2, i)) +
               c1 * (U2(k + 1, j - 2, i) - U2(k - 1, j - 2, i))))) +
          c1 * (
            MU(k, j + 1, i) * MET3(k, j + 1, i) * MET1(k, j + 1, i) *
              (c2 * (U1(k + 2, j + 1, i) - U1(k - 2, j + 1, i)) +
               c1 * (U1(k + 1, j + 1, i) - U1(k - 1, j + 1, i))) * stry[j + 1] * istrx +
            MU(k, j + 1, i) * MET2(k, j + 1, i) * MET1(k, j + 1, i) *
              (c2 * (U2(k + 2, j + 1, i) - U2(k - 2, j + 1, i)) +
               c1 * (U2(k + 1, j + 1, i) - U2(k - 1, j + 1, i))) -
            (MU(k, j - 1, i) * MET3(k, j - 1, i) * MET1(k, j - 1, i) *
              (c2 * (U1(k + 2, j - 1, i) - U1(k - 2, j - 1, i)) +
               c1 * (U1(k + 1, j - 1, i) - U1(k - 1, j - 1, i))) * stry[j - 1] * istrx +
             MU(k, j - 1, i) * MET2(k, j - 1, i) * MET1(k, j - 1, i) *
              (c2 * (U2(k + 2, j - 1, i) - U2(k - 2, j - 1, i)) +
               c1 * (U2(k + 1, j - 1, i) - U2(k - 1, j - 1, i)))));
        // Derivative along z of derivatives along y.
        R1(k, j, i) += c2 * (
            MU(k + 2, j, i) * MET3(k + 2, j, i) * MET1(k + 2, j, i) *
              (c2 * (U1(k + 2, j + 2, i) - U1(k + 2, j - 2, i)) +
               c1 * (U1(k + 2, j + 1, i) - U1(k + 2, j - 1, i))) * stry[j] * istrx +
            LA(k + 2, j, i) * MET2(k + 2, j, i) * MET1(k + 2, j, i) *
              (c2 * (U2(k + 2, j + 2, i) - U2(k + 2, j - 2, i)) +
               c1 * (U2(k + 2, j + 1, i) - U2(k + 2, j - 1, i))) -
            (MU(k - 2, j, i) * MET3(k - 2, j, i) * MET1(k - 2, j, i) *
              (c2 * (U1(k - 2, j + 2, i) - U1(k - 2, j - 2, i)) +
               c1 * (U1(k - 2, j + 1, i) - U1(k - 2, j - 1, i))) * stry[j] * istrx +
             LA(k - 2, j, i) * MET2(k - 2, j, i) * MET1(k - 2, j, i) *
              (c2 * (U2(k - 2, j + 2, i) - U2(k - 2, j - 2, i)) +
               c1 * (U2(k - 2, j + 1, i) - U2(k - 2, j - 1, i))))) +
          c1 * (
            MU(k + 1, j, i) * MET3(k + 1, j, i) * MET1(k + 1, j, i) *
              (c2 * (U1(k + 1, j + 2, i) - U1(k + 1, j - 2, i)) +
               c1 * (U1(k + 1, j + 1, i) - U1(k + 1, j - 1, i))) * stry[j] * istrx +
            LA(k + 1, j, i) * MET2(k + 1, j, i) * MET1(k + 1, j, i) *
              (c2 * (U2(k + 1, j + 2, i) - U2(k + 1, j - 2, i)) +
               c1 * (U2(k + 1, j + 1, i) - U2(k + 1, j - 1, i))) -
            (MU(k - 1, j, i) * MET3(k - 1, j, i) * MET1(k - 1, j, i) *
              (c2 * (U1(k - 1, j + 2, i) - U1(k - 1, j - 2, i)) +
               c1 * (U1(k - 1, j + 1, i) - U1(k - 1, j - 1, i))) * stry[j] * istrx +
             LA(k - 1, j, i) * MET2(k - 1, j, i) * MET1(k - 1, j, i) *
              (c2 * (U2(k - 1, j + 2, i) - U2(k - 1, j - 2, i)) +
               c1 * (U2(k - 1, j + 1, i) - U2(k - 1, j - 1, i)))));
    }
}
