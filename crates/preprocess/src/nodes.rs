//! The nodes that preprocessing is made of, for whoever edits a model at another place than its borders.

use carafe_graph::{Model, Result, Use, Value};
use carafe_ops::arithmetic::{Divide, Multiply, Subtract};
use carafe_ops::convert::Convert;
use carafe_ops::indexing::Gather;
use carafe_ops::movement::{Slice, Transpose};
use carafe_tensor::{ElementType, Tensor};

/// Lets these readers read another value.
pub fn redirect(model: &mut Model, readers: &[Use], v: Value) {
    for u in readers {
        model.set_input(u.node, u.input, v);
    }
}

/// Axis `i` of the result is axis `order[i]` of the value.
pub fn transpose(model: &mut Model, name: &str, v: Value, order: &[usize]) -> Result<Value> {
    let order: Vec<i64> = order.iter().map(|&i| i as i64).collect();
    let order = model.constant(&format!("{name}/order"), Tensor::from_slice(&[order.len()], &order)?)?;
    Ok(model.add(name, Transpose, &[v, order])?.into())
}

/// Puts the channels on an axis into the opposite order.
pub fn reverse_channels(model: &mut Model, name: &str, v: Value, axis: usize) -> Result<Value> {
    let Some(channels) = model.fact(v).shape.dim(axis).get() else {
        let mut list = |what: &str, n: i64| -> Result<Value> {
            model.constant(&format!("{name}/{what}"), Tensor::from_slice(&[1], &[n])?)
        };
        let (begin, end) = (list("begin", -1)?, list("end", i64::MIN)?);
        let (step, axis) = (list("step", -1)?, list("axis", axis as i64)?);
        return Ok(model.add(name, Slice, &[v, begin, end, step, axis])?.into());
    };
    let indices: Vec<i64> = (0..channels).rev().collect();
    let indices = model.constant(&format!("{name}/indices"), Tensor::from_slice(&[indices.len()], &indices)?)?;
    let axis = model.constant(&format!("{name}/axis"), Tensor::scalar(axis as i64))?;
    Ok(model.add(name, Gather { batch_dims: 0 }, &[v, indices, axis])?.into())
}

/// Subtracts a constant that broadcasts to the value.
pub fn subtract(model: &mut Model, name: &str, v: Value, mean: Tensor) -> Result<Value> {
    let mean = model.constant(&format!("{name}/values"), mean)?;
    Ok(model.add(name, Subtract::default(), &[v, mean])?.into())
}

/// Divides by a constant that broadcasts to the value.
pub fn divide(model: &mut Model, name: &str, v: Value, scale: Tensor) -> Result<Value> {
    let scale = model.constant(&format!("{name}/values"), scale)?;
    Ok(model.add(name, Divide::default(), &[v, scale])?.into())
}

/// Multiplies by a constant that broadcasts to the value.
pub fn multiply(model: &mut Model, name: &str, v: Value, factor: Tensor) -> Result<Value> {
    let factor = model.constant(&format!("{name}/values"), factor)?;
    Ok(model.add(name, Multiply::default(), &[v, factor])?.into())
}

/// Converts to another element type.
pub fn convert(model: &mut Model, name: &str, v: Value, ty: ElementType) -> Result<Value> {
    Ok(model.add(name, Convert { destination_type: ty }, &[v])?.into())
}

/// One value for each channel as a tensor that broadcasts along their axis.
pub fn along_axis(values: &[f64], ty: ElementType, rank: usize, axis: usize) -> Result<Tensor> {
    let mut shape = vec![1; rank];
    shape[axis] = values.len();
    Ok(Tensor::from_f64(ty, &shape, values)?)
}
