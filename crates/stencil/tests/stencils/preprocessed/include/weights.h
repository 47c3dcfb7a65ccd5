#ifndef WEIGHTS_H
#define WEIGHTS_H
#include <math.h>

#ifdef SINGLE
typedef float real;
#else
typedef double real;
#endif

#define WEST(a, i) ((a)[(i) - 1])
constexpr real c0 = 0.25, c1 = c0 / 3;
__device__ constexpr real table[] = {1.5, -c1};

__device__ __forceinline__ real mixed(real a, real b) { return c0 * a + b; }

#endif
