// Velocity gradients and hourglass forces on an unstructured mesh of eight-node hexahedra, as an
// explicit Lagrangian hydrodynamics code computes them once per time step.
//
// One thread per element. It gathers the coordinates and velocities of its eight nodes, forms the
// mean gradient operator of Flanagan and Belytschko (Int. J. Numer. Methods Eng. 17, 1981), from
// it the volume and the velocity gradient, and then the forces that resist the four hourglass
// modes. Nodes 0 to 3 go around the bottom face, 4 to 7 lie above them.

namespace {

constexpr int NODES = 8;
constexpr int MODES = 4;

// Hourglass base vectors: the products of two or three of the corners' signs.
__device__ constexpr double GAMMA[MODES][NODES] = {{1, 1, -1, -1, -1, -1, 1, 1},
                                                   {1, -1, -1, 1, -1, 1, 1, -1},
                                                   {1, -1, 1, -1, 1, -1, 1, -1},
                                                   {-1, 1, -1, 1, 1, -1, 1, -1}};

// d(volume)/dx_0 of a trilinear hexahedron in terms of the y and z coordinates of the six nodes
// that share a face with node 0; the other nodes and axes follow by permutation.
__device__ __forceinline__ double volume_derivative(const double (&y)[NODES],
                                                    const double (&z)[NODES], int n1, int n2,
                                                    int n3, int n4, int n5, int n7) {
    return (1.0 / 12.0) * (y[n1] * (z[n5] - z[n2] - z[n3] + z[n4]) + y[n2] * (z[n1] - z[n3])
                           + y[n3] * (z[n2] - z[n7] - z[n4] + z[n1])
                           + y[n4] * (z[n7] - z[n5] - z[n1] + z[n3]) + y[n5] * (z[n4] - z[n1])
                           + y[n7] * (z[n3] - z[n4]));
}

// All eight derivatives: node numbers as seen from each node in turn.
__device__ __forceinline__ void volume_gradient(const double (&y)[NODES], const double (&z)[NODES],
                                                double (&b)[NODES]) {
    b[0] = volume_derivative(y, z, 1, 2, 3, 4, 5, 7);
    b[1] = volume_derivative(y, z, 2, 3, 0, 5, 6, 4);
    b[2] = volume_derivative(y, z, 3, 0, 1, 6, 7, 5);
    b[3] = volume_derivative(y, z, 0, 1, 2, 7, 4, 6);
    b[4] = volume_derivative(y, z, 7, 6, 5, 0, 3, 1);
    b[5] = volume_derivative(y, z, 4, 7, 6, 1, 0, 2);
    b[6] = volume_derivative(y, z, 5, 4, 7, 2, 1, 3);
    b[7] = volume_derivative(y, z, 6, 5, 4, 3, 2, 0);
}

}  // namespace

// nodes: [8][elements]; x_of, y_of, z_of: [mesh_nodes]; velocity: [3][mesh_nodes]
// density, sound_speed: [elements]
// volume: [elements]; gradient: [9][elements], dv_i/dx_j; force: [24][elements], per axis and node
extern "C" __global__ void hex_gradients(int elements, int mesh_nodes, double hourglass,
                                         const int* __restrict__ nodes,
                                         const double* __restrict__ x_of,
                                         const double* __restrict__ y_of,
                                         const double* __restrict__ z_of,
                                         const double* __restrict__ velocity,
                                         const double* __restrict__ density,
                                         const double* __restrict__ sound_speed,
                                         double* __restrict__ volume,
                                         double* __restrict__ gradient,
                                         double* __restrict__ force) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= elements) return;

    double x[3][NODES], v[3][NODES];
#pragma unroll
    for (int n = 0; n < NODES; ++n) {
        int node = nodes[n * elements + e];
        x[0][n] = x_of[node];
        x[1][n] = y_of[node];
        x[2][n] = z_of[node];
#pragma unroll
        for (int i = 0; i < 3; ++i) v[i][n] = velocity[i * mesh_nodes + node];
    }

    double b[3][NODES];
    volume_gradient(x[1], x[2], b[0]);
    volume_gradient(x[2], x[0], b[1]);
    volume_gradient(x[0], x[1], b[2]);
    // Volume is homogeneous of degree one in the coordinates of each axis.
    double vol = 0.0;
#pragma unroll
    for (int n = 0; n < NODES; ++n) vol += b[0][n] * x[0][n];
    double per_volume = 1.0 / vol;
    volume[e] = vol;

#pragma unroll
    for (int i = 0; i < 3; ++i)
#pragma unroll
        for (int j = 0; j < 3; ++j) {
            double sum = 0.0;
#pragma unroll
            for (int n = 0; n < NODES; ++n) sum += b[j][n] * v[i][n];
            gradient[(3 * i + j) * elements + e] = sum * per_volume;
        }

    // Hourglass shape vectors: the base vectors made orthogonal to all linear fields.
    double length = cbrt(vol);
    double coefficient = hourglass * density[e] * sound_speed[e] * length * length;
    double f[3][NODES] = {};
#pragma unroll
    for (int mode = 0; mode < MODES; ++mode) {
        double moment[3];
#pragma unroll
        for (int i = 0; i < 3; ++i) {
            moment[i] = 0.0;
#pragma unroll
            for (int n = 0; n < NODES; ++n) moment[i] += GAMMA[mode][n] * x[i][n];
            moment[i] *= per_volume;
        }
        double shape[NODES], rate[3] = {};
#pragma unroll
        for (int n = 0; n < NODES; ++n) {
            shape[n] = GAMMA[mode][n] - (b[0][n] * moment[0] + b[1][n] * moment[1] + b[2][n] * moment[2]);
#pragma unroll
            for (int i = 0; i < 3; ++i) rate[i] += shape[n] * v[i][n];
        }
#pragma unroll
        for (int n = 0; n < NODES; ++n)
#pragma unroll
            for (int i = 0; i < 3; ++i) f[i][n] -= coefficient * rate[i] * shape[n];
    }
#pragma unroll
    for (int i = 0; i < 3; ++i)
#pragma unroll
        for (int n = 0; n < NODES; ++n) force[(i * NODES + n) * elements + e] = f[i][n];
}
