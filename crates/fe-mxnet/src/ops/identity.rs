//! Operators that change nothing when a model runs: some act while training only, others only on gradients or devices.

use super::cx::MxCx;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;

pub(super) const RULES: &[StaticRule] = &[
    rule("BlockGrad", 0, |n| same(n, &[])),
    rule("Dropout", 0, dropout),
    rule("IdentityAttachKLSparseReg", 0, |n| {
        n.ignore_inputs(1);
        same(n, &["sparseness_target", "penalty"])
    }),
    rule("LinearRegressionOutput", 0, |n| same(n, &["grad_scale"])),
    rule("MAERegressionOutput", 0, |n| same(n, &["grad_scale"])),
    rule("MakeLoss", 0, |n| same(n, &["grad_scale", "valid_thresh", "normalization"])),
    rule("SVMOutput", 0, |n| same(n, &["margin", "regularization_coefficient", "use_linear"])),
    rule("_CrossDeviceCopy", 0, |n| same(n, &[])),
    rule("_contrib_gradientmultiplier", 0, |n| same(n, &["scalar"])),
    rule("_copy", 0, |n| same(n, &[])),
    rule("_copyto", 0, |n| same(n, &[])),
    rule("_identity_with_attr_like_rhs", 0, |n| {
        n.ignore_inputs(1);
        same(n, &[])
    }),
    rule("_np_copy", 0, |n| same(n, &[])),
    rule("cast_storage", 0, |n| same(n, &["stype"])),
    rule("make_loss", 0, |n| same(n, &[])),
];

fn same(n: &mut NodeCx<'_>, without_effect: &[&str]) -> Result<Outputs> {
    n.ignore(without_effect);
    Ok(n.input(0)?.into())
}

fn dropout(n: &mut NodeCx<'_>) -> Result<Outputs> {
    match n.word("mode", "training").as_str() {
        "training" => same(n, &["p", "axes"]),
        other => Err(n.unknown_word("mode", other, "training; what drops out while a model runs is random")),
    }
}
