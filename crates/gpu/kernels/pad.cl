// Axes that get longer or shorter at their ends, and sequences that are turned around. T moves elements of one size; RANK axes.

#define CONSTANT 0
#define EDGE 1
#define REFLECT 2
#define SYMMETRIC 3

__kernel void pad(__global const T *x, __global const T *value, __global T *y, const int count, const int8 from, const int8 to,
                  const int8 begins) {
    int rest = get_global_id(0);
    if (rest >= count) return;
    const int out = rest;
    int n[8], m[8], b[8];
    vstore8(from, 0, n);
    vstore8(to, 0, m);
    vstore8(begins, 0, b);
    int at = 0, step = 1, outside = 0;
    for (int a = RANK - 1; a >= 0; a--) {
        int i = rest % m[a] - b[a];
        rest /= m[a];
        if (i < 0 || i >= n[a]) {
#if MODE == CONSTANT
            outside = 1;
            i = 0;
#elif MODE == EDGE
            i = i < 0 ? 0 : n[a] - 1;
#elif MODE == REFLECT
            i = i < 0 ? -i : 2 * (n[a] - 1) - i;
#else
            i = i < 0 ? -i - 1 : 2 * n[a] - 1 - i;
#endif
        }
        at += i * step;
        step *= n[a];
    }
#if MODE == CONSTANT
    y[out] = outside ? VALUE : x[at];
#else
    y[out] = x[at];
#endif
}

// The first elements of each sequence, as many as it has, the other way around.
__kernel void reverse_sequence(__global const T *x, __global const L *lengths, __global T *y, const int count, const int batch,
                               const int batch_step, const int n, const int step) {
    const int at = get_global_id(0);
    if (at >= count) return;
    const int i = at / step % n, len = min((int)lengths[at / batch_step % batch], n);
    y[at] = x[i < len ? at + (len - 1 - 2 * i) * step : at];
}
