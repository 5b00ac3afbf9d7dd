// Resizing by tables: for each point of the result along an axis, TAPS places of the input and what they weigh. An item makes one
// element of the result; the first axis of items are channels, or points of a line where channels lie outside.
kernel void resize(global const DATA *restrict x, global DATA *restrict y, int count, int4 dims, int4 far, int4 to, int4 taps,
    int channel_far, int channel_to, int channels, global const int *restrict places, global const float *restrict weights) {
    // `dims` are images, depth, height, width of the result; `taps` the taps of the last three axes.
    int at = get_global_id(0);
    if (at >= count) return;
#if LAST
    const int c = at % channels;
    at /= channels;
#endif
    const int ox = at % dims.w;
    at /= dims.w;
    const int oy = at % dims.z;
    at /= dims.z;
    const int oz = at % dims.y;
    at /= dims.y;
#if LAST
    const int n = at;
#else
    const int c = at % channels, n = at / channels;
#endif
    const int zs = oz * taps.y, ys = dims.y * taps.y + oy * taps.z;
    const int xs = dims.y * taps.y + dims.z * taps.z + ox * taps.w;
    const int base = n * far.x + c * channel_far;
    float sum = 0.0f;
    for (int i = 0; i < taps.y; i++)
        for (int j = 0; j < taps.z; j++) {
            const float weight = weights[zs + i] * weights[ys + j];
            const int line = base + places[zs + i] * far.y + places[ys + j] * far.z;
            for (int k = 0; k < taps.w; k++)
                sum = mad(weight * weights[xs + k], LOAD(x, line + places[xs + k] * far.w), sum);
        }
    STORE(y, n * to.x + oz * to.y + oy * to.z + ox * to.w + c * channel_to, sum);
}
