// Pools of images. An item makes one element of the result. `image` is as in rows.cl; `window` has the size of the kernel, its
// dilations, and the strides of channels of both arrays; `result` the strides of the result. PLACES also gives where the
// largest number was found, counted in planes as the model has them.
kernel void pool(global const DATA *restrict x, global DATA *restrict y, int rows, int columns, int16 image, int8 window,
    int4 result
#if PLACES
    , global INDEX *restrict places, int counted
#endif
    ) {
    const int c = get_global_id(0), i = get_global_id(1);
    if (c >= columns || i >= rows) return;
    const int ox = i % image.s5, oy = i / image.s5 % image.s4, rest = i / image.s5 / image.s4;
    const int oz = rest % image.s3, n = rest / image.s3;
    const int z0 = oz * image.s6 - image.s9, y0 = oy * image.s7 - image.sa, x0 = ox * image.s8 - image.sb;
    const int base = n * image.sc + c * window.s6;
    float best = -FLT_MAX, sum = 0.0f;
    int count = 0, place = 0;
    for (int kz = 0; kz < window.s0; kz++) {
        const int z = z0 + kz * window.s3;
        if ((uint)z >= (uint)image.s0) continue;
        for (int ky = 0; ky < window.s1; ky++) {
            const int line = y0 + ky * window.s4;
            if ((uint)line >= (uint)image.s1) continue;
            for (int kx = 0; kx < window.s2; kx++) {
                const int point = x0 + kx * window.s5;
                if ((uint)point >= (uint)image.s2) continue;
                const float v = LOAD(x, base + z * image.sd + line * image.se + point * image.sf);
                sum += v;
                count++;
                if (v > best) {
                    best = v;
                    place = (z * image.s1 + line) * image.s2 + point;
                }
            }
        }
    }
    const int at = n * result.s0 + oz * result.s1 + oy * result.s2 + ox * result.s3 + c * window.s7;
#if MAX
    STORE(y, at, best);
#if PLACES
    places[at] = (INDEX)(((long)(n * columns + c) * (image.s0 * image.s1 * image.s2) + place) % counted);
#endif
#else
    const int divisor = ALL ? window.s0 * window.s1 * window.s2 : count;
    STORE(y, at, divisor == 0 ? 0.0f : sum / divisor);
#endif
}
