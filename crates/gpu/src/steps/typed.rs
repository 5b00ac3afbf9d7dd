//! Elementwise operations that are part of no group: on integers and booleans, comparisons, choices, changes of type, and shapes
//! that meet in another way than numpy's. One operation a kernel.

use super::elementwise::{common_layout, converted, double_is_there};
use super::movement::same_bytes;
use super::pointwise::{Operand, Pointwise};
use super::{Built, Port, Site, types};
use carafe_graph::Result;
use carafe_ops::arithmetic::{self as arith, Meeting};
use carafe_ops::convert::{Convert, ConvertLike};
use carafe_ops::indexing::Select;
use carafe_ops::{compare, logic, math};
use carafe_plan::Layout;
use carafe_tensor::{ElementType, strides};

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() || site.inputs.is_empty() {
        return Ok(None);
    }
    let (op, cx) = (site.op, site.cx);
    let ty = site.inputs[0].ty;
    let all: Vec<ElementType> = site.inputs.iter().chain(&site.outputs).map(|p| p.ty).collect();
    if all.iter().any(|&ty| types::stored(ty).is_none()) || !double_is_there(cx, &all) {
        return Ok(None);
    }
    if op.is::<Convert>() || op.is::<ConvertLike>() {
        let to = site.outputs[0].ty;
        if ty == to {
            return Ok(Some(same_bytes(site, site.layout(0), site.layout(0))));
        }
        // What lies as halves in memory is the model's float all the same.
        let Some(result) = converted(ty, to, "x0") else { return Ok(None) };
        return one(site, "convert", result, 1);
    }
    if let Some(op) = op.get::<Select>() {
        if ty != ElementType::Boolean {
            return Ok(None);
        }
        let meeting = Meeting::new(op.auto_broadcast, op.auto_broadcast_axis);
        return several(site, "select", meeting, 1, "x0 != 0 ? x1 : x2".into());
    }
    if let Some((name, result)) = unary(site) {
        return one(site, name, result, 1);
    }
    if let Some((name, result, meeting)) = pair(site) {
        return several(site, name, meeting, 0, result);
    }
    let whole = op.is::<math::Floor>() || op.is::<math::Ceiling>() || op.is::<math::Round>();
    Ok((whole && ty.is_integer()).then(|| same_bytes(site, site.layout(0), site.layout(0))))
}

// A function of the first `count` inputs, all of the output's shape.
fn one(site: &Site<'_>, name: &str, result: String, count: usize) -> Result<Option<Built>> {
    let (cx, out) = (site.cx, &site.outputs[0]);
    let layout = site.layout(0);
    let operand = |p: &Port| Operand { ty: cx.stored(p.ty), strides: vec![1] };
    let pointwise = Pointwise {
        dims: vec![out.len()],
        operands: site.inputs[..count].iter().map(operand).collect(),
        out: cx.stored(out.ty),
        body: String::new(),
        result,
        numbers: vec![],
        refuses: false,
    };
    let step = pointwise.step(cx, format!("elementwise[{name}]"))?;
    let reads = (0..count).map(|i| (i, cx.form(&site.inputs[i], layout)));
    Ok(Some(step.built(reads, [cx.form(out, layout)])))
}

// A function of inputs whose shapes meet; `into` is the one that the others are laid into where they do not meet as equals.
fn several(site: &Site<'_>, name: &str, meeting: Meeting, into: usize, result: String) -> Result<Option<Built>> {
    let (cx, out) = (site.cx, &site.outputs[0]);
    let rank = out.rank();
    let layout = common_layout(site.inputs.iter().filter(|p| p.rank() == rank), out);
    let order = layout.order(rank);
    let mut operands = vec![];
    for (i, port) in site.inputs.iter().enumerate() {
        let Some(plain) = meeting.strides(&port.shape, &out.shape, i == into) else { return Ok(None) };
        let own = match port.rank() == rank {
            false => plain,
            true => {
                let own = strides(&layout.dims(&port.shape));
                (0..rank).map(|a| if port.shape[a] == 1 { 0 } else { own[layout.axis(a, rank)] }).collect()
            }
        };
        operands.push(Operand { ty: cx.stored(port.ty), strides: order.iter().map(|&a| own[a]).collect() });
    }
    // An integer has no quotient by zero.
    let divides = matches!(name, "divide" | "mod" | "floor_mod") && out.ty.is_integer();
    let body = if divides { "    if (x1 == 0) { refuse(faults, step, 0, 0); return; }\n" } else { "" };
    let (dims, body) = (layout.dims(&out.shape), body.to_string());
    let pointwise =
        Pointwise { dims, operands, out: cx.stored(out.ty), body, result, numbers: vec![], refuses: divides };
    let step = pointwise.step(cx, format!("elementwise[{name}]"))?;
    let form = |(i, p): (usize, &Port)| (i, cx.form(p, if p.rank() == rank { layout } else { Layout::PLAIN }));
    let reads: Vec<_> = site.inputs.iter().enumerate().map(form).collect();
    Ok(Some(step.built(reads, [cx.form(out, layout)])))
}

// A function of one element, by name and as an expression.
fn unary(site: &Site<'_>) -> Option<(&'static str, String)> {
    let (op, ty) = (site.op, site.inputs[0].ty);
    let own = types::computed(ty)?;
    let float = ty.is_float();
    if let Some(op) = op.get::<math::IsInf>() {
        let side = match (op.detect_negative, op.detect_positive) {
            (true, true) => "isinf(x0)",
            (true, false) => "isinf(x0) && x0 < 0",
            (false, true) => "isinf(x0) && x0 > 0",
            (false, false) => "0",
        };
        return Some(("is_inf", format!("(uchar)(({side}) ? 1 : 0)"))).filter(|_| float);
    }
    let question = |f: &str| format!("(uchar)({f}(x0) ? 1 : 0)");
    Some(match () {
        _ if op.is::<logic::LogicalNot>() => ("not", format!("({own})(x0 == 0)")),
        _ if op.is::<logic::BitwiseNot>() && ty == ElementType::Boolean => ("not", "(uchar)(x0 == 0)".into()),
        _ if op.is::<logic::BitwiseNot>() && ty.is_integer() => ("bitwise_not", format!("({own})(~x0)")),
        _ if op.is::<math::IsNaN>() && float => ("is_nan", question("isnan")),
        _ if op.is::<math::IsFinite>() && float => ("is_finite", question("isfinite")),
        _ => return None,
    })
}

// A function of two elements, and how shapes meet.
fn pair(site: &Site<'_>) -> Option<(&'static str, String, Meeting)> {
    let (op, ty) = (site.op, site.inputs[0].ty);
    if site.inputs.get(1)?.ty != ty {
        return None;
    }
    let (own, wide) = (types::computed(ty)?, types::wrapping(ty));
    let (integer, boolean) = (ty.is_integer(), ty == ElementType::Boolean);
    let number = !boolean;
    let wrapped = |sign: &str| match integer {
        true => format!("({own})(({wide})x0 {sign} ({wide})x1)"),
        false => format!("x0 {sign} x1"),
    };
    let truth = |sign: &str| format!("(uchar)(x0 {sign} x1 ? 1 : 0)");
    let logical = |sign: &str| format!("(uchar)((x0 != 0) {sign} (x1 != 0) ? 1 : 0)");
    let bits = |sign: &str| format!("({own})(x0 {sign} x1)");
    let signed = ty.is_signed() && integer;
    // The quotient of the least number and -1 is that number.
    let safe = format!("(x1 == -1 ? ({own})(0 - ({wide})x0) : ({own})(x0 / x1))");
    let rest = "(x1 == -1 ? 0 : x0 % x1)";
    if let Some(op) = op.get::<arith::Divide>() {
        let meeting = Meeting::new(op.auto_broadcast, op.auto_broadcast_axis);
        let result = match (signed, op.m_pythondiv) {
            (true, true) => format!("({own})({safe} - ({rest} != 0 && (x0 < 0) != (x1 < 0) ? 1 : 0))"),
            (true, false) => safe,
            _ => format!("({own})(x0 / x1)"),
        };
        return number.then_some(("divide", result, meeting));
    }
    macro_rules! table {
        ($($class:ty: $name:literal => $result:expr, $if:expr;)*) => {
            $(if let Some(op) = op.get::<$class>() {
                return ($if).then(|| ($name, $result, Meeting::new(op.auto_broadcast, op.auto_broadcast_axis)));
            })*
        };
    }
    let squared = match integer {
        true => format!("({own})((({wide})x0 - ({wide})x1) * (({wide})x0 - ({wide})x1))"),
        false => "(x0 - x1) * (x0 - x1)".into(),
    };
    let modulo = match () {
        _ if signed => format!("({own}){rest}"),
        _ if integer => format!("({own})(x0 % x1)"),
        _ if ty == ElementType::F64 => "x0 - x1 * trunc(x0 / x1)".into(),
        _ => "f_mod(x0, x1)".into(),
    };
    let floor_mod = match () {
        _ if signed => format!("({own})({rest} + ({rest} != 0 && ({rest} < 0) != (x1 < 0) ? x1 : 0))"),
        _ if integer => format!("({own})(x0 % x1)"),
        _ if ty == ElementType::F64 => "x0 - x1 * floor(x0 / x1)".into(),
        _ => "f_floor_mod(x0, x1)".into(),
    };
    let mask = if ty.bits() == 64 { 63 } else { 31 };
    let shifted = |sign: &str| match ty.bits() {
        64 => format!("({own})((long)x0 {sign} (x1 & {mask}))"),
        _ => format!("({own})((int)x0 {sign} (int)(x1 & {mask}))"),
    };
    table! {
        arith::Add: "add" => wrapped("+"), number;
        arith::Subtract: "subtract" => wrapped("-"), number;
        arith::Multiply: "multiply" => wrapped("*"), number;
        arith::Maximum: "maximum" => "x0 < x1 ? x1 : x0".into(), number;
        arith::Minimum: "minimum" => "x1 < x0 ? x1 : x0".into(), number;
        arith::SquaredDifference: "squared_difference" => squared, number;
        arith::Mod: "mod" => modulo, number;
        arith::FloorMod: "floor_mod" => floor_mod, number;
        arith::Power: "power" => "pow(x0, x1)".into(), ty.is_float();
        compare::Equal: "equal" => truth("=="), true;
        compare::NotEqual: "not_equal" => truth("!="), true;
        compare::Less: "less" => truth("<"), true;
        compare::LessEqual: "less_equal" => truth("<="), true;
        compare::Greater: "greater" => truth(">"), true;
        compare::GreaterEqual: "greater_equal" => truth(">="), true;
        logic::LogicalAnd: "and" => logical("&&"), boolean;
        logic::LogicalOr: "or" => logical("||"), boolean;
        logic::LogicalXor: "xor" => logical("!="), boolean;
        logic::Xor: "xor" => logical("!="), boolean;
        logic::BitwiseAnd: "bitwise_and" => bits("&"), integer || boolean;
        logic::BitwiseOr: "bitwise_or" => bits("|"), integer || boolean;
        logic::BitwiseXor: "bitwise_xor" => bits("^"), integer || boolean;
        logic::BitwiseLeftShift: "left_shift" => shifted("<<"), integer;
        logic::BitwiseRightShift: "right_shift" => shifted(">>"), integer && ty.is_signed();
    }
    None
}
