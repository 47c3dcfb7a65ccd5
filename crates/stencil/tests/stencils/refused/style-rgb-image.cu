__global__ void gray3(float3 *out, const float3 *in, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || x >= w - 1 || y >= h) return;
    float3 a = in[y * w + x - 1], b = in[y * w + x + 1];
    out[y * w + x] = make_float3(a.x + b.x, a.y + b.y, a.z + b.z);
}
// expect:
// stencil::argument
//
//   × `in` is no array of numbers of at most 32 bits or `double`
//    ╭─[style-rgb-image.cu:5:16]
//  4 │     if (x < 1 || x >= w - 1 || y >= h) return;
//  5 │     float3 a = in[y * w + x - 1], b = in[y * w + x + 1];
//    ·                ─┬
//    ·                 ╰── cannot be part of a stencil
//  6 │     out[y * w + x] = make_float3(a.x + b.x, a.y + b.y, a.z + b.z);
//    ╰────
