//! Fully connected layers. Everything from `axis` on is one vector; some converters take axis 1 for granted, Caffe does not.

use super::convolution::positive;
use super::cx::LayerCx;
use super::fillers::{blob_or_filler, blob_or_value, ignore};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::Gather;
use carafe_ops::linear::MatMul;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[rule("Embed", 0, embed), rule("InnerProduct", 0, inner_product)];

fn inner_product(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let outputs = positive(n, "num_output", None)?;
    let transpose: bool = n.attr("transpose", false)?;
    let axis: i64 = n.attr("axis", 1)?;
    n.ignore(&["engine"]);
    let axis = match n.rank(x) {
        Some(rank) => n.axis(axis, rank)?,
        None => usize::try_from(axis).map_err(|_| n.unsupported(format!("axis {axis} needs a bottom of known rank")))?,
    };
    let length = n.shape(x).dims().and_then(|d| d.get(axis..)?.iter().try_fold(1usize, |p, d| p.checked_mul(d.size()?)));
    let length = match length {
        Some(length) => length,
        None => n.blob_tensor(0)?.len() / outputs,
    };
    let shape = if transpose { [length, outputs] } else { [outputs, length] };
    let weights = blob_or_filler(n, 0, &shape, "weight_filler")?;
    let x = match n.rank(x) {
        Some(rank) if rank == axis + 1 => x,
        _ => {
            let mut pattern = vec![0; axis];
            pattern.push(-1);
            n.reshape(x, &pattern)?
        }
    };
    let y = n.emit(MatMul { transpose_a: false, transpose_b: !transpose }, &[x, weights])?;
    Ok(with_bias(n, y, outputs)?.into())
}

fn with_bias(n: &mut NodeCx<'_>, y: Value, outputs: usize) -> Result<Value> {
    let has_bias: bool = n.attr("bias_term", true)?;
    n.takes_blobs(if has_bias { 2 } else { 1 })?;
    if !has_bias {
        ignore(n, "bias_filler");
        return Ok(y);
    }
    let bias = blob_or_value(n, 1, &[outputs], "bias_filler", 0.0)?;
    n.plus(y, bias)
}

// Rows of a table by numbers that are stored as floats.
fn embed(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let outputs = positive(n, "num_output", None)?;
    let rows = positive(n, "input_dim", None)?;
    let weights = blob_or_filler(n, 0, &[rows, outputs], "weight_filler")?;
    let indices = n.convert(x, ElementType::I64)?;
    let axis = n.i64(0)?;
    let y = n.emit(Gather { batch_dims: 0 }, &[weights, indices, axis])?;
    Ok(with_bias(n, y, outputs)?.into())
}
