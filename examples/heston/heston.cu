// European puts under Heston's stochastic volatility by the Fourier cosine method.
//
// One thread per model and maturity prices eight strikes at once: they share the characteristic
// function, whose evaluation costs a complex square root, logarithm and exponential per term
// (Fang and Oosterlee, SIAM J. Sci. Comput. 31, 2008; the function in the form of Albrecher et
// al. 2007, which is continuous along the real axis). Per strike a thread carries a phase, which
// turns by the same angle from term to term, and a sum.

namespace {

constexpr int STRIKES = 8;
constexpr double PI = 3.14159265358979323846;

struct Complex {
    double re, im;
};

__device__ __forceinline__ Complex operator+(Complex a, Complex b) {
    return {a.re + b.re, a.im + b.im};
}
__device__ __forceinline__ Complex operator-(Complex a, Complex b) {
    return {a.re - b.re, a.im - b.im};
}
__device__ __forceinline__ Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
__device__ __forceinline__ Complex operator*(double s, Complex a) { return {s * a.re, s * a.im}; }
__device__ __forceinline__ Complex operator/(Complex a, Complex b) {
    double inverse = 1.0 / (b.re * b.re + b.im * b.im);
    return inverse * (a * Complex{b.re, -b.im});
}
__device__ __forceinline__ Complex exponential(Complex a) {
    double s, c, size = exp(a.re);
    sincos(a.im, &s, &c);
    return {size * c, size * s};
}
__device__ __forceinline__ Complex logarithm(Complex a) {
    return {0.5 * log(a.re * a.re + a.im * a.im), atan2(a.im, a.re)};
}
// The root in the right half plane.
__device__ __forceinline__ Complex root(Complex a) {
    double size = sqrt(a.re * a.re + a.im * a.im);
    double re = sqrt(0.5 * (size + fabs(a.re))), im = 0.5 * fabs(a.im) / re;
    return a.re >= 0.0 ? Complex{re, copysign(im, a.im)} : Complex{im, copysign(re, a.im)};
}

// Variance now, its mean in the long run, its reversion and volatility, and its correlation.
struct Model {
    double variance, mean, reversion, volatility, correlation;
};

// Characteristic function of the logarithm of price over forward at time t.
__device__ Complex characteristic(const Model& m, double t, double u) {
    const double v2 = m.volatility * m.volatility;
    Complex beta = {m.reversion, -m.correlation * m.volatility * u};
    Complex d = root(beta * beta + v2 * Complex{u * u, u});
    Complex low = beta - d, g = low / (beta + d);
    Complex decay = exponential(-t * d), one = {1.0, 0.0};
    Complex rest = one - g * decay;
    Complex level = (m.variance / v2) * ((one - decay) / rest * low);
    Complex drift = (m.reversion * m.mean / v2) * (t * low - 2.0 * logarithm(rest / (one - g)));
    return exponential(level + drift);
}

}  // namespace

// model: [5][n]; maturity: [n]; moneyness: [STRIKES], logarithms of forward over strike
// put: [STRIKES][n], undiscounted, in units of the strike
// width: half the interval of the cosine series, in standard deviations of the logarithm
extern "C" __global__ void __launch_bounds__(512)
heston_puts(int n, int terms, double width, const double* __restrict__ model,
            const double* __restrict__ maturity, const double* __restrict__ moneyness,
            double* __restrict__ put) {
    const int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    const Model m = {model[id], model[n + id], model[2 * n + id], model[3 * n + id],
                     model[4 * n + id]};
    const double t = maturity[id];
    // The series lives on [-half, half], sized by the expected variance.
    const double decay = (1.0 - exp(-m.reversion * t)) / m.reversion;
    const double half = width * sqrt(m.mean * t + (m.variance - m.mean) * decay);
    const double step = PI / (2.0 * half);

    Complex phase[STRIKES], turn[STRIKES];
    double sum[STRIKES];
#pragma unroll
    for (int k = 0; k < STRIKES; ++k) {
        phase[k] = {1.0, 0.0};
        turn[k] = exponential({0.0, step * (moneyness[k] + half)});
        // The first term counts half. The payoff is that of [-half, 0].
        sum[k] = 0.5 * (half - 1.0 + exp(-half));
    }
    Complex edge = {1.0, 0.0};  // i^k: half way through the interval, the payoff ends
    for (int k = 1; k < terms; ++k) {
        const double u = k * step;
        edge = {-edge.im, edge.re};
        const double chi = (edge.re - exp(-half) + u * edge.im) / (1.0 + u * u);
        const double weight = edge.im / u - chi;
        const Complex value = weight * characteristic(m, t, u);
#pragma unroll
        for (int j = 0; j < STRIKES; ++j) {
            phase[j] = phase[j] * turn[j];
            sum[j] += value.re * phase[j].re - value.im * phase[j].im;
        }
    }
#pragma unroll
    for (int j = 0; j < STRIKES; ++j) put[(long long)j * n + id] = sum[j] / half;
}
