__global__ void life(int *next, const int *now, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || x >= w - 1 || y < 1 || y >= h - 1) return;
    int n = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx != 0 || dy != 0) n += now[(y + dy) * w + x + dx];
    next[y * w + x] = n == 3 || (n == 2 && now[y * w + x]);
}
// expect:
// stencil::argument
//
//   × `now` is no array of `float` or `double`
//    ╭─[style-life.cu:8:42]
//  7 │         for (int dx = -1; dx <= 1; dx++)
//  8 │             if (dx != 0 || dy != 0) n += now[(y + dy) * w + x + dx];
//    ·                                          ─┬─
//    ·                                           ╰── cannot be part of a stencil
//  9 │     next[y * w + x] = n == 3 || (n == 2 && now[y * w + x]);
//    ╰────
