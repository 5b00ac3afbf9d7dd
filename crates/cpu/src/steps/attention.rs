//! Scaled dot product attention, with operands in whatever order of axes they lie, in f32 or in a type of 16 bits.

use super::{Built, Cpu, Io, Site, Step, floats, half};
use carafe_graph::Result;
use carafe_kernels::{Attention, AttentionInputs, AttentionParams, Halves, Mask};
use carafe_ops::linear::ScaledDotProductAttention;
use carafe_plan::{Form, Layout};
use carafe_tensor::ElementType;

#[derive(Debug)]
struct AttentionStep {
    kernel: Attention,
    /// Place of the mask among the reads, and whether it is boolean.
    mask: Option<(usize, bool)>,
    /// The type of queries, keys, values and result; f32 where there is none.
    halves: Option<Halves>,
}

impl Step<Cpu> for AttentionStep {
    fn kernel(&self) -> String {
        "attention".into()
    }
    fn scratch_bytes(&self) -> usize {
        floats(self.kernel.scratch_floats())
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output::<u8>(0);
        let mask = match self.mask {
            None => Mask::None,
            Some((i, true)) => Mask::Keep(io.inputs[i]),
            Some((i, false)) => Mask::Add(io.input(i)),
        };
        if let Some(halves) = self.halves {
            let inputs = AttentionInputs { q: io.input(0), k: io.input(1), v: io.input(2), mask, sink: None };
            self.kernel.run_halves(io.exec, halves, &inputs, bytemuck::cast_slice_mut(out));
        } else {
            let inputs = AttentionInputs { q: io.input(0), k: io.input(1), v: io.input(2), mask, sink: None };
            self.kernel.run(io.exec, &inputs, bytemuck::cast_slice_mut(out));
        }
        Ok(())
    }
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(op) = site.op.get::<ScaledDotProductAttention>().filter(|_| !site.group && site.epilogue.is_empty())
    else {
        return Ok(None);
    };
    Ok(attention(site, op))
}

fn attention(site: &Site<'_>, op: &ScaledDotProductAttention) -> Option<Built> {
    let [q, k, v] = &site.inputs[..3] else { return None };
    if ![q, k, v].iter().all(|p| p.is_f32() && (3..=4).contains(&p.rank())) {
        return None;
    }
    let (out, out_steps) = site.result();
    let rank = out.len();
    // Batch and heads; without heads the batch counts as them.
    let four = |s: &[usize]| -> Option<[usize; 4]> {
        match s {
            [a, b, c, d] => Some([*a, *b, *c, *d]),
            [b, c, d] => Some([1, *b, *c, *d]),
            _ => None,
        }
    };
    let (qs, ks, vs, os) = (four(&q.shape)?, four(&k.shape)?, four(&v.shape)?, four(&out)?);
    let three = |steps: Vec<usize>, shape: [usize; 4]| -> Option<[usize; 3]> {
        let at = steps.len().checked_sub(3)?;
        // Rows must be whole, and what is repeated stays where it is.
        let last = shape[3] == 1 || steps[at + 2] == 1;
        let batch = if at == 1 { steps[0] } else { 0 };
        let step = |n: usize, s: usize| if n == 1 { 0 } else { s };
        last.then_some([step(shape[0], batch), step(shape[1], steps[at]), steps[at + 1]])
    };
    let batch = os[0];
    let broadcasts = |s: [usize; 4]| s[0] == batch || s[0] == 1;
    let heads = os[1];
    let kv_heads = ks[1];
    let grouped = qs[1] == heads && vs[1] == kv_heads && kv_heads > 0 && (kv_heads == heads || kv_heads == 1);
    if !grouped || ![qs, ks, vs].into_iter().all(broadcasts) || qs[2] != os[2] {
        return None;
    }
    let scale = match site.inputs.get(4) {
        None => 1.0 / (qs[3] as f32).sqrt(),
        Some(port) => *port.floats()?.first().filter(|_| port.len() == 1)?,
    };
    let halves = half::computed_in(site);
    let form = Form { layout: Layout::PLAIN, ty: halves.map(half::type_of) };
    let mut reads: Vec<(usize, Form)> = vec![(0, form), (1, form), (2, form)];
    let (mut mask, mut mask_steps) = (None, [0; 4]);
    if let (Some(port), false) = (site.inputs.get(3), op.causal) {
        let boolean = port.ty == ElementType::Boolean;
        if !(boolean || port.is_f32()) {
            return None;
        }
        // A mask of one number, which is 0, stands for none.
        let none = port.floats().is_some_and(|m| m.len() == 1 && m[0] == 0.0) && !boolean;
        if !none {
            mask_steps = mask_strides(&port.shape, [batch, heads, os[2], ks[2]], rank)?;
            mask = Some((reads.len(), boolean));
            reads.push((3, Layout::PLAIN.into()));
        }
    }
    if site.inputs.len() > 5 {
        return None;
    }
    let kernel = Attention::new(AttentionParams {
        batch,
        heads,
        kv_heads,
        q_len: qs[2],
        kv_len: ks[2],
        head_size: qs[3],
        value_size: vs[3],
        scale,
        causal: op.causal.then_some(0),
        q: three(site.strides(0), qs)?,
        k: three(site.strides(1), ks)?,
        v: three(site.strides(2), vs)?,
        out: three(out_steps, os)?,
        mask: mask_steps,
        sink: [0; 3],
    });
    Some(Built::step(AttentionStep { kernel, mask, halves }, reads, form))
}

// Steps of a mask along batch, heads, queries and keys; 0 where it repeats.
fn mask_strides(shape: &[usize], full: [usize; 4], rank: usize) -> Option<[usize; 4]> {
    if shape.len() > rank {
        return None;
    }
    let steps = carafe_tensor::strides(shape);
    let mut result = [0; 4];
    for (i, (&n, &step)) in shape.iter().zip(&steps).enumerate() {
        let axis = 4 - shape.len() + i;
        if n != 1 && n != full[axis] {
            return None;
        }
        result[axis] = if n == 1 { 0 } else { step };
    }
    Some(result)
}
