//! The nodes that preprocessing is made of, for whoever edits a model at another place than its borders.

use carafe_graph::{Model, Result, Use, Value};
use carafe_ops::arithmetic::{Divide, Subtract};
use carafe_ops::convert::Convert;
use carafe_ops::indexing::Gather;
use carafe_ops::movement::Transpose;
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

/// Swaps the first and the last of three channels on an axis.
pub fn reverse_channels(model: &mut Model, name: &str, v: Value, axis: usize) -> Result<Value> {
    let indices = model.constant(&format!("{name}/indices"), Tensor::from_slice(&[3], &[2i64, 1, 0])?)?;
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
