//! NgramCounts: how often listed sequences of items (words or numbers) occur in each row, also with equal gaps between the
//! items. Single items have no gaps and are counted once.

use crate::buffer::filled;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};
use std::collections::HashMap;

/// Counts of the n-grams of `pool` in `[count]` or `[row, count]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data, pool")]
pub struct NgramCounts {
    /// Where in the pool the sequences of one item begin, those of two items, and so on.
    pub starts: Vec<i64>,
    /// The column each sequence of the pool is counted in.
    pub columns: Vec<i64>,
    /// Shortest sequence that counts.
    pub min_length: i64,
    /// Longest sequence that counts.
    pub max_length: i64,
    /// Largest gap between neighbours.
    pub max_skips: i64,
}

impl NgramCounts {
    fn width(&self) -> i64 {
        self.columns.iter().copied().max().unwrap_or(-1).saturating_add(1)
    }

    // Columns by sequence; `pool` numbers equal items equally.
    fn table<'p>(&self, pool: &'p [i64]) -> Result<HashMap<&'p [i64], usize>> {
        let bad = || carafe_graph::Error::invalid("starts, columns and the pool do not match");
        let mut table = HashMap::new();
        let mut columns = self.columns.iter();
        for (i, &start) in self.starts.iter().enumerate() {
            let end = self.starts.get(i + 1).copied().unwrap_or(pool.len() as i64);
            let (start, end) = (usize::try_from(start).map_err(|_| bad())?, usize::try_from(end).map_err(|_| bad())?);
            let part = pool.get(start..end).ok_or_else(bad)?;
            for gram in part.chunks_exact(i + 1) {
                let column = columns.next().and_then(|&c| usize::try_from(c).ok()).ok_or_else(bad)?;
                table.insert(gram, column);
            }
        }
        Ok(table)
    }
}

impl Op for NgramCounts {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        for i in 0..2 {
            let ty = cx.ty(i);
            cx.require(ty.is_integer() || matches!(ty, ElementType::String | ElementType::Dynamic), || {
                format!("{} must be integers or string, found {ty}", cx.port_name(i))
            })?;
        }
        let (a, b) = (cx.ty(0) == ElementType::String, cx.ty(1) == ElementType::String);
        let open = cx.ty(0).is_dynamic() || cx.ty(1).is_dynamic();
        cx.require(open || a == b, || format!("data and pool must be alike, found {} and {}", cx.ty(0), cx.ty(1)))?;
        cx.require_rank(0, &[1, 2])?;
        cx.require_rank(1, &[1])?;
        let bounds = 1 <= self.min_length && self.min_length <= self.max_length && self.max_skips >= 0;
        cx.require(bounds && self.columns.iter().all(|&c| c >= 0), || {
            "lengths must be 1 or more and in order, skips and columns 0 or more".to_string()
        })?;
        let shape = match cx.rank(0) {
            Some(1) => PartialShape::new([Dim::known(self.width())]),
            Some(_) => PartialShape::new([cx.dim(0, 0), Dim::known(self.width())]),
            None => PartialShape::dynamic(),
        };
        cx.set(0, ElementType::F32, shape);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (data, pool) = numbered(cx)?;
        let table = self.table(&pool)?;
        let shape = cx.out_shape(0)?;
        let rows = if shape.len() == 2 { shape[0] } else { 1 };
        let length = data.len().checked_div(rows).unwrap_or(0);
        let mut counts = filled(&shape, 0.0f32)?;
        let width = usize::try_from(self.width()).unwrap_or(0);
        let longest = usize::try_from(self.max_length).unwrap_or(0).min(self.starts.len()).min(length);
        let shortest = usize::try_from(self.min_length).unwrap_or(1);
        let mut gram = Vec::with_capacity(longest);
        for row in 0..rows {
            let items = &data[row * length..(row + 1) * length];
            for n in shortest..=longest {
                let skips = if n == 1 { 0 } else { usize::try_from(self.max_skips).unwrap_or(0).min(length) };
                for step in 1..=skips + 1 {
                    let span = (n - 1).saturating_mul(step) + 1;
                    for start in 0..(length + 1).saturating_sub(span) {
                        gram.clear();
                        gram.extend(items[start..].iter().step_by(step).take(n));
                        if let Some(column) = table.get(gram.as_slice()) {
                            counts[row * width + column] += 1.0;
                        }
                    }
                }
            }
        }
        cx.put(0, &shape, counts)
    }
}

// Data and pool as numbers; words are numbered by their first position in the pool, others are -1.
fn numbered(cx: &EvalCx<'_>) -> Result<(Vec<i64>, Vec<i64>)> {
    if cx.ty(0) != ElementType::String {
        return Ok((cx.ints(0)?, cx.ints(1)?));
    }
    let pool = cx.input(1).strings()?;
    let mut numbers: HashMap<&str, i64> = HashMap::new();
    let pool: Vec<i64> = pool
        .iter()
        .map(|word| {
            let next = numbers.len() as i64;
            *numbers.entry(word).or_insert(next)
        })
        .collect();
    let data = cx.input(0).strings()?.iter().map(|word| numbers.get(word.as_str()).copied().unwrap_or(-1)).collect();
    Ok((data, pool))
}
