//! Convolutions of `com.microsoft` over data with its channels last. NhwcConv has filters with their channels last too,
//! NhwcFusedConv has them as everywhere else.

use super::contrib::{MS, activated};
use super::convolution::{Windows, groups, with_bias};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Result, Value};

pub(crate) const RULES: &[StaticRule] = &[
    rule_in(MS, "NhwcConv", 1, |n| {
        let w = n.input(1)?;
        let w = channels_second(n, w)?;
        convolved(n, w)
    }),
    rule_in(MS, "NhwcFusedConv", 1, |n| {
        let w = n.input(1)?;
        convolved(n, w)
    }),
];

fn convolved(n: &mut NodeCx<'_>, w: Value) -> Result<Outputs> {
    let (x, bias, sum) = (n.input(0)?, n.opt(2)?, n.opt(3)?);
    let x = channels_second(n, x)?;
    let windows = Windows::of_filters(n, w, x)?;
    let (groups, axes) = (groups(n)?, windows.n_spatial());
    let y = windows.convolve(n, x, w, groups)?;
    let mut y = with_bias(n, y, bias, axes)?;
    if let Some(sum) = sum {
        let sum = channels_second(n, sum)?;
        y = n.plus(y, sum)?;
    }
    let y = activated(n, y)?;
    let back: Vec<i64> = std::iter::once(0).chain(2..axes as i64 + 2).chain([1]).collect();
    Ok(n.transpose(y, &back)?.into())
}

// [N, ..., C] as [N, C, ...].
fn channels_second(n: &mut NodeCx<'_>, v: Value) -> Result<Value> {
    let rank = n.known_rank(v)? as i64;
    if rank < 3 {
        return Err(n.fail(format!("data and filters need 3 axes or more, found {rank}")));
    }
    let order: Vec<i64> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    n.transpose(v, &order)
}
