// The windows of a convolution whose taps are moved, as columns for a product: [images, channels, taps, windows]. Offsets are pairs of
// planes, y and x, for each tap of each deformable group; the mask has a plane for each. FADES says that the image fades into zeros within
// one pixel; else a point outside counts nothing and the last pixel reaches to the border.

inline float pixel(__global const DATA *x, int base, int height, int width, int row, int column) {
    return row >= 0 && row < height && column >= 0 && column < width ? LOAD(x, base + row * width + column) : 0.0f;
}

inline int is_outside(float at, int n) {
    return FADES ? !(at > -1.0f && at < (float)n) : !(at >= 0.0f && at < (float)n);
}

// `image` is height, width, and those of the result and of the filter; `steps` strides, dilations and padding, y first.
__kernel void deformed(__global const DATA *x, __global const float *offsets, __global const DATA *mask, __global DATA *columns,
                       const int count, const int channels, const int shared, const int8 image, const int8 steps) {
    const int at = get_global_id(0);
    if (at >= count) return;
    const int windows = image.s2 * image.s3, taps = image.s4 * image.s5;
    const int window = at % windows, tap = at / windows % taps, plane = at / windows / taps;
    const int n = plane / channels, c = plane % channels;
    const int moved = (n * (channels / shared) + c / shared) * taps + tap;
    const int row = window / image.s3 * steps.s0 + tap / image.s5 * steps.s2 - steps.s4;
    const int column = window % image.s3 * steps.s1 + tap % image.s5 * steps.s3 - steps.s5;
    const float py = row + offsets[2 * moved * windows + window], px = column + offsets[(2 * moved + 1) * windows + window];
    float v = 0.0f;
    if (!is_outside(py, image.s0) && !is_outside(px, image.s1)) {
        const int y0 = (int)floor(py), x0 = (int)floor(px), base = plane * image.s0 * image.s1;
        const int y1 = FADES ? y0 + 1 : min(y0 + 1, image.s0 - 1), x1 = FADES ? x0 + 1 : min(x0 + 1, image.s1 - 1);
        const float fy = py - y0, fx = px - x0;
        const float upper = (1.0f - fx) * pixel(x, base, image.s0, image.s1, y0, x0) + fx * pixel(x, base, image.s0, image.s1, y0, x1);
        const float lower = (1.0f - fx) * pixel(x, base, image.s0, image.s1, y1, x0) + fx * pixel(x, base, image.s0, image.s1, y1, x1);
        v = (1.0f - fy) * upper + fy * lower;
    }
#if MASKED
    v *= LOAD(mask, moved * windows + window);
#endif
    STORE(columns, at, v);
}
