// test: accesses

__global__ void k(float *a, const float *b, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n)
    {
        int i;
        float s = 0;
        for (i = 0; i < n; i++)
            s += b[i * n + x];
        a[x] = s + i;
    }
}

// expect: accesses
// naive::name
//
//   × `i` is a counter after its loop
//     ╭─[refused-counters-after-their-loops.cu:12:20]
//  11 │             s += b[i * n + x];
//  12 │         a[x] = s + i;
//     ·                    ┬
//     ·                    ╰── used here
//  13 │     }
//     ╰────
