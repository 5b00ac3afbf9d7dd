// The sums of all parts of a product that was cut along k, with the epilogue. One work-item an element.
kernel void gemm_join(global const float *restrict parts, global DATA *restrict c, int rows, int columns, int ldc, int splits,
    global const int4 *restrict offsets EPILOGUE_PARAMETERS) {
    const int n = get_global_id(0), m = get_global_id(1), batch = get_global_id(2);
    if (n >= columns || m >= rows) return;
    const int4 offset = offsets[batch];
    const size_t size = (size_t)rows * columns;
    parts += batch * splits * size + (size_t)m * columns + n;
    float sum = 0.0f;
    for (int s = 0; s < splits; s++) sum += parts[s * size];
    const int at = offset.z + m * ldc + n;
    STORE(c, at, epilogue(sum, at, offset.w + n EPILOGUE_ARGUMENTS));
}
