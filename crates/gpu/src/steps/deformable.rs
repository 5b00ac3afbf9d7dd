//! DeformableConvolution: the windows with their moved taps become columns in the workspace, which filters are multiplied with.

use super::ending::Ending;
use super::pool::ints;
use super::product::{Left, Product, Right};
use super::{Built, Port, Site};
use crate::launch::{Arg, Launch, Launches};
use crate::machine::ALIGNMENT;
use crate::programs::Source;
use carafe_graph::Result;
use carafe_ops::convolution::DeformableConvolution;
use carafe_plan::{Layout, WindowAttrs, Windows};

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(op) = site.op.get::<DeformableConvolution>() else { return Ok(None) };
    let inputs = &site.inputs[..site.own_inputs];
    if site.group || site.before.is_some() || inputs.iter().any(|p| !p.is_f32() || p.shape.contains(&0)) {
        return Ok(None);
    }
    let (data, filters, out, cx) = (&inputs[0], &inputs[2], &site.outputs[0], site.cx);
    let attrs = WindowAttrs {
        strides: &op.strides,
        dilations: &op.dilations,
        begin: &op.pads_begin,
        end: &op.pads_end,
        auto_pad: op.auto_pad,
    };
    let Some(windows) = Windows::of(&attrs, &filters.shape[2..], &data.shape, &out.shape) else { return Ok(None) };
    let (channels, groups) = (data.shape[1], op.group as usize);
    let taps = filters.shape[2] * filters.shape[3];
    let (points, deep) = (out.shape[2] * out.shape[3], channels / groups * taps);
    let count = data.shape[0] * channels * taps * points;
    let bytes = (count * if cx.half { 2 } else { 4 }).next_multiple_of(ALIGNMENT);
    if count > super::MOST_ELEMENTS || bytes > cx.machine.info().largest_buffer {
        return Ok(None);
    }
    let columns = Arg::Workspace(0, bytes);
    let masked = inputs.len() > 3;
    let macros = [("FADES", op.bilinear_interpolation_pad), ("MASKED", masked)];
    let kernel =
        cx.kernel(&Source("deformable.cl"), "deformed", &macros.map(|(n, is)| (n, usize::from(is).to_string())))?;
    let mut args = vec![Arg::Read(0), Arg::Read(1), Arg::Read(if masked { 3 } else { 0 }), columns.clone()];
    args.extend([count, channels, channels / op.deformable_group as usize].map(Arg::from));
    let two = |list: [usize; 3]| [list[1], list[2]];
    let image = [two(windows.input), two(windows.output), two(windows.kernel), [0, 0]].concat();
    let steps = [two(windows.stride), two(windows.dilation), two(windows.pad_begin), [0, 0]].concat();
    args.extend([ints(&image), ints(&steps)]);
    let mut launches = vec![Launch::flat(&kernel, args, count, cx.group())];

    let rows = out.shape[1] / groups;
    let begin = |i: usize| {
        let matrix = [i % groups * rows * deep, i * deep * points, i * rows * points, 0];
        matrix.map(|n| n as i32)
    };
    let product = Product {
        rows,
        columns: points,
        deep,
        left: Left::Rows(deep),
        right: Right { stride: points, transposed: false, padded: false },
        out_stride: points,
        offsets: (0..data.shape[0] * groups).map(begin).collect(),
        largest: inputs.iter().map(Port::len).chain([count, out.len()]).max().unwrap_or(0),
    };
    let work = product.launches_from(cx, [Arg::Read(2), columns, Arg::Write(0)], &Ending::none(), bytes)?;
    launches.extend(work.launches);
    let form = |port| cx.form(port, Layout::PLAIN);
    // Offsets stay f32: they are places.
    let mut reads = vec![(0, form(data)), (1, Layout::PLAIN.into()), (2, form(filters))];
    if masked {
        reads.push((3, form(&inputs[3])));
    }
    let built = Launches::new(format!("deformable_conv{}", work.name), launches).built(reads, [form(out)]);
    Ok(Some(built.with_workspace(bytes + work.workspace).taking(0)))
}
