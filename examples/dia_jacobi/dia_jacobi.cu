// A damped Jacobi sweep with a sparse matrix stored by diagonals: x + omega (b - A x) / diagonal.
//
// One thread per row of a matrix with 27 diagonals, as 27-point operators with variable
// coefficients have on a regular grid (DIA: Saad 2003, 3.4). The sweep is bound by memory: 27
// coefficients per row are read once, and to keep enough loads in flight they all wait in
// registers, together with the 27 values of x.

namespace {

constexpr int DIAGONALS = 27, MAIN = 13;

}  // namespace

// offset: [DIAGONALS], column minus row; offset[MAIN] is zero
// diagonal: [DIAGONALS][rows], by row; entries outside the matrix are not used
extern "C" __global__ void dia_jacobi(int rows, double omega, const int* __restrict__ offset,
                                      const double* __restrict__ diagonal,
                                      const double* __restrict__ b, const double* __restrict__ x,
                                      double* __restrict__ next) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    double coefficient[DIAGONALS], value[DIAGONALS];
#pragma unroll
    for (int d = 0; d < DIAGONALS; ++d) {
        const int column = row + offset[d];
        coefficient[d] = diagonal[(long long)d * rows + row];
        value[d] = 0 <= column && column < rows ? x[column] : 0.0;
    }
    double residual = b[row];
#pragma unroll
    for (int d = 0; d < DIAGONALS; ++d) residual -= coefficient[d] * value[d];
    next[row] = value[MAIN] + omega * residual / coefficient[MAIN];
}
