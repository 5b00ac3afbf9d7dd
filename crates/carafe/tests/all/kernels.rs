//! Kernels of extensions on TEMPLATE and CPU: who takes a node, in which memory form, who is told to have run it, and what is
//! said when one cannot.

use carafe::device::{
    Blocked, Config, Function, Kernel, KernelIo, Layout, Operand, PortLayout, PreparedKernel, Site, each_chunk,
};
use carafe::prelude::*;
use carafe::{Core, Extension, Properties, ops};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

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
        let port = |layout| PortLayout::new(ElementType::F64, layout);
        let (layout, inputs) = match self.form {
            Form::Declines => return Ok(vec![]),
            Form::Fails => return Err(Error::invalid("no idea")),
            Form::Panics => panic!("lost my way"),
            Form::TooManyPorts => (Layout::Plain, 2),
            Form::SmallBlocks => (Layout::Other(Blocked { blocks: vec![1, 1, 1], order: vec![0, 1, 2] }), 1),
            Form::Plain | Form::InitFails => (Layout::Plain, 1),
            Form::Blocked if !site.inputs[0].shape.is_static() => return Ok(vec![]),
            Form::Blocked => (Layout::BlockedBy(4), 1),
        };
        Ok(vec![Config::new(vec![port(layout.clone()); inputs], vec![port(layout)])])
    }
    fn init(&self, _: &Site, _: usize) -> Result<Box<dyn PreparedKernel>> {
        match self.form {
            Form::InitFails => Err(Error::invalid("no oil")),
            _ => Ok(Box::new(Ready(self.ran.clone()))),
        }
    }
}

struct Ready(Arc<AtomicUsize>);

impl PreparedKernel for Ready {
    fn execute(&self, io: &mut KernelIo<'_, '_>) -> Result<()> {
        self.0.fetch_add(1, Ordering::SeqCst);
        io.map::<f64>(0, |x| x * 2.0)
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

/// `|x|`, with sums and ReLUs that follow where it may, in a layout. Notes what it was asked.
#[derive(Clone)]
struct Absolute {
    layout: Layout,
    fuses: bool,
    most: usize,
    asked: Arc<Mutex<Vec<Site>>>,
    /// Inferences that must be inside at once before it ends.
    meets: usize,
    inside: Arc<(Mutex<usize>, Condvar)>,
}

fn absolute(layout: Layout, most: usize) -> Absolute {
    Absolute { layout, fuses: most > 0, most, asked: Arc::default(), meets: 0, inside: Arc::default() }
}

struct ReadyAbsolute {
    of: Absolute,
    adds: Vec<bool>,
}

impl Absolute {
    fn taken(&self, site: &Site) -> Vec<bool> {
        let known = |(k, op): (usize, &carafe::device::EpilogueOp)| match (op.function, &op.operands[..]) {
            (Function::Relu, _) => Some(false),
            (Function::Add, [Operand::Result(r), Operand::Input(_)]) if *r == k => Some(true),
            _ => None,
        };
        site.epilogue.iter().enumerate().map_while(known).take(self.most).collect()
    }
}

impl Kernel for Absolute {
    fn device(&self) -> &str {
        "CPU"
    }
    fn op(&self) -> &str {
        "Abs"
    }
    fn opset(&self) -> Option<&str> {
        None
    }
    fn name(&self) -> &str {
        "absolute"
    }
    fn fuses(&self) -> bool {
        self.fuses
    }
    fn configs(&self, site: &Site) -> Result<Vec<Config>> {
        self.asked.lock().unwrap().push(site.clone());
        let taken = self.taken(site);
        let port = || PortLayout::new(ElementType::F32, self.layout.clone());
        let inputs = site.inputs_with(taken.len());
        Ok(vec![Config { epilogue: taken.len(), ..Config::new(vec![port(); inputs], vec![port()]) }])
    }
    fn init(&self, site: &Site, _: usize) -> Result<Box<dyn PreparedKernel>> {
        Ok(Box::new(ReadyAbsolute { of: self.clone(), adds: self.taken(site) }))
    }
}

impl PreparedKernel for ReadyAbsolute {
    fn execute(&self, io: &mut KernelIo<'_, '_>) -> Result<()> {
        let (count, changed) = &*self.of.inside;
        *count.lock().unwrap() += 1;
        changed.notify_all();
        let wait = std::time::Duration::from_secs(60);
        let alone = |n: &mut usize| *n < self.of.meets;
        if changed.wait_timeout_while(count.lock().unwrap(), wait, alone).unwrap().1.timed_out() {
            return Err(Error::invalid("nobody else came"));
        }
        let operands = (0..io.inputs.len()).map(|i| io.input::<f32>(i)).collect::<Result<Vec<_>>>()?;
        let (threads, y) = (io.threads, io.output::<f32>(0)?);
        each_chunk(threads, y, 64, |chunk, y, _| {
            for (i, y) in y.iter_mut().enumerate() {
                let at = chunk * 64 + i;
                let mut more = operands[1..].iter();
                *y = operands[0][at].abs();
                for &add in &self.adds {
                    *y = if add { *y + more.next().unwrap()[at] } else { y.max(0.0) };
                }
            }
        });
        Ok(())
    }
}

/// A convolution, the kernel's operation, a sum with the convolution, ReLU, and a convolution.
fn between_convolutions() -> Model {
    let numbers = |shape: &[usize]| {
        let n: usize = shape.iter().product();
        Tensor::from_vec(shape, (0..n).map(|i| ((i * 37 % 101) as f32 - 50.0) / 64.0).collect()).unwrap()
    };
    let conv = || ops::convolution::Convolution {
        strides: vec![1, 1],
        pads_begin: vec![1, 1],
        pads_end: vec![1, 1],
        dilations: vec![1, 1],
        auto_pad: ops::convolution::window::PadType::Explicit,
    };
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 5, 6, 7])).unwrap();
    let w = m.constant("w", numbers(&[12, 5, 3, 3])).unwrap();
    let a = m.add("a", conv(), &[x, w]).unwrap();
    let k = m.add("k", ops::math::Abs, &[a.into()]).unwrap();
    let shift = m.constant("shift", numbers(&[1, 12, 6, 7])).unwrap();
    let sum = m.add("sum", ops::arithmetic::Add::default(), &[k.into(), shift]).unwrap();
    let relu = m.add("relu", ops::activation::Relu, &[sum.into()]).unwrap();
    let w = m.constant("v", numbers(&[4, 12, 3, 3])).unwrap();
    let b = m.add("b", conv(), &[relu.into(), w]).unwrap();
    m.result("y", b.into()).unwrap();
    m
}

/// Kernels of the nodes of that model on CPU, after its numbers were compared with TEMPLATE's; and the lines of `--explain`.
fn ran_between(kernel: &Absolute) -> (Vec<(String, String)>, Vec<carafe::NodeProfile>) {
    let core = carafe::core();
    core.set_property("CPU", &Properties::new().with("INFERENCE_PRECISION_HINT", "f32")).unwrap();
    core.add_extension(Extension::new("kernels").kernel(Arc::new(kernel.clone()))).unwrap();
    let m = between_convolutions();
    let run = |device: &str| {
        let compiled = core.compile_model(&m, device, &Properties::new().with("PERF_COUNT", true)).unwrap();
        let request = compiled.create_infer_request();
        let x: Vec<f32> = (0..210).map(|i| (i % 19) as f32 / 8.0 - 1.0).collect();
        request.set_input(0, Tensor::from_vec(&[1, 5, 6, 7], x).unwrap()).unwrap();
        request.infer(()).unwrap();
        (request.output(0).unwrap().as_slice::<f32>().unwrap().to_vec(), request.profile().unwrap())
    };
    let ((y, rows), (wanted, _)) = (run("CPU"), run("TEMPLATE"));
    for (a, b) in y.iter().zip(&wanted) {
        assert!((a - b).abs() < 1e-3, "{a} {b}");
    }
    (rows.iter().map(|r| (r.name.clone(), r.kernel.clone())).collect(), rows)
}

fn kernel_at(rows: &[(String, String)], name: &str) -> String {
    rows.iter().find(|r| r.0 == name).unwrap_or_else(|| panic!("no `{name}` in {rows:?}")).1.clone()
}

#[test]
fn a_kernel_sees_what_the_device_offers_and_takes_the_work_that_follows() {
    let kernel = absolute(Layout::ChannelsLast, 2);
    let (rows, _) = ran_between(&kernel);
    assert_eq!(kernel_at(&rows, "relu"), "absolute+add+relu");
    let asked = kernel.asked.lock().unwrap();
    let last = asked.last().unwrap();
    assert!(last.layouts.contains(&Layout::ChannelsLast) && last.layouts.contains(&Layout::BlockedBy(8)));
    assert_eq!(last.input_layouts[0], Layout::ChannelsLast, "a convolution gives it so");
    assert_eq!((last.inputs.len(), last.own_inputs()), (2, 1));
    assert!(last.inputs[1].tensor().is_some(), "constants come with their values");
    let functions: Vec<Function> = last.epilogue.iter().map(|op| op.function).collect();
    assert_eq!(functions, [Function::Add, Function::Relu]);
    assert!(asked[0].epilogue.is_empty(), "whether it takes the node is asked first");
}

#[test]
fn a_kernel_takes_some_of_the_work_that_follows_or_none() {
    let (rows, _) = ran_between(&absolute(Layout::ChannelsLast, 1));
    assert_eq!(kernel_at(&rows, "sum"), "absolute+add", "{rows:?}");
    assert!(!kernel_at(&rows, "relu").contains("absolute"), "{rows:?}");
    let (rows, _) = ran_between(&absolute(Layout::ChannelsLast, 0));
    assert_eq!(kernel_at(&rows, "k"), "absolute");
    // One that fuses nothing is not even asked, and the device puts the rest together itself.
    let kernel = absolute(Layout::Plain, 0);
    ran_between(&kernel);
    assert!(kernel.asked.lock().unwrap().iter().all(|site| site.epilogue.is_empty()));
}

#[test]
fn a_blocked_kernel_between_convolutions_gets_reorders_that_reports_show() {
    let (_, rows) = ran_between(&absolute(Layout::BlockedBy(8), 2));
    let reorders: Vec<&str> = rows.iter().map(|r| r.kernel.as_str()).filter(|k| k.contains("plain_c8")).collect();
    assert_eq!(reorders, ["reorder_f32[channels_last plain_c8]", "reorder_f32[plain_c8 channels_last]"]);
    // Where the channels-last layout suits it, there is none.
    let (_, rows) = ran_between(&absolute(Layout::ChannelsLast, 2));
    assert!(!rows.iter().any(|r| r.kernel.contains("plain_c8")), "{rows:?}");
}

#[test]
fn two_streams_run_one_kernel_at_the_same_time() {
    let kernel = Absolute { meets: 2, ..absolute(Layout::Plain, 0) };
    let core = carafe::core();
    core.add_extension(Extension::new("kernels").kernel(Arc::new(kernel))).unwrap();
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[64])).unwrap();
    let k = m.add("k", ops::math::Abs, &[x]).unwrap();
    m.result("y", k.into()).unwrap();
    let two = Properties::new().with("NUM_STREAMS", 2).with("INFERENCE_NUM_THREADS", 2);
    let compiled = core.compile_model(&m, "CPU", &two).unwrap();
    std::thread::scope(|s| {
        for _ in 0..2 {
            let request = compiled.create_infer_request();
            s.spawn(move || {
                request.set_input(0, Tensor::from_vec(&[64], vec![-1f32; 64]).unwrap()).unwrap();
                request.infer(()).unwrap();
                assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), [1.0; 64]);
            });
        }
    });
}
