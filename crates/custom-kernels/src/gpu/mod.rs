//! Kernels for the GPU (`type="SimpleGPU"`): what a file says ([`read`]), and what becomes of it for one node
//! ([`GpuLayer::bind`]): the whole source with its generated definitions, arguments in order, work sizes.

mod bind;
mod defines;
mod read;
mod work_size;

pub use bind::{Call, CallArgument};
pub(crate) use defines::add_source;
pub use read::read;
pub use work_size::WorkSizes;

use crate::declared::Declaration;
use crate::expression::Expression;
use crate::file::SourceText;
use crate::layout::Format;
use crate::xml::Location;

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuFile {
    /// Its kernels, in order.
    pub layers: Vec<GpuLayer>,
    /// What is accepted though the format forbids it, a line each.
    pub warnings: Vec<String>,
}

/// A kernel for operations of one type.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuLayer {
    /// Type of the operations, in this very case.
    pub name: String,
    /// Where it stands.
    pub location: Location,
    /// Name of the kernel function.
    pub entry: String,
    /// OpenCL C, in order.
    pub sources: Vec<SourceText>,
    /// Definitions out of attributes, in order.
    pub defines: Vec<Define>,
    /// Arguments of the kernel, in its order.
    pub arguments: Vec<Argument>,
    /// Options of the build.
    pub options: String,
    /// Work sizes; `None` for one work item an element.
    pub work_sizes: Option<WorkSizes>,
    /// The operation, where the file declares it.
    pub declaration: Option<Declaration>,
}

/// One `#define` of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Define {
    /// What stands behind `#define`; may have a value in it.
    pub name: String,
    /// Attribute whose value follows; may be empty.
    pub param: String,
    /// Whether the value is a list, and of what.
    pub array: Option<ArrayType>,
    /// The value where the operation has no such attribute.
    pub default: String,
}

/// Type of the elements of a list in a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayType {
    /// `int[]`
    Int,
    /// `float[]`
    Float,
}

/// One argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// An input of the node.
    Input {
        /// Which.
        port: usize,
        /// In this order.
        format: Format,
        /// Where it stands.
        location: Location,
    },
    /// An output of the node.
    Output {
        /// Which.
        port: usize,
        /// In this order.
        format: Format,
        /// Where it stands.
        location: Location,
    },
    /// Memory of the kernel's own.
    Internal {
        /// Number of elements of the type of input 0.
        size: Expression,
        /// Where it stands.
        location: Location,
    },
    /// A constant of the node, by name.
    Data {
        /// Name of an input.
        name: String,
        /// Where it stands.
        location: Location,
    },
}

/// The kernels of several files: a later one of the same name replaces the earlier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuLayers(Vec<GpuLayer>);

impl GpuLayers {
    /// Adds those of a file.
    pub fn add(&mut self, layers: impl IntoIterator<Item = GpuLayer>) {
        for layer in layers {
            self.0.retain(|old| old.name != layer.name);
            self.0.push(layer);
        }
    }
    /// The kernel for operations of this type.
    pub fn find(&self, type_name: &str) -> Option<&GpuLayer> {
        self.0.iter().find(|l| l.name == type_name)
    }
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &GpuLayer> {
        self.0.iter()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
