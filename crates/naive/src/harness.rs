//! A host program around a naive kernel and what takes its place: both run on the same data, what they compute is
//! compared, and they are timed in turns. The program is the file itself with a `main` of its own behind it.
//!
//! ```text
//! PROGRAM SECONDS      one JSON line: `equal` to the bit, or `distance` over the largest magnitude; milliseconds of
//!                      every round, of the kernel as `written` and of its `version`
//! ```

use std::fmt::Write as _;

use warpwright_cudac::Scalar;
use warpwright_cudac::affine::Symbol;

use crate::emit::{expected, expected_ends, extents, value};
use crate::ir::{Kernel, ParameterKind, Template};
use crate::versions::Output;

/// What is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// By number of the size.
    pub sizes: Vec<i64>,
    /// Blocks.
    pub grid: [i64; 3],
    /// Threads of a block.
    pub block: [i64; 3],
    /// By array: elements.
    pub lengths: Vec<i64>,
}

/// Why there is no such launch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSetup {
    /// How long an array is does not follow from the kernel.
    #[error(
        "which elements of `{0}` are touched is not known, so it cannot be made for a measurement"
    )]
    Length(String),
    /// An array of elements that are no numbers.
    #[error("`{0}` has elements that are not understood")]
    Element(String),
    /// A parameter that is no number and no array that the kernel uses.
    #[error("`{0}` is a parameter of a type that is not understood")]
    Parameter(String),
    /// The sizes give no points.
    #[error("the kernel computes nothing at these sizes")]
    Empty,
}

impl Setup {
    /// The launch at the sizes that the pragma expects.
    ///
    /// # Errors
    /// See [`NoSetup`].
    pub fn expected(kernel: &Kernel) -> Result<Setup, NoSetup> {
        let sizes = expected(kernel);
        let ends = expected_ends(kernel, &sizes);
        let (mut grid, mut block) = ([1; 3], [1; 3]);
        if let Some(flat) = &kernel.flat {
            let mut places = ends.last().copied().unwrap_or(0);
            for radix in &flat.radices {
                places *= value(radix, &sizes, &ends).ok_or(NoSetup::Empty)?;
            }
            if places <= 0 {
                return Err(NoSetup::Empty);
            }
            block[0] = kernel.block[0].unwrap_or(256);
            grid[0] = (places + block[0] - 1) / block[0];
        }
        let dims = kernel.dims.iter().zip(&ends);
        for (dim, end) in dims.filter(|_| kernel.flat.is_none()) {
            let axis = dim.axis();
            if matches!(dim.symbol, Symbol::Global(_)) {
                let usual = match kernel.dims.len() {
                    1 => 256,
                    _ => [16, 16, 1][axis],
                };
                block[axis] = kernel.block[axis].unwrap_or(usual);
            }
            if *end <= 0 {
                return Err(NoSetup::Empty);
            }
            grid[axis] = match kernel.single[axis] {
                true => 1,
                false => (end + block[axis] - 1) / block[axis],
            };
        }
        let mut lengths = Vec::new();
        for (array, found) in kernel.arrays.iter().zip(extents(kernel)) {
            let unknown = || NoSetup::Length(array.name.clone());
            lengths.push(match (array.length, found) {
                (Some(length), _) => length,
                (None, Some((_, highs))) => {
                    let all = highs.iter().map(|h| value(h, &sizes, &ends));
                    all.max().flatten().ok_or_else(unknown)? + 1
                }
                (None, None) => return Err(unknown()),
            });
        }
        Ok(Setup {
            sizes,
            grid,
            block,
            lengths,
        })
    }
}

/// The text of the program.
///
/// # Errors
/// See [`NoSetup`].
pub fn program(kernel: &Kernel, output: &Output, setup: &Setup) -> Result<String, NoSetup> {
    let (mut arrays, mut arguments) = (String::new(), Vec::new());
    for (number, parameter) in kernel.parameters.iter().enumerate() {
        let name = || parameter.name.clone();
        arguments.push(match parameter.kind {
            ParameterKind::Array(array) => {
                let of = &kernel.arrays[array];
                let element = match (of.scalar, &*of.element) {
                    (Some(Scalar::Bool), _) => "bool",
                    (Some(Scalar::Integer(8, _)), _) => "unsigned char",
                    (Some(Scalar::Integer(16, _)), _) => "unsigned short",
                    (Some(Scalar::Integer(64, _)), _) => "unsigned long long",
                    (Some(Scalar::Integer(..)), _) => "unsigned",
                    (Some(Scalar::Double), _) => "double",
                    (Some(Scalar::Float), _) => "float",
                    (None, ty) if ty.starts_with("float") => "float",
                    (None, ty) if ty.starts_with("double") => "double",
                    (None, ty) if ty.starts_with("int") || ty.starts_with("uint") => "unsigned",
                    (None, ty) if ty.ends_with("char") => "unsigned char",
                    _ => return Err(NoSetup::Element(of.name.clone())),
                };
                let bytes = setup.lengths[array] * i64::from(of.bytes.max(1));
                let _ = writeln!(
                    arrays,
                    "    ww_arrays.push_back(ww_made<{element}>({bytes}LL, {number}, {}));",
                    of.stored
                );
                let at = arrays.lines().count() - 1;
                format!("({})ww_arrays[{at}].at", parameter.ty())
            }
            ParameterKind::Size(size, _) => setup.sizes[size].to_string(),
            ParameterKind::Scalar(Some(Scalar::Float)) => "0.75f".into(),
            ParameterKind::Scalar(Some(Scalar::Double)) => "0.75".into(),
            ParameterKind::Scalar(Some(_)) => "3".into(),
            ParameterKind::Unused if parameter.declared.contains('*') => "0".into(),
            ParameterKind::Scalar(None) | ParameterKind::Unused => {
                return Err(NoSetup::Parameter(name()));
            }
        });
    }
    for array in kernel
        .arrays
        .iter()
        .filter(|a| a.parameter.is_none() && !a.is_fixed)
    {
        if array.scalar == Some(Scalar::Float) {
            let _ = writeln!(arrays, "    ww_set({}, {});", array.text(), array.name);
        }
    }
    let dim = |d: [i64; 3]| format!("dim3({}, {}, {})", d[0], d[1], d[2]);
    let (grid, block) = (dim(setup.grid), dim(setup.block));
    let instance = kernel.template.as_ref().map(Template::given);
    let instance = instance.unwrap_or_default();
    let passed = arguments.join(", ");
    Ok(format!(
        "#define main ww_main_of_the_input\n{}\n#undef main\n{HEAD}\nstatic void ww_written() {{ \
         {}{instance}<<<{grid}, {block}>>>({passed}); }}\nstatic void ww_version() {{ {}{instance}({grid}, {block}, 0, 0, {passed}); \
         }}\n{MAIN}int main(int, char **ww_arguments)\n{{\n{arrays}    return ww_run(atof(ww_arguments[1]));\n}}\n",
        output.text,
        kernel.name,
        output.names.launch(),
    ))
}

const HEAD: &str = r#"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <algorithm>
#include <type_traits>
#include <vector>

struct WwArray {
    void *at, *first;
    long long bytes;
    int element;
    bool stored;
};
static std::vector<WwArray> ww_arrays;

__host__ __device__ static unsigned ww_hash(unsigned long long at, unsigned number) {
    unsigned h = (unsigned)at * 2654435761u + (number + 1) * 0x9e3779b1u;
    h ^= h >> 15;
    h *= 739982445u;
    return h ^ h >> 12;
}
template <class T> __host__ __device__ static T ww_number(unsigned h) {
    return std::is_floating_point<T>::value ? (T)(0.25 + (h >> 9) / 8388608.0) : (T)(h >> 24);
}
template <class T> __global__ void ww_fill(T *a, long long count, unsigned number) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) a[i] = ww_number<T>(ww_hash(i, number));
}
static void ww_check(const char *what) {
    const cudaError_t status = cudaDeviceSynchronize();
    if (status == cudaSuccess) return;
    printf("%s: %s\n", what, cudaGetErrorString(status));
    exit(1);
}
template <class T> static WwArray ww_made(long long bytes, unsigned number, bool stored) {
    WwArray made{nullptr, nullptr, bytes, std::is_same<T, float>::value ? 1 : std::is_same<T, double>::value ? 2 : 0, stored};
    cudaMalloc(&made.at, bytes);
    ww_fill<<<1024, 256>>>((T *)made.at, bytes / (long long)sizeof(T), number);
    if (stored) {
        cudaMalloc(&made.first, bytes);
        cudaMemcpy(made.first, made.at, bytes, cudaMemcpyDeviceToDevice);
    }
    ww_check("memory");
    return made;
}
template <class T, class S> static void ww_set(T *, S &symbol) {
    std::vector<float> numbers(sizeof(symbol) / sizeof(float));
    for (size_t i = 0; i < numbers.size(); i++) numbers[i] = ww_number<float>(ww_hash(i, 99));
    cudaMemcpyToSymbol(symbol, numbers.data(), sizeof(symbol));
}
static void ww_reset() {
    for (auto &a : ww_arrays) if (a.stored) cudaMemcpyAsync(a.at, a.first, a.bytes, cudaMemcpyDeviceToDevice, 0);
}
"#;

const MAIN: &str = r#"
template <class T> static double ww_distance(const std::vector<char> &found, const std::vector<char> &expected) {
    const T *a = (const T *)found.data(), *b = (const T *)expected.data();
    double apart = 0, largest = 0;
    for (size_t i = 0; i < found.size() / sizeof(T); i++) {
        if (std::isnan(a[i]) && std::isnan(b[i]) || a[i] == b[i]) continue;
        if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return 1e300;
        apart = std::max(apart, std::fabs((double)a[i] - (double)b[i]));
    }
    for (size_t i = 0; i < found.size() / sizeof(T); i++) if (std::isfinite(b[i])) largest = std::max(largest, (double)std::fabs(b[i]));
    return apart == 0 ? 0 : apart / std::max(largest, 1e-300);
}
static double ww_time(void (*call)(), int repeats) {
    cudaEvent_t begun, ended;
    cudaEventCreate(&begun), cudaEventCreate(&ended);
    ww_reset();
    cudaEventRecord(begun);
    for (int i = 0; i < repeats; i++) call();
    cudaEventRecord(ended);
    ww_check("timing");
    float ms = 0;
    cudaEventElapsedTime(&ms, begun, ended);
    cudaEventDestroy(begun), cudaEventDestroy(ended);
    return ms / repeats;
}
static int ww_run(double seconds) {
    std::vector<std::vector<char>> expected;
    ww_written();
    ww_check("as written");
    for (auto &a : ww_arrays) {
        expected.emplace_back(a.stored ? a.bytes : 0);
        if (a.stored) cudaMemcpy(expected.back().data(), a.at, a.bytes, cudaMemcpyDeviceToHost);
    }
    ww_reset();
    ww_version();
    ww_check("the version");
    bool equal = true;
    double distance = 0;
    for (size_t n = 0; n < ww_arrays.size(); n++) {
        const WwArray &a = ww_arrays[n];
        if (!a.stored) continue;
        std::vector<char> found(a.bytes);
        cudaMemcpy(found.data(), a.at, a.bytes, cudaMemcpyDeviceToHost);
        if (!memcmp(found.data(), expected[n].data(), a.bytes)) continue;
        equal = false;
        distance = std::max(distance, a.element == 1 ? ww_distance<float>(found, expected[n])
                            : a.element == 2 ? ww_distance<double>(found, expected[n]) : 1e300);
    }
    const double once[2] = {ww_time(ww_written, 1), ww_time(ww_version, 1)};
    int repeats[2], rounds = 3;
    for (int k = 0; k < 2; k++) repeats[k] = std::max(1, std::min(20, (int)(1.0 / std::max(once[k], 1e-3))));
    rounds = std::max(3, std::min(101, (int)(seconds * 1e3 / (once[0] * repeats[0] + once[1] * repeats[1]))));
    std::vector<double> times[2];
    for (int r = 0; r < rounds; r++) {
        times[0].push_back(ww_time(ww_written, repeats[0]));
        times[1].push_back(ww_time(ww_version, repeats[1]));
    }
    printf("{\"equal\": %s, \"distance\": %.3e", equal ? "true" : "false", distance);
    for (int k = 0; k < 2; k++) {
        printf(", \"%s\": [", k ? "version" : "written");
        for (size_t i = 0; i < times[k].size(); i++) printf("%s%.6f", i ? ", " : "", times[k][i]);
        printf("]");
    }
    printf("}\n");
    return 0;
}
"#;
