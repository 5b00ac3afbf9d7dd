// Folds elements along axes. S is how elements lie, N what they are computed as, A what is folded; FIRST, STEP of `a` and `x`,
// JOINED of `a` and `b`, and FINISH of `a` and the number `n` of elements are the function.

// Axes that stay and axes that go, the outermost first, with the steps from one to the next.
inline int offset_of(int i, const int4 dims, const int4 steps) {
    int at = i % dims.w * steps.w;
    i /= dims.w;
    at += i % dims.z * steps.z;
    i /= dims.z;
    at += i % dims.y * steps.y;
    return at + i / dims.y * steps.x;
}

// An item for each result.
__kernel void reduce_items(__global const S *x, __global S *y, const int count, const int n, const int4 kept,
                           const int4 kept_steps, const int4 gone, const int4 gone_steps) {
    const int at = get_global_id(0);
    if (at >= count) return;
    const int start = offset_of(at, kept, kept_steps);
    A a = FIRST;
    for (int i0 = 0; i0 < gone.x; i0++)
        for (int i1 = 0; i1 < gone.y; i1++)
            for (int i2 = 0; i2 < gone.z; i2++) {
                const int row = start + i0 * gone_steps.x + i1 * gone_steps.y + i2 * gone_steps.z;
                for (int i3 = 0; i3 < gone.w; i3++) {
                    const N x0 = LOAD_N(x, row + i3 * gone_steps.w);
                    a = STEP(a, x0);
                }
            }
    STORE_N(y, at, FINISH(a, n));
}

// A group for each result.
__kernel void reduce_groups(__global const S *x, __global S *y, const int count, const int n, const int4 kept,
                            const int4 kept_steps, const int4 gone, const int4 gone_steps) {
    __local A parts[GROUP];
    const int at = get_group_id(0), own = get_local_id(0);
    const int start = offset_of(at, kept, kept_steps);
    A a = FIRST;
    for (int i = own; i < n; i += GROUP) {
        const N x0 = LOAD_N(x, start + offset_of(i, gone, gone_steps));
        a = STEP(a, x0);
    }
    parts[own] = a;
    for (int half_way = GROUP / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (own < half_way) {
            const A b = parts[own + half_way];
            a = JOINED(a, b);
            parts[own] = a;
        }
    }
    if (own == 0) STORE_N(y, at, FINISH(a, n));
}
