//! Kernels of extensions on TEMPLATE and CPU: who takes a node, in which memory form, who is told to have run it, and what is
//! said when one cannot.

use carafe::device::{Blocked, Config, Kernel, PortLayout, PreparedKernel, Site};
use carafe::prelude::*;
use carafe::{Core, Extension, Fact, Properties, ops};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Doubles instead of cutting off, so that its work can be seen. Works on channels in blocks of four, as f64.
struct Doubling {
    device: &'static str,
    form: Form,
    ran: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Plain,
    Blocked,
    Declines,
    Fails,
    Panics,
    /// Blocks that are too small for the data.
    SmallBlocks,
    TooManyPorts,
    InitFails,
    /// Gives f32 where f64 was promised.
    OtherType,
}

impl Kernel for Doubling {
    fn device(&self) -> &str {
        self.device
    }
    fn op(&self) -> &str {
        "ReLU"
    }
    fn opset(&self) -> Option<&str> {
        None
    }
    fn name(&self) -> &str {
        "doubling"
    }
    fn configs(&self, site: &Site) -> Result<Vec<Config>> {
        let port = |blocked| PortLayout { ty: ElementType::F64, blocked, in_place: None, constant: false };
        match self.form {
            Form::Declines => return Ok(vec![]),
            Form::Fails => return Err(Error::invalid("no idea")),
            Form::Panics => panic!("lost my way"),
            Form::TooManyPorts => {
                return Ok(vec![Config { inputs: vec![port(None), port(None)], outputs: vec![port(None)] }]);
            }
            Form::SmallBlocks => {
                let blocked = || Some(Blocked { blocks: vec![1, 1, 1], order: vec![0, 1, 2] });
                return Ok(vec![Config { inputs: vec![port(blocked())], outputs: vec![port(None)] }]);
            }
            Form::Plain | Form::InitFails | Form::OtherType => {
                return Ok(vec![Config { inputs: vec![port(None)], outputs: vec![port(None)] }]);
            }
            Form::Blocked => {}
        }
        let Some(shape) = site.inputs[0].shape.to_static() else { return Ok(vec![]) };
        let blocks = vec![shape[0], shape[1].div_ceil(4), shape[2], 4];
        let blocked = || Some(Blocked { blocks: blocks.clone(), order: vec![0, 1, 2, 1] });
        Ok(vec![Config { inputs: vec![port(blocked())], outputs: vec![port(blocked())] }])
    }
    fn init(&self, _: &Site, _: usize) -> Result<Box<dyn PreparedKernel>> {
        match self.form {
            Form::InitFails => Err(Error::invalid("no oil")),
            form => Ok(Box::new(Ready(self.ran.clone(), form))),
        }
    }
}

struct Ready(Arc<AtomicUsize>, Form);

impl PreparedKernel for Ready {
    fn execute(&mut self, inputs: &[Tensor], _: &[Fact]) -> Result<Vec<Tensor>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let doubled: Vec<f64> = inputs[0].as_slice::<f64>()?.iter().map(|x| x * 2.0).collect();
        let doubled = Tensor::from_vec(inputs[0].shape(), doubled)?;
        Ok(vec![if self.1 == Form::OtherType { doubled.cast(ElementType::F32)? } else { doubled }])
    }
}

/// What came of a model of one ReLU.
struct Ran {
    outputs: Vec<Vec<f32>>,
    times: usize,
    kernel: String,
    why: Vec<String>,
    warnings: Vec<String>,
}

fn run_on(device: &'static str, form: Form, shape: &str, batches: &[usize]) -> Result<Ran> {
    run_for(device, device, form, shape, batches)
}

// Runs inputs of these batches on one model compiled for `name`, with a kernel for `device`.
fn run_for(name: &str, device: &'static str, form: Form, shape: &str, batches: &[usize]) -> Result<Ran> {
    let ran = Arc::new(AtomicUsize::new(0));
    let core: Core = carafe::core();
    let warnings = Arc::new(Mutex::new(vec![]));
    let heard = warnings.clone();
    core.set_log_hook(carafe::log::Level::Warning, move |_, text| heard.lock().unwrap().push(text.to_string()));
    core.add_extension(Extension::new("kernels").kernel(Arc::new(Doubling { device, form, ran: ran.clone() })))?;
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, shape.parse::<PartialShape>()?)?;
    let y = m.add("y", ops::activation::Relu, &[x])?;
    m.result("out", y.into())?;
    let compiled = core.compile_model(&m, name, &Properties::new().with("PERF_COUNT", true))?;
    let request = compiled.create_infer_request();
    let mut outputs = vec![];
    for &batch in batches {
        let data: Vec<f32> = [-1f32, 2., 3., 4., 5., 6.].repeat(batch);
        request.set_input(0, Tensor::from_vec(&[batch, 3, 2], data)?)?;
        request.infer(())?;
        outputs.push(request.output(0)?.as_slice::<f32>()?.to_vec());
    }
    let kernel =
        request.profile().unwrap().into_iter().find(|r| r.name == "y" || r.name.ends_with(": y")).unwrap().kernel;
    let mut rows = core.explain(&m);
    core.explain_compiled(&mut rows, name, &compiled, &request.profile().unwrap());
    let why = rows.into_iter().find(|r| r.name == "y").unwrap().why;
    let warnings = warnings.lock().unwrap().clone();
    Ok(Ran { outputs, times: ran.load(Ordering::SeqCst), kernel, why, warnings })
}

fn run(form: Form) -> (Vec<f32>, usize, String) {
    let ran = run_on("TEMPLATE", form, "1,3,2", &[1]).unwrap();
    (ran.outputs[0].clone(), ran.times, ran.kernel)
}

#[test]
fn a_kernel_gets_its_precision_and_is_named_in_the_profile() {
    assert_eq!(run(Form::Plain), (vec![-2., 4., 6., 8., 10., 12.], 1, "doubling".into()));
}

#[test]
fn a_kernel_gets_a_blocked_layout_and_the_result_comes_back_plain() {
    assert_eq!(run(Form::Blocked), (vec![-2., 4., 6., 8., 10., 12.], 1, "doubling".into()));
}

#[test]
fn a_kernel_that_declines_or_fails_leaves_the_node_to_the_reference() {
    for form in [Form::Declines, Form::Fails] {
        assert_eq!(run(form), (vec![0., 2., 3., 4., 5., 6.], 0, "reference".into()));
    }
}

#[test]
fn a_blocked_layout_works_with_batches_of_any_size() {
    for device in ["TEMPLATE", "CPU"] {
        let ran = run_on(device, Form::Blocked, "?,3,2", &[1, 4, 2, 4]).unwrap();
        assert_eq!((ran.times, ran.kernel.as_str()), (4, "doubling"), "{device}");
        for (output, batch) in ran.outputs.iter().zip([1, 4, 2, 4]) {
            assert_eq!(*output, [-2., 4., 6., 8., 10., 12.].repeat(batch), "{device}");
        }
        assert!(ran.warnings.is_empty(), "{:?}", ran.warnings);
    }
}

#[test]
fn a_kernel_in_trouble_is_warned_of_once_and_explained() {
    for (form, text) in [
        (Form::Fails, "`configs` failed: no idea"),
        (Form::Panics, "`configs` panicked: lost my way"),
        (Form::SmallBlocks, "configuration 0: input 0: blocks [1, 1, 1] in order [0, 1, 2] do not hold [1, 3, 2]"),
        (Form::TooManyPorts, "configuration 0: 2 inputs and 1 outputs for a node with 1 and 1"),
        (Form::InitFails, "`init` failed: no oil"),
    ] {
        for device in ["TEMPLATE", "CPU"] {
            for shape in ["1,3,2", "?,3,2"] {
                let ran = run_on(device, form, shape, &[1, 1]).unwrap();
                assert_eq!(
                    ran.outputs,
                    [[0., 2., 3., 4., 5., 6.], [0., 2., 3., 4., 5., 6.]],
                    "{text} {device} {shape}"
                );
                let [warning] = &ran.warnings[..] else { panic!("{:?} of {device}, {shape}", ran.warnings) };
                let whole = ["extension `kernels`", "kernel `doubling`", "node `y` (ReLU)", device, text];
                assert!(whole.iter().all(|part| warning.contains(part)), "{warning}");
                let told = ran.why.iter().filter(|w| w.contains("`doubling`") && w.contains(text)).count();
                assert_eq!(told, 1, "{:?} of {device}, {shape}", ran.why);
                assert_ne!(ran.kernel, "doubling");
            }
        }
    }
}

#[test]
fn trouble_is_told_through_hetero_too() {
    for shape in ["1,3,2", "?,3,2"] {
        let ran = run_for("HETERO:CPU,TEMPLATE", "CPU", Form::Fails, shape, &[1]).unwrap();
        assert_eq!(ran.warnings.len(), 1, "{:?}", ran.warnings);
        assert!(ran.why.iter().any(|w| w.contains("`configs` failed: no idea")), "{:?} {shape}", ran.why);
        let ran = run_for("HETERO:CPU,TEMPLATE", "CPU", Form::Blocked, shape, &[2, 1][usize::from(shape == "1,3,2")..])
            .unwrap();
        assert_eq!(ran.kernel, "doubling", "{shape}");
    }
}

#[test]
fn a_kernel_that_declines_is_no_trouble() {
    for device in ["TEMPLATE", "CPU"] {
        let ran = run_on(device, Form::Declines, "?,3,2", &[2]).unwrap();
        assert!(ran.warnings.is_empty(), "{:?}", ran.warnings);
        assert!(!ran.why.iter().any(|w| w.contains("doubling")), "{:?}", ran.why);
    }
}

#[test]
fn a_kernel_that_gives_another_type_than_it_promised_fails_by_name() {
    for device in ["TEMPLATE", "CPU"] {
        let error = run_on(device, Form::OtherType, "1,3,2", &[1]).err().expect("an error").to_string();
        assert!(error.contains("kernel `doubling` gave output 0 as f32[1, 3, 2], promised f64[1,3,2]"), "{error}");
    }
}

/// An operation that only a kernel runs.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "acme", no_eval)]
struct OnlyKernel {}

impl Op for OnlyKernel {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
}

/// An evaluation that is written, whatever it does first.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "acme")]
struct Evaluated {}

impl Op for Evaluated {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let x = cx.input(0).clone();
        cx.set(0, x)
    }
}

fn only_kernel() -> Model {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 3, 2])).unwrap();
    let a = m.add("a", ops::math::Abs {}, &[x]).unwrap();
    let y = m.add("y", OnlyKernel {}, &[a.into()]).unwrap();
    let z = m.add("z", ops::math::Negative {}, &[y.into()]).unwrap();
    m.result("out", z.into()).unwrap();
    m
}

/// Doubles for an operation of the extension.
struct ForAcme(Doubling);

impl Kernel for ForAcme {
    fn device(&self) -> &str {
        self.0.device()
    }
    fn op(&self) -> &str {
        "OnlyKernel"
    }
    fn opset(&self) -> Option<&str> {
        Some("acme")
    }
    fn name(&self) -> &str {
        self.0.name()
    }
    fn configs(&self, site: &Site) -> Result<Vec<Config>> {
        self.0.configs(site)
    }
    fn init(&self, site: &Site, config: usize) -> Result<Box<dyn PreparedKernel>> {
        self.0.init(site, config)
    }
}

fn core_with(form: Form) -> Core {
    let core = carafe::core();
    let kernel = ForAcme(Doubling { device: "TEMPLATE", form, ran: Arc::default() });
    core.add_extension(Extension::new("acme").op::<OnlyKernel>().kernel(Arc::new(kernel))).unwrap();
    core
}

#[test]
fn a_device_refuses_what_it_neither_evaluates_nor_has_a_kernel_for() {
    let (core, model) = (core_with(Form::Plain), only_kernel());
    let query = core.query_model(&model, "CPU", &Properties::new()).unwrap();
    assert_eq!(query.unsupported.len(), 1);
    assert_eq!(query.unsupported[0].name, "y");
    assert_eq!(query.unsupported[0].reason, "the operation has no evaluation, and there is no kernel of it for CPU");
    assert!(query.supported.contains(&"a".to_string()) && query.supported.contains(&"z".to_string()));
    assert!(core.query_model(&model, "TEMPLATE", &Properties::new()).unwrap().unsupported.is_empty());
    // A kernel that declines the node, or fails, runs nothing.
    for (form, why) in [(Form::Declines, "declines it"), (Form::Fails, "no idea")] {
        let query = core_with(form).query_model(&model, "TEMPLATE", &Properties::new()).unwrap();
        assert!(query.unsupported[0].reason.contains(why), "{query:?}");
    }
}

#[test]
fn hetero_gives_a_node_to_the_device_that_has_its_kernel() {
    let (core, model) = (core_with(Form::Plain), only_kernel());
    let compiled = core.compile_model(&model, "HETERO:CPU,TEMPLATE", &Properties::new()).unwrap();
    let request = compiled.create_infer_request();
    request.set_input(0, Tensor::from_slice(&[1, 3, 2], &[-1f32, 2., 3., 4., 5., 6.]).unwrap()).unwrap();
    request.infer(()).unwrap();
    assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), [-2., -4., -6., -8., -10., -12.]);
    let report = compiled.property("HETERO_REPORT").unwrap();
    assert!(report.contains("TEMPLATE") && report.contains("CPU"), "{report}");
}

#[test]
fn an_operation_declares_whether_it_has_an_evaluation() {
    assert!(!OnlyKernel {}.has_eval() && Evaluated {}.has_eval());
    let without: Vec<String> = carafe::core()
        .registry()
        .all()
        .into_iter()
        .filter_map(|f| f.create(&carafe::AttrMap::new()).ok())
        .filter(|op| !op.has_eval())
        .map(|op| format!("{}::{}", op.opset(), op.type_name()))
        .collect();
    assert!(without.is_empty(), "built-in operations without evaluation: {without:?}");
}

#[test]
fn an_operation_without_evaluation_inside_of_a_body_runs_nowhere() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernel_in_body.onnxtxt");
    let text = r#"<ir_version: 8, opset_import: ["" : 17, "acme" : 1]> g (bool c, float[2] x) => (float[2] y) { y = If (c) <
        then_branch = t () => (float[2] z) { z = acme.OnlyKernel (x) }, else_branch = e () => (float[2] z) { z = Abs (x) }> }"#;
    std::fs::write(&path, text).unwrap();
    let core = core_with(Form::Plain);
    let model = core.read_model(&path).unwrap();
    let query = core.query_model(&model, "TEMPLATE", &Properties::new()).unwrap();
    assert!(query.unsupported[0].reason.contains("in its body"), "{query:?}");
}
