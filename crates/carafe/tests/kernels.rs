//! Kernels of extensions on TEMPLATE and CPU: who takes a node, in which memory form, who is told to have run it, and what is
//! said when one cannot.

use carafe::{
    Core, ElementType, Error, Extension, Fact, Model, PartialShape, Properties, Result, Tensor,
    device::{Blocked, Config, Kernel, PortLayout, PreparedKernel, Site},
    ops,
};
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

// Runs inputs of these batches on one compiled model.
fn run_on(device: &'static str, form: Form, shape: &str, batches: &[usize]) -> Result<Ran> {
    let ran = Arc::new(AtomicUsize::new(0));
    let core: Core = carafe::core();
    let warnings = Arc::new(Mutex::new(vec![]));
    let heard = warnings.clone();
    core.set_warning_hook(move |text| heard.lock().unwrap().push(text.to_string()));
    core.add_extension(Extension::new("kernels").kernel(Arc::new(Doubling { device, form, ran: ran.clone() })))?;
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, shape.parse::<PartialShape>()?)?;
    let y = m.add("y", ops::activation::Relu, &[x])?;
    m.result("out", y.into())?;
    let compiled = core.compile_model(&m, device, &Properties::new().with("PERF_COUNT", true))?;
    let mut request = compiled.clone().create_request();
    let mut outputs = vec![];
    for &batch in batches {
        let data: Vec<f32> = [-1f32, 2., 3., 4., 5., 6.].repeat(batch);
        request.set_input(0, Tensor::from_vec(&[batch, 3, 2], data)?)?;
        request.infer()?;
        outputs.push(request.output(0)?.as_slice::<f32>()?.to_vec());
    }
    let kernel = request.profile().into_iter().find(|r| r.name == "y").unwrap().kernel;
    let mut rows = core.explain(&m);
    core.explain_compiled(&mut rows, device, &*compiled, &request.profile());
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
