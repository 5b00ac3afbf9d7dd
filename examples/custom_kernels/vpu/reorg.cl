#pragma OPENCL EXTENSION cl_khr_fp16 : enable

// Space to depth in the order of Darknet. A work item for each row of what the output is when it is counted like the input.
__kernel void reorg(__global const half *src, __global half *dst, int width, int channels, int stride)
{
    const int row = get_global_id(0), c = get_global_id(1), height = get_global_size(0);
    const int inner = channels / (stride * stride);
    const int block = c / inner, from = c % inner;
    const int source_row = row * stride + block / stride;
    for (int i = 0; i < width; i++) {
        const int source = (from * height * stride + source_row) * width * stride + i * stride + block % stride;
        dst[(c * height + row) * width + i] = src[source];
    }
}
