//! Probabilities of the classes of a support vector machine out of those of every pair: the second method of Wu, Lin and
//! Weng. It stops when a row is near enough, so that the loose bound of 0.005 shows in the numbers; all rows run in one loop.

use super::ml::floats;
use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Body, BodyInput, BodyOutput, Model, Result, Value};
use carafe_ops::activation::{Clamp, Sigmoid};
use carafe_ops::control::Loop;
use carafe_ops::movement::Reshape;
use carafe_ops::reduce::ReduceLogicalOr;
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};

const MOST_ROUNDS: i64 = 100;
const MOST_CLASSES: usize = 128;

/// `[batch, class]` from `decisions`, one column for each pair of classes, and the two numbers of each pair's sigmoid.
pub(super) fn coupled(
    n: &mut NodeCx<'_>,
    decisions: Value,
    pairs: &[(usize, usize)],
    classes: usize,
    a: &[f32],
    b: &[f32],
) -> Result<Value> {
    if a.len() < pairs.len() || b.len() < pairs.len() {
        return Err(n.fail(format!(
            "prob_a and prob_b must have {} values, found {} and {}",
            pairs.len(),
            a.len(),
            b.len()
        )));
    }
    if classes > MOST_CLASSES {
        return Err(n.unsupported(format!("probabilities of {classes} classes; {MOST_CLASSES} are the most")));
    }
    let (a, b) = (floats(n, &[pairs.len()], &a[..pairs.len()])?, floats(n, &[pairs.len()], &b[..pairs.len()])?);
    let y = n.times(decisions, a)?;
    let y = n.plus(y, b)?;
    let y = n.times_number(y, -1.0)?;
    let first = n.emit(Sigmoid, &[y])?;
    // Away from 0 and 1.
    let first = n.emit(Clamp { min: 1e-7, max: 1.0 - 1e-7 }, &[first])?;
    let second = n.sub_from(1.0, first)?;

    // r[i][j]: how likely class i is when it is i or j.
    let count = classes * classes;
    let (mut upper, mut lower) = (vec![0.0; pairs.len() * count], vec![0.0; pairs.len() * count]);
    for (p, &(i, j)) in pairs.iter().enumerate() {
        upper[p * count + i * classes + j] = 1.0;
        lower[p * count + j * classes + i] = 1.0;
    }
    let (upper, lower) = (floats(n, &[pairs.len(), count], &upper)?, floats(n, &[pairs.len(), count], &lower)?);
    let (above, below) = (n.product(first, upper, false)?, n.product(second, lower, false)?);
    let r = n.plus(above, below)?;
    let r = n.reshape(r, &[-1, classes as i64, classes as i64])?;
    let turned = n.transpose(r, &[0, 2, 1])?;
    let squares = n.times(r, r)?;
    let diagonal = n.sum_over(squares, &[1], true)?;
    let mut eye = vec![0.0; count];
    eye.iter_mut().step_by(classes + 1).for_each(|v| *v = 1.0);
    let eye = floats(n, &[classes, classes], &eye)?;
    let (diagonal, crossed) = (n.times(eye, diagonal)?, n.times(r, turned)?);
    let q = n.minus(diagonal, crossed)?;

    let batch = n.size(decisions, 0)?;
    let (width, one) = (n.i64s(&[classes as i64])?, n.i64s(&[1])?);
    let shape = n.concat(&[batch, width], 0)?;
    let even = n.scalar(ElementType::F32, 1.0 / classes as f64)?;
    let start = n.stretch(even, shape)?;
    let yes = n.constant(Tensor::from_f64(ElementType::Boolean, &[], &[1.0])?)?;
    let shape = n.concat(&[batch, one], 0)?;
    let going = n.stretch(yes, shape)?;
    let rounds = n.i64(MOST_ROUNDS)?;
    n.emit(Loop { body: round(classes)? }, &[rounds, yes, start, going, q])
}

// One round over all classes. Parameters: probabilities, which rows go on, the matrix.
fn round(classes: usize) -> Result<Body> {
    let mut m = Model::new("round");
    let (rows, width) = (Dim::ANY, Dim::known(classes as i64));
    let p = m.parameter("p", ElementType::F32, PartialShape::new([rows, width]))?;
    let going = m.parameter("going", ElementType::Boolean, PartialShape::new([rows, Dim::known(1)]))?;
    let q = m.parameter("q", ElementType::F32, PartialShape::new([rows, width, width]))?;
    let wide = m.with_axes(p, &[2])?;
    let qp = m.product(q, wide, false)?;
    let mut qp = m.without_axes(qp, &[2])?;
    let weighted = m.times(p, qp)?;
    let mut pqp = m.sum_over(weighted, &[1], true)?;
    let off = m.minus(qp, pqp)?;
    let off = m.abs(off)?;
    let off = m.max_over(off, &[1], true)?;
    let bound = m.number(off, 0.005 / classes as f64)?;
    let far = m.greater_equal(off, bound)?;
    let still = m.and(going, far)?;
    let mut next = p;
    for t in 0..classes {
        let at = t as i64;
        let row = m.part(q, at, at + 1, 1)?;
        let row = m.without_axes(row, &[1])?;
        let (own, of_t) = (m.part(row, at, at + 1, 1)?, m.part(qp, at, at + 1, 1)?);
        let difference = m.minus(pqp, of_t)?;
        let difference = m.over(difference, own)?;
        let mut unit = vec![0.0_f32; classes];
        unit[t] = 1.0;
        let unit = m.fixed(Tensor::from_slice(&[1, classes], &unit)?)?;
        let grown = m.plus_number(difference, 1.0)?;
        let added = m.times(unit, difference)?;
        let sum = m.plus(next, added)?;
        next = m.over(sum, grown)?;
        let (square, twice) = (m.times(difference, own)?, m.times_number(of_t, 2.0)?);
        let change = m.plus(square, twice)?;
        let change = m.times(difference, change)?;
        pqp = m.plus(pqp, change)?;
        pqp = m.over(pqp, grown)?;
        pqp = m.over(pqp, grown)?;
        let step = m.times(row, difference)?;
        let sum = m.plus(qp, step)?;
        qp = m.over(sum, grown)?;
    }
    let next = m.choose(still, next, p)?;
    let axes = m.indices(&[0, 1])?;
    let any = m.put(ReduceLogicalOr { keep_dims: false }, &[still, axes])?;
    let scalar = m.indices(&[])?;
    let any = m.put(Reshape { special_zero: false }, &[any, scalar])?;
    m.result("any", any)?;
    m.result("next", next)?;
    m.result("still", still)?;
    let mut body = Body::new(m);
    body.execution_condition = Some(0);
    for (parameter, back_edge) in [(0, Some(1)), (1, Some(2)), (2, None)] {
        body.inputs.push(BodyInput { outer: Some(parameter + 2), parameter, slicing: None, back_edge });
    }
    body.outputs.push(BodyOutput { outer: 0, result: 1, slicing: None });
    Ok(body)
}
