//! Libraries that use the engine wrongly: null pointers, memory given badly, the registrar after its time, loops whose parts
//! fail. Each ends as an error that names the library, and the core goes on.

use crate::support::*;
use carafe::{Core, Result, Tensor};
use carafe_testkit::libraries::{Workshop, rust_library};

// One operation that misuses what it is given in the way its attribute says.
const OP: &str = r#"#include "carafe.h"
#include <stdlib.h>
CARAFE_LIBRARY
static CarafeRegistrar *kept;
static int released;
static const CarafePort port[] = {{"x", 0, 0}};
static CarafeStatus create(void *user, CarafeAttrs attrs, void **instance) {
    (void)user;
    *instance = (void *)(intptr_t)carafe_attr(attrs, "how")->i;
    return CARAFE_OK;
}
static void end(void *instance) { (void)instance; }
static CarafeStatus infer(const void *instance, CarafeInfer *cx) {
    CarafeFact x;
    CarafeTensor t;
    const CarafeDim *dims;
    size_t n;
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    if (s == CARAFE_OK) s = cx->fns->set_output(cx, 0, &x);
    if (s != CARAFE_OK) return s;
    switch ((int)(intptr_t)instance) {
    case 1: return cx->fns->input(cx, 0, NULL);
    case 2: return cx->fns->input(NULL, 0, &x);
    case 3: cx->fns->n_inputs(NULL); return CARAFE_OK;
    case 4: return cx->fns->value(cx, 0, NULL);
    case 5: return cx->fns->intervals(cx, 0, NULL, &n);
    case 6: return cx->fns->intervals(cx, 0, &dims, NULL);
    case 7: return cx->fns->set_value(cx, 0, NULL);
    case 8: return cx->fns->set_intervals(NULL, 0, NULL, 0);
    case 9: cx->fns->exact(NULL); cx->fns->symbol(NULL, 0); return CARAFE_OK;
    case 10: return cx->fns->value(NULL, 0, &t);
    default: return CARAFE_OK;
    }
}
static void count(void *owner) { free(owner); released++; }
static CarafeStatus good_part(void *user, size_t begin, size_t end) {
    CarafeEval *cx = user;
    CarafeTensor x;
    CarafeFact fact;
    (void)begin, (void)end;
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    return s ? s : cx->fns->output_fact(cx, 0, &fact);
}
static CarafeStatus bad_part(void *user, size_t begin, size_t end) {
    (void)user;
    return begin <= 70000 && 70000 < end ? carafe_fail(carafe, CARAFE_INVALID, "element 70000 is bad") : CARAFE_OK;
}
static void misusing_part(void *user, size_t begin, size_t end) {
    if (begin <= 70000 && 70000 < end) ((CarafeEval *)user)->fns->n_inputs(NULL);
}
static CarafeOp op(void) {
    CarafeOp op = {0};
    op.size = sizeof op;
    op.abi = CARAFE_ABI_MAJOR;
    op.name = "Other";
    op.infer = infer;
    return op;
}
static CarafeStatus eval(const void *instance, CarafeEval *cx) {
    CarafeTensor x;
    CarafeFact fact;
    CarafeStr text;
    void *p, *q;
    size_t four = 4;
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    if (s != CARAFE_OK) return s;
    CarafeTensor y = {CARAFE_F32, 1, &four, NULL, 16};
    CarafeOp other = op();
    switch ((int)(intptr_t)instance) {
    case 30: return cx->fns->input(cx, 0, NULL);
    case 31: return cx->fns->input(NULL, 0, &x);
    case 32: cx->fns->n_inputs(NULL); return cx->fns->forward(cx, 0, 0);
    case 33: return cx->fns->output(cx, 0, CARAFE_F32, 1, &four, NULL);
    case 34: return cx->fns->output_fact(cx, 0, NULL);
    case 35: return cx->fns->name(cx, NULL);
    case 36: return cx->fns->keep_input(cx, 0, NULL);
    case 37: return cx->fns->variable(cx, carafe_str("v"), NULL);
    case 38: return cx->fns->assign(cx, carafe_str("v"), NULL);
    case 39: return cx->fns->name(NULL, &text);
    case 40: return cx->fns->output_fact(NULL, 0, &fact);
    case 41: return cx->fns->forward(NULL, 0, 0);
    case 42: /* no function to release */
        y.data = calloc(4, 4);
        s = cx->fns->give_output(cx, 0, &y, (void *)y.data, NULL);
        free((void *)y.data);
        return s;
    case 43: /* a wrong number of bytes: the memory is still ours */
        y.data = calloc(4, 4);
        y.bytes = 99;
        released = 0;
        s = cx->fns->give_output(cx, 0, &y, (void *)y.data, count);
        if (released) return carafe_fail(carafe, CARAFE_INVALID, "it was released although it was refused");
        free((void *)y.data);
        return s;
    case 44: return cx->fns->give_output(cx, 0, NULL, NULL, count);
    case 45: y.data = calloc(4, 4); s = cx->fns->give_output(cx, 7, &y, (void *)y.data, count); free((void *)y.data); return s;
    case 46: /* twice the memory of one output */
        s = cx->fns->output(cx, 0, CARAFE_F32, 1, &four, &p);
        if (s == CARAFE_OK) s = cx->fns->output(cx, 0, CARAFE_F32, 1, &four, &q);
        ((float *)p)[0] = 1;
        return s;
    case 47:
        s = cx->fns->output(cx, 0, CARAFE_F32, 1, &four, &p);
        if (s == CARAFE_OK) s = cx->fns->forward(cx, 0, 0);
        ((float *)p)[0] = 1;
        return s;
    case 48: carafe->parallel_for(100000, NULL, NULL); return cx->fns->forward(cx, 0, 0);
    case 49: return carafe->try_parallel_for(100000, NULL, NULL);
    case 50: return carafe->try_parallel_for(100000, bad_part, NULL);
    case 51: carafe->parallel_for(100000, misusing_part, cx); return cx->fns->forward(cx, 0, 0);
    case 52: carafe->last_error(NULL); return cx->fns->forward(cx, 0, 0);
    case 53: return kept->fns->add_op(kept, &other);
    case 54: kept->fns->describe(kept, carafe_str("late"), carafe_str("1")); return cx->fns->forward(cx, 0, 0);
    case 60: /* good: what is given once is released once, parts may ask */
        s = carafe->try_parallel_for(100000, good_part, cx);
        if (s != CARAFE_OK) return s;
        y.data = malloc(16);
        memcpy((void *)y.data, x.data, 16);
        return cx->fns->give_output(cx, 0, &y, (void *)y.data, count);
    case 61: /* good: the last that is given counts, the first is given back */
        y.data = calloc(4, 4);
        released = 0;
        s = cx->fns->give_output(cx, 0, &y, (void *)y.data, count);
        y.data = malloc(16);
        memcpy((void *)y.data, x.data, 16);
        if (s == CARAFE_OK) s = cx->fns->give_output(cx, 0, &y, (void *)y.data, count);
        return s == CARAFE_OK && released != 1 ? carafe_fail(carafe, CARAFE_INVALID, "not given back") : s;
    default: return cx->fns->forward(cx, 0, 0);
    }
}
CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    kept = r;
    CarafeAttrInfo a = {"how", CARAFE_ATTR_INT, 1, NULL, NULL};
    CarafeOp t = op();
    t.name = "Misuse";
    t.inputs = t.outputs = port;
    t.n_inputs = t.n_outputs = 1;
    t.attrs = &a;
    t.n_attrs = 1;
    t.create = create;
    t.release = end;
    t.infer = infer;
    t.eval = eval;
    return r->fns->add_op(r, &t);
}
"#;

fn misuse(core: &Core, how: &str) -> Result<Tensor> {
    ir(core, "Misuse", "extension", &format!("how=\"{how}\""), "FP32").and_then(|m| run(core, &m, &[1.0; 4]))
}

#[test]
fn wrong_pointers_and_memory_are_errors_that_name_the_library() {
    let shop = Workshop::new();
    let core = core_with(&shop.c("misuse", OP));
    let infer = "a null pointer for the context of an inference";
    let eval = "a null pointer for the context of an evaluation";
    let late = "the registrar is used after `create_extensions` returned";
    let cases = [
        (1, "a null pointer for a fact"),
        (2, infer),
        (3, infer),
        (4, "a null pointer for a tensor"),
        (5, "a null pointer for a list of intervals"),
        (6, "a null pointer for the length of a list"),
        (7, "a null pointer for a tensor"),
        (8, infer),
        (9, infer),
        (10, infer),
        (30, "a null pointer for a tensor"),
        (31, eval),
        (32, eval),
        (33, "a null pointer for the memory of an output"),
        (34, "a null pointer for a fact"),
        (35, "a null pointer for a name"),
        (36, "a null pointer for the owner of an input"),
        (37, "variable `v` has no value yet"),
        (38, "a null pointer for a tensor"),
        (39, eval),
        (40, eval),
        (41, eval),
        (42, "without a function that releases it"),
        (43, "has 16 bytes, found 99"),
        (44, "a null pointer for a tensor"),
        (45, "output 7 was set, there are 1"),
        (46, "output 0 has its memory already"),
        (47, "output 0 has its memory already"),
        (48, "a null pointer for the body of a loop"),
        (49, "a null pointer for the body of a loop"),
        (50, "element 70000 is bad"),
        (51, eval),
        (52, "a null pointer for the text of an error"),
        (53, late),
        (54, late),
    ];
    for (how, wanted) in cases {
        let text = match misuse(&core, &how.to_string()) {
            Ok(t) => panic!("{how} gave {t:?}"),
            Err(e) => e.to_string(),
        };
        assert!(text.contains(wanted) && text.contains("misuse"), "{how}: wanted `{wanted}` in `{text}`");
    }
    for how in ["60", "61"] {
        assert_eq!(floats(&misuse(&core, how).unwrap()), [1.0; 4], "{how}");
    }
    goes_on(&core);
}

#[test]
fn a_null_registrar_fails_the_library() {
    let shop = Workshop::new();
    let source = OP.replace("return r->fns->add_op(r, &t);", "r->fns->add_op(NULL, &t);\nreturn CARAFE_OK;");
    let core = carafe::core();
    tells(
        core.add_extension(shop.c("null_registrar", &source)),
        &["null_registrar", "a null pointer for the registrar"],
    );
    goes_on(&core);
}

#[test]
fn a_declaration_with_a_million_attributes_is_refused_at_once() {
    let shop = Workshop::new();
    let source = OP.replace(
        "return r->fns->add_op(r, &t);",
        "CarafeAttrInfo *many = calloc(1000000, sizeof *many);
        for (size_t i = 0; i < 1000000; i++) {
            char *name = malloc(16);
            for (size_t k = 0, n = i; k < 15; k++, n /= 10) name[k] = (char)('a' + n % 10);
            name[15] = 0;
            many[i].name = name;
            many[i].kind = CARAFE_ATTR_INT;
        }
        t.attrs = many;
        t.n_attrs = 1000000;
        return r->fns->add_op(r, &t);",
    );
    let core = carafe::core();
    let begun = std::time::Instant::now();
    tells(core.add_extension(shop.c("many_attrs", &source)), &["many_attrs", "1000000", "at most 4096"]);
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    goes_on(&core);
}

// A rewrite that adds an operation with as many attributes as it is told, which takes any.
const MANY: &str = r#"#include "carafe.h"
#include <stdlib.h>
CARAFE_LIBRARY
static CarafeStatus infer(const void *i, CarafeInfer *cx) {
    (void)i;
    CarafeFact x;
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    return s ? s : cx->fns->set_output(cx, 0, &x);
}
static CarafeStatus run(void *user, CarafeGraph *g, size_t *fired) {
    (void)user;
    CarafeAttr *many = calloc(COUNT, sizeof *many);
    const uint32_t *params;
    size_t n;
    uint32_t id;
    for (size_t i = 0; i < COUNT; i++) {
        char *name = malloc(16);
        for (size_t k = 0, rest = i; k < 15; k++, rest /= 10) name[k] = (char)('a' + rest % 10);
        name[15] = 0;
        many[i] = carafe_attr_int(name, 1);
    }
    CarafeStatus s = g->fns->parameters(g, &params, &n);
    if (s != CARAFE_OK) return s;
    CarafeValue x = {params[0], 0};
    *fired = 0;
    return g->fns->add(g, carafe_str("many"), carafe_str("extension::Many"), &x, 1, (CarafeAttrs){many, COUNT}, &id);
}
CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    static const CarafePort port[] = {{"x", 0, 0}};
    CarafeOp op = {0};
    op.size = sizeof op;
    op.abi = CARAFE_ABI_MAJOR;
    op.name = "Many";
    op.flags = CARAFE_OP_ANY_ATTRS;
    op.inputs = op.outputs = port;
    op.n_inputs = op.n_outputs = 1;
    op.infer = infer;
    CarafePass pass = {0};
    pass.size = sizeof pass;
    pass.abi = CARAFE_ABI_MAJOR;
    pass.phase = CARAFE_PHASE_FRONT;
    pass.name = "add_many";
    pass.run = run;
    CarafeStatus s = r->fns->add_op(r, &op);
    return s ? s : r->fns->add_pass(r, &pass);
}
"#;

// With a time that grows with the square of their number this would take minutes.
#[test]
fn a_rewrite_of_a_library_may_give_a_node_very_many_attributes() {
    let shop = Workshop::new();
    let library = shop.c("many", &MANY.replace("COUNT", "400000"));
    let model = onnx(&core_with(&library), "g (float[2] x) => (float[2] y) { y = Relu(x) }").unwrap();
    assert_eq!(model.results().len(), 1);
}

#[test]
fn a_panic_or_an_error_in_one_part_of_a_loop_fails_the_evaluation() {
    let core = core_with(&rust_library("carafe_all_kinds"));
    for (how, wanted) in [("part panics", "panic: part was told to panic"), ("part errors", "part was told to fail")] {
        // On threads of its own, and on those that CPU lends.
        for device in ["TEMPLATE", "CPU"] {
            let model = ir(&core, "Fails", "kinds", &format!("how=\"{how}\""), "FP32").unwrap();
            let compiled = core.compile_model(&model, device, &carafe::Properties::new()).unwrap();
            let request = compiled.create_infer_request();
            request.set_input(0, Tensor::from_slice(&[4], &[1f32; 4]).unwrap()).unwrap();
            tells(request.infer(()), &[wanted, "carafe_all_kinds", "the node"]);
        }
    }
    goes_on(&core);
}

#[test]
fn a_panic_in_drop_does_not_end_the_process() {
    let core = core_with(&rust_library("carafe_all_kinds"));
    let model = ir(&core, "Fails", "kinds", "how=\"drop panics\"", "FP32").unwrap();
    assert_eq!(floats(&run(&core, &model, &[1., 2., 3., 4.]).unwrap()), [1., 2., 3., 4.]);
    drop(model);
    tells(
        ir(&core, "Fails", "kinds", "how=\"bomb\"", "FP32").and_then(|m| run(&core, &m, &[1.0; 4])),
        &["panic: of unknown kind", "carafe_all_kinds"],
    );
    goes_on(&core);
}

// Misuses in C++, told by an attribute.
const CPP: &str = r#"#include "carafe.hpp"
namespace {
struct Silent : std::exception {
    const char *what() const noexcept override { return nullptr; }
};
class Bad : public carafe::Op {
public:
    explicit Bad(const carafe::Attrs &a) : how(a.get<std::string>("how")) {}
    void infer(carafe::Infer &cx) const override { cx.output(0, cx.input(0)); }
    void eval(carafe::Eval &cx) const override {
        if (how == "silent") throw Silent();
        if (how == "ok as status") throw carafe::Error(CARAFE_OK, "success was thrown");
        if (how == "short gift") cx.give(0, {4}, std::vector<float>(3));
        if (how == "wrong type") return cx.give(0, {4}, std::vector<double>(4));
        if (how == "no such output") cx.give(3, {4}, std::vector<float>(4));
        if (how == "twice") {
            float *first = cx.output<float>(0, {4});
            cx.output<float>(0, {4});
            first[0] = 1;
        }
        if (how == "part throws") {
            carafe::parallel_for(100000, [](size_t begin, size_t end) {
                if (begin <= 70000 && 70000 < end) throw std::runtime_error("element 70000 is bad");
            });
        }
        cx.forward(0, 0);
    }
    std::string how;
};
struct NoKernel : carafe::KernelClass {
    std::vector<carafe::Config> configs(const carafe::Site &) const override {
        return {{{{CARAFE_F32}}, {{CARAFE_F32}}}};
    }
    std::unique_ptr<carafe::Kernel> init(const carafe::Site &, size_t) const override { return nullptr; }
};
}  // namespace
CARAFE_EXTENSION(r) {
    r.describe("bad", "1");
    r.op<Bad>(carafe::Decl("Bad").input("x").output("y").required("how", CARAFE_ATTR_STR));
    if (NULL_CLASS) r.kernel("TEMPLATE", "Bad", std::nullopt, "null class", nullptr);
    r.kernel("TEMPLATE", "Bad", std::nullopt, "no kernel", std::make_unique<NoKernel>());
}
"#;

fn bad_cpp(how: &str) -> Result<Tensor> {
    let shop = Workshop::new();
    let core = core_with(&shop.cpp("bad_cpp", &CPP.replace("NULL_CLASS", "false")));
    ir(&core, "Bad", "extension", &format!("how=\"{how}\""), "FP32").and_then(|m| run(&core, &m, &[1.0; 4]))
}

#[test]
fn misuse_in_cpp_is_an_exception_and_then_an_error() {
    let cases = [
        ("silent", "an exception without a text"),
        ("ok as status", "success was thrown"),
        ("short gift", "output 0 has 4 elements, 3 were given"),
        ("wrong type", "f64"),
        ("no such output", "output 3 was set, there are 1"),
        ("twice", "output 0 has its memory already"),
        ("part throws", "element 70000 is bad"),
    ];
    for (how, wanted) in cases {
        println!("{how}");
        tells(bad_cpp(how), &[wanted, "bad_cpp"]);
    }
    // The kernel that is none is not taken; the evaluation runs.
    assert_eq!(floats(&bad_cpp("well").unwrap()), [1.0; 4]);
}

#[test]
fn a_null_kernel_class_in_cpp_fails_the_library() {
    let shop = Workshop::new();
    let core = carafe::core();
    let library = shop.cpp("null_class", &CPP.replace("NULL_CLASS", "true"));
    tells(core.add_extension(library), &["null_class", "kernel `null class` is a null pointer"]);
    goes_on(&core);
}

// A rewrite and a rule that pass null pointers; what each function answers is looked at.
const GRAPH: &str = r#"#include "carafe.h"
CARAFE_LIBRARY
#define REFUSED(call) if ((call) != CARAFE_USAGE) return carafe_fail(carafe, CARAFE_INVALID, #call " was not refused")
static CarafeStatus run(void *user, CarafeGraph *g, size_t *fired) {
    (void)user;
    const CarafeGraphFns *f = g->fns;
    const uint32_t *ids;
    const CarafeUse *uses;
    const CarafeBuffer *buffers;
    const CarafeStr *names;
    size_t n;
    uint32_t id;
    CarafeStr text;
    CarafeValue v = {0, 0};
    CarafeAttrs none = {NULL, 0};
    *fired = 0;
    REFUSED(f->nodes(g, NULL, &n));
    REFUSED(f->nodes(g, &ids, NULL));
    REFUSED(f->parameters(g, NULL, NULL));
    REFUSED(f->results(g, NULL, &n));
    REFUSED(f->node(g, 0, NULL));
    REFUSED(f->node(g, 12345, NULL));
    REFUSED(f->attrs(g, 0, NULL));
    REFUSED(f->input(g, 0, 0, NULL));
    REFUSED(f->fact(g, v, NULL));
    REFUSED(f->constant_of(g, v, NULL));
    REFUSED(f->users(g, v, &uses, NULL));
    REFUSED(f->info(g, 0, carafe_str("k"), NULL));
    REFUSED(f->add(g, carafe_str("a"), carafe_str("opset1::Relu"), &v, 1, none, NULL));
    REFUSED(f->add_constant(g, carafe_str("c"), NULL, &v));
    REFUSED(f->evaluate(g, 1, NULL, 0, NULL) == CARAFE_OK ? CARAFE_OK : CARAFE_USAGE);
    REFUSED(f->ir(g, NULL, &buffers, &n));
    REFUSED(f->ir(g, &text, NULL, &n));
    REFUSED(f->ops(g, &names, NULL));
    REFUSED(f->tensor_names(g, v, NULL, &n));
    /* Asked again, a question has the same answer in the same memory. */
    CarafeNodeInfo one, two;
    const uint32_t *again;
    if (f->nodes(g, &ids, &n) || f->nodes(g, &again, &n)) return CARAFE_INVALID;
    if (f->node(g, 0, &one) || f->node(g, 0, &two)) return CARAFE_INVALID;
    if (ids != again || one.name.data != two.name.data)
        return carafe_fail(carafe, CARAFE_INVALID, "the second answer lies elsewhere");
    if (f->set_name(g, 0, carafe_str("renamed")) || f->node(g, 0, &two)) return CARAFE_INVALID;
    if (!carafe_str_is(two.name, "renamed") || carafe_str_is(one.name, "renamed"))
        return carafe_fail(carafe, CARAFE_INVALID, "a change was not seen, or changed what was handed out");
    (void)id;
    return CARAFE_OK;
}
static CarafeStatus convert(void *user, CarafeNode *cx) {
    (void)user;
    const CarafeNodeFns *f = cx->fns;
    CarafeValue x;
    CarafeAttrs none = {NULL, 0};
    REFUSED(f->op_type(cx, NULL));
    REFUSED(f->domain(cx, NULL));
    REFUSED(f->name(cx, NULL));
    REFUSED(f->input(cx, 0, NULL));
    REFUSED(f->input_named(cx, carafe_str("x"), 0, NULL));
    REFUSED(f->output_name(cx, 0, NULL));
    REFUSED(f->attrs(cx, NULL));
    REFUSED(f->attr(cx, carafe_str("a"), NULL));
    CarafeStatus s = f->input(cx, 0, &x);
    if (s != CARAFE_OK) return s;
    REFUSED(f->fact(cx, x, NULL));
    REFUSED(f->constant_of(cx, x, NULL));
    REFUSED(f->emit(cx, carafe_str("opset1::ReLU"), &x, 1, none, NULL));
    REFUSED(f->constant(cx, NULL, &x));
    REFUSED(f->inline_graph(cx, carafe_str("body"), &x, 1, NULL, NULL));
    return f->set_output(cx, 0, x);
}
static CarafeStatus null_graph(void *user, CarafeGraph *g, size_t *fired) {
    (void)user, (void)g;
    *fired = 0;
    g->fns->retain(NULL);
    return CARAFE_OK;
}
CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    CarafePass pass = {0};
    pass.size = sizeof pass;
    pass.abi = CARAFE_ABI_MAJOR;
    pass.phase = CARAFE_PHASE_FRONT;
    pass.name = "nulls";
    pass.run = NULL_GRAPH ? null_graph : run;
    CarafeRule rule = {0};
    rule.size = sizeof rule;
    rule.abi = CARAFE_ABI_MAJOR;
    rule.domain = "acme.ai";
    rule.op_type = "Same";
    rule.since = 1;
    rule.convert = convert;
    CarafeStatus s = r->fns->add_pass(r, &pass);
    return s ? s : r->fns->add_rule(r, &rule);
}
"#;

#[test]
fn null_places_are_refused_by_graphs_and_source_nodes() {
    let shop = Workshop::new();
    let core = core_with(&shop.c("nulls", &GRAPH.replace("NULL_GRAPH", "0")));
    onnx(&core, "g (float[2] x) => (float[2] y) { t = acme.ai.Same(x) y = Relu(t) }").unwrap();
    let core = core_with(&shop.c("null_graph", &GRAPH.replace("NULL_GRAPH", "1")));
    let model = onnx(&core, "g (float[2] x) => (float[2] y) { y = Relu(x) }");
    tells(model, &["null_graph", "a null pointer for a graph"]);
}
