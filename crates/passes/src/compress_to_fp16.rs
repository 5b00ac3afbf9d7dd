//! Stores f32 and f64 constants as f16 with a `decompression` Convert behind them, the way OpenVINO's save does. A constant
//! keeps its type when too much would be lost, or when it takes part in computing a shape.

use carafe_graph::{Constant, Model, NodeId, Notes, Pass, Result, Value};
use carafe_ops::convert::Convert;
use carafe_tensor::{ElementType, Tensor, f16};
use half::slice::HalfFloatSliceExt;
use std::collections::HashSet;
use std::sync::Arc;

/// Share of spoiled elements from which a constant is kept.
const KEPT_FROM: f64 = 0.75;

/// Stores float constants as f16.
#[derive(Clone, Copy, Debug)]
pub struct CompressToFp16;

impl Pass for CompressToFp16 {
    fn name(&self) -> &'static str {
        "compress_to_fp16"
    }
    fn run(&self, model: &mut Model, notes: &mut Notes) -> Result<usize> {
        if let Some(reason) = already_quantized(model) {
            notes.add(|| format!("compress_to_fp16: nothing done, {reason}"));
            return Ok(0);
        }
        compress(model, notes)
    }
}

fn compress(model: &mut Model, notes: &mut Notes) -> Result<usize> {
    let mut done = compress_bodies(model, notes)?;
    let kept = shape_constants(model);
    for id in model.topological_order()? {
        let node = model.node(id);
        let Some(tensor) = node.op().get::<Constant>().map(|c| c.tensor().clone()) else { continue };
        let ty = tensor.element_type();
        if !matches!(ty, ElementType::F32 | ElementType::F64) || kept.contains(&id) || node.rt_info.has("precise") {
            continue;
        }
        match to_f16(&tensor)? {
            Ok(small) => {
                replace(model, id, small, ty)?;
                done += 1;
            }
            Err(why) => notes.add(|| format!("compress_to_fp16: {} stays {ty}, {why}", model.node(id).location())),
        }
    }
    Ok(done)
}

fn compress_bodies(model: &mut Model, notes: &mut Notes) -> Result<usize> {
    let with_bodies: Vec<NodeId> = model.nodes().filter(|(_, n)| n.op().has_body()).map(|(id, _)| id).collect();
    let mut done = 0;
    for id in with_bodies {
        let mut op = model.node(id).op().clone_op();
        for (_, body) in op.bodies_mut() {
            done += compress(&mut body.model, notes)?;
        }
        model.set_op(id, Arc::from(op))?;
    }
    Ok(done)
}

// Const(X) becomes Const(X_compressed) -> Convert(X): the Convert takes the name, for it gives the old value.
fn replace(model: &mut Model, id: NodeId, small: Tensor, ty: ElementType) -> Result<()> {
    let name = model.node(id).name().to_string();
    let stored = model.constant(&format!("{name}_compressed"), small)?;
    let widened = model.add(&name, Convert { destination_type: ty }, &[stored])?;
    let old_info = model.node(id).rt_info.clone();
    *model.rt_info_mut(widened) = old_info;
    model.rt_info_mut(widened).mark("decompression");
    model.replace_value(id.into(), widened.into());
    model.remove(id)
}

// The f16 form, or why the constant must stay.
fn to_f16(tensor: &Tensor) -> Result<std::result::Result<Tensor, String>> {
    let mut small = vec![f16::ZERO; tensor.len()];
    let allowed = if tensor.len() == 1 { 1e-4 } else { 1e-3 };
    // The bytes may lie anywhere in a mapped file: no aligned copy of them is wanted here.
    let bytes = tensor.bytes();
    let done = match tensor.element_type() {
        ElementType::F32 => narrow(bytes.as_chunks().0, |b| f64::from(f32::from_le_bytes(*b)), allowed, &mut small),
        _ => narrow(bytes.as_chunks().0, |b| f64::from_le_bytes(*b), allowed, &mut small),
    };
    tensor.release();
    let spoiled = match done {
        Ok(n) => n,
        Err(why) => return Ok(Err(why)),
    };
    if spoiled > 0 && spoiled as f64 >= KEPT_FROM * small.len() as f64 {
        return Ok(Err(format!("{spoiled} of {} elements do not fit", small.len())));
    }
    Ok(Ok(Tensor::from_vec(tensor.shape(), small)?))
}

// Rounds a block at a time, so that the loops over a block run in vector registers; counts the elements that lose too much.
fn narrow<const SIZE: usize>(
    values: &[[u8; SIZE]],
    value: impl Fn(&[u8; SIZE]) -> f64,
    allowed: f64,
    small: &mut [f16],
) -> std::result::Result<usize, String> {
    const BLOCK: usize = 1024;
    let (max, smallest) = (f64::from(f16::MAX), f64::from(f16::from_bits(1)));
    let (mut exact, mut narrowed, mut widened) = ([0f64; BLOCK], [0f32; BLOCK], [0f32; BLOCK]);
    let mut spoiled = 0;
    for (block, values) in small.chunks_mut(BLOCK).zip(values.chunks(BLOCK)) {
        let n = block.len();
        for (to, x) in exact.iter_mut().zip(values) {
            *to = value(x);
        }
        for (to, x) in narrowed.iter_mut().zip(&exact[..n]) {
            *to = x.clamp(-max, max) as f32;
        }
        block.convert_from_f32_slice(&narrowed[..n]);
        block.convert_to_f32_slice(&mut widened[..n]);
        let (mut far, mut lost) = (false, 0);
        for (&x, &y) in exact[..n].iter().zip(&widened[..n]) {
            let (size, error) = (x.abs(), (x - f64::from(y)).abs());
            let inside = size <= max;
            far |= inside & (error > 1.0);
            lost += usize::from((size > max) | (size != 0.0) & ((size < smallest) | inside & (error > allowed * size)));
        }
        if far {
            let mut pairs = exact[..n].iter().zip(&widened[..n]);
            let (x, y) = pairs.find(|(x, y)| x.abs() <= max && (*x - f64::from(**y)).abs() > 1.0).unwrap_or((&0., &0.));
            return Err(format!("{x} would become {y}"));
        }
        spoiled += lost;
    }
    Ok(spoiled)
}

fn already_quantized(model: &Model) -> Option<String> {
    model.nodes().find_map(|(_, n)| {
        let small_weights = n.op().is::<Convert>()
            && n.inputs().first().is_some_and(|v| {
                let ty = model.fact(*v).ty;
                model.node(v.node).op().is::<Constant>()
                    && (ty.is_sub_byte()
                        || matches!(ty, ElementType::I8 | ElementType::U8)
                        || (ty.is_float() && ty.bits() == 8 && ty != ElementType::F8E8M0))
                    && n.outputs()[0].fact.ty.is_float()
            });
        let found = n.op().info().quantizes || small_weights;
        found.then(|| format!("the model has quantized weights already ({})", n.location()))
    })
}

// Constants on any path into a shape input, up to the ShapeOf that ends it.
fn shape_constants(model: &Model) -> HashSet<NodeId> {
    let mut stack: Vec<Value> = Vec::new();
    for (_, node) in model.nodes() {
        stack.extend(node.op().info().shape_inputs.iter().filter_map(|&p| node.inputs().get(p)));
    }
    let (mut seen, mut found) = (HashSet::new(), HashSet::new());
    while let Some(v) = stack.pop() {
        if !seen.insert(v.node) {
            continue;
        }
        let node = model.node(v.node);
        if node.op().is::<Constant>() {
            found.insert(v.node);
        } else if !node.op().info().shape_only {
            stack.extend(node.inputs());
        }
    }
    found
}
