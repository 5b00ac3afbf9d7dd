#pragma OPENCL EXTENSION cl_khr_fp16 : enable

// y = x where x >= 0, else slope * x, with a slope for each channel. A work item for each row.
__kernel void leaky_relu(__global const half *src, __global const half *slope, __global half *dst, int width)
{
    const int row = get_global_id(0), c = get_global_id(1);
    const int start = (c * get_global_size(0) + row) * width;
    for (int i = 0; i < width; i++) {
        const half x = src[start + i];
        dst[start + i] = x >= (half)0 ? x : slope[c] * x;
    }
}
