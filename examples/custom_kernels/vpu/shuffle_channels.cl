#pragma OPENCL EXTENSION cl_khr_fp16 : enable

// Channel g * (channels / group) + j goes to j * group + g; channels lie beside each other. A work item for each pixel.
__kernel void shuffle_channels(__global const half *src, __global half *dst, int channels, int group)
{
    const int start = (get_global_id(1) * get_global_size(0) + get_global_id(0)) * channels;
    for (int c = 0; c < channels; c++) {
        dst[start + c] = src[start + c % group * (channels / group) + c / group];
    }
}
