// The accelerations of bodies by their gravity: position and mass in fours, softened.

#pragma warpwright naive sizes(n=32768) outputs(acceleration)
extern "C" __global__ void nbody(const float *body, float *acceleration, int n, float softening) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= n) return;
    float x = body[4 * idx], y = body[4 * idx + 1], z = body[4 * idx + 2];
    float ax = 0, ay = 0, az = 0;
    for (int i = 0; i < n; i++) {
        float dx = body[4 * i] - x;
        float dy = body[4 * i + 1] - y;
        float dz = body[4 * i + 2] - z;
        float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
        float pull = body[4 * i + 3] * inverse * inverse * inverse;
        ax += pull * dx;
        ay += pull * dy;
        az += pull * dz;
    }
    acceleration[3 * idx] = ax;
    acceleration[3 * idx + 1] = ay;
    acceleration[3 * idx + 2] = az;
}

extern "C" void run_nbody(const float *body, float *acceleration, int n, float softening, cudaStream_t stream) {
    nbody<<<(n + 255) / 256, 256, 0, stream>>>(body, acceleration, n, softening);
}
