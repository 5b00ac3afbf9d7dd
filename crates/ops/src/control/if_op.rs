//! If: runs one of two bodies. A condition that is known chooses the facts too, and the other body is not even looked at;
//! otherwise an output is what both branches have in common.

use super::bodies::{check_ports, declared_parameters, infer_body, parameter_type, union, without_content, without_symbols};
use super::iterate::leave_outputs_open;
use carafe_graph::{Body, EvalCx, Fact, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// Runs the first body when the condition is true, else the second.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 8, inputs = "cond, inputs...", outputs = "outputs...")]
pub struct If {
    /// Runs when the condition is true.
    pub then_body: Body,
    /// Runs when the condition is false.
    pub else_body: Body,
}

impl Op for If {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_boolean(0)?;
        cx.require_rank(0, &[0, 1])?;
        cx.require(cx.shape(0).elements().is_none_or(|n| n == 1), || {
            format!("the condition must have one element, found [{}]", cx.shape(0))
        })?;
        let n = self.then_body.outputs.len();
        let other = self.else_body.outputs.len();
        cx.require(n == other, || format!("both branches need the same outputs, found {n} and {other}"))?;
        check_ports(&self.then_body, cx.n_inputs())?;
        check_ports(&self.else_body, cx.n_inputs())?;
        if cx.exact() {
            leave_outputs_open(cx, n);
            return Ok(());
        }
        let known = cx.tensor(0).and_then(|t| t.to_vec::<u8>().ok()?.first().map(|&b| b != 0));
        let facts = match known {
            Some(true) => chosen_facts(cx, &self.then_body, &self.else_body)?,
            Some(false) => chosen_facts(cx, &self.else_body, &self.then_body)?,
            None => {
                let (then, other) = (branch_facts(cx, &self.then_body)?, branch_facts(cx, &self.else_body)?);
                then.iter().zip(&other).enumerate().map(|(i, (a, b))| merge(cx, i, a, b)).collect::<Result<_>>()?
            }
        };
        for (i, fact) in facts.into_iter().enumerate() {
            cx.set_fact(i, fact);
        }
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (body, other) = match cx.int(0)? {
            0 => (&self.else_body, &self.then_body),
            _ => (&self.then_body, &self.else_body),
        };
        let mut parameters = vec![None; body.model.parameters().len()];
        for input in &body.inputs {
            parameters[input.parameter] = input.outer.map(|o| cx.input(o).clone());
        }
        let parameters = parameters.into_iter().collect::<Option<Vec<_>>>();
        let parameters = parameters.ok_or_else(|| cx.fail("a body parameter has no value"))?;
        let results = cx.run_body(&body.model, &parameters)?;
        for output in &body.outputs {
            let mut value = results[output.result].clone();
            if value.rank() == 0 && is_vector(other, output.outer) {
                value = value.reshaped(&[1])?;
            }
            cx.set(output.outer, value)?;
        }
        Ok(())
    }
}

// Facts of the outer outputs when it is known that `body` runs and `other` does not.
fn chosen_facts(cx: &InferCx<'_>, body: &Body, other: &Body) -> Result<Vec<Fact>> {
    let mut facts = branch_facts(cx, body)?;
    for (i, fact) in facts.iter_mut().enumerate() {
        if fact.shape.rank() == Some(0) && is_vector(other, i) {
            *fact = Fact::new(fact.ty, PartialShape::of(&[1]));
        }
    }
    Ok(facts)
}

// A branch that gives a scalar where the other gives a vector gives a vector of one, whichever of them runs.
fn is_vector(body: &Body, output: usize) -> bool {
    let result = body.outputs.iter().find(|o| o.outer == output).and_then(|o| body.model.results().get(o.result));
    result.is_some_and(|&r| body.model.fact(body.model.result_value(r)).shape.rank() == Some(1))
}

// Facts of the outer outputs, in order, if this branch is taken.
fn branch_facts(cx: &InferCx<'_>, body: &Body) -> Result<Vec<Fact>> {
    let mut parameters = declared_parameters(&body.model);
    for input in &body.inputs {
        if let Some(outer) = input.outer {
            let ty = parameter_type(parameters[input.parameter].ty, cx.ty(outer), input.parameter)?;
            parameters[input.parameter] = Fact { ty, ..without_symbols(cx.fact(outer)) };
        }
    }
    let results = infer_body(&body.model, &parameters)?;
    let mut outputs = vec![Fact::unknown(); body.outputs.len()];
    for output in &body.outputs {
        outputs[output.outer] = results[output.result].clone();
    }
    Ok(outputs)
}

fn merge(cx: &InferCx<'_>, output: usize, then: &Fact, other: &Fact) -> Result<Fact> {
    let ty = ElementType::merge(then.ty, other.ty).ok_or_else(|| {
        cx.fail(format!("output {output} must have one type in both branches, found {} and {}", then.ty, other.ty))
    })?;
    let shape = match (then.shape.dims(), other.shape.dims()) {
        (Some([]), Some([one])) | (Some([one]), Some([])) => {
            PartialShape::new([if one.get() == Some(1) { *one } else { Dim::ANY }])
        }
        _ => union(&then.shape, &other.shape),
    };
    Ok(without_content(&Fact::new(ty, shape)))
}
