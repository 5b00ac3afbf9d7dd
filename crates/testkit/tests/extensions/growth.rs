//! Libraries built with an older or a newer header. Tables grow at their ends: what an older one lacks is as if it were
//! zero, what a newer one has more is not looked at. `carafe_v1_0.h` is the first header and is never changed.

use crate::support::*;
use carafe_testkit::libraries::{Workshop, root};

const OP: &str = r#"
CARAFE_LIBRARY
static const CarafePort port[] = {{"x", 0, 0}};
static CarafeStatus infer(const void *i, CarafeInfer *cx) {
    (void)i;
    CarafeFact x;
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    return s ? s : cx->fns->set_output(cx, 0, &x);
}
static CarafeStatus eval(const void *i, CarafeEval *cx) {
    (void)i;
    CarafeTensor x;
    void *y;
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    if (s == CARAFE_OK) s = cx->fns->output(cx, 0, CARAFE_F32, x.rank, x.shape, &y);
    if (s != CARAFE_OK) return s;
    for (size_t i = 0; i < carafe_elements(&x); i++) ((float *)y)[i] = ((const float *)x.data)[i] + 1;
    return CARAFE_OK;
}
static CarafeStatus convert(void *user, CarafeNode *cx) {
    (void)user;
    CarafeValue x, y;
    CarafeAttrs none = {NULL, 0};
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    if (s == CARAFE_OK) s = cx->fns->emit(cx, carafe_str("extension::PlusOne"), &x, 1, none, &y);
    return s ? s : cx->fns->set_output(cx, 0, y);
}
static CarafeStatus at(void *user, CarafeGraph *g, uint32_t id, uint32_t *outcome) {
    (void)user, (void)g, (void)id;
    *outcome = CARAFE_NO_MATCH;
    return CARAFE_OK;
}
static CarafeOp op(void) {
    CarafeOp op = {0};
    op.size = sizeof op;
    op.abi = CARAFE_ABI_MAJOR;
    op.name = "PlusOne";
    op.inputs = port;
    op.n_inputs = 1;
    op.outputs = port;
    op.n_outputs = 1;
    op.infer = infer;
    op.eval = eval;
    return op;
}
static CarafeRule rule(void) {
    CarafeRule t = {0};
    t.size = sizeof t;
    t.abi = CARAFE_ABI_MAJOR;
    t.framework = "onnx";
    t.domain = "acme.ai";
    t.op_type = "Increment";
    t.since = 1;
    t.convert = convert;
    return t;
}
static CarafePass pass(void) {
    CarafePass t = {0};
    t.size = sizeof t;
    t.abi = CARAFE_ABI_MAJOR;
    t.phase = CARAFE_PHASE_FRONT;
    t.name = "nothing";
    t.at = at;
    return t;
}
"#;

fn works(source: &str, name: &str, header: &str) {
    let shop = Workshop::new();
    let core = core_with(&shop.c(name, &format!("#include \"{header}\"\n#include <stdlib.h>\n{source}")));
    let model = ir(&core, "PlusOne", "extension", "", "FP32").unwrap();
    assert_eq!(floats(&run(&core, &model, &[1., 2., 3., 4.]).unwrap()), [2., 3., 4., 5.]);
    let model = onnx(&core, "g (float[2] x) => (float[2] y) { y = acme.ai.Increment(x) }").unwrap();
    assert_eq!(floats(&run(&core, &model, &[1., 2.]).unwrap()), [2., 3.]);
}

fn first_header() -> String {
    root().join("crates/abi/tests/fixtures/carafe_v1_0.h").display().to_string()
}

#[test]
fn a_library_built_with_the_first_header_works() {
    let entry = "CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
        carafe = host;
        CarafeOp o = op();
        CarafeRule t = rule();
        CarafePass p = pass();
        CarafeStatus s = r->fns->add_op(r, &o);
        if (s == CARAFE_OK) s = r->fns->add_rule(r, &t);
        return s ? s : r->fns->add_pass(r, &p);
    }";
    works(&format!("{OP}{entry}"), "first", &first_header());
}

#[test]
fn shorter_tables_work() {
    // Each table lies in memory of exactly its size, so that reading behind it would be seen by a memory checker.
    let entry = "
    static void *cut(const void *table, size_t size) {
        char *p = malloc(size);
        memcpy(p, table, size);
        memcpy(p, &size, sizeof size);
        return p;
    }
    static CarafeStatus run(void *user, CarafeGraph *g, size_t *fired) {
        (void)user, (void)g;
        *fired = 0;
        return CARAFE_OK;
    }
    CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
        carafe = host;
        CarafeOp o = op();
        CarafeRule t = rule();
        void *old_op = cut(&o, offsetof(CarafeOp, instance_attrs));
        CarafePass p = pass();
        p.run = run;
        void *old_rule = cut(&t, sizeof t);
        void *old_pass = cut(&p, offsetof(CarafePass, root));
        CarafeStatus s = r->fns->add_op(r, old_op);
        if (s == CARAFE_OK) s = r->fns->add_rule(r, old_rule);
        if (s == CARAFE_OK) s = r->fns->add_pass(r, old_pass);
        free(old_op);
        free(old_rule);
        free(old_pass);
        return s;
    }";
    works(&format!("{OP}{entry}"), "shorter", &first_header());
}

#[test]
fn longer_tables_work() {
    let source = OP.replace(
        "CARAFE_LIBRARY",
        "static const CarafeHost *carafe;
    CARAFE_EXPORT const CarafeAbi carafe_abi = {CARAFE_ABI_MAGIC, CARAFE_ABI_MAJOR, 99, sizeof(void *)};",
    );
    let entry = "
    typedef struct { CarafeOp now; void *later[16]; } LaterOp;
    typedef struct { CarafeRule now; void *later[16]; } LaterRule;
    typedef struct { CarafePass now; void *later[16]; } LaterPass;
    CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
        carafe = host;
        LaterOp o;
        LaterRule t;
        LaterPass p;
        memset(&o, 0x5a, sizeof o);
        memset(&t, 0x5a, sizeof t);
        memset(&p, 0x5a, sizeof p);
        o.now = op();
        t.now = rule();
        p.now = pass();
        o.now.size = sizeof o;
        t.now.size = sizeof t;
        p.now.size = sizeof p;
        CarafeStatus s = r->fns->add_op(r, &o.now);
        if (s == CARAFE_OK) s = r->fns->add_rule(r, &t.now);
        if (s == CARAFE_OK) s = r->fns->add_pass(r, &p.now);
        /* A newer library asks before it calls what an older engine lacks. */
        if (s == CARAFE_OK && r->fns->size > 4096) s = CARAFE_USAGE;
        return s;
    }";
    works(&format!("{source}{entry}"), "longer", "carafe.h");
}

/// A kernel that makes its output itself, one inference at a time for each that `init` made.
const KERNEL: &str = r#"
CARAFE_LIBRARY
static atomic_int inside;
static CarafeStatus configs(void *user, const CarafeSite *site, CarafeConfigSink offer, void *sink) {
    (void)user;
    CarafeLayout plain = {site->inputs[0].element_type, 0, NULL, NULL, -1, 0}, in_place = plain;
    in_place.in_place = 0;
    CarafeConfig config = {&plain, 1, &in_place, 1};
    return offer(sink, &config);
}
static CarafeStatus init(void *user, const CarafeSite *site, size_t config, void **kernel) {
    (void)user, (void)site, (void)config;
    *kernel = calloc(1, sizeof(atomic_int));
    return CARAFE_OK;
}
static CarafeStatus execute(void *kernel, CarafeEval *cx) {
    atomic_int *own = kernel;
    if (atomic_fetch_add(own, 1) != 0) return carafe_fail(carafe, CARAFE_INVALID, "two at once in one kernel");
    CarafeTensor x;
    void *y;
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    if (s == CARAFE_OK) s = cx->fns->output(cx, 0, x.element_type, x.rank, x.shape, &y);
    if (s != CARAFE_OK) return s;
    memcpy(y, x.data, x.bytes);
    atomic_fetch_add(&inside, 1);
    struct timespec pause = {0, 1000000};
    for (int i = 0; i < 60000 && atomic_load(&inside) < 2; i++) thrd_sleep(&pause, NULL);
    atomic_fetch_sub(own, 1);
    return atomic_load(&inside) < 2 ? carafe_fail(carafe, CARAFE_INVALID, "nobody else came") : CARAFE_OK;
}
CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    CarafeKernel k = {0};
    k.size = sizeof k;
    k.abi = CARAFE_ABI_MAJOR;
    k.device = "CPU";
    k.op = "Negative";
    k.name = "old";
    k.configs = configs;
    k.init = init;
    k.execute = execute;
    k.release = free;
    return r->fns->add_kernel(r, &k);
}
"#;

#[test]
fn a_kernel_built_with_the_first_header_runs_on_two_streams_at_once() {
    let shop = Workshop::new();
    let includes = "#include <stdatomic.h>\n#include <stdlib.h>\n#include <threads.h>\n#include <time.h>";
    let core = core_with(&shop.c("old", &format!("#include \"{}\"\n{includes}\n{KERNEL}", first_header())));
    crate::kernels::meets(&core);
}
