typedef unsigned int uint;
__global__ void diff(float *o, const float *i, const uint n) {
    const uint t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= 1u && t + 1u < n) o[t] = 0.5f * (i[t + 1u] - i[t - 1u]);
}
// expect:
// t: 1 and 1 cells are not computed
// function diff (o, i) {
//   o[t] = 0.5f * (i[t+1] - i[t-1]);
// }
// parameter n;
// iterator t;
// float o[n], i[n];
// diff (o, i);
// return o;
