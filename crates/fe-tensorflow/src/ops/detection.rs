//! Detection and decoding: suppression of boxes, beams, and labels of sequences.

use super::common::nms::{Kept, Suppression, suppress};
use super::common::segments::lowest;
use super::common::shapes::scalar;
use super::indexing::rows_of_true;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::{GatherND, GatherTree, Reduction, ScatterNDUpdate};
use carafe_ops::recurrent::{CtcGreedyDecoderSeqLen, CtcLoss};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("CTCGreedyDecoder", 0, ctc_greedy_decoder),
    rule("CTCLoss", 0, ctc_loss),
    rule("GatherTree", 0, |n| {
        let inputs = [n.input(0)?, n.input(1)?, n.input(2)?, n.input(3)?];
        let end = scalar(n, inputs[3])?;
        Ok(n.emit(GatherTree, &[inputs[0], inputs[1], inputs[2], end])?.into())
    }),
    rule("NonMaxSuppression", 0, |n| {
        let threshold: f64 = n.attr("iou_threshold", 0.5)?;
        let scores = n.input(1)?;
        let threshold = n.scalar_like(scores, threshold)?;
        let kept = kept(n, Some(threshold), false, false)?;
        Ok(kept.indices.into())
    }),
    rule("NonMaxSuppressionV2", 0, |n| {
        let threshold = n.input(3)?;
        let kept = kept(n, Some(threshold), false, false)?;
        Ok(kept.indices.into())
    }),
    rule("NonMaxSuppressionV3", 0, |n| {
        let kept = kept(n, None, false, false)?;
        Ok(kept.indices.into())
    }),
    rule("NonMaxSuppressionV4", 0, |n| {
        let pad: bool = n.attr("pad_to_max_output_size", false)?;
        let kept = kept(n, None, false, pad)?;
        Ok(vec![kept.indices, kept.count].into())
    }),
    rule("NonMaxSuppressionV5", 0, |n| {
        let pad: bool = n.attr("pad_to_max_output_size", false)?;
        let kept = kept(n, None, true, pad)?;
        Ok(vec![kept.indices, kept.scores, kept.count].into())
    }),
];

// Without a threshold of its own the node has inputs for it and for the scores.
fn kept(n: &mut NodeCx<'_>, iou: Option<Value>, soft: bool, pad: bool) -> Result<Kept> {
    let (boxes, scores, max_output) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (iou_threshold, score_threshold) = match iou {
        Some(iou) => (iou, n.scalar(ElementType::F32, lowest(ElementType::F32))?),
        None => (n.input(3)?, n.input(4)?),
    };
    let soft_sigma = if soft { Some(n.input(5)?) } else { None };
    suppress(n, &Suppression { boxes, scores, max_output, iou_threshold, score_threshold, soft_sigma }, pad)
}

// Sparse labels `[batch, time]`, and the score of each row with its sign turned.
fn ctc_greedy_decoder(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let merge_repeated: bool = n.attr("merge_repeated", false)?;
    let blank: i64 = n.attr("blank_index", -1)?;
    let (x, lengths) = (n.input(0)?, n.input(1)?);
    let (time, classes) = (n.length(x, 0)?, n.length(x, 2)?);
    let by_batch = n.transpose(x, &[1, 0, 2])?;
    let lengths = n.convert(lengths, ElementType::I32)?;
    let mut blank_at = n.i64(blank)?;
    if blank < 0 {
        blank_at = n.plus(blank_at, classes)?;
    }
    let blank_at = n.convert(blank_at, ElementType::I32)?;
    let op = CtcGreedyDecoderSeqLen {
        merge_repeated,
        classes_index_type: ElementType::I64,
        sequence_length_type: ElementType::I64,
    };
    let outputs = n.emit_all(op, &[by_batch, lengths, blank_at])?;
    let labels = outputs[0];
    let none = n.i64(0)?;
    let is_label = n.greater_equal(labels, none)?;
    let indices = rows_of_true(n, is_label)?;
    let values = n.emit(GatherND { batch_dims: 0 }, &[labels, indices])?;
    let longest = n.max_over(outputs[1], &[0], true)?;
    let batch = n.size(x, 1)?;
    let shape = n.concat(&[batch, longest], 0)?;
    // Steps beyond the length of a row do not count.
    let best = n.max_over(by_batch, &[2], false)?;
    let step = n.count_to(time, ElementType::I32)?;
    let length = n.unsqueeze(lengths, &[1])?;
    let (inside, nothing) = (n.less(step, length)?, n.scalar_like(x, 0.0)?);
    let best = n.choose(inside, best, nothing)?;
    let score = n.sum_over(best, &[1], true)?;
    let score = n.put(carafe_ops::math::Negative, &[score])?;
    Ok(vec![indices, values, shape, score].into())
}

// The loss; its gradient is not computed. Labels are sparse, the last class is blank.
fn ctc_loss(n: &mut NodeCx<'_>) -> Result<Outputs> {
    if n.wants_output(1) {
        return Err(n.unsupported("the gradient of the loss is not supported"));
    }
    let op = CtcLoss {
        preprocess_collapse_repeated: n.attr("preprocess_collapse_repeated", false)?,
        ctc_merge_repeated: n.attr("ctc_merge_repeated", true)?,
        unique: false,
    };
    n.ignore(&["ignore_longer_outputs_than_inputs"]);
    let (x, indices, values, lengths) = (n.input(0)?, n.input(1)?, n.input(2)?, n.input(3)?);
    let x = n.transpose(x, &[1, 0, 2])?;
    let (batch, time) = (n.size(x, 0)?, n.size(x, 1)?);
    let shape = n.concat(&[batch, time], 0)?;
    let values = n.convert(values, ElementType::I32)?;
    let zero = n.scalar(ElementType::I32, 0.0)?;
    let start = n.stretch(zero, shape)?;
    let labels = n.emit(ScatterNDUpdate { reduction: Reduction::None }, &[start, indices, values])?;
    // How many labels each row has.
    let (first, one) = (n.i64s(&[0])?, n.scalar(ElementType::I32, 1.0)?);
    let rows = n.gather(indices, first, 1)?;
    let (none, count) = (n.stretch(zero, batch)?, n.shape_of(values)?);
    let ones = n.stretch(one, count)?;
    let label_length = n.emit(ScatterNDUpdate { reduction: Reduction::Sum }, &[none, rows, ones])?;
    let lengths = n.convert(lengths, ElementType::I32)?;
    let blank = n.length(x, 2)?;
    let blank = n.plus_number(blank, -1.0)?;
    let blank = n.convert(blank, ElementType::I32)?;
    let loss = n.emit(op, &[x, lengths, labels, label_length, blank])?;
    Ok(vec![loss, loss].into())
}

