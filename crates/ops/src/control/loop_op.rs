//! Loop: runs its body while the condition holds and the trip count is not reached. A negative trip count is no bound; the
//! condition input decides about the first iteration, the body's condition result about each further one.

use super::iterate::{infer_iterations, leave_outputs_open, run, set_outputs};
use carafe_graph::{Body, Content, EvalCx, Fact, InferCx, Op, Result};
use carafe_tensor::Dim;

/// Runs a body again and again, carrying values from one iteration to the next.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 5, inputs = "trip_count, execution_condition, inputs...", outputs = "outputs...")]
pub struct Loop {
    /// The sub-graph of one iteration.
    pub body: Body,
}

impl Op for Loop {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_integer(0)?;
        cx.require_boolean(1)?;
        for i in 0..2 {
            cx.require_rank(i, &[0, 1])?;
            cx.require(cx.shape(i).elements().is_none_or(|n| n == 1), || {
                format!("{} must have one element, found [{}]", cx.port_name(i), cx.shape(i))
            })?;
        }
        if cx.exact() {
            leave_outputs_open(cx, self.body.outputs.len());
            return Ok(());
        }
        let iterated = infer_iterations(cx, &self.body, |results| Ok(self.count(cx, results)?.max() == Some(1)))?;
        if let Some(p) = self.body.current_iteration {
            let rank = iterated.parameters[p].shape.rank();
            cx.require(rank.is_none_or(|r| r <= 1), || "the iteration counter must have rank 0 or 1".to_string())?;
        }
        let count = self.count(cx, &iterated.results)?;
        set_outputs(cx, &self.body, &iterated, count, false)
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let trip_count = cx.int(0)?;
        let first = cx.int(1)? != 0;
        run(cx, &self.body, if trip_count < 0 { i64::MAX } else { trip_count }, first)
    }
}

impl Loop {
    fn count(&self, cx: &InferCx<'_>, results: &[Fact]) -> Result<Dim> {
        let trip = cx.int(0);
        // A bound that may be negative is none.
        let of_value = || cx.dims_value(0).and_then(|d| d.first().copied()).filter(|d| d.min() >= 0);
        let bound = match trip {
            Some(t) if t >= 0 => Dim::known(t),
            Some(_) => Dim::ANY,
            None => of_value().unwrap_or(Dim::ANY),
        };
        let first = cx.tensor(1).and_then(|t| t.to_vec::<u8>().ok()?.first().map(|&b| b != 0));
        let goes_on = match self.body.execution_condition {
            Some(result) => self.fixed_condition(cx, &results[result], result),
            None => Some(true),
        };
        let count = match goes_on {
            Some(true) => bound,
            Some(false) => bound.min_of(Dim::known(1)),
            None => Dim::range(bound.min().min(1), bound.max()),
        };
        if first == Some(true) && goes_on == Some(true) && trip.is_some_and(|t| t < 0) {
            return Err(cx.fail("the loop never ends: no trip count, and its condition is always true"));
        }
        Ok(match first {
            Some(true) => count,
            Some(false) => Dim::known(0),
            None => Dim::range(0, count.max()),
        })
    }

    // The condition of the body, where it is the same in every iteration: a constant, or a parameter handed through.
    fn fixed_condition(&self, cx: &InferCx<'_>, fact: &Fact, result: usize) -> Option<bool> {
        let of = |fact: &Fact| match &fact.content {
            Content::Known(t) => t.to_vec::<u8>().ok()?.first().map(|&b| b != 0),
            _ => None,
        };
        let model = &self.body.model;
        let passed = |result: usize| {
            let value = model.result_value(*model.results().get(result)?);
            model.parameters().iter().position(|&p| p == value.node)
        };
        of(fact).or_else(|| {
            let parameter = passed(result)?;
            let input = self.body.inputs.iter().find(|i| i.parameter == parameter && i.slicing.is_none())?;
            let unchanged = input.back_edge.is_none_or(|r| passed(r) == Some(parameter));
            if unchanged { of(cx.fact(input.outer?)) } else { None }
        })
    }
}
