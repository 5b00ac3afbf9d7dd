//! Attention over a window of frames.

use super::cx::size;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::activation::Softmax;

pub(crate) const RULES: &[StaticRule] = &[rule("RestrictedAttentionComponent", 1, attention)];

// Each head has keys, values and a query whose last columns are added to the scores of the frames.
fn attention(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["TimeStride", "NumLeftInputsRequired", "NumRightInputsRequired"]);
    let x = n.input(0)?;
    let (heads, key, value) = (size(n, "NumHeads")?, size(n, "KeyDim")?, size(n, "ValueDim")?);
    let (left, right): (i64, i64) = (n.required("NumLeftInputs")?, n.required("NumRightInputs")?);
    let frames = left + 1 + right;
    let each = key + value + key + frames;
    let x = n.reshape(x, &[0, frames, heads, each])?;
    let x = n.transpose(x, &[0, 2, 1, 3])?;
    let keys = n.part(x, 0, key, 3)?;
    let values = n.part(x, key, key + value, 3)?;
    let own = n.part(x, left, left + 1, 2)?;
    let query = n.part(own, key + value, key + value + key, 3)?;
    let positions = n.part(own, key + value + key, each, 3)?;
    let scores = n.product(query, keys, true)?;
    let scale: f64 = n.required("KeyScale")?;
    let scores = n.times_number(scores, scale)?;
    let scores = n.plus(scores, positions)?;
    let shares = n.emit(Softmax { axis: 3 }, &[scores])?;
    let mut y = n.product(shares, values, false)?;
    let mut dim = value;
    if n.attr("OutputContext", true)? {
        y = n.concat(&[y, shares], 3)?;
        dim += frames;
    }
    Ok(n.reshape(y, &[0, heads * dim])?.into())
}
