// Elements of DATA one by one and four at once, the latter at addresses that four elements divide.
static inline float get(global const DATA *p, size_t i) { return LOAD(p, i); }
static inline void put(global DATA *p, size_t i, float v) { STORE(p, i, v); }
#ifdef HALF_DATA
static inline float4 get4(global const half *p, size_t i) { return vload_half4(0, p + i); }
static inline void put4(global half *p, size_t i, float4 v) { vstore_half4_rte(v, 0, p + i); }
#else
static inline float4 get4(global const float *p, size_t i) { return *(global const float4 *)(p + i); }
static inline void put4(global float *p, size_t i, float4 v) { *(global float4 *)(p + i) = v; }
#endif

// Four elements of which so many are there; zeros for the others.
static inline float4 part4(global const DATA *p, int at, int some, bool wide) {
    if (wide) return some > 0 ? get4(p, at) : (float4)(0.0f);
    float4 v = (float4)(0.0f);
    if (some > 0) v.s0 = get(p, at);
    if (some > 1) v.s1 = get(p, at + 1);
    if (some > 2) v.s2 = get(p, at + 2);
    if (some > 3) v.s3 = get(p, at + 3);
    return v;
}

#if A_FORM == IMAGE
static inline float point(global const DATA *p, int at) { return at >= 0 ? get(p, at) : 0.0f; }

// Four elements of a window.
static inline float4 window4(global const DATA *p, Row row, global const int4 *taps, int k, int16 image) {
#if A_WIDE
    int at = place_of(row, taps[k / 4], image);
    return at >= 0 ? get4(p, at) : (float4)(0.0f);
#else
    return (float4)(point(p, place_of(row, taps[k], image)), point(p, place_of(row, taps[k + 1], image)),
                    point(p, place_of(row, taps[k + 2], image)), point(p, place_of(row, taps[k + 3], image)));
#endif
}
#endif
