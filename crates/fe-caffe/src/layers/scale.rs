//! A factor or an offset for some of the axes. It is stored with the layer, or is a second bottom whose first axis lies upon
//! `axis` of the first one.

use super::cx::LayerCx;
use super::fillers::ignore;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_tensor::Tensor;

pub(crate) const RULES: &[StaticRule] = &[rule("Bias", 0, bias), rule("Scale", 0, scale)];

/// What lies upon the first bottom.
enum Upon {
    Stored { shape: Vec<usize> },
    Bottom(Value),
}

// The first bottom, and what is laid upon it.
fn parts(n: &mut NodeCx<'_>) -> Result<(Value, Upon)> {
    let bottoms = n.bottoms()?;
    let (x, second) = match bottoms[..] {
        [x] => (x, None),
        [x, second] => (x, Some(second)),
        _ => return Err(n.fail(format!("takes one bottom or two, has {}", bottoms.len()))),
    };
    let rank = n.known_rank(x)?;
    let axis = n.axis(n.attr("axis", 1)?, rank)?;
    let num_axes: i64 = n.attr("num_axes", 1)?;
    if let Some(second) = second {
        let own = n.known_rank(second)?;
        let Some(behind) = rank.checked_sub(axis + own) else {
            return Err(n.fail(format!("a second bottom of rank {own} at axis {axis} does not fit one of rank {rank}")));
        };
        let axes: Vec<i64> = (own as i64..(own + behind) as i64).collect();
        let second = if behind == 0 || own == 0 { second } else { n.unsqueeze(second, &axes)? };
        return Ok((x, Upon::Bottom(second)));
    }
    let covered = match num_axes {
        -1 => rank - axis,
        k => match usize::try_from(k) {
            Ok(k) if axis + k <= rank => k,
            _ => return Err(n.fail(format!("`num_axes` {k} from axis {axis} on does not fit a bottom of rank {rank}"))),
        },
    };
    let dims = n.shape(x).dims().unwrap_or(&[]).get(axis..axis + covered).unwrap_or(&[]).to_vec();
    let mut shape: Vec<usize> = match dims.iter().map(|d| d.size()).collect::<Option<_>>() {
        Some(shape) => shape,
        // One axis of unknown size has as many values as are stored.
        None if covered == 1 && n.n_blobs()? > 0 => vec![n.blob_tensor(0)?.len()],
        None => return Err(n.unsupported("the sizes of the axes it covers must be known")),
    };
    shape.extend(vec![1; rank - axis - covered]);
    Ok((x, Upon::Stored { shape }))
}

// A stored blob, or the value that its filler has.
fn stored(n: &mut NodeCx<'_>, index: usize, shape: &[usize], filler: &str, default: f32) -> Result<Value> {
    ignore(n, filler);
    if n.n_blobs()? > 0 {
        return n.blob(index, shape);
    }
    let kind: String = n.attr(&format!("{filler}__type"), "constant".to_string())?;
    let is_given = n.attr_value(&format!("{filler}__type")).is_some() || n.attr_value(&format!("{filler}__value")).is_some();
    if kind != "constant" {
        return n.blob(index, shape);
    }
    let value: f32 = if is_given { n.attr(&format!("{filler}__value"), 0.0)? } else { default };
    let ones = vec![1; shape.len()];
    let name = if index == 0 { "weights" } else { "biases" };
    n.named_constant(name, Tensor::from_slice(&ones, &[value])?)
}

fn scale(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, upon) = parts(n)?;
    let has_bias: bool = n.attr("bias_term", false)?;
    n.ignore(&["engine"]);
    n.takes_blobs(usize::from(matches!(upon, Upon::Stored { .. })) + usize::from(has_bias))?;
    let (factor, bias_shape, bias_blob) = match upon {
        Upon::Bottom(v) => {
            ignore(n, "filler");
            let shape = n.shape(v).to_static().unwrap_or_default();
            (v, shape, 0)
        }
        Upon::Stored { shape } => (stored(n, 0, &shape, "filler", 1.0)?, shape, 1),
    };
    let mut y = n.times(x, factor)?;
    if has_bias {
        if bias_shape.is_empty() && matches!(n.rank(factor), None | Some(1..)) {
            return Err(n.unsupported("an offset beside a second bottom needs a bottom of known shape"));
        }
        let offset = stored(n, bias_blob, &bias_shape, "bias_filler", 0.0)?;
        y = n.plus(y, offset)?;
    } else {
        ignore(n, "bias_filler");
    }
    Ok(y.into())
}

fn bias(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, upon) = parts(n)?;
    n.takes_blobs(usize::from(matches!(upon, Upon::Stored { .. })))?;
    let offset = match upon {
        Upon::Bottom(v) => {
            ignore(n, "filler");
            v
        }
        Upon::Stored { shape } => stored(n, 0, &shape, "filler", 0.0)?,
    };
    Ok(n.plus(x, offset)?.into())
}
