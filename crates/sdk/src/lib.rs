//! What an author of an extension or a device plugin depends on. An operation is written as the built-in ones are:
//! `#[derive(Op)]` on its attributes, `infer` and `eval`; `export_extension!` makes the library.
//!
//! ```
//! use carafe_sdk::prelude::*;
//!
//! /// Multiplies by a constant.
//! #[derive(Op, Clone, Debug, PartialEq)]
//! #[op(opset = "acme")]
//! pub struct Scale {
//!     #[attr(default = 1.0)]
//!     pub by: f32,
//! }
//!
//! impl Op for Scale {
//!     fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
//!         cx.require_float(0)?;
//!         cx.output_like(0, 0);
//!         Ok(())
//!     }
//!     fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
//!         let y: Vec<f32> = cx.get::<f32>(0)?.iter().map(|x| x * self.by).collect();
//!         let shape = cx.shape(0).to_vec();
//!         cx.put(0, &shape, y)
//!     }
//! }
//!
//! carafe_sdk::export_extension! {
//!     ops: [Scale],
//!     mappings: [Mapping::new("acme::Scale").framework("onnx").domain("acme.ai")],
//! }
//! ```
//!
//! An attribute that is marked `#[attr(default = ..., internal)]` is used while converting and running, kept in exported
//! models and the cache, and never written to the files of an IR: a node that is read from one has the default.

//!
//! A kernel makes an operation fast on a device. It sees types, shapes, layouts and the work that follows, and gets planned
//! memory:
//!
//! ```
//! use carafe_sdk::prelude::*;
//!
//! /// `|x|` on f32, in whatever layout the value lies, where it lies.
//! struct AbsKernel;
//!
//! impl Kernel for AbsKernel {
//!     fn device(&self) -> &str { "CPU" }
//!     fn op(&self) -> &str { "Abs" }
//!     fn opset(&self) -> Option<&str> { None }
//!     fn name(&self) -> &str { "my_abs" }
//!     fn configs(&self, site: &Site) -> Result<Vec<Config>> {
//!         if site.inputs[0].ty != ElementType::F32 {
//!             return Ok(vec![]); // declined: the device runs the node itself
//!         }
//!         let layout = site.input_layouts.first().cloned().unwrap_or_default();
//!         let port = PortLayout::new(ElementType::F32, layout);
//!         Ok(vec![Config::new(vec![port.clone()], vec![port.in_place_of(0)])])
//!     }
//!     fn init(&self, _site: &Site, _config: usize) -> Result<Box<dyn PreparedKernel>> {
//!         Ok(Box::new(AbsKernel))
//!     }
//! }
//!
//! impl PreparedKernel for AbsKernel {
//!     fn execute(&self, io: &mut KernelIo<'_, '_>) -> Result<()> {
//!         io.map::<f32>(0, f32::abs)
//!     }
//! }
//!
//! carafe_sdk::export_extension! { kernels: [AbsKernel] }
//! ```

mod elementwise;

pub use carafe_abi as abi;
pub use carafe_device as device;
pub use carafe_frontend as frontend;
pub use carafe_graph;
#[cfg(feature = "ops")]
pub use carafe_ops as ops;
pub use carafe_tensor as tensor;

pub use elementwise::{Elementwise, ElementwiseKernel, eval as eval_elementwise};

/// What nearly every author needs.
pub mod prelude {
    pub use carafe_abi::{
        Graph, GraphNode, Matcher, ModelPass, Registration, Replacer, parallel_for, try_parallel_for,
    };
    pub use carafe_device::{
        Blocked, Config, EpilogueOp, Function, Kernel, KernelIo, Layout, Operand, PortLayout, PreparedKernel, Site,
        each_chunk,
    };
    pub use carafe_frontend::{Item, Mapping, NodeCx, Outputs, Rule};
    // The derive names this crate.
    #[cfg(feature = "ops")]
    pub use carafe_frontend::Compose;
    pub use carafe_graph;
    pub use carafe_graph::{
        Attr, AttrMap, AttrValue, Error, ErrorKind, EvalCx, Fact, InferCx, Match, NodeId, Op, OpNew, OrderCx, Outcome,
        Phase, Reordered, Result, RowKind, RowsCx, TensorAttr, Value, attr_enum,
    };
    #[cfg(feature = "ops")]
    pub use carafe_ops as ops;
    pub use carafe_tensor::{Dim, ElementType, PartialShape, Tensor, bf16, f16};
}

/// Makes the library's entry point from lists: `ops` are types, `elementwise` too (those of [`elementwise!`]), `rules` are [`Rule`](frontend::Rule)s, `mappings` are
/// [`Mapping`](frontend::Mapping)s, `decoded`, `front`, `middle` and `back` are [`Matcher`](abi::Matcher)s, `replacements` are
/// [`Replacer`](abi::Replacer)s, `kernels` are [`Kernel`](device::Kernel)s. What has no list goes into `more: |r| { ... }`, which gets the
/// [`Registration`](abi::Registration). Any list may be left out; their order is this one.
#[macro_export]
macro_rules! export_extension {
    (
        $(name: $name:expr,)?
        $(ops: [$($op:ty),* $(,)?] $(,)?)?
        $(elementwise: [$($elementwise:ty),* $(,)?] $(,)?)?
        $(rules: [$($rule:expr),* $(,)?] $(,)?)?
        $(mappings: [$($mapping:expr),* $(,)?] $(,)?)?
        $(decoded: [$($decoded:expr),* $(,)?] $(,)?)?
        $(front: [$($front:expr),* $(,)?] $(,)?)?
        $(middle: [$($middle:expr),* $(,)?] $(,)?)?
        $(back: [$($back:expr),* $(,)?] $(,)?)?
        $(replacements: [$($replacement:expr),* $(,)?] $(,)?)?
        $(kernels: [$($kernel:expr),* $(,)?] $(,)?)?
        $(more: $more:expr $(,)?)?
    ) => {
        #[allow(unsafe_code)]
        const _: () = {
            // SAFETY: no other symbol of this library has the name.
            #[unsafe(no_mangle)]
            static carafe_abi: $crate::abi::tables::CarafeAbi = $crate::abi::ABI;

            // SAFETY: as above.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn create_extensions(
                host: *const $crate::abi::tables::CarafeHost,
                registrar: *mut $crate::abi::tables::CarafeRegistrar,
            ) -> $crate::abi::tables::CarafeStatus {
                // SAFETY: the engine calls this with its own pointers.
                unsafe {
                    $crate::abi::create_extensions(host, registrar, |r| {
                        #[allow(unused_mut, unused_assignments)]
                        let mut name = env!("CARGO_PKG_NAME");
                        $(name = $name;)?
                        r.describe(name, env!("CARGO_PKG_VERSION"));
                        $($(r.op::<$op>();)*)?
                        $($(
                            r.op::<$elementwise>();
                            r.kernel($crate::ElementwiseKernel::<$elementwise>::default());
                        )*)?
                        $($(r.rule($rule);)*)?
                        $($(r.mapping($mapping);)*)?
                        $($(r.matcher($crate::carafe_graph::Phase::Decoded, $decoded);)*)?
                        $($(r.matcher($crate::carafe_graph::Phase::Front, $front);)*)?
                        $($(r.matcher($crate::carafe_graph::Phase::Middle, $middle);)*)?
                        $($(r.matcher($crate::carafe_graph::Phase::Back, $back);)*)?
                        $($(r.replacement($replacement);)*)?
                        $($(r.kernel($kernel);)*)?
                        $({
                            let more: fn(&mut $crate::abi::Registration) = $more;
                            more(r);
                        })?
                    })
                }
            }
        };
    };
}

/// Makes the entry point of a plugin library: the name of the device, and an expression that gives a
/// [`Device`](device::Device) or an error.
///
/// It needs the feature `plugin` of this crate.
///
/// ```ignore
/// carafe_sdk::export_plugin! { name: "ACME", device: AcmeDevice::new()? }
/// ```
#[cfg(feature = "plugin")]
#[macro_export]
macro_rules! export_plugin {
    (name: $name:expr, device: $device:expr $(,)?) => {
        #[allow(unsafe_code)]
        const _: () = {
            // SAFETY: no other symbol of this library has the name.
            #[unsafe(no_mangle)]
            static carafe_abi: $crate::abi::tables::CarafeAbi = $crate::abi::ABI;

            // SAFETY: as above.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            unsafe extern "C" fn CreatePluginEngine(
                host: *const $crate::abi::tables::CarafeHost,
                device: *mut $crate::abi::tables::CarafeDevice,
            ) -> $crate::abi::tables::CarafeStatus {
                // SAFETY: the engine calls this with its own pointers.
                unsafe {
                    $crate::abi::create_plugin_engine(host, device, || {
                        let device: ::std::sync::Arc<dyn $crate::device::Device> = ::std::sync::Arc::new($device);
                        let mut registry = $crate::carafe_graph::Registry::new();
                        registry.add_all($crate::ops::factories());
                        Ok(($name, device, registry))
                    })
                }
            }
        };
    };
}
