#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

// Where an element lies, whatever the format of the tensor.
#define AT(T, b, f, y, x) \
    (T##_OFFSET + (b) * T##_PITCHES[0] + (f) * T##_PITCHES[1] + (y) * T##_PITCHES[2] + (x) * T##_PITCHES[3])

// Every element divided by the root of the summed squares of all channels at its place.
__kernel void grn(__global const INPUT0_TYPE *x, __global OUTPUT0_TYPE *y)
{
    const int column = get_global_id(0), row = get_global_id(1), b = get_global_id(2);
    float sum = 0.0f;
    for (int f = 0; f < INPUT0_DIMS[1]; f++) {
        const float value = x[AT(INPUT0, b, f, row, column)];
        sum += value * value;
    }
    const float scale = 1.0f / sqrt(sum + (float)(BIAS));
    for (int f = 0; f < INPUT0_DIMS[1]; f++) {
        y[AT(OUTPUT0, b, f, row, column)] = x[AT(INPUT0, b, f, row, column)] * scale;
    }
}
