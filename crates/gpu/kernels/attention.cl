// Scaled dot product attention with the softmax on the way: a group takes BQ queries of one head and goes over the keys BQ at a
// time. Four items work on a query. Strides are of batch, head and row; rows lie densely. Heads have D elements, values DV, both
// filled up with zeros to DP, a multiple of 16.
#define LONG (DP + 4)
#define ITEMS (4 * BQ)
#define KEYS (BQ / 4)

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void attention(
    global const DATA *restrict q, global const DATA *restrict k, global const DATA *restrict v, global DATA *restrict out,
    int queries, int keys, int heads, float scale, int4 qs, int4 ks, int4 vs, int4 os
#if MASK
    , global const MASK_TYPE *restrict mask, int4 ms
#endif
    ) {
    local float queries_here[BQ * LONG] __attribute__((aligned(16)));
    local float rows_here[BQ * LONG] __attribute__((aligned(16)));
    local float weights[BQ * (BQ + 1)];
    local float shared[BQ * 4];
    const int t = get_local_id(0), own = t / 4, part = t % 4;
    const int batch = get_group_id(1) / heads, head = get_group_id(1) % heads, first = get_group_id(0) * BQ;
    q += batch * qs.x + head * qs.y;
    k += batch * ks.x + head * ks.y;
    v += batch * vs.x + head * vs.y;
    const int query = first + own;
#if MASK
    const int masked = batch * ms.x + head * ms.y + query * ms.z;
#endif
    for (int i = t; i < BQ * DP; i += ITEMS) {
        const int row = i / DP, d = i % DP;
        const bool there = first + row < queries && d < D;
        queries_here[row * LONG + d] = there ? LOAD(q, (first + row) * qs.z + d) * scale : 0.0f;
    }
    float4 sum[DP / 16];
    for (int j = 0; j < DP / 16; j++) sum[j] = (float4)(0.0f);
    float most = -INFINITY, total = 0.0f;
#if CAUSAL
    const int end = min(keys, first + BQ);
#else
    const int end = keys;
#endif
    for (int k0 = 0; k0 < end; k0 += BQ) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = t; i < BQ * DP; i += ITEMS) {
            const int row = i / DP, d = i % DP;
            const bool there = k0 + row < keys && d < D;
            rows_here[row * LONG + d] = there ? LOAD(k, (k0 + row) * ks.z + d) : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        float score[KEYS];
        #pragma unroll
        for (int j = 0; j < KEYS; j++) score[j] = 0.0f;
        for (int d = 0; d < DP; d += 4) {
            const float4 a = *(local const float4 *)(queries_here + own * LONG + d);
            #pragma unroll
            for (int j = 0; j < KEYS; j++)
                score[j] += dot(a, *(local const float4 *)(rows_here + (part + 4 * j) * LONG + d));
        }
        float best = -INFINITY;
        #pragma unroll
        for (int j = 0; j < KEYS; j++) {
            const int key = k0 + part + 4 * j;
            bool seen = key < keys;
#if CAUSAL
            seen = seen && key <= query;
#endif
#if MASK == 1
            if (seen && query < queries) score[j] += MASK_LOAD(mask, masked + key * ms.w);
#elif MASK == 2
            if (seen && query < queries) seen = mask[masked + key * ms.w] != 0;
#endif
            score[j] = seen ? score[j] : -INFINITY;
            best = best < score[j] || isnan(score[j]) ? score[j] : best;
        }
        shared[t] = best;
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (int j = 0; j < 4; j++) best = fmax(best, shared[own * 4 + j]);
        const float now = fmax(most, best);
        // A query that has seen nothing yet has no sums either.
        const float keep = now == -INFINITY ? 1.0f : exp(most - now);
        most = now;
        float seen = 0.0f;
        #pragma unroll
        for (int j = 0; j < KEYS; j++) {
            const float w = now == -INFINITY ? 0.0f : exp(score[j] - now);
            weights[own * (BQ + 1) + part + 4 * j] = w;
            seen += w;
        }
        total = total * keep + seen;
        for (int i = t; i < BQ * DP; i += ITEMS) {
            const int row = i / DP, d = i % DP;
            const bool there = k0 + row < keys && d < DV;
            rows_here[row * LONG + d] = there ? LOAD(v, (k0 + row) * vs.z + d) : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (int j = 0; j < DP / 16; j++) sum[j] *= keep;
        for (int i = 0; i < BQ; i++) {
            const float w = weights[own * (BQ + 1) + i];
            #pragma unroll
            for (int j = 0; j < DP / 16; j++)
                sum[j] = mad((float4)(w), *(local const float4 *)(rows_here + i * LONG + j * 16 + part * 4), sum[j]);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    shared[t] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    total = shared[own * 4] + shared[own * 4 + 1] + shared[own * 4 + 2] + shared[own * 4 + 3];
    if (query >= queries) return;
    out += batch * os.x + head * os.y + query * os.z;
    #pragma unroll
    for (int j = 0; j < DP / 16; j++) {
        const int d = j * 16 + part * 4;
        const float4 mean = sum[j] / total;
        if (d < DV) STORE(out, d, mean.s0);
        if (d + 1 < DV) STORE(out, d + 1, mean.s1);
        if (d + 2 < DV) STORE(out, d + 2, mean.s2);
        if (d + 3 < DV) STORE(out, d + 3, mean.s3);
    }
}
