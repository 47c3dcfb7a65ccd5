// test: accesses
//  a place of the launch that `/` and `%` take apart is several places

__global__ void permuted(float *q, const float *in, int B, int N, int NH, int d) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < B * NH * N * d) {
        int b = idx / (NH * N * d);
        int rest = idx % (NH * N * d);
        int h = rest / (N * d);
        rest = rest % (N * d);
        int n = rest / d;
        int c = rest % d;
        q[idx] = in[(b * N * NH * d) + (n * NH * d) + (h * d) + c];
    }
}

// expect: accesses
// in[N * NH * d * b + NH * d * n + d * h + c]: neighbouring threads have neighbours: coalesced
// q[N * NH * d * b + N * d * h + d * n + c]: neighbouring threads have neighbours: coalesced
