//! A sub-graph held as an attribute (If, Loop, TensorIterator) and how its ports meet the outer node. Indices here are
//! positions in the body's parameter and result lists and in the outer node's inputs and outputs; files number them
//! differently and are translated at the door.

use crate::model::Model;

/// A part of an axis taken (input) or joined (output) per iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slicing {
    /// Axis that is cut.
    pub axis: i64,
    /// First element; negative counts from the end.
    pub start: i64,
    /// Last element; negative counts from the end.
    pub end: i64,
    /// Step from part to part; negative goes backwards.
    pub stride: i64,
    /// Elements of a part.
    pub part_size: i64,
}

impl Slicing {
    /// Forward over the whole axis, one element a step.
    pub fn along(axis: i64) -> Slicing {
        Slicing { axis, start: 0, end: -1, stride: 1, part_size: 1 }
    }
}

/// How a body parameter gets its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BodyInput {
    /// Outer input; `None` when nothing outside feeds it (the iteration counter).
    pub outer: Option<usize>,
    /// Which parameter of the body.
    pub parameter: usize,
    /// How it is cut, if it is.
    pub slicing: Option<Slicing>,
    /// Body result whose value of the previous iteration replaces the outer value.
    pub back_edge: Option<usize>,
}

/// Where a body result goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BodyOutput {
    /// Which output of the node.
    pub outer: usize,
    /// Which result of the body.
    pub result: usize,
    /// Join the per-iteration values; otherwise the last one counts.
    pub slicing: Option<Slicing>,
}

/// A sub-graph with its port map.
#[derive(Clone, Debug)]
pub struct Body {
    /// The model.
    pub model: Model,
    /// How its parameters are fed.
    pub inputs: Vec<BodyInput>,
    /// Where its results go.
    pub outputs: Vec<BodyOutput>,
    /// Parameter that receives the iteration number.
    pub current_iteration: Option<usize>,
    /// Result that decides whether another iteration follows.
    pub execution_condition: Option<usize>,
}

impl Body {
    /// A body with no ports connected yet.
    pub fn new(model: Model) -> Body {
        Body { model, inputs: vec![], outputs: vec![], current_iteration: None, execution_condition: None }
    }

    /// Checks that every index of the port map exists; `n_outer` is the number of inputs of the outer node.
    pub fn check(&self, n_outer: usize) -> crate::Result<()> {
        let (np, nr) = (self.model.parameters().len(), self.model.results().len());
        let bad = |what: &str, i: usize, n: usize| {
            Err(crate::Error::invalid(format!("port map names {what} {i}, there are {n}")))
        };
        for i in &self.inputs {
            if i.parameter >= np {
                return bad("body parameter", i.parameter, np);
            }
            if let Some(o) = i.outer.filter(|&o| o >= n_outer) {
                return bad("outer input", o, n_outer);
            }
            if let Some(r) = i.back_edge.filter(|&r| r >= nr) {
                return bad("body result", r, nr);
            }
        }
        for o in &self.outputs {
            if o.result >= nr {
                return bad("body result", o.result, nr);
            }
        }
        if let Some(p) = self.current_iteration.filter(|&p| p >= np) {
            return bad("body parameter", p, np);
        }
        if let Some(r) = self.execution_condition.filter(|&r| r >= nr) {
            return bad("body result", r, nr);
        }
        Ok(())
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Body) -> bool {
        self.inputs == other.inputs
            && self.outputs == other.outputs
            && self.current_iteration == other.current_iteration
            && self.execution_condition == other.execution_condition
            && self.model.same_as(&other.model)
    }
}
