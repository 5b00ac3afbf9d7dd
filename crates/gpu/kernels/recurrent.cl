// Cells over time. States lie in workspace as f32, direction by direction; what the input gives to the gates was computed for all
// times before. A group takes UNITS of the hidden state of one row of the batch, and PARTS items share the sums of each.
//
//   KIND      RNN, GRU or LSTM; GATES and BLOCKS are those of the weights and of the bias
//   STAGE     0 for a whole step; a GRU that resets before the product has two: gates first (1), then the new state (2)
//   ACT_F, ACT_G, ACT_H  the functions
#define RNN 0
#define GRU 1
#define LSTM 2
#define FIRST (STAGE == 2 ? 2 : 0)
#define COUNT (STAGE == 1 ? 2 : STAGE == 2 ? 1 : GATES)

// Sizes: batch, time, hidden, directions.
#define BATCH sizes.x
#define TIME sizes.y
#define HIDDEN sizes.z
#define DIRECTIONS sizes.w

static inline float clipped(float x, float clip) { return clip > 0.0f ? clamp(x, -clip, clip) : x; }

kernel void cell_begin(global const DATA *restrict from, global float *restrict state, int4 sizes, global const int *restrict lengths) {
    const int j = get_global_id(0), b = get_global_id(1), d = get_global_id(2);
    if (j >= HIDDEN || b >= BATCH) return;
    // A row that has no step ends with zeros.
    state[(d * BATCH + b) * HIDDEN + j] = lengths[b] == 0 ? 0.0f : LOAD(from, (b * DIRECTIONS + d) * HIDDEN + j);
}

kernel void cell_end(global const float *restrict state, global DATA *restrict to, int4 sizes) {
    const int j = get_global_id(0), b = get_global_id(1), d = get_global_id(2);
    if (j >= HIDDEN || b >= BATCH) return;
    STORE(to, (b * DIRECTIONS + d) * HIDDEN + j, state[(d * BATCH + b) * HIDDEN + j]);
}

kernel __attribute__((reqd_work_group_size(UNITS, PARTS, 1))) void cell_step(
    global const DATA *restrict given, global const DATA *restrict weights, global const float *restrict bias,
    global const float *restrict from, global float *restrict to, global float *restrict cell, global float *restrict update,
    global float *restrict reset, global const int *restrict lengths, int4 sizes, int now, int backward, float clip
#if SEQUENCE
    , global DATA *restrict y
#endif
#if ATTENTION
    , global const DATA *restrict attention
#endif
    ) {
    local float sums[GATES * PARTS * UNITS];
    const int u = get_local_id(0), part = get_local_id(1);
    const int j = get_global_id(0), b = get_group_id(1), d = get_global_id(2);
    const int length = lengths[b], state = (d * BATCH + b) * HIDDEN;
    const bool runs = now < length;
    if (runs) {
        global const float *h = (STAGE == 2 ? reset : from) + state;
        float sum[COUNT];
        for (int g = 0; g < COUNT; g++) sum[g] = 0.0f;
        if (j < HIDDEN) {
            for (int k = part; k < HIDDEN; k += PARTS) {
                const float hk = h[k];
                const int at = ((d * HIDDEN + k) * GATES + FIRST) * HIDDEN + j;
                for (int g = 0; g < COUNT; g++) sum[g] = mad(hk, LOAD(weights, at + g * HIDDEN), sum[g]);
            }
        }
        for (int g = 0; g < COUNT; g++) sums[(g * PARTS + part) * UNITS + u] = sum[g];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part > 0 || j >= HIDDEN) return;
    const bool turned = backward || d == 1;
    const int t = turned && runs ? length - 1 - now : now;
    const float before = from[state + j];
#if SEQUENCE
    const int place = ((b * DIRECTIONS + d) * TIME + t) * HIDDEN + j;
    if (!runs) {
        if (STAGE != 1) {
            STORE(y, place, 0.0f);
            to[state + j] = before;
        }
        return;
    }
#endif
    float gate[COUNT];
    for (int g = 0; g < COUNT; g++) {
        float sum = 0.0f;
        for (int p = 0; p < PARTS; p++) sum += sums[(g * PARTS + p) * UNITS + u];
        gate[g] = sum;
    }
    const int row = ((b * TIME + t) * DIRECTIONS + d) * GATES * HIDDEN + j, own = d * BLOCKS * HIDDEN + j;
    #define GIVEN(g) (LOAD(given, row + (g) * HIDDEN) + bias[own + (g) * HIDDEN])
    float after;
#if KIND == RNN
    after = ACT_F(clipped(gate[0] + GIVEN(0), clip));
#elif KIND == GRU
#if ATTENTION
    const float attended = 1.0f - LOAD(attention, b * TIME + t);
#else
    const float attended = 1.0f;
#endif
#if STAGE == 1
    update[state + j] = ACT_F(clipped(gate[0] + GIVEN(0), clip)) * attended;
    reset[state + j] = ACT_F(clipped(gate[1] + GIVEN(1), clip)) * before;
    return;
#elif STAGE == 2
    const float z = update[state + j], pre = gate[0] + GIVEN(2);
#else
    const float z = ACT_F(clipped(gate[0] + GIVEN(0), clip)) * attended;
    const float r = ACT_F(clipped(gate[1] + GIVEN(1), clip));
    const float pre = GIVEN(2) + r * (gate[2] + bias[own + 3 * HIDDEN]);
#endif
#if STAGE != 1
    after = (1.0f - z) * ACT_G(clipped(pre, clip)) + z * before;
#endif
#else
    const float forget = ACT_F(clipped(gate[0] + GIVEN(0), clip));
    const float enter = ACT_F(clipped(gate[1] + GIVEN(1), clip));
    const float memory = forget * cell[state + j] + enter * ACT_G(clipped(gate[2] + GIVEN(2), clip));
    cell[state + j] = memory;
    after = ACT_F(clipped(gate[3] + GIVEN(3), clip)) * ACT_H(memory);
#endif
#if STAGE != 1
    to[state + j] = after;
#if SEQUENCE
    STORE(y, place, after);
#endif
#endif
}
