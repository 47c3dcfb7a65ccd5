// CUB's device-wide selection, partition, histograms, merges, transforms and copies.
// corpus: heavy
// corpus: gpus sm_75 sm_90
// corpus: flags -std=c++17 --extended-lambda
#include <cub/cub.cuh>
template <typename T> struct Above { T limit; __device__ bool operator()(T x) const { return x > limit; } };
template <typename T> struct Below { T limit; __device__ bool operator()(T x) const { return x < limit; } };
template <typename T> void all(T *in, T *out, char *flags, int *counts, int n) {
  void *t = nullptr; size_t s = 0;
  cub::DeviceSelect::If(t, s, in, out, counts, n, Above<T>{T(3)}); cub::DeviceSelect::Flagged(t, s, in, flags, out, counts, n);
  cub::DeviceSelect::Unique(t, s, in, out, counts, n); cub::DeviceSelect::UniqueByKey(t, s, in, counts, out, counts, counts, n);
  cub::DevicePartition::If(t, s, in, out, counts, n, Below<T>{T(3)});
  cub::DevicePartition::If(t, s, in, out, out, out, counts, n, Above<T>{T(9)}, Below<T>{T(1)});
  cub::DeviceHistogram::HistogramEven(t, s, in, counts, 65, T(0), T(64), n);
  cub::DeviceMerge::MergeKeys(t, s, in, n, in, n, out);
  cub::DeviceFor::ForEachN(in, n, [] __device__(T & x) { x = x * T(2); });
  cub::DeviceTransform::Transform(cuda::std::make_tuple(in, in), out, n, [] __device__(T a, T b) { return T(a * b + a); });
}
void instances(void *p, char *f, int *i) { all((int *)p, (int *)p, f, i, 9); all((float *)p, (float *)p, f, i, 9); all((double *)p, (double *)p, f, i, 9); }
void copies(void **p, int *sizes) {
  void *t = nullptr; size_t s = 0;
  cub::DeviceMemcpy::Batched(t, s, p, p, sizes, 7); cub::DeviceCopy::Batched(t, s, (int **)p, (int **)p, sizes, 7);
}
