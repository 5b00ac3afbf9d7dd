//! nnet2: a chain of components.

use crate::component::component;
use crate::descriptor::Descriptor;
use crate::net::{ChainNames, Net};
use crate::wrong;
use carafe_ark::Scanner;
use carafe_graph::{Error, Result};

/// Reads `<Nnet> <NumComponents> ..` and the priors behind it.
pub(crate) fn read(s: &mut Scanner<'_>) -> Result<Net> {
    s.expect("<Nnet>").map_err(wrong)?;
    s.expect("<NumComponents>").map_err(wrong)?;
    let count = s.int().map_err(wrong)?;
    s.expect("<Components>").map_err(wrong)?;
    let mut net = Net::default();
    let mut names = ChainNames::default();
    let mut last = Descriptor::node(INPUT);
    for i in 0..count {
        let made = component(s, 0).map_err(|e| wrong(e).at(format!("component {i}")))?;
        if i == 0 {
            let dim = crate::dims::input_dim(&made).filter(|d| *d > 0);
            let dim = dim.ok_or_else(|| {
                Error::invalid(format!("the first component, {}, says nothing of its input", made.kind))
            })?;
            net.inputs.push((INPUT.into(), dim));
        }
        let name = names.of(&made.kind);
        last = net.add(&name, made, last);
    }
    s.expect("</Components>").map_err(wrong)?;
    s.expect("</Nnet>").map_err(wrong)?;
    let Descriptor::Node(name) = &last else { return Err(Error::invalid("a chain ends with a node")) };
    if net.nodes.is_empty() {
        return Err(Error::invalid("the network has no components"));
    }
    net.outputs.push((name.clone(), last));
    s.skip_space();
    if !s.rest().is_empty() {
        net.priors = Some(s.array().map_err(wrong)?).filter(|p| !p.is_empty());
    }
    Ok(net)
}

/// What `mo` calls the input.
const INPUT: &str = "Input";
