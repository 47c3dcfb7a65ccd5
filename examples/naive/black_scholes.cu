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

extern "C" void run_black_scholes(const float *price, const float *strike, const float *years, float *call, float *put,
                                  float rate, float volatility, int n, cudaStream_t stream) {
    black_scholes<<<(n + 255) / 256, 256, 0, stream>>>(price, strike, years, call, put, rate, volatility, n);
}
