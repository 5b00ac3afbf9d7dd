//! Information that does not change what a model computes: `rt_info` of nodes, ports and the net, and the elements that
//! stood in its place in v10. Unknown attributes are kept, so that a file can be written back whole.

use crate::xml::{Xml, child, elements, plain_attributes, shorten};
use carafe_graph::{RtInfo, RtTree};

/// `rt_info` below a layer or a port.
pub(crate) fn of_node(xml: Xml<'_>) -> RtInfo {
    let mut info = RtInfo::default();
    for entry in child(xml, "rt_info").into_iter().flat_map(elements) {
        let Some(name) = entry.attribute("name") else { continue };
        match entry.tag_name().name() {
            "attribute" => {
                let fields = plain_attributes(entry).filter(|a| !matches!(a.name(), "name" | "version"));
                let fields = fields.map(|a| (a.name().to_string(), a.value().to_string())).collect();
                info.set(name, entry.attribute("version").unwrap_or("0"), fields);
            }
            "user_data" => info.user.push(user_data(entry, name)),
            _ => {}
        }
    }
    info
}

fn user_data(xml: Xml<'_>, name: &str) -> RtTree {
    let inner = elements(xml).filter(|e| e.tag_name().name() == "user_data");
    RtTree {
        key: name.to_string(),
        value: xml.attribute("value").map(str::to_string),
        children: inner.filter_map(|e| Some(user_data(e, e.attribute("name")?))).collect(),
    }
}

/// The tree below the `rt_info` of a net.
pub(crate) fn of_net(rt_info: Xml<'_>) -> Vec<RtTree> {
    elements(rt_info).map(tree).collect()
}

/// An extension that a net says it was made with.
pub(crate) struct Needed {
    /// Name of the extension.
    pub name: String,
    /// Name, version and library.
    pub words: String,
}

/// The extensions that a net says it was made with.
pub(crate) fn needed_extensions(info: &[RtTree]) -> Vec<Needed> {
    let list = info.iter().filter(|t| t.key == "carafe_extensions").flat_map(|t| &t.children).take(20);
    let part = |t: &RtTree, key: &str| t.child(key).and_then(|c| c.value.clone()).filter(|v| !v.is_empty());
    list.map(|t| {
        let version = part(t, "version").map_or(String::new(), |v| format!(" {}", shorten(&v)));
        let library = part(t, "library").map_or(String::new(), |l| format!(" (`{}`)", shorten(&l)));
        Needed { name: t.key.clone(), words: format!("`{}`{version}{library}", shorten(&t.key)) }
    })
    .collect()
}

fn tree(xml: Xml<'_>) -> RtTree {
    RtTree {
        key: xml.attribute("name").unwrap_or_else(|| xml.tag_name().name()).to_string(),
        value: xml.attribute("value").map(str::to_string),
        children: elements(xml).map(tree).collect(),
    }
}

/// What a v10 net says in `meta_data` and `quantization_parameters`, as the tree of v11.
pub(crate) fn of_old_net(net: Xml<'_>) -> Vec<RtTree> {
    let mut info = vec![];
    if let Some(meta) = child(net, "meta_data") {
        for entry in elements(meta) {
            match (entry.tag_name().name(), entry.attribute("value")) {
                ("cli_parameters", _) => {
                    info.push(RtTree::branch("conversion_parameters", elements(entry).map(option).collect()));
                }
                (name, Some(value)) => info.push(RtTree::leaf(name, value)),
                _ => {}
            }
        }
    }
    if let Some(quantization) = child(net, "quantization_parameters") {
        let entry = |e: Xml<'_>| {
            let value = e.attribute("value").or_else(|| e.text().map(str::trim)).unwrap_or("");
            RtTree::leaf(e.tag_name().name(), value)
        };
        info.push(RtTree::branch("optimization", elements(quantization).map(entry).collect()));
    }
    info
}

fn option(xml: Xml<'_>) -> RtTree {
    match xml.attribute("unset_cli_parameters") {
        Some(list) => RtTree::leaf("unset_cli_parameters", list),
        None => RtTree::leaf(xml.tag_name().name(), xml.attribute("value").unwrap_or("")),
    }
}
