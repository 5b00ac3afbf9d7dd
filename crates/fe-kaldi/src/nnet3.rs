//! nnet3: a graph in lines of text, which is text in binary files too, and its components behind it.

use crate::component::component;
use crate::descriptor::Descriptor;
use crate::net::{Body, Net};
use crate::wrong;
use carafe_ark::Scanner;
use carafe_graph::{Error, Result};
use std::collections::{HashMap, HashSet};

/// Kaldi refuses more.
const MAX_COMPONENTS: i64 = 100_000;

/// Reads `<Nnet3> ..` and what an acoustic model has behind it.
pub(crate) fn read(s: &mut Scanner<'_>) -> Result<Net> {
    s.expect("<Nnet3>").map_err(wrong)?;
    let lines = config(s)?;
    s.expect("<NumComponents>").map_err(wrong)?;
    let count = s.int().map_err(wrong)?;
    if !(0..MAX_COMPONENTS).contains(&count) {
        return Err(Error::invalid(format!("the network says that it has {count} components")));
    }
    let mut net = Net::default();
    let mut by_name = HashMap::new();
    for i in 0..count as usize {
        s.expect("<ComponentName>").map_err(wrong)?;
        let name = s.token().map_err(wrong)?.to_string();
        let mut made = component(s, 0).map_err(|e| wrong(e).at(format!("component `{name}`")))?;
        made.name = name.clone();
        if by_name.insert(name.clone(), i).is_some() {
            return Err(Error::invalid(format!("two components are named `{name}`")));
        }
        net.components.push(made);
    }
    s.expect("</Nnet3>").map_err(wrong)?;
    graph(&lines, &by_name, &mut net)?;
    if s.peek() == Some("<LeftContext>") {
        s.token().map_err(wrong)?;
        s.int().map_err(wrong)?;
        s.expect("<RightContext>").map_err(wrong)?;
        s.int().map_err(wrong)?;
        s.expect("<Priors>").map_err(wrong)?;
        net.priors = Some(s.array().map_err(wrong)?).filter(|p| !p.is_empty());
    }
    Ok(net)
}

// Lines up to an empty one.
fn config(s: &mut Scanner<'_>) -> Result<Vec<String>> {
    let mut lines = vec![];
    let mut is_first = true;
    loop {
        let line = s.line().ok_or_else(|| Error::invalid("the file ends inside of the lines of the graph"))?;
        let text = std::str::from_utf8(line).map_err(|_| Error::invalid("a line of the graph is no text"))?;
        let text = text.split('#').next().unwrap_or("").trim();
        match (text.is_empty(), is_first) {
            (true, false) => return Ok(lines),
            (true, true) => {}
            (false, _) => lines.push(text.to_string()),
        }
        is_first = false;
    }
}

// `input-node name=input dim=40` and so on. A name may be used before its line.
fn graph(lines: &[String], components: &HashMap<String, usize>, net: &mut Net) -> Result<()> {
    let mut names = HashSet::new();
    for line in lines {
        let at = |e: Error| e.at(format!("line `{line}`"));
        let (kind, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let values = values(rest).map_err(at)?;
        let get = |key: &str| {
            let found = values.iter().find(|(k, _)| *k == key).map(|(_, v)| v.as_str());
            found.ok_or_else(|| Error::invalid(format!("`{key}=` is missing")))
        };
        let number =
            |key: &str| get(key)?.parse::<i64>().map_err(|_| Error::invalid(format!("`{key}` must be a number")));
        let name = get("name").map_err(at)?.to_string();
        // An output may be named like a node inside: they are told apart by what reads them.
        if !names.insert(name.clone()) {
            return Err(at(Error::invalid(format!("two nodes are named `{name}`"))));
        }
        let add = || -> Result<()> {
            match kind {
                "input-node" => match number("dim")? {
                    dim @ 1..=0x7fff_ffff => net.inputs.push((name, dim as usize)),
                    dim => return Err(Error::invalid(format!("an input cannot have {dim} columns"))),
                },
                "component-node" => {
                    let component = get("component")?;
                    let found = components.get(component);
                    let found =
                        found.ok_or_else(|| Error::not_found(format!("there is no component `{component}`")))?;
                    net.add_node(&name, Body::Component(*found), get("input")?.parse()?);
                }
                "dim-range-node" => {
                    let body = Body::Range { offset: number("dim-offset")?, dim: number("dim")? };
                    net.add_node(&name, body, Descriptor::node(get("input-node")?));
                }
                "output-node" => net.outputs.push((name, get("input")?.parse()?)),
                _ => return Err(Error::invalid(format!("`{kind}` is no node"))),
            }
            Ok(())
        };
        add().map_err(at)?;
    }
    if net.outputs.is_empty() {
        return Err(Error::invalid("the network has no output-node"));
    }
    Ok(())
}

// `key=value ..`, where a value goes on to the next key and may be quoted.
fn values(text: &str) -> Result<Vec<(&str, String)>> {
    let mut all: Vec<(&str, String)> = vec![];
    for word in text.split_whitespace() {
        let key = word
            .split_once('=')
            .filter(|(k, _)| !k.is_empty() && k.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
        match (key, all.last_mut()) {
            (Some((key, value)), _) => all.push((key, value.to_string())),
            (None, Some((_, value))) => {
                value.push(' ');
                value.push_str(word);
            }
            (None, None) => return Err(Error::invalid(format!("expected `key=value`, found `{word}`"))),
        }
    }
    for (_, value) in &mut all {
        let quoted = value.trim().strip_prefix('"').and_then(|v| v.strip_suffix('"'));
        *value = quoted.unwrap_or(value.trim()).to_string();
    }
    Ok(all)
}
