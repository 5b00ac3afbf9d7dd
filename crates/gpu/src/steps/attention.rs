//! Scaled dot product attention, with operands in whatever order of axes they lie.

use super::{Built, Site};
use crate::launch::{Arg, Launch, Launches};
use crate::programs::Source;
use carafe_graph::Result;
use carafe_ops::linear::ScaledDotProductAttention;
use carafe_plan::Layout;
use carafe_tensor::{ElementType, strides};

/// The longest heads that the kernel keeps in local memory.
const LONGEST: usize = 256;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(op) = site.op.get::<ScaledDotProductAttention>().filter(|_| !site.group && site.epilogue.is_empty())
    else {
        return Ok(None);
    };
    let Some(sizes) = Sizes::of(site, op) else { return Ok(None) };
    sizes.build(site, op).map(Some)
}

/// A mask: whether it is boolean, and its strides along batch, heads, queries and keys.
type Mask = Option<(bool, [usize; 4])>;

struct Sizes {
    batch: usize,
    heads: usize,
    queries: usize,
    keys: usize,
    head: usize,
    value: usize,
    scale: f32,
    /// Strides of batch, head and row of queries, keys, values and the result.
    strides: [[usize; 3]; 4],
    mask: Mask,
}

// Batch and heads; without heads the batch counts as them.
fn four(shape: &[usize]) -> Option<[usize; 4]> {
    match shape {
        [a, b, c, d] => Some([*a, *b, *c, *d]),
        [b, c, d] => Some([1, *b, *c, *d]),
        _ => None,
    }
}

// Strides of batch, head and row; rows must be whole, and what is repeated stays where it is.
fn three(steps: &[usize], shape: [usize; 4]) -> Option<[usize; 3]> {
    let at = steps.len().checked_sub(3)?;
    let batch = if at == 1 { steps[0] } else { 0 };
    let step = |n: usize, s: usize| if n == 1 { 0 } else { s };
    let whole = shape[3] == 1 || steps[at + 2] == 1;
    whole.then_some([step(shape[0], batch), step(shape[1], steps[at]), steps[at + 1]])
}

impl Sizes {
    fn of(site: &Site<'_>, op: &ScaledDotProductAttention) -> Option<Sizes> {
        let [q, k, v] = site.inputs.get(..3)? else { return None };
        if ![q, k, v].iter().all(|p| p.is_f32() && (3..=4).contains(&p.rank())) || site.inputs.len() > 5 {
            return None;
        }
        let (out, out_steps) = site.result();
        let (qs, ks, vs, os) = (four(&q.shape)?, four(&k.shape)?, four(&v.shape)?, four(&out)?);
        let [batch, heads, queries, _] = os;
        let kv = ks[1];
        let grouped = qs[1] == heads && vs[1] == kv && (kv == heads || kv == 1);
        let broadcast = [qs, ks, vs].iter().all(|s| s[0] == batch || s[0] == 1);
        let there = out.iter().all(|n| *n > 0) && ks[2] > 0 && qs[3] > 0;
        if !grouped || !broadcast || !there || qs[2] != queries || qs[3].max(vs[3]) > LONGEST {
            return None;
        }
        let scale = match site.inputs.get(4) {
            None => 1.0 / (qs[3] as f32).sqrt(),
            Some(port) => *port.floats()?.first().filter(|_| port.len() == 1)?,
        };
        let mask = match site.inputs.get(3).filter(|_| !op.causal) {
            None => None,
            Some(port) => {
                let boolean = port.ty == ElementType::Boolean;
                if !(boolean || port.is_f32()) {
                    return None;
                }
                // A mask of one number, which is 0, stands for none.
                let none = port.floats().is_some_and(|m| m.len() == 1 && m[0] == 0.0) && !boolean;
                let full = [batch, heads, queries, ks[2]];
                if none { None } else { Some((boolean, mask_strides(&port.shape, full, out.len())?)) }
            }
        };
        let strides = [
            three(&site.strides(0), qs)?,
            three(&site.strides(1), ks)?,
            three(&site.strides(2), vs)?,
            three(&out_steps, os)?,
        ];
        Some(Sizes { batch, heads, queries, keys: ks[2], head: qs[3], value: vs[3], scale, strides, mask })
    }

    fn build(&self, site: &Site<'_>, op: &ScaledDotProductAttention) -> Result<Built> {
        let cx = site.cx;
        let padded = self.head.max(self.value).next_multiple_of(16);
        let info = cx.machine.info();
        // As many queries as local memory and a group have room for.
        let bytes = |queries: usize| 4 * (2 * queries * (padded + 4) + queries * (queries + 5));
        let fits = |q: &usize| 4 * q <= info.group_size && bytes(*q) <= info.local_memory;
        let queries = [32, 16, 8, 4].into_iter().find(fits).unwrap_or(4);
        let kind = self.mask.map_or(0, |(boolean, _)| if boolean { 2 } else { 1 });
        let numbers = [
            ("D", self.head),
            ("DV", self.value),
            ("DP", padded),
            ("BQ", queries),
            ("CAUSAL", usize::from(op.causal)),
            ("MASK", kind),
        ];
        let mut macros: Vec<(&str, String)> = numbers.map(|(name, n)| (name, n.to_string())).to_vec();
        macros.push(("MASK_TYPE", if kind == 2 { "uchar" } else { "DATA" }.into()));
        macros.push(("MASK_LOAD", "LOAD".into()));
        let kernel = cx.kernel(&Source("attention.cl"), "attention", &macros)?;
        let mut reads: Vec<_> = (0..3).map(|i| (i, cx.form(&site.inputs[i], Layout::PLAIN))).collect();
        let mut args: Vec<Arg> = (0..3).map(Arg::Read).collect();
        args.push(Arg::Write(0));
        args.extend([self.queries, self.keys, self.heads].map(Arg::from));
        args.push(self.scale.into());
        args.extend(self.strides.map(|s| ints([s[0], s[1], s[2], 0])));
        if let Some((_, steps)) = self.mask {
            args.push(Arg::Read(reads.len()));
            args.push(ints(steps));
            reads.push((3, cx.form(&site.inputs[3], Layout::PLAIN)));
        }
        let items = 4 * queries;
        let global = [self.queries.div_ceil(queries) * items, self.batch * self.heads, 1];
        let launch = Launch { kernel, args, global, local: Some([items, 1, 1]) };
        let output = cx.form(&site.outputs[0], Layout::PLAIN);
        Ok(Launches::new("attention", vec![launch]).built(reads, [output]))
    }
}

// Four numbers as one argument.
fn ints(numbers: [usize; 4]) -> Arg {
    Arg::Value(numbers.iter().flat_map(|&n| (n as i32).to_ne_bytes()).collect())
}

// Strides of a mask along batch, heads, queries and keys; 0 where it repeats.
fn mask_strides(shape: &[usize], full: [usize; 4], rank: usize) -> Option<[usize; 4]> {
    if shape.len() > rank {
        return None;
    }
    let mut result = [0; 4];
    for (i, (&n, step)) in shape.iter().zip(strides(shape)).enumerate() {
        let axis = 4 - shape.len() + i;
        if n != 1 && n != full[axis] {
            return None;
        }
        result[axis] = if n == 1 { 0 } else { step };
    }
    Some(result)
}
