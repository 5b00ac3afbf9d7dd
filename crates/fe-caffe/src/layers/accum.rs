//! Accum of FlowNet: all bottoms brought to one size, corner on corner, and joined.

use super::cx::LayerCx;
use super::numbers::{known_size, size};
use super::resize::corner_on_corner;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;

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
        let mut largest = [0, 0];
        for &x in &bottoms {
            let size = known_size(n, x)?;
            largest = [0, 1].map(|i: usize| size[i].max(largest[i]));
        }
        let wanted = match divisor {
            Some(d) if !(1..=1 << 16).contains(&d) => {
                return Err(n.fail(format!("`size_divisible_by` must be positive, found {d}")));
            }
            Some(d) => largest.map(|s| (s + d - 1) / d * d),
            None => given,
        };
        // A size that is not larger in both ways says nothing.
        let grows = wanted.iter().zip(&largest).all(|(w, s)| w > s);
        n.i64s(&if grows { wanted } else { largest })?
    };
    let mut parts = vec![];
    for x in bottoms {
        parts.push(match (known_size(n, x), n.ints(to)) {
            (Ok(from), Some(to)) if from[..] == to[..] => x,
            _ => corner_on_corner(n, x, to)?,
        });
    }
    Ok(n.concat(&parts, 1)?.into())
}
