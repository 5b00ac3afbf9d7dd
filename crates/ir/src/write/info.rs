//! Runtime information of nodes, ports and the net. A key that cannot be a tag is written as `<info name="the key">`.

use super::emit::{Emitter, is_tag};
use carafe_graph::{Result, RtInfo, RtTree};

pub(super) fn write_node(xml: &mut Emitter, info: &RtInfo) -> Result<()> {
    if info.is_empty() {
        return Ok(());
    }
    xml.open("rt_info", &[])?;
    for attribute in &info.attributes {
        let mut fields = vec![("name", attribute.name.as_str()), ("version", attribute.version.as_str())];
        fields.extend(attribute.fields.iter().map(|(n, v)| (n.as_str(), v.as_str())));
        xml.empty("attribute", &fields)?;
    }
    for tree in &info.user {
        write_user(xml, tree)?;
    }
    xml.close("rt_info");
    Ok(())
}

fn write_user(xml: &mut Emitter, tree: &RtTree) -> Result<()> {
    // Older readers insist on a version.
    let mut attributes = vec![("name", tree.key.as_str())];
    attributes.extend(tree.value.as_deref().map(|v| ("value", v)));
    attributes.push(("version", ""));
    write_children(xml, "user_data", &attributes, &tree.children, write_user)
}

pub(super) fn write_net(xml: &mut Emitter, tree: &[RtTree]) -> Result<()> {
    write_children(xml, "rt_info", &[], tree, write_tree)
}

fn write_tree(xml: &mut Emitter, tree: &RtTree) -> Result<()> {
    let value = tree.value.as_deref().map(|v| ("value", v));
    if is_tag(&tree.key) {
        return write_children(xml, &tree.key, value.as_slice(), &tree.children, write_tree);
    }
    let attributes: Vec<(&str, &str)> = [("name", tree.key.as_str())].into_iter().chain(value).collect();
    write_children(xml, "info", &attributes, &tree.children, write_tree)
}

fn write_children(
    xml: &mut Emitter,
    tag: &str,
    attributes: &[(&str, &str)],
    children: &[RtTree],
    write: fn(&mut Emitter, &RtTree) -> Result<()>,
) -> Result<()> {
    if children.is_empty() {
        return xml.empty(tag, attributes);
    }
    xml.open(tag, attributes)?;
    children.iter().try_for_each(|child| write(xml, child))?;
    xml.close(tag);
    Ok(())
}
