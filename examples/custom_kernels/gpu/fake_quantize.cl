#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

// Where an element lies, whatever the format of the tensor.
#define AT(T, b, f, y, x) \
    (T##_OFFSET + (b) * T##_PITCHES[0] + (f) * T##_PITCHES[1] + (y) * T##_PITCHES[2] + (x) * T##_PITCHES[3])

// A limit is one number, or one for each channel.
#define LIMIT(n, p, f) ((float)p[(f) % INPUT##n##_DIMS[1] * INPUT##n##_PITCHES[1]])

__kernel void fake_quantize(__global const INPUT0_TYPE *x, __global const INPUT1_TYPE *in_low,
                            __global const INPUT2_TYPE *in_high, __global const INPUT3_TYPE *out_low,
                            __global const INPUT4_TYPE *out_high, __global OUTPUT0_TYPE *y)
{
    const int column = get_global_id(0), row = get_global_id(1);
    const int f = get_global_id(2) % OUTPUT0_DIMS[1], b = get_global_id(2) / OUTPUT0_DIMS[1];
    const float value = x[AT(INPUT0, b, f, row, column)];
    const float il = LIMIT(1, in_low, f), ih = LIMIT(2, in_high, f), ol = LIMIT(3, out_low, f), oh = LIMIT(4, out_high, f);
    float result;
    if (value <= min(il, ih)) {
        result = ol;
    } else if (value > max(il, ih)) {
        result = oh;
    } else {
        const float step = rint((value - il) / (ih - il) * (LEVELS - 1));
        result = step / (LEVELS - 1) * (oh - ol) + ol;
    }
    y[AT(OUTPUT0, b, f, row, column)] = result;
}
