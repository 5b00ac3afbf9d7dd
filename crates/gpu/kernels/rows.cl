// The left operand of a product: rows of a matrix, or the windows of a convolution, one row for each point of the result.
//
// IMAGE says which. Of an image, `image` is
//   s0..2 its depth, height, width; s3..5 those of the result; s6..8 strides; s9..b padding at the beginning;
//   sc..f elements from image to image, plane to plane, line to line, point to point,
// and `taps` has for each element of a window (or for each READ of them, which lie together) how far it is from the first one, in
// elements and in points. Places behind the last tap have points far outside, which are read as zeros.
#define ROWS 0
#define COLUMNS 1
#define IMAGE 2

typedef struct {
    // First element; of an image, that of the first point of the window, which may be outside.
    int base;
    int z, y, x;
} Row;

static inline Row row_of(int i, int rows, int stride, int16 image) {
    Row row = {0, 0, 0, 0};
    if (A_FORM != IMAGE) {
        row.base = i * stride;
        row.x = i < rows ? 0 : -1;
        return row;
    }
    int x = i % image.s5, rest = i / image.s5;
    int y = rest % image.s4;
    rest /= image.s4;
    int z = rest % image.s3, n = rest / image.s3;
#if BACKWARD
    row.z = z + image.s9;
    row.y = y + image.sa;
    row.x = x + image.sb;
    row.base = n * image.sc;
#else
    row.z = z * image.s6 - image.s9;
    row.y = y * image.s7 - image.sa;
    row.x = x * image.s8 - image.sb;
    row.base = n * image.sc + row.z * image.sd + row.y * image.se + row.x * image.sf;
#endif
    if (i >= rows) row.z = -(1 << 24);
    return row;
}

// Where a tap of a window lies; negative for outside.
static inline int place_of(Row row, int4 tap, int16 image) {
    int z = row.z + tap.y, y = row.y + tap.z, x = row.x + tap.w;
#if BACKWARD
    int qz = z / image.s6, qy = y / image.s7, qx = x / image.s8;
    bool inside = z >= 0 && y >= 0 && x >= 0 && qz * image.s6 == z && qy * image.s7 == y && qx * image.s8 == x
        && qz < image.s0 && qy < image.s1 && qx < image.s2;
    return inside ? row.base + qz * image.sd + qy * image.se + qx * image.sf + tap.x : -1;
#else
    bool inside = (uint)z < (uint)image.s0 && (uint)y < (uint)image.s1 && (uint)x < (uint)image.s2;
    return inside ? row.base + tap.x : -1;
#endif
}
