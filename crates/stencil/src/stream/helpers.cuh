__device__ __forceinline__ int inside(int i, int low, int high)
{
    return i < low ? low : i > high ? high : i;
}

// The slot of a ring after an index that may run over its end once.
template <int SLOTS>
__device__ __forceinline__ int ring(int i) { return i >= SLOTS ? i - SLOTS : i; }

template <int BYTES>
__device__ __forceinline__ void copy_bytes(unsigned to, const void* from)
{
#if __CUDA_ARCH__ >= 800
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES)
                     : "memory");
#else
    const int* const words = static_cast<const int*>(from);
    for (int i = 0; i < BYTES / 4; ++i)
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(to + 4u * i), "r"(words[i]) : "memory");
#endif
}

// Two neighbours of a row, of which either may not be wanted; WIDE: they begin at a multiple of their size; APART: one
// may be wanted without the other.
template <bool WIDE, bool APART, class T>
__device__ __forceinline__ void copy_pair(unsigned to, const T* from, bool low, bool high)
{
    if (WIDE && !APART) {
        if (low) copy_bytes<2 * sizeof(T)>(to, from);
    } else if (WIDE && low && high) {
        copy_bytes<2 * sizeof(T)>(to, from);
    } else {
        if (low) copy_bytes<sizeof(T)>(to, from);
        if (high) copy_bytes<sizeof(T)>(to + (unsigned)sizeof(T), from + 1);
    }
}

__device__ __forceinline__ void copy_commit()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most PENDING of the latest groups are on their way.
template <int PENDING>
__device__ __forceinline__ void copy_wait()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

