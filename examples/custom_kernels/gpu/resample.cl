#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

#define ITEMS 16

// Where an output pixel lies in the input (half_pixel), within the picture.
float position(int out, int in_size, int out_size)
{
    return clamp((out + 0.5f) * in_size / out_size - 0.5f, 0.0f, (float)(in_size - 1));
}

// A work group for each row of the output. It brings the two rows of the input that it needs into local memory.
__kernel void resample(__global const INPUT0_TYPE *x, __global OUTPUT0_TYPE *y)
{
    __local INPUT0_TYPE upper[MAX_WIDTH], lower[MAX_WIDTH];
    const int height = INPUT0_DIMS[2], width = INPUT0_DIMS[3];
    const int picture = get_global_id(2), row = get_global_id(1);
    const float source_row = position(row, height, OUTPUT0_DIMS[2]);
    const int first = (int)source_row, second = min(first + 1, height - 1);
    const float down = source_row - first;
    event_t copied = async_work_group_copy(upper, x + (picture * height + first) * width, width, 0);
    copied = async_work_group_copy(lower, x + (picture * height + second) * width, width, copied);
    wait_group_events(1, &copied);
    for (int column = get_local_id(0); column < OUTPUT0_DIMS[3]; column += ITEMS) {
        const float source = position(column, width, OUTPUT0_DIMS[3]);
        const int left = (int)source, right = min(left + 1, width - 1);
        const float across = source - left;
        const float above = upper[left] + across * (upper[right] - upper[left]);
        const float below = lower[left] + across * (lower[right] - lower[left]);
        y[(picture * OUTPUT0_DIMS[2] + row) * OUTPUT0_DIMS[3] + column] = above + down * (below - above);
    }
}
