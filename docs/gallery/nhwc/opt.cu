// Images with their channels in planes to images with their channels beside each other, from flat indices.

#pragma warpwright naive sizes(images=32, channels=64, height=128, width=128) outputs(out)
extern "C" __global__ void nhwc(const float *in, float *out, int images, int channels, int height, int width) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= images * channels * height * width) return;
    int c = index % channels;
    int x = index / channels % width;
    int y = index / (channels * width) % height;
    int image = index / (channels * width * height);
    out[index] = in[((image * channels + c) * height + y) * width + x];
}

extern "C++" {

// `in` goes through shared memory in squares of 64, so that neighbours load neighbouring elements
__global__ void __launch_bounds__(256)
nhwc_across(const float *in, float *out, int images, int channels, int height, int width, int c_end, int y_end, int image_end)
{
    const int lane = threadIdx.x % 32;
    const int first = threadIdx.x / 32;
    const int corner_x = blockIdx.x * 64;
    const int corner_y = blockIdx.y * 64;
    const int image = blockIdx.z;
    __shared__ float in_square[64][65];
    #pragma unroll
    for (int step = 0; step < 64; step += 8) {
        const int row = step + first;
        #pragma unroll
        for (int part = 0; part < 64; part += 32) {
            const int column = part + lane;
            const int c = corner_x + row;
            const int y = corner_y + column;
            if (c < c_end && y < y_end) {
                in_square[row][column] = in[channels * height * width * image + height * width * c + y];
            }
        }
    }
    __syncthreads();
    #pragma unroll
    for (int step = 0; step < 64; step += 8) {
        const int row = step + first;
        #pragma unroll
        for (int part = 0; part < 64; part += 32) {
            const int column = part + lane;
            const int c = corner_x + column;
            const int y = corner_y + row;
            if (c < c_end && y < y_end) {
                out[channels * height * width * image + channels * y + c] = in_square[column][row];
            }
        }
    }
}

static inline cudaError_t nhwc_try(dim3 grid, dim3 block, const float *in, float *out, int images, int channels, int height, int width, cudaStream_t stream_)
{
    if (cudaPeekAtLastError() != cudaSuccess) return cudaErrorNotSupported;
    if (grid.y * block.y != 1 ||
        grid.z * block.z != 1) return cudaErrorNotSupported;
    if (images < 0 ||
        channels < 0 ||
        height < 0 ||
        width < 0) return cudaErrorNotSupported;
    // The points that the launch computes.
    if ((long long)grid.x * block.x > 2147483647) return cudaErrorNotSupported;
    long long image_end = (long long)grid.x * block.x;
    long long rest = 0;
    if ((long long)channels <= 0) return cudaErrorNotSupported;
    rest += image_end % ((long long)channels);
    image_end /= (long long)channels;
    long long c_end = (long long)channels;
    if ((long long)height * (long long)width <= 0) return cudaErrorNotSupported;
    rest += image_end % ((long long)height * (long long)width);
    image_end /= (long long)height * (long long)width;
    long long y_end = (long long)height * (long long)width;
    if (image_end >= (long long)images) {
        image_end = (long long)images;
        rest = 0;
    }
    if (rest != 0) return cudaErrorNotSupported;
    if (c_end <= 0 ||
        c_end > 2147352576 ||
        y_end <= 0 ||
        y_end > 2147352576 ||
        image_end <= 0 ||
        image_end > 2147352576) return cudaErrorNotSupported;
    // Places and sizes are counted in 32 bits.
    if ((double)channels * (double)height * (double)width * (double)image_end + (double)channels * (double)y_end + (double)c_end - (double)channels * (double)height * (double)width - (double)channels - 1 > 2147483647.0 ||
        (double)images * (double)channels > 2147483647.0 ||
        (double)images * (double)channels * (double)height > 2147483647.0 ||
        (double)images * (double)channels * (double)height * (double)width > 2147483647.0 ||
        (double)c_end - 1 > 2147483647.0 ||
        (double)height * (double)width * (double)image_end + (double)y_end - (double)height * (double)width - 1 > 2147483647.0 ||
        (double)y_end - 1 > 2147483647.0 ||
        (double)channels * (double)width > 2147483647.0 ||
        (double)height * (double)image_end + (double)y_end - (double)height - 1 > 2147483647.0 ||
        (double)channels * (double)height * (double)width > 2147483647.0 ||
        (double)image_end - 1 > 2147483647.0 ||
        (double)channels * (double)image_end - (double)channels > 2147483647.0 ||
        (double)channels * (double)image_end + (double)c_end - (double)channels - 1 > 2147483647.0 ||
        (double)channels * (double)height * (double)image_end + (double)height * (double)c_end - (double)channels * (double)height - (double)height > 2147483647.0 ||
        (double)channels * (double)height * (double)image_end + (double)height * (double)c_end + (double)y_end - (double)channels * (double)height - (double)height - 1 > 2147483647.0 ||
        (double)channels * (double)height * (double)width * (double)image_end + (double)height * (double)width * (double)c_end + (double)y_end - (double)channels * (double)height * (double)width - (double)height * (double)width - 1 > 2147483647.0) return cudaErrorNotSupported;
    // Arrays that are stored to must be apart from the others.
    long long in_first = 0;
    long long in_last = (long long)channels * (long long)height * (long long)width * (long long)image_end + (long long)height * (long long)width * (long long)c_end + (long long)y_end - (long long)channels * (long long)height * (long long)width - (long long)height * (long long)width - 1;
    long long out_first = 0;
    long long out_last = (long long)channels * (long long)height * (long long)width * (long long)image_end + (long long)channels * (long long)y_end + (long long)c_end - (long long)channels * (long long)height * (long long)width - (long long)channels - 1;
    if (((const char*)(in + in_first) < (const char*)(out + out_last) + 4 && (const char*)(out + out_first) < (const char*)(in + in_last) + 4)) return cudaErrorNotSupported;
    {
        if ((y_end + 63) / 64 > 65535) return cudaErrorNotSupported;
        if (image_end > 65535) return cudaErrorNotSupported;
        nhwc_across<<<dim3((unsigned)((c_end + 63) / 64), (unsigned)((y_end + 63) / 64), (unsigned)(image_end)), 256, 0, stream_>>>(
            in, out, images, channels, height, width, (int)c_end, (int)y_end, (int)image_end);
        return cudaPeekAtLastError();
    }
}

// In place of nhwc<<<grid, block, shared, stream_>>>(…): what was generated where it is for this launch, else the kernel as written.
static inline void nhwc_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream_, const float *in, float *out, int images, int channels, int height, int width)
{
    if (nhwc_try(grid, block, in, out, images, channels, height, width, stream_) == cudaErrorNotSupported)
        nhwc<<<grid, block, shared, stream_>>>(in, out, images, channels, height, width);
}

}  // extern "C++"


extern "C" void run_nhwc(const float *in, float *out, int images, int channels, int height, int width,
                         cudaStream_t stream) {
    int count = images * channels * height * width;
    nhwc_launch((count + 255) / 256, 256, 0, stream, in, out, images, channels, height, width);
}
