/* A device in C. It runs Relu and Add on f32 itself, lets the engine evaluate everything else through the model it was
 * given, and says so in `query`. Build it with
 *     cc -shared -fPIC -I include examples/template-plugin-c/plugin.c -o libtemplate_plugin_c.so
 * and use it with `carafe run model.xml -d C --plugin C=./libtemplate_plugin_c.so`. */
#include "carafe.h"
#include <stdatomic.h>
#include <stdlib.h>

CARAFE_LIBRARY

static const CarafeProperty properties[] = {
    {"DEVICE_ID", 0, 1, 0, 0, NULL, 0, "0", "Which instance; there is only 0."},
    {"AVAILABLE_DEVICES", 0, 0, 0, 0, NULL, 0, "", "Ids of the instances."},
    {"FULL_DEVICE_NAME", 0, 0, 0, 0, NULL, 0, "", "Name for people."},
    {"OPTIMIZATION_CAPABILITIES", 0, 0, 0, 0, NULL, 0, "", "Precisions and abilities."},
    {"SUPPORTED_PROPERTIES", 0, 0, 0, 0, NULL, 0, "", "Names of all properties."},
};
enum { N_PROPERTIES = sizeof properties / sizeof *properties, MOST_INPUTS = 64 };

static CarafeStatus write_text(CarafeWrite write, void *sink, const char *text) {
    return write(sink, text, strlen(text));
}

static CarafeStatus device_metric(void *device, CarafeStr name, CarafeWrite write, void *sink) {
    (void)device;
    if (carafe_str_is(name, "AVAILABLE_DEVICES")) return write_text(write, sink, "0");
    if (carafe_str_is(name, "FULL_DEVICE_NAME")) return write_text(write, sink, "A device written in C");
    if (carafe_str_is(name, "OPTIMIZATION_CAPABILITIES")) return write_text(write, sink, "FP32");
    if (carafe_str_is(name, "SUPPORTED_PROPERTIES")) {
        CarafeStatus status = CARAFE_OK;
        for (size_t i = 0; i < N_PROPERTIES && status == CARAFE_OK; i++) {
            if (i) status = write_text(write, sink, " ");
            if (status == CARAFE_OK) status = write_text(write, sink, properties[i].name);
        }
        return status;
    }
    return carafe_fail(carafe, CARAFE_NOT_FOUND, "there is no such property");
}

/* Why the device does not take a node; empty when it does. */
static CarafeStatus refusal(CarafeGraph *g, uint32_t id, const char **reason) {
    CarafeNodeInfo node;
    CarafeStatus status = g->fns->node(g, id, &node);
    *reason = "";
    if (status != CARAFE_OK) return status;
    if (carafe_str_is(node.op_type, "ReadValue") || carafe_str_is(node.op_type, "Assign"))
        *reason = "this device keeps no variables";
    else if (node.n_outputs > 1)
        *reason = "this device keeps the first output of a node only";
    else if (node.n_inputs > MOST_INPUTS)
        *reason = "this device takes at most 64 inputs";
    for (size_t i = 0; i < node.n_inputs + node.n_outputs && status == CARAFE_OK; i++) {
        CarafeValue v = {id, (uint32_t)(i - node.n_inputs)};
        CarafeFact fact;
        if (i < node.n_inputs) status = g->fns->input(g, id, i, &v);
        if (status == CARAFE_OK) status = g->fns->fact(g, v, &fact);
        if (status == CARAFE_OK && fact.element_type == CARAFE_STRING) *reason = "this device has no strings";
    }
    return status;
}

static CarafeStatus device_query(void *device, CarafeGraph *g, CarafeProperties p, CarafeAnswer answer, void *sink) {
    (void)device, (void)p;
    const uint32_t *ids;
    size_t n;
    const char *reason;
    CarafeStatus status = g->fns->nodes(g, &ids, &n);
    for (size_t i = 0; i < n && status == CARAFE_OK; i++) {
        status = refusal(g, ids[i], &reason);
        if (status == CARAFE_OK) status = answer(sink, ids[i], carafe_str(reason));
    }
    return status;
}

/* What was compiled: the model itself, kept alive, and its ports. */

typedef struct {
    CarafeGraph *g;
    const uint32_t *order, *params, *results;
    size_t n, n_params, n_results;
    CarafeModelPort *inputs, *outputs;
} Compiled;

static CarafeStatus port_of(CarafeGraph *g, uint32_t id, int result, CarafeModelPort *port) {
    CarafeNodeInfo node;
    CarafeValue value = {id, 0};
    CarafeStatus status = CARAFE_OK;
    if (result) {
        status = g->fns->input(g, id, 0, &value);
        if (status == CARAFE_OK) status = g->fns->node(g, value.node, &node);
    } else {
        status = g->fns->node(g, id, &node);
    }
    if (status != CARAFE_OK) return status;
    memset(port, 0, sizeof *port);
    CarafeValue named = {id, 0};
    status = g->fns->tensor_names(g, named, &port->names, &port->n_names);
    port->name = port->n_names ? port->names[0] : node.name;
    if (status == CARAFE_OK) status = g->fns->fact(g, value, &port->fact);
    return status;
}

static void compiled_release(void *instance) {
    Compiled *c = instance;
    if (c->g) c->g->fns->release(c->g);
    free(c->inputs);
    free(c->outputs);
    free(c);
}

/* A request: a tensor for every output of every node, those of the inputs lent by the engine. */

typedef struct {
    CarafeTensor tensor;
    size_t *shape;
    void *owner;
    CarafeRelease release;
} Slot;

typedef struct {
    Compiled *c;
    Slot *slots; /* one for the first output of each node, by id */
    size_t n_slots;
    atomic_int cancelled;
} Request;

static void slot_clear(Slot *s) {
    if (s->release) s->release(s->owner);
    free(s->shape);
    memset(s, 0, sizeof *s);
}

static CarafeStatus slot_set(Slot *s, const CarafeTensor *t, void *owner, CarafeRelease release) {
    slot_clear(s);
    s->tensor = *t;
    s->owner = owner;
    s->release = release;
    s->shape = malloc((t->rank + 1) * sizeof *s->shape);
    if (!s->shape) return carafe_fail(carafe, CARAFE_IO, "out of memory");
    if (t->rank) memcpy(s->shape, t->shape, t->rank * sizeof *s->shape);
    s->tensor.shape = s->shape;
    return CARAFE_OK;
}

static CarafeStatus request_set_input(void *request, size_t input, const CarafeTensor *t, void *owner, CarafeRelease release) {
    Request *r = request;
    return slot_set(&r->slots[r->c->params[input]], t, owner, release);
}

/* The context that the engine's evaluation writes a node's outputs to. Only the first output is kept here. */

typedef struct {
    CarafeEval base;
    Slot *slot;
} Sink;

static CarafeStatus sink_set(CarafeEval *cx, size_t output, const CarafeTensor *t) {
    if (output) return CARAFE_OK;
    if (t->element_type == CARAFE_STRING) return carafe_fail(carafe, CARAFE_UNSUPPORTED, "this device has no strings");
    void *copy = malloc(t->bytes ? t->bytes : 1);
    if (!copy) return carafe_fail(carafe, CARAFE_IO, "out of memory");
    if (t->bytes) memcpy(copy, t->data, t->bytes);
    CarafeTensor kept = *t;
    kept.data = copy;
    return slot_set(((Sink *)cx)->slot, &kept, copy, free);
}

static CarafeStatus sink_give(CarafeEval *cx, size_t output, const CarafeTensor *t, void *owner, CarafeRelease release) {
    if (output) {
        release(owner);
        return CARAFE_OK;
    }
    return slot_set(((Sink *)cx)->slot, t, owner, release);
}

static const CarafeEvalFns sink_fns = {
    .size = sizeof(CarafeEvalFns),
    .set_output = sink_set,
    .give_output = sink_give,
};

static CarafeStatus run_own(CarafeNodeInfo node, const CarafeTensor *in, Slot *out, int *done) {
    int relu = carafe_str_is(node.op_type, "ReLU"), add = carafe_str_is(node.op_type, "Add");
    if (!(relu || add) || in[0].element_type != CARAFE_F32) return CARAFE_OK;
    if (add && (in[0].rank != in[1].rank ||
                (in[0].rank && memcmp(in[0].shape, in[1].shape, in[0].rank * sizeof(size_t)))))
        return CARAFE_OK;
    float *y = malloc(in[0].bytes ? in[0].bytes : 1);
    if (!y) return carafe_fail(carafe, CARAFE_IO, "out of memory");
    const float *a = in[0].data, *b = add ? in[1].data : NULL;
    for (size_t i = 0, n = carafe_elements(&in[0]); i < n; i++) y[i] = add ? a[i] + b[i] : a[i] < 0 ? 0 : a[i];
    CarafeTensor t = in[0];
    t.data = y;
    *done = 1;
    return slot_set(out, &t, y, free);
}

static CarafeStatus run_node(Request *r, uint32_t id) {
    CarafeGraph *g = r->c->g;
    CarafeNodeInfo node;
    CarafeStatus status = g->fns->node(g, id, &node);
    if (status != CARAFE_OK || carafe_str_is(node.op_type, "Parameter")) return status;
    CarafeTensor in[MOST_INPUTS];
    for (size_t i = 0; i < node.n_inputs; i++) {
        CarafeValue v;
        status = g->fns->input(g, id, i, &v);
        if (status != CARAFE_OK) return status;
        in[i] = r->slots[v.node].tensor;
    }
    Slot *out = &r->slots[id];
    CarafeValue self = {id, 0};
    CarafeTensor constant;
    if (g->fns->constant_of(g, self, &constant) == CARAFE_OK) return slot_set(out, &constant, NULL, NULL);
    if (carafe_str_is(node.op_type, "Result")) return slot_set(out, &in[0], NULL, NULL);
    int done = 0;
    status = run_own(node, in, out, &done);
    if (status != CARAFE_OK || done) return status;
    Sink sink = {{&sink_fns}, out};
    return g->fns->evaluate(g, id, in, node.n_inputs, &sink.base);
}

static CarafeStatus request_infer(void *request) {
    Request *r = request;
    atomic_store(&r->cancelled, 0);
    for (size_t i = 0; i < r->c->n; i++) {
        if (atomic_load(&r->cancelled)) return carafe_fail(carafe, CARAFE_CANCELLED, "the inference was cancelled");
        CarafeStatus status = run_node(r, r->c->order[i]);
        if (status != CARAFE_OK) return status;
    }
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

static void request_release(void *request) {
    Request *r = request;
    for (size_t i = 0; i < r->n_slots; i++) slot_clear(&r->slots[i]);
    free(r->slots);
    free(r);
}

static CarafeStatus compiled_create_request(void *compiled, CarafeRequest *out) {
    Compiled *c = compiled;
    Request *r = calloc(1, sizeof *r);
    if (!r) return carafe_fail(carafe, CARAFE_IO, "out of memory");
    for (size_t i = 0; i < c->n; i++)
        if (c->order[i] >= r->n_slots) r->n_slots = c->order[i] + 1;
    r->c = c;
    r->slots = calloc(r->n_slots ? r->n_slots : 1, sizeof *r->slots);
    if (!r->slots) {
        free(r);
        return carafe_fail(carafe, CARAFE_IO, "out of memory");
    }
    out->instance = r;
    out->set_input = request_set_input;
    out->infer = request_infer;
    out->output = request_output;
    out->cancel = request_cancel;
    out->release = request_release;
    return CARAFE_OK;
}

static CarafeStatus compiled_property(void *compiled, CarafeStr name, CarafeWrite write, void *sink) {
    (void)compiled;
    if (carafe_str_is(name, "EXECUTION_DEVICES")) return write_text(write, sink, "C");
    if (carafe_str_is(name, "OPTIMAL_NUMBER_OF_INFER_REQUESTS")) return write_text(write, sink, "1");
    return carafe_fail(carafe, CARAFE_NOT_FOUND, "the compiled model has no such property");
}

static CarafeStatus device_compile(void *device, CarafeGraph *g, CarafeProperties p, CarafeCompiled *out) {
    (void)device, (void)p;
    Compiled *c = calloc(1, sizeof *c);
    if (!c) return carafe_fail(carafe, CARAFE_IO, "out of memory");
    c->g = g->fns->retain(g); /* what the kept model hands out lives as long as it */
    CarafeStatus status = c->g->fns->nodes(c->g, &c->order, &c->n);
    const char *reason;
    for (size_t i = 0; i < c->n && status == CARAFE_OK; i++) {
        status = refusal(c->g, c->order[i], &reason);
        if (status == CARAFE_OK && *reason) status = carafe_fail(carafe, CARAFE_UNSUPPORTED, reason);
    }
    if (status == CARAFE_OK) status = c->g->fns->parameters(c->g, &c->params, &c->n_params);
    if (status == CARAFE_OK) status = c->g->fns->results(c->g, &c->results, &c->n_results);
    c->inputs = calloc(c->n_params + 1, sizeof *c->inputs);
    c->outputs = calloc(c->n_results + 1, sizeof *c->outputs);
    if (!c->inputs || !c->outputs) status = carafe_fail(carafe, CARAFE_IO, "out of memory");
    for (size_t i = 0; i < c->n_params && status == CARAFE_OK; i++)
        status = port_of(c->g, c->params[i], 0, &c->inputs[i]);
    for (size_t i = 0; i < c->n_results && status == CARAFE_OK; i++)
        status = port_of(c->g, c->results[i], 1, &c->outputs[i]);
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
    out->create_request = compiled_create_request;
    out->release = compiled_release;
    return CARAFE_OK;
}

CARAFE_C CARAFE_EXPORT CarafeStatus CreatePluginEngine(const CarafeHost *host, CarafeDevice *device) {
    carafe = host;
    device->name = "C";
    device->version = "1.0";
    device->description = "An example of a device in C";
    device->properties = properties;
    device->n_properties = N_PROPERTIES;
    device->metric = device_metric;
    device->query = device_query;
    device->compile = device_compile;
    return CARAFE_OK;
}
