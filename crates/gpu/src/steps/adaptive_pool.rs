//! AdaptiveAvgPool and AdaptiveMaxPool: windows that share the axes evenly, in either layout.

use super::pool::{ints, steps};
use super::{Built, Site};
use crate::launch::{Arg, Launch, Launches};
use crate::programs::Source;
use carafe_graph::Result;
use carafe_ops::pooling::{AdaptiveAvgPool, AdaptiveMaxPool};
use carafe_plan::windows::three;
use carafe_plan::{Form, Layout};
use carafe_tensor::ElementType;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let largest = site.op.is::<AdaptiveMaxPool>();
    if site.group || !site.epilogue.is_empty() || !(largest || site.op.is::<AdaptiveAvgPool>()) {
        return Ok(None);
    }
    let (data, out, cx) = (&site.inputs[0], &site.outputs[0], site.cx);
    if !data.is_f32() || data.shape.contains(&0) || out.shape.contains(&0) {
        return Ok(None);
    }
    let places = site.wanted.iter().skip(1).any(|w| *w);
    let layout = if places { Layout::PLAIN } else { data.layout };
    let (Some(from), Some(to)) = (three(&data.shape[2..]), three(&out.shape[2..])) else { return Ok(None) };
    let (Some((far, channel)), Some((far_to, channel_to))) = (steps(&data.shape, layout), steps(&out.shape, layout))
    else {
        return Ok(None);
    };
    let mut macros = vec![("MAX", usize::from(largest).to_string()), ("PLACES", usize::from(places).to_string())];
    let (rows, columns) = (out.len() / out.shape[1], out.shape[1]);
    let sizes = [&from[..], &to, &[channel, channel_to]].concat();
    let mut args = vec![Arg::Read(0), Arg::Write(0), rows.into(), columns.into()];
    args.extend([ints(&sizes), ints(&far), ints(&far_to)]);
    let mut outputs: Vec<Form> = vec![cx.form(out, layout)];
    if places {
        let index = if site.outputs[1].ty == ElementType::I64 { "long" } else { "int" };
        macros.push(("INDEX", index.into()));
        args.push(Arg::Write(1));
        outputs.push(Layout::PLAIN.into());
    }
    let kernel = cx.kernel(&Source("adaptive_pool.cl"), "adaptive_pool", &macros)?;
    let launch = Launch::plane(&kernel, args, [columns, rows, 1], cx.group());
    let name = if largest { "adaptive_pool_max" } else { "adaptive_pool_mean" };
    Ok(Some(Launches::new(name, vec![launch]).built([(0, cx.form(data, layout))], outputs)))
}
