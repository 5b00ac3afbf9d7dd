/* An extension in C: an operation, a rule for ONNX, a mapping, a rewrite and a kernel. Build it with
 *     cc -shared -fPIC -I $CARAFE/include extension.c -o libtemplate_extension_c.so -lm
 * and use it with `carafe run model.onnx --extension ./libtemplate_extension_c.so`. */
#include "carafe.h"
#include <math.h>
#include <stdlib.h>

CARAFE_LIBRARY

/* SoftSwish: x * sigmoid(beta * x). */

typedef struct {
    double beta;
} SoftSwish;

static CarafeStatus soft_swish_create(void *user, CarafeAttrs attrs, void **instance) {
    (void)user;
    SoftSwish *op = malloc(sizeof *op);
    if (!op) return carafe_fail(carafe, CARAFE_IO, "out of memory");
    const CarafeAttr *beta = carafe_attr(attrs, "beta");
    op->beta = beta ? beta->f : 1.0;
    *instance = op;
    return CARAFE_OK;
}

static CarafeStatus soft_swish_infer(const void *instance, CarafeInfer *cx) {
    (void)instance;
    CarafeFact x;
    CarafeStatus status = cx->fns->input(cx, 0, &x);
    if (status != CARAFE_OK) return status;
    if (x.element_type != CARAFE_F32 && x.element_type != CARAFE_DYNAMIC)
        return carafe_fail(carafe, CARAFE_INVALID, "input 0 must be f32");
    return cx->fns->set_output(cx, 0, &x);
}

typedef struct {
    const float *x;
    float *y;
    float beta;
    size_t n, part; /* of the kernel */
} SoftSwishLoop;

static void soft_swish_part(void *user, size_t begin, size_t end) {
    SoftSwishLoop *loop = user;
    for (size_t i = begin; i < end; i++) loop->y[i] = loop->x[i] / (1.0f + expf(-loop->beta * loop->x[i]));
}

static CarafeStatus soft_swish_eval(const void *instance, CarafeEval *cx) {
    const SoftSwish *op = instance;
    CarafeTensor x;
    void *y;
    CarafeStatus status = cx->fns->input(cx, 0, &x);
    if (status == CARAFE_OK) status = cx->fns->output(cx, 0, x.element_type, x.rank, x.shape, &y);
    if (status != CARAFE_OK) return status;
    SoftSwishLoop loop = {x.data, y, (float)op->beta, 0, 0};
    carafe->parallel_for(carafe_elements(&x), soft_swish_part, &loop);
    return CARAFE_OK;
}

static const CarafePort data_port[] = {{"data", 0, 0}};
static const CarafePort output_port[] = {{"output", 0, 0}};

/* KeepPositive: the elements above zero, in order. How many there are is known only when it runs. */

static CarafeStatus keep_positive_infer(const void *instance, CarafeInfer *cx) {
    (void)instance;
    CarafeFact x;
    CarafeStatus status = cx->fns->input(cx, 0, &x);
    if (status != CARAFE_OK) return status;
    int64_t most = 1;
    for (int32_t i = 0; i < x.rank; i++) most = most < 0 || x.dims[i].max < 0 ? -1 : most * x.dims[i].max;
    if (x.rank < 0) most = -1;
    CarafeDim any = {0, most, 0, 0};
    CarafeFact y = {x.element_type, 1, &any};
    return cx->fns->set_output(cx, 0, &y);
}

static CarafeStatus keep_positive_eval(const void *instance, CarafeEval *cx) {
    (void)instance;
    CarafeTensor x;
    CarafeStatus status = cx->fns->input(cx, 0, &x);
    if (status != CARAFE_OK) return status;
    if (x.element_type != CARAFE_F32) return carafe_fail(carafe, CARAFE_UNSUPPORTED, "KeepPositive works on f32");
    const float *from = x.data;
    size_t n = carafe_elements(&x), kept = 0;
    for (size_t i = 0; i < n; i++) kept += from[i] > 0;
    void *to;
    status = cx->fns->output(cx, 0, CARAFE_F32, 1, &kept, &to);
    if (status != CARAFE_OK) return status;
    float *y = to;
    for (size_t i = 0; i < n; i++)
        if (from[i] > 0) *y++ = from[i];
    return CARAFE_OK;
}

/* ONNX: `Cube` of domain `acme.ai` becomes Power(x, exponent). */

static CarafeStatus convert_cube(void *user, CarafeNode *cx) {
    (void)user;
    CarafeValue inputs[2], y;
    CarafeStatus status = cx->fns->input(cx, 0, &inputs[0]);
    if (status != CARAFE_OK) return status;
    CarafeAttr exponent;
    float value = 3.0f;
    status = cx->fns->attr(cx, carafe_str("exponent"), &exponent);
    if (status == CARAFE_OK) value = (float)exponent.f;
    CarafeTensor scalar = {CARAFE_F32, 0, NULL, &value, sizeof value};
    status = cx->fns->constant(cx, &scalar, &inputs[1]);
    CarafeAttrs none = {NULL, 0};
    if (status == CARAFE_OK) status = cx->fns->emit(cx, carafe_str("opset1::Power"), inputs, 2, none, &y);
    if (status == CARAFE_OK) status = cx->fns->set_output(cx, 0, y);
    return status;
}

/* A rewrite: Relu of Relu is one Relu. */

static CarafeStatus merge_relu_at(void *user, CarafeGraph *g, uint32_t id, uint32_t *outcome) {
    (void)user;
    CarafeValue x;
    CarafeNodeInfo inner;
    CarafeStatus status = g->fns->input(g, id, 0, &x);
    if (status == CARAFE_OK) status = g->fns->node(g, x.node, &inner);
    if (status != CARAFE_OK) return status;
    if (!carafe_str_is(inner.op_type, "ReLU")) return CARAFE_OK;
    CarafeValue outer = {id, 0};
    status = g->fns->replace(g, outer, x);
    if (status == CARAFE_OK) *outcome = CARAFE_DONE;
    return status;
}

/* A kernel for SoftSwish: plain memory, the output may use the memory of the input. */

static CarafeStatus kernel_configs(void *user, const CarafeSite *site, CarafeConfigSink offer, void *sink) {
    (void)user;
    if (site->inputs[0].element_type != CARAFE_F32) return CARAFE_OK;
    CarafeLayout in = {CARAFE_F32, 0, NULL, NULL, -1, 0};
    CarafeLayout out = {CARAFE_F32, 0, NULL, NULL, 0, 0};
    CarafeConfig config = {&in, 1, &out, 1};
    return offer(sink, &config);
}

static CarafeStatus kernel_init(void *user, const CarafeSite *site, size_t config, void **kernel) {
    (void)config;
    return soft_swish_create(user, site->attrs, kernel);
}

/* In the memory of the device; all its streams call this at once. */
static CarafeStatus kernel_part(void *user, size_t part, void *scratch, size_t scratch_bytes) {
    (void)scratch, (void)scratch_bytes;
    SoftSwishLoop *loop = user;
    size_t begin = part * loop->part, end = begin + loop->part;
    soft_swish_part(loop, begin, end < loop->n ? end : loop->n);
    return CARAFE_OK;
}

static CarafeStatus kernel_run(const void *kernel, const CarafeKernelIo *io) {
    SoftSwishLoop loop = {io->inputs[0].data, io->outputs[0].data, (float)((const SoftSwish *)kernel)->beta,
                          carafe_elements(&io->inputs[0]), 0};
    loop.part = loop.n / io->threads + 1;
    return io->each(io, (loop.n + loop.part - 1) / loop.part, kernel_part, &loop);
}

CARAFE_C CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    r->fns->describe(r, carafe_str("template_extension_c"), carafe_str("1.0"));

    CarafeAttr beta = carafe_attr_float("beta", 1.0);
    CarafeAttrInfo attrs[] = {{"beta", CARAFE_ATTR_FLOAT, 0, &beta, "Steepness of the sigmoid."}};
    CarafeOp swish = {0};
    swish.size = sizeof swish;
    swish.abi = CARAFE_ABI_MAJOR;
    swish.name = "SoftSwish";
    swish.opset = "acme";
    swish.doc = "x * sigmoid(beta * x)";
    swish.inputs = data_port;
    swish.n_inputs = 1;
    swish.outputs = output_port;
    swish.n_outputs = 1;
    swish.attrs = attrs;
    swish.n_attrs = 1;
    swish.create = soft_swish_create;
    swish.infer = soft_swish_infer;
    swish.eval = soft_swish_eval;
    swish.release = free;
    r->fns->add_op(r, &swish);

    CarafeOp keep = {0};
    keep.size = sizeof keep;
    keep.abi = CARAFE_ABI_MAJOR;
    keep.name = "KeepPositive";
    keep.opset = "acme";
    keep.inputs = data_port;
    keep.n_inputs = 1;
    keep.outputs = output_port;
    keep.n_outputs = 1;
    keep.infer = keep_positive_infer;
    keep.eval = keep_positive_eval;
    r->fns->add_op(r, &keep);

    CarafeRule cube = {0};
    cube.size = sizeof cube;
    cube.abi = CARAFE_ABI_MAJOR;
    cube.framework = "onnx";
    cube.domain = "acme.ai";
    cube.op_type = "Cube";
    cube.since = 1;
    cube.convert = convert_cube;
    r->fns->add_rule(r, &cube);

    CarafePair names[] = {{"beta", "steepness"}};
    CarafeMapping mapping = {0};
    mapping.size = sizeof mapping;
    mapping.abi = CARAFE_ABI_MAJOR;
    mapping.framework = "onnx";
    mapping.domain = "acme.ai";
    mapping.op_type = "Swish2";
    mapping.op = "acme::SoftSwish";
    mapping.attr_names = names;
    mapping.n_attr_names = 1;
    r->fns->add_mapping(r, &mapping);

    CarafePass merge = {0};
    merge.size = sizeof merge;
    merge.abi = CARAFE_ABI_MAJOR;
    merge.phase = CARAFE_PHASE_FRONT;
    merge.name = "merge_relu";
    merge.root = "ReLU";
    merge.at = merge_relu_at;
    r->fns->add_pass(r, &merge);

    CarafeKernel kernel = {0};
    kernel.size = sizeof kernel;
    kernel.abi = CARAFE_ABI_MAJOR;
    kernel.device = "CPU";
    kernel.op = "SoftSwish";
    kernel.opset = "acme";
    kernel.name = "soft_swish_c";
    kernel.configs = kernel_configs;
    kernel.init = kernel_init;
    kernel.run = kernel_run;
    kernel.release = free;
    r->fns->add_kernel(r, &kernel);
    return CARAFE_OK;
}
