//! A Reshape, a Transpose and a Reshape that move channels become the operation that is meant:
//!
//! ```text
//! [N, b, b, c, H, W] -> (0, 3, 4, 1, 5, 2) -> [N, c, H*b, W*b]   DepthToSpace {blocks_first}
//! [N, c, b, b, H, W] -> (0, 1, 4, 2, 5, 3) -> [N, c, H*b, W*b]   DepthToSpace {depth_first}
//! [N, g, c, ...]     -> (0, 2, 1, ...)     -> [N, g*c, ...]      ShuffleChannels {group = g}
//! ```
//!
//! All dimensions but the first must be known; the first then follows from the number of elements.

use super::look::{fuse, made_by, transposed};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::movement::depth_to_space::BlockOrder;
use carafe_ops::movement::{DepthToSpace, Reshape, ShuffleChannels};

/// Recognises DepthToSpace.
#[derive(Clone, Copy, Debug)]
pub struct FuseDepthToSpace;

/// Recognises ShuffleChannels.
#[derive(Clone, Copy, Debug)]
pub struct FuseShuffleChannels;

/// Data, its dimensions after the first, those in the middle and at the end, and the order between.
struct Moved {
    x: Value,
    before: Vec<usize>,
    middle: Vec<usize>,
    after: Vec<usize>,
    order: Vec<i64>,
}

fn find(model: &Model, root: NodeId) -> Option<std::result::Result<Moved, Outcome>> {
    model.op_at::<Reshape>(root)?;
    let turned = model.input(root, 0)?;
    let (viewed, order) = transposed(model, turned)?;
    let x = *made_by::<Reshape>(model, viewed)?.first()?;
    let rest = |v: Value| {
        let dims = model.fact(v).shape.dims()?;
        dims.get(1..)?.iter().map(|d| d.size()).collect::<Option<Vec<usize>>>()
    };
    if order.first() != Some(&0) {
        return None;
    }
    let (Some(before), Some(middle), Some(after)) = (rest(x), rest(viewed), rest(root.into())) else {
        return Some(Err(Outcome::skip("a dimension other than the first is unknown")));
    };
    // Equal products of the rest make the first dimensions equal too.
    let size = |dims: &[usize]| dims.iter().product::<usize>();
    let whole = size(&before) == size(&middle) && size(&middle) == size(&after) && size(&before) > 0;
    whole.then_some(Ok(Moved { x, before, middle, after, order }))
}

impl Rewrite for FuseDepthToSpace {
    fn name(&self) -> &'static str {
        "fuse_depth_to_space"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let moved = match find(model, root) {
            Some(Ok(moved)) => moved,
            Some(Err(skip)) => return Ok(skip),
            None => return Ok(Outcome::NoMatch),
        };
        let k = moved.before.len().wrapping_sub(1);
        if moved.before.len() < 2 || moved.middle.len() != 2 * k + 1 || moved.after.len() != k + 1 {
            return Ok(Outcome::NoMatch);
        }
        for mode in [BlockOrder::BlocksFirst, BlockOrder::DepthFirst] {
            // Where blocks and the rest of the channels stand in the middle, the first axis not counted.
            let (blocks, depth) = if mode == BlockOrder::BlocksFirst { (0, k) } else { (1, 0) };
            let block = moved.middle[blocks];
            let mut order = vec![0, depth as i64 + 1];
            order.extend((0..k).flat_map(|i| [(k + 1 + i) as i64 + 1, (blocks + i) as i64 + 1]));
            let cubes = moved.middle[blocks..blocks + k].iter().all(|&b| b == block);
            let kept = moved.middle[k + 1..] == moved.before[1..];
            let grown = moved.after[1..].iter().zip(&moved.before[1..]).all(|(a, b)| *a == b * block);
            if order == moved.order && cubes && kept && grown && moved.after[0] == moved.middle[depth] {
                let x = moved.x;
                return fuse(model, root, &[x], DepthToSpace { block_size: block as i64, mode }, &[x]);
            }
        }
        Ok(Outcome::NoMatch)
    }
}

impl Rewrite for FuseShuffleChannels {
    fn name(&self) -> &'static str {
        "fuse_shuffle_channels"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let moved = match find(model, root) {
            Some(Ok(moved)) => moved,
            // Said already by the other of the two.
            Some(Err(_)) | None => return Ok(Outcome::NoMatch),
        };
        let Moved { x, before, middle, after, order } = moved;
        let swapped = order.iter().zip(0..).all(|(&a, i)| a == [0, 2, 1].get(i).copied().unwrap_or(i as i64));
        let cut = middle.len() == before.len() + 1 && middle.len() >= 2 && middle[2..] == before[1..];
        if !swapped || !cut || before != after || before[0] != middle[0] * middle[1] {
            return Ok(Outcome::NoMatch);
        }
        fuse(model, root, &[x], ShuffleChannels { axis: 1, group: middle[0] as i64 }, &[x])
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Sketch, fires_static, stays};
    use super::*;
    use carafe_graph::Pass;
    use carafe_ops::arithmetic::Multiply;
    use carafe_ops::movement::Transpose;

    fn moved(g: &mut Sketch, x: &[usize], middle: &[i64], order: &[i64], after: &[i64]) -> Value {
        let x = g.input(x);
        let (middle, order, after) = (g.ints(middle), g.ints(order), g.ints(after));
        let y = g.op(Reshape { special_zero: false }, &[x, middle]);
        let y = g.op(Transpose, &[y, order]);
        g.op(Reshape { special_zero: true }, &[y, after])
    }

    #[test]
    fn blocks_go_to_space() {
        let (x, after) = ([2, 12, 3, 5], [0, 3, 6, 10]);
        fires_static(&FuseDepthToSpace, "DepthToSpace", |g| {
            moved(g, &x, &[-1, 2, 2, 3, 3, 5], &[0, 3, 4, 1, 5, 2], &after)
        });
        fires_static(&FuseDepthToSpace, "DepthToSpace", |g| {
            moved(g, &x, &[2, 3, 2, 2, 3, 5], &[0, 1, 4, 2, 5, 3], &after)
        });
        fires_static(&FuseDepthToSpace, "DepthToSpace", |g| {
            moved(g, &[2, 6, 4], &[2, 3, 2, 4], &[0, 2, 3, 1], &[2, 2, 12])
        });
    }

    #[test]
    fn groups_are_shuffled() {
        for group in [2, 3] {
            fires_static(&FuseShuffleChannels, "ShuffleChannels", |g| {
                moved(g, &[2, 6, 3, 5], &[2, group, -1, 3, 5], &[0, 2, 1, 3, 4], &[2, 6, 3, 5])
            });
        }
    }

    #[test]
    fn other_moves_stay() {
        let passes: [&dyn Pass; 2] = [&FuseDepthToSpace, &FuseShuffleChannels];
        for pass in passes {
            stays(pass, "", |g| moved(g, &[2, 12, 3, 5], &[2, 2, 2, 3, 3, 5], &[0, 3, 1, 4, 5, 2], &[2, 3, 6, 10]));
            stays(pass, "", |g| moved(g, &[2, 6, 3, 5], &[2, 2, 3, 3, 5], &[0, 2, 1, 3, 4], &[2, 6, 5, 3]));
            stays(pass, "", |g| moved(g, &[2, 6, 3, 5], &[2, 2, 3, 3, 5], &[0, 1, 2, 4, 3], &[2, 6, 3, 5]));
        }
        stays(&FuseShuffleChannels, "Transpose `Transpose5` has another user", |g| {
            let y = moved(g, &[2, 6, 3], &[2, 2, 3, 3], &[0, 2, 1, 3], &[2, 6, 3]);
            let turned = g.model.input(y.node, 0).unwrap();
            let y = g.op(Reshape { special_zero: true }, &[y, g.model.input(y.node, 1).unwrap()]);
            let shape = g.ints(&[2, 6, 3]);
            let again = g.op(Reshape { special_zero: false }, &[turned, shape]);
            g.op(Multiply::default(), &[y, again])
        });
    }
}
