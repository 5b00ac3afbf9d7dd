// Where values stand among sorted ones: rows of `n` sorted numbers of type N, and so many values for each row. BEFORE is `<` or `<=`.
__kernel void sorted_places(__global const N *sorted, __global const N *values, __global I *y, const int count, const int n,
                            const int per_row) {
    const int at = get_global_id(0);
    if (at >= count) return;
    __global const N *row = sorted + at / per_row * n;
    const N value = values[at];
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (row[middle] BEFORE value) low = middle + 1;
        else high = middle;
    }
    y[at] = low;
}
