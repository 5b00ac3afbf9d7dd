//! Kernels for the VPU (`type="MVCL"`), in both schemas: what a file says ([`read`]), which layer suits a node ([`VpuLayers::choose`]),
//! and what becomes of it there ([`VpuLayer::bind`]): stages with arguments by name, sizes, buffers between stages.

mod bind;
mod conditions;
mod dma;
mod read;

pub use bind::{Bound, BoundStage, StageArgument};
pub use conditions::Condition;
pub use dma::stage_source;
pub use read::read;

use crate::declared::Declaration;
use crate::expression::Expression;
use crate::file::SourceText;
use crate::layout::Format;
use crate::node::NodeView;
use crate::xml::Location;
use carafe_graph::Result;

/// Memory of one work group on the chip, in bytes.
pub const ON_CHIP_BYTES: usize = 100 * 1024;

/// Cores of the chip.
pub const SHAVES: usize = 16;

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VpuFile {
    /// Its layers, in order.
    pub layers: Vec<VpuLayer>,
    /// What is accepted though the format forbids it, a line each.
    pub warnings: Vec<String>,
}

/// One way to run operations of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct VpuLayer {
    /// Type of the operations, in any case.
    pub name: String,
    /// Where it stands.
    pub location: Location,
    /// Conditions that all must hold.
    pub conditions: Vec<Condition>,
    /// Kernels that run one after another.
    pub stages: Vec<VpuKernel>,
    /// The operation, where the file declares it.
    pub declaration: Option<Declaration>,
}

/// One kernel of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct VpuKernel {
    /// Name of the kernel function.
    pub entry: String,
    /// Most cores to use; 0 for all.
    pub max_shaves: usize,
    /// OpenCL C, in order.
    pub sources: Vec<SourceText>,
    /// What its arguments are.
    pub bindings: Vec<Binding>,
    /// Tensor whose sizes the letters are.
    pub dim: DimSource,
    /// Global sizes.
    pub global: Vec<Expression>,
    /// Local sizes.
    pub local: Vec<Expression>,
    /// Where it stands.
    pub location: Location,
}

/// A tensor whose sizes letters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimSource {
    /// An input.
    Input(usize),
    /// An output.
    Output(usize),
}

/// What one argument is.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// Name of the argument.
    pub argument: String,
    /// What it is.
    pub value: BindingValue,
    /// Where it stands.
    pub location: Location,
}

/// What an argument may be.
#[derive(Clone, Debug, PartialEq)]
pub enum BindingValue {
    /// An input of the node.
    Input {
        /// Which.
        port: usize,
        /// In this order.
        format: Format,
    },
    /// An output of the node.
    Output {
        /// Which.
        port: usize,
        /// In this order.
        format: Format,
    },
    /// Memory between stages.
    Buffer {
        /// Which.
        id: usize,
        /// Bytes, and the tensor whose sizes the letters are.
        size: Option<(Expression, DimSource)>,
        /// Whether this stage fills it.
        is_output: bool,
    },
    /// A constant of the node, by name; left out when the node has none.
    Data {
        /// Name of an input.
        source: String,
    },
    /// Memory on the chip.
    LocalData {
        /// Bytes.
        size: Expression,
        /// Tensor whose sizes the letters are.
        dim: DimSource,
    },
    /// A number.
    Scalar {
        /// Whether it is a float.
        is_float: bool,
        /// Which one of a list, or of which port a dimension is.
        port: Option<usize>,
        /// An attribute, `I.X`, or a number.
        source: String,
    },
}

/// The layers of several files. Those of one name are tried in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VpuLayers(Vec<VpuLayer>);

impl VpuLayers {
    /// Adds those of a file behind those that are there.
    pub fn add(&mut self, layers: impl IntoIterator<Item = VpuLayer>) {
        self.0.extend(layers);
    }
    /// Layers for operations of this type.
    pub fn candidates<'a, 'n>(&'a self, type_name: &'n str) -> impl Iterator<Item = &'a VpuLayer> + use<'a, 'n> {
        self.0.iter().filter(move |l| l.name.eq_ignore_ascii_case(type_name))
    }
    /// The layer for a node: of those that suit, the first whose tensors lie as they do in the model, else the first. `None` leaves
    /// the node to the device.
    pub fn choose(&self, type_name: &str, node: &NodeView) -> Result<Option<&VpuLayer>> {
        let mut suitable = vec![];
        for layer in self.candidates(type_name) {
            if layer.suits(node)? {
                suitable.push(layer);
            }
        }
        let plain = suitable.iter().find(|l| l.reads_plainly());
        Ok(plain.or(suitable.first()).copied())
    }
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &VpuLayer> {
        self.0.iter()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
