//! Reductions along axes.

use super::indexing::limits;
use super::{Built, Port, Site, types};
use crate::launch::{Arg, Launch, Launches};
use crate::programs::Source;
use carafe_graph::{Op, Result, normalize_axis};
use carafe_ops::reduce;
use carafe_plan::Layout;
use carafe_tensor::ElementType;

const SOURCE: Source = Source("reduce.cl");

/// Elements of one result from which a group is worth it.
const MANY: usize = 128;
/// So few results do not fill a device with an item each.
const FEW: usize = 2048;

/// A function over elements, as OpenCL C.
struct Fold {
    name: &'static str,
    first: String,
    step: &'static str,
    joined: &'static str,
    finish: &'static str,
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() || site.inputs.len() != 2 {
        return Ok(None);
    }
    let (from, out, cx) = (&site.inputs[0], &site.outputs[0], site.cx);
    let Some(fold) = fold(site.op, from.ty) else { return Ok(None) };
    let Some(axes) = site.inputs[1].ints() else { return Ok(None) };
    if from.ty == ElementType::F64 && !cx.has_double() {
        return Ok(None);
    }
    let mut gone = vec![false; from.rank()];
    for axis in axes {
        match normalize_axis(axis, from.rank()) {
            Ok(axis) => gone[axis] = true,
            Err(_) => return Ok(None),
        }
    }
    // Where axes go the others have another order.
    let layout = if from.rank() == out.rank() { from.layout } else { Layout::PLAIN };
    let Some(axes) = Axes::of(from, layout, &gone) else { return Ok(None) };
    let macros = macros(site, &fold);
    let (count, n) = (out.len(), from.len() / out.len());
    let mut args = vec![Arg::Read(0), Arg::Write(0), count.into(), n.into()];
    args.extend([axes.kept.0, axes.kept.1, axes.gone.0, axes.gone.1].map(int4));
    let grouped = n >= MANY && (axes.inner_goes || count < FEW);
    let launch = match grouped {
        true => {
            let group = group(cx.group());
            let mut macros = macros;
            macros.push(("GROUP", group.to_string()));
            let kernel = cx.kernel(&SOURCE, "reduce_groups", &macros)?;
            Launch { kernel, args, global: [count * group, 1, 1], local: Some([group, 1, 1]) }
        }
        false => {
            let mut macros = macros;
            macros.push(("GROUP", "1".into()));
            Launch::flat(&cx.kernel(&SOURCE, "reduce_items", &macros)?, args, count, cx.group())
        }
    };
    let step = Launches::new(fold.name, vec![launch]);
    Ok(Some(step.built([(0, cx.form(from, layout))], [cx.form(out, layout)])))
}

/// The largest power of two that a group may have.
pub(super) fn group(most: usize) -> usize {
    if most.is_power_of_two() { most } else { most.next_power_of_two() / 2 }
}

pub(super) fn int4(numbers: [i32; 4]) -> Arg {
    Arg::Value(numbers.iter().flat_map(|n| n.to_ne_bytes()).collect())
}

// Axes that stay and that go, joined where they lie together, with their steps.
struct Axes {
    kept: ([i32; 4], [i32; 4]),
    gone: ([i32; 4], [i32; 4]),
    /// Whether the innermost is one of those that go.
    inner_goes: bool,
}

impl Axes {
    // `None` for more than four of a kind.
    fn of(from: &Port, layout: Layout, gone: &[bool]) -> Option<Axes> {
        let (dims, order) = (layout.dims(&from.shape), layout.order(from.rank()));
        let mut joined: Vec<(usize, bool)> = vec![];
        for (&n, &axis) in dims.iter().zip(&order).filter(|(n, _)| **n != 1) {
            match joined.last_mut() {
                Some((len, goes)) if *goes == gone[axis] => *len *= n,
                _ => joined.push((n, gone[axis])),
            }
        }
        let (mut step, mut lists) = (1, [vec![], vec![]]);
        for &(n, goes) in joined.iter().rev() {
            lists[usize::from(goes)].push((n as i32, step as i32));
            step *= n;
        }
        let four = |list: &[(i32, i32)]| {
            let at = |i: usize| list.get(3 - i).copied().unwrap_or((1, 0));
            (list.len() <= 4).then(|| ([0, 1, 2, 3].map(|i| at(i).0), [0, 1, 2, 3].map(|i| at(i).1)))
        };
        let inner_goes = joined.last().is_some_and(|j| j.1);
        Some(Axes { kept: four(&lists[0])?, gone: four(&lists[1])?, inner_goes })
    }
}

// What elements are folded in: floats as they are computed, integers in 64 bits, which wrap when stored.
fn folded(ty: ElementType) -> Option<&'static str> {
    Some(match ty {
        ty if ty.is_float() => types::computed(ty)?,
        ElementType::U64 => "ulong",
        _ => "long",
    })
}

fn fold(op: &dyn Op, ty: ElementType) -> Option<Fold> {
    let (float, boolean) = (ty.is_float(), ty == ElementType::Boolean);
    folded(ty).and(types::stored(ty))?;
    let (low, high) = match float {
        true => ("-INFINITY", "INFINITY"),
        false => limits(ty)?,
    };
    let sum = |name, step| Fold { name, first: "0".into(), step, joined: "(a) + (b)", finish: "(a)" };
    let numbers = match () {
        _ if op.is::<reduce::ReduceSum>() => sum("reduce_sum", "(a) + (x)"),
        _ if op.is::<reduce::ReduceMean>() && float => Fold { finish: "(a) / (n)", ..sum("reduce_mean", "(a) + (x)") },
        _ if op.is::<reduce::ReduceL1>() && float => sum("reduce_l1", "(a) + fabs(x)"),
        _ if op.is::<reduce::ReduceL1>() => sum("reduce_l1", "(a) + ((x) < 0 ? -(A)(x) : (A)(x))"),
        _ if op.is::<reduce::ReduceL2>() && float => {
            Fold { finish: "sqrt(a)", ..sum("reduce_l2", "(a) + (A)(x) * (A)(x)") }
        }
        _ if op.is::<reduce::ReduceProd>() => {
            Fold { name: "reduce_prod", first: "1".into(), step: "(a) * (x)", joined: "(a) * (b)", finish: "(a)" }
        }
        _ if op.is::<reduce::ReduceMax>() => {
            let (step, joined) = ("((a) < (x) ? (x) : (a))", "((a) < (b) ? (b) : (a))");
            Fold { name: "reduce_max", first: low.into(), step, joined, finish: "(a)" }
        }
        _ if op.is::<reduce::ReduceMin>() => {
            let (step, joined) = ("((x) < (a) ? (x) : (a))", "((b) < (a) ? (b) : (a))");
            Fold { name: "reduce_min", first: high.into(), step, joined, finish: "(a)" }
        }
        _ if op.is::<reduce::ReduceLogicalAnd>() && boolean => {
            Fold { name: "reduce_and", first: "1".into(), step: "((a) && (x))", joined: "((a) && (b))", finish: "(a)" }
        }
        _ if op.is::<reduce::ReduceLogicalOr>() && boolean => {
            Fold { name: "reduce_or", first: "0".into(), step: "((a) || (x))", joined: "((a) || (b))", finish: "(a)" }
        }
        _ => return None,
    };
    let logical = matches!(numbers.name, "reduce_and" | "reduce_or");
    (logical || !boolean).then_some(numbers)
}

/// Macros for elements of a type: how they lie, what they are computed as, how they are loaded and stored.
pub(super) fn element_macros(site: &Site<'_>, port: &Port) -> Vec<(&'static str, String)> {
    let stored = site.cx.stored(port.ty);
    let computed = types::computed(port.ty).unwrap_or("float");
    vec![
        ("S", types::stored(stored).unwrap_or("float").to_string()),
        ("N", computed.to_string()),
        ("LOAD_N(p, i)", types::load(stored, "(p)", "(i)")),
        ("STORE_N(p, i, v)", types::store(stored, "(p)", "(i)", &format!("({computed})(v)"))),
    ]
}

fn macros(site: &Site<'_>, fold: &Fold) -> Vec<(&'static str, String)> {
    let mut macros = element_macros(site, &site.inputs[0]);
    // Squares of large numbers are beyond a float where their root is not.
    let folded = match folded(site.inputs[0].ty).unwrap_or("float") {
        "float" if fold.finish == "sqrt(a)" && site.cx.has_double() => "double",
        own => own,
    };
    macros.extend([
        ("A", folded.to_string()),
        ("FIRST", fold.first.clone()),
        ("STEP(a, x)", fold.step.to_string()),
        ("JOINED(a, b)", fold.joined.to_string()),
        ("FINISH(a, n)", fold.finish.to_string()),
    ]);
    macros
}
