//! EmbeddingSum: rows of several tables, chosen by ids, added up. Made by devices, not meant for files.

use crate::index::{broadcast_strides, offsets};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Number, PartialShape};

/// The sum of terms: a table with the ids of its rows after it, or rows as they are.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "terms...")]
pub struct EmbeddingSum {
    /// For each term: 1 when it is two inputs, a table `[rows, width]` and ids; 0 when it is rows `[..., width]`.
    pub by_ids: Vec<i64>,
}

impl EmbeddingSum {
    /// The inputs of each term: rows, and ids where it has them.
    pub fn terms(&self) -> impl Iterator<Item = (usize, Option<usize>)> + '_ {
        self.by_ids.iter().scan(0, |next, &by_ids| {
            let at = *next;
            *next += if by_ids == 1 { 2 } else { 1 };
            Some((at, (by_ids == 1).then_some(at + 1)))
        })
    }
}

impl Op for EmbeddingSum {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let wanted = self.terms().last().map_or(0, |(rows, ids)| ids.unwrap_or(rows) + 1);
        cx.require(wanted == cx.n_inputs() && wanted > 0, || {
            format!("attribute `by_ids` wants {wanted} inputs, found {}", cx.n_inputs())
        })?;
        let (mut shape, mut known) = (PartialShape::of(&[]), true);
        for (rows, ids) in self.terms() {
            cx.require_float(rows)?;
            cx.same_type(&[0, rows])?;
            let own = match ids {
                Some(ids) => {
                    cx.require_integer(ids)?;
                    cx.require_rank(rows, &[2])?;
                    let width = cx.shape(rows).dims().map(|d| d[1]);
                    cx.shape(ids).dims().zip(width).map(|(d, w)| PartialShape::new(d.iter().copied().chain([w])))
                }
                None => cx.shape(rows).dims().map(|_| cx.shape(rows).clone()),
            };
            let Some(own) = own else {
                known = false;
                continue;
            };
            let fail = || cx.fail(format!("terms [{shape}] and [{own}] do not broadcast"));
            shape = shape.broadcast(&own).ok_or_else(fail)?;
        }
        cx.set(0, cx.ty(0), if known { shape } else { PartialShape::dynamic() });
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out = cx.out_shape(0)?;
        let Some((&width, lead)) = out.split_last() else { return Err(cx.fail("no rows to add")) };
        let mut sums = vec![0.0; out.iter().product()];
        for (rows, ids) in self.terms() {
            let own = cx.shape(rows).last().copied().unwrap_or(1);
            if own != width {
                return Err(cx.fail(format!("rows must be {width} wide, found {own}")));
            }
            let n = cx.shape(rows).iter().product::<usize>().checked_div(width).unwrap_or(0);
            let (shape, list) = match ids {
                Some(ids) => (cx.shape(ids).to_vec(), Some(cx.ints(ids)?)),
                None => (cx.shape(rows).split_last().map_or(vec![], |(_, lead)| lead.to_vec()), None),
            };
            let positions = offsets(lead, &broadcast_strides(&shape, lead));
            with_float!(cx.ty(rows), T => {
                let table = cx.get::<T>(rows)?;
                for (sums, at) in sums.chunks_mut(width.max(1)).zip(positions) {
                    let row = match &list {
                        Some(list) => {
                            let id = list[at];
                            usize::try_from(if id < 0 { id.saturating_add(n as i64) } else { id }).ok().filter(|&r| r < n)
                        }
                        None => Some(at),
                    };
                    let Some(row) = row else { continue };
                    sums.iter_mut().zip(&table[row * width..]).for_each(|(sum, x)| *sum += x.to_f64());
                }
            });
        }
        cx.put(0, &out, sums)
    }
}
