// A pass over CUDA C is compared with the kernel as written before its text is taken.
// test: pass across(32,8)
// test: pass tiles(32x8,points=1x2);across(32,8)
// test: pass team(128,4)

__global__ void turned(float *out, const float *in, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height)
        out[x * height + y] = in[y * width + x];
}

// expect: pass across(32,8)
// turned: the lanes of a warp are points along y, so that neighbours store neighbouring elements
// turned: `in` goes through shared memory in squares of 32, so that neighbours load neighbouring elements
// across(32, 8): the same in the emulator

// expect: pass tiles(32x8,points=1x2);across(32,8)
// turned: block merge: a block of 256 threads computes 32 x 16 points
// turned: thread merge: a thread computes 1 x 2 points, and what they share is loaded once
// turned: the lanes of a warp are points along y, so that neighbours store neighbouring elements
// turned: `in` goes through shared memory in squares of 32, so that neighbours load neighbouring elements
// tiles(32x8, points=1x2): the same in the emulator
// across(32, 8): the same in the emulator

// expect: pass team(128,4)
// turned: unchanged: there is no loop whose turns could be divided
