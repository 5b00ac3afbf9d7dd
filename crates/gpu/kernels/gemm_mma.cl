// Product of f16 matrices by the tensor cores of NVIDIA devices, sums in f32: C = epilogue(A * B). The work-group of WARPS_M x
// WARPS_N warps makes TM x TN elements of C from tiles of A and B that are copied ahead into local memory, STAGES deep. A is read
// as gemm.cl says (ROWS or IMAGE), always eight elements at once; B lies as k x n, or as n x k (B_ROWS).
#define ITEMS (32 * WARPS_M * WARPS_N)
#define MW (TM / WARPS_M)
#define NW (TN / WARPS_N)
#define A_READS (TM * TK / 8 / ITEMS)
#define B_READS (TK * TN / 8 / ITEMS)

#if PARTS
typedef float OUT;
#else
typedef DATA OUT;
#endif

// Where a piece of eight elements lies in a row of so many pieces, so that eight rows at the same place lie in different banks.
static inline int piece(int row, int at, int pieces) {
    return (row * pieces + (pieces >= 8 ? at ^ (row & 7) : at ^ (row >> 1 & 3))) * 8;
}

// Sixteen bytes, or as many zeros.
static inline void copy16(local ushort *to, global const half *from, bool some) {
    uint at = (uint)(size_t)to;
    int bytes = some ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes));
}

static inline uint4 load_matrix(local const ushort *from) {
    uint4 v;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.s0), "=r"(v.s1), "=r"(v.s2), "=r"(v.s3) : "r"((uint)(size_t)from));
    return v;
}

static inline uint4 load_transposed(local const ushort *from) {
    uint4 v;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.s0), "=r"(v.s1), "=r"(v.s2), "=r"(v.s3) : "r"((uint)(size_t)from));
    return v;
}

static inline float4 multiply(uint4 a, uint2 b, float4 c) {
    float4 d;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        : "=f"(d.s0), "=f"(d.s1), "=f"(d.s2), "=f"(d.s3)
        : "r"(a.s0), "r"(a.s1), "r"(a.s2), "r"(a.s3), "r"(b.s0), "r"(b.s1), "f"(c.s0), "f"(c.s1), "f"(c.s2), "f"(c.s3));
    return d;
}

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void gemm(
    global const DATA *restrict a, global const DATA *restrict b, global OUT *restrict c,
    int rows, int columns, int deep, int lda, int ldb, int ldc, int splits, int depth,
    global const int4 *restrict offsets, global const int4 *restrict taps, int16 image EPILOGUE_PARAMETERS) {
    local ushort as[STAGES][TM * TK] __attribute__((aligned(128)));
    local ushort bs[STAGES][TK * TN] __attribute__((aligned(128)));
    const int t = get_local_id(0), lane = t % 32, warp = t / 32;
    const int wm = warp / WARPS_N * MW, wn = warp % WARPS_N * NW;
    const int n0 = get_group_id(0) * TN, m0 = get_group_id(1) * TM;
    const int split = get_group_id(2) % splits, batch = get_group_id(2) / splits;
    const int4 offset = offsets[batch];
    a += offset.x;
    b += offset.y;
    const int first = split * depth, last = min(deep, first + depth);
    const int tiles = (last - first + TK - 1) / TK;

    float4 acc[MW / 16][NW / 8];
    #pragma unroll
    for (int i = 0; i < MW / 16; i++)
        #pragma unroll
        for (int j = 0; j < NW / 8; j++) acc[i][j] = (float4)(0.0f);

    Row row[A_READS];
    #pragma unroll
    for (int r = 0; r < A_READS; r++) row[r] = row_of(m0 + (t + r * ITEMS) / (TK / 8), rows, lda, image);

    #define SEND(tile)                                                                                            \
        {                                                                                                         \
            const int into = (tile) % STAGES, k0 = first + (tile)*TK;                                             \
            _Pragma("unroll") for (int r = 0; r < A_READS; r++) {                                                 \
                const int q = t + r * ITEMS, i = q / (TK / 8), p = q % (TK / 8), k = k0 + p * 8;                  \
                int at = A_FORM == IMAGE ? place_of(row[r], taps[k / 8], image) : row[r].base + k;                \
                bool some = A_FORM == IMAGE ? at >= 0 : row[r].x == 0 && k < deep;                                \
                copy16(&as[into][piece(i, p, TK / 8)], a + (some ? at : 0), some);                                \
            }                                                                                                     \
            _Pragma("unroll") for (int r = 0; r < B_READS; r++) SEND_B(into, t + r * ITEMS, k0)                   \
        }
#if B_ROWS
    #define SEND_B(into, q, k0)                                                                                   \
        {                                                                                                         \
            const int i = (q) / (TK / 8), p = (q) % (TK / 8), n = n0 + i, k = k0 + p * 8;                         \
            bool some = k < deep && n < columns;                                                                  \
            copy16(&bs[into][piece(i, p, TK / 8)], b + (some ? n * ldb + k : 0), some);                           \
        }
#else
    #define SEND_B(into, q, k0)                                                                                   \
        {                                                                                                         \
            const int i = (q) / (TN / 8), p = (q) % (TN / 8), n = n0 + p * 8, k = k0 + i;                         \
            bool some = k < deep && n < columns;                                                                  \
            copy16(&bs[into][piece(i, p, TN / 8)], b + (some ? k * ldb + n : 0), some);                           \
        }
#endif
    #pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < tiles) SEND(s);
        asm volatile("cp.async.commit_group;");
    }

    for (int tile = 0; tile < tiles; tile++) {
#if STAGES == 2
        asm volatile("cp.async.wait_group 0;");
#elif STAGES == 3
        asm volatile("cp.async.wait_group 1;");
#else
        asm volatile("cp.async.wait_group 2;");
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
        if (tile + STAGES - 1 < tiles) SEND(tile + STAGES - 1);
        asm volatile("cp.async.commit_group;");
        local const ushort *ap = as[tile % STAGES], *bp = bs[tile % STAGES];
        #pragma unroll
        for (int k = 0; k < TK; k += 16) {
            uint4 av[MW / 16], bv[NW / 16];
            #pragma unroll
            for (int i = 0; i < MW / 16; i++)
                av[i] = load_matrix(ap + piece(wm + i * 16 + lane % 16, k / 8 + lane / 16, TK / 8));
            #pragma unroll
            for (int j = 0; j < NW / 16; j++) {
#if B_ROWS
                bv[j] = load_matrix(bp + piece(wn + j * 16 + lane % 8 + lane / 16 * 8, k / 8 + lane / 8 % 2, TK / 8));
#else
                bv[j] = load_transposed(bp + piece(k + lane % 16, wn / 8 + j * 2 + lane / 16, TN / 8));
#endif
            }
            #pragma unroll
            for (int i = 0; i < MW / 16; i++)
                #pragma unroll
                for (int j = 0; j < NW / 16; j++) {
                    acc[i][2 * j] = multiply(av[i], bv[j].s01, acc[i][2 * j]);
                    acc[i][2 * j + 1] = multiply(av[i], bv[j].s23, acc[i][2 * j + 1]);
                }
        }
    }

#if PARTS
    c += ((size_t)batch * splits + split) * rows * columns;
    const int stride = columns, start = 0;
#else
    const int stride = ldc, start = offset.z;
#endif
    #pragma unroll
    for (int i = 0; i < MW / 16; i++)
        #pragma unroll
        for (int half_of = 0; half_of < 2; half_of++) {
            const int m = m0 + wm + i * 16 + lane / 4 + half_of * 8;
            if (m >= rows) continue;
            #pragma unroll
            for (int j = 0; j < NW / 8; j++) {
                const int n = n0 + wn + j * 8 + lane % 4 * 2;
                if (n >= columns) continue;
                float2 v = half_of ? acc[i][j].s23 : acc[i][j].s01;
                const int at = start + m * stride + n;
#if PARTS && C_WIDE
                *(global float2 *)(c + at) = v;
#elif PARTS
                c[at] = v.s0;
                if (n + 1 < columns) c[at + 1] = v.s1;
#elif C_WIDE
                v.s0 = epilogue(v.s0, at, offset.w + n EPILOGUE_ARGUMENTS);
                v.s1 = epilogue(v.s1, at + 1, offset.w + n + 1 EPILOGUE_ARGUMENTS);
                uint two;
                asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(v.s1), "f"(v.s0));
                *(global uint *)(c + at) = two;
#else
                put(c, at, epilogue(v.s0, at, offset.w + n EPILOGUE_ARGUMENTS));
                if (n + 1 < columns) put(c, at + 1, epilogue(v.s1, at + 1, offset.w + n + 1 EPILOGUE_ARGUMENTS));
#endif
            }
        }
}
