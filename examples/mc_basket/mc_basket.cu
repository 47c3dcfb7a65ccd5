// Monte Carlo price of an Asian basket option on eight correlated assets.
//
// One thread per path. Each time step draws eight independent normal numbers from the
// counter-based generator Philox4x32-10 (Salmon et al., SC 2011) by Box and Muller's method,
// correlates them with the Cholesky factor of the assets' correlation matrix, and moves the log
// prices; the basket's running mean decides the payoff. The generator's state, eight log prices
// and eight normal numbers are live at once. A block adds up its payoffs in a fixed order.

namespace {

constexpr int ASSETS = 8;
constexpr int PAIRS = ASSETS * (ASSETS + 1) / 2;

struct Market {
    float spot[ASSETS];        // today's prices
    float weight[ASSETS];      // in the basket
    float drift[ASSETS];       // (r - sigma^2 / 2) dt
    float factor[PAIRS];       // rows of the Cholesky factor, times sigma sqrt(dt)
    float strike;
    float discount;
};

// Ten rounds; four random words for a 128-bit counter and a 64-bit key.
__device__ __forceinline__ uint4 philox(uint4 counter, uint2 key) {
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        unsigned low0 = 0xD2511F53u * counter.x, high0 = __umulhi(0xD2511F53u, counter.x);
        unsigned low1 = 0xCD9E8D57u * counter.z, high1 = __umulhi(0xCD9E8D57u, counter.z);
        counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return counter;
}

// Two independent normal numbers from two words. u lies in (0, 1): the logarithm is finite.
__device__ __forceinline__ float2 box_muller(unsigned a, unsigned b) {
    float u = ((float)(a >> 8) + 0.5f) * (1.0f / 16777216.0f);
    float angle = (float)(b >> 8) * (1.0f / 8388608.0f);  // in units of pi
    float radius = sqrtf(-2.0f * logf(u)), s, c;
    sincospif(angle, &s, &c);
    return make_float2(radius * c, radius * s);
}

}  // namespace

// Every block writes the sum of its paths' discounted payoffs and the sum of their squares:
// sums: [2][blocks]
extern "C" __global__ void mc_basket(int steps, unsigned seed, Market market,
                                     float* __restrict__ sums) {
    extern __shared__ float shared[];  // [2][threads]
    const unsigned path = blockIdx.x * blockDim.x + threadIdx.x;

    float log_price[ASSETS];
#pragma unroll
    for (int a = 0; a < ASSETS; ++a) log_price[a] = 0.0f;
    float total = 0.0f;
    for (int step = 0; step < steps; ++step) {
        float normal[ASSETS];
#pragma unroll
        for (int half = 0; half < ASSETS / 4; ++half) {
            uint4 words = philox(make_uint4(path, step, half, 0), make_uint2(seed, 0x5EED));
            float2 first = box_muller(words.x, words.y), second = box_muller(words.z, words.w);
            normal[4 * half] = first.x;
            normal[4 * half + 1] = first.y;
            normal[4 * half + 2] = second.x;
            normal[4 * half + 3] = second.y;
        }
        float basket = 0.0f;
#pragma unroll
        for (int a = 0; a < ASSETS; ++a) {
            float move = market.drift[a];
#pragma unroll
            for (int b = 0; b <= a; ++b) move += market.factor[a * (a + 1) / 2 + b] * normal[b];
            log_price[a] += move;
            basket += market.weight[a] * market.spot[a] * expf(log_price[a]);
        }
        total += basket;
    }
    float payoff = market.discount * fmaxf(total / steps - market.strike, 0.0f);

    float* sum = shared;
    float* squares = shared + blockDim.x;
    sum[threadIdx.x] = payoff;
    squares[threadIdx.x] = payoff * payoff;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            sum[threadIdx.x] += sum[threadIdx.x + half];
            squares[threadIdx.x] += squares[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum[0];
        sums[gridDim.x + blockIdx.x] = squares[0];
    }
}
