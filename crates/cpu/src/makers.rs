//! Kernels of operations whose results have a shape that depends on data. Unlike a step they have no planned memory: they
//! make the tensors of their results, as an evaluation does.

use carafe_graph::{Error, Op, Result};
use carafe_kernels::Exec;
use carafe_kernels::movement::IndicesMut;
use carafe_kernels::select::{BoxEncoding, Nms, NmsLimits, NmsWork, NonZero, Number, Selected};
use carafe_ops::detection::non_max_suppression::BoxEncoding as Encoding;
use carafe_ops::detection::{
    NonMaxSuppression, NonMaxSuppressionV1, NonMaxSuppressionV3, NonMaxSuppressionV4, NonMaxSuppressionV5,
};
use carafe_ops::indexing;
use carafe_tensor::{ElementType, Tensor};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

/// A kernel that makes its results.
pub(crate) trait Make: Debug + Send + Sync {
    /// The name in reports.
    fn kernel(&self) -> &'static str;
    fn make(&self, exec: &Exec<'_>, inputs: &[Tensor]) -> Result<Vec<Tensor>>;
}

/// The kernel of an operation for inputs of these types, if there is one.
pub(crate) fn maker(op: &dyn Op, types: &[ElementType]) -> Option<Arc<dyn Make>> {
    if let Some(op) = op.get::<indexing::NonZero>() {
        return countable(types[0]).then(|| Arc::new(Places { index: op.output_type }) as Arc<dyn Make>);
    }
    macro_rules! nms {
        ($class:ident, $op:ident => $index:expr, $newest:literal, $scores:literal) => {
            if let Some($op) = op.get::<$class>() {
                let floats = types[..2].iter().all(|t| *t == ElementType::F32);
                let encoding = match $op.box_encoding {
                    Encoding::Corner => BoxEncoding::Corner,
                    Encoding::Center => BoxEncoding::Center,
                };
                return floats.then(|| {
                    let (by_score, index) = ($op.sort_result_descending, $index);
                    let rest = Mutex::new(None);
                    Arc::new(Boxes { encoding, from_threshold: !$newest, by_score, index, scores: $scores, rest })
                        as Arc<dyn Make>
                });
            }
        };
    }
    nms!(NonMaxSuppression, op => op.output_type, true, true);
    nms!(NonMaxSuppressionV5, op => op.output_type, false, true);
    nms!(NonMaxSuppressionV4, op => op.output_type, false, false);
    nms!(NonMaxSuppressionV3, op => op.output_type, false, false);
    nms!(NonMaxSuppressionV1, op => ElementType::I64, false, false);
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
    /// Whether scores and their number are results, too.
    scores: bool,
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
        Ok(NmsLimits { most, iou: number(3)?, score: number(4)?, sigma: number(5)? })
    }
}

fn first<T: Copy>(list: &[T]) -> Result<T> {
    list.first().copied().ok_or_else(|| Error::invalid("a limit has no number"))
}

impl Make for Boxes {
    fn kernel(&self) -> &'static str {
        "nms"
    }
    fn make(&self, exec: &Exec<'_>, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
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
        let kept = self.rest.lock().unwrap_or_else(|e| e.into_inner()).take();
        let kept = kept.filter(|(work, _)| work.threads() >= exec.threads());
        let (mut work, mut rows) = kept.unwrap_or_else(|| (NmsWork::new(exec.threads()), vec![]));
        let (corners, scores) = (inputs[0].to_vec::<f32>()?, inputs[1].to_vec::<f32>()?);
        nms.run(exec, &corners, &scores, limits, &mut work, &mut rows);
        let n = rows.len();
        let places: Vec<i64> =
            rows.iter().flat_map(|r| [i64::from(r.image), i64::from(r.class), i64::from(r.index)]).collect();
        let mut made = vec![Tensor::from_i64(self.index, &[n, 3], &places)?];
        if self.scores {
            let numbers: Vec<f32> = rows.iter().flat_map(|r| [r.image as f32, r.class as f32, r.score]).collect();
            made.push(Tensor::from_slice(&[n, 3], &numbers)?);
            made.push(Tensor::from_i64(self.index, &[1], &[n as i64])?);
        }
        *self.rest.lock().unwrap_or_else(|e| e.into_inner()) = Some((work, rows));
        Ok(made)
    }
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

impl Make for Places {
    fn kernel(&self) -> &'static str {
        "non_zero"
    }
    fn make(&self, exec: &Exec<'_>, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let data = &inputs[0];
        let bytes = data.aligned_bytes()?;
        let made = match data.element_type() {
            ElementType::F32 => self.places::<f32>(exec, data, bytemuck::cast_slice(bytes)),
            ElementType::I32 => self.places::<i32>(exec, data, bytemuck::cast_slice(bytes)),
            ElementType::I64 => self.places::<i64>(exec, data, bytemuck::cast_slice(bytes)),
            _ => self.places::<u8>(exec, data, bytes),
        };
        Ok(vec![made?])
    }
}

impl Places {
    fn places<T: Number>(&self, exec: &Exec<'_>, tensor: &Tensor, data: &[T]) -> Result<Tensor> {
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
