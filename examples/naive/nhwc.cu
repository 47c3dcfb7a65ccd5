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

extern "C" void run_nhwc(const float *in, float *out, int images, int channels, int height, int width,
                         cudaStream_t stream) {
    int count = images * channels * height * width;
    nhwc<<<(count + 255) / 256, 256, 0, stream>>>(in, out, images, channels, height, width);
}
