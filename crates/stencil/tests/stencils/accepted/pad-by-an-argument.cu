// the neighbour outside is a boundary value
__global__ void dirichlet(float *u1, const float *u0, float bc, float r, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) {
        float l, rr;
        if (i > 0) l = u0[i - 1]; else l = bc;
        if (i + 1 < n) rr = u0[i + 1]; else rr = bc;
        u1[i] = u0[i] + r * (l - 2.0f * u0[i] + rr);
    }
}
// expect:
// i: 1 and 1 cells are not computed
// function dirichlet (u1, u0, bc, r) {
//   float l = u0[i-1];
//   float rr = u0[i+1];
//   u1[i] = u0[i] + r * (l - 2.0f * u0[i] + rr);
// }
// // other points of i = 0 : n:
// //   float l = (i >= 1 ? u0[i-1] : 0.0f);
// //   float l_2 = (i < 1 ? bc : l);
// //   float rr = (i < n-1 ? u0[i+1] : 0.0f);
// //   float rr_2 = (i >= n-1 ? bc : rr);
// //   u1[i] = u0[i] + r * (l_2 - 2.0f * u0[i] + rr_2);
// parameter n;
// iterator i;
// float u1[n], u0[n], bc, r;
// dirichlet (u1, u0, bc, r);
// return u1;
