/* A device in C, to copy and change. It computes ReLU and Add on f32 itself and lets the engine evaluate every other node
 * through the model it was given. It has all that a device can have: properties, dynamic shapes, variables, times of nodes,
 * the graph that runs, export and import.
 *
 *     cc -shared -fPIC -I $CARAFE/include plugin.c -o libtemplate_plugin_c.so
 *     carafe run model.xml -d C --plugin C=./libtemplate_plugin_c.so
 *     carafe conformance -d C --plugin C=./libtemplate_plugin_c.so
 */
#define _POSIX_C_SOURCE 200809L
#include "carafe.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

CARAFE_LIBRARY

static CarafeStatus no_memory(void) { return carafe_fail(carafe, CARAFE_IO, "out of memory"); }

/* A failure of `can_evaluate`, with the node named. */
static CarafeStatus refused(CarafeStatus status, CarafeStr node) {
    CarafeStr why;
    carafe->last_error(&why);
    char text[512];
    snprintf(text, sizeof text, "node `%.*s`: %.*s", (int)(node.len < 160 ? node.len : 160), node.data,
             (int)(why.len < 300 ? why.len : 300), why.data);
    return carafe_fail(carafe, status, text);
}

static CarafeStatus write_text(CarafeWrite write, void *sink, const char *text) {
    return write(sink, text, strlen(text));
}

/* malloc(0) may be NULL, which is no failure. */
static void *memory(size_t bytes) { return malloc(bytes ? bytes : 1); }

/* Properties. The table tells the engine what there is; it checks values before they come here. */

static const CarafeProperty properties[] = {
    {"PERF_COUNT", 1, 1, 0, 0, NULL, 0, "false", "Measure the time of every node."},
    {"DEVICE_ID", 0, 1, 0, 0, NULL, 0, "0", "Which instance; there is only 0."},
    {"AVAILABLE_DEVICES", 0, 0, 0, 0, NULL, 0, "", "Ids of the instances."},
    {"FULL_DEVICE_NAME", 0, 0, 0, 0, NULL, 0, "", "Name for people."},
    {"DEVICE_ARCHITECTURE", 0, 0, 0, 0, NULL, 0, "", "Kind of machine the device runs on."},
    {"OPTIMIZATION_CAPABILITIES", 0, 0, 0, 0, NULL, 0, "", "Precisions and abilities."},
    {"OPTIMAL_NUMBER_OF_INFER_REQUESTS", 0, 0, 0, 0, NULL, 0, "", "How many requests keep the device busy."},
    {"RANGE_FOR_ASYNC_INFER_REQUESTS", 0, 0, 0, 0, NULL, 0, "", "Fewest, most and step of parallel requests."},
    {"SUPPORTED_PROPERTIES", 0, 0, 0, 0, NULL, 0, "", "Names of all properties."},
};
enum { N_PROPERTIES = sizeof properties / sizeof *properties };

static const char *const metrics[][2] = {
    {"AVAILABLE_DEVICES", "0"},
    {"FULL_DEVICE_NAME", "A device written in C"},
    {"DEVICE_ARCHITECTURE", "host"},
    {"OPTIMIZATION_CAPABILITIES", "FP32 FP16 BF16 INT8 BIN EXPORT_IMPORT"},
    {"OPTIMAL_NUMBER_OF_INFER_REQUESTS", "1"},
    {"RANGE_FOR_ASYNC_INFER_REQUESTS", "1 1 1"},
};

static CarafeStatus device_metric(void *device, CarafeStr name, CarafeWrite write, void *sink) {
    (void)device;
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        if (carafe_str_is(name, metrics[i][0])) return write_text(write, sink, metrics[i][1]);
    if (!carafe_str_is(name, "SUPPORTED_PROPERTIES"))
        return carafe_fail(carafe, CARAFE_NOT_FOUND, "there is no such property");
    CarafeStatus status = CARAFE_OK;
    for (size_t i = 0; i < N_PROPERTIES && status == CARAFE_OK; i++) {
        if (i) status = write_text(write, sink, " ");
        if (status == CARAFE_OK) status = write_text(write, sink, properties[i].name);
    }
    return status;
}

/* What a compilation was given. */
typedef struct {
    int perf_count;
} Settings;

static CarafeStatus settings_of(CarafeProperties p, Settings *settings) {
    settings->perf_count = 0;
    for (size_t i = 0; i < p.n; i++) {
        CarafeStr value = p.list[i].value;
        if (carafe_str_is(p.list[i].name, "DEVICE_ID") && !carafe_str_is(value, "0"))
            return carafe_fail(carafe, CARAFE_NOT_FOUND, "this device has one instance, 0");
        if (carafe_str_is(p.list[i].name, "PERF_COUNT"))
            settings->perf_count = value.len && (value.data[0] == 't' || value.data[0] == 'T' || value.data[0] == 'y' ||
                                                 value.data[0] == 'Y' || value.data[0] == '1');
    }
    return CARAFE_OK;
}

/* The device takes what the engine can evaluate. */
static CarafeStatus device_query(void *device, CarafeGraph *g, CarafeProperties p, CarafeAnswer answer, void *sink) {
    (void)device;
    Settings settings;
    const uint32_t *ids;
    size_t n = 0;
    CarafeStatus status = settings_of(p, &settings);
    if (status == CARAFE_OK) status = g->fns->nodes(g, &ids, &n);
    for (size_t i = 0; i < n && status == CARAFE_OK; i++) {
        CarafeStr reason = carafe_str("");
        status = g->fns->can_evaluate(g, ids[i]);
        if (status == CARAFE_UNSUPPORTED) {
            carafe->last_error(&reason);
            status = CARAFE_OK;
        }
        if (status == CARAFE_OK) status = answer(sink, ids[i], reason);
    }
    return status;
}

/* A tensor with its memory: someone else's until `release(owner)`, or borrowed when there is no `release`. */

typedef struct {
    CarafeTensor tensor;
    size_t *shape;
    void *owner;
    CarafeRelease release;
} Slot;

static void slot_clear(Slot *s) {
    if (s->release) s->release(s->owner);
    free(s->shape);
    memset(s, 0, sizeof *s);
}

/* On failure the memory stays with the caller. */
static CarafeStatus slot_set(Slot *s, const CarafeTensor *t, void *owner, CarafeRelease release) {
    size_t *shape = memory(t->rank * sizeof *shape);
    if (!shape) return no_memory();
    if (t->rank) memcpy(shape, t->shape, t->rank * sizeof *shape);
    CarafeTensor kept = *t;
    slot_clear(s);
    s->tensor = kept;
    s->tensor.shape = s->shape = shape;
    s->owner = owner;
    s->release = release;
    return CARAFE_OK;
}

/* Strings are copied into one piece of memory behind their list. */
static CarafeStatus slot_copy(Slot *s, const CarafeTensor *t) {
    size_t n = carafe_elements(t), bytes = t->bytes;
    const CarafeStr *from = t->data;
    int strings = t->element_type == CARAFE_STRING;
    if (strings) {
        bytes = n * sizeof *from;
        for (size_t i = 0; i < n; i++) bytes += from[i].len;
    }
    char *copy = memory(bytes);
    if (!copy) return no_memory();
    if (strings) {
        CarafeStr *to = (CarafeStr *)(void *)copy;
        char *next = copy + n * sizeof *to;
        for (size_t i = 0; i < n; i++) {
            if (from[i].len) memcpy(next, from[i].data, from[i].len);
            to[i].data = next;
            to[i].len = from[i].len;
            next += from[i].len;
        }
    } else if (bytes) {
        memcpy(copy, t->data, bytes);
    }
    CarafeTensor kept = *t;
    kept.data = copy;
    CarafeStatus status = slot_set(s, &kept, copy, free);
    if (status != CARAFE_OK) free(copy);
    return status;
}

/* What was compiled: the model, kept alive, and a plan that says which slots each node reads and writes. After this the
 * model itself is only used to evaluate nodes, which several requests do at once. */

enum { STILL, RELU, ADD, OTHER };

typedef struct {
    CarafeNodeInfo info; /* the texts live as long as the model */
    uint32_t id;
    int kind;
    size_t reads;  /* first of `n_inputs` numbers of slots in `Compiled::reads` */
    size_t writes; /* first of `n_outputs` slots */
} Node;

typedef struct {
    CarafeGraph *g;
    CarafeStr name;
    Settings settings;
    Node *nodes;
    size_t n, n_reads, n_slots, most_inputs;
    size_t *reads;
    size_t *params, *results; /* slots of the inputs and outputs of the model */
    CarafeModelPort *inputs, *outputs;
    size_t n_params, n_results;
    CarafeStr *variables;
    size_t n_variables;
} Compiled;

static const char *kernel_of(const Node *node) {
    static const char *const names[] = {"none", "c_relu", "c_add", "reference"};
    return names[node->kind];
}

static void compiled_release(void *instance) {
    Compiled *c = instance;
    if (c->g) c->g->fns->release(c->g);
    free(c->nodes);
    free(c->reads);
    free(c->params);
    free(c->results);
    free(c->inputs);
    free(c->outputs);
    free(c->variables);
    free(c);
}

static Node *node_of(const Compiled *c, uint32_t id) {
    for (size_t i = 0; i < c->n; i++)
        if (c->nodes[i].id == id) return &c->nodes[i];
    return NULL;
}

/* Nodes in the order they run, with the numbers of their slots. */
static CarafeStatus plan_nodes(Compiled *c) {
    CarafeGraph *g = c->g;
    const uint32_t *ids;
    CarafeStatus status = g->fns->nodes(g, &ids, &c->n);
    if (status != CARAFE_OK) return status;
    uint32_t last = 0;
    for (size_t i = 0; i < c->n; i++) last = ids[i] > last ? ids[i] : last;
    size_t *writes = memory((last + 1u) * sizeof *writes); /* first slot of a node, by its id */
    c->nodes = calloc(c->n + 1, sizeof *c->nodes);
    c->variables = calloc(c->n + 1, sizeof *c->variables);
    if (!c->nodes || !c->variables || !writes) status = no_memory();
    for (size_t i = 0; i < c->n && status == CARAFE_OK; i++) {
        Node *node = &c->nodes[i];
        CarafeAttrs attrs;
        node->id = ids[i];
        status = g->fns->node(g, node->id, &node->info);
        if (status == CARAFE_OK) {
            status = g->fns->can_evaluate(g, node->id);
            if (status != CARAFE_OK) status = refused(status, node->info.name);
        }
        if (status == CARAFE_OK) status = g->fns->attrs(g, node->id, &attrs);
        if (status != CARAFE_OK) break;
        node->reads = c->n_reads;
        node->writes = writes[node->id] = c->n_slots;
        c->n_reads += node->info.n_inputs;
        c->n_slots += node->info.n_outputs ? node->info.n_outputs : 1; /* a result has a slot too */
        if (node->info.n_inputs > c->most_inputs) c->most_inputs = node->info.n_inputs;
        CarafeStr type = node->info.op_type;
        int still = carafe_str_is(type, "Parameter") || carafe_str_is(type, "Const") || carafe_str_is(type, "Result");
        node->kind = still ? STILL : carafe_str_is(type, "ReLU") ? RELU : carafe_str_is(type, "Add") ? ADD : OTHER;
        const CarafeAttr *variable = carafe_attr(attrs, "variable_id");
        if (!variable) continue;
        size_t k = 0;
        while (k < c->n_variables && (c->variables[k].len != variable->s.len ||
                                      memcmp(c->variables[k].data, variable->s.data, variable->s.len)))
            k++;
        if (k == c->n_variables) c->variables[c->n_variables++] = variable->s;
    }
    c->reads = memory(c->n_reads * sizeof *c->reads);
    if (status == CARAFE_OK && !c->reads) status = no_memory();
    for (size_t i = 0; i < c->n && status == CARAFE_OK; i++)
        for (size_t k = 0; k < c->nodes[i].info.n_inputs && status == CARAFE_OK; k++) {
            CarafeValue v;
            status = g->fns->input(g, c->nodes[i].id, k, &v);
            if (status == CARAFE_OK) c->reads[c->nodes[i].reads + k] = writes[v.node] + v.port;
        }
    free(writes);
    return status;
}

/* Inputs, or outputs, of the model: their slots and what users see of them. */
static CarafeStatus plan_ports(Compiled *c, int result, size_t **slots, CarafeModelPort **ports, size_t *n) {
    CarafeGraph *g = c->g;
    const uint32_t *ids;
    CarafeStatus status = result ? g->fns->results(g, &ids, n) : g->fns->parameters(g, &ids, n);
    if (status != CARAFE_OK) return status;
    *slots = memory(*n * sizeof **slots);
    *ports = calloc(*n + 1, sizeof **ports);
    if (!*slots || !*ports) return no_memory();
    for (size_t i = 0; i < *n && status == CARAFE_OK; i++) {
        CarafeModelPort *port = &(*ports)[i];
        const Node *node = node_of(c, ids[i]), *named = node;
        CarafeValue self = {ids[i], 0}, value = self;
        (*slots)[i] = node->writes;
        status = g->fns->tensor_names(g, self, &port->names, &port->n_names);
        if (status == CARAFE_OK && result) status = g->fns->input(g, ids[i], 0, &value);
        if (status == CARAFE_OK) status = g->fns->fact(g, value, &port->fact);
        if (result && status == CARAFE_OK) named = node_of(c, value.node);
        port->name = port->n_names ? port->names[0] : named->info.name;
    }
    return status;
}

/* A request: a slot for every output of every node, and the values of the variables. */

typedef struct {
    CarafeStr id;
    char *own_id; /* when it was met in a body, at the first inference */
    Slot value;
    int is_set;
} Variable;

typedef struct {
    Compiled *c;
    Slot *slots;
    CarafeTensor *in; /* what the node at hand reads */
    Variable *variables;
    size_t n_variables;
    uint64_t *ns; /* of each node in the last inference, with PERF_COUNT */
    int ran;
    atomic_int cancelled;
} Request;

static CarafeStatus request_set_input(void *request, size_t input, const CarafeTensor *t, void *owner, CarafeRelease release) {
    Request *r = request;
    return slot_set(&r->slots[r->c->params[input]], t, owner, release);
}

static Variable *variable_of(Request *r, CarafeStr id) {
    for (size_t i = 0; i < r->n_variables; i++)
        if (r->variables[i].id.len == id.len && !memcmp(r->variables[i].id.data, id.data, id.len)) return &r->variables[i];
    return NULL;
}

/* The context that the engine evaluates a node with: it takes the outputs, and hands out and takes variables. */

typedef struct {
    CarafeEval base; /* first, so that a pointer to it is one to the whole */
    Request *r;
    Slot *outputs;
} Sink;

static CarafeStatus sink_set(CarafeEval *cx, size_t output, const CarafeTensor *t) {
    return slot_copy(&((Sink *)cx)->outputs[output], t);
}

static CarafeStatus sink_give(CarafeEval *cx, size_t output, const CarafeTensor *t, void *owner, CarafeRelease release) {
    return slot_set(&((Sink *)cx)->outputs[output], t, owner, release);
}

static CarafeStatus sink_variable(CarafeEval *cx, CarafeStr id, CarafeTensor *t) {
    Variable *v = variable_of(((Sink *)cx)->r, id);
    if (!v || !v->is_set) return carafe_fail(carafe, CARAFE_NOT_FOUND, "the variable has no value yet");
    *t = v->value.tensor;
    return CARAFE_OK;
}

static CarafeStatus sink_assign(CarafeEval *cx, CarafeStr id, const CarafeTensor *t) {
    Request *r = ((Sink *)cx)->r;
    Variable *v = variable_of(r, id);
    if (!v) { /* of a body, which this device does not look into */
        Variable *more = realloc(r->variables, (r->n_variables + 1) * sizeof *more);
        if (!more) return no_memory();
        r->variables = more;
        v = memset(&more[r->n_variables], 0, sizeof *v);
        v->own_id = memory(id.len);
        if (!v->own_id) return no_memory();
        memcpy(v->own_id, id.data, id.len);
        v->id.data = v->own_id;
        v->id.len = id.len;
        r->n_variables++;
    }
    v->is_set = 1;
    return slot_copy(&v->value, t);
}

static const CarafeEvalFns sink_fns = {
    .size = sizeof(CarafeEvalFns),
    .set_output = sink_set,
    .give_output = sink_give,
    .variable = sink_variable,
    .assign = sink_assign,
};

/* The device's own kernels. */
static CarafeStatus run_own(const Node *node, const CarafeTensor *in, Slot *out, int *done) {
    if (in[0].element_type != CARAFE_F32) return CARAFE_OK;
    int add = node->kind == ADD;
    if (add && (in[0].rank != in[1].rank ||
                (in[0].rank && memcmp(in[0].shape, in[1].shape, in[0].rank * sizeof(size_t)))))
        return CARAFE_OK; /* broadcasting is left to the engine */
    float *y = memory(in[0].bytes);
    if (!y) return no_memory();
    const float *a = in[0].data, *b = add ? in[1].data : NULL;
    for (size_t i = 0, n = carafe_elements(&in[0]); i < n; i++) y[i] = add ? a[i] + b[i] : a[i] < 0 ? 0 : a[i];
    CarafeTensor t = in[0];
    t.data = y;
    *done = 1;
    CarafeStatus status = slot_set(out, &t, y, free);
    if (status != CARAFE_OK) free(y);
    return status;
}

static CarafeStatus run_node(Request *r, const Node *node) {
    Slot *out = &r->slots[node->writes];
    for (size_t i = 0; i < node->info.n_inputs; i++) r->in[i] = r->slots[r->c->reads[node->reads + i]].tensor;
    if (node->kind == STILL) /* inputs and constants have their slots filled */
        return carafe_str_is(node->info.op_type, "Result") ? slot_set(out, &r->in[0], NULL, NULL) : CARAFE_OK;
    int done = 0;
    if (node->kind != OTHER) {
        CarafeStatus status = run_own(node, r->in, out, &done);
        if (status != CARAFE_OK || done) return status;
    }
    Sink sink = {{&sink_fns}, r, out};
    return r->c->g->fns->evaluate(r->c->g, node->id, r->in, node->info.n_inputs, &sink.base);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static CarafeStatus request_infer(void *request) {
    Request *r = request;
    atomic_store(&r->cancelled, 0);
    r->ran = 0;
    for (size_t i = 0; i < r->c->n; i++) {
        if (atomic_load(&r->cancelled)) return carafe_fail(carafe, CARAFE_CANCELLED, "the inference was cancelled");
        uint64_t start = r->ns ? now_ns() : 0;
        CarafeStatus status = run_node(r, &r->c->nodes[i]);
        if (r->ns) r->ns[i] = now_ns() - start;
        if (status != CARAFE_OK) return status;
    }
    r->ran = 1;
    return CARAFE_OK;
}

static CarafeStatus request_output(void *request, size_t output, CarafeTensor *t, void **owner, CarafeRelease *release) {
    (void)owner, (void)release; /* the memory stays ours until the next inference */
    Request *r = request;
    *t = r->slots[r->c->results[output]].tensor;
    return CARAFE_OK;
}

static void request_cancel(void *request) {
    atomic_store(&((Request *)request)->cancelled, 1);
}

static CarafeStatus request_profile(void *request, CarafeProfileSink row, void *sink) {
    Request *r = request;
    CarafeStatus status = CARAFE_OK;
    for (size_t i = 0; r->ns && i < r->c->n && status == CARAFE_OK; i++) {
        const Node *node = &r->c->nodes[i];
        CarafeProfile p = {.name = node->info.name, .op_type = node->info.op_type, .kernel = carafe_str(kernel_of(node))};
        p.status = node->kind == STILL ? 1 : r->ran ? 2 : 0;
        if (p.status == 2) p.real_ns = p.cpu_ns = r->ns[i]; /* one thread does the work, so both times are the same */
        status = row(sink, &p);
    }
    return status;
}

static CarafeStatus request_variables(void *request, CarafeWrite write, void *sink) {
    Request *r = request;
    CarafeStatus status = CARAFE_OK;
    for (size_t i = 0; i < r->n_variables && status == CARAFE_OK; i++) {
        status = write(sink, r->variables[i].id.data, r->variables[i].id.len);
        if (status == CARAFE_OK) status = write(sink, "", 1);
    }
    return status;
}

static CarafeStatus request_variable(void *request, CarafeStr id, CarafeTensor *t) {
    Variable *v = variable_of(request, id);
    if (!v || !v->is_set) return carafe_fail(carafe, CARAFE_NOT_FOUND, "the variable has no value yet");
    *t = v->value.tensor;
    return CARAFE_OK;
}

static CarafeStatus request_set_variable(void *request, CarafeStr id, const CarafeTensor *t) {
    Variable *v = variable_of(request, id);
    if (!v) return carafe_fail(carafe, CARAFE_NOT_FOUND, "the model has no such variable");
    CarafeStatus status = slot_copy(&v->value, t);
    if (status == CARAFE_OK) v->is_set = 1;
    return status;
}

static void request_reset(void *request) {
    Request *r = request;
    for (size_t i = 0; i < r->n_variables; i++) r->variables[i].is_set = 0;
}

static void request_release(void *request) {
    Request *r = request;
    for (size_t i = 0; r->slots && i < r->c->n_slots; i++) slot_clear(&r->slots[i]);
    for (size_t i = 0; r->variables && i < r->n_variables; i++) {
        slot_clear(&r->variables[i].value);
        free(r->variables[i].own_id);
    }
    free(r->slots);
    free(r->in);
    free(r->variables);
    free(r->ns);
    free(r);
}

static CarafeStatus compiled_create_request(void *compiled, CarafeRequest *out) {
    Compiled *c = compiled;
    Request *r = calloc(1, sizeof *r);
    if (!r) return no_memory();
    r->c = c;
    r->slots = calloc(c->n_slots + 1, sizeof *r->slots);
    r->in = calloc(c->most_inputs + 1, sizeof *r->in);
    r->variables = calloc(c->n_variables + 1, sizeof *r->variables);
    if (c->settings.perf_count) r->ns = calloc(c->n + 1, sizeof *r->ns);
    CarafeStatus status = CARAFE_OK;
    if (!r->slots || !r->in || !r->variables || (c->settings.perf_count && !r->ns)) status = no_memory();
    for (size_t i = 0; i < c->n && status == CARAFE_OK; i++) {
        CarafeValue self = {c->nodes[i].id, 0};
        CarafeTensor constant;
        if (carafe_str_is(c->nodes[i].info.op_type, "Const")) {
            status = c->g->fns->constant_of(c->g, self, &constant);
            if (status == CARAFE_OK) status = slot_set(&r->slots[c->nodes[i].writes], &constant, NULL, NULL);
        }
    }
    if (status != CARAFE_OK) {
        request_release(r);
        return status;
    }
    r->n_variables = c->n_variables;
    for (size_t i = 0; i < c->n_variables; i++) r->variables[i].id = c->variables[i];
    out->instance = r;
    out->set_input = request_set_input;
    out->infer = request_infer;
    out->output = request_output;
    out->cancel = request_cancel;
    out->profile = request_profile;
    out->variables = request_variables;
    out->variable = request_variable;
    out->set_variable = request_set_variable;
    out->reset = request_reset;
    out->release = request_release;
    return CARAFE_OK;
}

static CarafeStatus compiled_property(void *compiled, CarafeStr name, CarafeWrite write, void *sink) {
    Compiled *c = compiled;
    if (carafe_str_is(name, "NETWORK_NAME")) return write(sink, c->name.data, c->name.len);
    if (carafe_str_is(name, "EXECUTION_DEVICES")) return write_text(write, sink, "C");
    if (carafe_str_is(name, "LOADED_FROM_CACHE")) return write_text(write, sink, "false");
    if (carafe_str_is(name, "PERF_COUNT")) return write_text(write, sink, c->settings.perf_count ? "true" : "false");
    if (carafe_str_is(name, "DEVICE_ID")) return write_text(write, sink, "0");
    return device_metric(NULL, name, write, sink);
}

/* The graph that runs: here the model as it came, with the order and the kernel of each node. */
static CarafeStatus compiled_runtime_model(void *compiled, CarafeWrite write, void *sink) {
    Compiled *c = compiled;
    CarafeGraph *copy;
    CarafeStatus status = c->g->fns->copy(c->g, &copy);
    if (status != CARAFE_OK) return status;
    for (size_t i = 0; i < c->n && status == CARAFE_OK; i++) {
        const Node *node = &c->nodes[i];
        char order[24];
        snprintf(order, sizeof order, "%zu", i);
        status = copy->fns->set_info(copy, node->id, carafe_str("execOrder"), carafe_str(order));
        if (status == CARAFE_OK)
            status = copy->fns->set_info(copy, node->id, carafe_str("primitiveType"), carafe_str(kernel_of(node)));
    }
    if (status == CARAFE_OK) status = copy->fns->write_text(copy, write, sink);
    copy->fns->release(copy);
    return status;
}

/* An exported model: this header, the text of the model and its weights. Bytes are in the order of the machine. */

typedef struct {
    char magic[8];
    uint64_t text, weights; /* bytes of each */
    uint64_t sum;           /* of all that follows, FNV-1a */
} Header;

static const char magic[8] = {'C', 'A', 'R', 'A', 'F', 'E', 'C', '1'};

static uint64_t sum_of(uint64_t sum, const void *data, size_t bytes) {
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++) sum = (sum ^ p[i]) * 1099511628211u;
    return sum;
}
static const uint64_t sum_of_nothing = 14695981039346656037u;

/* Where parts of an exported model go: into a sum, or to a writer. */
typedef struct {
    CarafeWrite write;
    void *sink;
    uint64_t sum, bytes;
} Out;

static CarafeStatus put(Out *out, const void *data, size_t bytes) {
    if (!bytes) return CARAFE_OK;
    out->sum = sum_of(out->sum, data, bytes);
    out->bytes += bytes;
    return out->write ? out->write(out->sink, data, bytes) : CARAFE_OK;
}

/* The weights lie in buffers; what is between them is zero. */
static CarafeStatus put_weights(Out *out, const CarafeBuffer *buffers, size_t n) {
    static const char zeros[64];
    CarafeStatus status = CARAFE_OK;
    uint64_t at = 0;
    for (size_t i = 0; i < n && status == CARAFE_OK; i++) {
        while (at < buffers[i].offset && status == CARAFE_OK) {
            size_t gap = buffers[i].offset - at < sizeof zeros ? (size_t)(buffers[i].offset - at) : sizeof zeros;
            status = put(out, zeros, gap);
            at += gap;
        }
        if (status == CARAFE_OK) status = put(out, buffers[i].data, buffers[i].bytes);
        at += buffers[i].bytes;
    }
    return status;
}

static CarafeStatus compiled_export_to(void *compiled, CarafeWrite write, void *sink) {
    Compiled *c = compiled;
    CarafeStr xml;
    const CarafeBuffer *buffers;
    size_t n;
    CarafeStatus status = c->g->fns->ir(c->g, &xml, &buffers, &n);
    if (status != CARAFE_OK) return status;
    Out counted = {NULL, NULL, sum_of(sum_of_nothing, xml.data, xml.len), 0};
    put_weights(&counted, buffers, n);
    Header header = {.text = xml.len, .weights = counted.bytes, .sum = counted.sum};
    memcpy(header.magic, magic, sizeof magic);
    Out out = {write, sink, 0, 0};
    status = write(sink, &header, sizeof header);
    if (status == CARAFE_OK) status = put(&out, xml.data, xml.len);
    if (status == CARAFE_OK) status = put_weights(&out, buffers, n);
    return status;
}

/* Takes `g` over, also on failure. */
static CarafeStatus compile(CarafeGraph *g, CarafeProperties p, CarafeCompiled *out) {
    Compiled *c = calloc(1, sizeof *c);
    if (!c) {
        g->fns->release(g);
        return no_memory();
    }
    c->g = g; /* what it hands out lives as long as it */
    CarafeStatus status = settings_of(p, &c->settings);
    if (status == CARAFE_OK) status = g->fns->model_name(g, &c->name);
    if (status == CARAFE_OK) status = plan_nodes(c);
    if (status == CARAFE_OK) status = plan_ports(c, 0, &c->params, &c->inputs, &c->n_params);
    if (status == CARAFE_OK) status = plan_ports(c, 1, &c->results, &c->outputs, &c->n_results);
    if (status != CARAFE_OK) {
        compiled_release(c);
        return status;
    }
    out->instance = c;
    out->inputs = c->inputs;
    out->n_inputs = c->n_params;
    out->outputs = c->outputs;
    out->n_outputs = c->n_results;
    out->property = compiled_property;
    out->runtime_model = compiled_runtime_model;
    out->export_to = compiled_export_to;
    out->create_request = compiled_create_request;
    out->release = compiled_release;
    return CARAFE_OK;
}

static CarafeStatus device_compile(void *device, CarafeGraph *g, CarafeProperties p, CarafeCompiled *out) {
    (void)device;
    CarafeGraph *kept = g->fns->retain(g);
    return kept ? compile(kept, p, out) : no_memory();
}

static CarafeStatus device_import(void *device, CarafeGraph *ops, const void *data, size_t bytes, CarafeProperties p,
                                  CarafeCompiled *out) {
    (void)device;
    Header header;
    if (bytes < sizeof header || memcmp(data, magic, sizeof magic))
        return carafe_fail(carafe, CARAFE_INVALID, "this is no model that the device C exported");
    memcpy(&header, data, sizeof header);
    const char *text = (const char *)data + sizeof header;
    size_t rest = bytes - sizeof header;
    if (header.text > rest || header.weights != rest - header.text || sum_of(sum_of_nothing, text, rest) != header.sum)
        return carafe_fail(carafe, CARAFE_INVALID, "the exported model is cut short or damaged");
    CarafeStr xml = {text, (size_t)header.text};
    CarafeBuffer weights = {0, text + header.text, (size_t)header.weights};
    CarafeGraph *g;
    CarafeStatus status = ops->fns->read_ir(ops, xml, &weights, 1, &g);
    return status == CARAFE_OK ? compile(g, p, out) : status;
}

CARAFE_C CARAFE_EXPORT CarafeStatus CreatePluginEngine(const CarafeHost *host, CarafeDevice *device) {
    if (!host || !device) return CARAFE_USAGE;
    carafe = host;
    if (host->minor < 2) return carafe_fail(carafe, CARAFE_UNSUPPORTED, "this device needs an engine with ABI 1.2");
    device->name = "C";
    device->version = "1.0";
    device->description = "An example of a device in C";
    device->properties = properties;
    device->n_properties = N_PROPERTIES;
    device->metric = device_metric;
    device->query = device_query;
    device->compile = device_compile;
    device->import = device_import;
    return CARAFE_OK;
}
