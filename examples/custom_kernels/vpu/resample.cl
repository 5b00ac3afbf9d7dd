#pragma OPENCL EXTENSION cl_khr_fp16 : enable

// Linear, half_pixel. A work group for each row of the output: the two rows of the input that it needs are copied into local memory
// before, and the result is copied back behind it.
float position(int out, int in_size, int out_size)
{
    return clamp((out + 0.5f) * in_size / out_size - 0.5f, 0.0f, (float)(in_size - 1));
}

__kernel void __dma_preload_resample(__global const half *src, __global half *dst, __local half *rows, __local half *line, int iw,
                                     int ih, int ow, int oh)
{
    __global const half *picture = src + get_group_id(2) * ih * iw;
    const int first = (int)position(get_group_id(1), ih, oh), second = min(first + 1, ih - 1);
    WorkGroupDmaCreateStrideTransaction(picture + first * iw, rows, iw * sizeof(half), iw * sizeof(half),
                                        (second - first) * iw * sizeof(half), iw * sizeof(half), 2 * iw * sizeof(half), 0);
}

__kernel void __dma_postwrite_resample(__global const half *src, __global half *dst, __local half *rows, __local half *line, int iw,
                                       int ih, int ow, int oh)
{
    WorkGroupDmaCreateStrideTransaction(line, dst + (get_group_id(2) * oh + get_group_id(1)) * ow, ow * sizeof(half),
                                        ow * sizeof(half), ow * sizeof(half), ow * sizeof(half), ow * sizeof(half), 0);
}

__kernel void resample(__global const half *src, __global half *dst, __local half *rows, __local half *line, int iw, int ih, int ow,
                       int oh)
{
    const float row = position(get_group_id(1), ih, oh);
    const float down = row - (int)row;
    for (int i = get_local_id(0); i < ow; i += get_local_size(0)) {
        const float column = position(i, iw, ow);
        const int left = (int)column, right = min(left + 1, iw - 1);
        const float across = column - left;
        const float above = rows[left] + across * (rows[right] - rows[left]);
        const float below = rows[iw + left] + across * (rows[iw + right] - rows[iw + left]);
        line[i] = above + down * (below - above);
    }
}
