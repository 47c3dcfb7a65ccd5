// The assignment step of k-means: the nearest of a few centres for every point.
//
// A point's features lie next to each other, as a reader of records leaves them, so a thread owns
// a row and reads it again for every centre: 136 bytes per thread that pay only while they stay
// in the cache. The centres are read by all threads at once.

// point: [points][features]; centre: [centres][features]
// nearest: [points], the number of the centre; distance: [points], squared
extern "C" __global__ void kmeans(int points, int features, int centres,
                                  const float* __restrict__ point,
                                  const float* __restrict__ centre, int* __restrict__ nearest,
                                  float* __restrict__ distance) {
    const int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= points) return;
    const float* __restrict__ own = point + (long long)id * features;
    float best = __int_as_float(0x7f800000);
    int index = 0;
    for (int c = 0; c < centres; ++c) {
        const float* __restrict__ other = centre + c * features;
        float sum = 0.0f;
#pragma unroll 1
        for (int f = 0; f < features; ++f) {
            const float difference = own[f] - other[f];
            sum = fmaf(difference, difference, sum);
        }
        if (sum < best) {
            best = sum;
            index = c;
        }
    }
    nearest[id] = index;
    distance[id] = best;
}
