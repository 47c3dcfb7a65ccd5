// CUB's device-wide sorts.
// corpus: heavy
// corpus: gpus sm_75 sm_90
// corpus: flags -std=c++17 --extended-lambda
#include <cub/cub.cuh>
template <typename K, typename V> void all(K *k, V *v, int *offsets, int n) {
  void *t = nullptr; size_t s = 0;
  cub::DeviceRadixSort::SortPairs(t, s, k, k, v, v, n); cub::DeviceRadixSort::SortKeysDescending(t, s, k, k, n);
  cub::DeviceMergeSort::SortPairs(t, s, k, v, n, [] __device__(K a, K b) { return a < b; });
  cub::DeviceSegmentedSort::SortPairs(t, s, k, k, v, v, n, 3, offsets, offsets + 1);
}
void instances(void *p, int *i) { all((int *)p, (float *)p, i, 9); all((double *)p, (int *)p, i, 9); all((unsigned short *)p, (unsigned char *)p, i, 9); }
