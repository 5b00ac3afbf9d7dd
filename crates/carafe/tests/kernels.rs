//! Kernels of extensions on the TEMPLATE device: who takes a node, in which memory form, and who is told to have run it.

use carafe::{
    Core, ElementType, Error, Extension, Fact, Model, PartialShape, Properties, Result, Tensor,
    device::{Blocked, Config, Kernel, PortLayout, PreparedKernel, Site},
    ops,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Doubles instead of cutting off, so that its work can be seen. Works on channels in blocks of four, as f64.
struct Doubling {
    form: Form,
    ran: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Plain,
    Blocked,
    Declines,
    Fails,
}

impl Kernel for Doubling {
    fn device(&self) -> &str {
        "TEMPLATE"
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
            Form::Plain => return Ok(vec![Config { inputs: vec![port(None)], outputs: vec![port(None)] }]),
            Form::Blocked => {}
        }
        let Some(shape) = site.inputs[0].shape.to_static() else { return Ok(vec![]) };
        let blocks = vec![shape[0], shape[1].div_ceil(4), shape[2], 4];
        let blocked = || Some(Blocked { blocks: blocks.clone(), order: vec![0, 1, 2, 1] });
        Ok(vec![Config { inputs: vec![port(blocked())], outputs: vec![port(blocked())] }])
    }
    fn init(&self, _: &Site, _: usize) -> Result<Box<dyn PreparedKernel>> {
        Ok(Box::new(Ready(self.ran.clone())))
    }
}

struct Ready(Arc<AtomicUsize>);

impl PreparedKernel for Ready {
    fn execute(&mut self, inputs: &[Tensor], _: &[Fact]) -> Result<Vec<Tensor>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let doubled: Vec<f64> = inputs[0].as_slice::<f64>()?.iter().map(|x| x * 2.0).collect();
        Ok(vec![Tensor::from_vec(inputs[0].shape(), doubled)?])
    }
}

fn run(form: Form) -> (Vec<f32>, usize, String) {
    let ran = Arc::new(AtomicUsize::new(0));
    let core: Core = carafe::core();
    core.add_extension(Extension::new("kernels").kernel(Arc::new(Doubling { form, ran: ran.clone() }))).unwrap();
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[1, 3, 2])).unwrap();
    let y = m.add("y", ops::activation::Relu, &[x]).unwrap();
    m.result("out", y.into()).unwrap();
    let compiled = core.compile_model(&m, "TEMPLATE", &Properties::new().with("PERF_COUNT", true)).unwrap();
    let mut request = compiled.create_request();
    request.set_input(0, Tensor::from_slice(&[1, 3, 2], &[-1f32, 2., 3., 4., 5., 6.]).unwrap()).unwrap();
    request.infer().unwrap();
    let kernel = request.profile().into_iter().find(|r| r.name == "y").unwrap().kernel;
    (request.output(0).unwrap().as_slice::<f32>().unwrap().to_vec(), ran.load(Ordering::SeqCst), kernel)
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
