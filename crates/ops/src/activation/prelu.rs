//! PRelu: `y = x` above 0, else `slope * x`. A vector of slopes as long as dimension 1 of the data belongs to the channels;
//! any other slope is broadcast the numpy way, and never widens the data.

use crate::arithmetic::{AutoBroadcast, Meeting};
use crate::index::offsets;
use carafe_graph::{EvalCx, InferCx, Op, Result, RowsCx, OrderCx, Reordered};
use carafe_tensor::{Dim, PartialShape};

/// Leaky rectifier with a slope for every channel or element.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, xml = "PReLU", inputs = "data, slope")]
pub struct PRelu;

impl Op for PRelu {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_number(0)?;
        cx.require_number(1)?;
        let (data, slope) = (cx.shape(0), cx.shape(1));
        let fits = match (data.to_static(), slope.to_static()) {
            (Some(data), Some(slope)) => steps(&data, &slope).is_some(),
            _ => data.broadcast(slope).is_some() || may_be_per_channel(data, slope),
        };
        cx.require(fits, || format!("slope of shape [{slope}] does not fit data of shape [{data}]"))?;
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let steps = steps(&shape, cx.shape(1)).ok_or_else(|| {
            cx.fail(format!("slope of shape {:?} does not fit data of shape {shape:?}", cx.shape(1)))
        })?;
        let data = {
            let (x, slope) = (cx.get::<f64>(0)?, cx.get::<f64>(1)?);
            let at = offsets(&shape, &steps);
            x.iter().zip(at).map(|(&x, i)| if x < 0.0 { x * slope[i] } else { x }).collect::<Vec<f64>>()
        };
        cx.put(0, &shape, data)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.elementwise()
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        // A vector of slopes belongs to axis 1, whatever lies there.
        ((cx.rank)(1)? != 1).then(|| Reordered { op: Box::new(self.clone()), data: 2, ints: vec![] })
    }
}

/// Steps of the slope along the axes of the data; `None` when it does not fit.
fn steps(data: &[usize], slope: &[usize]) -> Option<Vec<usize>> {
    if let ([n], true) = (slope, data.len() >= 2)
        && *n == data[1]
    {
        let mut steps = vec![0; data.len()];
        steps[1] = usize::from(*n > 1);
        return Some(steps);
    }
    let ones = slope.len().saturating_sub(data.len());
    if slope[..ones].iter().any(|&n| n != 1) {
        return None;
    }
    Meeting::new(AutoBroadcast::Numpy, None).strides(&slope[ones..], data, false)
}

fn may_be_per_channel(data: &PartialShape, slope: &PartialShape) -> bool {
    let channels = match data.rank() {
        Some(r) if r < 2 => return false,
        Some(_) => data.dim(1),
        None => Dim::ANY,
    };
    slope.rank().is_none_or(|r| r == 1) && slope.dim(0).compatible(channels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_belongs_to_the_channels_when_it_can() {
        assert_eq!(steps(&[1, 2, 2], &[2]), Some(vec![0, 1, 0]));
        assert_eq!(steps(&[2, 3, 2], &[2]), Some(vec![0, 0, 1]));
        assert_eq!(steps(&[3], &[3]), Some(vec![1]));
        assert_eq!(steps(&[2, 3], &[1, 1, 1]), Some(vec![0, 0]));
        assert_eq!(steps(&[2, 3], &[5]), None);
        assert_eq!(steps(&[3], &[2, 3]), None);
    }
}
