// CUB's device-wide reductions, scans and what is built on them, over several types.
// corpus: heavy
// corpus: gpus sm_75 sm_90
// corpus: flags -std=c++17 --extended-lambda
#include <cub/cub.cuh>
template <typename T> struct Pair { T a; int b; };
template <typename T> void all(const T *in, T *out, const int *offsets, int *counts, int n) {
  void *t = nullptr; size_t s = 0;
  cub::DeviceReduce::Sum(t, s, in, out, n); cub::DeviceReduce::Min(t, s, in, out, n);
  cub::DeviceReduce::ArgMax(t, s, in, (cub::KeyValuePair<int, T> *)out, n);
  cub::DeviceReduce::ReduceByKey(t, s, counts, counts, in, out, counts, cuda::std::plus<>{}, n);
  cub::DeviceScan::ExclusiveSum(t, s, in, out, n); cub::DeviceScan::InclusiveScan(t, s, in, out, cuda::maximum<>{}, n);
  cub::DeviceScan::InclusiveSumByKey(t, s, counts, in, out, n);
  cub::DeviceRunLengthEncode::Encode(t, s, in, out, counts, counts, n);
  cub::DeviceRunLengthEncode::NonTrivialRuns(t, s, in, counts, counts, counts, n);
  cub::DeviceSegmentedReduce::Sum(t, s, in, out, n, offsets, offsets + 1);
  cub::DeviceAdjacentDifference::SubtractLeftCopy(t, s, in, out, n);
}
void instances(void *p, int *i) {
  all((const int *)p, (int *)p, i, i, 9); all((const float *)p, (float *)p, i, i, 9); all((const double *)p, (double *)p, i, i, 9);
  all((const unsigned char *)p, (unsigned char *)p, i, i, 9); all((const long long *)p, (long long *)p, i, i, 9);
}
