/* One of everything an extension library in C can bring, for tests; behaves as crates/testkit/all-kinds does. */
#include "carafe.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

CARAFE_LIBRARY

#define TRY(call)                                  \
    do {                                           \
        CarafeStatus try_status = (call);          \
        if (try_status != CARAFE_OK) return try_status; \
    } while (0)

/* Infers an output like input 0. */
static CarafeStatus like_input(const void *instance, CarafeInfer *cx) {
    (void)instance;
    CarafeFact x;
    TRY(cx->fns->input(cx, 0, &x));
    return cx->fns->set_output(cx, 0, &x);
}

/* EveryAttr: keeps the text it will answer with. */

typedef struct {
    char text[1024];
    size_t len;
} Told;

static void tell(Told *t, const char *piece) {
    t->len += (size_t)snprintf(t->text + t->len, sizeof t->text - t->len, "%s", piece);
}

static const char *type_name(uint32_t type) {
    switch (type) {
    case CARAFE_F32: return "f32";
    case CARAFE_I64: return "i64";
    case CARAFE_U8: return "u8";
    default: return "other";
    }
}

static void tell_number(Told *t, double value, int first) {
    char piece[64];
    snprintf(piece, sizeof piece, "%s%g", first ? "" : ",", value);
    tell(t, piece);
}

static CarafeStatus every_attr_create(void *user, CarafeAttrs attrs, void **instance) {
    (void)user;
    static const char *const order[] = {"flag",  "count", "ratio", "label", "ints", "floats", "words",
                                        "ty",    "types", "shape", "mode",  "bound", "table"};
    Told *t = calloc(1, sizeof *t);
    if (!t) return carafe_fail(carafe, CARAFE_IO, "out of memory");
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        if (k > 0) tell(t, "|");
        const CarafeAttr *a = carafe_attr(attrs, order[k]);
        char piece[128];
        if (!a) {
            tell(t, "none");
            continue;
        }
        switch (a->kind) {
        case CARAFE_ATTR_BOOL: tell(t, a->i ? "true" : "false"); break;
        case CARAFE_ATTR_INT:
            snprintf(piece, sizeof piece, "%lld", (long long)a->i);
            tell(t, piece);
            break;
        case CARAFE_ATTR_FLOAT: tell_number(t, a->f, 1); break;
        case CARAFE_ATTR_STR:
            snprintf(piece, sizeof piece, "%.*s", (int)a->s.len, a->s.data);
            tell(t, piece);
            break;
        case CARAFE_ATTR_INTS:
            for (size_t i = 0; i < a->n; i++) tell_number(t, (double)a->ints[i], i == 0);
            break;
        case CARAFE_ATTR_FLOATS:
            for (size_t i = 0; i < a->n; i++) tell_number(t, a->floats[i], i == 0);
            break;
        case CARAFE_ATTR_STRS:
            for (size_t i = 0; i < a->n; i++) {
                snprintf(piece, sizeof piece, "%s%.*s", i ? "," : "", (int)a->strs[i].len, a->strs[i].data);
                tell(t, piece);
            }
            break;
        case CARAFE_ATTR_TYPE: tell(t, type_name((uint32_t)a->i)); break;
        case CARAFE_ATTR_TYPES:
            for (size_t i = 0; i < a->n; i++) {
                if (i) tell(t, ",");
                tell(t, type_name(a->types[i]));
            }
            break;
        case CARAFE_ATTR_SHAPE:
            if (a->i == -1) tell(t, "any");
            for (size_t i = 0; i < a->n; i++) {
                snprintf(piece, sizeof piece, "%s%lld..%lld", i ? "," : "", (long long)a->dims[i].min,
                         (long long)a->dims[i].max);
                tell(t, piece);
            }
            break;
        case CARAFE_ATTR_TENSOR:
            for (size_t i = 0; i < carafe_elements(&a->tensor); i++)
                tell_number(t, ((const float *)a->tensor.data)[i], i == 0);
            break;
        default: tell(t, "?"); break;
        }
    }
    *instance = t;
    return CARAFE_OK;
}

static CarafeStatus one_string(const void *instance, CarafeInfer *cx) {
    (void)instance;
    CarafeDim one = {1, 1, 0, 0};
    CarafeFact y = {CARAFE_STRING, 1, &one};
    return cx->fns->set_output(cx, 0, &y);
}

static CarafeStatus every_attr_eval(const void *instance, CarafeEval *cx) {
    const Told *t = instance;
    size_t one = 1;
    CarafeStr text = {t->text, t->len};
    CarafeTensor y = {CARAFE_STRING, 1, &one, &text, sizeof text};
    return cx->fns->set_output(cx, 0, &y);
}

/* Places of the elements that are not zero. */

static CarafeStatus places_infer(const void *instance, CarafeInfer *cx) {
    (void)instance;
    CarafeDim any = {0, -1, 0, 0};
    CarafeFact y = {CARAFE_I64, 1, &any};
    return cx->fns->set_output(cx, 0, &y);
}

static CarafeStatus places_eval(const void *instance, CarafeEval *cx) {
    (void)instance;
    CarafeTensor x;
    TRY(cx->fns->input(cx, 0, &x));
    const float *from = x.data;
    size_t n = carafe_elements(&x), found = 0;
    for (size_t i = 0; i < n; i++) found += from[i] != 0;
    void *to;
    TRY(cx->fns->output(cx, 0, CARAFE_I64, 1, &found, &to));
    int64_t *y = to;
    for (size_t i = 0; i < n; i++)
        if (from[i] != 0) *y++ = (int64_t)i;
    return CARAFE_OK;
}

/* A sum over inferences. */

static CarafeStatus running_sum_eval(const void *instance, CarafeEval *cx) {
    (void)instance;
    CarafeTensor x, before;
    TRY(cx->fns->input(cx, 0, &x));
    void *to;
    TRY(cx->fns->output(cx, 0, CARAFE_F32, x.rank, x.shape, &to));
    float *y = to;
    size_t n = carafe_elements(&x);
    memcpy(y, x.data, n * sizeof *y);
    CarafeStatus status = cx->fns->variable(cx, carafe_str("sum"), &before);
    if (status == CARAFE_OK && carafe_elements(&before) == n)
        for (size_t i = 0; i < n; i++) y[i] += ((const float *)before.data)[i];
    CarafeTensor sum = {CARAFE_F32, x.rank, x.shape, y, n * sizeof *y};
    return cx->fns->assign(cx, carafe_str("sum"), &sum);
}

/* In the place of the built-in SoftSign. */

static CarafeStatus fill_eval(const void *instance, CarafeEval *cx) {
    (void)instance;
    CarafeTensor x;
    void *to;
    TRY(cx->fns->input(cx, 0, &x));
    TRY(cx->fns->output(cx, 0, CARAFE_F32, x.rank, x.shape, &to));
    for (size_t i = 0; i < carafe_elements(&x); i++) ((float *)to)[i] = 42;
    return CARAFE_OK;
}

static CarafeStatus twice_eval(const void *instance, CarafeEval *cx) {
    (void)instance;
    CarafeTensor x;
    void *to;
    TRY(cx->fns->input(cx, 0, &x));
    TRY(cx->fns->output(cx, 0, CARAFE_F32, x.rank, x.shape, &to));
    for (size_t i = 0; i < carafe_elements(&x); i++) ((float *)to)[i] = 2 * ((const float *)x.data)[i];
    return CARAFE_OK;
}

/* x * factor + hint, where the hint is never written to a file. */

struct Hinted {
    double factor, hint;
};

static CarafeStatus hinted_create(void *user, CarafeAttrs attrs, void **instance) {
    (void)user;
    struct Hinted *h = malloc(sizeof *h);
    h->factor = carafe_attr(attrs, "factor")->f;
    h->hint = carafe_attr(attrs, "hint")->f;
    *instance = h;
    return CARAFE_OK;
}

static CarafeStatus hinted_eval(const void *instance, CarafeEval *cx) {
    const struct Hinted *h = instance;
    CarafeTensor x;
    void *to;
    TRY(cx->fns->input(cx, 0, &x));
    TRY(cx->fns->output(cx, 0, CARAFE_F32, x.rank, x.shape, &to));
    for (size_t i = 0; i < carafe_elements(&x); i++)
        ((float *)to)[i] = (float)(((const float *)x.data)[i] * h->factor + h->hint);
    return CARAFE_OK;
}

/* What was heard of. */

static atomic_long steps, events;

static void on_progress(void *user, float part, uint32_t total, uint32_t done) {
    (void)user;
    if (part >= 0 && part <= 1 && done <= total) steps++;
}

static void on_event(void *user, CarafeStr kind, CarafeStr category, CarafeStr action, CarafeStr label, int64_t value) {
    (void)user, (void)kind, (void)category, (void)action, (void)label, (void)value;
    events++;
}

static CarafeStatus two_numbers(const void *instance, CarafeInfer *cx) {
    (void)instance;
    CarafeDim two = {2, 2, 0, 0};
    CarafeFact y = {CARAFE_I64, 1, &two};
    return cx->fns->set_output(cx, 0, &y);
}

static CarafeStatus heard_eval(const void *instance, CarafeEval *cx) {
    (void)instance;
    size_t two = 2;
    void *to;
    TRY(cx->fns->output(cx, 0, CARAFE_I64, 1, &two, &to));
    ((int64_t *)to)[0] = steps;
    ((int64_t *)to)[1] = events;
    return CARAFE_OK;
}

/* Rules. */

static CarafeStatus convert_steep(void *user, CarafeNode *cx) {
    (void)user;
    CarafeAttr a;
    CarafeStatus status = cx->fns->attr(cx, carafe_str("scale"), &a);
    if (status != CARAFE_OK) return carafe_fail(carafe, CARAFE_INVALID, "attribute `scale` is required");
    double by = a.f;
    if (cx->fns->attr(cx, carafe_str("times"), &a) == CARAFE_OK) by *= (double)a.i;
    if (cx->fns->attr(cx, carafe_str("label"), &a) == CARAFE_OK) by += (double)a.s.len;
    if (cx->fns->attr(cx, carafe_str("axes"), &a) == CARAFE_OK) by += (double)a.n;
    if (cx->fns->attr(cx, carafe_str("words"), &a) == CARAFE_OK) by += (double)a.n;
    if (cx->fns->attr(cx, carafe_str("weights"), &a) == CARAFE_OK)
        for (size_t i = 0; i < a.n; i++) by += a.floats[i];
    CarafeValue in[2], y, b;
    TRY(cx->fns->input(cx, 0, &in[0]));
    CarafeValue x = in[0];
    float factor = (float)by;
    CarafeTensor scalar = {CARAFE_F32, 0, NULL, &factor, sizeof factor};
    TRY(cx->fns->constant(cx, &scalar, &in[1]));
    CarafeAttrs none = {NULL, 0};
    TRY(cx->fns->emit(cx, carafe_str("opset1::Multiply"), in, 2, none, &y));
    if (cx->fns->n_inputs(cx) > 1 && cx->fns->input(cx, 1, &b) == CARAFE_OK) {
        in[0] = y;
        in[1] = b;
        TRY(cx->fns->emit(cx, carafe_str("opset1::Add"), in, 2, none, &y));
    }
    TRY(cx->fns->set_output(cx, 0, y));
    return cx->fns->n_outputs(cx) > 1 ? cx->fns->set_output(cx, 1, x) : CARAFE_OK;
}

static CarafeStatus convert_nonzeros(void *user, CarafeNode *cx) {
    (void)user;
    CarafeValue x, y;
    CarafeAttrs none = {NULL, 0};
    TRY(cx->fns->input(cx, 0, &x));
    TRY(cx->fns->emit(cx, carafe_str("kinds::Places"), &x, 1, none, &y));
    return cx->fns->set_output(cx, 0, y);
}

/* Rewrites; `user` is the key of a mark, or the letter that a name gets. */

static CarafeStatus mark_at(void *user, CarafeGraph *g, uint32_t id, uint32_t *outcome) {
    CarafeStr found;
    if (g->fns->info(g, id, carafe_str(user), &found) == CARAFE_OK) {
        carafe->set_error(carafe_str("marked already"));
        *outcome = CARAFE_SKIPPED;
        return CARAFE_OK;
    }
    TRY(g->fns->set_info(g, id, carafe_str(user), carafe_str("seen")));
    *outcome = CARAFE_DONE;
    return CARAFE_OK;
}

static CarafeStatus append(CarafeGraph *g, uint32_t id, const CarafeNodeInfo *info, const char *letter) {
    char name[256];
    snprintf(name, sizeof name, "%.*s%s", (int)info->name.len, info->name.data, letter);
    return g->fns->set_name(g, id, carafe_str(name));
}

static CarafeStatus late_at(void *user, CarafeGraph *g, uint32_t id, uint32_t *outcome) {
    CarafeNodeInfo info;
    TRY(g->fns->node(g, id, &info));
    TRY(append(g, id, &info, user));
    *outcome = CARAFE_DONE;
    return CARAFE_OK;
}

static CarafeStatus early_run(void *user, CarafeGraph *g, size_t *fired) {
    const uint32_t *ids;
    size_t n;
    TRY(g->fns->nodes(g, &ids, &n));
    for (size_t i = 0; i < n; i++) {
        CarafeNodeInfo info;
        TRY(g->fns->node(g, ids[i], &info));
        if (carafe_str_is(info.op_type, "Tanh")) {
            TRY(append(g, ids[i], &info, user));
            (*fired)++;
        }
    }
    return CARAFE_OK;
}

// An Elu with the alpha that the user wrote takes the place of a block.
static CarafeStatus elu_block(void *user, CarafeGraph *g, const CarafeMatch *m) {
    (void)user;
    const CarafeAttr *given = carafe_attr(m->attrs, "alpha");
    if (m->n_nodes == 0 || !given) return carafe_fail(carafe, CARAFE_INVALID, "EluBlock needs a match");
    CarafeAttr alpha = carafe_attr_float("alpha", given->f);
    CarafeAttrs attrs = {&alpha, 1};
    CarafeStr op = carafe_str("carafe.replacement::opset1::Elu");
    uint32_t id = 0;
    TRY(g->fns->add(g, m->name, op, m->inputs, m->n_inputs, attrs, &id));
    CarafeValue elu = {id, 0};
    return g->fns->replace(g, m->outputs[0], elu);
}

static CarafeStatus look_run(void *user, CarafeGraph *g, size_t *fired) {
    (void)user, (void)fired;
    const uint32_t *ids;
    size_t n;
    return g->fns->nodes(g, &ids, &n);
}

/* A kernel for Twice: nChw8c, or plain memory in place. */

static CarafeStatus twice_configs(void *user, const CarafeSite *site, CarafeConfigSink offer, void *sink) {
    (void)user;
    const CarafeFact *x = &site->inputs[0];
    if (x->rank != 4) return CARAFE_OK;
    size_t blocks[5] = {0, 0, 0, 0, 8}, order[5] = {0, 1, 2, 3, 1};
    for (int i = 0; i < 4; i++) {
        if (x->dims[i].min != x->dims[i].max) return CARAFE_OK;
        blocks[i] = (size_t)x->dims[i].min;
    }
    blocks[1] = (blocks[1] + 7) / 8;
    CarafeLayout blocked = {CARAFE_F32, 5, blocks, order, -1, 0};
    CarafeConfig best = {&blocked, 1, &blocked, 1};
    TRY(offer(sink, &best));
    CarafeLayout in = {CARAFE_F32, 0, NULL, NULL, -1, 0}, out = {CARAFE_F32, 0, NULL, NULL, 0, 0};
    CarafeConfig plain = {&in, 1, &out, 1};
    return offer(sink, &plain);
}

static CarafeStatus twice_init(void *user, const CarafeSite *site, size_t config, void **kernel) {
    (void)user, (void)site;
    if (config > 1) return carafe_fail(carafe, CARAFE_USAGE, "the configuration was not offered");
    *kernel = malloc(1);
    return CARAFE_OK;
}

static CarafeStatus twice_run(const void *kernel, const CarafeKernelIo *io) {
    (void)kernel;
    for (size_t i = 0; i < carafe_elements(&io->inputs[0]); i++)
        ((float *)io->outputs[0].data)[i] = 2 * ((const float *)io->inputs[0].data)[i];
    return CARAFE_OK;
}

static const CarafePort data_port[] = {{"data", 0, 0}};
static const CarafePort output_port[] = {{"output", 0, 0}};

static CarafeStatus add_op(CarafeRegistrar *r, const char *name, const char *opset, uint32_t flags,
                           CarafeStatus (*infer)(const void *, CarafeInfer *),
                           CarafeStatus (*eval)(const void *, CarafeEval *)) {
    CarafeOp op = {0};
    op.size = sizeof op;
    op.abi = CARAFE_ABI_MAJOR;
    op.flags = flags;
    op.name = name;
    op.opset = opset;
    op.inputs = data_port;
    op.n_inputs = 1;
    op.outputs = output_port;
    op.n_outputs = 1;
    op.infer = infer;
    op.eval = eval;
    return r->fns->add_op(r, &op);
}

static CarafeStatus add_every_attr(CarafeRegistrar *r) {
    CarafeAttr flag = carafe_attr_none("flag", CARAFE_ATTR_BOOL), count = carafe_attr_int("count", -7),
               ratio = carafe_attr_float("ratio", 0.5), label = carafe_attr_str("label", "none"),
               ints = carafe_attr_none("ints", CARAFE_ATTR_INTS),
               floats = carafe_attr_none("floats", CARAFE_ATTR_FLOATS),
               words = carafe_attr_none("words", CARAFE_ATTR_STRS), ty = carafe_attr_none("ty", CARAFE_ATTR_TYPE),
               types = carafe_attr_none("types", CARAFE_ATTR_TYPES),
               shape = carafe_attr_none("shape", CARAFE_ATTR_SHAPE),
               mode = carafe_attr_str("mode", "near");
    ty.i = CARAFE_F32;
    shape.i = -1;
    CarafeAttrInfo attrs[] = {
        {"flag", CARAFE_ATTR_BOOL, 0, &flag, NULL},       {"count", CARAFE_ATTR_INT, 0, &count, NULL},
        {"ratio", CARAFE_ATTR_FLOAT, 0, &ratio, NULL},    {"label", CARAFE_ATTR_STR, 0, &label, NULL},
        {"ints", CARAFE_ATTR_INTS, 0, &ints, NULL},       {"floats", CARAFE_ATTR_FLOATS, 0, &floats, NULL},
        {"words", CARAFE_ATTR_STRS, 0, &words, NULL},     {"ty", CARAFE_ATTR_TYPE, 0, &ty, NULL},
        {"types", CARAFE_ATTR_TYPES, 0, &types, NULL},    {"shape", CARAFE_ATTR_SHAPE, 0, &shape, NULL},
        {"mode", CARAFE_ATTR_STR, 0, &mode, NULL},        {"bound", CARAFE_ATTR_INT, 0, NULL, NULL},
        {"table", CARAFE_ATTR_TENSOR, 0, NULL, NULL},
    };
    CarafeOp op = {0};
    op.size = sizeof op;
    op.abi = CARAFE_ABI_MAJOR;
    op.name = "EveryAttr";
    op.opset = "kinds";
    op.inputs = data_port;
    op.n_inputs = 1;
    op.outputs = output_port;
    op.n_outputs = 1;
    op.attrs = attrs;
    op.n_attrs = sizeof attrs / sizeof *attrs;
    op.create = every_attr_create;
    op.infer = one_string;
    op.eval = every_attr_eval;
    op.release = free;
    return r->fns->add_op(r, &op);
}

static CarafeStatus add_hinted(CarafeRegistrar *r) {
    CarafeAttr factor = carafe_attr_float("factor", 1), hint = carafe_attr_float("hint", 10);
    CarafeAttrInfo attrs[] = {{"factor", CARAFE_ATTR_FLOAT, 0, &factor, NULL}, {"hint", CARAFE_ATTR_FLOAT, 0, &hint, NULL}};
    size_t internal[] = {1}, rows[] = {0};
    CarafeOp op = {0};
    op.size = sizeof op;
    op.abi = CARAFE_ABI_MAJOR;
    op.name = "Hinted";
    op.opset = "kinds";
    op.inputs = data_port;
    op.n_inputs = 1;
    op.outputs = output_port;
    op.n_outputs = 1;
    op.attrs = attrs;
    op.n_attrs = 2;
    op.internal_attrs = internal;
    op.n_internal_attrs = 1;
    op.rows = rows;
    op.n_rows = 1;
    op.create = hinted_create;
    op.infer = like_input;
    op.eval = hinted_eval;
    op.release = free;
    return r->fns->add_op(r, &op);
}

static CarafeMapping mapping(const char *op, const char *from) {
    CarafeMapping m = {0};
    m.size = sizeof m;
    m.abi = CARAFE_ABI_MAJOR;
    m.framework = "onnx";
    m.domain = "kinds";
    m.op = op;
    m.op_type = from;
    return m;
}

static CarafeStatus add_mappings(CarafeRegistrar *r) {
    CarafeMapping m = mapping("kinds::Places", NULL);
    TRY(r->fns->add_mapping(r, &m));
    m = mapping("kinds::Places", "WhereTrue");
    TRY(r->fns->add_mapping(r, &m));
    CarafePair names[] = {{"label", "text"}};
    CarafeAttr count = carafe_attr_int("count", 12);
    m = mapping("kinds::EveryAttr", "Tell");
    m.attr_names = names;
    m.n_attr_names = 1;
    m.attr_values.list = &count;
    m.attr_values.n = 1;
    TRY(r->fns->add_mapping(r, &m));
    CarafeInputAttr from[] = {{"ints", 1}, {"ratio", 2}};
    m = mapping("kinds::EveryAttr", "TellInput");
    m.input_attrs = from;
    m.n_input_attrs = 2;
    TRY(r->fns->add_mapping(r, &m));
    m = mapping("Relu", "ReluAlias");
    TRY(r->fns->add_mapping(r, &m));
    CarafeAttr alpha = carafe_attr_float("alpha", 2);
    m = mapping("opset1::Elu", "Elu1");
    m.attr_values.list = &alpha;
    m.attr_values.n = 1;
    TRY(r->fns->add_mapping(r, &m));
    m = mapping("opset1.Sigmoid", "Sigmoid1");
    TRY(r->fns->add_mapping(r, &m));
    static const char *const in[] = {"X"}, *const out[] = {"Out"};
    m = mapping("opset1::Tanh", "tanh2");
    m.framework = "paddle";
    m.domain = NULL;
    m.input_names = in;
    m.n_input_names = 1;
    m.output_names = out;
    m.n_output_names = 1;
    return r->fns->add_mapping(r, &m);
}

static CarafePass pass(uint32_t phase, const char *name, char *user) {
    CarafePass p = {0};
    p.size = sizeof p;
    p.abi = CARAFE_ABI_MAJOR;
    p.phase = phase;
    p.name = name;
    p.user = user;
    return p;
}

static CarafeStatus add_passes(CarafeRegistrar *r) {
    static char front[] = "front", middle[] = "middle", back[] = "back", late_letter[] = "L", early_letter[] = "E";
    static const char *const after[] = {"kinds_middle"}, *const before[] = {"late"};
    CarafePass marks[] = {pass(CARAFE_PHASE_FRONT, "kinds_front", front),
                          pass(CARAFE_PHASE_MIDDLE, "kinds_middle", middle),
                          pass(CARAFE_PHASE_BACK, "kinds_back", back)};
    for (int i = 0; i < 3; i++) {
        marks[i].root = "Sigmoid";
        marks[i].at = mark_at;
        TRY(r->fns->add_pass(r, &marks[i]));
    }
    CarafePass late = pass(CARAFE_PHASE_MIDDLE, "late", late_letter);
    late.root = "Tanh";
    late.at = late_at;
    late.after = after;
    late.n_after = 1;
    TRY(r->fns->add_pass(r, &late));
    CarafePass early = pass(CARAFE_PHASE_MIDDLE, "early", early_letter);
    early.run = early_run;
    early.before = before;
    early.n_before = 1;
    TRY(r->fns->add_pass(r, &early));
    static char asked_letter[] = "A";
    CarafePass asked = pass(CARAFE_PHASE_FRONT, "asked", asked_letter);
    asked.run = early_run;
    asked.disabled = 1;
    TRY(r->fns->add_pass(r, &asked));
    CarafeReplacement block = {0};
    block.size = sizeof block;
    block.abi = CARAFE_ABI_MAJOR;
    block.id = "EluBlock";
    block.replace = elu_block;
    TRY(r->fns->add_replacement(r, &block));
    CarafePass look = pass(CARAFE_PHASE_DECODED, "kinds_decoded", NULL);
    look.run = look_run;
    return r->fns->add_pass(r, &look);
}

CARAFE_C CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    TRY(r->fns->describe(r, carafe_str("all kinds"), carafe_str("0.1.0")));
    TRY(add_every_attr(r));
    TRY(add_hinted(r));
    TRY(add_op(r, "Places", "kinds", 0, places_infer, places_eval));
    TRY(add_op(r, "RunningSum", "kinds", CARAFE_OP_STATEFUL, like_input, running_sum_eval));
    TRY(add_op(r, "SoftSign", "opset9", 0, like_input, fill_eval));
    TRY(add_op(r, "Twice", "kinds", CARAFE_OP_ELEMENTWISE | CARAFE_OP_KEEPS_ZERO, like_input, twice_eval));
    TRY(add_op(r, "Heard", "kinds", CARAFE_OP_RANDOM, two_numbers, heard_eval));

    CarafeRule rule = {0};
    rule.size = sizeof rule;
    rule.abi = CARAFE_ABI_MAJOR;
    rule.framework = "onnx";
    rule.domain = "kinds";
    rule.op_type = "Steep";
    rule.since = 1;
    rule.convert = convert_steep;
    TRY(r->fns->add_rule(r, &rule));
    rule.framework = NULL;
    rule.op_type = "Nonzeros";
    rule.convert = convert_nonzeros;
    TRY(r->fns->add_rule(r, &rule));
    TRY(add_mappings(r));
    TRY(add_passes(r));

    CarafeKernel kernel = {0};
    kernel.size = sizeof kernel;
    kernel.abi = CARAFE_ABI_MAJOR;
    kernel.device = "TEMPLATE";
    kernel.op = "Twice";
    kernel.opset = "kinds";
    kernel.name = "twice_nchw8c";
    kernel.configs = twice_configs;
    kernel.init = twice_init;
    kernel.run = twice_run;
    kernel.release = free;
    TRY(r->fns->add_kernel(r, &kernel));

    CarafeClKernel cl = {0};
    cl.size = sizeof cl;
    cl.abi = CARAFE_ABI_MAJOR;
    cl.device = "GPU";
    cl.xml = "<CustomLayer name=\"Places\" type=\"SimpleGPU\" version=\"1\"/>";
    cl.source = "__kernel void places() {}";
    TRY(r->fns->add_cl_kernel(r, &cl));

    CarafeProgress progress = {sizeof progress, CARAFE_ABI_MAJOR, 0, NULL, on_progress};
    TRY(r->fns->add_progress(r, &progress));
    CarafeTelemetry telemetry = {sizeof telemetry, CARAFE_ABI_MAJOR, 0, NULL, on_event};
    return r->fns->add_telemetry(r, &telemetry);
}
