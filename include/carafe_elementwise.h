/* Operations in C that work on each element by itself: a function of one number, its attributes, and where it belongs. From them
 * come inference, evaluation for f16, bf16, f32 and f64, and a kernel for CPU that runs on all threads, where its input lies.
 *
 *     static float soft_swish(const double *beta, float x) { return x / (1 + expf(-(float)*beta * x)); }
 *     static const CarafeElementwise SOFT_SWISH = {"SoftSwish", "acme", soft_swish, {{"beta", 1.0}}};
 *     CARAFE_ELEMENTWISE(&SOFT_SWISH)
 *
 * CARAFE_ELEMENTWISE stands once in a library and lists its operations; a library with more than that calls
 * carafe_add_elementwise in its own create_extensions. In C++ `Registrar::elementwise` of carafe.hpp does the same.
 * Apache-2.0. */
#ifndef CARAFE_ELEMENTWISE_H
#define CARAFE_ELEMENTWISE_H

#include "carafe.h"
#include <stdlib.h>

/* Attributes of one operation, at most. */
#define CARAFE_MAX_NUMBERS 8

/* An attribute: a number with the value it has when a node does not give it. */
typedef struct CarafeNumber {
    const char *name;
    double otherwise;
} CarafeNumber;

typedef struct CarafeElementwise {
    const char *name;
    const char *opset;
    /* `numbers` are the attributes, in their order. */
    float (*apply)(const double *numbers, float x);
    /* Up to the first without a name. */
    CarafeNumber attrs[CARAFE_MAX_NUMBERS];
} CarafeElementwise;

/* A node: its operation with its attributes. */
typedef struct CarafeElementwiseNode {
    const CarafeElementwise *op;
    double numbers[CARAFE_MAX_NUMBERS];
} CarafeElementwiseNode;

static const CarafeHost *carafe_elementwise_host;

static inline float carafe_float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline uint32_t carafe_bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline float carafe_from_bf16(uint16_t h) { return carafe_float_of_bits((uint32_t)h << 16); }
static inline uint16_t carafe_to_bf16(float value) {
    uint32_t x = carafe_bits_of_float(value);
    if ((x & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((x >> 16) | 0x40u); /* stays NaN */
    return (uint16_t)((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}
static inline float carafe_from_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 0x1fu, fraction = h & 0x3ffu;
    if (exponent == 0x1fu) return carafe_float_of_bits(sign | 0x7f800000u | (fraction << 13));
    if (exponent) return carafe_float_of_bits(sign | ((exponent + 112u) << 23) | (fraction << 13));
    /* Subnormal: the fraction counts in steps of 2^-24. */
    return carafe_float_of_bits(sign | carafe_bits_of_float((float)fraction * 5.9604644775390625e-8f));
}
/* Rounded to nearest, ties to even. */
static inline uint16_t carafe_to_f16(float value) {
    uint32_t x = carafe_bits_of_float(value), sign = (x >> 16) & 0x8000u, rest = x & 0x7fffffffu;
    if (rest > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | ((rest >> 13) & 0x3ffu));
    if (rest >= 0x47800000u) return (uint16_t)(sign | 0x7c00u);
    if (rest >= 0x38800000u) return (uint16_t)(sign | ((rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1u)) >> 13));
    uint32_t shift = 126u - (rest >> 23);
    if (shift > 24u) return (uint16_t)sign;
    uint32_t fraction = (rest & 0x7fffffu) | 0x800000u, kept = fraction >> shift;
    uint32_t lost = fraction & ((1u << shift) - 1u), half = 1u << (shift - 1u);
    return (uint16_t)(sign | (kept + (lost > half || (lost == half && (kept & 1u)))));
}

/* One loop over elements, for as many threads as there are. */
typedef struct CarafeElementwiseJob {
    const CarafeElementwiseNode *node;
    uint32_t type;
    const void *from;
    void *to;
    size_t n, part;
} CarafeElementwiseJob;

static inline void carafe_elementwise_loop(void *user, size_t begin, size_t end) {
    const CarafeElementwiseJob *job = (const CarafeElementwiseJob *)user;
    float (*apply)(const double *, float) = job->node->op->apply;
    const double *numbers = job->node->numbers;
    const float *f32 = (const float *)job->from;
    const double *f64 = (const double *)job->from;
    const uint16_t *f16 = (const uint16_t *)job->from;
    size_t i;
    switch (job->type) {
    case CARAFE_F32:
        for (i = begin; i < end; i++) ((float *)job->to)[i] = apply(numbers, f32[i]);
        break;
    case CARAFE_F64:
        for (i = begin; i < end; i++) ((double *)job->to)[i] = apply(numbers, (float)f64[i]);
        break;
    case CARAFE_F16:
        for (i = begin; i < end; i++) ((uint16_t *)job->to)[i] = carafe_to_f16(apply(numbers, carafe_from_f16(f16[i])));
        break;
    default:
        for (i = begin; i < end; i++) ((uint16_t *)job->to)[i] = carafe_to_bf16(apply(numbers, carafe_from_bf16(f16[i])));
        break;
    }
}

static inline CarafeStatus carafe_elementwise_create(void *user, CarafeAttrs attrs, void **instance) {
    const CarafeElementwise *op = (const CarafeElementwise *)user;
    CarafeElementwiseNode *node = (CarafeElementwiseNode *)malloc(sizeof *node);
    if (!node) return carafe_fail(carafe_elementwise_host, CARAFE_IO, "out of memory");
    node->op = op;
    for (size_t i = 0; i < CARAFE_MAX_NUMBERS && op->attrs[i].name; i++) {
        const CarafeAttr *a = carafe_attr(attrs, op->attrs[i].name);
        node->numbers[i] = a ? (a->kind == CARAFE_ATTR_INT ? (double)a->i : a->f) : op->attrs[i].otherwise;
    }
    *instance = node;
    return CARAFE_OK;
}

static inline CarafeStatus carafe_elementwise_infer(const void *instance, CarafeInfer *cx) {
    CarafeFact x;
    CarafeStatus status = cx->fns->input(cx, 0, &x);
    (void)instance;
    if (status != CARAFE_OK) return status;
    switch (x.element_type) {
    case CARAFE_DYNAMIC: case CARAFE_F16: case CARAFE_BF16: case CARAFE_F32: case CARAFE_F64:
        return cx->fns->set_output(cx, 0, &x);
    default:
        return carafe_fail(carafe_elementwise_host, CARAFE_INVALID, "input 0 must be f16, bf16, f32 or f64");
    }
}

static inline CarafeStatus carafe_elementwise_eval(const void *instance, CarafeEval *cx) {
    CarafeTensor x;
    void *y = NULL;
    CarafeStatus status = cx->fns->input(cx, 0, &x);
    if (status == CARAFE_OK) status = cx->fns->output(cx, 0, x.element_type, x.rank, x.shape, &y);
    if (status != CARAFE_OK) return status;
    CarafeElementwiseJob job = {(const CarafeElementwiseNode *)instance, x.element_type, x.data, y, carafe_elements(&x), 0};
    carafe_elementwise_host->parallel_for(job.n, carafe_elementwise_loop, &job);
    return CARAFE_OK;
}

static inline CarafeStatus carafe_elementwise_configs(void *user, const CarafeSite *site, CarafeConfigSink offer, void *sink) {
    CarafeLayout in = carafe_layout_plain(CARAFE_F32), out = in;
    CarafeConfig config = {&in, 1, &out, 1};
    (void)user;
    out.in_place = 0;
    return site->inputs[0].element_type == CARAFE_F32 ? offer(sink, &config) : CARAFE_OK;
}

static inline CarafeStatus carafe_elementwise_init(void *user, const CarafeSite *site, size_t config, void **kernel) {
    (void)config;
    return carafe_elementwise_create(user, site->attrs, kernel);
}

static inline CarafeStatus carafe_elementwise_part(void *user, size_t part, void *scratch, size_t scratch_bytes) {
    const CarafeElementwiseJob *job = (const CarafeElementwiseJob *)user;
    size_t begin = part * job->part, end = begin + job->part;
    (void)scratch, (void)scratch_bytes;
    carafe_elementwise_loop(user, begin, end < job->n ? end : job->n);
    return CARAFE_OK;
}

static inline CarafeStatus carafe_elementwise_run(const void *kernel, const CarafeKernelIo *io) {
    const CarafeTensor *x = &io->inputs[0];
    CarafeElementwiseJob job = {(const CarafeElementwiseNode *)kernel, CARAFE_F32, x->data, io->outputs[0].data,
                                carafe_elements(x), 0};
    job.part = job.n / (io->threads ? io->threads : 1) + 1;
    if (job.part < 4096) job.part = 4096; /* fewer are not worth a thread */
    return io->each(io, (job.n + job.part - 1) / job.part, carafe_elementwise_part, &job);
}

static inline CarafeStatus carafe_elementwise_execute(void *kernel, CarafeEval *cx) {
    return carafe_elementwise_eval(kernel, cx);
}

/* Registers an operation and its kernel. `op` lives as long as the library. */
static inline CarafeStatus carafe_add_elementwise(const CarafeHost *host, CarafeRegistrar *r, const CarafeElementwise *op) {
    CarafeAttr defaults[CARAFE_MAX_NUMBERS];
    CarafeAttrInfo infos[CARAFE_MAX_NUMBERS];
    CarafePort x = {"data", 0, 0}, y = {"output", 0, 0};
    CarafeOp t;
    CarafeKernel k;
    size_t n = 0;
    carafe_elementwise_host = host;
    for (; n < CARAFE_MAX_NUMBERS && op->attrs[n].name; n++) {
        CarafeAttrInfo info = {op->attrs[n].name, CARAFE_ATTR_FLOAT, 0, &defaults[n], ""};
        defaults[n] = carafe_attr_float(op->attrs[n].name, op->attrs[n].otherwise);
        infos[n] = info;
    }
    memset(&t, 0, sizeof t);
    t.size = sizeof t;
    t.abi = CARAFE_ABI_MAJOR;
    t.flags = CARAFE_OP_ELEMENTWISE | CARAFE_OP_KEEPS_SHAPE;
    t.name = op->name;
    t.opset = op->opset;
    t.inputs = &x;
    t.n_inputs = 1;
    t.outputs = &y;
    t.n_outputs = 1;
    t.attrs = infos;
    t.n_attrs = n;
    t.user = (void *)op;
    t.create = carafe_elementwise_create;
    t.infer = carafe_elementwise_infer;
    t.eval = carafe_elementwise_eval;
    t.release = free;
    CarafeStatus status = r->fns->add_op(r, &t);
    if (status != CARAFE_OK) return status;
    memset(&k, 0, sizeof k);
    k.size = sizeof k;
    k.abi = CARAFE_ABI_MAJOR;
    k.device = "CPU";
    k.op = op->name;
    k.opset = op->opset;
    k.name = "elementwise";
    k.user = (void *)op;
    k.configs = carafe_elementwise_configs;
    k.init = carafe_elementwise_init;
    k.execute = carafe_elementwise_execute;
    k.release = free;
    k.run = carafe_elementwise_run;
    return r->fns->add_kernel(r, &k);
}

/* A whole library of such operations. */
#define CARAFE_ELEMENTWISE(...)                                                                            \
    CARAFE_LIBRARY                                                                                         \
    CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {             \
        const CarafeElementwise *all[] = {__VA_ARGS__};                                                    \
        CarafeStatus status = CARAFE_OK;                                                                   \
        carafe = host;                                                                                     \
        for (size_t i = 0; status == CARAFE_OK && i < sizeof all / sizeof *all; i++)                       \
            status = carafe_add_elementwise(carafe, r, all[i]);                                            \
        return status;                                                                                     \
    }

#endif /* CARAFE_ELEMENTWISE_H */
