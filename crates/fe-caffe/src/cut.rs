//! The part of a net that some of its layers and blobs need. What lies behind them is left out before anything is
//! translated, so that it cannot stop a conversion that does not want it.

use crate::input;
use crate::net::{Layer, LeftOut, Net};
use std::collections::{HashMap, HashSet};

/// Leaves out every layer that none of these names needs. Inputs stay, those that lost all their readers are listed as cut
/// off. A name that neither a blob nor a layer has may mean something in the translated model, so then all is kept.
pub(crate) fn cut(net: &mut Net, wanted: &[String]) {
    let mut latest: HashMap<&str, usize> = HashMap::new();
    let mut producers: Vec<Vec<usize>> = vec![];
    for (i, layer) in net.layers.iter().enumerate() {
        producers.push(layer.bottoms.iter().filter_map(|b| latest.get(b.as_str()).copied()).collect());
        latest.extend(layer.tops.iter().map(|top| (top.as_str(), i)));
    }
    let mut stack = vec![];
    for name in wanted {
        match find(&net.layers, &latest, name) {
            Some(at) => stack.push(at),
            None => return,
        }
    }
    let mut needed = vec![false; net.layers.len()];
    while let Some(i) = stack.pop() {
        if !std::mem::replace(&mut needed[i], true) {
            stack.extend(&producers[i]);
        }
    }
    // The last layer that stays gives an output; without one there would be no model.
    let last = (0..net.layers.len()).rev().find(|i| needed[*i] && !input::is_input(&net.layers[*i].ty));
    if last.is_none_or(|i| net.layers[i].tops.is_empty()) {
        return;
    }
    let is_kept = |i: usize, layer: &Layer| needed[i] || input::is_input(&layer.ty);
    let read = |kept: bool| -> HashSet<String> {
        let layers = net.layers.iter().enumerate().filter(|(i, l)| is_kept(*i, l) == kept);
        layers.flat_map(|(_, l)| l.bottoms.iter().cloned()).collect()
    };
    let (still, before) = (read(true), read(false));
    let named = |top: &String| wanted.contains(top);
    let inputs = net.layers.iter().filter(|l| input::is_input(&l.ty)).flat_map(|l| &l.tops);
    net.cut_off = inputs.filter(|top| before.contains(*top) && !still.contains(*top) && !named(top)).cloned().collect();
    let (mut i, mut after) = (0, String::new());
    let left_out = &mut net.left_out;
    net.layers.retain(|layer| {
        let last = after.clone();
        if !input::is_input(&layer.ty) {
            after.clone_from(&layer.name);
        }
        i += 1;
        let is_kept = needed[i - 1] || input::is_input(&layer.ty);
        if !is_kept {
            let (name, ty, why) = (layer.name.clone(), layer.ty.clone(), "left out: no output that is kept needs it");
            left_out.push(LeftOut { name, ty, after: last, why });
        }
        is_kept
    });
}

// The layer that a name means: of the latest blob of that name, else the layer itself; `0:conv` and `conv:0` name ports.
fn find(layers: &[Layer], latest: &HashMap<&str, usize>, name: &str) -> Option<usize> {
    let whole = |name: &str| latest.get(name).copied().or_else(|| layers.iter().position(|l| l.name == name));
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let input = || name.split_once(':').filter(|(port, _)| is_port(port)).and_then(|(_, name)| whole(name));
    let output = || name.rsplit_once(':').filter(|(_, port)| is_port(port)).and_then(|(name, _)| whole(name));
    whole(name).or_else(input).or_else(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str, ty: &str, bottoms: &[&str], tops: &[&str]) -> Layer {
        let all = |list: &[&str]| list.iter().map(|s| s.to_string()).collect();
        Layer { name: name.into(), ty: ty.into(), bottoms: all(bottoms), tops: all(tops), ..Layer::default() }
    }

    fn kept(wanted: &[&str]) -> (Vec<String>, Vec<String>) {
        let layers = vec![
            layer("in", "Input", &[], &["x", "y", "z"]),
            layer("conv", "Convolution", &["x"], &["c"]),
            layer("relu", "ReLU", &["c"], &["c"]),
            layer("c2", "TanH", &["y"], &["t"]),
            layer("sum", "Eltwise", &["c", "t"], &["s"]),
        ];
        let mut net = Net { layers, ..Net::default() };
        cut(&mut net, &wanted.iter().map(|s| s.to_string()).collect::<Vec<_>>());
        let mut cut_off: Vec<String> = net.cut_off.into_iter().collect();
        cut_off.sort();
        (net.layers.into_iter().map(|l| l.name).collect(), cut_off)
    }

    fn is(wanted: &[&str], layers: &[&str], cut_off: &[&str]) {
        let (found, idle) = kept(wanted);
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), layers, "{wanted:?}");
        assert_eq!(idle.iter().map(String::as_str).collect::<Vec<_>>(), cut_off, "{wanted:?}");
    }

    #[test]
    fn layers_that_no_name_needs_are_left_out() {
        is(&["conv"], &["in", "conv"], &["y"]);
        is(&["conv:0"], &["in", "conv"], &["y"]);
        is(&["c"], &["in", "conv", "relu"], &["y"]);
        is(&["0:c2"], &["in", "c2"], &["x"]);
        is(&["conv", "t"], &["in", "conv", "c2"], &[]);
        is(&["conv", "y"], &["in", "conv"], &[]);
    }

    #[test]
    fn a_name_of_no_layer_cuts_nothing() {
        is(&["conv", "conv/WithoutBiases"], &["in", "conv", "relu", "c2", "sum"], &[]);
        is(&["x"], &["in", "conv", "relu", "c2", "sum"], &[]);
    }
}
