//! A depthwise convolution and the pointwise one behind it as one step, see `lower/separable.rs`.

use super::conv::{attrs_of, shape_of};
use super::ending::Ending;
use super::{Built, Io, Site, Step};
use crate::plan::Layout;
use crate::weights::{Packed, floats_of};
use carafe_graph::Result;
use carafe_kernels::{Depthwise, Separable};
use carafe_ops::convolution::GroupConvolution;
use carafe_tensor::Tensor;

#[derive(Debug)]
struct SeparableStep {
    kernel: Separable,
    weights: [Packed; 2],
    /// Channels between the two and behind them.
    channels: [usize; 2],
    between: Ending,
    end: Ending,
}

impl Step for SeparableStep {
    fn kernel(&self) -> String {
        format!("conv_depthwise{}+conv_gemm{}", self.between.name(), self.end.name())
    }
    fn scratch_floats(&self) -> usize {
        self.kernel.scratch_floats()
    }
    fn run(&self, io: &mut Io<'_, '_>) -> Result<()> {
        let (out, io) = io.take_output(0);
        let weights = [self.weights[0].floats(), self.weights[1].floats()];
        self.between.with(&io, self.channels[0], |between| {
            self.end.with(&io, self.channels[1], |end| {
                self.kernel.run(io.exec, io.input(0), weights, between, out, end);
            });
        });
        Ok(())
    }
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(before) = site.before else { return Ok(None) };
    let (first_input, unit) = (before.first_input, &before.unit);
    let Some(op) = unit.op.get::<GroupConvolution>() else { return Ok(None) };
    // The first of the two as a site of its own.
    let first = Site {
        op: &*unit.op,
        inputs: site.inputs[first_input..].to_vec(),
        own_inputs: unit.own_inputs,
        outputs: vec![site.inputs[0].clone()],
        wanted: vec![true],
        post: &unit.post,
        orders: &[],
        out_order: None,
        group: false,
        before: None,
        cx: site.cx,
    };
    let attrs = attrs_of(&op.strides, &op.dilations, &op.pads_begin, &op.pads_end, op.auto_pad);
    let Some(shape) = shape_of([&first.inputs[0], &first.inputs[1], &first.outputs[0]], &attrs, true) else {
        return Ok(None);
    };
    let (Some(spread), Some(mixed)) = (&first.inputs[1].constant, &site.inputs[1].constant) else { return Ok(None) };
    if !Depthwise::fits(&shape) || !first.inputs[0].is_f32() || site.inputs[1].rank() != first.inputs[0].rank() {
        return Ok(None);
    }
    let mut reads = vec![(first_input, Layout::ChannelsLast)];
    let Some(between) = Ending::of(&first, 1, Layout::ChannelsLast, &mut reads) else { return Ok(None) };
    reads[1..].iter_mut().for_each(|(i, _)| *i += first_input);
    let Some(end) = Ending::of(site, 1, Layout::ChannelsLast, &mut reads) else { return Ok(None) };
    if !between.light().is_some_and(Separable::does) {
        return Ok(None);
    }
    let channels = [shape.out_channels, site.outputs[0].shape[1]];
    let kernel = Separable::new(site.cx.isa, site.cx.threads, shape, channels[1]);
    let (depthwise, pointwise) = (kernel.depthwise(), kernel.pointwise());
    let form = format!("{:?}", shape.kernel);
    let first_packed =
        first.packed(&format!("depthwise|{form}x{:?}", shape.groups), &[spread], depthwise.packed_floats(), |to| {
            packing(spread, |data| depthwise.pack(data, to))
        })?;
    let second_packed = site.packed("separable", &[mixed], pointwise.packed_floats(), |to| {
        packing(mixed, |data| pointwise.pack(site.cx.packers.exec().as_ref(), data, true, to))
    })?;
    let step = SeparableStep { weights: [first_packed, second_packed], channels, between, end, kernel };
    Ok(Some(Built::step(step, reads, Layout::ChannelsLast)))
}

fn packing(tensor: &Tensor, pack: impl FnOnce(&[f32])) -> Result<()> {
    pack(&floats_of(tensor)?);
    tensor.release();
    Ok(())
}
