#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

// Input 0 is [time, batch, classes], input 1 [time, batch]; the output [batch, time, 1, 1] is padded with -1. A work item each
// sequence: the most likely class of each step, without blanks (the last class) and repeats.
__kernel void ctc_decoder(__global const INPUT0_TYPE *x, __global const INPUT1_TYPE *mask, __global OUTPUT0_TYPE *y)
{
    const int times = INPUT0_DIMS[0], batch = INPUT0_DIMS[1], classes = INPUT0_DIMS[2];
    const int b = get_global_id(0);
    int written = 0, before = -1;
    for (int t = 0; t < times && mask[t * batch + b] != 0; t++) {
        __global const INPUT0_TYPE *step = x + (t * batch + b) * classes;
        int best = 0;
        for (int c = 1; c < classes; c++) {
            best = step[c] > step[best] ? c : best;
        }
        if (best != classes - 1 && !(MERGE_REPEATED && best == before)) {
            y[b * times + written++] = best;
        }
        before = best;
    }
    while (written < times) {
        y[b * times + written++] = -1;
    }
}
