//! Several bottoms into one, element by element. Coefficients belong to sums alone.

use super::cx::LayerCx;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;

pub(crate) const RULES: &[StaticRule] = &[rule("Axpy", 0, axpy), rule("Eltwise", 0, eltwise)];

fn eltwise(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let bottoms = n.bottoms()?;
    let operation: String = n.attr("operation", "SUM".to_string())?;
    let coefficients: Vec<f64> = n.attr("coeff", vec![])?;
    n.ignore(&["stable_prod_grad"]);
    if !coefficients.is_empty() && (operation != "SUM" || coefficients.len() != bottoms.len()) {
        let (given, bottoms) = (coefficients.len(), bottoms.len());
        return Err(n.fail(format!(
            "`coeff` has {given} values for {operation} of {bottoms} bottoms; a sum takes one for each bottom"
        )));
    }
    let Some((&first, rest)) = bottoms.split_first() else { return Err(n.fail("has no bottom")) };
    let factor = |i: usize| coefficients.get(i).copied().unwrap_or(1.0);
    let mut y = n.times_number(first, factor(0))?;
    for (i, &x) in rest.iter().enumerate() {
        y = match operation.as_str() {
            "SUM" => {
                let x = n.times_number(x, factor(i + 1))?;
                n.plus(y, x)?
            }
            "PROD" => n.times(y, x)?,
            "MAX" => n.larger(y, x)?,
            other => return Err(n.fail(format!("`operation` must be PROD, SUM or MAX, found `{other}`"))),
        };
    }
    Ok(y.into())
}

// A factor for each channel of each image, times an image, plus an image.
fn axpy(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let [a, x, y] = n.bottoms_of()?;
    let a = match (n.rank(a), n.rank(x)) {
        (Some(small), Some(large)) if small < large => {
            let axes: Vec<i64> = (small as i64..large as i64).collect();
            n.unsqueeze(a, &axes)?
        }
        _ => a,
    };
    let scaled = n.times(x, a)?;
    Ok(n.plus(scaled, y)?.into())
}
