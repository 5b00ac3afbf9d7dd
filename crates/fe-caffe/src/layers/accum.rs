//! Accum of FlowNet: all bottoms brought to one size, corner on corner, and joined.

use super::cx::LayerCx;
use super::numbers::size;
use super::resize::corner_on_corner;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::arithmetic::AutoBroadcast;
use carafe_ops::compare::Greater;
use carafe_ops::indexing::Select;
use carafe_ops::reduce::ReduceLogicalAnd;

pub(crate) const RULES: &[StaticRule] = &[rule("Accum", 0, accum)];

fn accum(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut bottoms = n.bottoms()?;
    let have_reference: bool = n.attr("have_reference", false)?;
    let given: [i64; 2] = [n.attr("top_height", 0)?, n.attr("top_width", 0)?];
    let divisor: Option<i64> = n.opt_attr("size_divisible_by")?;
    let to = if have_reference {
        let like = bottoms.pop().filter(|_| !bottoms.is_empty());
        let like = like.ok_or_else(|| n.fail("needs a bottom beside the one that gives the size"))?;
        size(n, like)?
    } else {
        let Some((&first, rest)) = bottoms.split_first() else { return Err(n.fail("has no bottom")) };
        let mut largest = size(n, first)?;
        for &x in rest {
            let other = size(n, x)?;
            largest = n.larger(largest, other)?;
        }
        let wanted = match divisor {
            Some(d) if !(1..=1 << 16).contains(&d) => {
                return Err(n.fail(format!("`size_divisible_by` must be positive, found {d}")));
            }
            Some(d) => {
                let (above, d) = (n.plus_number(largest, (d - 1) as f64)?, n.i64s(&[d])?);
                let times = n.over(above, d)?;
                n.times(times, d)?
            }
            None => n.i64s(&given)?,
        };
        // A size that is not larger in both ways says nothing.
        let grows = n.emit(Greater::default(), &[wanted, largest])?;
        let axis = n.i64s(&[0])?;
        let grows = n.emit(ReduceLogicalAnd { keep_dims: true }, &[grows, axis])?;
        let op = Select { auto_broadcast: AutoBroadcast::Numpy, auto_broadcast_axis: None };
        n.emit(op, &[grows, wanted, largest])?
    };
    let mut parts = vec![];
    for x in bottoms {
        parts.push(corner_on_corner(n, x, to)?);
    }
    Ok(n.concat(&parts, 1)?.into())
}
