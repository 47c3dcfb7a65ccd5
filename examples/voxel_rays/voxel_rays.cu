// Rays through a volume of densities, as a laser scanner with several returns sees it.
//
// One thread follows one ray from voxel to voxel (Amanatides and Woo, Eurographics 1987) and keeps
// the first four that are dense enough. Everything is exact: the ray's next crossings with the
// three families of planes are compared as integers, all brought to the denominator |dx dy dz|.
// Threads of a warp look at different places and end at different times, so the kernel mostly
// waits for scattered loads.

namespace {

constexpr int RETURNS = 4;
constexpr int FRACTION = 256;  // positions are in 1/256 of a voxel

// The walk along one axis.
struct Axis {
    int voxel, step;
    long long next, period;  // when the next plane is crossed, and the time between planes

    // others: the product of the other two axes' speeds
    __device__ __forceinline__ Axis(int position, int direction, long long others) {
        const int inside = position % FRACTION;
        voxel = position / FRACTION;
        step = direction < 0 ? -1 : 1;
        next = (direction < 0 ? inside : FRACTION - inside) * others;
        period = FRACTION * others;
    }
    __device__ __forceinline__ void advance() {
        voxel += step;
        next += period;
    }
};

}  // namespace

// density: [size][size][size]; a voxel of at least `threshold` gives a return
// origin: [3][rays], in 1/256 of a voxel, inside the volume
// direction: [3][rays], d stands for a component of 2 d - 1999, which is never zero
// voxel: [4][rays], numbers of the voxels that return, in the order in which they are met, or -1
// time: [4][rays], when the ray enters them, times |dx dy dz|, or 0
extern "C" __global__ void voxel_rays(int rays, int size, int threshold,
                                      const unsigned char* __restrict__ density,
                                      const int* __restrict__ origin,
                                      const int* __restrict__ direction, int* __restrict__ voxel,
                                      long long* __restrict__ time) {
    const int ray = blockIdx.x * blockDim.x + threadIdx.x;
    if (ray >= rays) return;
    const int dx = 2 * direction[ray] - 1999, dy = 2 * direction[rays + ray] - 1999;
    const int dz = 2 * direction[2 * rays + ray] - 1999;
    const long long speed_x = abs(dx), speed_y = abs(dy), speed_z = abs(dz);
    Axis x(origin[ray], dx, speed_y * speed_z);
    Axis y(origin[rays + ray], dy, speed_z * speed_x);
    Axis z(origin[2 * rays + ray], dz, speed_x * speed_y);

    int hit[RETURNS];
    long long when[RETURNS], now = 0;
#pragma unroll
    for (int k = 0; k < RETURNS; ++k) {
        hit[k] = -1;
        when[k] = 0;
    }
    for (int hits = 0; hits < RETURNS;) {
        const int at = (z.voxel * size + y.voxel) * size + x.voxel;
        if (density[at] >= threshold) {
            // A select for each place instead of an index.
#pragma unroll
            for (int k = 0; k < RETURNS; ++k) {
                hit[k] = hits == k ? at : hit[k];
                when[k] = hits == k ? now : when[k];
            }
            ++hits;
        }
        // Of planes crossed together, x comes before y before z.
        if (x.next <= y.next && x.next <= z.next) {
            now = x.next;
            x.advance();
        } else if (y.next <= z.next) {
            now = y.next;
            y.advance();
        } else {
            now = z.next;
            z.advance();
        }
        if ((unsigned)x.voxel >= size || (unsigned)y.voxel >= size || (unsigned)z.voxel >= size) break;
    }
#pragma unroll
    for (int k = 0; k < RETURNS; ++k) {
        voxel[(long long)k * rays + ray] = hit[k];
        time[(long long)k * rays + ray] = when[k];
    }
}
