// Product of matrices in f32 arithmetic: C = epilogue(A * B). A work-group makes TM x TN elements of C, a work-item WM x WN of
// them, from tiles of A and B in local memory, TK deep.
//
//   A_FORM    ROWS: k lies densely, COLUMNS: m does, IMAGE: see rows.cl
//   A_WIDE    four elements of A along the dense axis can be read at once
//   B_ROWS    B lies as n x k, else as k x n
//   B_WIDE    the same as A_WIDE for B
//   C_WIDE    four elements of a row of C can be written at once
//   PARTS     group s of `splits` sums `depth` of k and leaves f32 sums in part s of C, for gemm_join
//   ASYNC     NVIDIA: copies to local memory run ahead, STAGES deep
#define LX (TN / WN)
#define LY (TM / WM)
#define ITEMS (LX * LY)
#define AS (TK + 4)
#define A_READS (TM * TK / 4 / ITEMS)
#define B_READS (TK * TN / 4 / ITEMS)
#ifndef STAGES
#define STAGES 2
#endif

#if PARTS
typedef float OUT;
#else
typedef DATA OUT;
#endif

#if ASYNC
#define WORD_OF(x) #x
#define WORD(x) WORD_OF(x)
// Sixteen bytes, or as many zeros.
static inline void copy16(local float *to, global const float *from, bool some) {
    uint at = (uint)(size_t)to;
    int bytes = some ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes));
}
#define COPIES_SENT asm volatile("cp.async.commit_group;")
#define COPIES_LEFT(n) asm volatile("cp.async.wait_group " WORD(n) ";")
#endif

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void gemm(
    global const DATA *restrict a, global const DATA *restrict b, global OUT *restrict c,
    int rows, int columns, int deep, int lda, int ldb, int ldc, int splits, int depth,
    global const int4 *restrict offsets, global const int4 *restrict taps, int16 image EPILOGUE_PARAMETERS) {
    local float as[STAGES][TM * AS] __attribute__((aligned(16)));
    local float bs[STAGES][TK * TN] __attribute__((aligned(16)));
    const int t = get_local_id(0);
#if LX % 8 == 0 && LY % 4 == 0
    const int patch = t / 32, lane = t % 32;
    const int tx = lane % 8 + 8 * (patch % (LX / 8)), ty = lane / 8 + 4 * (patch / (LX / 8));
#else
    const int tx = t % LX, ty = t / LX;
#endif
    const int n0 = get_group_id(0) * TN, m0 = get_group_id(1) * TM;
    const int split = get_group_id(2) % splits, batch = get_group_id(2) / splits;
    const int4 offset = offsets[batch];
    a += offset.x;
    b += offset.y;
    const int first = split * depth, last = min(deep, first + depth);
    const int tiles = (last - first + TK - 1) / TK;

    float4 acc[WM][WN / 4];
    #pragma unroll
    for (int i = 0; i < WM; i++)
        #pragma unroll
        for (int h = 0; h < WN / 4; h++) acc[i][h] = (float4)(0.0f);

    // Rows that this work-item reads of A, and where in k.
#if A_FORM == COLUMNS
    #define A_ROW(q) ((q) % (TM / 4) * 4)
    #define A_K(q) ((q) / (TM / 4))
#else
    #define A_ROW(q) ((q) / (TK / 4))
    #define A_K(q) ((q) % (TK / 4) * 4)
    Row row[A_READS];
    #pragma unroll
    for (int r = 0; r < A_READS; r++) row[r] = row_of(m0 + A_ROW(t + r * ITEMS), rows, lda, image);
#endif
#if B_ROWS
    #define B_N(q) ((q) / (TK / 4))
    #define B_K(q) ((q) % (TK / 4) * 4)
#else
    #define B_N(q) ((q) % (TN / 4) * 4)
    #define B_K(q) ((q) / (TN / 4))
#endif

#if ASYNC
    #define SEND(tile)                                                                                            \
        {                                                                                                         \
            const int into = (tile) % STAGES, k0 = first + (tile)*TK;                                             \
            _Pragma("unroll") for (int r = 0; r < A_READS; r++) {                                                 \
                const int q = t + r * ITEMS, k = k0 + A_K(q);                                                     \
                int at = A_FORM == IMAGE ? place_of(row[r], taps[k / 4], image) : row[r].base + k;                    \
                bool some = A_FORM == IMAGE ? at >= 0 : row[r].x == 0 && k < deep;                                \
                copy16(&as[into][A_ROW(q) * AS + A_K(q)], a + (some ? at : 0), some);                             \
            }                                                                                                     \
            _Pragma("unroll") for (int r = 0; r < B_READS; r++) {                                                 \
                const int q = t + r * ITEMS, k = k0 + B_K(q), n = n0 + B_N(q);                                    \
                bool some = k < deep && n < columns;                                                              \
                copy16(&bs[into][B_K(q) * TN + B_N(q)], b + (some ? k * ldb + n : 0), some);                      \
            }                                                                                                     \
        }
    #pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < tiles) SEND(s);
        COPIES_SENT;
    }
#else
    float4 ra[A_READS], rb[B_READS];
    #define FETCH(tile)                                                                                           \
        {                                                                                                         \
            const int k0 = first + (tile)*TK;                                                                     \
            _Pragma("unroll") for (int r = 0; r < A_READS; r++) ra[r] = READ_A(t + r * ITEMS, r, k0);             \
            _Pragma("unroll") for (int r = 0; r < B_READS; r++) rb[r] = READ_B(t + r * ITEMS, k0);                \
        }
#if A_FORM == IMAGE
    #define READ_A(q, r, k0) window4(a, row[r], taps, k0 + A_K(q), image)
#elif A_FORM == ROWS
    #define READ_A(q, r, k0) part4(a, row[r].base + k0 + A_K(q), row[r].x == 0 ? deep - k0 - A_K(q) : 0, A_WIDE)
#else
    #define READ_A(q, r, k0) \
        part4(a, (k0 + A_K(q)) * lda + m0 + A_ROW(q), k0 + A_K(q) < deep ? rows - m0 - A_ROW(q) : 0, A_WIDE)
#endif
#if B_ROWS
    #define READ_B(q, k0) \
        part4(b, (n0 + B_N(q)) * ldb + k0 + B_K(q), n0 + B_N(q) < columns ? deep - k0 - B_K(q) : 0, B_WIDE)
#else
    #define READ_B(q, k0) \
        part4(b, (k0 + B_K(q)) * ldb + n0 + B_N(q), k0 + B_K(q) < deep ? columns - n0 - B_N(q) : 0, B_WIDE)
#endif
    #define PLACE(into)                                                                                           \
        {                                                                                                         \
            _Pragma("unroll") for (int r = 0; r < A_READS; r++) {                                                 \
                const int q = t + r * ITEMS;                                                                      \
                local float *to = &as[into][A_ROW(q) * AS + A_K(q)];                                              \
                if (A_FORM == COLUMNS) {                                                                          \
                    to[0] = ra[r].s0, to[AS] = ra[r].s1, to[2 * AS] = ra[r].s2, to[3 * AS] = ra[r].s3;            \
                } else {                                                                                          \
                    *(local float4 *)to = ra[r];                                                                  \
                }                                                                                                 \
            }                                                                                                     \
            _Pragma("unroll") for (int r = 0; r < B_READS; r++) {                                                 \
                const int q = t + r * ITEMS;                                                                      \
                local float *to = &bs[into][B_K(q) * TN + B_N(q)];                                                \
                if (B_ROWS) {                                                                                     \
                    to[0] = rb[r].s0, to[TN] = rb[r].s1, to[2 * TN] = rb[r].s2, to[3 * TN] = rb[r].s3;            \
                } else {                                                                                          \
                    *(local float4 *)to = rb[r];                                                                  \
                }                                                                                                 \
            }                                                                                                     \
        }
    FETCH(0);
    PLACE(0);
    barrier(CLK_LOCAL_MEM_FENCE);
#endif

    for (int tile = 0; tile < tiles; tile++) {
#if ASYNC
        #if STAGES == 2
        COPIES_LEFT(0);
#elif STAGES == 3
        COPIES_LEFT(1);
#else
        COPIES_LEFT(2);
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
        if (tile + STAGES - 1 < tiles) SEND(tile + STAGES - 1);
        COPIES_SENT;
#else
        if (tile + 1 < tiles) FETCH(tile + 1);
#endif
        local const float *ap = as[tile % STAGES] + ty * AS;
        local const float *bp = bs[tile % STAGES] + tx * 4;
        #pragma unroll
        for (int k = 0; k < TK; k += 4) {
            float4 av[WM];
            #pragma unroll
            for (int i = 0; i < WM; i++) av[i] = *(local const float4 *)(ap + i * LY * AS + k);
            #define STEP(j)                                                                                       \
                _Pragma("unroll") for (int h = 0; h < WN / 4; h++) {                                              \
                    float4 bv = *(local const float4 *)(bp + (k + 0x##j) * TN + h * LX * 4);                      \
                    _Pragma("unroll") for (int i = 0; i < WM; i++) acc[i][h] = mad((float4)(av[i].s##j), bv, acc[i][h]); \
                }
            STEP(0) STEP(1) STEP(2) STEP(3)
            #undef STEP
        }
#if !ASYNC
        if (tile + 1 < tiles) PLACE((tile + 1) % STAGES);
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
    }

#if PARTS
    c += ((size_t)batch * splits + split) * rows * columns;
    const int stride = columns, start = 0;
#else
    const int stride = ldc, start = offset.z;
#endif
    #pragma unroll
    for (int i = 0; i < WM; i++) {
        const int m = m0 + ty + i * LY;
        if (m >= rows) continue;
        #pragma unroll
        for (int h = 0; h < WN / 4; h++) {
            const int n = n0 + tx * 4 + h * LX * 4;
            const int at = start + m * stride + n;
            float4 v = acc[i][h];
#if !PARTS
            if (n < columns) v.s0 = epilogue(v.s0, at, offset.w + n EPILOGUE_ARGUMENTS);
            if (n + 1 < columns) v.s1 = epilogue(v.s1, at + 1, offset.w + n + 1 EPILOGUE_ARGUMENTS);
            if (n + 2 < columns) v.s2 = epilogue(v.s2, at + 2, offset.w + n + 2 EPILOGUE_ARGUMENTS);
            if (n + 3 < columns) v.s3 = epilogue(v.s3, at + 3, offset.w + n + 3 EPILOGUE_ARGUMENTS);
#endif
#if C_WIDE && PARTS
            if (n < columns) *(global float4 *)(c + at) = v;
#elif C_WIDE
            if (n < columns) put4(c, at, v);
#elif PARTS
            if (n < columns) c[at] = v.s0;
            if (n + 1 < columns) c[at + 1] = v.s1;
            if (n + 2 < columns) c[at + 2] = v.s2;
            if (n + 3 < columns) c[at + 3] = v.s3;
#else
            if (n < columns) put(c, at, v.s0);
            if (n + 1 < columns) put(c, at + 1, v.s1);
            if (n + 2 < columns) put(c, at + 2, v.s2);
            if (n + 3 < columns) put(c, at + 3, v.s3);
#endif
        }
    }
}
