//! Transposed convolutions of integers whose windows touch without an overlap. Data lies on a grid, weights are integers; what the
//! zero point of the data adds to a sum differs from tap to tap of the kernel, so that each has a bias of its own.

use super::leave::Leave;
use super::spatial::deconv_shape;
use super::{Built, Cpu, Io, Site, Step};
use crate::weights::Packed;
use carafe_graph::Result;
use carafe_kernels::{DeconvCells, LONGEST_INTEGER_SUM, Numbers};
use carafe_plan::{Form, Grid, Integers, Layout};
use carafe_tensor::ElementType;

#[derive(Debug)]
struct IntegerDeconv {
    conv: DeconvCells,
    weights: Packed,
    leave: Leave,
}

pub(super) fn build(site: &Site<'_>, grid: Grid, weights: &Integers) -> Result<Option<Built>> {
    let fits = |s: &_| DeconvCells::fits(s, Numbers::U8I8);
    let Some(shape) = deconv_shape(site).filter(fits) else { return Ok(None) };
    let (ins, outs) = (shape.in_channels, shape.out_channels);
    let scales = weights.scale.to_vec::<f32>()?;
    // Weights are `[in, out, ...]`.
    let scaled = scales.len() == 1 || (scales.len() == outs && weights.scale.shape().get(1) == Some(&outs));
    if ins > LONGEST_INTEGER_SUM || !scaled {
        return Ok(None);
    }
    let scale = (0..outs).map(|j| grid.scale * scales[if scales.len() == 1 { 0 } else { j }]).collect();
    let mut reads = vec![(0, Form::typed(Layout::CHANNELS_LAST, ElementType::U8))];
    let Some(mut leave) = Leave::of(site, 1, Layout::CHANNELS_LAST, scale, vec![0.0; outs], &mut reads) else {
        return Ok(None);
    };
    if leave.add.is_some() || leave.rest.is_some() {
        return Ok(None);
    }
    let taps: usize = shape.kernel.iter().product();
    let data = weights.data.to_vec::<i8>()?;
    let mut sums = vec![0i64; outs * taps];
    for (i, w) in data.iter().enumerate() {
        sums[i % (outs * taps)] += i64::from(*w);
    }
    leave.spread(taps, |tap, j| (-f64::from(grid.zero) * sums[j * taps + tap] as f64) as f32);
    let conv = DeconvCells::new(site.cx.isa, shape, Numbers::U8I8);
    let form = format!("deconv_i8|{:?}", shape.kernel);
    let packed = site.cx.packed(&form, &[&weights.data], conv.packed_floats(), |to: &mut [f32]| {
        conv.pack_i8(&data, to);
        Ok(())
    })?;
    let output = leave.form(Layout::CHANNELS_LAST);
    let step = IntegerDeconv { conv, weights: packed, leave };
    Ok(Some(Built::step(step, reads, output).with_precision(ElementType::I8)))
}

impl Step<Cpu> for IntegerDeconv {
    fn kernel(&self) -> String {
        format!("deconv{}", self.leave.name())
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        self.leave.with(io, self.conv.columns(), |io, epilogue, out| {
            let cells = bytemuck::cast_slice(io.inputs[0]);
            self.conv.run(io.exec, cells, self.weights.as_slice(), out, epilogue);
        });
        Ok(())
    }
}
