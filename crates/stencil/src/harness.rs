//! A host program around versions of one stencil: it runs them on the same data, writes what they
//! compute, and times them.
//!
//! The program is one translation unit; every version is another, with a launcher of plain C
//! signature (arrays, scalars, sizes, stream, in the order of the stencil). Data is what
//! [`evaluate`](super::evaluate) defines as its sample. What the host computes of it comes in a file of `double`, one
//! written array behind the other ([`expected`]).
//!
//! ```text
//! PROGRAM check VERSION,… FILE SIZE…        a JSON line per version: how far its results are from those in FILE
//! PROGRAM time VERSION,… ROUNDS SIZE…       a JSON line per version: milliseconds of every round,
//!                                           and how far its results are from the first one's
//! ```
//!
//! In `time` the versions take turns, so that clocks and neighbours disturb all alike. A version that fails ends the
//! program with a message and status 1; those before it have had their lines.

use std::fmt::Write as _;

use super::evaluate::Data;
use super::ir::{Extent, Stencil};
use super::sweep::c_type;

/// What the program reads: the written arrays of a reference.
pub fn expected(stencil: &Stencil, reference: &Data) -> Vec<u8> {
    let written = stencil.arrays.iter().filter(|(_, array)| array.written);
    let values = written.flat_map(|(id, _)| &reference.arrays[id]);
    values.flat_map(|value| value.to_le_bytes()).collect()
}

/// The text of the program for launchers of these names.
pub fn program(stencil: &Stencil, launchers: &[String]) -> String {
    let mut text = HEAD.to_owned();
    let signature = signature(stencil);
    for name in launchers {
        let _ = writeln!(text, "extern \"C\" cudaError_t {name}({signature});");
    }
    text += "\nstatic cudaError_t launch(int version)\n{\n  switch (version) {\n";
    let arguments = arguments(stencil);
    for (at, name) in launchers.iter().enumerate() {
        let _ = writeln!(text, "    case {at}: return {name}({arguments});");
    }
    text += "    default: return cudaErrorInvalidValue;\n  }\n}\n\n";
    text += &set_up(stencil);
    text += MAIN;
    text
}

fn signature(stencil: &Stencil) -> String {
    let arrays = stencil
        .arrays
        .values()
        .map(|a| format!("{}*", c_type(a.element)));
    let scalars = stencil
        .scalars
        .values()
        .map(|s| c_type(s.element).to_owned());
    let sizes = stencil.parameters.values().map(|_| "int".to_owned());
    let all = arrays
        .chain(scalars)
        .chain(sizes)
        .chain(["cudaStream_t".to_owned()]);
    all.collect::<Vec<_>>().join(", ")
}

fn arguments(stencil: &Stencil) -> String {
    let count = stencil.arrays.len();
    let arrays = stencil.arrays.values().enumerate().map(|(at, array)| {
        let element = c_type(array.element);
        format!("static_cast<{element}*>(arrays[{at}].data)")
    });
    let scalars = stencil.scalars.values().enumerate().map(|(at, scalar)| {
        let element = c_type(scalar.element);
        format!("sample_of<{element}>({}u, 0u)", count + at)
    });
    let sizes = (0..stencil.parameters.len()).map(|at| format!("sizes[{at}]"));
    let all = arrays
        .chain(scalars)
        .chain(sizes)
        .chain(["nullptr".to_owned()]);
    all.collect::<Vec<_>>().join(", ")
}

/// `set_up`: the arrays for the sizes given.
fn set_up(stencil: &Stencil) -> String {
    let mut text = format!(
        "static const int size_count = {};\n\nstatic void set_up()\n{{\n",
        stencil.parameters.len()
    );
    for array in stencil.arrays.values() {
        let cells: Vec<String> = array.extents.iter().map(|&e| cells(e)).collect();
        let element = c_type(array.element);
        let _ = writeln!(
            text,
            "  add<{element}>({}, {});",
            cells.join(" * "),
            array.written
        );
    }
    text + "}\n\n"
}

fn cells(extent: Extent) -> String {
    match extent.parameter {
        Some(parameter) => format!(
            "static_cast<size_t>(sizes[{}] + {})",
            parameter.as_u32(),
            extent.add
        ),
        None => format!("static_cast<size_t>({})", extent.add),
    }
}

const HEAD: &str = r#"#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

struct Array {
  void* data;
  size_t count, bytes;
  bool is_written;
  void (*fill)(const Array&, uint32_t argument);
  // With a copy of itself, or with numbers of the host.
  void (*compare)(const Array&, const void* kept, unsigned long long* found);
  void (*compare_host)(const Array&, const void* kept, unsigned long long* found);
};

static std::vector<Array> arrays;
static std::vector<int> sizes;

static void check(cudaError_t status, const char* what)
{
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

static __host__ __device__ uint32_t hash(uint32_t argument, uint32_t index)
{
  uint32_t h = index * 2654435761u + (argument + 1u) * 2654435769u;
  h ^= h >> 15;
  h *= 739982445u;
  h ^= h >> 12;
  return h;
}

static __host__ __device__ double sample(uint32_t argument, uint32_t index)
{
  return 0.5 + (hash(argument, index) >> 9) / 8388608.0;
}

template <class T>
static __host__ __device__ T sample_of(uint32_t argument, uint32_t index)
{
  if (T(0.5) != T(0)) return static_cast<T>(sample(argument, index));
  const uint32_t h = hash(argument, index);
  const int n = static_cast<int>(h >> 2);
  return static_cast<T>(h % 4 == 0 ? n % 4 : h % 4 == 1 ? n % 1048576 - 524288 : n % 256);
}

template <class T>
__global__ void fill(T* data, size_t count, uint32_t argument)
{
  for (size_t n = blockIdx.x * size_t(blockDim.x) + threadIdx.x; n < count;
       n += size_t(gridDim.x) * blockDim.x)
    data[n] = sample_of<T>(argument, static_cast<uint32_t>(n));
}

// Largest difference and largest magnitude of the first, as bits: they order like the numbers.
template <class A, class B>
__global__ void compare(const A* a, const B* b, size_t count, unsigned long long* found)
{
  double difference = 0, magnitude = 0;
  for (size_t n = blockIdx.x * size_t(blockDim.x) + threadIdx.x; n < count;
       n += size_t(gridDim.x) * blockDim.x) {
    const double apart = fabs(double(a[n]) - double(b[n]));
    // A NaN on either side is as far away as can be.
    difference = apart <= 1e300 ? fmax(difference, apart) : 1e300;
    magnitude = fmax(magnitude, fabs(double(a[n])));
  }
  atomicMax(&found[0], static_cast<unsigned long long>(__double_as_longlong(difference)));
  atomicMax(&found[1], static_cast<unsigned long long>(__double_as_longlong(magnitude)));
}

template <class T>
static void fill_array(const Array& array, uint32_t argument)
{
  fill<<<2048, 256>>>(static_cast<T*>(array.data), array.count, argument);
}

template <class A, class T>
static void compare_array(const Array& array, const void* kept, unsigned long long* found)
{
  compare<<<2048, 256>>>(static_cast<const A*>(kept), static_cast<const T*>(array.data), array.count, found);
}

template <class T>
static void add(size_t count, bool is_written)
{
  Array array = {nullptr, count, count * sizeof(T), is_written, fill_array<T>, compare_array<T, T>,
                 compare_array<double, T>};
  check(cudaMalloc(&array.data, array.bytes), "cudaMalloc");
  arrays.push_back(array);
}

"#;

const MAIN: &str = r#"static void fill_all()
{
  for (size_t a = 0; a < arrays.size(); ++a) {
    const Array& array = arrays[a];
    array.fill(array, uint32_t(a));
  }
  check(cudaDeviceSynchronize(), "fill");
}

static void run(int version)
{
  check(launch(version), "launch");
  check(cudaDeviceSynchronize(), "sweep");
}

// Largest difference from `kept` over the largest magnitude there, over all written arrays.
static double distance(const std::vector<void*>& kept, bool of_host)
{
  double worst = 0;
  unsigned long long* found;
  check(cudaMalloc(&found, 16), "cudaMalloc");
  for (size_t a = 0; a < arrays.size(); ++a) {
    const Array& array = arrays[a];
    if (!array.is_written) continue;
    check(cudaMemset(found, 0, 16), "cudaMemset");
    (of_host ? array.compare_host : array.compare)(array, kept[a], found);
    double host[2];
    check(cudaMemcpy(host, found, 16, cudaMemcpyDeviceToHost), "compare");
    worst = std::max(worst, host[1] > 0 ? host[0] / host[1] : host[0]);
  }
  check(cudaFree(found), "cudaFree");
  return worst;
}

static int check_all(const char* file, const std::vector<int>& versions)
{
  std::vector<void*> expected(arrays.size(), nullptr);
  std::FILE* in = std::fopen(file, "rb");
  for (size_t a = 0; a < arrays.size(); ++a) {
    if (!arrays[a].is_written) continue;
    std::vector<double> host(arrays[a].count);
    if (!in || std::fread(host.data(), sizeof(double), host.size(), in) != host.size()) {
      std::fprintf(stderr, "%s is too short\n", file);
      return 2;
    }
    check(cudaMalloc(&expected[a], host.size() * sizeof(double)), "cudaMalloc");
    check(cudaMemcpy(expected[a], host.data(), host.size() * sizeof(double), cudaMemcpyHostToDevice), "copy");
  }
  if (in) std::fclose(in);
  for (int version : versions) {
    fill_all();
    run(version);
    std::printf("{\"version\":%d,\"distance\":%.3e}\n", version, distance(expected, true));
    std::fflush(stdout);
  }
  return 0;
}

static int time_all(int rounds, const std::vector<int>& versions)
{
  std::vector<void*> kept(arrays.size(), nullptr);
  std::vector<double> apart;
  for (size_t v = 0; v < versions.size(); ++v) {
    fill_all();
    run(versions[v]);
    if (v > 0) {
      apart.push_back(distance(kept, false));
      continue;
    }
    apart.push_back(0);
    for (size_t a = 0; a < arrays.size(); ++a) {
      if (!arrays[a].is_written) continue;
      const size_t bytes = arrays[a].bytes;
      check(cudaMalloc(&kept[a], bytes), "cudaMalloc");
      check(cudaMemcpy(kept[a], arrays[a].data, bytes, cudaMemcpyDeviceToDevice), "copy");
    }
  }
  cudaEvent_t start, stop;
  check(cudaEventCreate(&start), "event");
  check(cudaEventCreate(&stop), "event");
  std::vector<std::vector<float>> times(versions.size());
  for (int round = -1; round < rounds; ++round) {
    for (size_t i = 0; i < versions.size(); ++i) {
      const size_t v = (i + size_t(round + 1)) % versions.size();
      // Once untimed: the version before has left its lines in the caches.
      check(launch(versions[v]), "launch");
      check(cudaEventRecord(start), "event");
      check(launch(versions[v]), "launch");
      check(cudaEventRecord(stop), "event");
      check(cudaEventSynchronize(stop), "sweep");
      float ms;
      check(cudaEventElapsedTime(&ms, start, stop), "event");
      if (round >= 0) times[v].push_back(ms);
    }
  }
  for (size_t v = 0; v < versions.size(); ++v) {
    std::printf("{\"version\":%d,\"distance\":%.3e,\"ms\":[", versions[v], apart[v]);
    for (size_t n = 0; n < times[v].size(); ++n) std::printf("%s%.5f", n ? "," : "", times[v][n]);
    std::printf("]}\n");
  }
  return 0;
}

int main(int argc, char** argv)
{
  const std::string mode = argc > 3 ? argv[1] : "";
  if ((mode != "check" && mode != "time") || argc != 4 + size_count) {
    std::fprintf(stderr, "usage: check VERSION,... FILE SIZE... | time VERSION,... ROUNDS SIZE...\n");
    return 2;
  }
  for (int at = 4; at < argc; ++at) sizes.push_back(std::atoi(argv[at]));
  set_up();
  std::vector<int> versions;
  for (const char* at = argv[2]; *at;) {
    char* end;
    versions.push_back(int(std::strtol(at, &end, 10)));
    if (end == at) return 2;
    at = *end == ',' ? end + 1 : end;
  }
  return mode == "check" ? check_all(argv[3], versions) : time_all(std::atoi(argv[3]), versions);
}
"#;
