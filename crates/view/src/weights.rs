//! What a constant looks like without showing its numbers.

use carafe::{ElementType, Tensor};

/// Elements that are looked at: more would take longer than a person wants to wait for the page.
const MOST: usize = 1 << 16;
/// Bars of the histogram.
const BARS: usize = 32;

/// A constant in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    /// Name of the node.
    pub name: String,
    /// Input of the node that reads it.
    pub port: usize,
    /// Type and shape.
    pub fact: String,
    /// Elements that the numbers below are of; 0 where there are none to tell.
    pub seen: usize,
    /// Elements altogether.
    pub len: usize,
    /// Least of those that were seen.
    pub min: f64,
    /// Greatest of those that were seen.
    pub max: f64,
    /// How many lie in each of 32 steps from `min` to `max`.
    pub bars: Vec<u32>,
    /// The elements themselves, when there are few.
    pub values: Vec<f64>,
}

impl Weights {
    /// Looks at the first elements of a tensor.
    pub fn of(name: &str, port: usize, tensor: &Tensor) -> Weights {
        let fact = format!("{}{:?}", tensor.element_type(), tensor.shape());
        let mut found = Weights { name: name.into(), port, fact, len: tensor.len(), ..Weights::default() };
        if tensor.element_type() == ElementType::String {
            return found;
        }
        let Ok(values) = tensor.first::<f64>(MOST) else { return found };
        let mut finite = values.iter().copied().filter(|x| x.is_finite());
        let Some(first) = finite.next() else { return found };
        let (min, max) = finite.fold((first, first), |(a, b), x| (a.min(x), b.max(x)));
        found.seen = values.len();
        (found.min, found.max) = (min, max);
        if values.len() <= 8 {
            found.values = values;
        } else if max > min {
            found.bars = vec![0; BARS];
            for x in values.into_iter().filter(|x| x.is_finite()) {
                let at = ((x - min) / (max - min) * BARS as f64) as usize;
                found.bars[at.min(BARS - 1)] += 1;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_every_finite_element() {
        let values: Vec<f64> = (0..100).map(f64::from).chain([f64::NAN, f64::INFINITY]).collect();
        let w = Weights::of("w", 1, &Tensor::from_f64(ElementType::F32, &[102], &values).unwrap());
        assert_eq!((w.min, w.max, w.bars.iter().sum::<u32>()), (0.0, 99.0, 100));
        assert_eq!(w.fact, "f32[102]");
    }

    #[test]
    fn few_elements_are_told_themselves() {
        let w = Weights::of("w", 0, &Tensor::from_f64(ElementType::I64, &[2], &[3.0, -1.0]).unwrap());
        assert_eq!((w.values, w.bars.len()), (vec![3.0, -1.0], 0));
    }
}
