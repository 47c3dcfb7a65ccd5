// An array may be a member of a structure that is passed by value.
// test: accesses

struct Arrays { float *data; int count; };

__global__ void k(const float *a, Arrays of)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < of.count) of.data[x] = a[x];
}

// expect: accesses
// a[x]: neighbouring threads have neighbours: coalesced
// of.data[x]: neighbouring threads have neighbours: coalesced
