//! CTCLoss: negative log likelihood of label sequences under logits that are not yet normalized. `unique` wins over
//! `preprocess_collapse_repeated`.

use super::ctc::loss;
use super::shapes::merge;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::PartialShape;

/// Loss of each row of `[batch, time, classes]`; the blank is the last class unless the fifth input says otherwise.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "CTCLoss", since = 4, inputs = "logits, logit_length, labels, label_length, blank_index?")]
pub struct CtcLoss {
    /// Merge equal neighbours among the labels first.
    #[attr(default = false)]
    pub preprocess_collapse_repeated: bool,
    /// Repeats of one class in an alignment count once; otherwise every step is a label of its own.
    #[attr(default = true)]
    pub ctc_merge_repeated: bool,
    /// Keep only the first of equal labels.
    #[attr(default = false)]
    pub unique: bool,
}

impl Op for CtcLoss {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        (1..cx.n_inputs()).try_for_each(|i| cx.require_integer(i))?;
        for (i, rank) in [3, 1, 2, 1, 0].into_iter().enumerate().take(cx.n_inputs()) {
            cx.require_rank(i, &[rank])?;
        }
        let (mut batch, mut time) = (cx.dim(0, 0), cx.dim(0, 1));
        for i in 1..4 {
            merge(cx, &mut batch, cx.dim(i, 0), "batch")?;
        }
        merge(cx, &mut time, cx.dim(2, 1), "time")?;
        cx.set(0, cx.ty(0), PartialShape::new([batch]));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let [batch, time, classes] = [0, 1, 2].map(|i| cx.shape(0)[i]);
        let class = |n: i64, what: &str| {
            usize::try_from(n)
                .ok()
                .filter(|&c| c < classes)
                .ok_or_else(|| cx.fail(format!("{what} {n} is not one of {classes} classes")))
        };
        let blank = class(if cx.has(4) { cx.int(4)? } else { classes as i64 - 1 }, "blank index")?;
        let (steps, labels, counts) = (cx.get::<i64>(1)?, cx.get::<i64>(2)?, cx.get::<i64>(3)?);
        let logits = cx.get::<f64>(0)?;
        let mut out = Vec::with_capacity(batch);
        for n in 0..batch {
            let (length, count) = (steps[n], counts[n]);
            if length < 0 || length > time as i64 || count < 0 || count > length {
                return Err(cx.fail(format!(
                    "row {n}: expected label length <= logit length <= {time}, found {count} and {length}"
                )));
            }
            let row = labels[n * time..].iter().take(count as usize);
            let row = row.map(|&l| class(l, "label")).collect::<Result<Vec<_>>>()?;
            let row = self.preprocessed(row);
            let at = |t: usize| &logits[(n * time + t) * classes..][..classes];
            let norm: Vec<f64> = (0..length as usize).map(|t| log_sum_exp(at(t))).collect();
            out.push(loss(&row, blank, length as usize, self.ctc_merge_repeated, |t, c| at(t)[c] - norm[t]));
        }
        drop((steps, labels, counts, logits));
        cx.put(0, &[batch], out)
    }
}

impl CtcLoss {
    fn preprocessed(&self, labels: Vec<usize>) -> Vec<usize> {
        let mut kept: Vec<usize> = Vec::with_capacity(labels.len());
        for label in labels {
            let dropped = if self.unique {
                kept.contains(&label)
            } else {
                self.preprocess_collapse_repeated && kept.last() == Some(&label)
            };
            if !dropped {
                kept.push(label);
            }
        }
        kept
    }
}

fn log_sum_exp(v: &[f64]) -> f64 {
    let max = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max.is_infinite() { max } else { max + v.iter().map(|x| (x - max).exp()).sum::<f64>().ln() }
}
