// Counting the ways to place n queens: backtracking on a stack of registers.
//
// A thread's number gives the columns of the first five queens; the thread counts how that can be
// completed. The search is a recursion of known depth that is inlined, so its stack, four words a
// row, lies in registers, and no address is ever computed. Threads of a warp go different ways all
// the time: there is nothing here but integer arithmetic and branches.

namespace {

constexpr int FIXED = 5;   // rows that the thread's number decides
constexpr int DEPTH = 11;  // rows at most that are searched

// Columns taken, and diagonals that meet the present row, going right and left.
struct Attacks {
    unsigned columns, right, left;

    __device__ __forceinline__ unsigned all() const { return columns | right | left; }
    __device__ __forceinline__ Attacks with(unsigned queen) const {
        return {columns | queen, (right | queen) << 1, (left | queen) >> 1};
    }
};

template <int ROWS>
__device__ __forceinline__ void search(Attacks attacks, unsigned board, unsigned& count) {
    unsigned free = board & ~attacks.all();
    while (free != 0) {
        unsigned queen = free & (0u - free);
        free ^= queen;
        Attacks next = attacks.with(queen);
        if (next.columns == board)
            ++count;
        else
            search<ROWS - 1>(next, board, count);
    }
}

template <>
__device__ __forceinline__ void search<0>(Attacks, unsigned, unsigned&) {}

}  // namespace

// n: queens, more than 5 and at most 16; solutions: [n^5], by the columns of the first five queens
extern "C" __global__ void nqueens(int n, unsigned* __restrict__ solutions) {
    const unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n * n * n * n * n) return;
    const unsigned board = (1u << n) - 1;
    Attacks attacks = {};
    bool possible = true;
    unsigned rest = id;
#pragma unroll
    for (int row = 0; row < FIXED; ++row) {
        unsigned queen = 1u << rest % n;
        rest /= n;
        possible = possible && (attacks.all() & queen) == 0;
        attacks = attacks.with(queen);
    }
    unsigned count = 0;
    if (possible) search<DEPTH>(attacks, board, count);
    solutions[id] = count;
}
