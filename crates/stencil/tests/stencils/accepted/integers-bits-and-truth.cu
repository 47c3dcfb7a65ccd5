__global__ void f(unsigned *out, const signed char *in, const unsigned short *w, int nx, int ny) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= nx - 1 || j < 1 || j >= ny - 1) return;
    int c = j * nx + i;
    int odd = (in[c - 1] & 1) + (in[c + 1] < 0) + (!w[c] || w[c - nx] == 3);
    unsigned short half = in[c + nx] * 300;
    half ^= w[c];
    if (in[c] & 4) odd = ~odd;
    out[c] = (half << 3) + odd % 5 + (unsigned char)in[c];
}
// expect:
// j: 1 and 1 cells are not computed
// i: 1 and 1 cells are not computed
// function f (out, in, w) {
//   int odd = bit_and(to_int(in[j][i-1]), 1) + if_less(to_int(in[j][i+1]), 0, 1, 0) + if_equal(to_int(w[j][i]), 0, 1, if_equal(to_int(w[j-1][i]), 3, 1, 0));
//   ushort half = to_ushort(to_int(in[j+1][i]) * 300);
//   ushort half_2 = to_ushort(bit_xor(to_int(half), to_int(w[j][i])));
//   int condition = if_equal(bit_and(to_int(in[j][i]), 4), 0, 0, 1);
//   int odd_2 = if_equal(condition, 0, odd, bit_xor(odd, -1));
//   out[j][i] = to_uint(shift_left(to_int(half_2), 3) + remainder_of(odd_2, 5) + to_int(to_uchar(in[j][i])));
// }
// parameter nx, ny;
// iterator j, i;
// schar in[ny][nx];
// ushort w[ny][nx];
// uint out[ny][nx];
// f (out, in, w);
// return out;
