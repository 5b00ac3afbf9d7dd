//! Shared by the scatter operations: every update element has a target position in the data, and is stored there or
//! joined with what is there. Updates are applied in row-major order, so the last one wins where several meet.

use carafe_graph::{Content, EvalCx, InferCx, Result};
use carafe_tensor::{ElementType, Number, Tensor};

carafe_graph::attr_enum! {
    /// How an update meets the value at its place.
    pub enum Reduction {
        /// Replaces it.
        None = "none",
        /// Sum; `or` for booleans.
        Sum = "sum",
        /// Difference; `xor` for booleans.
        Sub = "sub",
        /// Product; `and` for booleans.
        Prod = "prod",
        /// The smaller one; `and` for booleans.
        Min = "min",
        /// The larger one; `or` for booleans.
        Max = "max",
        /// Mean; integers round down.
        Mean = "mean",
    }
}

/// Output of a scatter: the type of data and updates, the shape of the data.
pub(super) fn infer_output(cx: &mut InferCx<'_>, updates: usize) -> Result<()> {
    let ty = cx.same_type(&[0, updates])?;
    cx.set(0, ty, cx.shape(0).clone());
    Ok(())
}

/// Whether data or updates are partly known values; exact ones are followed by evaluating.
pub(super) fn is_partial(cx: &InferCx<'_>, updates: usize) -> bool {
    !cx.exact() && [0, updates].iter().any(|&i| matches!(cx.fact(i).content, Content::Partial(_)))
}

/// Follows partly known values: each update replaces the element at its target.
pub(super) fn follow(cx: &mut InferCx<'_>, updates: usize, targets: &[usize]) {
    let (Some(mut dims), Some(new)) = (cx.dims_value(0), cx.dims_value(updates)) else {
        return;
    };
    for (&target, &dim) in targets.iter().zip(&new) {
        if let Some(position) = dims.get_mut(target) {
            *position = dim;
        }
    }
    if new.len() == targets.len() {
        cx.set_dims_value(0, dims);
    }
}

/// Stores elements of any type.
pub(super) fn store(cx: &mut EvalCx<'_>, updates: usize, targets: &[usize]) -> Result<()> {
    let mut out: Tensor = cx.input(0).clone();
    for (i, &target) in targets.iter().enumerate() {
        out.copy_elements(target, cx.input(updates), i, 1)?;
    }
    cx.set(0, out)
}

/// Joins numbers and booleans. Without `keep_initial` a target starts from the neutral value instead of the data.
pub(super) fn reduce(
    cx: &mut EvalCx<'_>,
    updates: usize,
    targets: &[usize],
    how: Reduction,
    keep_initial: bool,
) -> Result<()> {
    let ty = cx.ty(0);
    if how == Reduction::None {
        return store(cx, updates, targets);
    }
    let shape = cx.shape(0).to_vec();
    if ty == ElementType::Boolean {
        let out = joined_booleans(&cx.get::<u8>(0)?, &cx.get::<u8>(updates)?, targets, how, keep_initial);
        cx.put(0, &shape, out)
    } else if ty.is_float() {
        let out = joined(&cx.get::<f64>(0)?, &cx.get::<f64>(updates)?, targets, how, keep_initial);
        cx.put(0, &shape, out)
    } else {
        with_number!(ty, T => {
            let out = joined(&cx.get::<T>(0)?, &cx.get::<T>(updates)?, targets, how, keep_initial);
            cx.put(0, &shape, out)
        })
    }
}

fn joined_booleans(data: &[u8], updates: &[u8], targets: &[usize], how: Reduction, keep_initial: bool) -> Vec<u8> {
    let mut out = data.to_vec();
    if !keep_initial {
        let neutral = u8::from(matches!(how, Reduction::Prod | Reduction::Min));
        targets.iter().for_each(|&t| out[t] = neutral);
    }
    for (&target, &u) in targets.iter().zip(updates) {
        let x = &mut out[target];
        match how {
            Reduction::Sum | Reduction::Max => *x |= u,
            Reduction::Prod | Reduction::Min => *x &= u,
            Reduction::Sub => *x ^= u,
            Reduction::None | Reduction::Mean => *x = u,
        }
    }
    out
}

fn joined<T: Number>(data: &[T], updates: &[T], targets: &[usize], how: Reduction, keep_initial: bool) -> Vec<T> {
    let mut out = data.to_vec();
    if !keep_initial {
        let neutral = match how {
            Reduction::Prod => T::one(),
            Reduction::Min => T::highest(),
            Reduction::Max => T::lowest(),
            _ => T::zero(),
        };
        targets.iter().for_each(|&t| out[t] = neutral);
    }
    let mut counts = vec![0i64; if how == Reduction::Mean { data.len() } else { 0 }];
    for (&target, &u) in targets.iter().zip(updates) {
        let x = out[target];
        out[target] = match how {
            Reduction::None => u,
            Reduction::Sum => x.wrapping_add(u),
            Reduction::Sub => x.wrapping_sub(u),
            Reduction::Prod => x.wrapping_mul(u),
            Reduction::Min if u < x => u,
            Reduction::Max if u > x => u,
            Reduction::Min | Reduction::Max => x,
            Reduction::Mean => {
                counts[target] += 1;
                x.wrapping_add(u)
            }
        };
    }
    for (x, &n) in out.iter_mut().zip(&counts).filter(|(_, n)| **n > 0) {
        let n = n + i64::from(keep_initial);
        let floors = !T::IS_FLOAT && T::lowest() < T::zero();
        *x = if floors { T::from_i64(x.to_i64().div_euclid(n)) } else { *x / T::from_i64(n) };
    }
    out
}
