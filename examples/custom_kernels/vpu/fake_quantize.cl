#pragma OPENCL EXTENSION cl_khr_fp16 : enable

// Limits are one number each. A work item for each row.
__kernel void fake_quantize(__global const half *src, __global const half *in_low, __global const half *in_high,
                            __global const half *out_low, __global const half *out_high, __global half *dst, int levels, int width)
{
    const int start = (get_global_id(1) * get_global_size(0) + get_global_id(0)) * width;
    const float il = in_low[0], ih = in_high[0], ol = out_low[0], oh = out_high[0];
    for (int i = 0; i < width; i++) {
        const float x = src[start + i];
        float y = x <= min(il, ih) ? ol : oh;
        if (x > min(il, ih) && x <= max(il, ih)) {
            y = rint((x - il) / (ih - il) * (levels - 1)) / (levels - 1) * (oh - ol) + ol;
        }
        dst[start + i] = y;
    }
}
