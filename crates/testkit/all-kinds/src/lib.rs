//! One of everything an extension library in Rust can bring, for tests. What is worth copying is in
//! `examples/template-extension`; here are the rarer kinds, and operations that misbehave on purpose.

use carafe_sdk::prelude::*;
use std::sync::atomic::{AtomicI64, Ordering};

mod kernels;
mod rewrites;

attr_enum! {
    /// A choice.
    #[derive(Default)]
    pub enum Mode {
        /// The first.
        #[default]
        Near = "near",
        /// The second.
        Far = "far",
    }
}

/// An attribute of every kind; tells what it was given as a string.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "kinds", inputs = "data", outputs = "output")]
pub struct EveryAttr {
    #[attr(default = false)]
    pub flag: bool,
    #[attr(default = -7)]
    pub count: i64,
    #[attr(default = 0.5)]
    pub ratio: f64,
    #[attr(default = "none".to_string())]
    pub label: String,
    #[attr(default = vec![])]
    pub ints: Vec<i64>,
    #[attr(default = vec![])]
    pub floats: Vec<f64>,
    #[attr(default = vec![])]
    pub words: Vec<String>,
    #[attr(default = ElementType::F32)]
    pub ty: ElementType,
    #[attr(default = vec![])]
    pub types: Vec<ElementType>,
    #[attr(default = PartialShape::dynamic())]
    pub shape: PartialShape,
    #[attr(default = Mode::Near)]
    pub mode: Mode,
    #[attr(default = None)]
    pub bound: Option<i64>,
    #[attr(default = None)]
    pub table: Option<TensorAttr>,
}

impl Op for EveryAttr {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.set(0, ElementType::String, PartialShape::of(&[1]));
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        fn list<T: ToString>(items: &[T]) -> String {
            items.iter().map(T::to_string).collect::<Vec<_>>().join(",")
        }
        let shape = self.shape.dims().map(|dims| {
            let bounds: Vec<String> = dims.iter().map(|d| format!("{}..{}", d.min(), d.max().unwrap_or(-1))).collect();
            bounds.join(",")
        });
        let table = match &self.table {
            Some(t) => list(&t.0.to_vec::<f32>()?),
            None => "none".into(),
        };
        let text = [
            self.flag.to_string(),
            self.count.to_string(),
            self.ratio.to_string(),
            self.label.clone(),
            list(&self.ints),
            list(&self.floats),
            list(&self.words),
            self.ty.to_string(),
            list(&self.types),
            shape.unwrap_or("any".into()),
            self.mode.text().to_string(),
            self.bound.map_or("none".into(), |b| b.to_string()),
            table,
        ]
        .join("|");
        cx.set(0, Tensor::from_strings(&[1], vec![text])?)
    }
}

/// The places of the elements that are not zero; how many there are is known only when it runs.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "kinds", inputs = "data", outputs = "places")]
pub struct Places;

impl Op for Places {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let most = cx.shape(0).elements().and_then(|n| i64::try_from(n).ok());
        cx.set(0, ElementType::I64, PartialShape::new([Dim::range(0, most)]));
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let positions: Vec<i64> =
            cx.get::<f32>(0)?.iter().enumerate().filter(|(_, x)| **x != 0.0).map(|(i, _)| i as i64).collect();
        cx.put(0, &[positions.len()], positions)
    }
}

/// Adds to a variable and gives the sum so far.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "kinds", inputs = "data", outputs = "sum", stateful)]
pub struct RunningSum {
    #[attr(default = "sum".to_string())]
    pub variable_id: String,
}

impl Op for RunningSum {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let mut sum = cx.get::<f32>(0)?.into_owned();
        if let Some(before) = cx.variable(&self.variable_id) {
            sum.iter_mut().zip(before.to_vec::<f32>()?.iter()).for_each(|(s, b)| *s += b);
        }
        cx.assign(&self.variable_id, Tensor::from_slice(&shape, &sum)?);
        cx.put(0, &shape, sum)
    }
}

/// Stands in for the built-in Softsign: the same type and opset, another result.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "opset9", name = "SoftSign", inputs = "data", outputs = "output")]
pub struct OtherSoftSign;

impl Op for OtherSoftSign {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let n = cx.input(0).len();
        cx.put(0, &shape, vec![42f32; n])
    }
}

/// Twice the input; a kernel does the same in blocked memory.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "kinds", inputs = "data", outputs = "output", elementwise, keeps_zero)]
pub struct Twice;

impl Op for Twice {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let y = cx.get::<f32>(0)?.iter().map(|x| x * 2.0).collect();
        let shape = cx.shape(0).to_vec();
        cx.put::<f32>(0, &shape, y)
    }
}

/// `x * factor + hint`, where the hint is never written to a file.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "kinds", inputs = "data", outputs = "output", rows = "0")]
pub struct Hinted {
    #[attr(default = 1.0)]
    pub factor: f64,
    #[attr(default = 10.0, internal)]
    pub hint: f64,
}

impl Op for Hinted {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let y = cx.get::<f32>(0)?.iter().map(|x| (f64::from(*x) * self.factor + self.hint) as f32).collect();
        let shape = cx.shape(0).to_vec();
        cx.put::<f32>(0, &shape, y)
    }
}

/// Fails in the way it is told to.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "kinds", inputs = "data", outputs = "output")]
pub struct Fails {
    /// `infer panics`, `eval panics`, `eval errors`, `no output`, `part panics`, `part errors`, `drop panics`, `bomb`.
    pub how: String,
}

impl Drop for Fails {
    fn drop(&mut self) {
        if self.how == "drop panics" && !std::thread::panicking() {
            panic!("drop was told to panic");
        }
    }
}

/// What a panic may carry: its end panics in turn.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the bomb went off");
    }
}

impl Op for Fails {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        if self.how == "infer panics" {
            panic!("infer was told to panic");
        }
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        match self.how.as_str() {
            "eval panics" => panic!("eval was told to panic"),
            "eval errors" => Err(cx.fail("eval was told to fail")),
            "no output" => Ok(()),
            "bomb" => std::panic::panic_any(Bomb),
            "part panics" => {
                let mut y = vec![0f32; 100_000];
                let sum = std::sync::atomic::AtomicUsize::new(0);
                parallel_for(y.len(), |part| {
                    assert!(!part.contains(&70_000), "part was told to panic");
                    sum.fetch_add(part.len(), Ordering::Relaxed);
                });
                y.truncate(4);
                cx.put(0, &[4], y)
            }
            "part errors" => {
                try_parallel_for(100_000, |part| match part.contains(&70_000) {
                    true => Err(Error::invalid("part was told to fail")),
                    false => Ok(()),
                })?;
                let x = cx.input(0).clone();
                cx.set(0, x)
            }
            _ => {
                let x = cx.input(0).clone();
                cx.set(0, x)
            }
        }
    }
}

static STEPS: AtomicI64 = AtomicI64::new(0);
static EVENTS: AtomicI64 = AtomicI64::new(0);

/// How many steps of progress and how many events the library has heard of.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "kinds", inputs = "data", outputs = "heard", random)]
pub struct Heard;

impl Op for Heard {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.set(0, ElementType::I64, PartialShape::of(&[2]));
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        cx.put(0, &[2], vec![STEPS.load(Ordering::Relaxed), EVENTS.load(Ordering::Relaxed)])
    }
}

fn steep(n: &mut NodeCx<'_>) -> Result<Outputs> {
    // Reads an attribute of every kind that the format has.
    let scale: f32 = n.required("scale")?;
    let times: i64 = n.attr("times", 1)?;
    let label: String = n.attr("label", String::new())?;
    let axes: Vec<i64> = n.attr("axes", vec![])?;
    let weights: Vec<f32> = n.attr("weights", vec![])?;
    let words: Vec<String> = n.attr("words", vec![])?;
    let x = n.input(0)?;
    let by = scale as f64 * times as f64
        + (label.len() + axes.len() + words.len()) as f64
        + weights.iter().map(|w| f64::from(*w)).sum::<f64>();
    let by = n.scalar_like(x, by)?;
    let mut y = n.emit(ops::arithmetic::Multiply::default(), &[x, by])?;
    if n.has(1) {
        let b = n.input(1)?;
        // By name: the engine makes it, before the rule has ended.
        y = n.emit_named("Add", [("auto_broadcast", "numpy".into())], &[y, b])?;
    }
    let named = if n.wants_output(1) { vec![y, x] } else { vec![y] };
    Ok(named.into())
}

fn own_op(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    Ok(n.emit(Places, &[x])?.into())
}

carafe_sdk::export_extension! {
    name: "all kinds",
    ops: [EveryAttr, Places, RunningSum, OtherSoftSign, Twice, Hinted, Fails, Heard],
    rules: [
        Rule::new("Steep", steep).framework("onnx").domain("kinds"),
        Rule::new("Nonzeros", own_op).domain("kinds"),
    ],
    mappings: [
        // The type alone, a rename, attributes by name and by value, both, from an input, of the numbered opsets.
        Mapping::new("kinds::Places").framework("onnx").domain("kinds"),
        Mapping::new("kinds::Places").framework("onnx").domain("kinds").from_type("WhereTrue"),
        Mapping::new("kinds::EveryAttr").framework("onnx").domain("kinds").from_type("Tell").attr("label", "text").value("count", AttrValue::Int(12)),
        Mapping::new("kinds::EveryAttr").framework("onnx").domain("kinds").from_type("TellInput").attr_from_input("ints", 1).attr_from_input("ratio", 2),
        Mapping::new("Relu").framework("onnx").domain("kinds").from_type("ReluAlias"),
        Mapping::new("opset1::Elu").framework("onnx").domain("kinds").from_type("Elu1").value("alpha", AttrValue::Float(2.0)),
        Mapping::new("opset1.Sigmoid").framework("onnx").domain("kinds").from_type("Sigmoid1"),
        Mapping { input_names: vec!["X".into()], output_names: vec!["Out".into()], ..Mapping::new("opset1::Tanh").framework("paddle").from_type("tanh2") },
    ],
    front: [rewrites::Mark { name: "kinds_front", key: "front" }],
    middle: [
        rewrites::Mark { name: "kinds_middle", key: "middle" },
        rewrites::Late,
    ],
    back: [rewrites::Mark { name: "kinds_back", key: "back" }],
    replacements: [rewrites::EluBlock],
    kernels: [kernels::Blocked8],
    more: |r| {
        r.model_pass(Phase::Middle, rewrites::Early);
        r.model_pass(Phase::Front, rewrites::Asked);
        r.model_pass(Phase::Decoded, rewrites::Decoded);
        r.cl_kernel("GPU", kernels::CL_XML, kernels::CL_SOURCE);
        r.progress(|part, total, done| {
            assert!((0.0..=1.0).contains(&part) && done <= total);
            STEPS.fetch_add(1, Ordering::Relaxed);
        });
        r.telemetry(|_kind, _category, _action, _label, _value| {
            EVENTS.fetch_add(1, Ordering::Relaxed);
        });
    },
}
