__global__ void pitched(const float *in, float *out, size_t pitch, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= 1 && x < w - 1 && y >= 1 && y < h - 1) {
        const float *up = (const float *)((const char *)in + (y - 1) * pitch);
        const float *row = (const float *)((const char *)in + y * pitch);
        const float *down = (const float *)((const char *)in + (y + 1) * pitch);
        float *o = (float *)((char *)out + y * pitch);
        o[x] = 0.25f * (up[x] + down[x] + row[x - 1] + row[x + 1]);
    }
}
// expect:
// stencil::cast
//
//   × the pointer is cast to another element type
//    ╭─[course-pitched.cu:5:43]
//  4 │     if (x >= 1 && x < w - 1 && y >= 1 && y < h - 1) {
//  5 │         const float *up = (const float *)((const char *)in + (y - 1) * pitch);
//    ·                                           ────────┬───────
//    ·                                                   ╰── another type
//  6 │         const float *row = (const float *)((const char *)in + y * pitch);
//    ╰────
