// Softmax and normalizations: each row of elements is looked at as a whole. Rows and their elements lie as
//   row r:     r / rows_in * row_far + r % rows_in * row_near
//   element i: i / in * far + i % in * near
// so that any set of axes is a row. A row is the work of GROUP items. FUNCTION says what is done:
#define SOFTMAX 0
#define LOG_SOFTMAX 1
#define MEAN_ONLY 2
#define VARIANCE 3
#define DEVIATION 4
#define RMS 5
#define L2_ADD 6
#define L2_MAX 7

#if GROUP > 1
// What all items of the group have, joined; BIGGER says whether by the larger one.
static float joined(float v, local float *shared, int item, bool bigger) {
    shared[item] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_of = GROUP / 2; half_of > 0; half_of /= 2) {
        if (item < half_of) {
            const float a = shared[item], b = shared[item + half_of];
            shared[item] = bigger ? (a < b ? b : a) : a + b;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float all = shared[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return all;
}
#define JOINED(v, bigger) joined(v, shared, item, bigger)
#else
#define JOINED(v, bigger) (v)
#endif

#define EACH for (int i = item; i < length; i += GROUP)
// Most rows are elements one step apart (STEADY), and columns are their elements (COLUMNS_INSIDE).
#if STEADY
#define AT(i) (base + (i)*near)
#else
#define AT(i) (base + (i) / in * far + (i) % in * near)
#endif
#if COLUMNS_INSIDE
#define COLUMN(at, i) (i)
#else
#define COLUMN(at, i) ((at) / column_step % columns)
#endif

kernel void fold(global const DATA *restrict x, global DATA *restrict y, int rows, int length, int rows_in, int row_far,
    int row_near, int in, int far, int near, float eps, int column_step, int columns
#if FACTOR
    , global const DATA *restrict factor
#endif
#if TERM
    , global const DATA *restrict term
#endif
    EPILOGUE_PARAMETERS) {
#if GROUP > 1
    local float shared[GROUP];
    const int item = get_local_id(0), row = get_group_id(0);
#else
    const int item = 0, row = get_global_id(0);
    if (row >= rows) return;
#endif
    const int base = row / rows_in * row_far + row % rows_in * row_near;
    float shift = 0.0f, scale = 1.0f;
#if FUNCTION == SOFTMAX || FUNCTION == LOG_SOFTMAX
    float most = -INFINITY;
    EACH {
        const float v = LOAD(x, AT(i));
        most = most < v ? v : most;
    }
    shift = JOINED(most, true);
    float sum = 0.0f;
    EACH sum += exp(LOAD(x, AT(i)) - shift);
    sum = JOINED(sum, false);
    scale = FUNCTION == SOFTMAX ? 1.0f / sum : log(sum);
#else
#if FUNCTION <= DEVIATION
    float sum = 0.0f;
    EACH sum += LOAD(x, AT(i));
    shift = JOINED(sum, false) / length;
#endif
#if FUNCTION != MEAN_ONLY
    float squares = 0.0f;
    EACH {
        const float v = LOAD(x, AT(i)) - shift;
        squares = mad(v, v, squares);
    }
    squares = JOINED(squares, false);
    if (FUNCTION == VARIANCE || FUNCTION == RMS) scale = 1.0f / sqrt(squares / length + eps);
    if (FUNCTION == DEVIATION) scale = 1.0f / (sqrt(squares / length) + eps);
    if (FUNCTION == L2_ADD) scale = 1.0f / sqrt(squares + eps);
    if (FUNCTION == L2_MAX) scale = 1.0f / sqrt(fmax(squares, eps));
#endif
#endif
    EACH {
        const int at = AT(i), column = COLUMN(at, i);
        float v = LOAD(x, at) - shift;
        if (FUNCTION == SOFTMAX) v = exp(v) * scale;
        else if (FUNCTION == LOG_SOFTMAX) v -= scale;
        else v *= scale;
#if FACTOR == 1
        v *= LOAD(factor, column);
#elif FACTOR == 2
        v *= LOAD(factor, i);
#endif
#if TERM
        v += LOAD(term, column);
#endif
        STORE(y, at, epilogue(v, at, column EPILOGUE_ARGUMENTS));
    }
}
