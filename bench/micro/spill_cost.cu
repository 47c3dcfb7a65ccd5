// What one access to a spill slot costs: the costs of CRAT's TPSC (docs/regs.md).
//
// Three kernels run the same dependent chain of multiply-adds, one warp on one SM. Two of them send
// the value through a slot in each step, a store and a load of the same address, as spill code
// does: in local memory, or in shared memory, conflict-free. The difference of the cycles, per
// access, is the cost. Which slot is used depends on the value, so that no compiler keeps it in a
// register.
constexpr unsigned kSlots = 8;
constexpr unsigned kThreads = 32;

struct None {
    __device__ unsigned through(unsigned x) { return x; }
};

struct Local {
    volatile unsigned slot[kSlots];
    __device__ unsigned through(unsigned x) {
        slot[x % kSlots] = x;
        return slot[x % kSlots];
    }
};

__shared__ volatile unsigned shared_slot[kSlots][kThreads];

struct Shared {
    __device__ unsigned through(unsigned x) {
        shared_slot[x % kSlots][threadIdx.x] = x;
        return shared_slot[x % kSlots][threadIdx.x];
    }
};

template <class Slot>
__device__ void chain(unsigned *cycles, unsigned *sink, unsigned steps, unsigned a) {
    Slot slot;
    unsigned x = threadIdx.x;
    // Once to warm the caches, once to measure.
    for (int round = 0; round < 2; round++) {
        const long long start = clock64();
        for (unsigned i = 0; i < steps; i++) x = slot.through(x * a + i);
        cycles[threadIdx.x] = static_cast<unsigned>(clock64() - start);
    }
    sink[threadIdx.x] = x;
}

extern "C" __global__ void spill_none(unsigned *cycles, unsigned *sink, unsigned steps, unsigned a) {
    chain<None>(cycles, sink, steps, a);
}

extern "C" __global__ void spill_local(unsigned *cycles, unsigned *sink, unsigned steps, unsigned a) {
    chain<Local>(cycles, sink, steps, a);
}

extern "C" __global__ void spill_shared(unsigned *cycles, unsigned *sink, unsigned steps, unsigned a) {
    chain<Shared>(cycles, sink, steps, a);
}
