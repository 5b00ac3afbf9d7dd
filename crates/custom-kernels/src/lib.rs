//! Custom kernels by XML: the files with which users bring OpenCL kernels to the GPU (`SimpleGPU`) and VPU (`MVCL`) devices, read and
//! turned into what a device needs for one node: source text, arguments in order, sizes. It knows neither OpenCL nor a device.
//!
//! ```
//! use carafe_custom_kernels::{KernelFile, Mode, gpu};
//!
//! let xml = r#"<CustomLayer name="Twice" type="SimpleGPU" version="1">
//!     <Kernel entry="twice"><Source filename="twice.cl"/></Kernel>
//!     <Buffers>
//!         <Tensor arg-index="0" type="input" port-index="0" format="BFYX"/>
//!         <Tensor arg-index="1" type="output" port-index="0" format="BFYX"/>
//!     </Buffers>
//!     <WorkSizes global="X,Y,B*F"/>
//! </CustomLayer>"#;
//! let file = KernelFile::with_source("memory", xml, "__kernel void twice(...) {}");
//! let found = gpu::read(&file, Mode::Strict).unwrap();
//! assert_eq!(found.layers[0].name, "Twice");
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod attributes;
mod declared;
mod expression;
mod file;
pub mod gpu;
mod layout;
mod node;
mod signature;
pub mod vpu;
mod xml;

pub use declared::{Declaration, OutputRule};
pub use expression::{Expression, Number};
pub use file::{KernelFile, Mode, SourceText, config_files};
pub use layout::{Format, TensorLayout, c_type};
pub use node::{NodeView, PortView};
pub use signature::{Parameter, Space, parameters};
pub use xml::Location;
