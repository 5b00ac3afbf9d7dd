//! Components that look at other times than their own, and those made of others: what they read becomes descriptors, so that
//! time is in descriptors only. Afterwards a component sees one row.

use crate::component::{Component, Field};
use crate::descriptor::Descriptor;
use crate::net::{Body, Net, NetNode};
use carafe_graph::{Error, Result};

/// A pool over more frames than this is one over all frames so far: those of x-vectors span any utterance.
const MAX_WINDOW: i64 = 1000;
/// Windows of more frames are refused.
const MAX_OFFSETS: i64 = 10_000;

/// Expands every node of a network.
pub(crate) fn expand(net: &mut Net) -> Result<()> {
    for node in std::mem::take(&mut net.nodes) {
        let name = node.name.clone();
        let kind = net.component(&node).map_or(String::new(), |c| c.kind.clone());
        one(net, node).map_err(|e| e.at(format!("component-node `{name}` ({kind})")))?;
    }
    Ok(())
}

fn one(net: &mut Net, mut node: NetNode) -> Result<()> {
    let Some(component) = net.component(&node).cloned() else {
        net.nodes.push(node);
        return Ok(());
    };
    let c = &component;
    // What is read at many times is named, so that each of them is short.
    let is_window = matches!(
        c.kind.as_str(),
        "SpliceComponent"
            | "SpliceMaxComponent"
            | "TdnnComponent"
            | "TimeHeightConvolutionComponent"
            | "RestrictedAttentionComponent"
    );
    if is_window && !matches!(node.input, Descriptor::Node(_)) {
        node.input = net.add_node(&format!("{}/input", node.name), Body::Same, node.input);
    }
    match c.kind.as_str() {
        "CompositeComponent" => {
            let mut last = node.input;
            for (i, part) in c.parts.iter().enumerate() {
                let is_last = i + 1 == c.parts.len();
                let name = if is_last { node.name.clone() } else { format!("{}/{i}", node.name) };
                let part = Component { name: format!("{}/{i}", c.name), ..part.clone() };
                net.components.push(part);
                let body = Body::Component(net.components.len() - 1);
                one(net, NetNode { name: name.clone(), body, input: last })?;
                last = Descriptor::node(name);
            }
            return match c.parts.is_empty() {
                true => Err(Error::invalid("a CompositeComponent has no components")),
                false => Ok(()),
            };
        }
        "SpliceComponent" => return splice(net, node, c),
        "SpliceMaxComponent" => {
            let context = context(c)?;
            node.input = node.input.window(&context, |_| true);
            let mut made = c.clone();
            made.fields.retain(|(n, _)| !n.ends_with("Context"));
            made.set("NumFrames", Field::Int(context.len() as i64));
            net.add(&node.name, made, node.input);
            return Ok(());
        }
        "TdnnComponent" => {
            let offsets = c.ints("TimeOffsets").filter(|o| !o.is_empty());
            let offsets = offsets.ok_or_else(|| Error::invalid("`<TimeOffsets>` is missing"))?;
            node.input = node.input.window(offsets, |_| true);
        }
        "TimeHeightConvolutionComponent" => {
            let pairs = c.ints("Offsets").ok_or_else(|| Error::invalid("`<Offsets>` is missing"))?;
            let mut times: Vec<i64> = pairs.chunks_exact(2).map(|p| p[0]).collect();
            times.sort_unstable();
            times.dedup();
            let required = c.ints("RequiredTimeOffsets").unwrap_or(&[]);
            node.input = node.input.window(&times, |t| required.contains(&t));
        }
        "RestrictedAttentionComponent" => {
            let get = |name: &str| match c.int(name) {
                Some(n @ 0..=MAX_OFFSETS) => Ok(n),
                found => {
                    Err(Error::invalid(format!("`<{name}>` must lie between 0 and {MAX_OFFSETS}, found {found:?}")))
                }
            };
            let (left, right, stride) = (get("NumLeftInputs")?, get("NumRightInputs")?, get("TimeStride")?);
            let needed = (get("NumLeftInputsRequired")?, get("NumRightInputsRequired")?);
            let offsets: Vec<i64> = (-left..=right).map(|i| i * stride).collect();
            node.input = node.input.window(&offsets, |t| (-needed.0 * stride..=needed.1 * stride).contains(&t));
        }
        // They give the same for whatever they read.
        "DropoutMaskComponent" | "ConstantComponent" | "ConstantFunctionComponent" => {
            node.input = Descriptor::Const(0.0, 1)
        }
        "StatisticsExtractionComponent" => return extraction(net, node, c),
        "StatisticsPoolingComponent" => return pooling(net, node, c),
        _ => {}
    }
    net.nodes.push(node);
    Ok(())
}

fn context(c: &Component) -> Result<Vec<i64>> {
    match (c.ints("Context"), c.int("LeftContext"), c.int("RightContext")) {
        (Some(context), ..) if !context.is_empty() => Ok(context.to_vec()),
        (None, Some(left @ 0..=MAX_OFFSETS), Some(right @ 0..=MAX_OFFSETS)) => Ok((-left..=right).collect()),
        _ => Err(Error::invalid("it says no context of at most 10000 frames on each side")),
    }
}

// The last columns may be the same in all frames: they are taken once.
fn splice(net: &mut Net, node: NetNode, c: &Component) -> Result<()> {
    let (context, name) = (context(c)?, &node.name);
    let constant = c.int("ConstComponentDim").unwrap_or(0);
    if constant == 0 {
        net.add_node(name, Body::Same, node.input.window(&context, |_| true));
        return Ok(());
    }
    let dim = c.int("InputDim").unwrap_or(0);
    if !(1..dim).contains(&constant) {
        return Err(Error::invalid(format!("{constant} of {dim} columns cannot be constant")));
    }
    let whole = node.input;
    let part = |offset, dim| Body::Range { offset, dim };
    let spliced = net.add_node(&format!("{name}/spliced"), part(0, dim - constant), whole.clone());
    let same = net.add_node(&format!("{name}/constant"), part(dim - constant, constant), whole);
    let both = Descriptor::Append(vec![spliced.window(&context, |_| true), same]);
    net.add_node(name, Body::Same, both);
    Ok(())
}

// Statistics of a frame, added up over those of a period.
fn extraction(net: &mut Net, node: NetNode, c: &Component) -> Result<()> {
    let (step, period) = (c.int("InputPeriod").unwrap_or(1), c.int("OutputPeriod").unwrap_or(1));
    if step < 1 || period < step || period % step != 0 || period > MAX_WINDOW {
        return Err(Error::invalid(format!("a period of {period} frames cannot be one of {step}")));
    }
    if period == 1 {
        net.nodes.push(node);
        return Ok(());
    }
    let name = node.name;
    let each = net.add_node(&format!("{name}/frame"), node.body, node.input);
    let frames = (0..period).step_by(step as usize).map(|t| each.clone().later(t).if_defined()).collect();
    let sum = net.add_node(&format!("{name}/period"), Body::Same, Descriptor::Sum(frames));
    net.add_node(&name, Body::Same, Descriptor::Round(Box::new(sum), period));
    Ok(())
}

// The sum of the statistics of a window, or of all frames so far, is what the component itself sees.
fn pooling(net: &mut Net, node: NetNode, c: &Component) -> Result<()> {
    let get = |name: &str| match c.int(name) {
        Some(n) if n >= 0 => Ok(n),
        found => Err(Error::invalid(format!("`<{name}>` must not be negative, found {found:?}"))),
    };
    let (left, right, step) = (get("LeftContext")?, get("RightContext")?, c.int("InputPeriod").unwrap_or(1));
    if step < 1 {
        return Err(Error::invalid(format!("a period of {step} frames")));
    }
    let name = &node.name;
    let each = net.add_node(&format!("{name}/frame"), Body::Same, node.input);
    let input = match left.saturating_add(right) > MAX_WINDOW {
        true if step == 1 => {
            let so_far = format!("{name}/so_far");
            let before = Descriptor::node(&so_far).later(-1).if_defined();
            net.add_node(&so_far, Body::Same, Descriptor::Sum(vec![each.if_defined(), before]));
            net.add_node(&format!("{name}/latest"), Body::Latest, Descriptor::node(so_far))
        }
        true => return Err(Error::unsupported(format!("a pool over {left} and {right} frames in steps of {step}"))),
        false => {
            let all = (-left..=right).step_by(step as usize).map(|t| each.clone().later(t).if_defined());
            Descriptor::Sum(all.collect())
        }
    };
    net.nodes.push(NetNode { input, ..node });
    Ok(())
}
