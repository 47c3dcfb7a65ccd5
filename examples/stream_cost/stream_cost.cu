// What a point of a data stream would save by moving to a new centre (k-median clustering).
//
// For every point the cheapest of some candidate centres, with the cost weight x squared distance,
// and the gain over what the point costs where it is. The sum over the dimensions stops as soon as
// it exceeds the cheapest so far, so no loop has a known length. A thread comes back to its own
// row of 296 bytes for every candidate.

// point: [points][dimensions]; weight, cost: [points], cost is today's
// candidate: [candidates][dimensions]
// gain: [points], never negative; choice: [points], -1 to stay
extern "C" __global__ void stream_cost(int points, int dimensions, int candidates,
                                       const double* __restrict__ point,
                                       const double* __restrict__ weight,
                                       const double* __restrict__ cost,
                                       const double* __restrict__ candidate,
                                       double* __restrict__ gain, int* __restrict__ choice) {
    const int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= points) return;
    const double* __restrict__ own = point + (long long)id * dimensions;
    const double scale = weight[id], now = cost[id];
    double least = now / scale;  // as a squared distance
    int best = -1;
    for (int c = 0; c < candidates; ++c) {
        const double* __restrict__ other = candidate + c * dimensions;
        double sum = 0.0;
        int d = 0;
#pragma unroll 1
        for (; d < dimensions && sum < least; ++d) {
            const double difference = own[d] - other[d];
            sum += difference * difference;
        }
        if (sum < least) {
            least = sum;
            best = c;
        }
    }
    gain[id] = best < 0 ? 0.0 : now - scale * least;
    choice[id] = best;
}
