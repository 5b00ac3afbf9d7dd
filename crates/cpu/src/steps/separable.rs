//! A depthwise convolution and the pointwise one behind it as one step, see `plan/src/lower/separable.rs`.

use super::conv::{attrs_of, shape_of};
use super::epilogue::StepEpilogue;
use super::{Built, Cpu, Io, Site, Step, floats};
use crate::weights::{Packed, floats_of};
use carafe_graph::Result;
use carafe_kernels::{Depthwise, Separable};
use carafe_ops::convolution::GroupConvolution;
use carafe_plan::Layout;
use carafe_tensor::Tensor;

#[derive(Debug)]
struct SeparableStep {
    kernel: Separable,
    weights: [Packed; 2],
    /// Channels between the two and behind them.
    channels: [usize; 2],
    between: StepEpilogue,
    epilogue: StepEpilogue,
}

impl Step<Cpu> for SeparableStep {
    fn kernel(&self) -> String {
        format!("conv_depthwise{}+conv_gemm{}", self.between.name(), self.epilogue.name())
    }
    fn scratch_bytes(&self) -> usize {
        floats(self.kernel.scratch_floats())
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output(0);
        let weights = [self.weights[0].as_slice(), self.weights[1].as_slice()];
        self.between.with(&io, self.channels[0], |between| {
            self.epilogue.with(&io, self.channels[1], |epilogue| {
                self.kernel.run(io.exec, io.input(0), weights, between, out, epilogue);
            });
        });
        Ok(())
    }
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(before) = site.before else { return Ok(None) };
    let first_input = before.first_input;
    let Some(op) = before.op().get::<GroupConvolution>() else { return Ok(None) };
    // The first of the two as a site of its own.
    let first = Site {
        op: before.op(),
        inputs: site.inputs[first_input..].to_vec(),
        own_inputs: before.own_inputs(),
        outputs: vec![site.inputs[0].clone()],
        wanted: vec![true],
        epilogue: before.epilogue(),
        orders: &[],
        out_order: None,
        group: false,
        before: None,
        precision: site.precision,
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
    let mut reads = vec![(first_input, Layout::CHANNELS_LAST)];
    let Some(between) = StepEpilogue::of(&first, 1, Layout::CHANNELS_LAST, &mut reads) else { return Ok(None) };
    reads[1..].iter_mut().for_each(|(i, _)| *i += first_input);
    let Some(epilogue) = StepEpilogue::of(site, 1, Layout::CHANNELS_LAST, &mut reads) else { return Ok(None) };
    if !between.light().is_some_and(Separable::does) {
        return Ok(None);
    }
    let channels = [shape.out_channels, site.outputs[0].shape[1]];
    let kernel = Separable::new(site.cx.isa, site.cx.threads, shape, channels[1]);
    let (depthwise, pointwise) = (kernel.depthwise(), kernel.pointwise());
    let form = format!("{:?}", shape.kernel);
    let first_packed = first.cx.packed(
        &format!("depthwise|{form}x{:?}", shape.groups),
        &[spread],
        depthwise.packed_floats(),
        |to| packing(spread, |data| depthwise.pack(data, to)),
    )?;
    let second_packed = site.cx.packed("separable", &[mixed], pointwise.packed_floats(), |to| {
        packing(mixed, |data| pointwise.pack(site.cx.packers.exec().as_ref(), data, true, to))
    })?;
    let step = SeparableStep { weights: [first_packed, second_packed], channels, between, epilogue, kernel };
    Ok(Some(Built::step(step, reads, Layout::CHANNELS_LAST)))
}

fn packing(tensor: &Tensor, pack: impl FnOnce(&[f32])) -> Result<()> {
    pack(&floats_of(tensor)?);
    tensor.release();
    Ok(())
}
