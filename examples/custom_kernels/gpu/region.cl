#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

float sigmoid(float x)
{
    return 1.0f / (1.0f + exp(-x));
}

#if DO_SOFTMAX
#define REGIONS NUM
#else
#define REGIONS (int)(sizeof(MASK) / sizeof(int))
#endif

// A work item for each cell of the picture. A region is COORDS coordinates, objectness, CLASSES classes.
__kernel void region(__global const INPUT0_TYPE *x, __global OUTPUT0_TYPE *y)
{
    const int area = INPUT0_DIMS[2] * INPUT0_DIMS[3];
    const int cell = get_global_id(1) * INPUT0_DIMS[3] + get_global_id(0);
    const int entries = COORDS + 1 + CLASSES;
    for (int b = 0; b < INPUT0_DIMS[0]; b++) {
        for (int r = 0; r < REGIONS; r++) {
            __global const INPUT0_TYPE *in = x + (b * INPUT0_DIMS[1] + r * entries) * area + cell;
            __global OUTPUT0_TYPE *out = y + (b * REGIONS + r) * entries * area + cell;
            for (int i = 0; i < COORDS; i++) {
                out[i * area] = i < 2 ? sigmoid(in[i * area]) : (float)in[i * area];
            }
            out[COORDS * area] = sigmoid(in[COORDS * area]);
            in += (COORDS + 1) * area;
            out += (COORDS + 1) * area;
#if DO_SOFTMAX
            float most = -INFINITY, sum = 0.0f;
            for (int i = 0; i < CLASSES; i++) {
                most = max(most, (float)in[i * area]);
            }
            for (int i = 0; i < CLASSES; i++) {
                sum += exp(in[i * area] - most);
            }
            for (int i = 0; i < CLASSES; i++) {
                out[i * area] = exp(in[i * area] - most) / sum;
            }
#else
            for (int i = 0; i < CLASSES; i++) {
                out[i * area] = sigmoid(in[i * area]);
            }
#endif
        }
    }
}
