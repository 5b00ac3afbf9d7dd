//! Products and convolutions as XLA has them, which converters from JAX write: any axis may be the batch, contracted, the
//! channels. Which is which is a protobuf message in an attribute.

use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::convolution::window::PadType;
use carafe_ops::convolution::{Convolution, GroupConvolution};
use carafe_ops::linear::Einsum;
use carafe_tensor::ElementType;
use prost::Message;

pub(super) const RULES: &[StaticRule] = &[rule("XlaConvV2", 0, convolution), rule("XlaDotV2", 0, dot)];

#[derive(Clone, PartialEq, Message)]
struct DotAxes {
    #[prost(int64, repeated, tag = "1")]
    lhs_contracting: Vec<i64>,
    #[prost(int64, repeated, tag = "2")]
    rhs_contracting: Vec<i64>,
    #[prost(int64, repeated, tag = "3")]
    lhs_batch: Vec<i64>,
    #[prost(int64, repeated, tag = "4")]
    rhs_batch: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct ConvolutionAxes {
    #[prost(int64, tag = "3")]
    kernel_input: i64,
    #[prost(int64, tag = "4")]
    kernel_output: i64,
    #[prost(int64, repeated, tag = "6")]
    kernel_spatial: Vec<i64>,
    #[prost(int64, tag = "7")]
    input_batch: i64,
    #[prost(int64, tag = "8")]
    input_feature: i64,
    #[prost(int64, tag = "9")]
    output_batch: i64,
    #[prost(int64, tag = "10")]
    output_feature: i64,
    #[prost(int64, repeated, tag = "11")]
    input_spatial: Vec<i64>,
    #[prost(int64, repeated, tag = "12")]
    output_spatial: Vec<i64>,
}

fn axes<M: Message + Default>(n: &NodeCx<'_>) -> Result<M> {
    let text: String = n.required("dimension_numbers")?;
    M::decode(text.as_bytes()).map_err(|e| n.fail(format!("attribute `dimension_numbers` is no message: {e}")))
}

fn rank(n: &NodeCx<'_>, v: Value, input: usize) -> Result<usize> {
    n.rank(v).ok_or_else(|| n.unsupported(format!("the number of axes of input {input} must be known")))
}

// Batch axes come first in the result, then what is left of the one operand and of the other.
fn dot(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["precision_config"]);
    let axes: DotAxes = axes(n)?;
    let (a, b) = (n.input(0)?, n.input(1)?);
    let ty: ElementType = n.attr("preferred_element_type", n.ty(a))?;
    let (a, b) = (n.convert(a, ty)?, n.convert(b, ty)?);
    let mut letters = ('a'..='z').chain('A'..='Z');
    let mut left = vec![None; rank(n, a, 0)?];
    let mut right = vec![None; rank(n, b, 1)?];
    let mut batch = String::new();
    let paired = [(&axes.lhs_batch, &axes.rhs_batch, true), (&axes.lhs_contracting, &axes.rhs_contracting, false)];
    for (of_left, of_right, is_batch) in paired {
        if of_left.len() != of_right.len() {
            return Err(n.fail("attribute `dimension_numbers` pairs different numbers of axes"));
        }
        for (&i, &j) in of_left.iter().zip(of_right) {
            let (Ok(i), Ok(j)) = (usize::try_from(i), usize::try_from(j)) else {
                return Err(n.fail("attribute `dimension_numbers` has a negative axis"));
            };
            let letter = letters.next();
            match (left.get_mut(i), right.get_mut(j)) {
                (Some(l @ None), Some(r @ None)) => (*l, *r) = (letter, letter),
                _ => return Err(n.fail("attribute `dimension_numbers` names an axis twice, or one that is not there")),
            }
            batch.extend(letter.filter(|_| is_batch));
        }
    }
    let mut free = String::new();
    for axis in left.iter_mut().chain(&mut right).filter(|l| l.is_none()) {
        *axis = letters.next();
        free.extend(*axis);
    }
    let text = |axes: &[Option<char>]| axes.iter().flatten().collect::<String>();
    let equation = format!("{},{}->{batch}{free}", text(&left), text(&right));
    Ok(n.emit(Einsum { equation }, &[a, b])?.into())
}

fn convolution(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["precision_config"]);
    let axes: ConvolutionAxes = axes(n)?;
    let batches: i64 = n.attr("batch_group_count", 1)?;
    let (x, filters) = (n.input(0)?, n.input(1)?);
    let ty: ElementType = n.attr("preferred_element_type", n.ty(x))?;
    let (x, filters) = (n.convert(x, ty)?, n.convert(filters, ty)?);
    let mut list = |input: usize, what: &str| -> Result<Vec<i64>> {
        let v = n.input(input)?;
        n.ints(v).ok_or_else(|| n.unsupported(format!("{what} must be constants")))
    };
    let (strides, pads) = (list(2, "strides")?, list(3, "paddings")?);
    let (spread, dilations) = (list(4, "dilations of the data")?, list(5, "dilations of the filters")?);
    let groups = list(6, "the number of groups")?;
    if batches != 1 || spread.iter().any(|&d| d != 1) {
        return Err(n.unsupported("groups of the batch, and dilations of the data, are not supported"));
    }
    let spatial = strides.len();
    let orders = [&axes.input_spatial, &axes.kernel_spatial, &axes.output_spatial];
    if orders.iter().any(|o| o.len() != spatial) || pads.len() != 2 * spatial || dilations.len() != spatial {
        return Err(n.fail("strides, paddings, dilations and `dimension_numbers` differ in their number of axes"));
    }
    let order = |first: i64, second: i64, rest: &[i64]| [&[first, second], rest].concat();
    let x = n.transpose(x, &order(axes.input_batch, axes.input_feature, &axes.input_spatial))?;
    let filters = n.transpose(filters, &order(axes.kernel_output, axes.kernel_input, &axes.kernel_spatial))?;
    let (pads_begin, pads_end) = (pads.iter().copied().step_by(2).collect(), pads.iter().copied().skip(1).step_by(2).collect());
    let auto_pad = PadType::Explicit;
    let y = match groups.first() {
        Some(&groups) if groups > 1 => {
            let mut pattern = vec![groups, -1];
            let shape = n.shape(filters).to_static();
            let shape = shape.ok_or_else(|| n.unsupported("the shape of filters in groups must be known"))?;
            pattern.extend(shape.iter().skip(1).map(|&d| d as i64));
            let filters = n.reshape(filters, &pattern)?;
            n.emit(GroupConvolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, filters])?
        }
        _ => n.emit(Convolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, filters])?,
    };
    // Where each axis of the result comes from.
    let mut back = vec![0; spatial + 2];
    for (from, to) in order(axes.output_batch, axes.output_feature, &axes.output_spatial).into_iter().enumerate() {
        let at = usize::try_from(to).ok().and_then(|to| back.get_mut(to));
        *at.ok_or_else(|| n.fail("attribute `dimension_numbers` names an axis that is not there"))? = from as i64;
    }
    Ok(n.transpose(y, &back)?.into())
}
