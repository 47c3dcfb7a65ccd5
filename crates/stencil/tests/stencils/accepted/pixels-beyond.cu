// Numbers beyond the type of the elements that they meet: C compares them as `int`.
__global__ void beyond(signed char *out, const signed char *in, const unsigned char *level, int nx, int ny) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i >= nx - 1 || j >= ny - 1) return;
    int at = j * nx + i;
    int v = in[at - 1] <= 139 ? in[at + nx] : in[at + 1] + 7;
    if (in[at - nx] > -200) v += level[at];
    v += level[at + 1] < 300 ? 1 : 2;
    out[at] = in[at] == 255 ? 3 : v;
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function beyond (out, in, level) {
//   int v = if_at_most(to_int(in[j][i-1]), 139, to_int(in[j+1][i]), to_int(in[j][i+1]) + 7);
//   int condition = if_less(-200, to_int(in[j-1][i]), 1, 0);
//   int v_2 = if_equal(condition, 0, v, v + to_int(level[j][i]));
//   v_2 += if_less(to_int(level[j][i+1]), 300, 1, 2);
//   out[j][i] = to_schar(if_equal(to_int(in[j][i]), 255, 3, v_2));
// }
// parameter nx, ny;
// iterator j, i;
// uchar level[ny][nx];
// schar out[ny][nx], in[ny][nx];
// beyond (out, in, level);
// return out;
