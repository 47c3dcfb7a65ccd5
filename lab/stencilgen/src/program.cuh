// Originals and versions of random stencils on the same data: every bit, or a tolerance. Compile with -fmad=false.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>
#include <cuda_runtime.h>

static long comparisons = 0, differences = 0, errors = 0, cases = 0, first_case = 0;

// A case, unless the program was asked to begin behind it: a fault ends the program.
static bool begin(const char* name)
{
    if (cases++ < first_case) return false;
    std::printf("CASE %ld %s\n", cases - 1, name);
    std::fflush(stdout);
    return true;
}

static void finish()
{
    std::printf("{\"comparisons\":%ld,\"differences\":%ld,\"errors\":%ld}\n", comparisons, differences, errors);
    std::fflush(stdout);
}

static void must(cudaError_t status, const char* what)
{
    if (status == cudaSuccess) return;
    std::printf("ERROR %s: %s\n", what, cudaGetErrorString(status));
    ++errors;
    finish();
    std::exit(3);
}

static uint32_t hash(uint32_t argument, uint32_t index)
{
    uint32_t h = index * 2654435761u + (argument + 1u) * 2654435769u;
    h ^= h >> 15;
    h *= 739982445u;
    return h ^ h >> 12;
}

static double sample(uint32_t argument, uint32_t index) { return 0.5 + (hash(argument, index) >> 9) / 8388608.0; }

// Whole numbers of 32 bits leave room for sums; narrower ones have all their bits.
template <class T> static T element(uint32_t argument, uint32_t index)
{
    if (std::is_floating_point<T>::value) return (T)sample(argument, index);
    return (T)(hash(argument, index) >> 14);
}

struct Array {
    void* device;
    size_t bytes;
    bool owned, is_double, is_real, written;
    std::vector<char> first, kept;
};

struct Case {
    std::vector<Array> arrays;

    template <class T>
    Array made(uint32_t number, size_t count, bool owned, bool written)
    {
        Array a = {nullptr, count * sizeof(T), owned, sizeof(T) == 8, std::is_floating_point<T>::value, written, {}, {}};
        a.first.resize(a.bytes);
        for (size_t n = 0; n < count; ++n) reinterpret_cast<T*>(a.first.data())[n] = element<T>(number, (uint32_t)n);
        return a;
    }

    template <class T>
    T* array(uint32_t number, size_t count, bool written)
    {
        Array a = made<T>(number, count, true, written);
        must(cudaMalloc(&a.device, a.bytes), "cudaMalloc");
        arrays.push_back(a);
        return static_cast<T*>(a.device);
    }

    // Memory of the file.
    template <class T, class Symbol>
    void variable(uint32_t number, size_t count, bool written, const Symbol& symbol)
    {
        Array a = made<T>(number, count, false, written);
        must(cudaGetSymbolAddress(&a.device, symbol), "cudaGetSymbolAddress");
        arrays.push_back(a);
    }

    void fill()
    {
        for (Array& a : arrays) must(cudaMemcpy(a.device, a.first.data(), a.bytes, cudaMemcpyHostToDevice), "fill");
    }

    void keep(const char* name)
    {
        must(cudaGetLastError(), name);
        must(cudaDeviceSynchronize(), name);
        for (Array& a : arrays) {
            a.kept.resize(a.bytes);
            must(cudaMemcpy(a.kept.data(), a.device, a.bytes, cudaMemcpyDeviceToHost), "keep");
        }
    }

    void status(cudaError_t status, const char* what)
    {
        if (status == cudaSuccess) return;
        std::printf("ERROR %s: %s\n", what, cudaGetErrorString(status));
        ++errors;
    }

    void compare(const char* name, const char* kind, double tolerance)
    {
        must(cudaGetLastError(), name);
        must(cudaDeviceSynchronize(), name);
        ++comparisons;
        double worst = 0;
        for (Array& a : arrays) {
            std::vector<char> now(a.bytes);
            must(cudaMemcpy(now.data(), a.device, a.bytes, cudaMemcpyDeviceToHost), "compare");
            if (std::memcmp(now.data(), a.kept.data(), a.bytes) == 0) continue;
            if (!a.is_real) {
                worst = 1e300;
                continue;
            }
            double largest = 0, apart = 0;
            const size_t size = a.is_double ? 8 : 4;
            auto value = [&](const std::vector<char>& v, size_t n) {
                return a.is_double ? reinterpret_cast<const double*>(v.data())[n]
                                   : (double)reinterpret_cast<const float*>(v.data())[n];
            };
            for (size_t n = 0; n < a.bytes / size; ++n) {
                largest = std::fmax(largest, std::fabs(value(a.kept, n)));
                const double d = std::fabs(value(now, n) - value(a.kept, n));
                apart = d == d ? std::fmax(apart, d) : 1e300;
            }
            worst = std::fmax(worst, largest > 0 ? apart / largest : apart);
            if (tolerance == 0) worst = std::fmax(worst, 1e-300);
        }
        if (worst > tolerance) {
            ++differences;
            std::printf("DIFFERS %s %s %.3e\n", name, kind, worst);
        }
    }

    ~Case()
    {
        for (Array& a : arrays)
            if (a.owned) cudaFree(a.device);
    }
};

