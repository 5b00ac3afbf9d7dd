//! Strides, pads and dilations of convolutions and pooling.

use carafe_frontend::NodeCx;
use carafe_graph::Result;
use carafe_ops::convolution::window::PadType;

/// How windows lie over the spatial axes.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    pub(super) strides: Vec<i64>,
    pub(super) dilations: Vec<i64>,
    pub(super) begin: Vec<i64>,
    pub(super) end: Vec<i64>,
    pub(super) auto_pad: PadType,
}

/// The windows of an operator over so many axes. Pads are one for each axis, or begin and end of each in turns.
pub(super) fn windows(n: &NodeCx<'_>, axes: usize) -> Result<Windows> {
    let list = |name: &str, default: i64| -> Result<Vec<i64>> {
        let found: Vec<i64> = n.attr(name, vec![default; axes])?;
        match found.len() {
            len if len == axes => Ok(found),
            1 => Ok(vec![found[0]; axes]),
            len => Err(n.fail(format!("`{name}` has {len} numbers for {axes} axes"))),
        }
    };
    let strides = list("strides", 1)?;
    let mut dilations = list("dilations", 1)?;
    let pads: Vec<i64> = n.attr("paddings", vec![0; axes])?;
    let (mut begin, mut end) = match pads.len() {
        len if len == axes => (pads.clone(), pads),
        len if len == 2 * axes => {
            (pads.iter().step_by(2).copied().collect(), pads.iter().skip(1).step_by(2).copied().collect())
        }
        1 => (vec![pads[0]; axes], vec![pads[0]; axes]),
        // All axes of the tensor, of which the first and the second, or the first and the last, have none.
        len if len == 2 * (axes + 2) => {
            let spatial = if pads[2..4] == [0, 0] { &pads[4..] } else { &pads[2..len - 2] };
            (spatial.iter().step_by(2).copied().collect(), spatial.iter().skip(1).step_by(2).copied().collect())
        }
        len => return Err(n.fail(format!("`paddings` has {len} numbers for {axes} axes"))),
    };
    let algorithm: String = n.attr("padding_algorithm", "EXPLICIT".to_string())?;
    let auto_pad = match algorithm.as_str() {
        "EXPLICIT" => PadType::Explicit,
        "SAME" => {
            // Paddle forgets dilations where it finds the pads itself.
            dilations.fill(1);
            PadType::SameUpper
        }
        "VALID" => PadType::Valid,
        other => return Err(n.unsupported(format!("`padding_algorithm` is `{other}`"))),
    };
    if auto_pad != PadType::Explicit {
        begin.fill(0);
        end.fill(0);
    }
    Ok(Windows { strides, dilations, begin, end, auto_pad })
}
