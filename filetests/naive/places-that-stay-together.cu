// test: accesses
//  b and h only occur as b * NH + h: they are one place, and so are b and t of the rows

__global__ void values(float *out, const float *att, const float *v, const float *scale, int B, int T, int NH, int hs) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= B * NH * T * hs) return;
    int d = idx % hs;
    int t = (idx / hs) % T;
    int h = (idx / (hs * T)) % NH;
    int b = idx / (hs * T * NH);
    float acc = 0.0f;
    for (int i = 0; i < T; i++)
        acc += att[((b * NH + h) * T + t) * T + i] * v[((b * NH + h) * T + i) * hs + d];
    out[idx] = acc;
}

// expect: accesses
// att[T * T * z + T * t + i]: the same element for neighbouring threads
// v[T * hs * z + hs * i + d]: neighbouring threads have neighbours: coalesced
// out[T * hs * z + hs * t + d]: neighbouring threads have neighbours: coalesced
