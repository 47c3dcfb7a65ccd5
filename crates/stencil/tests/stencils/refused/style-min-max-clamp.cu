__global__ void clampd(float *out, const float *in, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) {
        float s = 0.f;
        for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx)
                s += in[min(max(y + dy, 0), h - 1) * w + min(max(x + dx, 0), w - 1)];
        out[y * w + x] = s * (1.0f / 9.0f);
    }
}
// expect:
// stencil::clamped
//
//   × an index that is clamped at the border is not understood
//    ╭─[style-min-max-clamp.cu:8:29]
//  7 │             for (int dx = -1; dx <= 1; ++dx)
//  8 │                 s += in[min(max(y + dy, 0), h - 1) * w + min(max(x + dx, 0), w - 1)];
//    ·                             ───────┬──────
//    ·                                    ╰── the larger or smaller one, depending on the place of the point
//  9 │         out[y * w + x] = s * (1.0f / 9.0f);
//    ╰────
//   help: compute the points next to the border in an `else` or a kernel of their own
