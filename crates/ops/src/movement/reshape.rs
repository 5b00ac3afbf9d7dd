//! Reshape: the same elements under another shape. The pattern may be known in part: an entry that came from the data's
//! own shape cancels against it, so `[batch, -1]` keeps the batch symbol and still finds the rest.

use super::axes::{of_rank, reshaped_rows};
use carafe_graph::{Error, EvalCx, InferCx, Op, Result, RowsCx};
use carafe_tensor::{Dim, PartialShape};

/// Gives the data a new shape; one entry may be -1 and takes what is left.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, shape", moves = "0", shape_inputs = "1")]
pub struct Reshape {
    /// A 0 in the pattern copies the dimension at the same position of the data; otherwise it is a dimension of 0.
    pub special_zero: bool,
}

impl Op for Reshape {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_integer(1)?;
        cx.require_rank(1, &[1])?;
        let shape = match cx.dims_value(1) {
            Some(pattern) => resolve(cx.shape(0), &pattern, self.special_zero)?,
            None => of_rank(cx.dim(1, 0)),
        };
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out = cx.input(0).reshaped(&cx.out_shape(0)?)?;
        cx.set(0, out)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        reshaped_rows(cx)
    }
}

fn resolve(data: &PartialShape, pattern: &[Dim], special_zero: bool) -> Result<PartialShape> {
    let mut out = Vec::with_capacity(pattern.len());
    let mut rest = None;
    // Input dimensions not yet accounted for by an equal output dimension.
    let mut left: Vec<Option<Dim>> = data.dims().unwrap_or_default().iter().map(|&d| Some(d)).collect();
    // Output dimensions that have no equal input dimension.
    let mut unmatched = Vec::new();
    for (i, &entry) in pattern.iter().enumerate() {
        match entry.get() {
            Some(-1) if rest.is_some() => return Err(Error::invalid("the pattern holds more than one -1")),
            Some(-1) => {
                rest = Some(i);
                out.push(Dim::ANY);
                continue;
            }
            Some(0) if special_zero => {
                if data.rank().is_some_and(|r| i >= r) {
                    return Err(Error::invalid(format!(
                        "0 at place {i} of the pattern copies no dimension of [{data}]"
                    )));
                }
                match left.get_mut(i).and_then(Option::take) {
                    Some(_) => {}
                    None => unmatched.push(i),
                }
                out.push(data.dim(i));
                continue;
            }
            Some(n) if n < -1 => return Err(Error::invalid(format!("the pattern holds {n} at place {i}"))),
            Some(_) => out.push(entry),
            None => out.push(unknown_entry(entry, data, i, special_zero)),
        }
        unmatched.push(i);
    }
    unmatched.retain(|&i| !cancel(&mut left, out[i]));
    if data.rank().is_none() {
        return Ok(PartialShape::new(out));
    }
    let input = Count::of(left.into_iter().flatten());
    let others =
        |skip: Option<usize>| unmatched.iter().filter(|&&i| Some(i) != skip).fold(Dim::known(1), |p, &i| p.mul(out[i]));
    let mismatch = || Error::invalid(format!("data [{data}] cannot take the shape {}", text(pattern)));
    match rest {
        Some(i) => out[i] = input.divide(others(None)).ok_or_else(mismatch)?,
        None => {
            let unknown: Vec<usize> = unmatched.iter().copied().filter(|&i| !out[i].is_known()).collect();
            match unknown[..] {
                [] if input.total().compatible(others(None)) => {}
                [] => return Err(mismatch()),
                // A count of 0 says nothing about a factor.
                [i] if !others(Some(i)).contains(0) => {
                    let found = input.divide(others(Some(i))).ok_or_else(mismatch)?;
                    out[i] = out[i].merge(found).ok_or_else(mismatch)?;
                }
                _ => {}
            }
        }
    }
    Ok(PartialShape::new(out))
}

// An entry known only as an interval: it may turn out to be -1, or a 0 that copies.
fn unknown_entry(entry: Dim, data: &PartialShape, position: usize, special_zero: bool) -> Dim {
    if entry.min() < 0 {
        return Dim::ANY;
    }
    let copied = data.dim(position);
    if !special_zero || !entry.contains(0) || entry.max().is_none() {
        return entry;
    }
    match (entry.max(), copied.max()) {
        (Some(a), Some(b)) if b <= a => entry,
        (Some(_), Some(b)) => Dim::range(0, Some(b)),
        _ => Dim::ANY,
    }
}

// Takes an input dimension that surely equals `out`.
fn cancel(left: &mut [Option<Dim>], out: Dim) -> bool {
    let same = |d: Dim| match (d.get(), out.get()) {
        (Some(a), Some(b)) => a == b && a != 0,
        (None, None) => d.symbol().is_some() && d.symbol() == out.symbol(),
        _ => false,
    };
    match left.iter_mut().find(|d| d.is_some_and(same)) {
        Some(d) => {
            *d = None;
            true
        }
        None => false,
    }
}

// A number of elements, its known part apart from the unknown so that `12 * batch / 12` is `batch`.
struct Count {
    known: Dim,
    unknown: Dim,
}

impl Count {
    fn of(dims: impl Iterator<Item = Dim>) -> Count {
        let (known, unknown): (Vec<Dim>, Vec<Dim>) = dims.partition(|d| d.is_known());
        let product = |dims: Vec<Dim>| dims.into_iter().fold(Dim::known(1), Dim::mul);
        Count { known: product(known), unknown: product(unknown) }
    }

    fn total(&self) -> Dim {
        self.known.mul(self.unknown)
    }

    // The dimension that makes `others * dim` this number; `None` when there is none.
    fn divide(&self, others: Dim) -> Option<Dim> {
        let total = self.total();
        match (total.get(), others.get()) {
            // Nothing to share out: any number fits, 1 is what OpenVINO gives.
            (Some(0), Some(0)) => Some(Dim::known(1)),
            (Some(_), Some(0)) => None,
            (None, Some(0)) => Some(Dim::ANY),
            (Some(n), Some(p)) => (n % p == 0).then(|| Dim::known(n / p)),
            (None, Some(p)) => match self.known.get() {
                Some(k) if k % p == 0 => Some(self.unknown.mul(Dim::known(k / p))),
                _ => Some(Dim::range(total.ceil_div(p).min(), total.floor_div(p).max())),
            },
            // An entry that turns out to be 0 leaves the rest open.
            _ if total.contains(0) => Some(Dim::ANY),
            _ => {
                let low = others.max().filter(|&m| m > 0).map_or(0, |m| total.ceil_div(m).min());
                Some(Dim::range(low.max(0), total.floor_div(others.min().max(1)).max()))
            }
        }
    }
}

fn text(pattern: &[Dim]) -> String {
    let entries: Vec<String> = pattern.iter().map(|d| d.to_string()).collect();
    format!("[{}]", entries.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe_tensor::Symbol;

    fn shape(text: &str) -> PartialShape {
        text.parse().unwrap()
    }

    fn batch() -> Dim {
        Dim::ANY.with_symbol(Symbol(7))
    }

    #[test]
    fn a_symbol_of_the_data_cancels() {
        let data = PartialShape::new([batch(), Dim::known(3), Dim::known(4)]);
        let out = resolve(&data, &[batch(), Dim::known(-1)], true).unwrap();
        assert_eq!(out, PartialShape::new([batch(), Dim::known(12)]));
    }

    #[test]
    fn the_rest_keeps_the_symbol() {
        let data = PartialShape::new([batch(), Dim::known(12)]);
        let out = resolve(&data, &[Dim::known(-1), Dim::known(3), Dim::known(4)], false).unwrap();
        assert_eq!(out.dim(0), batch());
    }

    #[test]
    fn one_unknown_entry_is_found_from_the_count() {
        assert_eq!(resolve(&shape("6,4"), &[Dim::ANY, Dim::known(8)], false).unwrap(), shape("3,8"));
    }

    #[test]
    fn an_entry_that_may_be_minus_one_is_any() {
        let entry = Dim::range(-3, None);
        assert_eq!(resolve(&shape("?,?"), &[entry, Dim::known(8)], false).unwrap(), shape("?,8"));
    }

    #[test]
    fn a_zero_that_may_copy_widens_the_entry() {
        assert_eq!(resolve(&shape("?,10"), &[Dim::known(2), Dim::range(0, Some(5))], true).unwrap(), shape("2,..10"));
    }
}
