struct Params { float *out; const float *in; int2 size; float alpha; };
__global__ void jac(Params p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || j < 1 || i >= p.size.x - 1 || j >= p.size.y - 1) return;
    p.out[j * p.size.x + i] = p.alpha * (p.in[j * p.size.x + i - 1] + p.in[j * p.size.x + i + 1]);
}
// expect:
// stencil::argument
//
//   × `p.in` is an array in a structure
//    ╭─[arrays-in-a-structure.cu:6:42]
//  5 │     if (i < 1 || j < 1 || i >= p.size.x - 1 || j >= p.size.y - 1) return;
//  6 │     p.out[j * p.size.x + i] = p.alpha * (p.in[j * p.size.x + i - 1] + p.in[j * p.size.x + i + 1]);
//    ·                                          ──┬─
//    ·                                            ╰── cannot be part of a stencil
//  7 │ }
//    ╰────
