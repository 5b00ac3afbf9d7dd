//! Reshape. The numbers of `shape` are read from left to right while a cursor goes over the dimensions of the data: besides sizes
//! there are codes that copy, join and split dimensions. Sizes that codes take from the data are taken when the model runs.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};

pub(super) const RULES: &[StaticRule] = &[
    rule("Flatten", 0, |n| {
        let x = n.input(0)?;
        Ok(n.reshape(x, &[0, -1])?.into())
    }),
    rule("Reshape", 0, reshape),
    rule("_np_reshape", 0, |n| {
        check_order(n)?;
        let shape = n.ints_of("newshape")?;
        plain(n, &shape)
    }),
    rule("_npx_reshape", 0, numpy_reshape),
    rule("reshape_like", 0, reshape_like),
];

/// One dimension of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Size {
    Is(i64),
    /// What is left, once.
    Rest,
    Of(usize),
    /// From a dimension to the last.
    From(usize),
    Product(usize, usize),
    /// A part of a dimension, of which the other part is known.
    Quotient(usize, i64),
}

fn reshape(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let shape = n.ints_of("shape")?;
    let reverse = n.flag("reverse", false)?;
    let (old, keeps) = (n.ints_of("target_shape")?, n.flag("keep_highest", false)?);
    if shape.is_empty() {
        // The old form: 0 is what is left.
        let mut pattern: Vec<i64> = old.iter().map(|d| if *d == 0 { -1 } else { *d }).collect();
        if keeps && !pattern.is_empty() {
            pattern[0] = 0;
        }
        let x = n.input(0)?;
        return Ok(n.reshape(x, &pattern)?.into());
    }
    coded(n, &shape, reverse, &Codes { copy: 0, rest: -1, all: -2, product: -3, split: -4, skip: None })
}

fn numpy_reshape(n: &mut NodeCx<'_>) -> Result<Outputs> {
    check_order(n)?;
    let shape = n.ints_of("newshape")?;
    let reverse = n.flag("reverse", false)?;
    coded(n, &shape, reverse, &Codes { copy: -2, rest: -1, all: -4, product: -5, split: -6, skip: Some(-3) })
}

fn check_order(n: &NodeCx<'_>) -> Result<()> {
    match n.word("order", "C").as_str() {
        "C" => Ok(()),
        other => Err(n.unknown_word("order", other, "C")),
    }
}

fn plain(n: &mut NodeCx<'_>, shape: &[i64]) -> Result<Outputs> {
    let x = n.input(0)?;
    let shape = n.i64s(shape)?;
    Ok(n.reshaped(x, shape, false)?.into())
}

struct Codes {
    copy: i64,
    rest: i64,
    all: i64,
    product: i64,
    split: i64,
    skip: Option<i64>,
}

fn coded(n: &mut NodeCx<'_>, shape: &[i64], reverse: bool, codes: &Codes) -> Result<Outputs> {
    let x = n.input(0)?;
    let mut sizes = scanned(n, shape, reverse, codes)?;
    if reverse {
        let rank = n.known_rank(x)?;
        sizes = reversed(n, &sizes, rank)?;
    }
    // A pattern of the IR says the same where sizes are copied to where they are.
    let pattern: Option<Vec<i64>> = sizes
        .iter()
        .enumerate()
        .map(|(i, size)| match size {
            Size::Is(d) if *d > 0 => Some(*d),
            Size::Rest => Some(-1),
            Size::Of(at) if *at == i => Some(0),
            _ => None,
        })
        .collect();
    if let Some(pattern) = pattern {
        return Ok(n.reshape(x, &pattern)?.into());
    }
    let shape = computed(n, x, &sizes)?;
    Ok(n.reshaped(x, shape, false)?.into())
}

fn scanned(n: &NodeCx<'_>, shape: &[i64], reverse: bool, codes: &Codes) -> Result<Vec<Size>> {
    let mut sizes = vec![];
    let mut at = 0;
    let all: Vec<i64> = if reverse { shape.iter().rev().copied().collect() } else { shape.to_vec() };
    let mut rest = all.iter();
    while let Some(&code) = rest.next() {
        if code == codes.copy {
            sizes.push(Size::Of(at));
            at += 1;
        } else if code == codes.rest {
            sizes.push(Size::Rest);
            at += 1;
        } else if code == codes.all {
            sizes.push(Size::From(at));
            at = usize::MAX / 2;
        } else if code == codes.product {
            sizes.push(Size::Product(at, at + 1));
            at += 2;
        } else if Some(code) == codes.skip {
            at += 1;
        } else if code == codes.split {
            let (Some(&a), Some(&b)) = (rest.next(), rest.next()) else {
                return Err(n.fail(format!("{code} in `shape` splits a dimension; the two parts must follow")));
            };
            if reverse {
                return Err(n.unsupported(format!("{code} in `shape` together with `reverse`")));
            }
            match (a, b) {
                (-1, b) if b > 0 => sizes.extend([Size::Quotient(at, b), Size::Is(b)]),
                (a, -1) if a > 0 => sizes.extend([Size::Is(a), Size::Quotient(at, a)]),
                (a, b) if a > 0 && b > 0 => sizes.extend([Size::Is(a), Size::Is(b)]),
                _ => return Err(n.fail(format!("{code} in `shape` cannot split a dimension into {a} and {b}"))),
            }
            at += 1;
        } else if code >= 0 {
            sizes.push(Size::Is(code));
            at += 1;
        } else {
            return Err(n.fail(format!("{code} in `shape` means nothing")));
        }
    }
    Ok(sizes)
}

// Codes were read from the right, over dimensions from the right.
fn reversed(n: &NodeCx<'_>, sizes: &[Size], rank: usize) -> Result<Vec<Size>> {
    let at = |i: usize| rank.checked_sub(i + 1).ok_or_else(|| n.fail("`shape` reads more dimensions than there are"));
    let mut all = vec![];
    for size in sizes.iter().rev() {
        match *size {
            Size::Of(i) => all.push(Size::Of(at(i)?)),
            Size::Product(i, j) => all.push(Size::Product(at(j)?, at(i)?)),
            Size::From(i) => all.extend((0..rank.saturating_sub(i)).map(Size::Of)),
            other => all.push(other),
        }
    }
    Ok(all)
}

fn computed(n: &mut NodeCx<'_>, x: Value, sizes: &[Size]) -> Result<Value> {
    let mut parts = vec![];
    for size in sizes {
        parts.push(match *size {
            Size::Is(d) => n.i64s(&[d])?,
            Size::Rest => n.i64s(&[-1])?,
            Size::Of(i) => n.dims_at(x, &[i as i64])?,
            Size::Product(i, j) => n.product_of_dims(x, &[i as i64, j as i64])?,
            Size::From(i) => {
                let shape = n.shape_of(x)?;
                n.part(shape, i as i64, i64::MAX, 0)?
            }
            Size::Quotient(i, by) => {
                let dim = n.dims_at(x, &[i as i64])?;
                let by = n.i64s(&[by])?;
                n.over(dim, by)?
            }
        });
    }
    if parts.is_empty() { n.i64s(&[]) } else { n.concat(&parts, 0) }
}

// Some axes of one in place of some axes of the other; all of both by default.
fn reshape_like(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, like) = (n.input(0)?, n.input(1)?);
    let bounds = [
        n.opt_int("lhs_begin")?,
        n.opt_int("lhs_end")?,
        n.opt_int("rhs_begin")?,
        n.opt_int("rhs_end")?,
    ];
    let shape = n.shape_of(like)?;
    if bounds.iter().all(Option::is_none) {
        return Ok(n.reshaped(x, shape, false)?.into());
    }
    let (rank, like_rank) = (n.known_rank(x)? as i64, n.known_rank(like)? as i64);
    let from_end = |b: Option<i64>, default: i64, rank: i64| b.map_or(default, |b| if b < 0 { b + rank } else { b });
    let own = n.shape_of(x)?;
    let front = n.part(own, 0, from_end(bounds[0], 0, rank), 0)?;
    let middle = n.part(shape, from_end(bounds[2], 0, like_rank), from_end(bounds[3], like_rank, like_rank), 0)?;
    let back = n.part(own, from_end(bounds[1], rank, rank), i64::MAX, 0)?;
    let shape = n.concat(&[front, middle, back], 0)?;
    Ok(n.reshaped(x, shape, false)?.into())
}
