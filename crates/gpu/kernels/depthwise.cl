// Convolution of each channel by filters of its own, channels last. An item makes one element of the result; `image` is as in
// rows.cl, `taps` has a tap of the filter in an element, and filters lie tap by tap. MULTIPLE results come from one channel.
kernel void depthwise(global const DATA *restrict x, global const float *restrict filters, global DATA *restrict y,
    int rows, int columns, int count, int multiple, global const int4 *restrict taps, int16 image EPILOGUE_PARAMETERS) {
    const int column = get_global_id(0), i = get_global_id(1);
    if (column >= columns || i >= rows) return;
    const Row row = row_of(i, rows, 0, image);
    x += column / multiple;
    float sum = 0.0f;
    for (int t = 0; t < count; t++) {
        int at = place_of(row, taps[t], image);
        if (at >= 0) sum = mad(LOAD(x, at), filters[t * columns + column], sum);
    }
    const int at = i * columns + column;
    STORE(y, at, epilogue(sum, at, column EPILOGUE_ARGUMENTS));
}
