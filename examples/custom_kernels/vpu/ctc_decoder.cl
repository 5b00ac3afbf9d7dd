#pragma OPENCL EXTENSION cl_khr_fp16 : enable

// src is [time, batch, classes], mask [time, batch]; dst is [batch, time, 1, 1], padded with -1. A work item for each sequence.
__kernel void ctc_decoder(__global const half *src, __global const half *mask, __global half *dst, int times, int batch, int classes,
                          int merge)
{
    const int b = get_global_id(0);
    int written = 0, before = -1;
    for (int t = 0; t < times && mask[t * batch + b] != (half)0; t++) {
        __global const half *step = src + (t * batch + b) * classes;
        int best = 0;
        for (int c = 1; c < classes; c++) {
            best = step[c] > step[best] ? c : best;
        }
        if (best != classes - 1 && !(merge && best == before)) {
            dst[b * times + written++] = best;
        }
        before = best;
    }
    while (written < times) {
        dst[b * times + written++] = -1;
    }
}
