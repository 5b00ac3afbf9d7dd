// Pools whose windows share the axes evenly: window k of m covers floor(k*n/m) up to ceil((k+1)*n/m) of n points. An item makes one
// element of the result. `sizes` has depth, height and width of the data and of the result, and the strides of channels of both;
// `from` and `to` the strides of images, planes, lines and points. PLACES also gives where the largest number was found, in its plane.

inline int first_of(int k, int n, int m) { return (int)((long)k * n / m); }
inline int end_of(int k, int n, int m) { return (int)(((long)(k + 1) * n + m - 1) / m); }

kernel void adaptive_pool(global const DATA *restrict x, global DATA *restrict y, int rows, int columns, int8 sizes, int4 from, int4 to
#if PLACES
    , global INDEX *restrict places
#endif
    ) {
    const int c = get_global_id(0), i = get_global_id(1);
    if (c >= columns || i >= rows) return;
    const int ox = i % sizes.s5, oy = i / sizes.s5 % sizes.s4, rest = i / sizes.s5 / sizes.s4;
    const int oz = rest % sizes.s3, n = rest / sizes.s3;
    const int z0 = first_of(oz, sizes.s0, sizes.s3), z1 = end_of(oz, sizes.s0, sizes.s3);
    const int y0 = first_of(oy, sizes.s1, sizes.s4), y1 = end_of(oy, sizes.s1, sizes.s4);
    const int x0 = first_of(ox, sizes.s2, sizes.s5), x1 = end_of(ox, sizes.s2, sizes.s5);
    const int base = n * from.s0 + c * sizes.s6;
    int place = (z0 * sizes.s1 + y0) * sizes.s2 + x0;
    float sum = 0.0f, best = LOAD(x, base + z0 * from.s1 + y0 * from.s2 + x0 * from.s3);
    for (int z = z0; z < z1; z++)
        for (int line = y0; line < y1; line++)
            for (int point = x0; point < x1; point++) {
                const float v = LOAD(x, base + z * from.s1 + line * from.s2 + point * from.s3);
                sum += v;
                if (v > best) {
                    best = v;
                    place = (z * sizes.s1 + line) * sizes.s2 + point;
                }
            }
    const int at = n * to.s0 + oz * to.s1 + oy * to.s2 + ox * to.s3 + c * sizes.s7;
    STORE(y, at, MAX ? best : sum / ((z1 - z0) * (y1 - y0) * (x1 - x0)));
#if PLACES
    places[at] = (INDEX)place;
#endif
}
