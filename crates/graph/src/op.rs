//! What an operation is. `OpDecl` and `OpNew` are written by `#[derive(Op)]`; an author writes `infer` and `eval`.

use crate::attr::{AttrInfo, AttrMap, AttrValue};
use crate::body::Body;
use crate::error::{Error, Result};
use crate::eval::EvalCx;
use crate::fact::Fact;
use crate::infer::InferCx;
use crate::reorder::{OrderCx, Reordered};
use crate::rows::RowsCx;
use crate::version::{Version, VersionCx};
use carafe_tensor::ElementType;
use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// An operation: a plain struct of attributes with two functions, and answers to what passes and devices ask.
///
/// An answer that is the same for all nodes of a class is a word of `#[op(...)]` and a field of [`OpInfo`]. Where it depends
/// on attributes or inputs the operation answers itself, by one of the provided methods; the defaults go by the words.
pub trait Op: OpDecl + Any + Send + Sync {
    /// Types and shapes of the outputs, from partial or exact inputs. Also the place where a bad node is refused.
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()>;

    /// The plain specification in code: folds constants, runs TEMPLATE, checks every fast kernel. An operation that leaves
    /// it out says so with `#[op(no_eval)]`; then only a device with a kernel for it runs it.
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        Err(Error::unsupported(format!(
            "{} has no reference evaluation: write `eval`, or declare `#[op(no_eval)]` and offer a kernel",
            cx.info().name
        )))
    }

    /// Whether `eval` is written.
    fn has_eval(&self) -> bool {
        !self.info().no_eval
    }

    /// Whether the first output is 0 wherever the first input is, for every channel alike.
    fn keeps_zero(&self) -> bool {
        self.info().keeps_zero
    }

    /// Whether results depend on the element type beyond its range and precision: on its bits, or on its least number.
    fn needs_own_type(&self) -> bool {
        self.info().own_type
    }

    /// The number that, as the second operand (either one where the operation is commutative), gives the other back.
    fn neutral(&self, _ty: ElementType) -> Option<f64> {
        None
    }

    /// Whether rows of its inputs come out as if each were alone; the error says why not.
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.by_info()
    }

    /// The operation on inputs with their axes in another order, whose output is the old one in that order; `None` where
    /// there is none.
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        cx.by_info(self)
    }

    /// Multiply-accumulates of a node; 0 for operations that do none worth counting, `None` where a shape is not known.
    fn macs(&self, _inputs: &[&Fact], _outputs: &[&Fact]) -> Option<u64> {
        Some(0)
    }

    /// The next newer version of the operation, where one says exactly the same. Readers ask until there is none, so that
    /// passes and devices meet current operations.
    fn upgrade(&self, _cx: &VersionCx<'_>) -> Option<Version> {
        None
    }

    /// The next older version of the operation, where one says exactly the same. Writers ask until there is none, so that
    /// older readers take the file. What [`upgrade`](Op::upgrade) makes of it is this operation again.
    fn downgrade(&self, _cx: &VersionCx<'_>) -> Option<Version> {
        None
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
    fn bodies(&self) -> Vec<(&'static str, &Body)> {
        Vec::new()
    }
    /// The same, for writing.
    fn bodies_mut(&mut self) -> Vec<(&'static str, &mut Body)> {
        Vec::new()
    }
    /// A copy.
    fn clone_op(&self) -> Box<dyn Op>;
}

/// Any operation is shown by what it declares, so that no program carries code for each of them.
impl fmt::Debug for dyn Op + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct(self.type_name());
        for (name, value) in self.attrs() {
            shown.field(&name, &value);
        }
        shown.finish()
    }
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

/// How an operation works on single elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elementwise {
    /// It does not, or not on them alone.
    No,
    /// On every element of the first input; further inputs are single numbers.
    First,
    /// On the elements of all inputs, broadcast together.
    All,
}

/// Facts about an operation that hold for all its nodes. A declaration by hand begins with [`OpInfo::PLAIN`].
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
    /// Further opset names under which files have it.
    pub also: &'static [&'static str],
    /// Whether it is of the operation library; everything else is an extension's.
    pub builtin: bool,
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
    /// Inputs that decide the shape of an output, so what flows into them must keep its precision.
    pub shape_inputs: &'static [usize],
    /// Inputs whose rows (parts along the first axis) stay apart, each giving a row of every output; the others must be the
    /// same for all rows.
    pub rows: &'static [usize],
    /// Works on single elements.
    pub elementwise: Elementwise,
    /// Axis of the output along which every element has weights of its own; negative counts from the end.
    pub channel: Option<i64>,
    /// The first output has the shape of the first input. Holds for `Elementwise::First` too.
    pub keeps_shape: bool,
    /// Gives 0 for 0 and treats every channel alike ([`Op::keeps_zero`]).
    pub keeps_zero: bool,
    /// Inputs may be swapped.
    pub commutative: bool,
    /// Done twice it gives what it gives once.
    pub idempotent: bool,
    /// Done twice it gives back what it was given.
    pub involution: bool,
    /// Combines elements along the axes that its second input lists; `keep_dims` is an attribute.
    pub reduces: bool,
    /// Rounds to the numbers of a smaller type: the model is meant for one.
    pub quantizes: bool,
    /// Reads nothing of its inputs but their shapes.
    pub shape_only: bool,
    /// Knows bits or the least number of its type ([`Op::needs_own_type`]).
    pub own_type: bool,
    /// Does so much work that preparing a kernel pays even for shapes that never come again.
    pub heavy: bool,
    /// Two evaluations may differ (random numbers), so it must not be folded.
    pub random: bool,
    /// Reads or writes a variable.
    pub stateful: bool,
    /// Kept alive although nothing reads its output.
    pub sink: bool,
    /// Takes attributes beyond the declared ones; readers give it all that a file has.
    pub any_attrs: bool,
    /// `eval` is not written ([`Op::has_eval`]).
    pub no_eval: bool,
}

impl OpInfo {
    /// An extension's declaration without ports, attributes or facts.
    pub const PLAIN: OpInfo = OpInfo {
        name: "",
        xml_name: "",
        opset: "",
        since: 0,
        until: 0,
        also: &[],
        builtin: false,
        inputs: &[],
        outputs: &[],
        attrs: &[],
        doc: "",
        moves: &[],
        shape_inputs: &[],
        rows: &[],
        elementwise: Elementwise::No,
        channel: None,
        keeps_shape: false,
        keeps_zero: false,
        commutative: false,
        idempotent: false,
        involution: false,
        reduces: false,
        quantizes: false,
        shape_only: false,
        own_type: false,
        heavy: false,
        random: false,
        stateful: false,
        sink: false,
        any_attrs: false,
        no_eval: false,
    };
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
