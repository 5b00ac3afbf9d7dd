// An image read at points of a grid, x and y from -1 to 1. MODE is 0 for bilinear, 1 for bicubic, 2 for nearest; PADDING 0 for zeros,
// 1 for the border, 2 for the image mirrored; ALIGN says that -1 is the centre of the first pixel.

// The last bit of a position decides about halves, so products are rounded before they are added to.
#pragma OPENCL FP_CONTRACT OFF

inline float position(float v, int size) {
    return ALIGN ? (v + 1.0f) * (float)(size - 1) / 2.0f : ((v + 1.0f) * (float)size - 1.0f) / 2.0f;
}

// The pixel that stands at an index, or -1.
inline int inside(long at, int n) {
#if PADDING == 1
    return (int)clamp(at, 0L, (long)n - 1);
#elif PADDING == 2 && ALIGN
    const long period = n == 1 ? 1 : 2 * ((long)n - 1);
    at = (at < 0 ? -at : at) % period;
    return (int)(at >= n ? period - at : at);
#elif PADDING == 2
    const long period = 2 * (long)n;
    at %= period;
    if (at < 0) at += period;
    return (int)(at >= n ? period - 1 - at : at);
#else
    return at >= 0 && at < n ? (int)at : -1;
#endif
}

// Far points are brought near, so that their neighbours can be counted.
inline long whole(float v) { return isnan(v) ? 0 : (long)clamp(v, -1e15f, 1e15f); }

inline void weights(float f, float w[4]) {
#if MODE == 1
    const float a = -0.75f, p = f + 1.0f, q = 1.0f - f, r = 2.0f - f;
    w[0] = ((a * p - 5.0f * a) * p + 8.0f * a) * p - 4.0f * a;
    w[1] = ((a + 2.0f) * f - (a + 3.0f)) * f * f + 1.0f;
    w[2] = ((a + 2.0f) * q - (a + 3.0f)) * q * q + 1.0f;
    w[3] = ((a * r - 5.0f * a) * r + 8.0f * a) * r - 4.0f * a;
#else
    w[0] = 1.0f - f;
    w[1] = f;
    w[2] = w[3] = 0.0f;
#endif
}

// An item for each element of the result, which is [images, channels, points].
__kernel void grid_sample(__global const DATA *x, __global const float *grid, __global DATA *y, const int count, const int channels,
                          const int height, const int width, const int points) {
    const int at = get_global_id(0);
    if (at >= count) return;
    const int plane = at / points, point = plane / channels * points + at % points;
    const int base = plane * height * width;
    const float px = position(grid[2 * point], width), py = position(grid[2 * point + 1], height);
    float sum = 0.0f;
#if MODE == 2
    const int row = inside(whole(rint(py)), height), column = inside(whole(rint(px)), width);
    if (row >= 0 && column >= 0) sum = LOAD(x, base + row * width + column);
#else
    const float fy = floor(py), fx = floor(px);
    const long y0 = whole(fy) - (MODE == 1), x0 = whole(fx) - (MODE == 1);
    float rows[4], columns[4];
    weights(py - fy, rows);
    weights(px - fx, columns);
    for (int j = 0; j < (MODE == 1 ? 4 : 2); j++)
        for (int i = 0; i < (MODE == 1 ? 4 : 2); i++) {
            const float w = rows[j] * columns[i];
            const int row = inside(y0 + j, height), column = inside(x0 + i, width);
            if (w != 0.0f && row >= 0 && column >= 0) sum += w * LOAD(x, base + row * width + column);
        }
#endif
    STORE(y, at, sum);
}
