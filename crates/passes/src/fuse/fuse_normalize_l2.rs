//! Division by the Euclidean norm becomes NormalizeL2:
//!
//! ```text
//! x / Sqrt(ReduceSum(x^2) + eps)            ->  NormalizeL2(x) {eps, add}
//! x / Sqrt(Maximum(ReduceSum(x^2), eps))    ->  NormalizeL2(x) {eps, max}
//! x / Maximum(ReduceL2(x), e)               ->  NormalizeL2(x) {e^2, max}
//! x / Clamp(ReduceL2(x), e, ..)             ->  NormalizeL2(x) {e^2, max}
//! ```

use super::look::{fuse, integers, is_float, made_by, read_outside, value_of};
use super::parts::{before_stretch, plus_number, quotient, reduced, root_of, square_of};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::activation::Clamp;
use carafe_ops::arithmetic::Maximum;
use carafe_ops::normalization::NormalizeL2;
use carafe_ops::normalization::normalize_l2::EpsMode;
use carafe_ops::reduce::{ReduceL2, ReduceSum};

/// Division by the Euclidean norm becomes NormalizeL2.
#[derive(Clone, Copy, Debug)]
pub struct FuseNormalizeL2;

struct Norm {
    x: Value,
    axes: Vec<i64>,
    eps: f64,
    eps_mode: EpsMode,
}

impl Rewrite for FuseNormalizeL2 {
    fn name(&self) -> &'static str {
        "fuse_normalize_l2"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some(Norm { x, axes, eps, eps_mode }) = find(model, root) else { return Ok(Outcome::NoMatch) };
        let eps = eps as f32;
        if !(eps.is_normal() && eps > 0.0) {
            return Ok(Outcome::skip(format!("NormalizeL2 needs a number above 0 beside the sum, found {eps}")));
        }
        if let Some(skip) = read_outside(model, root, &[x]) {
            return Ok(skip);
        }
        let axes = integers(model, root, "axes", &axes)?;
        fuse(model, root, &[x], NormalizeL2 { eps, eps_mode }, &[x, axes])
    }
}

fn find(model: &Model, root: NodeId) -> Option<Norm> {
    let (x, below) = quotient(model, root)?;
    let below = before_stretch(model, below, x);
    let (axes, eps, eps_mode) = of_sum(model, below, x).or_else(|| of_norm(model, below, x))?;
    is_float(model, x).then_some(Norm { x, axes, eps, eps_mode })
}

fn of_sum(model: &Model, below: Value, x: Value) -> Option<(Vec<i64>, f64, EpsMode)> {
    let radicand = root_of(model, below)?;
    let (sum, eps, mode) = match (plus_number(model, radicand), at_least(model, radicand)) {
        (Some((sum, eps)), _) => (sum, eps, EpsMode::Add),
        (_, Some((sum, eps))) => (sum, eps, EpsMode::Max),
        _ => (radicand, 0.0, EpsMode::Add),
    };
    let (squares, axes) = reduced::<ReduceSum>(model, sum, |r| r.keep_dims)?;
    (square_of(model, squares)? == x).then_some((axes, eps, mode))
}

fn of_norm(model: &Model, below: Value, x: Value) -> Option<(Vec<i64>, f64, EpsMode)> {
    let (norm, eps) = at_least(model, below).unwrap_or((below, 0.0));
    if let Some((data, axes)) = reduced::<ReduceL2>(model, norm, |r| r.keep_dims) {
        return (data == x && eps >= 0.0).then_some((axes, eps * eps, EpsMode::Max));
    }
    let (squares, axes) = reduced::<ReduceSum>(model, root_of(model, norm)?, |r| r.keep_dims)?;
    (square_of(model, squares)? == x && eps >= 0.0).then_some((axes, eps * eps, EpsMode::Max))
}

// A value and the number it does not fall below.
fn at_least(model: &Model, v: Value) -> Option<(Value, f64)> {
    if let Some((id, clamp)) = model.producer::<Clamp>(v) {
        let unlimited = clamp.max >= if model.fact(v).ty.bits() == 16 { 65504.0 } else { f64::from(f32::MAX) };
        return unlimited.then_some((model.input(id, 0)?, clamp.min));
    }
    let &[a, b] = made_by::<Maximum>(model, v)? else { return None };
    let with = |a: Value, n: Value| value_of(model, n, a).map(|n| (a, n));
    with(a, b).or_else(|| with(b, a))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fires, fires_static, stays};
    use super::*;
    use carafe_ops::arithmetic::{Add, Divide, Multiply, Power};
    use carafe_ops::math::Sqrt;
    use carafe_ops::movement::Broadcast;
    use carafe_ops::movement::broadcast::BroadcastMode;
    use carafe_ops::shape::ShapeOf;

    #[test]
    fn the_spellings() {
        for spelling in 0..5 {
            fires(&FuseNormalizeL2, "NormalizeL2", |g| {
                let x = g.input(&[2, 3, 4]);
                let (axes, eps) = (g.ints(&[1]), g.c(1e-2));
                if spelling >= 3 {
                    let norm = g.op(ReduceL2 { keep_dims: true }, &[x, axes]);
                    let norm = match spelling {
                        3 => g.op(Maximum::default(), &[eps, norm]),
                        _ => g.op(Clamp { min: 1e-2, max: f64::INFINITY }, &[norm]),
                    };
                    return g.op(Divide::default(), &[x, norm]);
                }
                let squares = g.op(Multiply::default(), &[x, x]);
                let sum = g.op(ReduceSum { keep_dims: true }, &[squares, axes]);
                let sum = match spelling {
                    1 => g.op(Maximum::default(), &[sum, eps]),
                    _ => g.op(Add::default(), &[sum, eps]),
                };
                let root = g.op(Sqrt, &[sum]);
                if spelling == 2 {
                    let n = g.c(-1.0);
                    let inverse = g.op(Power::default(), &[root, n]);
                    return g.op(Multiply::default(), &[inverse, x]);
                }
                g.op(Divide::default(), &[x, root])
            });
        }
    }

    #[test]
    fn a_norm_stretched_to_the_data() {
        fires_static(&FuseNormalizeL2, "NormalizeL2", |g| {
            let x = g.input(&[2, 3, 4]);
            let (axes, eps) = (g.ints(&[-1]), g.c(1e-2));
            let norm = g.op(ReduceL2 { keep_dims: true }, &[x, axes]);
            let norm = g.op(Maximum::default(), &[eps, norm]);
            let shape = g.op(ShapeOf { output_type: carafe_tensor::ElementType::I64 }, &[x]);
            let norm = g.op(Broadcast { mode: BroadcastMode::Bidirectional }, &[norm, shape]);
            g.op(Divide::default(), &[x, norm])
        });
    }

    #[test]
    fn norms_without_a_small_number_and_norms_of_others_stay() {
        stays(&FuseNormalizeL2, "needs a number above 0", |g| {
            let x = g.input(&[2, 3]);
            let axes = g.ints(&[1]);
            let norm = g.op(ReduceL2 { keep_dims: true }, &[x, axes]);
            g.op(Divide::default(), &[x, norm])
        });
        stays(&FuseNormalizeL2, "", |g| {
            let (x, z) = (g.input(&[2, 3]), g.input(&[2, 3]));
            let (axes, eps) = (g.ints(&[1]), g.c(1e-2));
            let norm = g.op(ReduceL2 { keep_dims: true }, &[z, axes]);
            let norm = g.op(Maximum::default(), &[eps, norm]);
            g.op(Divide::default(), &[x, norm])
        });
        stays(&FuseNormalizeL2, "has another user", |g| {
            let x = g.input(&[2, 3]);
            let (axes, eps) = (g.ints(&[1]), g.c(1e-2));
            let norm = g.op(ReduceL2 { keep_dims: true }, &[x, axes]);
            let norm = g.op(Maximum::default(), &[eps, norm]);
            let y = g.op(Divide::default(), &[x, norm]);
            g.op(Multiply::default(), &[y, norm])
        });
    }
}
