//! Bodies of If, Loop and TensorIterator as plain values of Python.

use super::model::EngineModel;
use carafe::{Body, BodyInput, BodyOutput, Slicing};

/// Axis, start, end, stride, part size.
type Cut = (i64, i64, i64, i64, i64);
/// Attribute, model, inputs `(outer, parameter, cut, back edge)`, outputs `(outer, result, cut)`, the parameter of the iteration
/// number, the result of the condition.
pub(super) type BodyParts = (
    String,
    EngineModel,
    Vec<(Option<usize>, usize, Option<Cut>, Option<usize>)>,
    Vec<(usize, usize, Option<Cut>)>,
    Option<usize>,
    Option<usize>,
);

fn cut(s: &Slicing) -> Cut {
    (s.axis, s.start, s.end, s.stride, s.part_size)
}

fn slicing((axis, start, end, stride, part_size): Cut) -> Slicing {
    Slicing { axis, start, end, stride, part_size }
}

/// A body taken apart.
pub(super) fn parts(name: &str, body: &Body) -> BodyParts {
    let inputs = body.inputs.iter().map(|i| (i.outer, i.parameter, i.slicing.as_ref().map(cut), i.back_edge));
    let outputs = body.outputs.iter().map(|o| (o.outer, o.result, o.slicing.as_ref().map(cut)));
    (
        name.to_string(),
        EngineModel(body.model.clone().into()),
        inputs.collect(),
        outputs.collect(),
        body.current_iteration,
        body.execution_condition,
    )
}

/// A body put together.
pub(super) fn whole(parts: BodyParts) -> (String, Body) {
    let (name, model, inputs, outputs, current_iteration, execution_condition) = parts;
    let inputs = inputs.into_iter().map(|(outer, parameter, cut, back_edge)| BodyInput {
        outer,
        parameter,
        slicing: cut.map(slicing),
        back_edge,
    });
    let outputs =
        outputs.into_iter().map(|(outer, result, cut)| BodyOutput { outer, result, slicing: cut.map(slicing) });
    let body = Body {
        model: model.0.as_ref().clone(),
        inputs: inputs.collect(),
        outputs: outputs.collect(),
        current_iteration,
        execution_condition,
    };
    (name, body)
}
