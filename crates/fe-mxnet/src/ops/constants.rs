//! Tensors that are made of settings alone, or of the shape of another. A 0 in a shape stands for a size that MXNet finds from
//! the other side, such as the batch of a begin state: here it is 1, and whoever reads it stretches it.

use super::cx::MxCx;
use super::shapes::repeated;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::shape::{Eye, Range};
use carafe_tensor::{ElementType, Tensor, elements};

/// Ranges of more elements are refused.
const MOST: f64 = 1e9;

pub(super) const RULES: &[StaticRule] = &[
    rule("_arange", 0, arange),
    rule("_contrib_arange_like", 0, arange_like),
    rule("_eye", 0, eye),
    rule("_full", 0, |n| {
        let value = n.float("value", 0.0)?;
        filled(n, value)
    }),
    rule("_linspace", 0, linspace),
    rule("_npi_arange", 0, arange),
    rule("_npi_eye", 0, eye),
    rule("_npi_full_like", 0, |n| {
        let value = n.float("fill_value", 0.0)?;
        like(n, value)
    }),
    rule("_npi_identity", 0, identity),
    rule("_npi_ones", 0, |n| filled(n, 1.0)),
    rule("_npi_zeros", 0, |n| filled(n, 0.0)),
    rule("_ones", 0, |n| filled(n, 1.0)),
    rule("_zeros", 0, |n| filled(n, 0.0)),
    rule("_zeros_without_dtype", 0, |n| filled(n, 0.0)),
    rule("ones_like", 0, |n| like(n, 1.0)),
    rule("zeros_like", 0, |n| like(n, 0.0)),
];

fn filled(n: &mut NodeCx<'_>, value: f64) -> Result<Outputs> {
    let shape = n.ints_of("shape")?;
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    let shape: Vec<i64> = shape.iter().map(|d| if *d < 1 { 1 } else { *d }).collect();
    let value = n.scalar(ty, value)?;
    let sizes: Option<Vec<usize>> = shape.iter().map(|d| usize::try_from(*d).ok()).collect();
    if sizes.as_deref().and_then(elements).is_none() {
        return Err(n.fail(format!("the shape {shape:?} is more than memory holds")));
    }
    let shape = n.i64s(&shape)?;
    Ok(n.stretch(value, shape)?.into())
}

fn like(n: &mut NodeCx<'_>, value: f64) -> Result<Outputs> {
    let x = n.input(0)?;
    let y = match n.dtype("dtype")? {
        Some(ty) => {
            let shape = n.shape_of(x)?;
            let value = n.scalar(ty, value)?;
            n.stretch(value, shape)?
        }
        None => n.filled_like(x, value)?,
    };
    Ok(y.into())
}

// Without a stop the start is it.
fn arange(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (start, stop, step) = (n.float("start", 0.0)?, n.opt_float("stop")?, n.float("step", 1.0)?);
    let repeats = n.int("repeat", 1)?;
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    if n.flag("infer_range", false)? {
        return Err(n.unsupported("attribute `infer_range` leaves the number of elements to other nodes"));
    }
    let (start, stop) = stop.map_or((0.0, start), |stop| (start, stop));
    let count = ((stop - start) / step).ceil();
    if !(0.0..=MOST).contains(&count) || step == 0.0 {
        return Err(n.fail(format!("there are no steps of {step} from {start} to {stop}")));
    }
    let values: Vec<f64> = (0..count as usize).map(|i| start + step * i as f64).collect();
    let y = n.constant(Tensor::from_f64(ty, &[values.len()], &values)?)?;
    Ok(repeated(n, y, repeats, 0)?.into())
}

fn linspace(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (start, stop) = (n.float("start", 0.0)?, n.float("stop", 0.0)?);
    let (num, endpoint) = (n.int("num", 0)?, n.flag("endpoint", true)?);
    n.ignore(&["step", "repeat", "infer_range"]);
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    if !(0..=MOST as i64).contains(&num) {
        return Err(n.fail(format!("attribute `num` is {num}")));
    }
    let parts = if endpoint { (num - 1).max(1) } else { num.max(1) };
    let step = (stop - start) / parts as f64;
    let values: Vec<f64> = (0..num).map(|i| start + step * i as f64).collect();
    Ok(n.constant(Tensor::from_f64(ty, &[values.len()], &values)?)?.into())
}

// As many as an axis has, or as there are elements, in the shape of the data.
fn arange_like(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (start, step, repeats) = (n.float("start", 0.0)?, n.float("step", 1.0)?, n.int("repeat", 1)?);
    let axis = n.opt_int("axis")?;
    let ty = if n.ty(x).is_dynamic() { ElementType::F32 } else { n.ty(x) };
    let count = match axis {
        Some(axis) => n.length(x, axis)?,
        None => n.n_elements(x)?,
    };
    let count = match repeats {
        1 => count,
        r => {
            let (by, up) = (n.i64(r)?, n.i64(r - 1)?);
            let more = n.plus(count, up)?;
            n.over(more, by)?
        }
    };
    let (first, one) = (n.i64(0)?, n.i64(1)?);
    let ticks = n.emit(Range { output_type: ty }, &[first, count, one])?;
    let ticks = if step == 1.0 { ticks } else { n.times_number(ticks, step)? };
    let mut y = if start == 0.0 { ticks } else { n.plus_number(ticks, start)? };
    if repeats != 1 {
        y = repeated(n, y, repeats, 0)?;
        // The last run may be shorter.
        let whole = match axis {
            Some(axis) => n.size(x, axis)?,
            None => {
                let all = n.n_elements(x)?;
                n.reshape(all, &[1])?
            }
        };
        let zero = n.i64s(&[0])?;
        y = n.cut(y, zero, whole, 0)?;
    }
    if axis.is_none() {
        let shape = n.shape_of(x)?;
        y = n.reshaped(y, shape, false)?;
    }
    Ok(y.into())
}

fn eye(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let rows = n.needed_int("N")?;
    let columns = n.opt_int("M")?.filter(|m| *m != 0).unwrap_or(rows);
    let diagonal = n.int("k", 0)?;
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    made_eye(n, rows, columns, diagonal, ty)
}

fn identity(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let shape = n.ints_of("shape")?;
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    let size = shape.first().copied().unwrap_or(1);
    made_eye(n, size, size, 0, ty)
}

fn made_eye(n: &mut NodeCx<'_>, rows: i64, columns: i64, diagonal: i64, ty: ElementType) -> Result<Outputs> {
    let inputs: Vec<Value> = [rows, columns, diagonal].iter().map(|v| n.i64(*v)).collect::<Result<_>>()?;
    Ok(n.emit(Eye { output_type: ty }, &inputs)?.into())
}
