__global__ void pitch_elems(const float *in, float *out, int pitch, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= 1 && x < w - 1 && y >= 1 && y < h - 1) {
        const float *row = in + y * pitch;
        out[y * pitch + x] = 0.25f * (row[x - pitch] + row[x + pitch] + row[x - 1] + row[x + 1]);
    }
}
// expect:
// y: 1 and 1 cells are not computed
// x: 1 and 1 cells are not computed
// function pitch_elems (in, out) {
//   out[y][x] = 0.25f * (in[y-1][x] + in[y+1][x] + in[y][x-1] + in[y][x+1]);
// }
// parameter pitch, w, h;
// iterator y, x;
// float in[h][pitch], out[h][pitch];
// points x = 1 : w-1;
// pitch_elems (in, out);
// return out;
