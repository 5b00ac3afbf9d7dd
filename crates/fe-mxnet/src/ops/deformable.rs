//! Convolutions whose windows are bent by offsets.

use super::convolution::{Window, add_bias};
use super::cx::MxCx;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::convolution::DeformableConvolution;
use carafe_ops::convolution::window::PadType;

pub(super) const RULES: &[StaticRule] = &[
    rule("_contrib_DeformableConvolution", 0, |n| deformable(n, false)),
    rule("_contrib_ModulatedDeformableConvolution", 0, |n| deformable(n, true)),
];

fn deformable(n: &mut NodeCx<'_>, has_mask: bool) -> Result<Outputs> {
    n.ignore(&["im2col_step"]);
    let w = Window::of(n)?;
    if let Some(layout) = n.text("layout").filter(|l| l != "NCHW") {
        return Err(n.unknown_word("layout", &layout, "NCHW"));
    }
    let deformable_group = n.int("num_deformable_group", 1)?;
    let (x, offset) = (n.input(0)?, n.input(1)?);
    let mask = if has_mask { Some(n.input(2)?) } else { None };
    let at = if has_mask { 3 } else { 2 };
    let weight = n.input(at)?;
    let op = DeformableConvolution {
        strides: w.strides,
        pads_begin: w.pads.clone(),
        pads_end: w.pads,
        dilations: w.dilations,
        auto_pad: PadType::Explicit,
        group: w.groups,
        deformable_group,
        bilinear_interpolation_pad: has_mask,
    };
    let inputs: Vec<Value> = [x, offset, weight].into_iter().chain(mask).collect();
    let y = n.emit(op, &inputs)?;
    if n.flag("no_bias", false)? {
        n.ignore_inputs(at + 1);
        return Ok(y.into());
    }
    let bias = n.input(at + 1)?;
    Ok(add_bias(n, y, bias, 2)?.into())
}
