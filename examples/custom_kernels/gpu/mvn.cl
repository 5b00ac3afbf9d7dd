#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

#define ITEMS 16
// Values of the attribute eps_mode become text of the definition EPS_MODE; these give the texts a number.
#define inside_sqrt 1
#define INSIDE_SQRT 1
#define outside_sqrt 2
#define OUTSIDE_SQRT 2

float sum_of_group(float own, __local float *sums)
{
    const int item = get_local_id(0);
    sums[item] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    for (int i = 0; i < ITEMS; i++) {
        sum += sums[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}

// A work group for each picture of each channel: its mean, its variance, then every element. `copy` is the kernel's own memory.
__kernel void mvn(__global const INPUT0_TYPE *x, __global OUTPUT0_TYPE *y, __global INPUT0_TYPE *copy)
{
    __local float sums[ITEMS];
    const int size = INPUT0_DIMS[2] * INPUT0_DIMS[3];
    const int start = get_global_id(1) * size;
    float own = 0.0f;
    for (int i = get_local_id(0); i < size; i += ITEMS) {
        own += x[start + i];
    }
    const float mean = sum_of_group(own, sums) / size;
    own = 0.0f;
    for (int i = get_local_id(0); i < size; i += ITEMS) {
        const float distance = x[start + i] - mean;
        copy[start + i] = distance;
        own += distance * distance;
    }
    const float variance = sum_of_group(own, sums) / size;
    const float eps = EPS;
    const float deviation = EPS_MODE == inside_sqrt ? sqrt(variance + eps) : sqrt(variance) + eps;
    const float scale = NORMALIZE_VARIANCE ? 1.0f / deviation : 1.0f;
    for (int i = get_local_id(0); i < size; i += ITEMS) {
        y[start + i] = copy[start + i] * scale;
    }
}
