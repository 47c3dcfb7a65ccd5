// Each declaration of `i` is a place of its own.
// test: accesses

__global__ void softmax(const float *in, float *out, int rows, int cols)
{
    int row = blockDim.x * blockIdx.x + threadIdx.x;
    if (row < rows) {
        float most = -1 * INFINITY;
        float sum = 0.0f;
        for (int col = 0; col < cols; col++) {
            int i = row * cols + col;
            most = max(most, in[i]);
        }
        for (int col = 0; col < cols; col++) {
            int i = row * cols + col;
            sum += expf(in[i] - most);
        }
        for (int col = 0; col < cols; col++) {
            int i = row * cols + col;
            out[i] = expf(in[i] - most) / sum;
        }
    }
}

// expect: accesses
// in[cols * row + col]: neighbouring threads are cols elements apart: not coalesced
// out[cols * row + col]: neighbouring threads are cols elements apart: not coalesced
