//! Kernels of operations whose results have a shape that depends on data.

use crate::backend::{Cpu, CpuExec};
use carafe_graph::{Error, Op, Result};
use carafe_kernels::Exec;
use carafe_kernels::movement::IndicesMut;
use carafe_kernels::select::{BoxEncoding, Nms, NmsLimits, NmsWork, NonZero, Number, Selected};
use carafe_ops::detection::non_max_suppression::BoxEncoding as Encoding;
use carafe_ops::detection::{DetectionOutput, NonMaxSuppression, NonMaxSuppressionV5};
use carafe_ops::indexing;
use carafe_plan::DynamicOutput;
use carafe_tensor::{ElementType, Tensor};
use std::sync::{Arc, Mutex};

/// The kernel of an operation for inputs of these types, if there is one.
pub(crate) fn build(op: &dyn Op, types: &[ElementType]) -> Option<Arc<dyn DynamicOutput<Cpu>>> {
    if let Some(op) = op.get::<indexing::NonZero>() {
        return countable(types[0]).then(|| Arc::new(Places { index: op.output_type }) as Arc<dyn DynamicOutput<Cpu>>);
    }
    if let Some(op) = op.get::<DetectionOutput>().cloned() {
        let plain = op.share_location && !op.decrease_label_id && types.len() == 3;
        let floats = types.iter().all(|t| *t == ElementType::F32);
        return (plain && floats)
            .then(|| Arc::new(Detections { op, rest: Mutex::new(None) }) as Arc<dyn DynamicOutput<Cpu>>);
    }
    macro_rules! nms {
        ($class:ident, $from_threshold:literal) => {
            if let Some(op) = op.get::<$class>() {
                let floats = types[..2].iter().all(|t| *t == ElementType::F32);
                let encoding = match op.box_encoding {
                    Encoding::Corner => BoxEncoding::Corner,
                    Encoding::Center => BoxEncoding::Center,
                };
                return floats.then(|| {
                    let (by_score, index) = (op.sort_result_descending, op.output_type);
                    let rest = Mutex::new(None);
                    Arc::new(Boxes { encoding, from_threshold: $from_threshold, by_score, index, rest })
                        as Arc<dyn DynamicOutput<Cpu>>
                });
            }
        };
    }
    nms!(NonMaxSuppression, false);
    nms!(NonMaxSuppressionV5, true);
    None
}

/// Memory of a selection, kept from run to run.
type Rest = (NmsWork, Vec<Selected>);

/// NonMaxSuppression.
#[derive(Debug)]
struct Boxes {
    encoding: BoxEncoding,
    from_threshold: bool,
    by_score: bool,
    index: ElementType,
    rest: Mutex<Option<Rest>>,
}

impl Boxes {
    fn limits(inputs: &[Tensor]) -> Result<NmsLimits> {
        let number = |i: usize| match inputs.get(i) {
            Some(t) => first(&t.to_vec::<f64>()?).map(|x| x as f32),
            None => Ok(0.0),
        };
        let most = match inputs.get(2) {
            // Every negative number means all.
            Some(t) => usize::try_from(first(&t.to_vec::<i64>()?)?).unwrap_or(usize::MAX),
            None => 0,
        };
        Ok(NmsLimits { most, candidates: usize::MAX, iou: number(3)?, score: number(4)?, sigma: number(5)? })
    }
}

fn first<T: Copy>(list: &[T]) -> Result<T> {
    list.first().copied().ok_or_else(|| Error::invalid("a limit has no number"))
}

impl DynamicOutput<Cpu> for Boxes {
    fn kernel(&self) -> &'static str {
        "nms"
    }
    fn run(&self, exec: &CpuExec, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let exec = &exec.kernels();
        let limits = Boxes::limits(inputs)?;
        let &[images, classes, boxes] = inputs[1].shape() else {
            return Err(Error::invalid("scores must have rank 3"));
        };
        if *inputs[0].shape() != [images, boxes, 4] {
            let found = inputs[0].shape();
            return Err(Error::invalid(format!("boxes must be [{images}, {boxes}, 4], found {found:?}")));
        }
        let nms = Nms {
            images,
            classes,
            boxes,
            encoding: self.encoding,
            from_threshold: self.from_threshold,
            by_score: self.by_score,
        };
        let (mut work, mut rows) = take(&self.rest, exec);
        let (corners, scores) = (inputs[0].to_vec::<f32>()?, inputs[1].to_vec::<f32>()?);
        nms.run(exec, &corners, &scores, limits, &mut work, &mut rows);
        let n = rows.len();
        let positions: Vec<i64> =
            rows.iter().flat_map(|r| [i64::from(r.image), i64::from(r.class), i64::from(r.index)]).collect();
        let numbers: Vec<f32> = rows.iter().flat_map(|r| [r.image as f32, r.class as f32, r.score]).collect();
        let made = vec![
            Tensor::from_i64(self.index, &[n, 3], &positions)?,
            Tensor::from_slice(&[n, 3], &numbers)?,
            Tensor::from_i64(self.index, &[1], &[n as i64])?,
        ];
        *self.rest.lock().unwrap_or_else(|e| e.into_inner()) = Some((work, rows));
        Ok(made)
    }
}

/// DetectionOutput with boxes that all classes share.
#[derive(Debug)]
struct Detections {
    op: DetectionOutput,
    rest: Mutex<Option<Rest>>,
}

impl DynamicOutput<Cpu> for Detections {
    fn kernel(&self) -> &'static str {
        "detection_output"
    }
    fn run(&self, exec: &CpuExec, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let exec = &exec.kernels();
        let op = &self.op;
        let (&[images, located], &[scored, confidences], size @ &[groups, lists, numbers]) =
            (inputs[0].shape(), inputs[1].shape(), inputs[2].shape())
        else {
            return Err(Error::invalid("boxes and scores must have rank 2, priors rank 3"));
        };
        let priors = numbers / op.prior_size();
        let classes = confidences.checked_div(priors).unwrap_or(0);
        let listed = lists == if op.variance_encoded_in_target { 1 } else { 2 };
        let fits = located == priors * 4 && confidences == priors * classes && scored == images && listed;
        if !fits || (groups != 1 && groups != images) || priors == 0 {
            return Err(Error::invalid(format!(
                "boxes {:?}, scores {:?} and priors {size:?} do not fit each other",
                inputs[0].shape(),
                inputs[1].shape()
            )));
        }
        let (logits, scores, prior_data) =
            (inputs[0].to_vec::<f32>()?, inputs[1].to_vec::<f32>()?, inputs[2].to_vec::<f32>()?);
        let prior_step = if groups == 1 { 0 } else { lists * numbers };
        let corners = in_parts(exec, images * priors, 4, |i, to| {
            let (image, p) = (i / priors, i % priors);
            let logits = &logits[image * priors * 4..(image + 1) * priors * 4];
            to.copy_from_slice(&op.shared_box(priors, p, &prior_data[image * prior_step..], logits));
        });
        let by_class = in_parts(exec, images * classes, priors, |row, to| {
            let (image, class) = (row / classes, row % classes);
            // Nothing is above a threshold there.
            if class as i64 == op.background_label_id {
                return to.fill(f32::NEG_INFINITY);
            }
            let scores = &scores[image * priors * classes..(image + 1) * priors * classes];
            to.iter_mut().zip(scores[class..].iter().step_by(classes)).for_each(|(to, score)| *to = *score);
        });
        let encoding = BoxEncoding::Sides;
        let nms = Nms { images, classes, boxes: priors, encoding, from_threshold: false, by_score: false };
        let limits = NmsLimits {
            most: usize::MAX,
            candidates: usize::try_from(op.top_k).unwrap_or(usize::MAX),
            iou: op.nms_threshold,
            score: op.confidence_threshold,
            sigma: 0.0,
        };
        let (mut work, mut found) = take(&self.rest, exec);
        nms.run(exec, &corners, &by_class, limits, &mut work, &mut found);
        let out = self.rows(&found, &corners, [images, classes, priors])?;
        *self.rest.lock().unwrap_or_else(|e| e.into_inner()) = Some((work, found));
        Ok(vec![out])
    }
}

impl Detections {
    // The best of each image, grouped by class, and a row that ends the list where there is room for it.
    fn rows(&self, found: &[Selected], corners: &[f32], [images, classes, priors]: [usize; 3]) -> Result<Tensor> {
        let op = &self.op;
        let keep = op.keep_top_k.first().copied().and_then(|k| usize::try_from(k).ok());
        let rows = match (op.keep_top_k.first(), op.top_k) {
            (Some(&keep @ 1..), _) => images * keep as usize,
            (Some(-1), top @ 1..) => images * top as usize * classes,
            _ => images * priors * classes,
        };
        let mut out = Tensor::zeros(ElementType::F32, &[1, 1, rows, 7])?;
        let mut to = out.as_slice_mut::<f32>()?.chunks_exact_mut(7);
        let mut best: Vec<Selected> = vec![];
        for found in found.chunk_by(|a, b| a.image == b.image) {
            best.clear();
            best.extend_from_slice(found);
            if let Some(keep) = keep.filter(|&k| k < best.len()) {
                // No score is undefined: those were not above the threshold.
                best.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.index.cmp(&b.index)));
                best.truncate(keep);
                best.sort_by_key(|d| d.class);
            }
            for d in &best {
                let Some(row) = to.next() else { return Ok(out) };
                let at = (d.image as usize * priors + d.index as usize) * 4;
                let b = std::array::from_fn(|i| corners[at + i]);
                row[..3].copy_from_slice(&[d.image as f32, d.class as f32, d.score]);
                row[3..].copy_from_slice(&op.reported(b));
            }
        }
        if let Some(row) = to.next() {
            row[0] = -1.0;
        }
        Ok(out)
    }
}

// Memory of the last selection, if it has enough.
fn take(rest: &Mutex<Option<Rest>>, exec: &Exec<'_>) -> Rest {
    let kept = rest.lock().unwrap_or_else(|e| e.into_inner()).take();
    let kept = kept.filter(|(work, _)| work.threads() >= exec.threads());
    kept.unwrap_or_else(|| (NmsWork::new(exec.threads()), vec![]))
}

// So many rows of floats, made by all threads.
fn in_parts(exec: &Exec<'_>, rows: usize, width: usize, row: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f32> {
    let mut all = vec![0f32; rows * width];
    let each = rows.div_ceil(4 * exec.threads()).max(1);
    if width > 0 {
        let parts: Vec<Mutex<&mut [f32]>> = all.chunks_mut(each * width).map(Mutex::new).collect();
        exec.each(parts.len(), |part, _| {
            let mut to = parts[part].lock().unwrap_or_else(|e| e.into_inner());
            to.chunks_exact_mut(width).enumerate().for_each(|(i, to)| row(part * each + i, to));
        });
    }
    all
}

/// NonZero.
#[derive(Debug)]
struct Places {
    index: ElementType,
}

fn countable(ty: ElementType) -> bool {
    use ElementType as E;
    matches!(ty, E::F32 | E::I32 | E::I64 | E::U8 | E::I8 | E::Boolean)
}

impl DynamicOutput<Cpu> for Places {
    fn kernel(&self) -> &'static str {
        "non_zero"
    }
    fn run(&self, exec: &CpuExec, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let exec = &exec.kernels();
        let data = &inputs[0];
        let bytes = data.aligned_bytes()?;
        let made = match data.element_type() {
            ElementType::F32 => self.positions::<f32>(exec, data, bytemuck::cast_slice(bytes)),
            ElementType::I32 => self.positions::<i32>(exec, data, bytemuck::cast_slice(bytes)),
            ElementType::I64 => self.positions::<i64>(exec, data, bytemuck::cast_slice(bytes)),
            _ => self.positions::<u8>(exec, data, bytes),
        };
        Ok(vec![made?])
    }
}

impl Places {
    fn positions<T: Number>(&self, exec: &Exec<'_>, tensor: &Tensor, data: &[T]) -> Result<Tensor> {
        let kernel = NonZero::new(tensor.shape());
        let counts = kernel.count(exec, data);
        let mut made = Tensor::zeros(self.index, &[kernel.rank(), counts.total()])?;
        match self.index {
            ElementType::I32 => kernel.fill(exec, data, &counts, IndicesMut::I32(made.as_slice_mut::<i32>()?)),
            _ => kernel.fill(exec, data, &counts, IndicesMut::I64(made.as_slice_mut::<i64>()?)),
        }
        Ok(made)
    }
}
