// Builds where copies into local memory can run ahead and tensor cores multiply f16, see gemm.cl and gemm_mma.cl.
kernel __attribute__((reqd_work_group_size(32, 1, 1))) void probe(global const float *x, global float *y) {
    local float there[128] __attribute__((aligned(16)));
    uint at = (uint)(size_t)(there + 4 * get_local_id(0));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(x + 4 * get_local_id(0)), "r"(16));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;");
    barrier(CLK_LOCAL_MEM_FENCE);
    uint4 a;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(a.s0), "=r"(a.s1), "=r"(a.s2), "=r"(a.s3) : "r"(at));
    float4 d;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%4, %5}, {%8, %8, %8, %8};"
        : "=f"(d.s0), "=f"(d.s1), "=f"(d.s2), "=f"(d.s3) : "r"(a.s0), "r"(a.s1), "r"(a.s2), "r"(a.s3), "f"(0.0f));
    y[get_local_id(0)] = d.s0 + d.s1 + d.s2 + d.s3;
}
