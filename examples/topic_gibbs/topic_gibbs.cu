// One sweep of Gibbs sampling for topic models: every word of a document draws a new topic.
//
// A topic's probability is proportional to (its count in the document + 1) x (its weight for the
// word + 1); the draw sums these products, picks a number below the sum and walks again until the
// running sum exceeds it. Documents are independent when the word weights stay fixed during the
// sweep (Newman, Asuncion, Smyth, Welling 2009), so a thread takes a document. It reads its own
// histogram of 180 bytes twice per word, and a row of the word table that lies anywhere.
// All arithmetic is in integers, so the drawn topics are exact.

namespace {

// The finalizer of MurmurHash3: a random number for every word of every document.
__device__ __forceinline__ unsigned mix(unsigned h) {
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ h >> 16;
}

}  // namespace

// word: [documents][length], numbers of rows of weight; weight: [vocabulary][topics]
// count: [documents][topics], how often each topic occurs in the document, updated by the draws
// topic: [documents][length], the topics drawn
extern "C" __global__ void topic_gibbs(int documents, int length, int topics,
                                       const int* __restrict__ word,
                                       const unsigned* __restrict__ weight, unsigned* count,
                                       unsigned char* __restrict__ topic) {
    const int document = blockIdx.x * blockDim.x + threadIdx.x;
    if (document >= documents) return;
    unsigned* own = count + (long long)document * topics;
    for (int t = 0; t < length; ++t) {
        const int place = document * length + t;
        const unsigned* __restrict__ row = weight + (long long)word[place] * topics;
        unsigned total = 0;
#pragma unroll 1
        for (int k = 0; k < topics; ++k) total += (own[k] + 1) * (row[k] + 1);
        const unsigned threshold = __umulhi(mix(place), total);
        unsigned running = 0;
        int k = 0;
#pragma unroll 1
        for (; k < topics - 1; ++k) {
            running += (own[k] + 1) * (row[k] + 1);
            if (running > threshold) break;
        }
        own[k] += 1;
        topic[place] = k;
    }
}
