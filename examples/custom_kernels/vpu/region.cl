#pragma OPENCL EXTENSION cl_khr_fp16 : enable

float sigmoid(float x)
{
    return 1.0f / (1.0f + exp(-x));
}

// A work item for each column, a work group for each row. A region is coordinates, objectness, classes.
__kernel void region_softmax(__global const half *src, __global half *dst, int coords, int classes, int num)
{
    const int area = get_global_size(0) * get_global_size(1);
    const int cell = get_global_id(1) * get_global_size(0) + get_global_id(0);
    for (int r = 0; r < num; r++) {
        const int start = r * (coords + 1 + classes) * area + cell;
        for (int i = 0; i <= coords; i++) {
            const float x = src[start + i * area];
            dst[start + i * area] = i < 2 || i == coords ? sigmoid(x) : x;
        }
        const int first = start + (coords + 1) * area;
        float most = -INFINITY, sum = 0.0f;
        for (int i = 0; i < classes; i++) {
            most = max(most, (float)src[first + i * area]);
        }
        for (int i = 0; i < classes; i++) {
            sum += exp(src[first + i * area] - most);
        }
        for (int i = 0; i < classes; i++) {
            dst[first + i * area] = exp(src[first + i * area] - most) / sum;
        }
    }
}

__kernel void region_sigmoid(__global const half *src, __global half *dst, int coords, int classes, int channels)
{
    const int area = get_global_size(0) * get_global_size(1);
    const int cell = get_global_id(1) * get_global_size(0) + get_global_id(0);
    const int entries = coords + 1 + classes;
    for (int i = 0; i < channels; i++) {
        const int entry = i % entries;
        const float x = src[i * area + cell];
        dst[i * area + cell] = entry < 2 || entry >= coords ? sigmoid(x) : x;
    }
}
