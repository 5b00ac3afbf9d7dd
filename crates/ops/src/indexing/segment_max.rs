//! SegmentMax: the maximum of consecutive rows that share a segment id. Ids rise; a segment no row belongs to is filled,
//! and rows of segments beyond `num_segments` are dropped.

use crate::buffer::filled;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, Number, PartialShape, bf16, f16};

carafe_graph::attr_enum! {
    /// What an empty segment holds.
    pub enum FillMode {
        /// Zero.
        Zero = "zero",
        /// The lowest value of the type.
        Lowest = "lowest",
    }
}

/// Maximum of the rows of each segment.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 16, inputs = "data, segment_ids, num_segments?", own_type)]
pub struct SegmentMax {
    /// What an empty segment holds.
    pub fill_mode: FillMode,
}

impl Op for SegmentMax {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_number(0)?;
        cx.require_integer(1)?;
        cx.require_rank(1, &[1])?;
        cx.require(cx.rank(0) != Some(0), || "data must not be a scalar".to_string())?;
        let (rows, ids) = (cx.dim(0, 0), cx.dim(1, 0));
        cx.require(rows.compatible(ids), || format!("segment_ids must have {rows} entries, found {ids}"))?;
        let values = cx.ints(1);
        if let Some(ids) = &values {
            check_ids(ids).map_err(|m| cx.fail(m))?;
        }
        let segments = if cx.has(2) {
            cx.require_integer(2)?;
            cx.require_rank(2, &[0])?;
            let n = cx.dims_value(2).and_then(|v| v.first().copied()).unwrap_or(Dim::ANY);
            cx.require(n.max().is_none_or(|m| m >= 0), || format!("num_segments must not be negative, found {n}"))?;
            n.clamp_shape()
        } else {
            values.map_or(Dim::ANY, |ids| Dim::known(ids.last().map_or(0, |id| id.saturating_add(1))))
        };
        let shape = match cx.shape(0).dims() {
            Some(dims) => PartialShape::new([segments].into_iter().chain(dims[1..].iter().copied())),
            None => PartialShape::dynamic(),
        };
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (out, ty) = (cx.out_shape(0)?, cx.ty(0));
        if ty.is_float() {
            let empty = if self.fill_mode == FillMode::Zero { 0.0 } else { lowest_float(ty) };
            let maxima = maxima::<f64>(&cx.get(0)?, &cx.ints(1)?, &out, empty)?;
            return cx.put(0, &out, maxima);
        }
        with_number!(ty, T => {
            let lowest = match ty {
                ElementType::I2 => T::from_i64(-2),
                ElementType::I4 => T::from_i64(-8),
                _ => T::lowest(),
            };
            let empty = if self.fill_mode == FillMode::Zero { T::zero() } else { lowest };
            let maxima = maxima::<T>(&cx.get(0)?, &cx.ints(1)?, &out, empty)?;
            cx.put(0, &out, maxima)
        })
    }
}

fn check_ids(ids: &[i64]) -> Result<(), String> {
    if ids.first().is_some_and(|&id| id < 0) {
        return Err(format!("segment ids must not be negative, found {}", ids[0]));
    }
    match ids.windows(2).find(|pair| pair[0] > pair[1]) {
        Some(pair) => Err(format!("segment ids must rise, found {} before {}", pair[0], pair[1])),
        None => Ok(()),
    }
}

fn maxima<T: Number>(data: &[T], ids: &[i64], out: &[usize], empty: T) -> Result<Vec<T>> {
    let mut result = filled(out, empty)?;
    let row: usize = out[1..].iter().product();
    let mut last = None;
    for (i, &id) in ids.iter().enumerate() {
        let Some(segment) = usize::try_from(id).ok().filter(|&s| s < out[0]) else {
            continue;
        };
        let begins = last.replace(segment) != Some(segment);
        for (m, &x) in result[segment * row..][..row].iter_mut().zip(&data[i * row..]) {
            if begins || x > *m {
                *m = x;
            }
        }
    }
    Ok(result)
}

fn lowest_float(ty: ElementType) -> f64 {
    match ty {
        ElementType::F64 => f64::MIN,
        ElementType::F16 => f16::MIN.to_f64(),
        ElementType::Bf16 => bf16::MIN.to_f64(),
        ElementType::F8E4M3 => -448.0,
        ElementType::F8E5M2 | ElementType::F8E5M2Fnuz => -57344.0,
        ElementType::F8E4M3Fnuz => -240.0,
        ElementType::F4E2M1 => -6.0,
        ElementType::Nf4 => -1.0,
        ElementType::F8E8M0 => 0.0,
        _ => f32::MIN as f64,
    }
}
