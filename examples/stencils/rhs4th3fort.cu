// The right-hand side of the elastic wave equation in SW4 (Rawat et al., PPoPP 2018, Table 1):
// differences of fourth order of the divergence of the stress in the interior of a Cartesian grid.
//
// u is the displacement and uacc the acceleration, three components each; mu and la are the
// material (Lame's parameters); strx, stry and strz stretch the grid towards its edges; cof is one
// over the square of the spacing, and a1 is 0 or 1. x, y and z are i, j and k here.
//
// The three components of a vector are three blocks of one array.

#define N 304

#pragma warpwright stencil
__global__ void rhs4th3fort(double *__restrict__ g_uacc, const double *__restrict__ g_u,
                            const double *__restrict__ g_mu, const double *__restrict__ g_la,
                            const double *__restrict__ strx, const double *__restrict__ stry,
                            const double *__restrict__ strz, double a1, double cof) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y;
    const int k = blockIdx.z * blockDim.z + threadIdx.z;

    double (*uacc)[N][N][N] = (double (*)[N][N][N])g_uacc;
    const double (*u)[N][N][N] = (const double (*)[N][N][N])g_u;
    const double (*mu)[N][N] = (const double (*)[N][N])g_mu;
    const double (*la)[N][N] = (const double (*)[N][N])g_la;

    const double tf = 3.0 / 4, i6 = 1.0 / 6, i144 = 1.0 / 144;

    if (i >= 2 & j >= 2 & k >= 2 & i <= N - 3 & j <= N - 3 & k <= N - 3) {
        // Averages of mu along x.
        double mux1 = mu[k][j][i - 1] * strx[i - 1] -
          tf * (mu[k][j][i] * strx[i] + mu[k][j][i - 2] * strx[i - 2]);
        double mux2 = mu[k][j][i - 2] * strx[i - 2] + mu[k][j][i + 1] * strx[i + 1] +
          3.0 * (mu[k][j][i] * strx[i] + mu[k][j][i - 1] * strx[i - 1]);
        double mux3 = mu[k][j][i - 1] * strx[i - 1] + mu[k][j][i + 2] * strx[i + 2] +
          3.0 * (mu[k][j][i + 1] * strx[i + 1] + mu[k][j][i] * strx[i]);
        double mux4 = mu[k][j][i + 1] * strx[i + 1] -
          tf * (mu[k][j][i] * strx[i] + mu[k][j][i + 2] * strx[i + 2]);
        // Averages of mu along y.
        double muy1 = mu[k][j - 1][i] * stry[j - 1] -
          tf * (mu[k][j][i] * stry[j] + mu[k][j - 2][i] * stry[j - 2]);
        double muy2 = mu[k][j - 2][i] * stry[j - 2] + mu[k][j + 1][i] * stry[j + 1] +
          3.0 * (mu[k][j][i] * stry[j] + mu[k][j - 1][i] * stry[j - 1]);
        double muy3 = mu[k][j - 1][i] * stry[j - 1] + mu[k][j + 2][i] * stry[j + 2] +
          3.0 * (mu[k][j + 1][i] * stry[j + 1] + mu[k][j][i] * stry[j]);
        double muy4 = mu[k][j + 1][i] * stry[j + 1] -
          tf * (mu[k][j][i] * stry[j] + mu[k][j + 2][i] * stry[j + 2]);
        // Averages of mu along z.
        double muz1 = mu[k - 1][j][i] * strz[k - 1] -
          tf * (mu[k][j][i] * strz[k] + mu[k - 2][j][i] * strz[k - 2]);
        double muz2 = mu[k - 2][j][i] * strz[k - 2] + mu[k + 1][j][i] * strz[k + 1] +
          3.0 * (mu[k][j][i] * strz[k] + mu[k - 1][j][i] * strz[k - 1]);
        double muz3 = mu[k - 1][j][i] * strz[k - 1] + mu[k + 2][j][i] * strz[k + 2] +
          3.0 * (mu[k + 1][j][i] * strz[k + 1] + mu[k][j][i] * strz[k]);
        double muz4 = mu[k + 1][j][i] * strz[k + 1] -
          tf * (mu[k][j][i] * strz[k] + mu[k + 2][j][i] * strz[k + 2]);

        // Second derivatives along one dimension.
        double r1 = i6 * (
           strx[i] * (
             (2.0 * mux1 + la[k][j][i - 1] * strx[i - 1] -
               tf * (la[k][j][i] * strx[i] + la[k][j][i - 2] * strx[i - 2])) *
              (u[0][k][j][i - 2] - u[0][k][j][i]) +
             (2.0 * mux2 + la[k][j][i - 2] * strx[i - 2] + la[k][j][i + 1] * strx[i + 1] +
               3.0 * (la[k][j][i] * strx[i] + la[k][j][i - 1] * strx[i - 1])) *
              (u[0][k][j][i - 1] - u[0][k][j][i]) +
             (2.0 * mux3 + la[k][j][i - 1] * strx[i - 1] + la[k][j][i + 2] * strx[i + 2] +
               3.0 * (la[k][j][i + 1] * strx[i + 1] + la[k][j][i] * strx[i])) *
              (u[0][k][j][i + 1] - u[0][k][j][i]) +
             (2.0 * mux4 + la[k][j][i + 1] * strx[i + 1] -
               tf * (la[k][j][i] * strx[i] + la[k][j][i + 2] * strx[i + 2])) *
              (u[0][k][j][i + 2] - u[0][k][j][i])) +
           stry[j] * (
             muy1 * (u[0][k][j - 2][i] - u[0][k][j][i]) +
             muy2 * (u[0][k][j - 1][i] - u[0][k][j][i]) +
             muy3 * (u[0][k][j + 1][i] - u[0][k][j][i]) +
             muy4 * (u[0][k][j + 2][i] - u[0][k][j][i])) +
           strz[k] * (
             muz1 * (u[0][k - 2][j][i] - u[0][k][j][i]) +
             muz2 * (u[0][k - 1][j][i] - u[0][k][j][i]) +
             muz3 * (u[0][k + 1][j][i] - u[0][k][j][i]) +
             muz4 * (u[0][k + 2][j][i] - u[0][k][j][i])));
        double r2 = i6 * (
           strx[i] * (
             mux1 * (u[1][k][j][i - 2] - u[1][k][j][i]) +
             mux2 * (u[1][k][j][i - 1] - u[1][k][j][i]) +
             mux3 * (u[1][k][j][i + 1] - u[1][k][j][i]) +
             mux4 * (u[1][k][j][i + 2] - u[1][k][j][i])) +
           stry[j] * (
             (2.0 * muy1 + la[k][j - 1][i] * stry[j - 1] -
               tf * (la[k][j][i] * stry[j] + la[k][j - 2][i] * stry[j - 2])) *
              (u[1][k][j - 2][i] - u[1][k][j][i]) +
             (2.0 * muy2 + la[k][j - 2][i] * stry[j - 2] + la[k][j + 1][i] * stry[j + 1] +
               3.0 * (la[k][j][i] * stry[j] + la[k][j - 1][i] * stry[j - 1])) *
              (u[1][k][j - 1][i] - u[1][k][j][i]) +
             (2.0 * muy3 + la[k][j - 1][i] * stry[j - 1] + la[k][j + 2][i] * stry[j + 2] +
               3.0 * (la[k][j + 1][i] * stry[j + 1] + la[k][j][i] * stry[j])) *
              (u[1][k][j + 1][i] - u[1][k][j][i]) +
             (2.0 * muy4 + la[k][j + 1][i] * stry[j + 1] -
               tf * (la[k][j][i] * stry[j] + la[k][j + 2][i] * stry[j + 2])) *
              (u[1][k][j + 2][i] - u[1][k][j][i])) +
           strz[k] * (
             muz1 * (u[1][k - 2][j][i] - u[1][k][j][i]) +
             muz2 * (u[1][k - 1][j][i] - u[1][k][j][i]) +
             muz3 * (u[1][k + 1][j][i] - u[1][k][j][i]) +
             muz4 * (u[1][k + 2][j][i] - u[1][k][j][i])));
        double r3 = i6 * (
           strx[i] * (
             mux1 * (u[2][k][j][i - 2] - u[2][k][j][i]) +
             mux2 * (u[2][k][j][i - 1] - u[2][k][j][i]) +
             mux3 * (u[2][k][j][i + 1] - u[2][k][j][i]) +
             mux4 * (u[2][k][j][i + 2] - u[2][k][j][i])) +
           stry[j] * (
             muy1 * (u[2][k][j - 2][i] - u[2][k][j][i]) +
             muy2 * (u[2][k][j - 1][i] - u[2][k][j][i]) +
             muy3 * (u[2][k][j + 1][i] - u[2][k][j][i]) +
             muy4 * (u[2][k][j + 2][i] - u[2][k][j][i])) +
           strz[k] * (
             (2.0 * muz1 + la[k - 1][j][i] * strz[k - 1] -
               tf * (la[k][j][i] * strz[k] + la[k - 2][j][i] * strz[k - 2])) *
              (u[2][k - 2][j][i] - u[2][k][j][i]) +
             (2.0 * muz2 + la[k - 2][j][i] * strz[k - 2] + la[k + 1][j][i] * strz[k + 1] +
               3.0 * (la[k][j][i] * strz[k] + la[k - 1][j][i] * strz[k - 1])) *
              (u[2][k - 1][j][i] - u[2][k][j][i]) +
             (2.0 * muz3 + la[k - 1][j][i] * strz[k - 1] + la[k + 2][j][i] * strz[k + 2] +
               3.0 * (la[k + 1][j][i] * strz[k + 1] + la[k][j][i] * strz[k])) *
              (u[2][k + 1][j][i] - u[2][k][j][i]) +
             (2.0 * muz4 + la[k + 1][j][i] * strz[k + 1] -
               tf * (la[k][j][i] * strz[k] + la[k + 2][j][i] * strz[k + 2])) *
              (u[2][k + 2][j][i] - u[2][k][j][i])));

        // Mixed derivatives.
        r1 += strx[i] * stry[j] * i144 * (
            la[k][j][i - 2] * (u[1][k][j - 2][i - 2] - u[1][k][j + 2][i - 2] +
              8.0 * (-u[1][k][j - 1][i - 2] + u[1][k][j + 1][i - 2])) -
            8.0 * (la[k][j][i - 1] * (u[1][k][j - 2][i - 1] - u[1][k][j + 2][i - 1] +
              8.0 * (-u[1][k][j - 1][i - 1] + u[1][k][j + 1][i - 1]))) +
            8.0 * (la[k][j][i + 1] * (u[1][k][j - 2][i + 1] - u[1][k][j + 2][i + 1] +
              8.0 * (-u[1][k][j - 1][i + 1] + u[1][k][j + 1][i + 1]))) -
            (la[k][j][i + 2] * (u[1][k][j - 2][i + 2] - u[1][k][j + 2][i + 2] +
              8.0 * (-u[1][k][j - 1][i + 2] + u[1][k][j + 1][i + 2]))));
        r1 += strx[i] * strz[k] * i144 * (
            la[k][j][i - 2] * (u[2][k - 2][j][i - 2] - u[2][k + 2][j][i - 2] +
              8.0 * (-u[2][k - 1][j][i - 2] + u[2][k + 1][j][i - 2])) -
            8.0 * (la[k][j][i - 1] * (u[2][k - 2][j][i - 1] - u[2][k + 2][j][i - 1] +
              8.0 * (-u[2][k - 1][j][i - 1] + u[2][k + 1][j][i - 1]))) +
            8.0 * (la[k][j][i + 1] * (u[2][k - 2][j][i + 1] - u[2][k + 2][j][i + 1] +
              8.0 * (-u[2][k - 1][j][i + 1] + u[2][k + 1][j][i + 1]))) -
            (la[k][j][i + 2] * (u[2][k - 2][j][i + 2] - u[2][k + 2][j][i + 2] +
              8.0 * (-u[2][k - 1][j][i + 2] + u[2][k + 1][j][i + 2]))));
        r1 += strx[i] * stry[j] * i144 * (
            mu[k][j - 2][i] * (u[1][k][j - 2][i - 2] - u[1][k][j - 2][i + 2] +
              8.0 * (-u[1][k][j - 2][i - 1] + u[1][k][j - 2][i + 1])) -
            8.0 * (mu[k][j - 1][i] * (u[1][k][j - 1][i - 2] - u[1][k][j - 1][i + 2] +
              8.0 * (-u[1][k][j - 1][i - 1] + u[1][k][j - 1][i + 1]))) +
            8.0 * (mu[k][j + 1][i] * (u[1][k][j + 1][i - 2] - u[1][k][j + 1][i + 2] +
              8.0 * (-u[1][k][j + 1][i - 1] + u[1][k][j + 1][i + 1]))) -
            (mu[k][j + 2][i] * (u[1][k][j + 2][i - 2] - u[1][k][j + 2][i + 2] +
              8.0 * (-u[1][k][j + 2][i - 1] + u[1][k][j + 2][i + 1]))));
        r1 += strx[i] * strz[k] * i144 * (
            mu[k - 2][j][i] * (u[2][k - 2][j][i - 2] - u[2][k - 2][j][i + 2] +
              8.0 * (-u[2][k - 2][j][i - 1] + u[2][k - 2][j][i + 1])) -
            8.0 * (mu[k - 1][j][i] * (u[2][k - 1][j][i - 2] - u[2][k - 1][j][i + 2] +
              8.0 * (-u[2][k - 1][j][i - 1] + u[2][k - 1][j][i + 1]))) +
            8.0 * (mu[k + 1][j][i] * (u[2][k + 1][j][i - 2] - u[2][k + 1][j][i + 2] +
              8.0 * (-u[2][k + 1][j][i - 1] + u[2][k + 1][j][i + 1]))) -
            (mu[k + 2][j][i] * (u[2][k + 2][j][i - 2] - u[2][k + 2][j][i + 2] +
              8.0 * (-u[2][k + 2][j][i - 1] + u[2][k + 2][j][i + 1]))));
        r2 += strx[i] * stry[j] * i144 * (
            mu[k][j][i - 2] * (u[0][k][j - 2][i - 2] - u[0][k][j + 2][i - 2] +
              8.0 * (-u[0][k][j - 1][i - 2] + u[0][k][j + 1][i - 2])) -
            8.0 * (mu[k][j][i - 1] * (u[0][k][j - 2][i - 1] - u[0][k][j + 2][i - 1] +
              8.0 * (-u[0][k][j - 1][i - 1] + u[0][k][j + 1][i - 1]))) +
            8.0 * (mu[k][j][i + 1] * (u[0][k][j - 2][i + 1] - u[0][k][j + 2][i + 1] +
              8.0 * (-u[0][k][j - 1][i + 1] + u[0][k][j + 1][i + 1]))) -
            (mu[k][j][i + 2] * (u[0][k][j - 2][i + 2] - u[0][k][j + 2][i + 2] +
              8.0 * (-u[0][k][j - 1][i + 2] + u[0][k][j + 1][i + 2]))));
        r2 += strx[i] * stry[j] * i144 * (
            la[k][j - 2][i] * (u[0][k][j - 2][i - 2] - u[0][k][j - 2][i + 2] +
              8.0 * (-u[0][k][j - 2][i - 1] + u[0][k][j - 2][i + 1])) -
            8.0 * (la[k][j - 1][i] * (u[0][k][j - 1][i - 2] - u[0][k][j - 1][i + 2] +
              8.0 * (-u[0][k][j - 1][i - 1] + u[0][k][j - 1][i + 1]))) +
            8.0 * (la[k][j + 1][i] * (u[0][k][j + 1][i - 2] - u[0][k][j + 1][i + 2] +
              8.0 * (-u[0][k][j + 1][i - 1] + u[0][k][j + 1][i + 1]))) -
            (la[k][j + 2][i] * (u[0][k][j + 2][i - 2] - u[0][k][j + 2][i + 2] +
              8.0 * (-u[0][k][j + 2][i - 1] + u[0][k][j + 2][i + 1]))));
        r2 += stry[j] * strz[k] * i144 * (
            la[k][j - 2][i] * (u[2][k - 2][j - 2][i] - u[2][k + 2][j - 2][i] +
              8.0 * (-u[2][k - 1][j - 2][i] + u[2][k + 1][j - 2][i])) -
            8.0 * (la[k][j - 1][i] * (u[2][k - 2][j - 1][i] - u[2][k + 2][j - 1][i] +
              8.0 * (-u[2][k - 1][j - 1][i] + u[2][k + 1][j - 1][i]))) +
            8.0 * (la[k][j + 1][i] * (u[2][k - 2][j + 1][i] - u[2][k + 2][j + 1][i] +
              8.0 * (-u[2][k - 1][j + 1][i] + u[2][k + 1][j + 1][i]))) -
            (la[k][j + 2][i] * (u[2][k - 2][j + 2][i] - u[2][k + 2][j + 2][i] +
              8.0 * (-u[2][k - 1][j + 2][i] + u[2][k + 1][j + 2][i]))));
        r2 += stry[j] * strz[k] * i144 * (
            mu[k - 2][j][i] * (u[2][k - 2][j - 2][i] - u[2][k - 2][j + 2][i] +
              8.0 * (-u[2][k - 2][j - 1][i] + u[2][k - 2][j + 1][i])) -
            8.0 * (mu[k - 1][j][i] * (u[2][k - 1][j - 2][i] - u[2][k - 1][j + 2][i] +
              8.0 * (-u[2][k - 1][j - 1][i] + u[2][k - 1][j + 1][i]))) +
            8.0 * (mu[k + 1][j][i] * (u[2][k + 1][j - 2][i] - u[2][k + 1][j + 2][i] +
              8.0 * (-u[2][k + 1][j - 1][i] + u[2][k + 1][j + 1][i]))) -
            (mu[k + 2][j][i] * (u[2][k + 2][j - 2][i] - u[2][k + 2][j + 2][i] +
              8.0 * (-u[2][k + 2][j - 1][i] + u[2][k + 2][j + 1][i]))));
        r3 += strx[i] * strz[k] * i144 * (
            mu[k][j][i - 2] * (u[0][k - 2][j][i - 2] - u[0][k + 2][j][i - 2] +
              8.0 * (-u[0][k - 1][j][i - 2] + u[0][k + 1][j][i - 2])) -
            8.0 * (mu[k][j][i - 1] * (u[0][k - 2][j][i - 1] - u[0][k + 2][j][i - 1] +
              8.0 * (-u[0][k - 1][j][i - 1] + u[0][k + 1][j][i - 1]))) +
            8.0 * (mu[k][j][i + 1] * (u[0][k - 2][j][i + 1] - u[0][k + 2][j][i + 1] +
              8.0 * (-u[0][k - 1][j][i + 1] + u[0][k + 1][j][i + 1]))) -
            (mu[k][j][i + 2] * (u[0][k - 2][j][i + 2] - u[0][k + 2][j][i + 2] +
              8.0 * (-u[0][k - 1][j][i + 2] + u[0][k + 1][j][i + 2]))));
        r3 += stry[j] * strz[k] * i144 * (
            mu[k][j - 2][i] * (u[1][k - 2][j - 2][i] - u[1][k + 2][j - 2][i] +
              8.0 * (-u[1][k - 1][j - 2][i] + u[1][k + 1][j - 2][i])) -
            8.0 * (mu[k][j - 1][i] * (u[1][k - 2][j - 1][i] - u[1][k + 2][j - 1][i] +
              8.0 * (-u[1][k - 1][j - 1][i] + u[1][k + 1][j - 1][i]))) +
            8.0 * (mu[k][j + 1][i] * (u[1][k - 2][j + 1][i] - u[1][k + 2][j + 1][i] +
              8.0 * (-u[1][k - 1][j + 1][i] + u[1][k + 1][j + 1][i]))) -
            (mu[k][j + 2][i] * (u[1][k - 2][j + 2][i] - u[1][k + 2][j + 2][i] +
              8.0 * (-u[1][k - 1][j + 2][i] + u[1][k + 1][j + 2][i]))));
        r3 += strx[i] * strz[k] * i144 * (
            la[k - 2][j][i] * (u[0][k - 2][j][i - 2] - u[0][k - 2][j][i + 2] +
              8.0 * (-u[0][k - 2][j][i - 1] + u[0][k - 2][j][i + 1])) -
            8.0 * (la[k - 1][j][i] * (u[0][k - 1][j][i - 2] - u[0][k - 1][j][i + 2] +
              8.0 * (-u[0][k - 1][j][i - 1] + u[0][k - 1][j][i + 1]))) +
            8.0 * (la[k + 1][j][i] * (u[0][k + 1][j][i - 2] - u[0][k + 1][j][i + 2] +
              8.0 * (-u[0][k + 1][j][i - 1] + u[0][k + 1][j][i + 1]))) -
            (la[k + 2][j][i] * (u[0][k + 2][j][i - 2] - u[0][k + 2][j][i + 2] +
              8.0 * (-u[0][k + 2][j][i - 1] + u[0][k + 2][j][i + 1]))));
        r3 += stry[j] * strz[k] * i144 * (
            la[k - 2][j][i] * (u[1][k - 2][j - 2][i] - u[1][k - 2][j + 2][i] +
              8.0 * (-u[1][k - 2][j - 1][i] + u[1][k - 2][j + 1][i])) -
            8.0 * (la[k - 1][j][i] * (u[1][k - 1][j - 2][i] - u[1][k - 1][j + 2][i] +
              8.0 * (-u[1][k - 1][j - 1][i] + u[1][k - 1][j + 1][i]))) +
            8.0 * (la[k + 1][j][i] * (u[1][k + 1][j - 2][i] - u[1][k + 1][j + 2][i] +
              8.0 * (-u[1][k + 1][j - 1][i] + u[1][k + 1][j + 1][i]))) -
            (la[k + 2][j][i] * (u[1][k + 2][j - 2][i] - u[1][k + 2][j + 2][i] +
              8.0 * (-u[1][k + 2][j - 1][i] + u[1][k + 2][j + 1][i]))));

        uacc[0][k][j][i] = a1 * uacc[0][k][j][i] + cof * r1;
        uacc[1][k][j][i] = a1 * uacc[1][k][j][i] + cof * r2;
        uacc[2][k][j][i] = a1 * uacc[2][k][j][i] + cof * r3;
    }
}
