//! LSTM and RNN of Caffe: a TensorIterator over time, since the second bottom (`cont`) may end a sequence and begin the next
//! at any step by wiping the state. Gates are stored as i, f, o, g and turned into the order of the IR. An input that stays the
//! same at all times is joined with that of each step.

use super::cx::LayerCx;
use super::fillers::ignore;
use super::numbers::{dim, dims};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Body, BodyInput, BodyOutput, Model, Op, Result, Slicing, Value};
use carafe_ops::arithmetic::{Add, Multiply};
use carafe_ops::control::TensorIterator;
use carafe_ops::linear::MatMul;
use carafe_ops::math::Tanh;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::{Broadcast, Squeeze, Unsqueeze};
use carafe_ops::recurrent::{LstmCell, RnnCell};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};

pub(crate) const RULES: &[StaticRule] = &[rule("LSTM", 0, |n| recurrent(n, true)), rule("RNN", 0, |n| recurrent(n, false))];

/// What one step needs of the stored blobs.
struct Weights {
    /// Of the input, with that of the still input beside it.
    w: Tensor,
    r: Tensor,
    b: Tensor,
    /// Of the outputs of an RNN.
    out: Option<(Tensor, Tensor)>,
}

fn recurrent(n: &mut NodeCx<'_>, is_lstm: bool) -> Result<Outputs> {
    let hidden: i64 = n.required("num_output")?;
    let exposed: bool = n.attr("expose_hidden", false)?;
    n.ignore(&["debug_info"]);
    ignore(n, "weight_filler");
    ignore(n, "bias_filler");
    let hidden = usize::try_from(hidden).ok().filter(|h| (1..=1 << 24).contains(h));
    let hidden = hidden.ok_or_else(|| n.fail("`num_output` must be at least 1"))?;
    let n_states = if is_lstm { 2 } else { 1 };
    let mut bottoms = n.bottoms()?;
    let least = if exposed { 2 + n_states } else { 2 };
    if bottoms.len() != least && bottoms.len() != least + 1 {
        return Err(n.fail(format!("takes {least} or {} bottoms, has {}", least + 1, bottoms.len())));
    }
    let starts = bottoms.split_off(bottoms.len() - if exposed { n_states } else { 0 });
    let (x, cont) = (bottoms[0], bottoms[1]);
    let still = bottoms.get(2).copied();

    // [time, batch, everything else]
    let mut x = n.reshape(x, &[0, 0, -1])?;
    let Some(own) = dim(n, x, 2) else {
        return Err(n.unsupported("the features of a recurrent layer must be known"));
    };
    let batch = dims(n, x, &[1])?;
    let mut wide = 0;
    if let Some(still) = still {
        let still = n.reshape(still, &[0, -1])?;
        let still = n.unsqueeze(still, &[0])?;
        wide = dim(n, still, 2).ok_or_else(|| n.unsupported("the features of the still input must be known"))?;
        let (steps, features) = (dims(n, x, &[0])?, n.i64s(&[wide])?);
        let shape = n.concat(&[steps, batch, features], 0)?;
        let still = n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[still, shape])?;
        x = n.concat(&[x, still], 2)?;
    }
    let cont = n.reshape(cont, &[0, 0, 1])?;
    let weights = Weights::read(n, is_lstm, hidden, own as usize, wide as usize)?;
    let mut states = vec![];
    for slot in 0..n_states {
        states.push(match starts.get(slot) {
            Some(&state) => n.reshape(state, &[-1, hidden as i64])?,
            None => {
                let (zero, hidden) = (n.scalar(ElementType::F32, 0.0)?, n.i64s(&[hidden as i64])?);
                let shape = n.concat(&[batch, hidden], 0)?;
                n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[zero, shape])?
            }
        });
    }
    let body = body(&weights, is_lstm, [own + wide, hidden as i64])?;
    let inputs = [&[x, cont], &states[..]].concat();
    let found = n.emit_all(TensorIterator { body }, &inputs)?;
    let mut tops = vec![found[0]];
    for &state in found[1..].iter().filter(|_| exposed) {
        tops.push(n.unsqueeze(state, &[0])?);
    }
    tops.truncate(n.n_outputs().max(1));
    Ok(tops.into())
}

impl Weights {
    fn read(n: &mut NodeCx<'_>, is_lstm: bool, hidden: usize, own: usize, wide: usize) -> Result<Weights> {
        n.takes_blobs(if is_lstm { 3 } else { 5 } + usize::from(wide > 0))?;
        let gates = if is_lstm { 4 } else { 1 };
        let rows = gates * hidden;
        let mut at = 0;
        let mut next = |n: &mut NodeCx<'_>, shape: &[usize]| -> Result<Vec<f32>> {
            let v = n.blob(at, shape)?;
            at += 1;
            let values = n.tensor(v).map(|t| t.to_vec::<f32>().map(|v| v.into_owned())).transpose()?;
            values.ok_or_else(|| n.fail("the weights are no constant"))
        };
        let w = next(n, &[rows, own])?;
        let b = next(n, &[rows])?;
        let beside = if wide > 0 { next(n, &[rows, wide])? } else { vec![] };
        let r = next(n, &[rows, hidden])?;
        let out = match is_lstm {
            true => None,
            false => {
                let (w, b) = (next(n, &[hidden, hidden])?, next(n, &[hidden])?);
                Some((Tensor::from_slice(&[hidden, hidden], &w)?, Tensor::from_slice(&[1, hidden], &b)?))
            }
        };
        let joined: Vec<f32> = (0..rows)
            .flat_map(|row| [&w[row * own..(row + 1) * own], &beside[row * wide..(row + 1) * wide]].concat())
            .collect();
        // i, f, o, g to f, i, g, o.
        let order: &[usize] = if is_lstm { &[1, 0, 3, 2] } else { &[0] };
        let turned = |values: &[f32]| -> Vec<f32> {
            let block = values.len() / gates;
            order.iter().flat_map(|g| values[g * block..(g + 1) * block].to_vec()).collect()
        };
        Ok(Weights {
            w: Tensor::from_slice(&[rows, own + wide], &turned(&joined))?,
            r: Tensor::from_slice(&[rows, hidden], &turned(&r))?,
            b: Tensor::from_slice(&[rows], &turned(&b))?,
            out,
        })
    }
}

// One step: parameters are the input, `cont` and the states; results the output and the states.
fn body(weights: &Weights, is_lstm: bool, [input, hidden]: [i64; 2]) -> Result<Body> {
    let mut m = Model::new("step");
    let batch = Dim::ANY;
    let shape = |dims: &[Dim]| PartialShape::new(dims.iter().copied());
    let (one, input) = (Dim::known(1), Dim::known(input));
    let x = m.parameter("x", ElementType::F32, shape(&[one, batch, input]))?;
    let cont = m.parameter("cont", ElementType::F32, shape(&[one, batch, one]))?;
    let x = squeeze(&mut m, x)?;
    let cont = squeeze(&mut m, cont)?;
    let n_states = if is_lstm { 2 } else { 1 };
    let mut cell = vec![x];
    for slot in 0..n_states {
        let state = m.parameter(&format!("state_{slot}"), ElementType::F32, shape(&[batch, Dim::known(hidden)]))?;
        cell.push(put(&mut m, Multiply::default(), &[cont, state])?[0]);
    }
    for (name, tensor) in [("w", &weights.w), ("r", &weights.r), ("b", &weights.b)] {
        cell.push(m.constant(name, tensor.clone())?);
    }
    let (activations_alpha, activations_beta, clip) = (vec![], vec![], 0.0);
    let hidden_size = hidden as u64;
    let names = |all: &[&str]| all.iter().map(|a| a.to_string()).collect::<Vec<_>>();
    let next = if is_lstm {
        let activations = names(&["sigmoid", "tanh", "tanh"]);
        put(&mut m, LstmCell { hidden_size, activations, activations_alpha, activations_beta, clip }, &cell)?
    } else {
        let activations = names(&["tanh"]);
        put(&mut m, RnnCell { hidden_size, activations, activations_alpha, activations_beta, clip }, &cell)?
    };
    let mut y = next[0];
    if let Some((w, b)) = &weights.out {
        let (w, b) = (m.constant("out_w", w.clone())?, m.constant("out_b", b.clone())?);
        y = put(&mut m, MatMul { transpose_a: false, transpose_b: true }, &[y, w])?[0];
        y = put(&mut m, Add::default(), &[y, b])?[0];
        y = put(&mut m, Tanh, &[y])?[0];
    }
    let axis = m.constant("axis", Tensor::from_slice(&[1], &[0i64])?)?;
    let y = put(&mut m, Unsqueeze, &[y, axis])?[0];
    m.result("y", y)?;
    for (slot, &state) in next.iter().take(n_states).enumerate() {
        m.result(&format!("state_{slot}/next"), state)?;
    }
    let mut body = Body::new(m);
    for p in 0..2 + n_states {
        let slicing = (p < 2).then(|| Slicing::along(0));
        let back_edge = p.checked_sub(1).filter(|r| *r > 0);
        body.inputs.push(BodyInput { outer: Some(p), parameter: p, slicing, back_edge });
    }
    for r in 0..=n_states {
        body.outputs.push(BodyOutput { outer: r, result: r, slicing: (r == 0).then(|| Slicing::along(0)) });
    }
    Ok(body)
}

fn put<O: Op>(m: &mut Model, op: O, inputs: &[Value]) -> Result<Vec<Value>> {
    let name = format!("{}_{}", op.info().name, m.slots());
    let node = m.add(name, op, inputs)?;
    Ok((0..m.node(node).outputs().len()).map(|port| Value { node, port }).collect())
}

fn squeeze(m: &mut Model, v: Value) -> Result<Value> {
    let name = format!("axis_{}", m.slots());
    let axis = m.constant(&name, Tensor::from_slice(&[1], &[0i64])?)?;
    Ok(put(m, Squeeze { allow_axis_skip: false }, &[v, axis])?[0])
}
