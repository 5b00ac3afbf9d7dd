//! Libraries whose tables or answers are wrong: an error with the library's name, nothing of it is kept, the core goes on.

use crate::support::*;
use carafe_testkit::libraries::Workshop;

const HEAD: &str = r#"#define _GNU_SOURCE
#include "carafe.h"
#include <sys/mman.h>
CARAFE_LIBRARY
/* The first bytes of a table at the end of what is mapped: it is smaller than it says. */
static inline void *at_the_end(const void *table, size_t bytes) {
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + 4096, 4096);
    return memcpy(pages + 4096 - bytes, table, bytes);
}
static const CarafePort port[] = {{"x", 0, 0}};
static inline CarafeStatus infer(const void *i, CarafeInfer *cx) {
    (void)i;
    CarafeFact x;
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    return s ? s : cx->fns->set_output(cx, 0, &x);
}
static inline CarafeStatus eval(const void *i, CarafeEval *cx) { (void)i; return cx->fns->forward(cx, 0, 0); }
static inline CarafeOp good(void) {
    CarafeOp op = {0};
    op.size = sizeof op;
    op.abi = CARAFE_ABI_MAJOR;
    op.name = "Good";
    op.inputs = port;
    op.n_inputs = 1;
    op.outputs = port;
    op.n_outputs = 1;
    op.infer = infer;
    op.eval = eval;
    return op;
}
static inline CarafeStatus convert(void *u, CarafeNode *cx) { (void)u, (void)cx; return CARAFE_OK; }
"#;

// The library does not look at what `add_*` answers.
fn with(body: &str) -> String {
    format!(
        "{HEAD}CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {{\n\
         carafe = host;\nCarafeOp op = good();\n{body}\n(void)op;\nreturn CARAFE_OK;\n}}"
    )
}

#[test]
fn wrong_tables_are_refused_whole() {
    let cases: &[(&str, &str)] = &[
        ("r->fns->add_op(r, NULL);", "null pointer"),
        ("op.size = 8; r->fns->add_op(r, &op);", "says it has 8 bytes"),
        ("op.size = 0; r->fns->add_op(r, &op);", "says it has 0 bytes"),
        ("op.size = (size_t)1 << 40; r->fns->add_op(r, &op);", "says it has 1099511627776 bytes"),
        ("op.abi = 7; r->fns->add_op(r, &op);", "is for ABI 7"),
        ("r->fns->add_op(r, (const CarafeOp *)((char *)&op + 1));", "misaligned"),
        ("op.name = NULL; r->fns->add_op(r, &op);", "the name of an operation is a null pointer"),
        ("op.name = \"\"; r->fns->add_op(r, &op);", "needs a name"),
        (
            "op.name = (const char *)64; r->fns->add_op(r, &op);",
            "the name of an operation: 1 bytes at 0x40 are not all there",
        ),
        ("r->fns->add_op(r, (const CarafeOp *)64);", "the table of an operation: 16 bytes at 0x40 are not all there"),
        (
            "op.inputs = (const CarafePort *)64; op.n_inputs = 2; r->fns->add_op(r, &op);",
            "inputs: 32 bytes at 0x40 are not all there",
        ),
        (
            "CarafeOp *cut = at_the_end(&op, offsetof(CarafeOp, n_inputs)); r->fns->add_op(r, cut);",
            "the table of an operation",
        ),
        ("op.name = \"\\xff\\xfe\"; r->fns->add_op(r, &op);", "not UTF-8"),
        ("op.opset = \"\\xc3\"; r->fns->add_op(r, &op);", "not UTF-8"),
        ("op.infer = NULL; r->fns->add_op(r, &op);", "`infer`"),
        ("op.inputs = NULL; r->fns->add_op(r, &op);", "inputs: 1 elements at a null pointer"),
        ("op.n_inputs = SIZE_MAX; r->fns->add_op(r, &op);", "inputs: 18446744073709551615 elements"),
        ("op.n_outputs = (size_t)1 << 40; r->fns->add_op(r, &op);", "outputs: 1099511627776 elements"),
        ("op.attrs = NULL; op.n_attrs = 3; r->fns->add_op(r, &op);", "attributes: 3 elements at a null pointer"),
        (
            "CarafeAttrInfo a = {NULL, 1, 0, NULL, NULL}; op.attrs = &a; op.n_attrs = 1; r->fns->add_op(r, &op);",
            "the name of an attribute is a null pointer",
        ),
        ("CarafeAttrInfo a = {\"a\", 99, 0, NULL, NULL}; op.attrs = &a; op.n_attrs = 1; r->fns->add_op(r, &op);", "99"),
        (
            "CarafeAttr d = carafe_attr_none(\"a\", CARAFE_ATTR_TYPE); d.i = 999; CarafeAttrInfo a = {\"a\", CARAFE_ATTR_TYPE, 0, &d, NULL}; op.attrs = &a; op.n_attrs = 1; r->fns->add_op(r, &op);",
            "999 is no element type",
        ),
        (
            "CarafeAttr d = carafe_attr_str(\"a\", \"x\"); CarafeAttrInfo a = {\"a\", CARAFE_ATTR_INT, 0, &d, NULL}; op.attrs = &a; op.n_attrs = 1; r->fns->add_op(r, &op);",
            "default of `a`",
        ),
        (
            "CarafeAttr d = carafe_attr_none(\"a\", CARAFE_ATTR_INTS); d.n = 4; CarafeAttrInfo a = {\"a\", CARAFE_ATTR_INTS, 0, &d, NULL}; op.attrs = &a; op.n_attrs = 1; r->fns->add_op(r, &op);",
            "4 elements at a null pointer",
        ),
        (
            "CarafeAttrInfo a = {\"a\", CARAFE_ATTR_INT, 0, NULL, NULL}; static const size_t marks[] = {1}; op.attrs = &a; op.n_attrs = 1; op.internal_attrs = marks; op.n_internal_attrs = 1; r->fns->add_op(r, &op);",
            "attribute 1 is marked internal, there are 1",
        ),
        (
            "CarafeAttrInfo a = {\"a\", CARAFE_ATTR_INT, 1, NULL, NULL}; static const size_t marks[] = {0}; op.attrs = &a; op.n_attrs = 1; op.internal_attrs = marks; op.n_internal_attrs = 1; r->fns->add_op(r, &op);",
            "`a` is internal and required",
        ),
        ("op.n_internal_attrs = 2; r->fns->add_op(r, &op);", "internal attributes: 2 elements at a null pointer"),
        (
            "static const CarafePort many[] = {{\"a\", 0, 1}, {\"b\", 0, 0}}; op.inputs = many; op.n_inputs = 2; r->fns->add_op(r, &op);",
            "only the last port",
        ),
        ("r->fns->describe(r, (CarafeStr){NULL, 5}, carafe_str(\"1\"));", "the name of the extension"),
        ("r->fns->add_rule(r, NULL);", "the table of a rule is a null pointer"),
        (
            "CarafeRule t = {0}; t.size = sizeof t; t.abi = 1; t.op_type = \"X\"; r->fns->add_rule(r, &t);",
            "a rule without a function",
        ),
        (
            "CarafeRule t = {0}; t.size = sizeof t; t.abi = 1; t.convert = convert; r->fns->add_rule(r, &t);",
            "the type of a rule is a null pointer",
        ),
        ("r->fns->add_mapping(r, NULL);", "the table of a mapping is a null pointer"),
        (
            "CarafeMapping t = {0}; t.size = sizeof t; t.abi = 1; r->fns->add_mapping(r, &t);",
            "the target of a mapping is a null pointer",
        ),
        (
            "CarafeMapping t = {0}; t.size = sizeof t; t.abi = 1; t.op = \"Relu\"; t.n_attr_names = 2; r->fns->add_mapping(r, &t);",
            "2 elements at a null pointer",
        ),
        (
            "CarafeMapping t = {0}; t.size = sizeof t; t.abi = 1; t.op = \"a::b::c\"; r->fns->add_mapping(r, &t);",
            "a::b::c",
        ),
        ("r->fns->add_pass(r, NULL);", "the table of a pass is a null pointer"),
        (
            "CarafePass t = {0}; t.size = sizeof t; t.abi = 1; t.name = \"p\"; t.phase = 1; r->fns->add_pass(r, &t);",
            "`p`",
        ),
        (
            "CarafePass t = {0}; t.size = sizeof t; t.abi = 1; t.name = \"p\"; t.phase = 77; r->fns->add_pass(r, &t);",
            "77",
        ),
        ("r->fns->add_kernel(r, NULL);", "the table of a kernel is a null pointer"),
        (
            "CarafeKernel t = {0}; t.size = sizeof t; t.abi = 1; t.op = \"X\"; r->fns->add_kernel(r, &t);",
            "needs `configs`",
        ),
        (
            "CarafeClKernel t = {0}; t.size = sizeof t; t.abi = 1; t.device = \"TOASTER\"; t.xml = t.source = \"\"; r->fns->add_cl_kernel(r, &t);",
            "TOASTER",
        ),
        ("CarafeProgress t = {sizeof t, 1, 0, NULL, NULL}; r->fns->add_progress(r, &t);", "without a function"),
        ("CarafeTelemetry t = {sizeof t, 1, 0, NULL, NULL}; r->fns->add_telemetry(r, &t);", "without a function"),
    ];
    let shop = Workshop::new();
    let core = carafe::core();
    for (i, (body, wanted)) in cases.iter().enumerate() {
        let name = format!("wrong{i}");
        // A good operation beside the wrong table is not kept either.
        let library = shop.c(&name, &with(&format!("CarafeOp beside = good(); r->fns->add_op(r, &beside);\n{body}")));
        let text = core.add_extension(&library).expect_err(body).to_string();
        assert!(text.contains(wanted) && text.contains(&name), "wanted `{wanted}` in `{text}`");
        assert!(core.registry().find("Good", "extension").is_none());
    }
    assert!(core.extensions().is_empty());
    goes_on(&core);
}

// One operation that answers wrongly in the way its attribute says.
const WRONG_ANSWERS: &str = r#"
static CarafeStatus create(void *user, CarafeAttrs attrs, void **instance) {
    (void)user;
    int64_t how = carafe_attr(attrs, "how")->i;
    if (how == 1) return carafe_fail(carafe, CARAFE_INVALID, "create was told to fail");
    *instance = (void *)(intptr_t)how;
    return CARAFE_OK;
}
static void keep(void *instance) { (void)instance; }
static CarafeStatus wrong_infer(const void *instance, CarafeInfer *cx) {
    CarafeFact x, y;
    CarafeTensor t;
    CarafeDim strange = {5, 2, 0, 0};
    float one = 1;
    cx->fns->input(cx, 0, &x);
    y = x;
    switch ((int)(intptr_t)instance) {
    case 10: return CARAFE_OK;
    case 11: return cx->fns->input(cx, 9, &x);
    case 12: return cx->fns->set_output(cx, 0, NULL);
    case 13: return cx->fns->set_output(cx, SIZE_MAX, &x);
    case 14: y.element_type = 999; return cx->fns->set_output(cx, 0, &y);
    case 15: y.rank = 1; y.dims = &strange; return cx->fns->set_output(cx, 0, &y);
    case 16: y.rank = 2; y.dims = NULL; return cx->fns->set_output(cx, 0, &y);
    case 17: y.rank = INT32_MAX; return cx->fns->set_output(cx, 0, &y);
    case 18: return cx->fns->set_output(cx, 3, &x);
    case 19: t = (CarafeTensor){CARAFE_F32, 0, NULL, &one, 4}; return cx->fns->set_value(cx, 0, &t);
    case 20: return cx->fns->value(cx, 77, &t) == CARAFE_OK ? CARAFE_OK : carafe_fail(carafe, CARAFE_INVALID, "no value there");
    default: return cx->fns->set_output(cx, 0, &x);
    }
}
static void released(void *owner) { (void)owner; }
static CarafeStatus wrong_eval(const void *instance, CarafeEval *cx) {
    static float data[4];
    size_t four = 4, huge = SIZE_MAX / 8;
    CarafeTensor x, y = {CARAFE_F32, 1, &four, data, sizeof data};
    void *p;
    switch ((int)(intptr_t)instance) {
    case 30: return CARAFE_OK;
    case 31: return cx->fns->input(cx, 5, &x);
    case 32: return cx->fns->output(cx, 7, CARAFE_F32, 1, &four, &p);
    case 33: return cx->fns->output(cx, 0, 999, 1, &four, &p);
    case 34: return cx->fns->output(cx, 0, CARAFE_F32, 1, NULL, &p);
    case 35: return cx->fns->output(cx, 0, CARAFE_F32, 1, &huge, &p);
    case 36: return cx->fns->output(cx, 0, CARAFE_STRING, 1, &four, &p);
    case 37: y.bytes = 3; return cx->fns->set_output(cx, 0, &y);
    case 38: y.data = NULL; return cx->fns->set_output(cx, 0, &y);
    case 39: return cx->fns->set_output(cx, 0, NULL);
    case 40: y.element_type = CARAFE_I64; y.bytes = 32; return cx->fns->set_output(cx, 0, &y);
    case 41: y.bytes = 99; return cx->fns->give_output(cx, 0, &y, data, released);
    case 42: return cx->fns->forward(cx, 0, 4);
    case 43: return cx->fns->variable(cx, (CarafeStr){NULL, 3}, &x);
    case 44: return 12345;
    case 45: four = 2; y.bytes = 8; return cx->fns->set_output(cx, 0, &y);
    case 46: y.rank = UINT32_MAX; return cx->fns->set_output(cx, 0, &y);
    default: return cx->fns->forward(cx, 0, 0);
    }
}
"#;

#[test]
fn wrong_answers_are_errors_with_node_and_library() {
    let body = "CarafeAttrInfo a = {\"how\", CARAFE_ATTR_INT, 1, NULL, NULL};
        op.name = \"Wrong\"; op.attrs = &a; op.n_attrs = 1;
        op.create = create; op.release = keep; op.infer = wrong_infer; op.eval = wrong_eval;
        r->fns->add_op(r, &op);";
    let source = with(body).replacen(
        "CARAFE_EXPORT CarafeStatus create_ext",
        &format!("{WRONG_ANSWERS}CARAFE_EXPORT CarafeStatus create_ext"),
        1,
    );
    let shop = Workshop::new();
    let core = core_with(&shop.c("wrong_answers", &source));
    let cases = [
        (1, "create was told to fail"),
        (10, "output"),
        (11, "input 9 was asked for, there are 1"),
        (12, "a null pointer for a fact"),
        (13, "output 18446744073709551615 cannot be"),
        (14, "999 is no element type"),
        (15, "a dimension from 5 to 2 cannot be"),
        (16, "2 elements at a null pointer"),
        (17, "rank 2147483647 cannot be"),
        (18, "output"),
        (19, "output 0 has no type and shape yet"),
        (20, "no value there"),
        (30, "output"),
        (31, "input 5 was asked for, there are 1"),
        (32, "output 7 was set, there are 1"),
        (33, "999 is no element type"),
        (34, "null pointer"),
        (35, "wrong_answers"),
        (36, "strings are set with set_output"),
        (37, "3"),
        (38, "null pointer"),
        (39, "a null pointer for a tensor"),
        (40, "i64"),
        (41, "99"),
        (42, "input 4 was asked for, there are 1"),
        (43, "null pointer"),
        (44, "failed with status 12345 and no text"),
        (45, "[2]"),
        (46, "wrong_answers"),
    ];
    for (how, wanted) in cases {
        let result =
            ir(&core, "Wrong", "extension", &format!("how=\"{how}\""), "FP32").and_then(|m| run(&core, &m, &[1.0; 4]));
        let text = match result {
            Ok(t) => panic!("{how} gave {t:?}"),
            Err(e) => e.to_string(),
        };
        assert!(text.contains(wanted) && text.contains("the node"), "{how}: wanted `{wanted}` in `{text}`");
    }
    goes_on(&core);
}
