#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

// Where an element lies, whatever the format of the tensor.
#define AT(T, b, f, y, x) \
    (T##_OFFSET + (b) * T##_PITCHES[0] + (f) * T##_PITCHES[1] + (y) * T##_PITCHES[2] + (x) * T##_PITCHES[3])

// Channel g * (channels / GROUP) + j goes to j * GROUP + g.
__kernel void shuffle_channels(__global const INPUT0_TYPE *x, __global OUTPUT0_TYPE *y)
{
    const int f = get_global_id(0), column = get_global_id(1);
    const int row = get_global_id(2) % OUTPUT0_DIMS[2], b = get_global_id(2) / OUTPUT0_DIMS[2];
    const int from = f % GROUP * (OUTPUT0_DIMS[1] / GROUP) + f / GROUP;
    y[AT(OUTPUT0, b, f, row, column)] = x[AT(INPUT0, b, from, row, column)];
}
