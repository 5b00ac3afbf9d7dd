#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

// Where an element lies, whatever the format of the tensor.
#define AT(T, b, f, y, x) \
    (T##_OFFSET + (b) * T##_PITCHES[0] + (f) * T##_PITCHES[1] + (y) * T##_PITCHES[2] + (x) * T##_PITCHES[3])

// y = x where x >= 0, else slope * x, with a slope for each channel or one for all.
__kernel void prelu(__global const INPUT0_TYPE *x, __global const INPUT1_TYPE *slope, __global OUTPUT0_TYPE *y)
{
    const int column = get_global_id(0), row = get_global_id(1);
    const int f = get_global_id(2) % OUTPUT0_DIMS[1], b = get_global_id(2) / OUTPUT0_DIMS[1];
    const float value = x[AT(INPUT0, b, f, row, column)];
    const float factor = slope[f % INPUT1_DIMS[0]];
    y[AT(OUTPUT0, b, f, row, column)] = value >= 0.0f ? value : factor * value;
}
