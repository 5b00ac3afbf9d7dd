#pragma OPENCL EXTENSION cl_khr_fp16 : enable

// Stage 0: mean and variance of each channel. A work item for each.
__kernel void mvn_statistics(__global const half *src, __global float *mean, __global float *variance, int width, int height)
{
    const int c = get_global_id(0), size = width * height;
    float sum = 0.0f;
    for (int i = 0; i < size; i++) {
        sum += src[c * size + i];
    }
    mean[c] = sum / size;
    sum = 0.0f;
    for (int i = 0; i < size; i++) {
        const float distance = src[c * size + i] - mean[c];
        sum += distance * distance;
    }
    variance[c] = sum / size;
}

// Stage 1: every element.
__kernel void mvn_apply(__global const half *src, __global half *dst, __global const float *mean, __global const float *variance,
                        int width, float eps)
{
    const int row = get_global_id(0), c = get_global_id(1);
    const float scale = 1.0f / sqrt(variance[c] + eps);
    const int start = (c * get_global_size(0) + row) * width;
    for (int i = 0; i < width; i++) {
        dst[start + i] = (src[start + i] - mean[c]) * scale;
    }
}
