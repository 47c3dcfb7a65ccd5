__global__ void f(double *unroll, const double *parameter, int iterator) {
    int function = blockIdx.x * blockDim.x + threadIdx.x;
    double i_2 = 2.0 * parameter[function];
    if (function < iterator) unroll[function] = i_2;
}

// expect:
// x0: 0 and 0 cells are not computed
// function f (own_unroll, own_parameter) {
//   double i_2 = 2.0 * own_parameter[x0];
//   own_unroll[x0] = i_2;
// }
// parameter own_iterator;
// iterator x0;
// double own_unroll[own_iterator], own_parameter[own_iterator];
// f (own_unroll, own_parameter);
// return own_unroll;
