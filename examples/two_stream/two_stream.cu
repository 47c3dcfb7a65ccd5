// Solar radiation through a layered atmosphere: the two-stream approximation and the adding method.
//
// One thread per column of 16 layers. Going up, each layer's reflectance and transmittance, for
// diffuse light and for the direct beam, come from the two-stream solution (Meador and Weaver,
// J. Atmos. Sci. 37, 1980, with the coefficients of Zdunkowski et al. 1980) and are added to what
// lies below; going down, the fluxes follow. What the second sweep needs of the first stays in
// registers: five numbers of each layer. The layers' formulas are written so that they hold for
// conservative scattering too, where the usual ones divide zero by zero.

namespace {

constexpr int LAYERS = 16;

}  // namespace

// depth, albedo, asymmetry: [LAYERS][n], optical depth, single-scattering albedo and asymmetry
// factor, from the top down; sun, ground: [n], cosine of the zenith angle and the ground's albedo
// up, down: [LAYERS + 1][n], fluxes at the interfaces for a beam of 1 at right angles to it; down
// holds the direct beam too
extern "C" __global__ void two_stream(int n, const float* __restrict__ depth,
                                      const float* __restrict__ albedo,
                                      const float* __restrict__ asymmetry,
                                      const float* __restrict__ sun,
                                      const float* __restrict__ ground, float* __restrict__ up,
                                      float* __restrict__ down) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= n) return;
    const float mu = sun[column];

    // The direct beam at each interface, per horizontal area.
    float beam[LAYERS + 1];
    beam[0] = mu;
#pragma unroll
    for (int i = 0; i < LAYERS; ++i)
        beam[i + 1] = beam[i] * expf(-depth[(long long)i * n + column] / mu);

    // below: the albedo of everything under an interface; source: what goes up there of the beam
    // alone; bounce: 1 / (1 - below * reflectance), the sum over all reflections to and fro.
    float below[LAYERS + 1], source[LAYERS + 1];
    float reflectance[LAYERS], transmittance[LAYERS], forward[LAYERS], bounce[LAYERS];
    below[LAYERS] = ground[column];
    source[LAYERS] = below[LAYERS] * beam[LAYERS];
#pragma unroll
    for (int i = LAYERS - 1; i >= 0; --i) {
        const float tau = depth[(long long)i * n + column];
        const float omega = albedo[(long long)i * n + column];
        const float g = asymmetry[(long long)i * n + column];
        const float g1 = 2.0f - omega * (1.25f + 0.75f * g);
        const float g2 = 0.75f * omega * (1.0f - g);
        const float g3 = 0.5f - 0.75f * g * mu, g4 = 1.0f - g3;
        const float a1 = g1 * g4 + g2 * g3, a2 = g1 * g3 + g2 * g4;
        const float k = sqrtf(fmaxf((g1 - g2) * (g1 + g2), 1e-8f)), kmu2 = k * k * mu;

        const float once = expf(-k * tau), twice = once * once;
        const float scaled = -expm1f(-2.0f * k * tau) / k;  // (1 - twice) / k
        const float shade = expf(-tau / mu);
        const float diffuse = 1.0f / (1.0f + twice + g1 * scaled);
        const float direct = omega * diffuse / (1.0f - kmu2 * mu);
        const float r = g2 * scaled * diffuse, t = 2.0f * once * diffuse;
        const float back = direct * (a2 * scaled - kmu2 * g3 * scaled
                                     + (g3 - a2 * mu) * (1.0f + twice - 2.0f * once * shade));
        const float ahead = direct * ((g4 + a1 * mu) * (2.0f * once - shade * (1.0f + twice))
                                      - shade * (a1 + kmu2 * g4) * scaled);

        reflectance[i] = r;
        transmittance[i] = t;
        forward[i] = ahead * beam[i];
        bounce[i] = 1.0f / (1.0f - below[i + 1] * r);
        below[i] = r + t * t * below[i + 1] * bounce[i];
        source[i] = back * beam[i] + t * (source[i + 1] + below[i + 1] * forward[i]) * bounce[i];
    }

    float falling = 0.0f;  // diffuse light from above
    up[column] = source[0];
    down[column] = beam[0];
#pragma unroll
    for (int i = 0; i < LAYERS; ++i) {
        falling = (transmittance[i] * falling + reflectance[i] * source[i + 1] + forward[i]) * bounce[i];
        up[(long long)(i + 1) * n + column] = below[i + 1] * falling + source[i + 1];
        down[(long long)(i + 1) * n + column] = falling + beam[i + 1];
    }
}
