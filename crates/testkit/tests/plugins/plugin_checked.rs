//! Devices that do not do as they said: ports, outputs and answers are held against the model and the declaration, and each
//! difference is an error that names the library.

use carafe::{Core, ElementType, Model, PartialShape, Properties, Result, Tensor, ops};
use carafe_testkit::libraries::Workshop;

// A device for models of f32 inputs and as many outputs, which it passes on; `HOW` says what it does wrong.
const DEVICE: &str = r#"#include "carafe.h"
#include <stdlib.h>
CARAFE_LIBRARY
enum { MOST = 4 };
typedef struct {
    CarafeGraph *g;
    CarafeModelPort in[MOST], out[MOST];
    size_t n_in, n_out;
    CarafeTensor tensors[MOST];
    void *owners[MOST];
    CarafeRelease releases[MOST];
} State;
static int released;
static CarafeStatus device_query(void *device, CarafeGraph *g, CarafeProperties p, CarafeAnswer answer, void *sink) {
    (void)device, (void)p;
    const uint32_t *ids;
    size_t n;
    CarafeStatus s = g->fns->nodes(g, &ids, &n);
    for (size_t i = 0; i < n && s == CARAFE_OK; i++) s = answer(sink, ids[i], carafe_str(""));
    /* What these answer is not looked at. */
    if (HOW == 1) answer(sink, 4711, carafe_str(""));
    if (HOW == 2) answer(sink, ids[0], carafe_str("not on Mondays"));
    if (HOW == 3) answer(NULL, ids[0], carafe_str(""));
    return s;
}
static CarafeStatus request_set_input(void *request, size_t i, const CarafeTensor *t, void *owner, CarafeRelease release) {
    State *s = request;
    if (HOW == 20) return carafe_fail(carafe, CARAFE_INVALID, "no inputs today");
    if (HOW == 21) { /* as plugins did before the rule was written down */
        release(owner);
        return carafe_fail(carafe, CARAFE_INVALID, "no inputs today");
    }
    if (s->releases[i]) s->releases[i](s->owners[i]);
    s->tensors[i] = *t;
    s->owners[i] = owner;
    s->releases[i] = release;
    return CARAFE_OK;
}
static CarafeStatus no_set(CarafeEval *cx, size_t output, const CarafeTensor *t) {
    (void)cx, (void)output, (void)t;
    return carafe_fail(carafe, CARAFE_IO, "there is no room");
}
static CarafeStatus no_give(CarafeEval *cx, size_t output, const CarafeTensor *t, void *owner, CarafeRelease release) {
    (void)cx, (void)output, (void)t, (void)owner, (void)release;
    return carafe_fail(carafe, CARAFE_IO, "there is no room");
}
static CarafeStatus request_infer(void *request) {
    State *s = request;
    CarafeGraph *g = s->g;
    CarafeEvalFns fns = {0};
    CarafeEval sink = {&fns};
    const uint32_t *ids;
    size_t n;
    uint32_t relu = 0;
    CarafeNodeInfo node;
    CarafeStatus status = g->fns->nodes(g, &ids, &n);
    for (size_t i = 0; i < n && status == CARAFE_OK; i++) {
        status = g->fns->node(g, ids[i], &node);
        if (carafe_str_is(node.op_type, "ReLU")) relu = ids[i];
    }
    if (status != CARAFE_OK) return status;
    fns.size = sizeof fns;
    switch (HOW) {
    case 30: return g->fns->evaluate(g, relu, s->tensors, 1, NULL);
    case 31: sink.fns = NULL; return g->fns->evaluate(g, relu, s->tensors, 1, &sink);
    case 32: fns.size = sizeof fns.size; fns.give_output = no_give; return g->fns->evaluate(g, relu, s->tensors, 1, &sink);
    case 33: return g->fns->evaluate(g, relu, s->tensors, 1, &sink);
    case 34: fns.give_output = no_give; return g->fns->evaluate(g, relu, s->tensors, 1, &sink);
    case 35: fns.set_output = no_set; return g->fns->evaluate(g, relu, s->tensors, 1, &sink);
    default: return CARAFE_OK;
    }
}
static void count(void *owner) { free(owner); released++; }
static CarafeStatus request_output(void *request, size_t i, CarafeTensor *t, void **owner, CarafeRelease *release) {
    static const size_t five = 5;
    static const float numbers[5];
    State *s = request;
    *t = s->tensors[i];
    if (HOW == 40) t->element_type = CARAFE_I32;
    if (HOW == 41) *t = (CarafeTensor){CARAFE_F32, 1, &five, numbers, sizeof numbers};
    if (HOW == 42) t->data = NULL;
    if (HOW == 43) { /* memory that must be given back although it is refused */
        if (released) return carafe_fail(carafe, CARAFE_INVALID, "the first was given back");
        *owner = calloc(1, 16);
        *release = count;
        t->data = *owner;
        t->bytes = 99;
    }
    return CARAFE_OK;
}
static void state_release(void *instance) {
    State *s = instance;
    for (size_t i = 0; i < MOST; i++)
        if (s->releases[i]) s->releases[i](s->owners[i]);
    if (s->g) s->g->fns->release(s->g);
    free(s);
}
static CarafeStatus compiled_create_request(void *compiled, CarafeRequest *out) {
    State *c = compiled, *r = calloc(1, sizeof *r);
    r->g = c->g->fns->retain(c->g);
    out->instance = r;
    out->set_input = request_set_input;
    out->infer = HOW == 50 ? NULL : request_infer;
    out->output = request_output;
    out->release = state_release;
    if (HOW == 51) out->size = 24;
    return CARAFE_OK;
}
static CarafeStatus device_compile(void *device, CarafeGraph *g, CarafeProperties p, CarafeCompiled *out) {
    (void)device, (void)p;
    State *s = calloc(1, sizeof *s);
    const uint32_t *params, *results;
    CarafeNodeInfo node;
    s->g = g->fns->retain(g);
    g = s->g;
    g->fns->parameters(g, &params, &s->n_in);
    g->fns->results(g, &results, &s->n_out);
    for (size_t i = 0; i < s->n_in; i++) {
        g->fns->node(g, params[i], &node);
        s->in[i].name = node.name;
        g->fns->fact(g, (CarafeValue){params[i], 0}, &s->in[i].fact);
    }
    for (size_t i = 0; i < s->n_out; i++) {
        CarafeValue v;
        g->fns->input(g, results[i], 0, &v);
        g->fns->node(g, v.node, &node);
        s->out[i].name = node.name;
        g->fns->fact(g, v, &s->out[i].fact);
    }
    out->instance = s;
    out->inputs = s->in;
    out->n_inputs = s->n_in;
    out->outputs = s->out;
    out->n_outputs = s->n_out;
    out->create_request = compiled_create_request;
    out->release = state_release;
    switch (HOW) {
    case 10: out->n_outputs--; break;
    case 11: out->n_inputs++; break;
    case 12: s->in[0].fact.element_type = CARAFE_F16; break;
    case 13: s->out[0].fact.rank = 0; break;
    case 14: { CarafeModelPort one = s->in[0]; s->in[0] = s->in[1]; s->in[1] = one; break; }
    case 15: out->size = 16; break;
    case 16: out->abi = 9; break;
    case 17: out->inputs = NULL; break;
    case 18: s->in[0].name.data = NULL; break;
    case 19: out->create_request = NULL; break;
    default: break;
    }
    return CARAFE_OK;
}
CARAFE_C CARAFE_EXPORT CarafeStatus CreatePluginEngine(const CarafeHost *host, CarafeDevice *device) {
    carafe = host;
    device->name = "CHECKED";
    device->query = device_query;
    device->compile = HOW == 61 ? NULL : device_compile;
    if (HOW == 60) device->size = 32;
    if (HOW == 62) device->n_properties = 3;
    return CARAFE_OK;
}
"#;

// Two inputs of different lengths, each through a Relu.
fn model() -> Model {
    let mut m = Model::new("m");
    for (name, n) in [("a", 2), ("b", 2)] {
        let x = m.parameter(name, ElementType::F32, PartialShape::of(&[n])).unwrap();
        let y = m.add(format!("relu_{name}"), ops::activation::Relu, &[x]).unwrap();
        m.result(&format!("out_{name}"), y.into()).unwrap();
    }
    m
}

fn infer(core: &Core, model: &Model) -> Result<Vec<Tensor>> {
    let request = core.compile_model(model, "CHECKED", &Properties::new())?.create_infer_request();
    for i in 0..2 {
        request.set_input(i, Tensor::from_slice(&[2], &[1f32, 2.0])?)?;
    }
    request.infer(())?;
    (0..2).map(|i| request.output(i)).collect()
}

#[test]
fn a_device_that_keeps_its_word_runs() {
    let shop = Workshop::new();
    let core = carafe::core();
    core.add_plugin(shop.c("checked0", &format!("#define HOW 0\n{DEVICE}"))).unwrap();
    assert_eq!(core.query_model(&model(), "CHECKED", &Properties::new()).unwrap().unsupported, []);
    let outputs = infer(&core, &model()).unwrap();
    assert!(outputs.iter().all(|t| t.as_slice::<f32>().unwrap() == [1.0, 2.0]));
}

#[test]
fn a_device_that_does_not_keep_its_word_is_an_error_that_names_its_library() {
    let cases = [
        (1, "node 4711, which the model does not have"),
        (2, "answers twice for"),
        (3, "the sink that came back is not the one that was given"),
        (10, "compiled a model of 2 outputs to one of 1"),
        (11, "compiled a model of 2 inputs to one of 3"),
        (12, "input 0 of the model is f32[2], of what the device compiled f16[2]"),
        (13, "output 0 of the model is f32[2]"),
        (14, "input 0 of what the device compiled is `b`, which is input 1 of the model"),
        (15, "the table of a compiled model says it has 16 bytes"),
        (16, "is for ABI 9"),
        (17, "2 elements at a null pointer"),
        (18, "null pointer"),
        (19, "needs `create_request`"),
        (20, "no inputs today"),
        (21, "no inputs today"),
        (30, "a null pointer instead of the context that takes the outputs"),
        (31, "a null pointer for the functions of the context that takes the outputs"),
        (32, "neither `set_output` nor `give_output`"),
        (33, "neither `set_output` nor `give_output`"),
        (34, "there is no room"),
        (35, "there is no room"),
        (40, "output `relu_a` was declared as f32[2], the device gave i32[2]"),
        (41, "output `relu_a` was declared as f32[2], the device gave f32[5]"),
        (42, "null pointer"),
        (43, "has 8 bytes, found 99"),
        (50, "a request needs `set_input`, `infer` and `output`"),
        (51, "the table of a request says it has 24 bytes"),
        (60, "the table of a device says it has 32 bytes"),
        (61, "a device needs `query` and `compile`"),
        (62, "3 elements at a null pointer"),
    ];
    let shop = Workshop::new();
    let model = model();
    for (how, wanted) in cases {
        let name = format!("checked{how}");
        let library = shop.c(&name, &format!("#define HOW {how}\n{DEVICE}"));
        let core = carafe::core();
        let result = core.add_plugin(library).and_then(|_| {
            core.query_model(&model, "CHECKED", &Properties::new())?;
            infer(&core, &model)
        });
        let text = match result {
            Ok(_) => panic!("{how} was taken"),
            Err(e) => e.to_string(),
        };
        assert!(text.contains(wanted) && text.contains(&name), "{how}: wanted `{wanted}` in `{text}`");
    }
}

#[test]
fn memory_of_a_refused_output_goes_back_to_the_device() {
    let shop = Workshop::new();
    let core = carafe::core();
    core.add_plugin(shop.c("gives_back", &format!("#define HOW 43\n{DEVICE}"))).unwrap();
    let request = core.compile_model(&model(), "CHECKED", &Properties::new()).unwrap().create_infer_request();
    for i in 0..2 {
        request.set_input(i, Tensor::from_slice(&[2], &[1f32, 2.0]).unwrap()).unwrap();
    }
    assert!(request.infer(()).err().unwrap().to_string().contains("found 99"));
    assert!(request.output(0).err().unwrap().to_string().contains("the first was given back"));
}

// A kernel of an extension that promises one form and gives another.
const KERNEL: &str = r#"#include "carafe.h"
CARAFE_LIBRARY
static CarafeStatus infer(const void *i, CarafeInfer *cx) {
    (void)i;
    CarafeFact x;
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    return s ? s : cx->fns->set_output(cx, 0, &x);
}
static const size_t blocks[] = {1, 2}, order[] = {0, 0};
static CarafeStatus configs(void *user, const CarafeSite *site, CarafeConfigSink offer, void *sink) {
    (void)user, (void)site;
    CarafeLayout in = {CARAFE_F32, 0, NULL, NULL, -1, 0}, out = in;
    if (HOW == 2) {
        out.rank = 2;
        out.blocks = blocks;
        out.order = order;
    }
    CarafeConfig c = {&in, 1, &out, 1};
    return offer(sink, &c);
}
static CarafeStatus init(void *user, const CarafeSite *site, size_t config, void **kernel) {
    (void)user, (void)site, (void)config, (void)kernel;
    return CARAFE_OK;
}
static CarafeStatus execute(void *kernel, CarafeEval *cx) {
    (void)kernel;
    size_t plain[] = {2}, wide[] = {4};
    void *p;
    switch (HOW) {
    case 1: return cx->fns->output(cx, 0, CARAFE_F64, 1, plain, &p);
    case 2: return cx->fns->output(cx, 0, CARAFE_F32, 1, wide, &p);
    case 3: return cx->fns->output(cx, 0, CARAFE_F32, 1, wide, &p);
    default: return cx->fns->output(cx, 0, CARAFE_F32, 1, plain, &p);
    }
}
CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    static const CarafePort port[] = {{"x", 0, 0}};
    CarafeOp op = {0};
    op.size = sizeof op;
    op.abi = CARAFE_ABI_MAJOR;
    op.name = "Other";
    op.inputs = op.outputs = port;
    op.n_inputs = op.n_outputs = 1;
    op.infer = infer;
    CarafeKernel k = {0};
    k.size = sizeof k;
    k.abi = CARAFE_ABI_MAJOR;
    k.device = "TEMPLATE";
    k.op = "Other";
    k.name = "other_form";
    k.configs = configs;
    k.init = init;
    k.execute = execute;
    CarafeStatus s = r->fns->add_op(r, &op);
    return s ? s : r->fns->add_kernel(r, &k);
}
"#;

fn with_kernel(how: u32) -> Result<Tensor> {
    let shop = Workshop::new();
    let core = carafe::core();
    core.add_extension(shop.c("other_form", &format!("#define HOW {how}\n{KERNEL}")))?;
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[2]))?;
    let op = core.registry().find("Other", "extension").expect("registered").create(&carafe_graph::AttrMap::new())?;
    let y = m.add_ref("other", op, &[x])?;
    m.result("out", y.into())?;
    let request = core.compile_model(&m, "TEMPLATE", &Properties::new())?.create_infer_request();
    request.set_input(0, Tensor::from_slice(&[2], &[1f32, 2.0])?)?;
    request.infer(())?;
    request.output(0)
}

#[test]
fn a_kernel_that_gives_another_form_than_it_promised_is_an_error() {
    assert_eq!(with_kernel(0).unwrap().as_slice::<f32>().unwrap(), [0.0, 0.0]);
    let cases = [
        (1, "kernel `other_form` of `libother_form.so` gave output 0 as f64[2], promised f32[2]"),
        (2, "kernel `other_form` of `libother_form.so` gave output 0 as f32[4], promised f32blocks [1, 2]"),
        (3, "kernel `other_form` of `libother_form.so` gave output 0 as f32[4], promised f32[2]"),
    ];
    for (how, wanted) in cases {
        let text = with_kernel(how).err().unwrap_or_else(|| panic!("{how} was taken")).to_string();
        let all = [wanted, "libother_form.so"];
        assert!(all.iter().all(|w| text.contains(w)), "{how}: wanted {all:?} in `{text}`");
    }
}
