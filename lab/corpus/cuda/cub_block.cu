// CUB's block- and warp-wide algorithms over several types and block sizes.
// corpus: flags -std=c++17
// corpus: sample
#include <cub/cub.cuh>
#include <cuda/std/complex>
template <typename T, int B> __global__ void reduce(T *o) {
  using R1 = cub::BlockReduce<T, B, cub::BLOCK_REDUCE_WARP_REDUCTIONS>; using R2 = cub::BlockReduce<T, B, cub::BLOCK_REDUCE_RAKING>;
  __shared__ union { typename R1::TempStorage a; typename R2::TempStorage b; } s;
  T x = o[threadIdx.x], y = R1(s.a).Sum(x); __syncthreads(); T z = R2(s.b).Reduce(x, [](T a, T b) { return a + b; });
  if (threadIdx.x == 0) { o[0] = y; o[1] = z; }
}
template <typename T, int B> __global__ void scan(T *o) {
  using S1 = cub::BlockScan<T, B, cub::BLOCK_SCAN_WARP_SCANS>; using S2 = cub::BlockScan<T, B, cub::BLOCK_SCAN_RAKING>;
  __shared__ union { typename S1::TempStorage a; typename S2::TempStorage b; } s;
  T x[4], t;
  for (int i = 0; i < 4; i++) x[i] = o[threadIdx.x * 4 + i];
  S1(s.a).InclusiveSum(x, x, t); __syncthreads(); S2(s.b).ExclusiveSum(x, x);
  for (int i = 0; i < 4; i++) o[threadIdx.x * 4 + i] = x[i];
}
template <typename T, int B> __global__ void sort(T *o) {
  using L = cub::BlockLoad<T, B, 4, cub::BLOCK_LOAD_TRANSPOSE>; using S = cub::BlockRadixSort<T, B, 4>; using W = cub::BlockStore<T, B, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  __shared__ union { typename L::TempStorage l; typename S::TempStorage s; typename W::TempStorage w; } u;
  T x[4]; L(u.l).Load(o, x); __syncthreads(); S(u.s).Sort(x); __syncthreads(); W(u.w).Store(o, x);
}
template <typename T, int B> __global__ void merge_sort(T *o) {
  using S = cub::BlockMergeSort<T, B, 3>; __shared__ typename S::TempStorage s; T x[3];
  cub::LoadDirectBlocked(threadIdx.x, o, x); S(s).Sort(x, [](T a, T b) { return a < b; }); cub::StoreDirectStriped<B>(threadIdx.x, o, x);
}
template <typename T, int B> __global__ void exchange(T *o) {
  using E = cub::BlockExchange<T, B, 5>; using D = cub::BlockDiscontinuity<T, B>; using A = cub::BlockAdjacentDifference<T, B>;
  __shared__ union { typename E::TempStorage e; typename D::TempStorage d; typename A::TempStorage a; } s;
  T x[5], y[5]; int f[5];
  cub::LoadDirectStriped<B>(threadIdx.x, o, x); E(s.e).StripedToBlocked(x, x); __syncthreads();
  D(s.d).FlagHeads(f, x, [](T a, T b) { return a != b; }); __syncthreads(); A(s.a).SubtractLeft(x, y, [](T a, T b) { return a - b; });
  for (int i = 0; i < 5; i++) o[threadIdx.x * 5 + i] = y[i] * T(f[i]);
}
template <typename T, int B> __global__ void histogram(unsigned *o, const T *a) {
  using H = cub::BlockHistogram<T, B, 2, 128, cub::BLOCK_HISTO_SORT>; __shared__ typename H::TempStorage s; __shared__ unsigned h[128];
  T x[2] = {a[threadIdx.x], a[threadIdx.x + B]}; H(s).Histogram(x, h); __syncthreads(); o[threadIdx.x & 127] = h[threadIdx.x & 127];
}
template <typename T, int W> __global__ void warp(T *o) {
  using R = cub::WarpReduce<T, W>; using S = cub::WarpScan<T, W>; using M = cub::WarpMergeSort<T, 2, W>;
  __shared__ union { typename R::TempStorage r; typename S::TempStorage s; typename M::TempStorage m; } u;
  T x = o[threadIdx.x], y = R(u.r).Sum(x), z; __syncwarp(); S(u.s).InclusiveSum(x, z); __syncwarp();
  T k[2] = {y, z}; M(u.m).Sort(k, [](T a, T b) { return a < b; }); o[threadIdx.x] = k[0] + k[1];
}
#define B2(F, T) template __global__ void F<T, 64>(T *); template __global__ void F<T, 256>(T *);
#define ALL(T) B2(reduce, T) B2(scan, T) B2(sort, T) B2(merge_sort, T) B2(exchange, T) template __global__ void warp<T, 32>(T *); template __global__ void warp<T, 8>(T *);
ALL(int) ALL(unsigned char) ALL(float) ALL(double) ALL(long long) ALL(unsigned short)
template __global__ void histogram<unsigned char, 128>(unsigned *, const unsigned char *);
template __global__ void reduce<cuda::std::complex<float>, 128>(cuda::std::complex<float> *);
