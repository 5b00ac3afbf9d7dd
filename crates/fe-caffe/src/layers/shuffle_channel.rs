//! ShuffleChannel: channels of all groups in turn.

use super::cx::LayerCx;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::movement::ShuffleChannels;

pub(crate) const RULES: &[StaticRule] = &[rule("ShuffleChannel", 0, shuffle_channel)];

fn shuffle_channel(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let op = ShuffleChannels { axis: 1, group: n.attr("group", 1)? };
    Ok(n.emit(op, &[x])?.into())
}
