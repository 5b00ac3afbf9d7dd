//! TensorIterator: runs its body once for every part of its sliced inputs. Without a sliced input the joined outputs say
//! how often; without either it runs once.

use super::bodies::check_ports;
use super::iterate::{infer_iterations, leave_outputs_open, run, set_outputs};
use super::parts;
use carafe_graph::{Body, EvalCx, InferCx, Op, Result, Slicing, normalize_axis};
use carafe_tensor::Dim;

/// Runs a body over the parts of an axis, carrying values from one part to the next.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "inputs...", outputs = "outputs...")]
pub struct TensorIterator {
    /// The sub-graph of one iteration.
    pub body: Body,
}

impl Op for TensorIterator {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        if cx.exact() {
            leave_outputs_open(cx, self.body.outputs.len());
            return Ok(());
        }
        check_ports(&self.body, cx.n_inputs())?;
        let count = self.count(|outer, s| {
            let Some(rank) = cx.rank(outer) else { return Ok(None) };
            Ok(cx.dim(outer, normalize_axis(s.axis, rank)?).get())
        })?;
        let iterated = infer_iterations(cx, &self.body, |_| Ok(count == Some(1)))?;
        let count = count.map_or(Dim::ANY, Dim::known);
        set_outputs(cx, &self.body, &iterated, count, true)
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        check_ports(&self.body, cx.n_inputs())?;
        let count = self.count(|outer, s| {
            let shape = cx.shape(outer);
            Ok(Some(shape[normalize_axis(s.axis, shape.len())?] as i64))
        })?;
        let count = count.ok_or_else(|| cx.fail("the number of iterations is not known"))?;
        run(cx, &self.body, count, true)
    }
}

impl TensorIterator {
    // `axis_len` gives the length of the sliced axis of an outer input, where known.
    fn count(&self, axis_len: impl Fn(usize, &Slicing) -> Result<Option<i64>>) -> Result<Option<i64>> {
        let mut found: Option<i64> = None;
        let mut open = false;
        for input in &self.body.inputs {
            let (Some(s), Some(outer)) = (&input.slicing, input.outer) else { continue };
            let Some(n) = axis_len(outer, s)? else {
                open = true;
                continue;
            };
            let n = parts::count(s, n)?;
            if let Some(before) = found.filter(|&f| f != n) {
                return Err(carafe_graph::Error::invalid(format!(
                    "sliced inputs need one number of iterations, found {before} and {n}"
                )));
            }
            found = Some(n);
        }
        if found.is_some() || open {
            return Ok(found);
        }
        let joined = self.body.outputs.iter().find_map(|o| o.slicing);
        Ok(Some(match joined {
            Some(s) if s.part_size > 0 => i64::try_from(s.end.abs_diff(s.start)).unwrap_or(i64::MAX) / s.part_size,
            _ => 1,
        }))
    }
}
