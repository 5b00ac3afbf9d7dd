// The sequences of a beam search: an item walks one beam from its last step back through the parents. Data are [time, batch, beams] of
// numbers of type N; what lies behind an end token, or behind the sequence, is end tokens.
__kernel void gather_tree(__global const N *ids, __global const N *parents, __global const N *lengths, __global const N *end_token,
                          __global N *y, const int count, const int time, const int beams, volatile __global int *faults, const int step) {
    const int line = get_global_id(0);
    if (line >= count) return;
    const int first = line / beams * beams;
    const N end = end_token[0];
    const int length = (int)clamp((long)lengths[line / beams], 0L, (long)time);
    for (int t = length; t < time; t++) y[t * count + line] = end;
    int from = line % beams;
    for (int t = length - 1; t >= 0; t--) {
        y[t * count + line] = ids[t * count + first + from];
        if (t == 0) break;
        const long parent = (long)parents[t * count + first + from];
        if (parent < 0 || parent >= beams) {
            refuse(faults, step, parent, beams);
            return;
        }
        from = (int)parent;
    }
    int ended = 0;
    for (int t = 0; t < length; t++) {
        ended |= y[t * count + line] == end;
        if (ended) y[t * count + line] = end;
    }
}
