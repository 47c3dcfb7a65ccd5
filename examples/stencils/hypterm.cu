// The hyperbolic terms of the compressible Navier-Stokes equations, as in the ExpCNS mini-app
// (Rawat et al., PPoPP 2018, Table 1): the fluxes of mass, momentum and energy by central
// differences of eighth order.
//
// cons_1 to cons_3 are the momenta, cons_4 is the energy; q_1 to q_3 are the velocities, q_4 is the
// pressure; flux_0 belongs to the mass. dxinv0 to dxinv2 are one over the spacing along x, y and z,
// which are i, j and k here.
//
// AT hides the layout of the arrays, whose sizes are arguments.

// The first derivative at distances 1 to 4.
#define ALP 0.8
#define BET (-0.2)
#define GAM (4.0 / 105.0)
#define DEL (-1.0 / 280.0)

#define AT(k, j, i) (((k) * M + (j)) * N + (i))

#pragma warpwright stencil
__global__ void hypterm(double *__restrict__ flux_0, double *__restrict__ flux_1,
                        double *__restrict__ flux_2, double *__restrict__ flux_3,
                        double *__restrict__ flux_4, const double *__restrict__ cons_1,
                        const double *__restrict__ cons_2, const double *__restrict__ cons_3,
                        const double *__restrict__ cons_4, const double *__restrict__ q_1,
                        const double *__restrict__ q_2, const double *__restrict__ q_3,
                        const double *__restrict__ q_4, double dxinv0, double dxinv1,
                        double dxinv2, int L, int M, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    int k = blockIdx.z * blockDim.z + threadIdx.z;
    if (i < 4 || j < 4 || k < 4) return;
    if (i > N - 5 || j > M - 5 || k > L - 5) return;

    // Differences along x.
    flux_0[AT(k, j, i)] = -((
        ALP * (cons_1[AT(k, j, i + 1)] - cons_1[AT(k, j, i - 1)]) +
        BET * (cons_1[AT(k, j, i + 2)] - cons_1[AT(k, j, i - 2)]) +
        GAM * (cons_1[AT(k, j, i + 3)] - cons_1[AT(k, j, i - 3)]) +
        DEL * (cons_1[AT(k, j, i + 4)] - cons_1[AT(k, j, i - 4)])) * dxinv0);
    flux_1[AT(k, j, i)] = -((
        ALP * (cons_1[AT(k, j, i + 1)] * q_1[AT(k, j, i + 1)] -
          cons_1[AT(k, j, i - 1)] * q_1[AT(k, j, i - 1)] +
          (q_4[AT(k, j, i + 1)] - q_4[AT(k, j, i - 1)])) +
        BET * (cons_1[AT(k, j, i + 2)] * q_1[AT(k, j, i + 2)] -
          cons_1[AT(k, j, i - 2)] * q_1[AT(k, j, i - 2)] +
          (q_4[AT(k, j, i + 2)] - q_4[AT(k, j, i - 2)])) +
        GAM * (cons_1[AT(k, j, i + 3)] * q_1[AT(k, j, i + 3)] -
          cons_1[AT(k, j, i - 3)] * q_1[AT(k, j, i - 3)] +
          (q_4[AT(k, j, i + 3)] - q_4[AT(k, j, i - 3)])) +
        DEL * (cons_1[AT(k, j, i + 4)] * q_1[AT(k, j, i + 4)] -
          cons_1[AT(k, j, i - 4)] * q_1[AT(k, j, i - 4)] +
          (q_4[AT(k, j, i + 4)] - q_4[AT(k, j, i - 4)]))) * dxinv0);
    flux_2[AT(k, j, i)] = -((
        ALP * (cons_2[AT(k, j, i + 1)] * q_1[AT(k, j, i + 1)] -
          cons_2[AT(k, j, i - 1)] * q_1[AT(k, j, i - 1)]) +
        BET * (cons_2[AT(k, j, i + 2)] * q_1[AT(k, j, i + 2)] -
          cons_2[AT(k, j, i - 2)] * q_1[AT(k, j, i - 2)]) +
        GAM * (cons_2[AT(k, j, i + 3)] * q_1[AT(k, j, i + 3)] -
          cons_2[AT(k, j, i - 3)] * q_1[AT(k, j, i - 3)]) +
        DEL * (cons_2[AT(k, j, i + 4)] * q_1[AT(k, j, i + 4)] -
          cons_2[AT(k, j, i - 4)] * q_1[AT(k, j, i - 4)])) * dxinv0);
    flux_3[AT(k, j, i)] = -((
        ALP * (cons_3[AT(k, j, i + 1)] * q_1[AT(k, j, i + 1)] -
          cons_3[AT(k, j, i - 1)] * q_1[AT(k, j, i - 1)]) +
        BET * (cons_3[AT(k, j, i + 2)] * q_1[AT(k, j, i + 2)] -
          cons_3[AT(k, j, i - 2)] * q_1[AT(k, j, i - 2)]) +
        GAM * (cons_3[AT(k, j, i + 3)] * q_1[AT(k, j, i + 3)] -
          cons_3[AT(k, j, i - 3)] * q_1[AT(k, j, i - 3)]) +
        DEL * (cons_3[AT(k, j, i + 4)] * q_1[AT(k, j, i + 4)] -
          cons_3[AT(k, j, i - 4)] * q_1[AT(k, j, i - 4)])) * dxinv0);
    flux_4[AT(k, j, i)] = -((
        ALP * (cons_4[AT(k, j, i + 1)] * q_1[AT(k, j, i + 1)] -
          cons_4[AT(k, j, i - 1)] * q_1[AT(k, j, i - 1)] +
          (q_4[AT(k, j, i + 1)] * q_1[AT(k, j, i + 1)] -
            q_4[AT(k, j, i - 1)] * q_1[AT(k, j, i - 1)])) +
        BET * (cons_4[AT(k, j, i + 2)] * q_1[AT(k, j, i + 2)] -
          cons_4[AT(k, j, i - 2)] * q_1[AT(k, j, i - 2)] +
          (q_4[AT(k, j, i + 2)] * q_1[AT(k, j, i + 2)] -
            q_4[AT(k, j, i - 2)] * q_1[AT(k, j, i - 2)])) +
        GAM * (cons_4[AT(k, j, i + 3)] * q_1[AT(k, j, i + 3)] -
          cons_4[AT(k, j, i - 3)] * q_1[AT(k, j, i - 3)] +
          (q_4[AT(k, j, i + 3)] * q_1[AT(k, j, i + 3)] -
            q_4[AT(k, j, i - 3)] * q_1[AT(k, j, i - 3)])) +
        DEL * (cons_4[AT(k, j, i + 4)] * q_1[AT(k, j, i + 4)] -
          cons_4[AT(k, j, i - 4)] * q_1[AT(k, j, i - 4)] +
          (q_4[AT(k, j, i + 4)] * q_1[AT(k, j, i + 4)] -
            q_4[AT(k, j, i - 4)] * q_1[AT(k, j, i - 4)]))) * dxinv0);

    // Differences along y.
    flux_0[AT(k, j, i)] -= (
        ALP * (cons_2[AT(k, j + 1, i)] - cons_2[AT(k, j - 1, i)]) +
        BET * (cons_2[AT(k, j + 2, i)] - cons_2[AT(k, j - 2, i)]) +
        GAM * (cons_2[AT(k, j + 3, i)] - cons_2[AT(k, j - 3, i)]) +
        DEL * (cons_2[AT(k, j + 4, i)] - cons_2[AT(k, j - 4, i)])) * dxinv1;
    flux_1[AT(k, j, i)] -= (
        ALP * (cons_1[AT(k, j + 1, i)] * q_2[AT(k, j + 1, i)] -
          cons_1[AT(k, j - 1, i)] * q_2[AT(k, j - 1, i)]) +
        BET * (cons_1[AT(k, j + 2, i)] * q_2[AT(k, j + 2, i)] -
          cons_1[AT(k, j - 2, i)] * q_2[AT(k, j - 2, i)]) +
        GAM * (cons_1[AT(k, j + 3, i)] * q_2[AT(k, j + 3, i)] -
          cons_1[AT(k, j - 3, i)] * q_2[AT(k, j - 3, i)]) +
        DEL * (cons_1[AT(k, j + 4, i)] * q_2[AT(k, j + 4, i)] -
          cons_1[AT(k, j - 4, i)] * q_2[AT(k, j - 4, i)])) * dxinv1;
    flux_2[AT(k, j, i)] -= (
        ALP * (cons_2[AT(k, j + 1, i)] * q_2[AT(k, j + 1, i)] -
          cons_2[AT(k, j - 1, i)] * q_2[AT(k, j - 1, i)] +
          (q_4[AT(k, j + 1, i)] - q_4[AT(k, j - 1, i)])) +
        BET * (cons_2[AT(k, j + 2, i)] * q_2[AT(k, j + 2, i)] -
          cons_2[AT(k, j - 2, i)] * q_2[AT(k, j - 2, i)] +
          (q_4[AT(k, j + 2, i)] - q_4[AT(k, j - 2, i)])) +
        GAM * (cons_2[AT(k, j + 3, i)] * q_2[AT(k, j + 3, i)] -
          cons_2[AT(k, j - 3, i)] * q_2[AT(k, j - 3, i)] +
          (q_4[AT(k, j + 3, i)] - q_4[AT(k, j - 3, i)])) +
        DEL * (cons_2[AT(k, j + 4, i)] * q_2[AT(k, j + 4, i)] -
          cons_2[AT(k, j - 4, i)] * q_2[AT(k, j - 4, i)] +
          (q_4[AT(k, j + 4, i)] - q_4[AT(k, j - 4, i)]))) * dxinv1;
    flux_3[AT(k, j, i)] -= (
        ALP * (cons_3[AT(k, j + 1, i)] * q_2[AT(k, j + 1, i)] -
          cons_3[AT(k, j - 1, i)] * q_2[AT(k, j - 1, i)]) +
        BET * (cons_3[AT(k, j + 2, i)] * q_2[AT(k, j + 2, i)] -
          cons_3[AT(k, j - 2, i)] * q_2[AT(k, j - 2, i)]) +
        GAM * (cons_3[AT(k, j + 3, i)] * q_2[AT(k, j + 3, i)] -
          cons_3[AT(k, j - 3, i)] * q_2[AT(k, j - 3, i)]) +
        DEL * (cons_3[AT(k, j + 4, i)] * q_2[AT(k, j + 4, i)] -
          cons_3[AT(k, j - 4, i)] * q_2[AT(k, j - 4, i)])) * dxinv1;
    flux_4[AT(k, j, i)] -= (
        ALP * (cons_4[AT(k, j + 1, i)] * q_2[AT(k, j + 1, i)] -
          cons_4[AT(k, j - 1, i)] * q_2[AT(k, j - 1, i)] +
          (q_4[AT(k, j + 1, i)] * q_2[AT(k, j + 1, i)] -
            q_4[AT(k, j - 1, i)] * q_2[AT(k, j - 1, i)])) +
        BET * (cons_4[AT(k, j + 2, i)] * q_2[AT(k, j + 2, i)] -
          cons_4[AT(k, j - 2, i)] * q_2[AT(k, j - 2, i)] +
          (q_4[AT(k, j + 2, i)] * q_2[AT(k, j + 2, i)] -
            q_4[AT(k, j - 2, i)] * q_2[AT(k, j - 2, i)])) +
        GAM * (cons_4[AT(k, j + 3, i)] * q_2[AT(k, j + 3, i)] -
          cons_4[AT(k, j - 3, i)] * q_2[AT(k, j - 3, i)] +
          (q_4[AT(k, j + 3, i)] * q_2[AT(k, j + 3, i)] -
            q_4[AT(k, j - 3, i)] * q_2[AT(k, j - 3, i)])) +
        DEL * (cons_4[AT(k, j + 4, i)] * q_2[AT(k, j + 4, i)] -
          cons_4[AT(k, j - 4, i)] * q_2[AT(k, j - 4, i)] +
          (q_4[AT(k, j + 4, i)] * q_2[AT(k, j + 4, i)] -
            q_4[AT(k, j - 4, i)] * q_2[AT(k, j - 4, i)]))) * dxinv1;

    // Differences along z.
    flux_0[AT(k, j, i)] -= (
        ALP * (cons_3[AT(k + 1, j, i)] - cons_3[AT(k - 1, j, i)]) +
        BET * (cons_3[AT(k + 2, j, i)] - cons_3[AT(k - 2, j, i)]) +
        GAM * (cons_3[AT(k + 3, j, i)] - cons_3[AT(k - 3, j, i)]) +
        DEL * (cons_3[AT(k + 4, j, i)] - cons_3[AT(k - 4, j, i)])) * dxinv2;
    flux_1[AT(k, j, i)] -= (
        ALP * (cons_1[AT(k + 1, j, i)] * q_3[AT(k + 1, j, i)] -
          cons_1[AT(k - 1, j, i)] * q_3[AT(k - 1, j, i)]) +
        BET * (cons_1[AT(k + 2, j, i)] * q_3[AT(k + 2, j, i)] -
          cons_1[AT(k - 2, j, i)] * q_3[AT(k - 2, j, i)]) +
        GAM * (cons_1[AT(k + 3, j, i)] * q_3[AT(k + 3, j, i)] -
          cons_1[AT(k - 3, j, i)] * q_3[AT(k - 3, j, i)]) +
        DEL * (cons_1[AT(k + 4, j, i)] * q_3[AT(k + 4, j, i)] -
          cons_1[AT(k - 4, j, i)] * q_3[AT(k - 4, j, i)])) * dxinv2;
    flux_2[AT(k, j, i)] -= (
        ALP * (cons_2[AT(k + 1, j, i)] * q_3[AT(k + 1, j, i)] -
          cons_2[AT(k - 1, j, i)] * q_3[AT(k - 1, j, i)]) +
        BET * (cons_2[AT(k + 2, j, i)] * q_3[AT(k + 2, j, i)] -
          cons_2[AT(k - 2, j, i)] * q_3[AT(k - 2, j, i)]) +
        GAM * (cons_2[AT(k + 3, j, i)] * q_3[AT(k + 3, j, i)] -
          cons_2[AT(k - 3, j, i)] * q_3[AT(k - 3, j, i)]) +
        DEL * (cons_2[AT(k + 4, j, i)] * q_3[AT(k + 4, j, i)] -
          cons_2[AT(k - 4, j, i)] * q_3[AT(k - 4, j, i)])) * dxinv2;
    flux_3[AT(k, j, i)] -= (
        ALP * (cons_3[AT(k + 1, j, i)] * q_3[AT(k + 1, j, i)] -
          cons_3[AT(k - 1, j, i)] * q_3[AT(k - 1, j, i)] +
          (q_4[AT(k + 1, j, i)] - q_4[AT(k - 1, j, i)])) +
        BET * (cons_3[AT(k + 2, j, i)] * q_3[AT(k + 2, j, i)] -
          cons_3[AT(k - 2, j, i)] * q_3[AT(k - 2, j, i)] +
          (q_4[AT(k + 2, j, i)] - q_4[AT(k - 2, j, i)])) +
        GAM * (cons_3[AT(k + 3, j, i)] * q_3[AT(k + 3, j, i)] -
          cons_3[AT(k - 3, j, i)] * q_3[AT(k - 3, j, i)] +
          (q_4[AT(k + 3, j, i)] - q_4[AT(k - 3, j, i)])) +
        DEL * (cons_3[AT(k + 4, j, i)] * q_3[AT(k + 4, j, i)] -
          cons_3[AT(k - 4, j, i)] * q_3[AT(k - 4, j, i)] +
          (q_4[AT(k + 4, j, i)] - q_4[AT(k - 4, j, i)]))) * dxinv2;
    flux_4[AT(k, j, i)] -= (
        ALP * (cons_4[AT(k + 1, j, i)] * q_3[AT(k + 1, j, i)] -
          cons_4[AT(k - 1, j, i)] * q_3[AT(k - 1, j, i)] +
          (q_4[AT(k + 1, j, i)] * q_3[AT(k + 1, j, i)] -
            q_4[AT(k - 1, j, i)] * q_3[AT(k - 1, j, i)])) +
        BET * (cons_4[AT(k + 2, j, i)] * q_3[AT(k + 2, j, i)] -
          cons_4[AT(k - 2, j, i)] * q_3[AT(k - 2, j, i)] +
          (q_4[AT(k + 2, j, i)] * q_3[AT(k + 2, j, i)] -
            q_4[AT(k - 2, j, i)] * q_3[AT(k - 2, j, i)])) +
        GAM * (cons_4[AT(k + 3, j, i)] * q_3[AT(k + 3, j, i)] -
          cons_4[AT(k - 3, j, i)] * q_3[AT(k - 3, j, i)] +
          (q_4[AT(k + 3, j, i)] * q_3[AT(k + 3, j, i)] -
            q_4[AT(k - 3, j, i)] * q_3[AT(k - 3, j, i)])) +
        DEL * (cons_4[AT(k + 4, j, i)] * q_3[AT(k + 4, j, i)] -
          cons_4[AT(k - 4, j, i)] * q_3[AT(k - 4, j, i)] +
          (q_4[AT(k + 4, j, i)] * q_3[AT(k + 4, j, i)] -
            q_4[AT(k - 4, j, i)] * q_3[AT(k - 4, j, i)]))) * dxinv2;
}
