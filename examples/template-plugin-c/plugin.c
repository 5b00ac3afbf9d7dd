/* A device in C, to copy and change. It computes ReLU and Add on f32 itself, gives nodes to the kernels that extensions bring
 * for it, and lets the engine evaluate every other node through the model it was given. It has all that a device can have:
 * properties, dynamic shapes, variables, times of nodes, the graph that runs, export and import.
 *
 *     cc -shared -fPIC -I $CARAFE/include plugin.c -o libtemplate_plugin_c.so
 *     carafe run model.xml -d C --plugin C=./libtemplate_plugin_c.so
 *     carafe conformance -d C --plugin C=./libtemplate_plugin_c.so
 */
#define _POSIX_C_SOURCE 200809L
#include "carafe.h"
#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

CARAFE_LIBRARY

static CarafeStatus no_memory(void) { return carafe_fail(carafe, CARAFE_IO, "out of memory"); }

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

/* Kernels of extensions. The engine says them anew whenever an extension comes; calls that run and models that were compiled may
 * use the old tables until they end. */

typedef struct {
    const CarafeKernel *first;
    size_t n;
} Kernels;

typedef struct {
    pthread_mutex_t lock;
    Kernels kernels;
} Device;

static CarafeStatus device_set_kernels(void *device, const CarafeKernel *kernels, size_t n) {
    Device *d = device;
    pthread_mutex_lock(&d->lock);
    d->kernels.first = kernels;
    d->kernels.n = n;
    pthread_mutex_unlock(&d->lock);
    return CARAFE_OK;
}

static Kernels kernels_of(void *device) {
    Device *d = device;
    pthread_mutex_lock(&d->lock);
    Kernels all = d->kernels;
    pthread_mutex_unlock(&d->lock);
    return all;
}

static int is_same_word(CarafeStr a, const char *b) {
    if (a.len != strlen(b)) return 0;
    for (size_t i = 0; i < a.len; i++)
        if (tolower((unsigned char)a.data[i]) != tolower((unsigned char)b[i])) return 0;
    return 1;
}

/* The kernel with this number, when it is for the node. A newer engine has longer tables. */
static const CarafeKernel *kernel_for(Kernels all, size_t i, const CarafeNodeInfo *info) {
    const CarafeKernel *k = (const void *)((const char *)all.first + i * all.first->size);
    return is_same_word(info->op_type, k->op) && (!k->opset || carafe_str_is(info->opset, k->opset)) ? k : NULL;
}

static const char *kernel_name(const CarafeKernel *k) { return k->name ? k->name : "extension"; }

/* A node that kernels of extensions are for, and the one that runs it. All requests share it. */
typedef struct {
    pthread_mutex_t lock; /* asking, and a kernel that runs one inference at a time */
    CarafeNodeInfo info;
    Kernels kernels;
    CarafeSite site;
    CarafeFact *inputs, *outputs;
    CarafeDim *dims;  /* of inputs whose shapes came with an inference */
    char *is_constant; /* for each input */
    int is_known;      /* all types and shapes: the answer is final */
    int evaluates;     /* the engine can run the node when no kernel takes it */
    const CarafeKernel *kernel; /* NULL when none takes the node */
    void *made;
    int may_yet;       /* shapes are open, and a kernel that declines them will be asked again */
    char trouble[400]; /* why the first kernel that should take it did not */
} Seat;

/* What a kernel offers is looked at while it is offered. */
typedef struct {
    const Seat *seat;
    size_t seen, chosen;
    int found;
    const char *why;
} Offers;

/* This device has plain memory, and does not change types for a kernel. */
static const char *why_not(const CarafeLayout *l, const CarafeFact *f, int is_constant) {
    if (l->rank) return "it wants another layout than the plain one";
    if (l->element_type != f->element_type && (f->element_type != CARAFE_DYNAMIC || l->element_type == CARAFE_DYNAMIC))
        return "it wants another element type";
    return l->constant && !is_constant ? "it wants a constant" : NULL;
}

static CarafeStatus take_offer(void *sink, const CarafeConfig *c) {
    Offers *o = sink;
    const CarafeSite *site = &o->seat->site;
    const char *why = NULL;
    if (c->n_inputs != site->n_inputs || c->n_outputs != site->n_outputs) why = "it offers another number of ports";
    for (size_t i = 0; i < c->n_inputs && !why; i++)
        why = why_not(&c->inputs[i], &site->inputs[i], o->seat->is_constant[i]);
    for (size_t i = 0; i < c->n_outputs && !why; i++) why = why_not(&c->outputs[i], &site->outputs[i], 0);
    if (!why && !o->found) {
        o->found = 1;
        o->chosen = o->seen;
    }
    if (!o->why) o->why = why;
    o->seen++;
    return CARAFE_OK;
}

static void seat_trouble(Seat *s, const CarafeKernel *k, const char *what, CarafeStr why) {
    if (s->trouble[0]) return;
    snprintf(s->trouble, sizeof s->trouble, "kernel `%.80s` %s%.*s", kernel_name(k), what,
             (int)(why.len < 280 ? why.len : 280), why.data);
}

static void seat_leave(Seat *s) {
    if (s->kernel && s->kernel->release) s->kernel->release(s->made);
    s->kernel = NULL;
    s->made = NULL;
    s->trouble[0] = 0;
}

/* Asks the kernels for the types and shapes of the site, the one registered last first. */
static void seat_ask(Seat *s) {
    const CarafeKernel *declined = NULL;
    CarafeStr none = {"", 0};
    seat_leave(s);
    for (size_t i = s->kernels.n; i > 0 && !s->kernel; i--) {
        const CarafeKernel *k = kernel_for(s->kernels, i - 1, &s->info);
        if (!k) continue;
        CarafeStr why = none;
        Offers offers = {.seat = s};
        if (k->configs(k->user, &s->site, take_offer, &offers) != CARAFE_OK) {
            carafe->last_error(&why);
            seat_trouble(s, k, "cannot run it: `configs` failed: ", why);
        } else if (!offers.seen) {
            declined = declined ? declined : k;
        } else if (!offers.found) {
            seat_trouble(s, k, "cannot run it: ", carafe_str(offers.why));
        } else if (k->init(k->user, &s->site, offers.chosen, &s->made) != CARAFE_OK) {
            carafe->last_error(&why);
            seat_trouble(s, k, "cannot run it: `init` failed: ", why);
        } else {
            s->kernel = k;
        }
    }
    s->may_yet = declined && !s->is_known;
    if (declined && !s->kernel) seat_trouble(s, declined, "declines it", none);
}

static void seat_free(Seat *s) {
    if (!s) return;
    seat_leave(s);
    pthread_mutex_destroy(&s->lock);
    free(s->inputs);
    free(s->outputs);
    free(s->dims);
    free(s->is_constant);
    free(s);
}

static int is_known(const CarafeFact *f) {
    for (int32_t i = 0; i < f->rank; i++)
        if (f->dims[i].min != f->dims[i].max) return 0;
    return f->rank >= 0 && f->element_type != CARAFE_DYNAMIC;
}

/* The seat of a node, or none when no kernel is for it. What the graph hands out is kept as long as the seat. */
static CarafeStatus seat_make(CarafeGraph *g, uint32_t id, Kernels kernels, int evaluates, Seat **out) {
    CarafeNodeInfo info;
    CarafeStatus status = g->fns->node(g, id, &info);
    size_t any = 0;
    *out = NULL;
    while (status == CARAFE_OK && any < kernels.n && !kernel_for(kernels, any, &info)) any++;
    if (status != CARAFE_OK || any == kernels.n) return status;
    Seat *s = calloc(1, sizeof *s);
    if (!s) return no_memory();
    pthread_mutex_init(&s->lock, NULL);
    s->info = info;
    s->kernels = kernels;
    s->evaluates = evaluates;
    s->inputs = calloc(info.n_inputs + 1, sizeof *s->inputs);
    s->outputs = calloc(info.n_outputs + 1, sizeof *s->outputs);
    s->is_constant = calloc(info.n_inputs + 1, 1);
    if (!s->inputs || !s->outputs || !s->is_constant) status = no_memory();
    s->is_known = 1;
    for (size_t i = 0; i < info.n_inputs && status == CARAFE_OK; i++) {
        CarafeValue v;
        CarafeTensor constant;
        status = g->fns->input(g, id, i, &v);
        if (status == CARAFE_OK) status = g->fns->fact(g, v, &s->inputs[i]);
        if (status == CARAFE_OK) s->is_constant[i] = g->fns->constant_of(g, v, &constant) == CARAFE_OK;
        if (status == CARAFE_OK) s->is_known &= is_known(&s->inputs[i]);
    }
    for (size_t i = 0; i < info.n_outputs && status == CARAFE_OK; i++) {
        CarafeValue v = {id, (uint32_t)i};
        status = g->fns->fact(g, v, &s->outputs[i]);
        if (status == CARAFE_OK) s->is_known &= is_known(&s->outputs[i]);
    }
    s->site = (CarafeSite){.size = sizeof s->site, .name = info.name, .op_type = info.op_type, .opset = info.opset,
                           .inputs = s->inputs, .n_inputs = info.n_inputs, .outputs = s->outputs,
                           .n_outputs = info.n_outputs};
    if (status == CARAFE_OK) status = g->fns->attrs(g, id, &s->site.attrs);
    if (status != CARAFE_OK) {
        seat_free(s);
        return status;
    }
    seat_ask(s);
    *out = s;
    return CARAFE_OK;
}

/* Whether a kernel runs the node, or may when its shapes are known. */
static int seat_serves(const Seat *s) { return s && (s->kernel || s->may_yet); }

/* Asks again when an inference has other types and shapes than the last one. Outputs stay as far as they are known. */
static CarafeStatus seat_settle(Seat *s, const CarafeTensor *in) {
    int same = s->is_known;
    size_t n = 0;
    if (!same && s->dims) {
        same = 1;
        for (size_t i = 0; i < s->info.n_inputs && same; i++) {
            same = s->inputs[i].element_type == in[i].element_type && (size_t)s->inputs[i].rank == in[i].rank;
            for (size_t k = 0; same && k < in[i].rank; k++) same = (size_t)s->inputs[i].dims[k].min == in[i].shape[k];
        }
    }
    if (same) return CARAFE_OK;
    for (size_t i = 0; i < s->info.n_inputs; i++) n += in[i].rank;
    CarafeDim *dims = calloc(n + 1, sizeof *dims), *next = dims;
    if (!dims) return no_memory();
    for (size_t i = 0; i < s->info.n_inputs; i++) {
        s->inputs[i].element_type = in[i].element_type;
        s->inputs[i].rank = (int32_t)in[i].rank;
        s->inputs[i].dims = next;
        for (size_t k = 0; k < in[i].rank; k++, next++) next->min = next->max = (int64_t)in[i].shape[k];
    }
    free(s->dims);
    s->dims = dims;
    seat_ask(s);
    return CARAFE_OK;
}

/* The device takes what the engine can evaluate, and what a kernel runs. */
static CarafeStatus device_query(void *device, CarafeGraph *g, CarafeProperties p, CarafeAnswer answer, void *sink) {
    Kernels kernels = kernels_of(device);
    Settings settings;
    const uint32_t *ids;
    size_t n = 0;
    CarafeStatus status = settings_of(p, &settings);
    if (status == CARAFE_OK) status = g->fns->nodes(g, &ids, &n);
    for (size_t i = 0; i < n && status == CARAFE_OK; i++) {
        CarafeStr reason = carafe_str("");
        char text[600];
        Seat *seat = NULL;
        status = g->fns->can_evaluate(g, ids[i]);
        if (status == CARAFE_UNSUPPORTED) {
            carafe->last_error(&reason);
            /* what is asked next has texts of its own */
            snprintf(text, sizeof text, "%.*s", (int)(reason.len < 180 ? reason.len : 180), reason.data);
            status = seat_make(g, ids[i], kernels, 0, &seat);
            if (seat) snprintf(text + strlen(text), sizeof text - strlen(text), "; %s", seat->trouble);
            reason = carafe_str(seat_serves(seat) ? "" : text);
        }
        if (status == CARAFE_OK) status = answer(sink, ids[i], reason);
        seat_free(seat);
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
    Seat *seat;    /* when kernels of extensions are for it */
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

/* What runs a node, or ran it last where that depends on shapes; the text lives as long as the model. */
static const char *kernel_of(const Node *node) {
    static const char *const names[] = {"none", "c_relu", "c_add", "reference"};
    const char *name = names[node->kind];
    if (!node->seat) return name;
    pthread_mutex_lock(&node->seat->lock);
    if (node->seat->kernel) name = kernel_name(node->seat->kernel);
    pthread_mutex_unlock(&node->seat->lock);
    return name;
}

static void compiled_release(void *instance) {
    Compiled *c = instance;
    for (size_t i = 0; c->nodes && i < c->n; i++) seat_free(c->nodes[i].seat);
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

/* Neither an evaluation nor a kernel runs the node. */
static CarafeStatus unserved(CarafeGraph *g, const Node *node) {
    CarafeStr why = {"", 0};
    g->fns->can_evaluate(g, node->id);
    carafe->last_error(&why);
    char text[800];
    snprintf(text, sizeof text, "node `%.*s`: %.*s%s%s", (int)(node->info.name.len < 160 ? node->info.name.len : 160),
             node->info.name.data, (int)(why.len < 200 ? why.len : 200), why.data, node->seat ? "; " : "",
             node->seat ? node->seat->trouble : "");
    return carafe_fail(carafe, CARAFE_UNSUPPORTED, text);
}

/* Nodes in the order they run, with the numbers of their slots. */
static CarafeStatus plan_nodes(Compiled *c, Kernels kernels) {
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
            CarafeStatus can = g->fns->can_evaluate(g, node->id);
            if (can != CARAFE_UNSUPPORTED) status = can;
            if (status == CARAFE_OK) status = seat_make(g, node->id, kernels, can == CARAFE_OK, &node->seat);
            if (status == CARAFE_OK && can != CARAFE_OK && !seat_serves(node->seat)) status = unserved(g, node);
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

/* The context that the engine evaluates a node with, and a kernel runs in: it takes the outputs, and hands out and takes
 * variables. A kernel also asks for the inputs, and for what is known of the outputs. */

typedef struct {
    CarafeEval base; /* first, so that a pointer to it is one to the whole */
    Request *r;
    const Node *node;
    Slot *outputs;
} Sink;

static CarafeStatus no_port(void) { return carafe_fail(carafe, CARAFE_USAGE, "the node has no such input or output"); }

static size_t sink_n_inputs(CarafeEval *cx) { return ((Sink *)cx)->node->info.n_inputs; }
static size_t sink_n_outputs(CarafeEval *cx) { return ((Sink *)cx)->node->info.n_outputs; }

static CarafeStatus sink_input(CarafeEval *cx, size_t input, CarafeTensor *t) {
    if (input >= sink_n_inputs(cx)) return no_port();
    *t = ((Sink *)cx)->r->in[input];
    return CARAFE_OK;
}

static CarafeStatus sink_output_fact(CarafeEval *cx, size_t output, CarafeFact *f) {
    if (output >= sink_n_outputs(cx)) return no_port();
    *f = ((Sink *)cx)->node->seat->outputs[output];
    return CARAFE_OK;
}

static size_t bytes_of(uint32_t type) {
    switch (type) {
    case CARAFE_BOOLEAN: case CARAFE_I8: case CARAFE_U8: case CARAFE_F8E4M3: case CARAFE_F8E5M2: case CARAFE_F8E8M0:
    case CARAFE_F8E4M3FNUZ: case CARAFE_F8E5M2FNUZ: return 1;
    case CARAFE_BF16: case CARAFE_F16: case CARAFE_I16: case CARAFE_U16: return 2;
    case CARAFE_F32: case CARAFE_I32: case CARAFE_U32: return 4;
    case CARAFE_F64: case CARAFE_I64: case CARAFE_U64: return 8;
    default: return 0;
    }
}

static CarafeStatus sink_output(CarafeEval *cx, size_t output, uint32_t type, uint32_t rank, const size_t *shape, void **data) {
    if (output >= sink_n_outputs(cx)) return no_port();
    CarafeTensor t = {.element_type = type, .rank = rank, .shape = shape};
    t.bytes = carafe_elements(&t) * bytes_of(type);
    if (!bytes_of(type)) return carafe_fail(carafe, CARAFE_USAGE, "elements of such a type are set with set_output");
    t.data = *data = calloc(t.bytes ? t.bytes : 1, 1);
    if (!*data) return no_memory();
    CarafeStatus status = slot_set(&((Sink *)cx)->outputs[output], &t, *data, free);
    if (status != CARAFE_OK) free(*data);
    return status;
}

static CarafeStatus sink_forward(CarafeEval *cx, size_t output, size_t input) {
    if (output >= sink_n_outputs(cx) || input >= sink_n_inputs(cx)) return no_port();
    return slot_copy(&((Sink *)cx)->outputs[output], &((Sink *)cx)->r->in[input]);
}

static CarafeStatus sink_keep_input(CarafeEval *cx, size_t input, void **owner) {
    (void)cx, (void)input, (void)owner;
    return carafe_fail(carafe, CARAFE_UNSUPPORTED, "this device does not keep inputs");
}

static CarafeStatus sink_name(CarafeEval *cx, CarafeStr *name) {
    *name = ((Sink *)cx)->node->info.name;
    return CARAFE_OK;
}

static CarafeStatus sink_set(CarafeEval *cx, size_t output, const CarafeTensor *t) {
    if (output >= sink_n_outputs(cx)) return no_port();
    return slot_copy(&((Sink *)cx)->outputs[output], t);
}

static CarafeStatus sink_give(CarafeEval *cx, size_t output, const CarafeTensor *t, void *owner, CarafeRelease release) {
    if (output >= sink_n_outputs(cx)) return no_port();
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
    .n_inputs = sink_n_inputs,
    .input = sink_input,
    .n_outputs = sink_n_outputs,
    .output_fact = sink_output_fact,
    .output = sink_output,
    .set_output = sink_set,
    .give_output = sink_give,
    .forward = sink_forward,
    .keep_input = sink_keep_input,
    .name = sink_name,
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

/* Whether what a kernel gave is what the model says of the output. */
static int is_promised(const CarafeTensor *t, const CarafeFact *f) {
    if (f->element_type != CARAFE_DYNAMIC && t->element_type != f->element_type) return 0;
    if (f->rank >= 0 && t->rank != (uint32_t)f->rank) return 0;
    for (int32_t i = 0; i < f->rank; i++)
        if ((int64_t)t->shape[i] < f->dims[i].min || (f->dims[i].max >= 0 && (int64_t)t->shape[i] > f->dims[i].max)) return 0;
    return 1;
}

/* The threads of an inference: this device has one. */
static CarafeStatus run_parts(const CarafeKernelIo *io, size_t parts, CarafePart body, void *user) {
    (void)io;
    CarafeStatus status = CARAFE_OK;
    for (size_t i = 0; i < parts && status == CARAFE_OK; i++) status = body(user, i, NULL, 0);
    return status;
}

/* Whether a kernel can run in memory that is made before, on all requests at once: where all shapes are known. An engine before
 * ABI 1.3 has shorter tables. */
static int runs_in_memory(const Seat *s) {
    for (size_t i = 0; i < s->info.n_outputs; i++)
        if (!bytes_of(s->outputs[i].element_type)) return 0;
    return s->is_known && s->kernel->size > offsetof(CarafeKernel, run) && s->kernel->run;
}

static CarafeStatus run_in_memory(const Seat *s, Sink *sink) {
    size_t n = s->info.n_outputs;
    CarafeOutput *outputs = memory(n * sizeof *outputs);
    CarafeStatus status = outputs ? CARAFE_OK : no_memory();
    for (size_t i = 0; i < n && status == CARAFE_OK; i++) {
        const CarafeFact *f = &s->outputs[i];
        size_t *shape = memory((size_t)f->rank * sizeof *shape);
        if (!shape) status = no_memory();
        for (int32_t k = 0; shape && k < f->rank; k++) shape[k] = (size_t)f->dims[k].min;
        void *data = NULL;
        if (shape) status = sink_output(&sink->base, i, f->element_type, (uint32_t)f->rank, shape, &data);
        const CarafeTensor *made = &sink->outputs[i].tensor; /* with a shape of its own */
        outputs[i] = (CarafeOutput){f->element_type, (uint32_t)f->rank, made->shape, data, made->bytes};
        free(shape);
    }
    CarafeKernelIo io = {.size = sizeof io, .inputs = sink->r->in, .n_inputs = s->info.n_inputs, .outputs = outputs,
                         .n_outputs = n, .threads = 1, .each = run_parts};
    if (status == CARAFE_OK) status = s->kernel->run(s->made, &io);
    free(outputs);
    return status;
}

/* Runs the kernel that takes the node, if one does. */
static CarafeStatus run_kernel(Seat *s, Sink *sink, int *done) {
    char text[200];
    pthread_mutex_lock(&s->lock);
    CarafeStatus status = seat_settle(s, sink->r->in);
    *done = status == CARAFE_OK && s->kernel;
    if (*done) {
        for (size_t i = 0; i < s->info.n_outputs; i++) slot_clear(&sink->outputs[i]);
        if (runs_in_memory(s)) { /* the answer is final: nobody changes the seat any more */
            pthread_mutex_unlock(&s->lock);
            return run_in_memory(s, sink);
        }
        status = s->kernel->execute(s->made, &sink->base);
        for (size_t i = 0; i < s->info.n_outputs && status == CARAFE_OK; i++)
            if (!sink->outputs[i].shape || !is_promised(&sink->outputs[i].tensor, &s->outputs[i])) {
                snprintf(text, sizeof text, "kernel `%.80s` gave output %zu not at all, or in another type or shape than the model has",
                         kernel_name(s->kernel), i);
                status = carafe_fail(carafe, CARAFE_INVALID, text);
            }
    } else if (status == CARAFE_OK && !s->evaluates) {
        status = carafe_fail(carafe, CARAFE_UNSUPPORTED, s->trouble); /* with these shapes nothing runs it */
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

static CarafeStatus run_node(Request *r, const Node *node) {
    Slot *out = &r->slots[node->writes];
    for (size_t i = 0; i < node->info.n_inputs; i++) r->in[i] = r->slots[r->c->reads[node->reads + i]].tensor;
    if (node->kind == STILL) /* inputs and constants have their slots filled */
        return carafe_str_is(node->info.op_type, "Result") ? slot_set(out, &r->in[0], NULL, NULL) : CARAFE_OK;
    int done = 0;
    Sink sink = {{&sink_fns}, r, node, out};
    CarafeStatus status = CARAFE_OK;
    if (node->seat) status = run_kernel(node->seat, &sink, &done);
    if (status == CARAFE_OK && !done && node->kind != OTHER) status = run_own(node, r->in, out, &done);
    if (status != CARAFE_OK || done) return status;
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
        if (status != CARAFE_OK || !node->seat) continue;
        pthread_mutex_lock(&node->seat->lock);
        if (node->seat->trouble[0])
            status = copy->fns->set_info(copy, node->id, carafe_str("kernelTrouble"), carafe_str(node->seat->trouble));
        pthread_mutex_unlock(&node->seat->lock);
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
static CarafeStatus compile(void *device, CarafeGraph *g, CarafeProperties p, CarafeCompiled *out) {
    Compiled *c = calloc(1, sizeof *c);
    if (!c) {
        g->fns->release(g);
        return no_memory();
    }
    c->g = g; /* what it hands out lives as long as it */
    CarafeStatus status = settings_of(p, &c->settings);
    if (status == CARAFE_OK) status = g->fns->model_name(g, &c->name);
    if (status == CARAFE_OK) status = plan_nodes(c, kernels_of(device));
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
    CarafeGraph *kept = g->fns->retain(g);
    return kept ? compile(device, kept, p, out) : no_memory();
}

static CarafeStatus device_import(void *device, CarafeGraph *ops, const void *data, size_t bytes, CarafeProperties p,
                                  CarafeCompiled *out) {
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
    return status == CARAFE_OK ? compile(device, g, p, out) : status;
}

static void device_release(void *device) {
    Device *d = device;
    pthread_mutex_destroy(&d->lock);
    free(d);
}

CARAFE_C CARAFE_EXPORT CarafeStatus CreatePluginEngine(const CarafeHost *host, CarafeDevice *device) {
    if (!host || !device) return CARAFE_USAGE;
    carafe = host;
    if (host->minor < 2) return carafe_fail(carafe, CARAFE_UNSUPPORTED, "this device needs an engine with ABI 1.2");
    Device *d = calloc(1, sizeof *d);
    if (!d) return no_memory();
    pthread_mutex_init(&d->lock, NULL);
    device->instance = d;
    device->name = "C";
    device->version = "1.0";
    device->description = "An example of a device in C";
    device->properties = properties;
    device->n_properties = N_PROPERTIES;
    device->metric = device_metric;
    device->query = device_query;
    device->compile = device_compile;
    device->import = device_import;
    device->release = device_release;
    if (device->size > offsetof(CarafeDevice, set_kernels)) device->set_kernels = device_set_kernels;
    return CARAFE_OK;
}
