// What every program begins with. Floats of the model lie as DATA, which is half or float, and are computed with as float:
// LOAD and STORE go between the two, so that devices without half arithmetic have both.

#ifdef HAS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#ifdef HALF_DATA
typedef half DATA;
#define LOAD(p, i) vload_half((i), (p))
#define STORE(p, i, v) vstore_half_rte((v), (i), (p))
#define LOAD2(p, i) vload_half2((i), (p))
#define LOAD4(p, i) vload_half4((i), (p))
#define STORE4(p, i, v) vstore_half4_rte((v), (i), (p))
#else
typedef float DATA;
#define LOAD(p, i) ((p)[i])
#define STORE(p, i, v) ((p)[i] = (v))
#define LOAD2(p, i) vload2((i), (p))
#define LOAD4(p, i) vload4((i), (p))
#define STORE4(p, i, v) vstore4((v), (i), (p))
#endif

static inline float load_bf16(__global const ushort *p, size_t i) {
    return as_float((uint)p[i] << 16);
}

// Rounds to even; a NaN stays one.
static inline void store_bf16(float x, size_t i, __global ushort *p) {
    uint bits = as_uint(x);
    uint rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    p[i] = (ushort)(isnan(x) ? ((bits >> 16) | 0x40u) : rounded);
}

// Tells the host that a step met what it has to refuse: an index that is outside of an axis of `n`, or for `n` 0 a division by
// zero. The first one counts.
inline void refuse(volatile __global int *faults, int step, long index, int n) {
    if (atomic_cmpxchg(faults, 0, step + 1) == 0) {
        faults[1] = (int)index;
        faults[2] = n;
    }
}

// Floats as integers, as Convert has it: truncated, and outside of the range the least integer. Narrower ones are cut out of these.

static inline int to_int(float x) { return x >= -2147483648.0f && x < 2147483648.0f ? (int)x : INT_MIN; }
static inline long to_long(float x) { return x >= -9223372036854775808.0f && x < 9223372036854775808.0f ? (long)x : LONG_MIN; }
static inline ulong to_ulong(float x) {
    return x >= 9223372036854775808.0f ? (ulong)to_long(x - 9223372036854775808.0f) ^ (1UL << 63) : (ulong)to_long(x);
}

#ifdef HAS_DOUBLE
static inline int to_int_d(double x) { return x >= -2147483648.0 && x < 2147483648.0 ? (int)x : INT_MIN; }
static inline long to_long_d(double x) { return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (long)x : LONG_MIN; }
static inline ulong to_ulong_d(double x) {
    return x >= 9223372036854775808.0 ? (ulong)to_long_d(x - 9223372036854775808.0) ^ (1UL << 63) : (ulong)to_long_d(x);
}
#endif

// Functions of one number, named after the operations.

static inline float f_relu(float x) { return x < 0.0f ? 0.0f : x; }
static inline float f_clamp(float x, float low, float high) {
    float y = x < low ? low : x;
    return high < y ? high : y;
}
static inline float f_leaky(float x, float slope) { return x < 0.0f ? x * slope : x; }
static inline float f_elu(float x, float alpha) { return x < 0.0f ? alpha * expm1(x) : x; }
static inline float f_selu(float x, float alpha, float scale) { return scale * (x > 0.0f ? x : alpha * expm1(x)); }
static inline float f_sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }
static inline float f_swish(float x, float beta) { return x / (1.0f + exp(-beta * x)); }
static inline float f_hsigmoid(float x) { return f_clamp(x + 3.0f, 0.0f, 6.0f) / 6.0f; }
static inline float f_hswish(float x) { return x * f_clamp(x + 3.0f, 0.0f, 6.0f) / 6.0f; }
static inline float f_hard_sigmoid(float x, float alpha, float beta) { return f_clamp(alpha * x + beta, 0.0f, 1.0f); }
static inline float f_gelu_erf(float x) { return 0.5f * x * (1.0f + erf(x * 0.70710678118654752f)); }
// x / 2 * (1 + tanh(u)) without the loss of digits where the two cancel.
static inline float f_gelu_tanh(float x) {
    return x / (1.0f + exp(-1.59576912160573072f * (x + 0.044715f * x * x * x)));
}
static inline float f_softplus(float x) { return x > 20.0f ? x : log1p(exp(x)); }
static inline float f_mish(float x) { return x * tanh(f_softplus(x)); }
static inline float f_softsign(float x) { return x / (1.0f + fabs(x)); }
static inline float f_sign(float x) { return x < 0.0f ? -1.0f : (x > 0.0f ? 1.0f : x + 0.0f); }
static inline float f_quantize(float x, float low, float high, float out_low, float out_high, float steps) {
    if (x <= fmin(low, high)) return out_low;
    if (x > fmax(low, high)) return out_high;
    return rint((x - low) / (high - low) * steps) / steps * (out_high - out_low) + out_low;
}
static inline float f_round_trip(float x, float scale, float zero, float low, float high) {
    return (f_clamp(rint(x / scale) + zero, low, high) - zero) * scale;
}
#ifdef HAS_DOUBLE
static inline float f_mod(float a, float b) { return (float)((double)a - (double)b * trunc((double)a / (double)b)); }
static inline float f_floor_mod(float a, float b) { return (float)((double)a - (double)b * floor((double)a / (double)b)); }
#else
static inline float f_mod(float a, float b) { return a - b * trunc(a / b); }
static inline float f_floor_mod(float a, float b) { return a - b * floor(a / b); }
#endif
