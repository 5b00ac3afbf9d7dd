#pragma OPENCL EXTENSION cl_khr_fp16 : enable

// Every element divided by the root of the summed squares of all channels at its place. A work group for each row: all channels
// of it are copied into local memory before, and the result is copied back behind it.
__kernel void __dma_preload_grn(__global const half *src, __global half *dst, __local half *in, __local half *out, int channels,
                                float bias)
{
    const int width = get_local_size(0), area = width * get_num_groups(1);
    WorkGroupDmaCreateStrideTransaction(src + get_group_id(1) * width, in, width * sizeof(half), width * sizeof(half),
                                        area * sizeof(half), width * sizeof(half), channels * width * sizeof(half), 0);
}

__kernel void __dma_postwrite_grn(__global const half *src, __global half *dst, __local half *in, __local half *out, int channels,
                                  float bias)
{
    const int width = get_local_size(0), area = width * get_num_groups(1);
    WorkGroupDmaCreateStrideTransaction(out, dst + get_group_id(1) * width, width * sizeof(half), width * sizeof(half),
                                        width * sizeof(half), area * sizeof(half), channels * width * sizeof(half), 0);
}

__kernel void grn(__global const half *src, __global half *dst, __local half *in, __local half *out, int channels, float bias)
{
    const int column = get_local_id(0), width = get_local_size(0);
    float sum = bias;
    for (int c = 0; c < channels; c++) {
        const float x = in[c * width + column];
        sum += x * x;
    }
    const float scale = 1.0f / sqrt(sum);
    for (int c = 0; c < channels; c++) {
        out[c * width + column] = in[c * width + column] * scale;
    }
}
