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
