// Prices of European options, calls and puts, by the formula of Black and Scholes; the normal distribution by the
// polynomial of Abramowitz and Stegun (26.2.17).

__device__ float normal(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float tail = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    tail *= 0.39894228f * expf(-0.5f * d * d);
    if (d > 0.0f) tail = 1.0f - tail;
    return tail;
}

#pragma warpwright naive sizes(n=16777216) outputs(call, put)
extern "C" __global__ void black_scholes(const float *price, const float *strike, const float *years, float *call,
                                         float *put, float rate, float volatility, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float root = sqrtf(years[i]);
        float d1 = (logf(price[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / (volatility * root);
        float d2 = d1 - volatility * root;
        float discounted = strike[i] * expf(-rate * years[i]);
        float first = normal(d1), second = normal(d2);
        call[i] = price[i] * first - discounted * second;
        put[i] = discounted * (1.0f - second) - price[i] * (1.0f - first);
    }
}

extern "C++" {

// a thread takes four neighbouring points, and loads or stores their elements of `call`, `price`, `put`, `strike`, `years` together
__global__ void __launch_bounds__(128)
black_scholes_fours(const float *price, const float *strike, const float *years, float *call, float *put, float rate, float volatility, int n, int i_end)
{
    const int first_2 = (blockIdx.x * 128 + threadIdx.x) * 4;
    if (first_2 >= i_end) return;
    alignas(16) float years_four[4];
    *reinterpret_cast<float4 *>(&years_four[0]) = *reinterpret_cast<const float4 *>(&years[first_2]);
    alignas(16) float price_four[4];
    *reinterpret_cast<float4 *>(&price_four[0]) = *reinterpret_cast<const float4 *>(&price[first_2]);
    alignas(16) float strike_four[4];
    *reinterpret_cast<float4 *>(&strike_four[0]) = *reinterpret_cast<const float4 *>(&strike[first_2]);
    alignas(16) float call_four[4];
    alignas(16) float put_four[4];
    #pragma unroll
    for (int turn = 0; turn < 4; turn++) {
        float root = sqrtf(years_four[turn]);
        float d1 = (logf(price_four[turn] / strike_four[turn]) + (rate + 0.5f * volatility * volatility) * years_four[turn]) / (volatility * root);
        float d2 = d1 - volatility * root;
        float discounted = strike_four[turn] * expf(-rate * years_four[turn]);
        float first = normal(d1);
        float second = normal(d2);
        call_four[turn] = price_four[turn] * first - discounted * second;
        put_four[turn] = discounted * (1.0f - second) - price_four[turn] * (1.0f - first);
    }
    *reinterpret_cast<float4 *>(&call[first_2]) = *reinterpret_cast<float4 *>(&call_four[0]);
    *reinterpret_cast<float4 *>(&put[first_2]) = *reinterpret_cast<float4 *>(&put_four[0]);
}

static inline cudaError_t black_scholes_try(dim3 grid, dim3 block, const float *price, const float *strike, const float *years, float *call, float *put, float rate, float volatility, int n, cudaStream_t stream_)
{
    if (cudaPeekAtLastError() != cudaSuccess) return cudaErrorNotSupported;
    if (grid.y * block.y != 1 ||
        grid.z * block.z != 1) return cudaErrorNotSupported;
    if (n < 0) return cudaErrorNotSupported;
    // The points that the launch computes.
    long long i_end = (long long)grid.x * block.x;
    if (i_end > (long long)n) i_end = (long long)n;
    if (i_end <= 0 ||
        i_end > 2147352576) return cudaErrorNotSupported;
    // Places and sizes are counted in 32 bits.
    if ((double)i_end - 1 > 2147483647.0 ||
        (double)n > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long price_first = 0;
    long long price_last = (long long)i_end - 1;
    long long strike_first = 0;
    long long strike_last = (long long)i_end - 1;
    long long years_first = 0;
    long long years_last = (long long)i_end - 1;
    long long call_first = 0;
    long long call_last = (long long)i_end - 1;
    long long put_first = 0;
    long long put_last = (long long)i_end - 1;
    if (((const char*)(price + price_first) < (const char*)(call + call_last) + 4 && (const char*)(call + call_first) < (const char*)(price + price_last) + 4) ||
        ((const char*)(price + price_first) < (const char*)(put + put_last) + 4 && (const char*)(put + put_first) < (const char*)(price + price_last) + 4) ||
        ((const char*)(strike + strike_first) < (const char*)(call + call_last) + 4 && (const char*)(call + call_first) < (const char*)(strike + strike_last) + 4) ||
        ((const char*)(strike + strike_first) < (const char*)(put + put_last) + 4 && (const char*)(put + put_first) < (const char*)(strike + strike_last) + 4) ||
        ((const char*)(years + years_first) < (const char*)(call + call_last) + 4 && (const char*)(call + call_first) < (const char*)(years + years_last) + 4) ||
        ((const char*)(years + years_first) < (const char*)(put + put_last) + 4 && (const char*)(put + put_first) < (const char*)(years + years_last) + 4) ||
        ((const char*)(call + call_first) < (const char*)(put + put_last) + 4 && (const char*)(put + put_first) < (const char*)(call + call_last) + 4)) return cudaErrorNotSupported;
    if ((size_t)years % 16 == 0 &&
        (size_t)price % 16 == 0 &&
        (size_t)strike % 16 == 0 &&
        (size_t)call % 16 == 0 &&
        (size_t)put % 16 == 0 &&
        ((long long)i_end) % 4 == 0) {
        black_scholes_fours<<<dim3((unsigned)((i_end + 511) / 512), (unsigned)(1), (unsigned)(1)), 128, 0, stream_>>>(
            price, strike, years, call, put, rate, volatility, n, (int)i_end);
        return cudaPeekAtLastError();
    }
    return cudaErrorNotSupported;
}

// In place of black_scholes<<<grid, block, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void black_scholes_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream_, const float *price, const float *strike, const float *years, float *call, float *put, float rate, float volatility, int n)
{
    if (black_scholes_try(grid, block, price, strike, years, call, put, rate, volatility, n, stream_) == cudaErrorNotSupported)
        black_scholes<<<grid, block, shared, stream_>>>(price, strike, years, call, put, rate, volatility, n);
}

}  // extern "C++"


extern "C" void run_black_scholes(const float *price, const float *strike, const float *years, float *call, float *put,
                                  float rate, float volatility, int n, cudaStream_t stream) {
    black_scholes_launch((n + 255) / 256, 256, 0, stream, price, strike, years, call, put, rate, volatility, n);
}
