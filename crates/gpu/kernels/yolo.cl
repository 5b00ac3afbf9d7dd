// What the heads of YOLO networks do.

#ifdef REORG
// Blocks of pixels to channels, in the order of Darknet: `inner` channels of an image that is read as [inner, height*s, width*s].
// T moves elements of one size.
__kernel void reorg(__global const T *x, __global T *y, const int count, const int channels, const int height, const int width,
                    const int s, const int inner) {
    const int at = get_global_id(0);
    if (at >= count) return;
    const int plane = height * width, image = channels * plane, n = at / image, c = at % image / plane;
    const int row = at % plane / width, column = at % width, block = c / inner, from = c % inner;
    const int py = row * s + block / s, px = column * s + block % s;
    y[at] = x[n * inner * s * s * plane + (from * height * s + py) * width * s + px];
}
#else
// An item for each cell of each region: `coords` coordinates, of which the first two get a sigmoid, objectness, classes. Channels
// beyond the regions are left out.
__kernel void region(__global const DATA *x, __global DATA *y, const int count, const int area, const int regions, const int channels,
                     const int coords, const int classes) {
    const int at = get_global_id(0);
    if (at >= count) return;
    const int entries = coords + classes + 1, cell = at % area, r = at / area % regions, n = at / area / regions;
    const int from = (n * channels + r * entries) * area + cell, to = (n * regions + r) * entries * area + cell;
    for (int e = 0; e <= coords; e++) {
        const float v = LOAD(x, from + e * area);
        STORE(y, to + e * area, e < 2 || e == coords ? f_sigmoid(v) : v);
    }
#if SOFTMAX
    float largest = -INFINITY, sum = 0.0f;
    for (int e = coords + 1; e < entries; e++) largest = fmax(largest, LOAD(x, from + e * area));
    for (int e = coords + 1; e < entries; e++) sum += exp(LOAD(x, from + e * area) - largest);
    for (int e = coords + 1; e < entries; e++) STORE(y, to + e * area, exp(LOAD(x, from + e * area) - largest) / sum);
#else
    for (int e = coords + 1; e < entries; e++) STORE(y, to + e * area, f_sigmoid(LOAD(x, from + e * area)));
#endif
}
#endif
