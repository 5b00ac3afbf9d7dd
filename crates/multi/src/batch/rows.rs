//! Whether a model may be run with many rows at once: every row must come out as if it were alone. Two things are
//! checked, and what is not known to be right is refused with the reason. With `n` rows, every value that depends on
//! inputs must have its old shape but for the first dimension, which was 1 and is `n`; and every operation that touches
//! such a value must be known to keep rows apart, with attributes that do.

use carafe_graph::{Constant, Error, Model, Node, NodeId, Parameter, Result, ResultOp, Value, normalize_axis};
use carafe_tensor::PartialShape;
use std::collections::HashMap;

/// The model with `n` rows.
pub(crate) fn batched(model: &Model, n: usize) -> Result<Model> {
    let refuse = |why: String| Err(Error::unsupported(format!("cannot run {n} requests as one batch: {why}")));
    if model.parameters().is_empty() {
        return refuse("the model has no inputs".into());
    }
    let inputs = model.parameters().iter().map(|p| ("input", model.parameter_name(*p), model.fact((*p).into())));
    let outputs = model.results().iter().map(|r| ("output", model.result_name(*r), model.fact(model.result_value(*r))));
    for (what, name, fact) in inputs.chain(outputs) {
        let Some(shape) = fact.shape.to_static() else {
            return refuse(format!("{what} `{name}` has the dynamic shape [{}]", fact.shape));
        };
        if shape.first() != Some(&1) {
            return refuse(format!("{what} `{name}` has shape {shape:?}, whose first dimension is not a batch of 1"));
        }
    }
    let mut many = model.clone();
    many.prune();
    let one = many.clone();
    let mut shapes = HashMap::new();
    for (i, p) in many.parameters().iter().enumerate() {
        let mut shape = many.fact((*p).into()).shape.to_static().unwrap_or_default();
        shape[0] = n;
        shapes.insert(i, PartialShape::of(&shape));
    }
    if let Err(e) = many.reshape(&shapes) {
        return refuse(format!("the model does not take such a batch: {e}"));
    }
    match check(&one, &many, n) {
        Ok(()) => Ok(many),
        Err((id, why)) => refuse(format!("{}: {why}", many.node(id).place())),
    }
}

/// What the elements of a value depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Neither on inputs nor on the number of rows.
    Fixed,
    /// On the number of rows.
    Count,
    /// On inputs; one row for each.
    Rows,
}

fn check(one: &Model, many: &Model, n: usize) -> Result<(), (NodeId, String)> {
    let order = many.topological_order().map_err(|e| (NodeId(0), e.to_string()))?;
    let mut kinds = vec![Kind::Fixed; many.slots()];
    for id in order {
        let node = many.node(id);
        let kind = kind_of(many, id, &kinds).map_err(|why| (id, why))?;
        kinds[id.0 as usize] = match kind {
            Kind::Rows => {
                rows_only(one.node(id), node, n).map_err(|why| (id, why))?;
                Kind::Rows
            }
            Kind::Count if same_values(one.node(id), node) => Kind::Fixed,
            other => other,
        };
        if node.op().is::<ResultOp>() && kind != Kind::Rows {
            return Err((id, "an output does not depend on the inputs".into()));
        }
    }
    Ok(())
}

fn same_values(one: &Node, many: &Node) -> bool {
    let same = |(a, b): (&carafe_graph::Output, &carafe_graph::Output)| match (a.fact.tensor(), b.fact.tensor()) {
        (Some(a), Some(b)) => a.content_eq(b),
        _ => false,
    };
    one.outputs().len() == many.outputs().len() && one.outputs().iter().zip(many.outputs()).all(same)
}

// The shape of before, with `n` in place of the first 1.
fn rows_only(one: &Node, many: &Node, n: usize) -> Result<(), String> {
    for (before, after) in one.outputs().iter().zip(many.outputs()) {
        let (before, after) = (&before.fact.shape, &after.fact.shape);
        let expected = before.to_static().filter(|s| s.first() == Some(&1)).map(|mut s| {
            s[0] = n;
            s
        });
        if expected.is_none() || expected != after.to_static() {
            return Err(format!("its output [{before}] becomes [{after}], which is not the same with {n} rows"));
        }
    }
    Ok(())
}

fn kind_of(model: &Model, id: NodeId, kinds: &[Kind]) -> Result<Kind, String> {
    let node = model.node(id);
    let (op, info) = (node.op(), node.op().info());
    if op.is::<Parameter>() {
        return Ok(Kind::Rows);
    }
    if op.is::<Constant>() {
        return Ok(Kind::Fixed);
    }
    if info.random || info.stateful || info.sink {
        return Err("it remembers or draws something, which rows would share".into());
    }
    let inputs: Vec<Kind> = node.inputs().iter().map(|v| kinds[v.node.0 as usize]).collect();
    if op.is::<ResultOp>() {
        return Ok(inputs[0]);
    }
    if inputs.iter().all(|k| *k != Kind::Rows) {
        return Ok(if inputs.contains(&Kind::Count) { Kind::Count } else { Kind::Fixed });
    }
    // An operation of an extension may share its name with one of ours.
    if info.since == 0 {
        return Err("an operation of an extension is not known to keep rows apart".into());
    }
    if info.name == "ShapeOf" {
        return Ok(Kind::Count);
    }
    Site { model, id, node, inputs }.keeps_rows()?;
    Ok(Kind::Rows)
}

const ELEMENTWISE: &str = "\
    Abs Acos Acosh Add Asin Asinh Atan Atanh BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceiling Clamp Convert \
    Cos Cosh Divide Elu Equal Erf Exp FakeQuantize Floor FloorMod Gelu Greater GreaterEqual HSigmoid HSwish \
    HardSigmoid Identity IsFinite IsInf IsNaN Less LessEqual Log LogicalAnd LogicalNot LogicalOr LogicalXor \
    Maximum Minimum Mish Mod Multiply Negative NotEqual PRelu Power Relu Round Select Selu Sigmoid Sign Sin \
    Sinh SoftPlus SoftSign Sqrt SquaredDifference Subtract Swish Tan Tanh";

/// A node between values that are rows or not.
struct Site<'a> {
    model: &'a Model,
    id: NodeId,
    node: &'a Node,
    inputs: Vec<Kind>,
}

impl Site<'_> {
    fn keeps_rows(&self) -> Result<(), String> {
        match self.node.op().info().name {
            name if ELEMENTWISE.split_whitespace().any(|e| e == name) => self.elementwise(),
            "Convolution"
            | "GroupConvolution"
            | "ConvolutionBackpropData"
            | "GroupConvolutionBackpropData"
            | "BinaryConvolution"
            | "AvgPool"
            | "AdaptiveAvgPool"
            | "DepthToSpace"
            | "SpaceToDepth"
            | "GRN"
            | "GroupNormalization" => self.rows_at(&[0]),
            // Positions of the maxima count over all rows.
            "MaxPool" | "AdaptiveMaxPool" => self.rows_at(&[0]).and_then(|()| self.second_output_unused()),
            "BatchNormInference" => {
                let data = self.inputs.iter().position(|k| *k == Kind::Rows).unwrap_or(0);
                self.rows_at(&[data])
            }
            "ReduceMax" | "ReduceMin" | "ReduceSum" | "ReduceMean" | "ReduceProd" | "ReduceL1" | "ReduceL2"
            | "ReduceLogicalAnd" | "ReduceLogicalOr" | "NormalizeL2" | "LRN" => {
                self.rows_at(&[0]).and_then(|()| self.axes_leave_rows(1))
            }
            "MVN" if self.node.inputs().len() == 1 => Ok(()),
            "MVN" => self.rows_at(&[0]).and_then(|()| self.axes_leave_rows(1)),
            "Softmax" | "LogSoftmax" | "ShuffleChannels" | "TopK" => {
                self.rows_at(&[0]).and_then(|()| self.axis_leaves_rows(self.attr("axis").unwrap_or(1)))
            }
            "Concat" => {
                self.rows_at(&(0..self.inputs.len()).collect::<Vec<_>>())?;
                self.axis_leaves_rows(self.attr("axis").unwrap_or(0))
            }
            "Split" | "VariadicSplit" | "CumSum" => self.rows_at(&[0]).and_then(|()| self.axes_leave_rows(1)),
            "Slice" => self.rows_at(&[0]).and_then(|()| self.axes_leave_rows(4)),
            "StridedSlice" => self.rows_at(&[0]).and_then(|()| self.strided_slice()),
            "Transpose" => {
                self.rows_at(&[0])?;
                match self.ints(1).and_then(|order| order.first().copied()) {
                    Some(0) => Ok(()),
                    _ => Err("the first dimension moves".into()),
                }
            }
            // Rows lie one after the other, so the same number of rows before and after means the same rows.
            "Reshape" | "Squeeze" | "Unsqueeze" => match self.inputs[0] {
                Kind::Rows if self.inputs[1..].iter().all(|k| *k != Kind::Rows) => Ok(()),
                _ => Err("its shape depends on the inputs".into()),
            },
            "Pad" => {
                self.rows_at(&[0])?;
                let none = |port| self.ints(port).is_some_and(|p| p.first() == Some(&0));
                if none(1) && none(2) { Ok(()) } else { Err("it adds rows".into()) }
            }
            "Tile" => {
                self.rows_at(&[0])?;
                let (repeats, rank) = (self.ints(1), self.rank(0));
                let kept = repeats.is_some_and(|r| r.len() < rank || (r.len() == rank && r[0] == 1));
                if kept { Ok(()) } else { Err("it repeats rows".into()) }
            }
            "Gather" => self.gather(),
            "MatMul" => self.mat_mul(),
            "Interpolate" => {
                self.rows_at(&[0])?;
                match self.node.op().info().since {
                    11.. => self.axes_leave_rows(2),
                    4.. => self.axes_leave_rows(3),
                    _ => Err("this version is not known to keep rows apart".into()),
                }
            }
            "ScaledDotProductAttention" => {
                let all = (0..3).all(|i| self.inputs[i] == Kind::Rows && self.rank(i) >= 3);
                match all && self.inputs.len() == 3 {
                    true => Ok(()),
                    false => Err("only query, key and value may be rows, with at least 3 dimensions".into()),
                }
            }
            _ => Err("it is not known to keep rows apart".into()),
        }
    }

    // Exactly these inputs are rows and all others are fixed.
    fn rows_at(&self, ports: &[usize]) -> Result<(), String> {
        for (i, kind) in self.inputs.iter().enumerate() {
            let expected = if ports.contains(&i) { Kind::Rows } else { Kind::Fixed };
            if *kind != expected {
                let found = match kind {
                    Kind::Rows => "depends on the inputs",
                    Kind::Count => "depends on the number of rows",
                    Kind::Fixed => "is the same for all rows",
                };
                return Err(format!("its input {i} {found}"));
            }
        }
        Ok(())
    }

    fn elementwise(&self) -> Result<(), String> {
        let rank = self.node.outputs()[0].fact.shape.rank().unwrap_or(0);
        if self.attr_text("auto_broadcast").is_some_and(|b| b.eq_ignore_ascii_case("pdpd")) {
            return Err("it broadcasts along an axis of its own".into());
        }
        for (i, kind) in self.inputs.iter().enumerate() {
            match kind {
                Kind::Rows if self.rank(i) == rank => {}
                Kind::Rows => return Err(format!("the rows of its input {i} meet another dimension")),
                Kind::Fixed if self.rank(i) < rank || self.shape(i).dim(0).size() == Some(1) => {}
                Kind::Fixed => return Err(format!("its input {i} has rows of its own")),
                Kind::Count => return Err(format!("its input {i} depends on the number of rows")),
            }
        }
        Ok(())
    }

    fn gather(&self) -> Result<(), String> {
        let (batch_dims, axis) = (self.attr("batch_dims").unwrap_or(0), self.ints(2).and_then(|a| a.first().copied()));
        match (self.inputs[0], self.inputs[1], axis) {
            (_, _, None) => Err("its axis is not known".into()),
            _ if batch_dims != 0 => Err("it gathers for each batch".into()),
            (Kind::Rows, Kind::Fixed, Some(axis)) => self.axis_leaves_rows(axis),
            (Kind::Fixed, Kind::Rows, Some(0)) => Ok(()),
            _ => Err("it gathers rows".into()),
        }
    }

    fn mat_mul(&self) -> Result<(), String> {
        let (a, b) = (self.rank(0), self.rank(1));
        let transposed = self.attr_text("transpose_a").is_some_and(|t| t == "true");
        let kept = match (self.inputs[0], self.inputs[1]) {
            (Kind::Rows, Kind::Fixed) => a >= b && (a >= 3 || (a == 2 && !transposed)),
            (Kind::Fixed, Kind::Rows) => b >= 3 && a <= b,
            (Kind::Rows, Kind::Rows) => a >= 3 && a == b,
            _ => false,
        };
        if kept { Ok(()) } else { Err("it sums over rows, or pairs them".into()) }
    }

    // The first dimension must be taken whole.
    fn strided_slice(&self) -> Result<(), String> {
        let first = |name: &str| self.attr_ints(name).first().copied().unwrap_or(0);
        let whole = first("begin_mask") == 1 && first("end_mask") == 1;
        let changed = ["new_axis_mask", "shrink_axis_mask", "ellipsis_mask"].iter().any(|m| first(m) != 0);
        let by_one = self.node.inputs().len() < 4 || self.ints(3).is_some_and(|s| s.first() == Some(&1));
        if whole && !changed && by_one { Ok(()) } else { Err("it takes a part of the rows".into()) }
    }

    fn axes_leave_rows(&self, port: usize) -> Result<(), String> {
        let axes = self.ints(port).ok_or("its axes are not known")?;
        axes.into_iter().try_for_each(|a| self.axis_leaves_rows(a))
    }

    fn axis_leaves_rows(&self, axis: i64) -> Result<(), String> {
        match normalize_axis(axis, self.rank(0)) {
            Ok(0) => Err("it works along the rows".into()),
            Ok(_) => Ok(()),
            Err(e) => Err(e.to_string()),
        }
    }

    fn second_output_unused(&self) -> Result<(), String> {
        let value = |port| Value { node: self.id, port };
        let used = (1..self.node.outputs().len()).any(|port| !self.model.users(value(port)).is_empty());
        if used { Err("its positions count over all rows".into()) } else { Ok(()) }
    }

    fn shape(&self, input: usize) -> &PartialShape {
        &self.model.fact(self.node.inputs()[input]).shape
    }
    fn rank(&self, input: usize) -> usize {
        self.shape(input).rank().unwrap_or(0)
    }
    fn ints(&self, input: usize) -> Option<Vec<i64>> {
        self.model.fact(*self.node.inputs().get(input)?).ints()
    }
    fn attr_text(&self, name: &str) -> Option<String> {
        self.node.op().attrs().into_iter().find(|(k, _)| k == name)?.1.to_text()
    }
    fn attr(&self, name: &str) -> Option<i64> {
        self.attr_text(name)?.trim().parse().ok()
    }
    fn attr_ints(&self, name: &str) -> Vec<i64> {
        let text = self.attr_text(name).unwrap_or_default();
        text.split(',').filter_map(|t| t.trim().parse().ok()).collect()
    }
}
