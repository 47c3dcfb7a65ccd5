// runner MANIFEST RESULTS: runs all variants of one stencil; the first variant is the reference.
// Manifest: `array NAME ELEMENTS WRITTEN`, `scalar NAME`, `size N`, then per variant one line
// `variant STENCIL NAME CUBIN` followed by its `kernel NAME gx gy gz bx by bz` lines.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <string>
#include <vector>
#include <algorithm>
#include <fstream>
#include <sstream>
#include <cuda_runtime.h>
// The sample data of the host reference: multiples of 2^-23 in [0.5, 1.5).
__global__ void fill(double *p, size_t n, unsigned a)
{
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    unsigned h = (unsigned)i * 2654435761u + (a + 1) * 2654435769u;
    h ^= h >> 15; h *= 739982445u; h ^= h >> 12;
    p[i] = 0.5 + (h >> 9) / 8388608.0;
  }
}
__global__ void differ(const double *a, const double *b, size_t n, unsigned long long *r)
{
  double e = 0, m = 0; unsigned long long c = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    double x = a[i], y = b[i];
    if (__double_as_longlong(x) != __double_as_longlong(y)) { double d = fabs(x - y); if (!(d == d)) d = 1e300; e = fmax(e, d); ++c; }
    m = fmax(m, fabs(y));
  }
  atomicMax(r, __double_as_longlong(e)); atomicMax(r + 1, __double_as_longlong(m)); atomicAdd(r + 2, c);
}
struct Kernel { std::string name; dim3 grid, block; cudaKernel_t kernel; };
struct Variant { std::string stencil, name, cubin; std::vector<Kernel> kernels; };
#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { err = std::string(#x) + ": " + cudaGetErrorString(e_); goto bad; } } while (0)
int main(int argc, char **argv)
{
  std::vector<size_t> elements; std::vector<int> outs, sizes; std::vector<double> scalars; std::vector<Variant> vs;
  std::ifstream f(argv[1]); std::string l;
  while (std::getline(f, l)) {
    std::istringstream s(l); std::string w, n; s >> w;
    if (w == "array") { size_t e; int o; s >> n >> e >> o; if (o) outs.push_back(elements.size()); elements.push_back(e); }
    else if (w == "scalar") scalars.push_back(0);
    else if (w == "size") { int v; s >> v; sizes.push_back(v); }
    else if (w == "variant") { Variant v; s >> v.stencil >> v.name >> v.cubin; vs.push_back(v); }
    else if (w == "kernel") { Kernel k; s >> k.name >> k.grid.x >> k.grid.y >> k.grid.z >> k.block.x >> k.block.y >> k.block.z; vs.back().kernels.push_back(k); }
  }
  for (size_t i = 0; i < scalars.size(); ++i) { unsigned a = elements.size() + i, h = (a + 1) * 2654435769u; h ^= h >> 15; h *= 739982445u; h ^= h >> 12; scalars[i] = 0.5 + (h >> 9) / 8388608.0; }
  std::vector<double *> a(elements.size()), ref(elements.size(), nullptr); unsigned long long *r; cudaMalloc(&r, 24);
  for (size_t i = 0; i < elements.size(); ++i) { if (cudaMalloc(&a[i], elements[i] * 8 + 256) != cudaSuccess) return 3; fill<<<1056, 256>>>(a[i], elements[i], i); }
  auto reset = [&] { for (int o : outs) fill<<<1056, 256>>>(a[o], elements[o], o); };
  std::vector<void *> args; for (auto &p : a) args.push_back(&p); for (auto &x : scalars) args.push_back(&x); for (auto &x : sizes) args.push_back(&x);
  cudaEvent_t e0, e1; cudaEventCreate(&e0); cudaEventCreate(&e1); FILE *out = fopen(argv[2], "a"); std::string err; bool first = true;
  for (auto &v : vs) {
    { cudaLibrary_t lib; int regs = 0, local = 0, occ = 0; err = "";
      CK(cudaLibraryLoadFromFile(&lib, v.cubin.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
      for (auto &k : v.kernels) { CK(cudaLibraryGetKernel(&k.kernel, lib, k.name.c_str())); cudaFuncAttributes fa; CK(cudaFuncGetAttributes(&fa, (const void *)k.kernel)); regs = std::max(regs, fa.numRegs); local = std::max(local, (int)fa.localSizeBytes); CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&occ, (const void *)k.kernel, k.block.x * k.block.y * k.block.z, 0)); }
      reset(); for (auto &k : v.kernels) CK(cudaLaunchKernel((const void *)k.kernel, k.grid, k.block, args.data(), 0, 0)); CK(cudaDeviceSynchronize());
      double rel = 0; unsigned long long bits = 0;
      if (first) for (int o : outs) { if (cudaMalloc(&ref[o], elements[o] * 8) != cudaSuccess) return 3; cudaMemcpy(ref[o], a[o], elements[o] * 8, cudaMemcpyDeviceToDevice); }
      first = false;
      for (int o : outs) { struct { double e, m; unsigned long long c; } h; cudaMemset(r, 0, 24); differ<<<1056, 256>>>(a[o], ref[o], elements[o], r); cudaMemcpy(&h, r, 24, cudaMemcpyDeviceToHost); rel = std::max(rel, h.e / h.m); bits += h.c; }
      std::vector<float> t;
      for (int q = 0; q < 13; ++q) { CK(cudaEventRecord(e0)); for (auto &k : v.kernels) CK(cudaLaunchKernel((const void *)k.kernel, k.grid, k.block, args.data(), 0, 0)); CK(cudaEventRecord(e1)); CK(cudaEventSynchronize(e1)); float ms; cudaEventElapsedTime(&ms, e0, e1); if (q >= 3) t.push_back(ms); }
      std::sort(t.begin(), t.end()); auto b = v.kernels[0].block;
      fprintf(out, "{\"stencil\":\"%s\",\"variant\":\"%s\",\"ms\":%.4f,\"min\":%.4f,\"err\":%.2e,\"differ\":%llu,\"regs\":%d,\"local\":%d,\"threads\":%d,\"blocks_per_sm\":%d}\n", v.stencil.c_str(), v.name.c_str(), t[t.size() / 2], t[0], rel, bits, regs, local, b.x * b.y * b.z, occ);
      fflush(out); cudaLibraryUnload(lib); continue; }
    bad: fprintf(out, "{\"stencil\":\"%s\",\"variant\":\"%s\",\"error\":\"%s\"}\n", v.stencil.c_str(), v.name.c_str(), err.c_str()); fflush(out);
    if (cudaDeviceSynchronize() != cudaSuccess) { fprintf(stderr, "%s is lost\n", v.name.c_str()); return 4; }
  }
  fclose(out); return 0;
}
