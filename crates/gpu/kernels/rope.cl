// Pairs of numbers along the last axis, turned by angles whose cosines and sines are given. One item for each number. Axes before the
// last are four, `n` their sizes; `sx`, `sc`, `ss` are elements from one to the next along each, 0 where an array is repeated.
// INTERLEAVED: a pair is two neighbours. FULL_COS, FULL_SIN: the table has a number for each number, not for each pair.
__kernel void rope(__global const DATA *x, __global const DATA *cosines, __global const DATA *sines, __global DATA *y,
                   const int count, const int width, const int rotated, const int4 n, const int4 sx, const int4 sc, const int4 ss) {
    const int i = get_global_id(0);
    if (i >= count) return;
    const int e = i % width;
    int rest = i / width;
    int4 at;
    at.w = rest % n.w; rest /= n.w;
    at.z = rest % n.z; rest /= n.z;
    at.y = rest % n.y;
    at.x = rest / n.y;
    const int4 px = at * sx;
    const int row = px.x + px.y + px.z + px.w;
    const float own = LOAD(x, row + e);
    if (e >= rotated) {
        STORE(y, i, own);
        return;
    }
    const int half_of = rotated / 2;
#if INTERLEAVED
    const int pair = e / 2, is_first = e % 2 == 0, other = is_first ? e + 1 : e - 1;
#else
    const int is_first = e < half_of, pair = is_first ? e : e - half_of, other = is_first ? e + half_of : e - half_of;
#endif
    const int4 pc = at * sc, ps = at * ss;
    const float c = LOAD(cosines, pc.x + pc.y + pc.z + pc.w + (FULL_COS ? e : pair));
    const float s = LOAD(sines, ps.x + ps.y + ps.z + ps.w + (FULL_SIN ? e : pair));
    const float turned = LOAD(x, row + other) * s;
    STORE(y, i, own * c + (is_first ? -turned : turned));
}
