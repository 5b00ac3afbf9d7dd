// Choosing and accumulating along an axis; data are [outer, n, inner]. S is how elements lie, N what they are computed as.

#ifdef TOP_K

// Whether an element comes before another: the better one, of equal ones the first, NaN behind all.
inline int before(N a, int i, N b, int j) {
    const int a_nan = a != a, b_nan = b != b;
    if (a_nan || b_nan) return a_nan && b_nan ? i < j : b_nan;
    return a == b ? i < j : BETTER;
}

// A group for each line finds one after the other.
__kernel void top_k(__global const S *x, __global S *values, __global I *indices, const int n, const int inner, const int k) {
    __local N best[GROUP];
    __local int place[GROUP];
    const int own = get_local_id(0), line = get_group_id(0);
    const int outer = line / inner, column = line % inner;
    N last = 0;
    int last_at = -1;
    for (int r = 0; r < k; r++) {
        N a = 0;
        int at = -1;
        for (int i = own; i < n; i += GROUP) {
            const N b = LOAD_N(x, (outer * n + i) * inner + column);
            const int left = last_at < 0 || before(last, last_at, b, i);
            if (left && (at < 0 || before(b, i, a, at))) {
                a = b;
                at = i;
            }
        }
        best[own] = a;
        place[own] = at;
        for (int half_way = GROUP / 2; half_way > 0; half_way /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (own < half_way) {
                const int other = place[own + half_way];
                if (other >= 0 && (place[own] < 0 || before(best[own + half_way], other, best[own], place[own]))) {
                    best[own] = best[own + half_way];
                    place[own] = other;
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        last = best[0];
        last_at = place[0];
        if (own == 0) indices[(outer * k + r) * inner + column] = last_at;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    // In the order of their places, if that is wanted, and then the elements themselves.
    if (own != 0) return;
    for (int r = 1; BY_INDEX && r < k; r++) {
        const I moved = indices[(outer * k + r) * inner + column];
        int to = r;
        for (; to > 0 && indices[(outer * k + to - 1) * inner + column] > moved; to--)
            indices[(outer * k + to) * inner + column] = indices[(outer * k + to - 1) * inner + column];
        indices[(outer * k + to) * inner + column] = moved;
    }
    for (int r = 0; r < k; r++) {
        const int to = (outer * k + r) * inner + column;
        const N found = LOAD_N(x, (outer * n + (int)indices[to]) * inner + column);
        STORE_N(values, to, found);
    }
}

#else

// Sums up to each element; an item for each line.
__kernel void cum_sum(__global const S *x, __global S *y, const int count, const int n, const int inner, const int exclusive,
                      const int backward) {
    const int line = get_global_id(0);
    if (line >= count) return;
    const int start = line / inner * n * inner + line % inner;
    N sum = 0;
    for (int i = 0; i < n; i++) {
        const int at = start + (backward ? n - 1 - i : i) * inner;
        const N x0 = LOAD_N(x, at);
        const N next = sum + x0;
        STORE_N(y, at, exclusive ? sum : next);
        sum = next;
    }
}

#endif
