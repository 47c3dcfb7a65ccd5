// Thrust's algorithms with functors of our own.
// corpus: heavy
// corpus: gpus sm_75 sm_90
// corpus: flags -std=c++17 --extended-lambda
#include <thrust/adjacent_difference.h>
#include <thrust/binary_search.h>
#include <thrust/complex.h>
#include <thrust/count.h>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/for_each.h>
#include <thrust/gather.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/random.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/tabulate.h>
#include <thrust/transform.h>
#include <thrust/tuple.h>
#include <thrust/transform_reduce.h>
#include <thrust/transform_scan.h>
#include <thrust/unique.h>
template <typename T> struct Axpy { T a; __host__ __device__ T operator()(T x, T y) const { return a * x + y; } };
template <typename T> struct Square { __host__ __device__ T operator()(T x) const { return x * x; } };
template <typename T> struct Odd { __host__ __device__ bool operator()(T x) const { return (int)x & 1; } };
struct Monte {
  __host__ __device__ float operator()(unsigned seed) const {
    thrust::default_random_engine g(seed); thrust::uniform_real_distribution<float> u(0, 1); thrust::normal_distribution<float> d(0, 1);
    float s = 0; for (int i = 0; i < 32; i++) { float x = u(g), y = d(g); s += x * x + y * y < 1; } return s;
  }
};
template <typename T> void all(T *a, T *b, T *c, int *m, int n) {
  auto p = thrust::device;
  thrust::transform(p, a, a + n, b, c, Axpy<T>{T(3)}); thrust::sequence(p, a, a + n); thrust::fill(p, a, a + n, T(1));
  thrust::reduce(p, a, a + n); thrust::transform_reduce(p, a, a + n, Square<T>{}, T(0), thrust::plus<T>{});
  thrust::inner_product(p, a, a + n, b, T(0)); thrust::count_if(p, a, a + n, Odd<T>{}); thrust::max_element(p, a, a + n); thrust::minmax_element(p, a, a + n);
  thrust::exclusive_scan(p, a, a + n, b); thrust::transform_inclusive_scan(p, a, a + n, b, Square<T>{}, thrust::plus<T>{});
  thrust::sort(p, a, a + n); thrust::stable_sort_by_key(p, a, a + n, m, [] __host__ __device__(T x, T y) { return x > y; });
  thrust::reduce_by_key(p, m, m + n, a, m, b); thrust::unique(p, a, a + n); thrust::remove_if(p, a, a + n, Odd<T>{});
  thrust::partition(p, a, a + n, Odd<T>{}); thrust::stable_partition_copy(p, a, a + n, b, c, Odd<T>{}); thrust::merge(p, a, a + n, b, b + n, c);
  thrust::set_union(p, a, a + n, b, b + n, c); thrust::set_intersection(p, a, a + n, b, b + n, c); thrust::set_difference(p, a, a + n, b, b + n, c);
  thrust::lower_bound(p, a, a + n, b, b + n, m); thrust::gather(p, m, m + n, a, b); thrust::scatter_if(p, a, a + n, m, m, b);
  thrust::adjacent_difference(p, a, a + n, b); thrust::for_each_n(p, thrust::make_zip_iterator(a, b), n, [] __host__ __device__(thrust::tuple<T &, T &> t) { thrust::get<1>(t) = thrust::get<0>(t); });
  thrust::tabulate(p, a, a + n, Square<int>{});
}
void instances(void *a, void *b, void *c, int *m) {
  all((int *)a, (int *)b, (int *)c, m, 9); all((float *)a, (float *)b, (float *)c, m, 9); all((double *)a, (double *)b, (double *)c, m, 9);
  thrust::transform_reduce(thrust::device, thrust::counting_iterator<unsigned>(0), thrust::counting_iterator<unsigned>(1000), Monte{}, 0.f, thrust::plus<float>{});
  auto z = (thrust::complex<double> *)a;
  thrust::transform(thrust::device, z, z + 9, z, [] __host__ __device__(thrust::complex<double> x) { return thrust::exp(x) / thrust::sqrt(x) + thrust::pow(x, 2.5); });
}
