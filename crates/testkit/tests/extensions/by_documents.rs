//! What the guides promise of extensions, through libraries: an operation that takes any attribute gets them from every
//! format, one without an evaluation is left to kernels, rules take what they read, and folders are loaded whole.

use crate::support::*;
use carafe::{Core, Extension, Log, Mapping, Model, Properties, ReadRequest, Result, Rule};
use carafe_testkit::libraries::{Workshop, rust_library};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

// `Counting` adds the number of its attributes, declared or not; `Kernelled` has no evaluation; neither has `Elsewhere`, which
// a kernel for TEMPLATE runs: it adds 3.
const LIBRARY: &str = r#"#include "carafe.h"
#include <stdlib.h>
CARAFE_LIBRARY
static const CarafePort port[] = {{"x", 0, 0}};
static CarafeStatus create(void *user, CarafeAttrs attrs, void **out) {
    (void)user;
    size_t *n = malloc(sizeof *n);
    *n = attrs.n;
    *out = n;
    return CARAFE_OK;
}
static void destroy(void *instance) { free(instance); }
static CarafeStatus infer(const void *i, CarafeInfer *cx) {
    (void)i;
    CarafeFact x;
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    return s ? s : cx->fns->set_output(cx, 0, &x);
}
static CarafeStatus eval(const void *instance, CarafeEval *cx) {
    CarafeTensor x;
    void *y;
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    if (s == CARAFE_OK) s = cx->fns->output(cx, 0, CARAFE_F32, x.rank, x.shape, &y);
    if (s != CARAFE_OK) return s;
    for (size_t i = 0; i < carafe_elements(&x); i++) ((float *)y)[i] = ((const float *)x.data)[i] + *(const size_t *)instance;
    return CARAFE_OK;
}
static CarafeStatus convert(void *user, CarafeNode *cx) {
    (void)user;
    CarafeValue x, y;
    CarafeAttr a;
    CarafeAttrs none = {NULL, 0};
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    if (s == CARAFE_OK) s = cx->fns->attr(cx, carafe_str("read"), &a);
    if (s == CARAFE_OK) s = cx->fns->emit(cx, carafe_str("opset1::Abs"), &x, 1, none, &y);
    return s ? s : cx->fns->set_output(cx, 0, y);
}
static CarafeStatus configs(void *user, const CarafeSite *site, CarafeConfigSink offer, void *sink) {
    (void)user, (void)site;
    CarafeLayout plain = {CARAFE_F32, 0, NULL, NULL, -1, 0};
    CarafeConfig config = {&plain, 1, &plain, 1};
    return offer(sink, &config);
}
static CarafeStatus init(void *user, const CarafeSite *site, size_t config, void **kernel) {
    (void)user, (void)site, (void)config;
    size_t *n = malloc(sizeof *n);
    *n = 3;
    *kernel = n;
    return CARAFE_OK;
}
static CarafeStatus execute(void *kernel, CarafeEval *cx) { return eval(kernel, cx); }
CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    CarafeOp op = {0};
    op.size = sizeof op;
    op.abi = CARAFE_ABI_MAJOR;
    op.flags = CARAFE_OP_ANY_ATTRS;
    op.name = "Counting";
    op.opset = "docs";
    op.inputs = port;
    op.n_inputs = 1;
    op.outputs = port;
    op.n_outputs = 1;
    op.create = create;
    op.release = destroy;
    op.infer = infer;
    op.eval = eval;
    CarafeStatus s = r->fns->add_op(r, &op);
    op.name = "Kernelled";
    op.flags = 0;
    op.eval = NULL;
    if (s == CARAFE_OK) s = r->fns->add_op(r, &op);
    op.name = "Elsewhere";
    if (s == CARAFE_OK) s = r->fns->add_op(r, &op);
    CarafeKernel kernel = {0};
    kernel.size = sizeof kernel;
    kernel.abi = CARAFE_ABI_MAJOR;
    kernel.device = "TEMPLATE";
    kernel.op = "Elsewhere";
    kernel.name = "plus_three";
    kernel.configs = configs;
    kernel.init = init;
    kernel.execute = execute;
    kernel.release = destroy;
    if (s == CARAFE_OK) s = r->fns->add_kernel(r, &kernel);
    CarafeRule rule = {0};
    rule.size = sizeof rule;
    rule.abi = CARAFE_ABI_MAJOR;
    rule.op_type = "Reading";
    rule.convert = convert;
    return s ? s : r->fns->add_rule(r, &rule);
}
"#;

fn with_library(check: impl FnOnce(&Core, &Workshop)) {
    let shop = Workshop::new();
    let core = core_with(&shop.c("docs", LIBRARY));
    check(&core, &shop);
}

fn heard(core: &Core, path: &Path) -> (Result<Model>, Vec<String>) {
    let lines = RefCell::new(vec![]);
    let hear = |_, text: &str| lines.borrow_mut().push(text.to_string());
    let model = core.read(&ReadRequest { log: Log::to(&hear, false), ..ReadRequest::new(path) });
    (model, lines.into_inner())
}

fn onnx_file(shop: &Workshop, node: &str) -> PathBuf {
    let head = r#"<ir_version: 8, opset_import: ["" : 17, "docs" : 1, "kinds" : 1]>"#;
    shop.write("docs.onnxtxt", format!("{head} g (float[4] x) => (float[4] y) {{ y = {node} (x) }}"))
}

#[test]
fn an_operation_that_takes_any_attribute_gets_them_from_every_format() {
    with_library(|core, shop| {
        let text = onnx_file(shop, "docs.Counting <a = 1.5, b = \"two\", c = [1, 2, 3]>");
        let net = "input: 'x' input_shape { dim: 4 }
            layer { name: 'y' type: 'Counting' bottom: 'x' top: 'y' counting_param { a: 1.5 b: 'two' c: 3 } }";
        let net = shop.write("docs.prototxt", net);
        let ir = shop.write("docs.xml", ir_text("Counting", "docs", r#"a="1.5" b="two" c="3""#, "FP32", ""));
        for path in [text, net, ir] {
            let (model, lines) = heard(core, &path);
            let model = model.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            assert_eq!(floats(&run(core, &model, &[0.0; 4]).unwrap()), [3.0; 4], "{}", path.display());
            assert!(lines.is_empty(), "{lines:?}");
            // Once more through IR.
            let out = shop.path("again.xml");
            carafe::ir::write_file(&model, &out, &carafe::ir::WriteOptions::default()).unwrap();
            let again = core.read_model(&out).unwrap();
            assert_eq!(floats(&run(core, &again, &[0.0; 4]).unwrap()), [3.0; 4]);
        }
        let by_mapping = Mapping::new("docs::Counting").from_type("Counted").attr("ours", "theirs");
        core.add_extension(by_mapping).unwrap();
        let model = heard(core, &onnx_file(shop, "docs.Counted <theirs = 1, d = 2>")).0.unwrap();
        assert_eq!(floats(&run(core, &model, &[0.0; 4]).unwrap()), [2.0; 4]);
    });
}

#[test]
fn an_operation_without_evaluation_is_refused_by_devices_without_a_kernel() {
    with_library(|core, shop| {
        let model = core.read_model(onnx_file(shop, "docs.Kernelled")).unwrap();
        for device in ["CPU", "TEMPLATE"] {
            let query = core.query_model(&model, device, &Properties::new()).unwrap();
            assert!(query.unsupported[0].reason.contains("no evaluation"), "{query:?}");
        }
        let e = core.compile_model(&model, "HETERO:CPU,TEMPLATE", &Properties::new()).err().unwrap().to_string();
        assert!(e.contains("no kernel of it for CPU") && e.contains("no kernel of it for TEMPLATE"), "{e}");
    });
}

#[test]
fn hetero_finds_the_device_that_a_library_has_a_kernel_for() {
    with_library(|core, shop| {
        let head = r#"<ir_version: 8, opset_import: ["" : 17, "docs" : 1]>"#;
        let graph = "g (float[N] x) => (float[N] y) { a = Abs (x) b = docs.Elsewhere (a) y = Neg (b) }";
        let model = core.read_model(shop.write("m.onnxtxt", format!("{head} {graph}"))).unwrap();
        let compiled = core.compile_model(&model, "HETERO:CPU,TEMPLATE", &Properties::new()).unwrap();
        let request = compiled.create_infer_request();
        for x in [&[-1f32, 2.0][..], &[5.0]] {
            request.set_input(0, carafe::Tensor::from_slice(&[x.len()], x).unwrap()).unwrap();
            request.infer(()).unwrap();
            let wanted: Vec<f32> = x.iter().map(|x| -(x.abs() + 3.0)).collect();
            assert_eq!(floats(&request.output(0).unwrap()), wanted);
        }
    });
}

#[test]
fn what_a_rule_in_c_does_not_read_is_told() {
    with_library(|core, shop| {
        let (model, lines) = heard(core, &onnx_file(shop, "docs.Reading <read = 1, left = 2>"));
        assert!(model.is_ok(), "{model:?}");
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("does not read `left`"), "{lines:?}");
    });
}

#[test]
fn what_a_rule_in_rust_does_not_read_is_told() {
    let shop = Workshop::new();
    let core = core_with(&rust_library("template_extension"));
    let head = r#"<ir_version: 8, opset_import: ["" : 17, "acme.rust" : 1]>"#;
    let graph = "g (float[4] x) => (float[4] y) { y = acme.rust.Cube <left = 2> (x) }";
    let (model, lines) = heard(&core, &shop.write("m.onnxtxt", format!("{head} {graph}")));
    assert!(model.is_ok(), "{model:?}");
    assert!(lines.iter().any(|l| l.contains("does not read `left`")), "{lines:?}");
}

#[test]
fn a_folder_is_loaded_whole() {
    let shop = Workshop::new();
    let folder = shop.path("libraries");
    std::fs::create_dir(&folder).unwrap();
    let empty = carafe::core().add_extension(folder.as_path());
    tells(empty, &["has no extension library in it", "libraries"]);
    let (a, b) = (shop.c("docs", LIBRARY), ALL_KINDS[1].1.clone());
    let other = shop.c("other", "int answer(void) { return 42; }");
    for library in [a, b, other] {
        std::fs::copy(&library, folder.join(library.file_name().unwrap())).unwrap();
    }
    std::fs::write(folder.join("readme.txt"), "not a library").unwrap();
    let core = carafe::core();
    core.add_extension(folder.as_path()).unwrap();
    let names: Vec<String> = core.extensions().into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["all kinds", "libdocs.so"]);
    std::fs::write(folder.join("libbroken.so"), "not a library").unwrap();
    tells(carafe::core().add_extension(folder.as_path()), &["libbroken.so"]);
}

#[test]
fn two_libraries_with_one_operation_are_told() {
    let shop = Workshop::new();
    let core = carafe::core();
    let lines = Arc::new(Mutex::new(vec![]));
    let to = lines.clone();
    core.add_extension(shop.c("docs", LIBRARY)).unwrap();
    // Said before anybody listened, it is heard all the same.
    core.add_extension(shop.c("docs2", LIBRARY)).unwrap();
    core.set_log_hook(carafe::log::Level::Warning, move |_, text| to.lock().unwrap().push(text.to_string()));
    let lines = lines.lock().unwrap();
    let wanted = "operation `docs::Counting` is in extension `libdocs.so` (libdocs.so) and in extension `libdocs2.so`";
    assert!(lines.iter().any(|l| l.starts_with(wanted)), "{lines:?}");
    let model =
        core.read(&ReadRequest { explain: true, ..ReadRequest::new(&onnx_file(&shop, "docs.Counting")) }).unwrap();
    let row = &core.explain(&model)[0];
    assert!(row.op_from.contains("libdocs2.so"), "{row:?}");
    assert!(row.why.iter().any(|w| w.contains("libdocs.so") && w.contains("is not used")), "{row:?}");
}

#[test]
fn an_opencl_kernel_that_is_wrong_is_told() {
    let core = carafe::core();
    let lines = Arc::new(Mutex::new(vec![]));
    let to = lines.clone();
    core.set_log_hook(carafe::log::Level::Warning, move |_, text| to.lock().unwrap().push(text.to_string()));
    core.add_extension(&ALL_KINDS[1].1).unwrap();
    let lines = lines.lock().unwrap();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("brings an OpenCL kernel for `GPU` that is not used"), "{lines:?}");
    assert!(lines[0].contains("the element <Kernel> is missing"), "{lines:?}");
}

#[test]
fn two_extensions_of_the_program_with_one_name_are_refused() {
    let pass_on = |n: &mut carafe::NodeCx<'_>| n.input(0).map(carafe::RuleOutputs::from);
    let first = Extension::new("mine").rule(Rule::new("A", pass_on));
    let core = carafe::core();
    core.add_extension(first.clone()).unwrap();
    core.add_extension(first).unwrap();
    assert_eq!(core.extensions().len(), 1);
    let second = || Extension::new("mine").rule(Rule::new("B", pass_on));
    tells(core.add_extension(second()), &["two extensions of the program are named `mine`"]);
    tells(carafe::core().add_extension([second(), second()]), &["named `mine`"]);
    assert_eq!(core.extensions().len(), 1);
}

#[test]
fn rules_and_mappings_are_added_one_by_one() {
    let core = carafe::core();
    core.add_extension(Rule::new("PassOn", |n| n.input(0).map(Into::into))).unwrap();
    core.add_extension(Mapping::new("Relu").from_type("MyRelu")).unwrap();
    core.add_extension([Mapping::new("Abs").from_type("MyAbs"), Mapping::new("Negative").from_type("MyNeg")]).unwrap();
    let graph = "g (float[2] x) => (float[2] y) {
        a = kinds.PassOn(x)  b = kinds.MyAbs(a)  c = kinds.MyNeg(b)  y = kinds.MyRelu(c) }";
    assert_eq!(floats(&run(&core, &onnx(&core, graph).unwrap(), &[-1.0, 2.0]).unwrap()), [0.0, 0.0]);
    tells(core.add_extension(Mapping::new("a::b::c")), &["names no operation"]);
}
