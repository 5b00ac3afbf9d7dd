//! What an operation is. `OpDecl` and `OpNew` are written by `#[derive(Op)]`; an author writes `infer` and `eval`.

use crate::attr::{AttrInfo, AttrMap, AttrValue};
use crate::body::Body;
use crate::error::{Error, Result};
use crate::eval::EvalCx;
use crate::infer::InferCx;
use std::any::Any;
use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

/// How the error of an evaluation ends that nobody wrote.
pub(crate) const NO_EVALUATION: &str = "has no reference evaluation";

/// An operation: a plain struct of attributes with two functions.
pub trait Op: OpDecl + Any + Debug + Send + Sync {
    /// Types and shapes of the outputs, from partial or exact inputs. Also the place where a bad node is refused.
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()>;

    /// The plain specification in code: folds constants, runs TEMPLATE, checks every fast kernel. Without it only a device
    /// with a kernel for the operation runs it.
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        Err(Error::unsupported(format!("{} {NO_EVALUATION}", cx.info().name)))
    }

    /// Whether `eval` is written. It is found out by starting `eval` and stopping at the first thing it asks of its context,
    /// before anything is computed.
    fn has_eval(&self) -> bool {
        EvalCx::asks(self.info(), |cx| self.eval(cx))
    }
}

/// What the derive knows of an operation, reachable through `dyn Op`.
pub trait OpDecl {
    /// What it declares.
    fn info(&self) -> &'static OpInfo;
    /// Attributes in declaration order, as the IR spells them.
    fn attrs(&self) -> Vec<(Cow<'static, str>, AttrValue)>;
    /// Type name in files; differs from the class only for nodes kept without understanding them.
    fn type_name(&self) -> &str {
        self.info().xml_name
    }
    /// Opset name in files.
    fn opset(&self) -> &str {
        self.info().opset
    }
    /// For `get`.
    fn as_any(&self) -> &dyn Any;
    /// Whether type and attributes are the same.
    fn eq_op(&self, other: &dyn Op) -> bool;
    /// Bodies (sub-graphs) by attribute name.
    fn bodies(&self) -> Vec<(&'static str, &Body)>;
    /// The same, for writing.
    fn bodies_mut(&mut self) -> Vec<(&'static str, &mut Body)>;
    /// A copy.
    fn clone_op(&self) -> Box<dyn Op>;
}

/// The constructing half of a declaration.
pub trait OpNew: Op + Sized {
    /// What the type declares.
    const INFO: &'static OpInfo;
    /// An operation with these attributes; a missing one has its default.
    fn from_attrs(attrs: &AttrMap) -> Result<Self>;
}

/// One input or output place of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortInfo {
    /// Name of the port.
    pub name: &'static str,
    /// Whether it may be left out.
    pub optional: bool,
    /// Stands for any number of ports; only as the last one.
    pub variadic: bool,
}

/// Facts about an operation that hold for all its nodes.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// Class name, e.g. `Softmax`.
    pub name: &'static str,
    /// Name in files, e.g. `SoftMax`.
    pub xml_name: &'static str,
    /// The `version` written to files: home opset or an extension's opset name.
    pub opset: &'static str,
    /// First and last numbered opset that holds this class; `(0, 0)` for an extension.
    pub since: u32,
    /// Last opset with this version.
    pub until: u32,
    /// Its inputs.
    pub inputs: &'static [PortInfo],
    /// Its outputs.
    pub outputs: &'static [PortInfo],
    /// Its attributes.
    pub attrs: &'static [AttrInfo],
    /// Its documentation.
    pub doc: &'static str,
    /// Inputs whose elements are only moved, never computed with; lets partial values flow through (`infer`).
    pub moves: &'static [usize],
    /// Inputs may be swapped.
    pub commutative: bool,
    /// Two evaluations may differ (random numbers), so it must not be folded.
    pub random: bool,
    /// Reads or writes a variable.
    pub stateful: bool,
    /// Kept alive although nothing reads its output.
    pub sink: bool,
    /// Takes attributes beyond the declared ones; readers give it all that a file has.
    pub any_attrs: bool,
}

impl OpInfo {
    /// Fewest and most inputs.
    pub fn input_range(&self) -> (usize, usize) {
        let min = self.inputs.iter().filter(|p| !p.optional && !p.variadic).count();
        let max = if self.inputs.last().is_some_and(|p| p.variadic) { usize::MAX } else { self.inputs.len() };
        (min, max)
    }
    /// Whether the class belongs to the numbered opset.
    pub fn in_opset(&self, n: u32) -> bool {
        self.since <= n && n <= self.until
    }
}

impl dyn Op {
    /// The concrete operation, if it is one.
    pub fn get<T: Op>(&self) -> Option<&T> {
        self.as_any().downcast_ref()
    }
    /// Whether it is of this type.
    pub fn is<T: Op>(&self) -> bool {
        self.get::<T>().is_some()
    }
    /// Whether it has a model of its own.
    pub fn has_body(&self) -> bool {
        !self.bodies().is_empty()
    }
}

/// Shared handle of an operation in a graph.
pub type OpRef = Arc<dyn Op>;
