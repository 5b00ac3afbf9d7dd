/* Kernels in C for tests: one that works in blocks of eight channels and takes what follows, one that waits until another stream
 * is inside of it too. */
#include "carafe.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

CARAFE_LIBRARY

#define TRY(call)                                       \
    do {                                                \
        CarafeStatus try_status = (call);               \
        if (try_status != CARAFE_OK) return try_status; \
    } while (0)

enum { BLOCK = 8, WORKSPACE = 64, SCRATCH = 32 };

/* How much of the epilogue it takes: sums and ReLUs of what it has. */
static size_t taken_of(const CarafeSite *site) {
    size_t n = 0;
    for (; n < site->n_epilogue; n++) {
        const CarafeEpilogueOp *op = &site->epilogue[n];
        int64_t before = -1 - (int64_t)n;
        int sum = op->function == CARAFE_ADD && op->operands[0] == before && op->operands[1] >= 0;
        if (!sum && op->function != CARAFE_RELU) break;
    }
    return n;
}

static CarafeStatus abs_configs(void *user, const CarafeSite *site, CarafeConfigSink offer, void *sink) {
    (void)user;
    const CarafeFact *x = &site->inputs[0];
    if (x->element_type != CARAFE_F32 || x->rank != 4) return CARAFE_OK;
    int offered = 0;
    for (size_t i = 0; i < site->n_layouts; i++)
        offered |= site->layouts[i].kind == CARAFE_LAYOUT_BLOCKED && site->layouts[i].block == BLOCK;
    if (!offered) return carafe_fail(carafe, CARAFE_INVALID, "blocks of eight are not offered");
    size_t blocks[5], order[5], taken = taken_of(site), n = 1;
    CarafeLayout inputs[8], output = carafe_layout_blocked(x, BLOCK, blocks, order);
    inputs[0] = output;
    for (size_t k = 0; k < taken; k++)
        if (site->epilogue[k].function == CARAFE_ADD) {
            /* A whole operand lies as the result does, one number for each channel plainly. */
            const CarafeFact *f = &site->inputs[n];
            int whole = f->rank == 4;
            for (int i = 0; i < 4 && whole; i++) whole = f->dims[i].min == x->dims[i].min;
            inputs[n++] = whole ? output : carafe_layout_plain(CARAFE_F32);
        }
    CarafeConfig config = {inputs, n, &output, 1};
    TRY(offer(sink, &config));
    return carafe_needs(site, sink, taken, WORKSPACE, SCRATCH);
}

typedef struct {
    size_t n_ops, channels;
    uint32_t ops[16];
} Abs;

static CarafeStatus abs_init(void *user, const CarafeSite *site, size_t config, void **kernel) {
    (void)user, (void)config;
    Abs *a = calloc(1, sizeof *a);
    a->n_ops = taken_of(site);
    a->channels = (size_t)site->inputs[0].dims[1].min;
    for (size_t k = 0; k < a->n_ops; k++) a->ops[k] = site->epilogue[k].function;
    *kernel = a;
    return CARAFE_OK;
}

typedef struct {
    const Abs *a;
    const CarafeKernelIo *io;
    size_t row; /* elements of one block of channels */
} AbsLoop;

static CarafeStatus abs_part(void *user, size_t part, void *scratch, size_t scratch_bytes) {
    AbsLoop *loop = user;
    if (!scratch || scratch_bytes < SCRATCH) return carafe_fail(carafe, CARAFE_INVALID, "no scratch");
    memset(scratch, 0x5a, SCRATCH);
    const CarafeKernelIo *io = loop->io;
    const float *x = (const float *)io->inputs[0].data + part * loop->row;
    float *y = (float *)io->outputs[0].data + part * loop->row;
    size_t first = part % io->inputs[0].shape[1] * BLOCK;
    for (size_t i = 0; i < loop->row; i++) {
        float v = fabsf(x[i]);
        for (size_t k = 0, in = 1; k < loop->a->n_ops; k++) {
            if (loop->a->ops[k] == CARAFE_RELU) {
                v = v < 0 ? 0 : v;
                continue;
            }
            const CarafeTensor *t = &io->inputs[in++];
            const float *more = t->data;
            size_t channel = first + i % BLOCK, n = carafe_elements(t);
            if (t->rank == 5) v += more[part * loop->row + i];
            else if (channel < loop->a->channels) v += more[n == 1 ? 0 : channel];
        }
        y[i] = v;
    }
    return CARAFE_OK;
}

static CarafeStatus abs_run(const void *kernel, const CarafeKernelIo *io) {
    const size_t *dims = io->inputs[0].shape;
    if (io->workspace_bytes < WORKSPACE) return carafe_fail(carafe, CARAFE_INVALID, "no workspace");
    memset(io->workspace, 0x5a, WORKSPACE);
    AbsLoop loop = {kernel, io, dims[2] * dims[3] * BLOCK};
    return io->each(io, dims[0] * dims[1], abs_part, &loop);
}

static CarafeStatus plain_configs(void *user, const CarafeSite *site, CarafeConfigSink offer, void *sink) {
    (void)user;
    CarafeLayout plain = carafe_layout_plain(site->inputs[0].element_type);
    CarafeConfig config = {&plain, 1, &plain, 1};
    return offer(sink, &config);
}

static CarafeStatus nothing_init(void *user, const CarafeSite *site, size_t config, void **kernel) {
    (void)user, (void)site, (void)config;
    *kernel = NULL;
    return CARAFE_OK;
}

static atomic_int inside;

static CarafeStatus meet_run(const void *kernel, const CarafeKernelIo *io) {
    (void)kernel;
    memcpy(io->outputs[0].data, io->inputs[0].data, io->inputs[0].bytes);
    atomic_fetch_add(&inside, 1);
    struct timespec pause = {0, 1000000};
    for (int i = 0; i < 60000 && atomic_load(&inside) < 2; i++) thrd_sleep(&pause, NULL);
    return atomic_load(&inside) < 2 ? carafe_fail(carafe, CARAFE_INVALID, "nobody else came") : CARAFE_OK;
}

CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    CarafeKernel k = {0};
    k.size = sizeof k;
    k.abi = CARAFE_ABI_MAJOR;
    k.device = "CPU";
    k.op = "Abs";
    k.name = "abs_c8";
    k.configs = abs_configs;
    k.init = abs_init;
    k.run = abs_run;
    k.release = free;
    k.fuses = 1;
    TRY(r->fns->add_kernel(r, &k));
    k.op = "Negative";
    k.name = "meet";
    k.configs = plain_configs;
    k.init = nothing_init;
    k.run = meet_run;
    k.release = NULL;
    k.fuses = 0;
    return r->fns->add_kernel(r, &k);
}
