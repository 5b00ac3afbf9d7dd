//! Pools over neighbouring columns.

use super::cx::{columns, size, times};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::pooling::{AvgPool, MaxPool};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("AveragePoolingComponent", 1, average_pooling),
    rule("MaxPoolingComponent", 1, max_pooling),
    rule("MaxpoolingComponent", 1, max_pooling),
];

fn max_pool(n: &mut NodeCx<'_>, x: Value, kernel: &[i64], strides: &[i64]) -> Result<Value> {
    let zeros = vec![0; kernel.len()];
    let op = MaxPool {
        strides: strides.to_vec(),
        dilations: vec![1; kernel.len()],
        pads_begin: zeros.clone(),
        pads_end: zeros,
        kernel: kernel.to_vec(),
        rounding_type: Rounding::Floor,
        auto_pad: PadType::Explicit,
        index_element_type: ElementType::I64,
        axis: 0,
    };
    n.emit(op, &[x])
}

// Patches stand side by side; a pool goes over neighbouring ones and keeps their inside apart.
struct Patches {
    rows: Value,
    count: i64,
    stride: i64,
    size: i64,
    step: i64,
}

fn patches(n: &mut NodeCx<'_>) -> Result<Patches> {
    n.ignore(&["InputDim", "OutputDim"]);
    let x = n.input(0)?;
    let (stride, size) = (size(n, "PoolStride")?, size(n, "PoolSize")?);
    // Old files have no step: pools do not overlap.
    let step: i64 = n.attr("PoolStep", size)?;
    let whole = columns(n, x)?;
    let count = times(n, whole, stride, "columns of the input")?;
    if step < 1 || size > count {
        return Err(n.fail(format!("a pool of {size} patches in steps of {step}, there are {count}")));
    }
    let rows = n.reshape(x, &[0, count, stride])?;
    let rows = n.transpose(rows, &[0, 2, 1])?;
    Ok(Patches { rows, count, stride, size, step })
}

fn flat(n: &mut NodeCx<'_>, p: &Patches, y: Value) -> Result<Outputs> {
    let pools = 1 + (p.count - p.size) / p.step;
    let y = n.transpose(y, &[0, 2, 1])?;
    Ok(n.reshape(y, &[0, pools * p.stride])?.into())
}

fn max_pooling(n: &mut NodeCx<'_>) -> Result<Outputs> {
    if n.opt_attr::<i64>("PoolXSize")?.is_some() {
        return max_pooling_of_three(n);
    }
    let p = patches(n)?;
    let y = max_pool(n, p.rows, &[p.size], &[p.step])?;
    flat(n, &p, y)
}

fn average_pooling(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let p = patches(n)?;
    let op = AvgPool {
        dilations: vec![1],
        strides: vec![p.step],
        pads_begin: vec![0],
        pads_end: vec![0],
        kernel: vec![p.size],
        exclude_pad: true,
        auto_pad: PadType::Explicit,
        rounding_type: Rounding::Floor,
    };
    let y = n.emit(op, &[p.rows])?;
    flat(n, &p, y)
}

// Over x, y and z, the last of which are neighbours.
fn max_pooling_of_three(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (mut dims, mut kernel, mut strides, mut pools) = (vec![0, 1], vec![], vec![], 1);
    for axis in ["X", "Y", "Z"] {
        let dim = size(n, &format!("Input{axis}Dim"))?;
        let (window, step) = (size(n, &format!("Pool{axis}Size"))?, size(n, &format!("Pool{axis}Step"))?);
        if window > dim {
            return Err(n.fail(format!("a pool of {window} along {axis}, which has {dim}")));
        }
        dims.push(dim);
        kernel.push(window);
        strides.push(step);
        pools *= 1 + (dim - window) / step;
    }
    let cube = n.reshape(x, &dims)?;
    let y = max_pool(n, cube, &kernel, &strides)?;
    Ok(n.reshape(y, &[0, pools])?.into())
}
