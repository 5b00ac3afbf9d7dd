// Local response normalization across channels. An item makes one element.
kernel void lrn(global const DATA *restrict x, global DATA *restrict y, int count, int step, int channels, int reach, float alpha,
    float beta, float bias) {
    const int at = get_global_id(0);
    if (at >= count) return;
    const int c = at / step % channels;
    float sum = 0.0f;
    for (int j = max(c - reach, 0); j <= min(c + reach, channels - 1); j++) {
        const float v = LOAD(x, at + (j - c) * step);
        sum = mad(v, v, sum);
    }
    STORE(y, at, LOAD(x, at) / pow(bias + alpha * sum, beta));
}
