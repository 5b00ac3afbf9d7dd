//! How far the quantized model is from the float one: at its outputs, and at the output of every layer.

use crate::observe::{Probe, Runner, parts};
use crate::options::Metric;
use crate::report::OutputReport;
use carafe_device::Port;
use carafe_graph::{Error, Model, Result, Value};
use carafe_tensor::Tensor;

/// Outputs of the float model for some samples.
pub(crate) struct Reference {
    ports: Vec<Port>,
    /// By sample, then by output.
    outputs: Vec<Vec<Tensor>>,
}

/// Length of the difference over the length of the first.
fn relative(float: &Tensor, other: &Tensor) -> Result<f64> {
    if float.shape() != other.shape() {
        let (a, b) = (float.shape(), other.shape());
        return Err(Error::invalid(format!("the quantized model gives shape {b:?} where the float one gives {a:?}")));
    }
    let (a, b) = (float.to_vec::<f32>()?, other.to_vec::<f32>()?);
    let (mut difference, mut length) = (0f64, 0f64);
    for (a, b) in a.iter().zip(b.iter()) {
        // Equal infinities differ by nothing.
        if a.to_bits() == b.to_bits() {
            length += if a.is_finite() { f64::from(*a).powi(2) } else { 0.0 };
            continue;
        }
        difference += (f64::from(*a) - f64::from(*b)).powi(2);
        length += f64::from(*a).powi(2);
    }
    Ok(match (difference, length) {
        (0.0, _) => 0.0,
        (d, l) if d.is_finite() && l > 0.0 => (d / l).sqrt(),
        _ => 1.0,
    })
}

fn greatest(row: &[f32]) -> usize {
    row.iter().enumerate().fold((0, f32::NEG_INFINITY), |best, (i, x)| if *x > best.1 { (i, *x) } else { best }).0
}

// How many rows there are and in how many another element is the greatest; `None` for what does not look like scores.
fn changed(float: &Tensor, other: &Tensor) -> Result<Option<(usize, usize)>> {
    let &[.., width] = float.shape() else { return Ok(None) };
    if !(2..=3).contains(&float.rank()) || width < 2 {
        return Ok(None);
    }
    let (a, b) = (float.to_vec::<f32>()?, other.to_vec::<f32>()?);
    let rows = a.chunks_exact(width).zip(b.chunks_exact(width));
    let other = rows.filter(|(a, b)| greatest(a) != greatest(b)).count();
    Ok(Some((a.len() / width, other)))
}

impl Reference {
    /// Runs the float model over the first samples.
    pub(crate) fn new(runner: &Runner<'_>, model: &Model, samples: usize) -> Result<Reference> {
        let outputs = run(runner, model, samples, "samples in float")?;
        Ok(Reference { ports: Port::outputs_of(model), outputs })
    }

    pub(crate) fn samples(&self) -> usize {
        self.outputs.len()
    }

    /// A part of it, for quick looks.
    pub(crate) fn first(&self, n: usize) -> Reference {
        let n = n.min(self.samples());
        Reference { ports: self.ports.clone(), outputs: self.outputs[..n].to_vec() }
    }

    /// How far another model is from it.
    pub(crate) fn compare(&self, runner: &Runner<'_>, model: &Model, what: &str) -> Result<Vec<OutputReport>> {
        let others = run(runner, model, self.samples(), what)?;
        let mut reports = Vec::new();
        for (at, port) in self.ports.iter().enumerate().filter(|(_, p)| p.ty.is_float()) {
            let (mut error, mut rows, mut moved, mut scores) = (0.0, 0, 0, true);
            for (float, other) in self.outputs.iter().zip(&others) {
                error += relative(&float[at], &other[at]).map_err(|e| e.at(format!("output `{}`", port.name)))?;
                match changed(&float[at], &other[at])? {
                    Some((n, m)) => (rows, moved) = (rows + n, moved + m),
                    None => scores = false,
                }
            }
            let error = error / self.samples().max(1) as f64;
            let top1_changed = (scores && rows > 0).then(|| moved as f64 / rows as f64);
            reports.push(OutputReport { name: port.name.clone(), error, top1_changed });
        }
        Ok(reports)
    }
}

/// The figure of all outputs together: that of the worst.
pub(crate) fn drop_of(reports: &[OutputReport], metric: Metric) -> Result<f64> {
    let worst = |figures: Vec<f64>| figures.into_iter().reduce(f64::max);
    let drop = match metric {
        Metric::Error => worst(reports.iter().map(|r| r.error).collect()),
        Metric::Top1 => worst(reports.iter().filter_map(|r| r.top1_changed).collect()),
    };
    drop.ok_or_else(|| {
        Error::usage(match metric {
            Metric::Error => "the model has no float output to compare",
            Metric::Top1 => "the model has no output of scores for metric top1; use metric error",
        })
    })
}

fn run(runner: &Runner<'_>, model: &Model, samples: usize, what: &str) -> Result<Vec<Vec<Tensor>>> {
    let request = runner.compile(model)?.create_infer_request();
    let mut outputs = Vec::new();
    for s in 0..samples {
        runner.progress.tell(s, samples, what);
        if model.is_stateful() {
            request.reset_state()?;
        }
        outputs.push(request.infer(runner.samples.sample(s)?)?.into_vec());
    }
    Ok(outputs)
}

/// The difference at each of these values, which both models have; over the first samples.
pub(crate) fn inside(
    runner: &Runner<'_>,
    float: &Model,
    quantized: &Model,
    values: &[Value],
    samples: usize,
) -> Result<Vec<f64>> {
    let mut errors = vec![0.0; values.len()];
    let parts = parts(float, values);
    let (mut done, total) = (0, parts.len() * samples);
    for part in parts {
        let of = |model: &Model| Probe::new(runner, model, part.iter().map(|&i| values[i]).collect());
        let (float, quantized) = (of(float)?, of(quantized)?);
        for s in 0..samples {
            runner.progress.tell(done, total, "samples, layer by layer");
            let inputs = runner.samples.sample(s)?;
            let (a, b) = (float.run(&inputs)?, quantized.run(&inputs)?);
            for (at, &i) in part.iter().enumerate() {
                errors[i] += relative(&a[at], &b[at])? / samples as f64;
            }
            done += 1;
        }
    }
    Ok(errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(values: &[f32]) -> Tensor {
        Tensor::from_slice(&[1, values.len()], values).unwrap()
    }

    #[test]
    fn the_error_is_relative_and_infinities_may_agree() {
        assert_eq!(relative(&tensor(&[3.0, 4.0]), &tensor(&[3.0, 4.0])).unwrap(), 0.0);
        assert!((relative(&tensor(&[3.0, 4.0]), &tensor(&[3.0, 4.5])).unwrap() - 0.1).abs() < 1e-9);
        let inf = f32::NEG_INFINITY;
        assert_eq!(relative(&tensor(&[inf, 1.0]), &tensor(&[inf, 1.0])).unwrap(), 0.0);
        assert_eq!(relative(&tensor(&[inf, 1.0]), &tensor(&[0.0, 1.0])).unwrap(), 1.0);
        assert_eq!(relative(&tensor(&[1.0, 1.0]), &tensor(&[f32::NAN, 1.0])).unwrap(), 1.0);
    }

    #[test]
    fn rows_whose_greatest_element_moves_are_counted() {
        assert_eq!(changed(&tensor(&[1.0, 2.0]), &tensor(&[3.0, 2.0])).unwrap(), Some((1, 1)));
        assert_eq!(changed(&tensor(&[1.0, 2.0]), &tensor(&[1.0, 1.5])).unwrap(), Some((1, 0)));
        assert_eq!(changed(&tensor(&[1.0]), &tensor(&[1.0])).unwrap(), None);
    }
}
