// How much two sets have in common, for many pairs of sets (Jaccard similarity of documents,
// common neighbours in a graph).
//
// Sets are sorted lists of numbers; a thread merges the two of its pair and counts what occurs in
// both. Which list it reads next depends on the data, so it reads one element at a time, and comes
// back to the same two lines of 32 elements up to 32 times each.

// member: [sets][size], each row sorted; pair: [pairs][2], numbers of sets
// common: [pairs]
extern "C" __global__ void set_overlap(int pairs, int size, const int* __restrict__ member,
                                       const int* __restrict__ pair, int* __restrict__ common) {
    const int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= pairs) return;
    const int* __restrict__ left = member + (long long)pair[2 * id] * size;
    const int* __restrict__ right = member + (long long)pair[2 * id + 1] * size;
    int i = 0, j = 0, found = 0;
    while (i < size && j < size) {
        const int a = left[i], b = right[j];
        found += a == b;
        i += a <= b;
        j += b <= a;
    }
    common[id] = found;
}
