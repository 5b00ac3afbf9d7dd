//! Runs cells: once, or over time. A row of the batch ends at its own length: later outputs are 0, and the last state is
//! that of its last step. A row of length 0 has states of 0, whatever it started with.

use super::Direction;
use super::cell::{Cell, Kind};
use crate::buffer::filled;
use carafe_graph::{EvalCx, Result};
use std::borrow::Cow;

/// Evaluates inputs X, the states, W, R, B?. `attention` and `peepholes` are the inputs that hold them.
pub(super) fn eval_cell(
    cx: &mut EvalCx<'_>,
    kind: Kind,
    clip: f32,
    attention: Option<usize>,
    peepholes: Option<usize>,
) -> Result<()> {
    let states = kind.states();
    let (batch, input) = (cx.shape(0)[0], cx.shape(0)[1]);
    let hidden = cx.shape(1)[1];
    let read = |i: usize| cx.get::<f64>(i);
    let (x, w, r) = (read(0)?, read(states + 1)?, read(states + 2)?);
    let b = if cx.has(states + 3) { Some(read(states + 3)?) } else { None };
    let p = peepholes.filter(|&i| cx.has(i)).map(read).transpose()?;
    let a = attention.map(read).transpose()?;
    let mut h = read(1)?.into_owned();
    let mut c = if states == 2 { read(2)?.into_owned() } else { vec![0.0; h.len()] };
    let cell = Cell { kind, hidden, input, clip: clip as f64, w: &w, r: &r, b: b.as_deref(), p: p.as_deref() };
    for n in 0..if h.is_empty() { 0 } else { batch } {
        let at = n * hidden..(n + 1) * hidden;
        let scale = a.as_ref().map(|a| a[n]);
        cell.step(&x[n * input..(n + 1) * input], &mut h[at.clone()], &mut c[at], scale);
    }
    drop((x, w, r, b, p, a));
    cx.put(0, &[batch, hidden], h)?;
    if states == 2 {
        cx.put(1, &[batch, hidden], c)?;
    }
    Ok(())
}

/// Evaluates inputs X, the states, seq_lengths, W, R, B, and `attention` where there is one.
pub(super) fn eval_sequence(
    cx: &mut EvalCx<'_>,
    kind: Kind,
    clip: f32,
    direction: Direction,
    attention: Option<usize>,
) -> Result<()> {
    let states = kind.states();
    let [batch, time, input] = [0, 1, 2].map(|i| cx.shape(0)[i]);
    let (directions, hidden) = (cx.shape(1)[1], cx.shape(1)[2]);
    let lengths = lengths(cx, states + 1, time)?;
    let (mut y, mut last_h, mut last_c);
    {
        let read = |i: usize| -> Result<Cow<'_, [f64]>> { cx.get::<f64>(i) };
        let (x, w, r, b) = (read(0)?, read(states + 2)?, read(states + 3)?, read(states + 4)?);
        let a = attention.map(read).transpose()?;
        last_h = read(1)?.into_owned();
        last_c = if states == 2 { read(2)?.into_owned() } else { vec![0.0; last_h.len()] };
        y = filled(&[batch, directions, time, hidden], 0.0)?;
        for d in 0..directions {
            let rows = kind.gates() * hidden;
            let cell = Cell {
                kind,
                hidden,
                input,
                clip: clip as f64,
                w: &w[d * rows * input..][..rows * input],
                r: &r[d * rows * hidden..][..rows * hidden],
                b: Some(&b[d * kind.bias_blocks() * hidden..][..kind.bias_blocks() * hidden]),
                p: None,
            };
            let backwards = direction == Direction::Reverse || d == 1;
            for (n, &length) in lengths.iter().enumerate() {
                let at = (n * directions + d) * hidden;
                let (h, c) = (&mut last_h[at..at + hidden], &mut last_c[at..at + hidden]);
                if length == 0 {
                    h.fill(0.0);
                    c.fill(0.0);
                }
                for step in 0..length {
                    let t = if backwards { length - 1 - step } else { step };
                    let scale = a.as_ref().map(|a| a[n * time + t]);
                    cell.step(&x[(n * time + t) * input..][..input], h, c, scale);
                    y[((n * directions + d) * time + t) * hidden..][..hidden].copy_from_slice(h);
                }
            }
        }
    }
    cx.put(0, &[batch, directions, time, hidden], y)?;
    cx.put(1, &[batch, directions, hidden], last_h)?;
    if states == 2 {
        cx.put(2, &[batch, directions, hidden], last_c)?;
    }
    Ok(())
}

fn lengths(cx: &EvalCx<'_>, input: usize, time: usize) -> Result<Vec<usize>> {
    cx.ints(input)?
        .iter()
        .map(|&n| match usize::try_from(n) {
            Ok(n) if n <= time => Ok(n),
            _ => Err(cx.fail(format!("sequence length {n} is not within 0..{time}"))),
        })
        .collect()
}
