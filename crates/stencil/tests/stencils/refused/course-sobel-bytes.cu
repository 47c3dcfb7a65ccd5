__global__ void sobel(const unsigned char *in, unsigned char *out, int w, int h) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    int gx = -in[(y - 1) * w + x - 1] + in[(y - 1) * w + x + 1] - 2 * in[y * w + x - 1] + 2 * in[y * w + x + 1]
           - in[(y + 1) * w + x - 1] + in[(y + 1) * w + x + 1];
    int gy = in[(y - 1) * w + x - 1] + 2 * in[(y - 1) * w + x] + in[(y - 1) * w + x + 1]
           - in[(y + 1) * w + x - 1] - 2 * in[(y + 1) * w + x] - in[(y + 1) * w + x + 1];
    int m = abs(gx) + abs(gy);
    out[y * w + x] = m > 255 ? 255 : m;
}
// expect:
// stencil::argument
//
//   × `in` is no array of `float` or `double`
//    ╭─[course-sobel-bytes.cu:5:15]
//  4 │     if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
//  5 │     int gx = -in[(y - 1) * w + x - 1] + in[(y - 1) * w + x + 1] - 2 * in[y * w + x - 1] + 2 * in[y * w + x + 1]
//    ·               ─┬
//    ·                ╰── cannot be part of a stencil
//  6 │            - in[(y + 1) * w + x - 1] + in[(y + 1) * w + x + 1];
//    ╰────
