//! Select: takes each element from `then` or from `else`. With `numpy` all three shapes meet; with `pdpd` the other two
//! are laid into `then`.

use crate::arithmetic::{AutoBroadcast, Meeting};
use crate::index::{Offsets, offsets};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::Tensor;

/// `then` where the condition holds, `else` elsewhere.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "cond, then, else", moves = "1, 2", broadcasts)]
pub struct Select {
    /// How the shapes meet.
    #[attr(default = AutoBroadcast::Numpy)]
    pub auto_broadcast: AutoBroadcast,
    /// Axis of `then` where the others begin, with `pdpd` only: 0 when left out, -1 aligns the last axes.
    #[attr(name = "auto_broadcast.auto_broadcast_axis", default = None)]
    pub auto_broadcast_axis: Option<i64>,
}

impl Select {
    fn meeting(&self) -> Meeting {
        Meeting::new(self.auto_broadcast, self.auto_broadcast_axis)
    }
}

impl Op for Select {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_boolean(0)?;
        let ty = cx.same_type(&[1, 2])?;
        let meeting = self.meeting();
        let shape = meeting.shape(cx.shape(1), cx.shape(2)).and_then(|s| meeting.shape(&s, cx.shape(0)));
        let shape = shape.ok_or_else(|| {
            cx.fail(format!(
                "shapes of cond [{}], then [{}] and else [{}] do not broadcast ({})",
                cx.shape(0),
                cx.shape(1),
                cx.shape(2),
                self.auto_broadcast.text()
            ))
        })?;
        cx.set(0, ty, shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out = cx.out_shape(0)?;
        let meeting = self.meeting();
        let walk = |input: usize| -> Result<Offsets> {
            let steps = meeting.strides(cx.shape(input), &out, input == 1);
            let steps = steps.ok_or_else(|| cx.fail(format!("{:?} does not broadcast to {out:?}", cx.shape(input))))?;
            Ok(offsets(&out, &steps))
        };
        let (conditions, thens, elses) = (walk(0)?, walk(1)?, walk(2)?);
        let holds = cx.get::<u8>(0)?;
        // Both sources one behind the other, so that one pass picks elements of any type.
        let n = cx.input(1).len();
        let mut both = Tensor::zeros(cx.ty(1), &[n + cx.input(2).len()])?;
        both.copy_elements(0, cx.input(1), 0, n)?;
        both.copy_elements(n, cx.input(2), 0, cx.input(2).len())?;
        let mut positions = conditions.zip(thens).zip(elses).map(|((c, t), e)| if holds[c] != 0 { t } else { n + e });
        let chosen = both.select(&out, |_| positions.next())?;
        drop(positions);
        cx.set(0, chosen)
    }
}
