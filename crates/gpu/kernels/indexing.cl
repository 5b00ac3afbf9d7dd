// Elements that are read or written at indices. T moves elements of one size, I is the type of the indices. An index counts from the
// end when it is negative. One outside of its axis reads 0 and writes nothing, and is told to the host but for slices.

inline int place(long index, int n) {
    const long at = index < 0 ? index + n : index;
    return at >= 0 && at < n ? (int)at : -1;
}

// The same, and tells.
inline int checked(volatile __global int *faults, int step, long index, int n) {
    const int at = place(index, n);
    if (at < 0) refuse(faults, step, index, n);
    return at;
}

// Slices: the result is [batch, outer, index, inner].
__kernel void gather(__global const T *x, __global const I *index, __global T *y, const int count, const int outer, const int n,
                     const int m, const int inner) {
    const int at = get_global_id(0);
    if (at >= count) return;
    const int k = at % inner, rest = at / inner;
    const int i = rest % m, row = rest / m;
    const int from = place(index[row / outer * m + i], n);
    y[at] = from < 0 ? (T)0 : x[(row * n + from) * inner + k];
}

// One index for each element of the result, which is [outer, m, inner].
__kernel void gather_elements(__global const T *x, __global const I *index, __global T *y, const int count, const int n,
                              const int m, const int inner, volatile __global int *faults, const int step) {
    const int at = get_global_id(0);
    if (at >= count) return;
    const int from = checked(faults, step, index[at], n);
    y[at] = from < 0 ? (T)0 : x[(at / inner / m * n + from) * inner + at % inner];
}

// Where a tuple of indices points: the number of the slice, or -1.
inline int tuple_place(__global const I *index, int tuple, int8 dims, volatile __global int *faults, int step) {
    int d[8];
    vstore8(dims, 0, d);
    int start = 0;
    for (int i = 0; i < tuple; i++) {
        const int p = checked(faults, step, index[i], d[i]);
        if (p < 0) return -1;
        start = start * d[i] + p;
    }
    return start;
}

// Tuples of indices: the result is [batch, tuples, inner].
__kernel void gather_nd(__global const T *x, __global const I *index, __global T *y, const int count, const int tuple,
                        const int8 dims, const int per_batch, const int plane, const int inner, volatile __global int *faults, const int step) {
    const int at = get_global_id(0);
    if (at >= count) return;
    const int t = at / inner;
    const int start = tuple_place(index + t * tuple, tuple, dims, faults, step);
    y[at] = start < 0 ? (T)0 : x[t / per_batch * plane + start * inner + at % inner];
}

// How an update joins what is there, for numbers of type N as they are computed with; LOAD_N and STORE_N are their loads and
// stores.
#ifdef JOIN

// One item for each line along the axis, so that updates come in order: data are [outer, n, inner], updates [lines..., m, ...].
// Lines of the updates are found by their place in the axes before and behind, which may be shorter than those of the data.
__kernel void scatter_elements(__global const I *index, __global const S *updates, __global S *y, const int count, const int n,
                               const int m, const int rank, const int axis, const int8 dims, const int8 steps,
                               const int8 own_steps, const int keep, volatile __global int *faults, const int step) {
    int line = get_global_id(0);
    if (line >= count) return;
    int d[8], s[8], u[8];
    vstore8(dims, 0, d);
    vstore8(steps, 0, s);
    vstore8(own_steps, 0, u);
    int to = 0, from = 0;
    for (int a = rank - 1; a >= 0; a--) {
        if (a == axis) continue;
        const int i = line % d[a];
        line /= d[a];
        to += i * s[a];
        from += i * u[a];
    }
    if (!keep) {
        for (int i = 0; i < m; i++) {
            const int p = place(index[from + i * u[axis]], n);
            if (p >= 0) STORE_N(y, to + p * s[axis], NEUTRAL);
        }
    }
    for (int i = 0; i < m; i++) {
        const int p = checked(faults, step, index[from + i * u[axis]], n);
        if (p < 0) continue;
        const N a = LOAD_N(y, to + p * s[axis]), b = LOAD_N(updates, from + i * u[axis]);
        STORE_N(y, to + p * s[axis], JOIN);
    }
}

// Slices at tuples of indices, in order: one item for each element of a slice.
__kernel void scatter_nd(__global const I *index, __global const S *updates, __global S *y, const int count, const int tuples,
                         const int tuple, const int8 dims, volatile __global int *faults, const int step) {
    const int k = get_global_id(0);
    if (k >= count) return;
    for (int t = 0; t < tuples; t++) {
        const int start = tuple_place(index + t * tuple, tuple, dims, faults, step);
        if (start < 0) continue;
        const N a = LOAD_N(y, start * count + k), b = LOAD_N(updates, t * count + k);
        STORE_N(y, start * count + k, JOIN);
    }
}

#endif

// Slices at indices of one axis: data are [outer, n, inner], updates [outer, m, inner]; of equal indices the last counts.
__kernel void scatter_update(__global const I *index, __global const T *updates, __global T *y, const int count, const int n,
                             const int m, const int inner, volatile __global int *faults, const int step) {
    const int at = get_global_id(0);
    if (at >= count) return;
    const int outer = at / inner, k = at % inner;
    for (int i = 0; i < m; i++) {
        // Here an index does not count from the end.
        const int p = index[i] < 0 ? -1 : place(index[i], n);
        if (p < 0) refuse(faults, step, index[i], n);
        else y[(outer * n + p) * inner + k] = updates[(outer * m + i) * inner + k];
    }
}

// Slices at tuples of indices where the last counts: first which tuple that is, then its slice.
__kernel void clear_winners(__global int *winners, const int count) {
    const int at = get_global_id(0);
    if (at < count) winners[at] = -1;
}

__kernel void find_winners(__global const I *index, __global int *winners, const int tuples, const int tuple, const int8 dims, volatile __global int *faults, const int step) {
    const int t = get_global_id(0);
    if (t >= tuples) return;
    const int start = tuple_place(index + t * tuple, tuple, dims, faults, step);
    if (start >= 0) atomic_max(winners + start, t);
}

__kernel void put_winners(__global const I *index, __global const T *updates, __global const int *winners, __global T *y,
                          const int count, const int tuple, const int8 dims, const int inner, volatile __global int *faults, const int step) {
    const int at = get_global_id(0);
    if (at >= count) return;
    const int t = at / inner;
    const int start = tuple_place(index + t * tuple, tuple, dims, faults, step);
    if (start >= 0 && winners[start] == t) y[start * inner + at % inner] = updates[at];
}

// A number at each index, another one everywhere else: the result is [outer, depth, inner], indices [outer, inner].
__kernel void one_hot(__global const I *index, __global const T *on, __global const T *off, __global T *y, const int count,
                      const int depth, const int inner, const int negative) {
    const int at = get_global_id(0);
    if (at >= count) return;
    const int k = at % inner, d = at / inner % depth, outer = at / inner / depth;
    long i = index[outer * inner + k];
    if (i < 0 && negative) i += depth;
    y[at] = i == d ? on[0] : off[0];
}
