__global__ void sharpen(const float4 *in, float4 *out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    float4 c = in[y * w + x], l = in[y * w + x - 1], r = in[y * w + x + 1];
    out[y * w + x] = make_float4(3 * c.x - l.x - r.x, 3 * c.y - l.y - r.y, 3 * c.z - l.z - r.z, c.w);
}
// expect:
// stencil::argument
//
//   × `in` is no array of numbers of at most 32 bits or `double`
//    ╭─[course-float4-pixels.cu:5:16]
//  4 │     if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
//  5 │     float4 c = in[y * w + x], l = in[y * w + x - 1], r = in[y * w + x + 1];
//    ·                ─┬
//    ·                 ╰── cannot be part of a stencil
//  6 │     out[y * w + x] = make_float4(3 * c.x - l.x - r.x, 3 * c.y - l.y - r.y, 3 * c.z - l.z - r.z, c.w);
//    ╰────
