//! Operations that work on each element by itself: an author writes the attributes and one function of a number. From it come
//! inference, evaluation for every float type, and a kernel for CPU that runs on all threads, where its input lies.

use crate::device::{Config, Kernel, KernelIo, Layout, PortLayout, PreparedKernel, Site};
use carafe_graph::{EvalCx, OpNew, Result};
use carafe_tensor::ElementType;
use std::marker::PhantomData;

/// An operation on single numbers. [`elementwise!`](crate::elementwise) writes it.
pub trait Elementwise: OpNew {
    /// The result for one number.
    fn apply(&self, x: f32) -> f32;
}

/// What `eval` of an elementwise operation is: any float type, on the engine's threads. Called by
/// [`elementwise!`](crate::elementwise).
pub fn eval<T: Elementwise>(op: &T, cx: &mut EvalCx<'_>) -> Result<()> {
    let mut y = cx.get::<f32>(0)?.into_owned();
    let n = y.len();
    let parts: Vec<std::sync::Mutex<&mut [f32]>> = y.chunks_mut(PART).map(std::sync::Mutex::new).collect();
    // A loop over elements decides whether threads pay; each part is one of its elements times `PART`.
    if n <= PART {
        parts.iter().for_each(|part| each(op, part));
    } else {
        carafe_abi::parallel_for(n, |range| {
            // Parts that begin in the range are its own.
            parts[range.start.div_ceil(PART)..range.end.div_ceil(PART)].iter().for_each(|part| each(op, part));
        });
    }
    drop(parts);
    let shape = cx.shape(0).to_vec();
    cx.put(0, &shape, y)
}

/// Elements that one thread takes at a time.
const PART: usize = 4096;

fn each<T: Elementwise>(op: &T, part: &std::sync::Mutex<&mut [f32]>) {
    let mut part = part.lock().unwrap_or_else(|e| e.into_inner());
    part.iter_mut().for_each(|x| *x = op.apply(*x));
}

/// The kernel of an elementwise operation for f32 on CPU.
#[derive(Debug)]
pub struct ElementwiseKernel<T>(PhantomData<fn() -> T>);

impl<T> Default for ElementwiseKernel<T> {
    fn default() -> Self {
        ElementwiseKernel(PhantomData)
    }
}

impl<T: Elementwise> Kernel for ElementwiseKernel<T> {
    fn device(&self) -> &str {
        "CPU"
    }
    fn op(&self) -> &str {
        T::INFO.xml_name
    }
    fn opset(&self) -> Option<&str> {
        Some(T::INFO.opset)
    }
    fn name(&self) -> &str {
        "elementwise"
    }
    fn configs(&self, site: &Site) -> Result<Vec<Config>> {
        if site.inputs[0].ty != ElementType::F32 {
            return Ok(vec![]);
        }
        // What pads a block must stay zero.
        let layout = match site.input_layouts.first() {
            Some(Layout::ChannelsLast) => Layout::ChannelsLast,
            Some(blocked @ Layout::BlockedBy(_)) if T::from_attrs(&site.attrs)?.apply(0.0) == 0.0 => blocked.clone(),
            _ => Layout::Plain,
        };
        let port = PortLayout::new(ElementType::F32, layout);
        Ok(vec![Config::new(vec![port.clone()], vec![port.in_place_of(0)])])
    }
    fn init(&self, site: &Site, _config: usize) -> Result<Box<dyn PreparedKernel>> {
        Ok(Box::new(Prepared(T::from_attrs(&site.attrs)?)))
    }
}

struct Prepared<T>(T);

impl<T: Elementwise> PreparedKernel for Prepared<T> {
    fn execute(&self, io: &mut KernelIo<'_, '_>) -> Result<()> {
        io.map::<f32>(0, |x| self.0.apply(x))
    }
}

/// Makes an operation of a struct with `#[derive(Op)]` and a function of one number. `op` is the struct, `x` an `f32`.
/// `export_extension! { elementwise: [...] }` exports it with its kernel.
///
/// ```
/// use carafe_sdk::prelude::*;
///
/// /// Multiplies by a constant.
/// #[derive(Op, Clone, Debug, PartialEq)]
/// #[op(opset = "acme", elementwise, keeps_shape)]
/// struct Scale {
///     #[attr(default = 1.0)]
///     by: f32,
/// }
///
/// carafe_sdk::elementwise! { Scale, |op, x| x * op.by }
/// carafe_sdk::export_extension! { elementwise: [Scale] }
/// ```
#[macro_export]
macro_rules! elementwise {
    ($op:ty, |$this:ident, $x:ident| $result:expr $(,)?) => {
        impl $crate::Elementwise for $op {
            fn apply(&self, $x: f32) -> f32 {
                let $this = self;
                $result
            }
        }
        impl $crate::carafe_graph::Op for $op {
            fn infer(&self, cx: &mut $crate::carafe_graph::InferCx<'_>) -> $crate::carafe_graph::Result<()> {
                cx.require_float(0)?;
                cx.output_like(0, 0);
                Ok(())
            }
            fn eval(&self, cx: &mut $crate::carafe_graph::EvalCx<'_>) -> $crate::carafe_graph::Result<()> {
                $crate::eval_elementwise(self, cx)
            }
        }
    };
}
