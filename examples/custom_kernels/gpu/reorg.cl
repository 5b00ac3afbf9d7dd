#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

// Space to depth in the order of Darknet: a work item for each element, counted as the input has them.
__kernel void reorg(__global const INPUT0_TYPE *x, __global OUTPUT0_TYPE *y)
{
    const int channels = INPUT0_DIMS[1], height = INPUT0_DIMS[2], width = INPUT0_DIMS[3];
    const int i = get_global_id(0);
    const int column = i % width, row = i / width % height, c = i / (width * height) % channels;
    const int b = i / (width * height * channels);
    const int inner = channels / (STRIDE * STRIDE);
    const int block = c / inner, from = c % inner;
    const int source_row = row * STRIDE + block / STRIDE, source_column = column * STRIDE + block % STRIDE;
    y[i] = x[b * channels * height * width + (from * height * STRIDE + source_row) * width * STRIDE + source_column];
}
