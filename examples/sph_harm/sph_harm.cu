// View-dependent colour from real spherical harmonics, and its gradients, as differentiable
// renderers of point clouds need them.
//
// One thread per point and view direction: evaluates the 25 basis functions up to degree 4, the
// colour they give with the point's 75 coefficients, and for a given derivative of the loss by
// the colour the derivatives by the coefficients and by the direction.
//
// On the unit sphere Y_lm = K_lm Q_lm(z) times Re or Im of (x + iy)^m, where Q_lm is the m-th
// derivative of the Legendre polynomial P_l; so dQ_lm/dz is Q_l,m+1, and no trigonometry is left.

namespace {

constexpr int DEGREE = 4;

// K_lm = sqrt((2l + 1) / (4 pi) * (l - m)! / (l + m)!), times sqrt(2) for m > 0.
__device__ constexpr float NORM[DEGREE + 1][DEGREE + 1] = {
    {0.28209479177387814f},
    {0.48860251190291992f, 0.48860251190291992f},
    {0.63078313050504009f, 0.36418281019735000f, 0.18209140509867500f},
    {0.74635266518023078f, 0.30469719964297734f, 0.09635371754670370f, 0.03933624052816820f},
    {0.84628437532163447f, 0.26761861742291577f, 0.06307831305050401f, 0.01685838828361838f,
     0.00596034033929400f},
};

// Q[l][m] for all m <= l, and one column more than the basis needs, for the derivatives.
__device__ __forceinline__ void legendre(float z, float (&q)[DEGREE + 1][DEGREE + 2]) {
#pragma unroll
    for (int l = 0; l <= DEGREE; ++l) {
        q[l][l + 1] = 0.0f;
        q[l][l] = l == 0 ? 1.0f : (2 * l - 1) * q[l - 1][l - 1];
        if (l > 0) q[l][l - 1] = (2 * l - 1) * z * q[l - 1][l - 1];
#pragma unroll
        for (int m = 0; m + 2 <= l; ++m)
            q[l][m] = ((2 * l - 1) * z * q[l - 1][m] - (l + m - 1) * q[l - 2][m]) * (1.0f / (l - m));
    }
}

}  // namespace

// direction: [3][n], of any length but zero
// coefficients, d_coefficients: [25][3][n]; colour, d_colour: [3][n]; d_direction: [3][n]
extern "C" __global__ void sph_harm(int n, const float* __restrict__ direction,
                                    const float* __restrict__ coefficients,
                                    const float* __restrict__ d_colour, float* __restrict__ colour,
                                    float* __restrict__ d_coefficients,
                                    float* __restrict__ d_direction) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float dx = direction[i], dy = direction[n + i], dz = direction[2 * n + i];
    float per_length = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz);
    float x = dx * per_length, y = dy * per_length, z = dz * per_length;

    // (x + iy)^m
    float re[DEGREE + 1], im[DEGREE + 1];
    re[0] = 1.0f;
    im[0] = 0.0f;
#pragma unroll
    for (int m = 1; m <= DEGREE; ++m) {
        re[m] = x * re[m - 1] - y * im[m - 1];
        im[m] = x * im[m - 1] + y * re[m - 1];
    }
    float q[DEGREE + 1][DEGREE + 2];
    legendre(z, q);

    float up[3], rgb[3] = {0.5f, 0.5f, 0.5f}, gx = 0.0f, gy = 0.0f, gz = 0.0f;
#pragma unroll
    for (int c = 0; c < 3; ++c) up[c] = d_colour[c * n + i];
#pragma unroll
    for (int l = 0; l <= DEGREE; ++l) {
#pragma unroll
        for (int m = -l; m <= l; ++m) {
            const int a = m < 0 ? -m : m, k = l * (l + 1) + m;
            float radial = NORM[l][a] * q[l][a];
            float value = radial * (m < 0 ? im[a] : re[a]);
            // The loss depends on this basis function through all three channels.
            float weight = 0.0f;
#pragma unroll
            for (int c = 0; c < 3; ++c) {
                float coefficient = coefficients[(k * 3 + c) * n + i];
                rgb[c] += value * coefficient;
                weight += up[c] * coefficient;
                d_coefficients[(k * 3 + c) * n + i] = up[c] * value;
            }
            if (a > 0) {
                // d(x + iy)^m = m (x + iy)^(m - 1) (dx + i dy)
                float slope = weight * radial * a;
                gx += slope * (m < 0 ? im[a - 1] : re[a - 1]);
                gy += slope * (m < 0 ? re[a - 1] : -im[a - 1]);
            }
            gz += weight * NORM[l][a] * q[l][a + 1] * (m < 0 ? im[a] : re[a]);
        }
    }
#pragma unroll
    for (int c = 0; c < 3; ++c) colour[c * n + i] = rgb[c];
    // Through the normalisation only the part across the direction survives.
    float along = gx * x + gy * y + gz * z;
    d_direction[i] = (gx - along * x) * per_length;
    d_direction[n + i] = (gy - along * y) * per_length;
    d_direction[2 * n + i] = (gz - along * z) * per_length;
}
