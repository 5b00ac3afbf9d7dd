//! What the boundary costs: chains of operations that do nothing, built in and from libraries in C and in Rust, in time
//! for each node. `cargo bench -p carafe-testkit --bench boundary`; the aim is less than a microsecond more.

use carafe::prelude::*;
use carafe::{Core, Properties};
use carafe_testkit::libraries::{Workshop, rust_library};
use std::time::{Duration, Instant};

const NODES: usize = 1000;
const ROUNDS: usize = 200;

/// Gives its input.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "bench", inputs = "data", outputs = "output", random)]
struct Pass;

impl Op for Pass {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let x = cx.input(0).clone();
        cx.set(0, x)
    }
}

/// Gives a copy of its input.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "bench", inputs = "data", outputs = "output", random)]
struct Copied;

impl Op for Copied {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let x = cx.input(0);
        let y = Tensor::from_slice(x.shape(), x.as_slice::<f32>()?)?;
        cx.set(0, y)
    }
}

const C: &str = r#"#include "carafe.h"
CARAFE_LIBRARY
static const CarafePort port[] = {{"x", 0, 0}};
static CarafeStatus infer(const void *i, CarafeInfer *cx) {
    (void)i;
    CarafeFact x;
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    return s ? s : cx->fns->set_output(cx, 0, &x);
}
static CarafeStatus pass(const void *i, CarafeEval *cx) { (void)i; return cx->fns->forward(cx, 0, 0); }
static CarafeStatus copy(const void *i, CarafeEval *cx) {
    (void)i;
    CarafeTensor x;
    void *y;
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    if (s == CARAFE_OK) s = cx->fns->output(cx, 0, x.element_type, x.rank, x.shape, &y);
    if (s == CARAFE_OK) memcpy(y, x.data, x.bytes);
    return s;
}
CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    CarafeOp op = {0};
    op.size = sizeof op;
    op.abi = CARAFE_ABI_MAJOR;
    op.flags = CARAFE_OP_RANDOM;
    op.opset = "bench_c";
    op.inputs = op.outputs = port;
    op.n_inputs = op.n_outputs = 1;
    op.infer = infer;
    op.name = "Pass";
    op.eval = pass;
    CarafeStatus s = r->fns->add_op(r, &op);
    op.name = "Copied";
    op.eval = copy;
    return s ? s : r->fns->add_op(r, &op);
}
"#;

/// Kernels of Copied for CPU, in plain memory and in blocks of eight channels.
const KERNELS: &str = r#"#include "carafe.h"
CARAFE_LIBRARY
static CarafeStatus configs(void *user, const CarafeSite *site, CarafeConfigSink offer, void *sink) {
    const CarafeFact *x = &site->inputs[0];
    size_t order[5] = {0, 1, 2, 3, 1}, blocks[5] = {0, 0, 0, 0, 8};
    if (x->rank != 4) return CARAFE_OK;
    for (int i = 0; i < 4; i++) blocks[i] = (size_t)x->dims[i].min;
    blocks[1] = (blocks[1] + 7) / 8;
    CarafeLayout form = {CARAFE_F32, user ? 5 : 0, blocks, order, -1, 0};
    CarafeConfig config = {&form, 1, &form, 1};
    return offer(sink, &config);
}
static CarafeStatus init(void *user, const CarafeSite *site, size_t config, void **kernel) {
    (void)user, (void)site, (void)config;
    *kernel = NULL;
    return CARAFE_OK;
}
static CarafeStatus execute(void *kernel, CarafeEval *cx) {
    (void)kernel;
    CarafeTensor x;
    void *y;
    CarafeStatus s = cx->fns->input(cx, 0, &x);
    if (s == CARAFE_OK) s = cx->fns->output(cx, 0, x.element_type, x.rank, x.shape, &y);
    if (s == CARAFE_OK) memcpy(y, x.data, x.bytes);
    return s;
}
static CarafeStatus run(const void *kernel, const CarafeKernelIo *io) {
    (void)kernel;
    memcpy(io->outputs[0].data, io->inputs[0].data, io->inputs[0].bytes);
    return CARAFE_OK;
}
CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *r) {
    carafe = host;
    static int blocked;
    CarafeKernel k = {0};
    k.size = sizeof k;
    k.abi = CARAFE_ABI_MAJOR;
    k.device = "CPU";
    k.op = "Copied";
    k.name = FORM;
    k.user = strcmp(FORM, "plain") ? &blocked : NULL;
    k.configs = configs;
    k.init = init;
    k.execute = execute;
    if (RUNS) k.run = run;
    return r->fns->add_kernel(r, &k);
}
"#;

/// A convolution, the operation, a convolution.
fn between_convolutions() -> Model {
    let conv = || carafe::ops::convolution::Convolution {
        strides: vec![1, 1],
        pads_begin: vec![1, 1],
        pads_end: vec![1, 1],
        dilations: vec![1, 1],
        auto_pad: carafe::ops::convolution::window::PadType::Explicit,
    };
    let mut m = Model::new("kernel");
    let x = m.parameter("x", ElementType::F32, "1,16,32,32".parse().unwrap()).unwrap();
    let weights = Tensor::from_vec(&[16, 16, 3, 3], vec![0.01f32; 16 * 16 * 9]).unwrap();
    let w = m.constant("w", weights).unwrap();
    let a = m.add("a", conv(), &[x, w]).unwrap();
    let k = m.add("k", Copied, &[a.into()]).unwrap();
    let b = m.add("b", conv(), &[k.into(), w]).unwrap();
    m.result("y", b.into()).unwrap();
    m
}

/// Time for each inference with so many streams of one thread, all at work.
fn per_inference(core: &Core, model: &Model, streams: usize) -> Duration {
    const INFERENCES: usize = 300;
    let properties = Properties::new().with("NUM_STREAMS", streams).with("INFERENCE_NUM_THREADS", streams);
    let compiled = core.compile_model(model, "CPU", &properties).unwrap();
    let requests: Vec<_> = (0..streams).map(|_| compiled.create_infer_request()).collect();
    for r in &requests {
        r.set_input(0, Tensor::from_vec(&[1, 16, 32, 32], vec![1f32; 16 * 1024]).unwrap()).unwrap();
        r.infer(()).unwrap();
    }
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        std::thread::scope(|s| {
            for r in &requests {
                s.spawn(move || (0..INFERENCES).for_each(|_| drop(r.infer(()).unwrap())));
            }
        });
        best = best.min(start.elapsed());
    }
    best / (INFERENCES * streams) as u32
}

fn kernels() {
    println!("a kernel between two convolutions of 16x32x32 on CPU, best of 5; microseconds for each inference");
    for (form, runs) in [("plain", 0), ("plain", 1), ("blocked", 0), ("blocked", 1)] {
        let shop = Workshop::new();
        let core = carafe::core();
        core.add_ops([OpFactory::of::<Copied>()]);
        let source = format!("#define FORM \"{form}\"\n#define RUNS {runs}\n{KERNELS}");
        core.add_extension(shop.c(form, &source)).unwrap();
        let entry = if runs == 1 { "run" } else { "execute" };
        for streams in [1, 2] {
            let time = per_inference(&core, &between_convolutions(), streams);
            println!("{form:8} {entry:8} {streams} streams {:8.1} us", time.as_nanos() as f64 / 1e3);
        }
    }
}

fn chain(core: &Core, op: &str, opset: &str, attrs: &AttrMap) -> Model {
    let registry = core.registry();
    let factory = registry.find(op, opset).expect("a registered operation");
    let mut m = Model::new(op);
    let mut v = m.parameter("x", ElementType::F32, "16".parse().unwrap()).unwrap();
    for i in 0..NODES {
        let op = factory.create(attrs).unwrap();
        v = m.add_ref(format!("n{i}"), op, &[v]).unwrap().into();
    }
    m.result("y", v).unwrap();
    m
}

// The best of many rounds: what the work costs when nothing else happens.
fn per_node(core: &Core, model: &Model) -> Duration {
    let r = core.compile_model(model, "TEMPLATE", &Properties::new()).unwrap().create_infer_request();
    r.set_input(0, Tensor::from_slice(&[16], &[1f32; 16]).unwrap()).unwrap();
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        r.infer(()).unwrap();
        best = best.min(start.elapsed());
    }
    best / NODES as u32
}

fn main() {
    kernels();
    let shop = Workshop::new();
    let core = carafe::core();
    core.add_ops([OpFactory::of::<Pass>(), OpFactory::of::<Copied>()]);
    core.add_extension([shop.c("bench", C), rust_library("carafe_all_kinds")]).unwrap();
    let none = AttrMap::new();
    let mut nothing = AttrMap::new();
    nothing.set("how", AttrValue::Str("nothing".into()));
    let rows = [
        ("forward", "built in", chain(&core, "Pass", "bench", &none)),
        ("forward", "C", chain(&core, "Pass", "bench_c", &none)),
        ("forward", "Rust library", chain(&core, "Fails", "kinds", &nothing)),
        ("copy", "built in", chain(&core, "Copied", "bench", &none)),
        ("copy", "C", chain(&core, "Copied", "bench_c", &none)),
    ];
    println!("{NODES} nodes, 16 floats each, best of {ROUNDS}; nanoseconds for each node");
    let mut base = Duration::ZERO;
    for (what, side, model) in &rows {
        let time = per_node(&core, model);
        if *side == "built in" {
            base = time;
        }
        let more = time.as_nanos() as i128 - base.as_nanos() as i128;
        println!("{what:8} {side:12} {:6} ns  ({more:+} ns)", time.as_nanos());
    }
}
