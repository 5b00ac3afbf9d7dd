/* Rewrites of the graph as decoded: MyRelu is Relu, HardSigmoid and Mul are HardSwish, a leak of 0.5 is one of 0.25. */
#include "carafe.h"

CARAFE_LIBRARY

static CarafeStatus supersede(CarafeGraph *g, uint32_t id, const char *op, const CarafeValue *inputs, size_t n,
                              CarafeAttrs attrs, uint32_t *outcome) {
    CarafeNodeInfo node;
    uint32_t made;
    CarafeStatus status = g->fns->node(g, id, &node);
    if (status == CARAFE_OK) status = g->fns->add(g, node.name, carafe_str(op), inputs, n, attrs, &made);
    if (status != CARAFE_OK) return status;
    CarafeValue old_value = {id, 0}, new_value = {made, 0};
    status = g->fns->replace(g, old_value, new_value);
    if (status == CARAFE_OK) *outcome = CARAFE_DONE;
    return status;
}

static CarafeStatus rename_at(void *user, CarafeGraph *g, uint32_t id, uint32_t *outcome) {
    (void)user;
    CarafeValue x;
    CarafeAttrs attrs;
    CarafeStatus status = g->fns->input(g, id, 0, &x);
    if (status == CARAFE_OK) status = g->fns->attrs(g, id, &attrs);
    if (status != CARAFE_OK) return status;
    return supersede(g, id, "ai.onnx::Relu", &x, 1, attrs, outcome);
}

static CarafeStatus fuse_at(void *user, CarafeGraph *g, uint32_t id, uint32_t *outcome) {
    (void)user;
    CarafeValue x, gate;
    CarafeNodeInfo inner;
    CarafeStatus status = g->fns->input(g, id, 0, &x);
    if (status == CARAFE_OK) status = g->fns->input(g, id, 1, &gate);
    if (status == CARAFE_OK) status = g->fns->node(g, gate.node, &inner);
    if (status != CARAFE_OK) return status;
    if (!carafe_str_is(inner.op_type, "HardSigmoid")) return CARAFE_OK;
    CarafeAttrs none = {NULL, 0};
    return supersede(g, id, "HardSwish", &x, 1, none, outcome);
}

static CarafeStatus leak_at(void *user, CarafeGraph *g, uint32_t id, uint32_t *outcome) {
    (void)user;
    CarafeValue x;
    CarafeAttrs attrs;
    CarafeStatus status = g->fns->attrs(g, id, &attrs);
    if (status == CARAFE_OK) status = g->fns->input(g, id, 0, &x);
    if (status != CARAFE_OK) return status;
    const CarafeAttr *alpha = carafe_attr(attrs, "alpha");
    if (!alpha || alpha->f != 0.5) return CARAFE_OK;
    CarafeAttr less = carafe_attr_float("alpha", 0.25);
    CarafeAttrs changed = {&less, 1};
    return supersede(g, id, "LeakyRelu", &x, 1, changed, outcome);
}

static void add(CarafeRegistrar *r, const char *name, const char *root,
                CarafeStatus (*at)(void *, CarafeGraph *, uint32_t, uint32_t *)) {
    CarafePass pass = {0};
    pass.size = sizeof pass;
    pass.abi = CARAFE_ABI_MAJOR;
    pass.phase = CARAFE_PHASE_DECODED;
    pass.name = name;
    pass.root = root;
    pass.at = at;
    r->fns->add_pass(r, &pass);
}

CARAFE_C CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    r->fns->describe(r, carafe_str("decoded"), carafe_str("1.0"));
    add(r, "rename_my_relu", "MyRelu", rename_at);
    add(r, "fuse_hard_swish", "Mul", fuse_at);
    add(r, "leak_less", "LeakyRelu", leak_at);
    return CARAFE_OK;
}
