//! Which graph of a SavedModel is read, and between which ends: the tags choose the graph, a signature its inputs and outputs.

use crate::expand::value_name;
use crate::graph::Ends;
use crate::types::{self, DataType};
use crate::wire::{MetaGraphDef, SavedModel, SignatureDef, TensorInfo, TensorInfoEntry};
use carafe_frontend::{Log, SourceValue};
use carafe_graph::{Error, ItemType, Result};
use carafe_tensor::PartialShape;
use std::collections::HashSet;

/// The signature that is taken where a model has several.
const DEFAULT: &str = "serving_default";

/// The graph with these tags, `serve` when none are given.
pub(crate) fn choose<'s>(saved: &'s SavedModel, tags: Option<&str>) -> Result<&'s MetaGraphDef> {
    let all = &saved.meta_graphs;
    let of = |g: &'s MetaGraphDef| -> HashSet<&'s str> {
        g.meta_info_def.iter().flat_map(|i| &i.tags).map(String::as_str).collect()
    };
    let wanted: HashSet<&str> = tags.unwrap_or("serve").split(',').map(str::trim).filter(|t| !t.is_empty()).collect();
    let exact = all.iter().find(|g| of(g) == wanted);
    let found = exact.or_else(|| all.iter().find(|g| wanted.is_subset(&of(g))));
    let otherwise = || match (tags, &all[..]) {
        (None, [only]) => Some(only),
        (None, _) => all.iter().find(|g| of(g).is_empty()),
        (Some(_), _) => None,
    };
    found.or_else(otherwise).ok_or_else(|| {
        let sets = all.iter().map(|g| {
            let mut tags: Vec<&str> = of(g).into_iter().collect();
            tags.sort_unstable();
            format!("`{}`", tags.join(","))
        });
        let sets: Vec<String> = sets.collect();
        let tags = tags.unwrap_or("serve");
        Error::not_found(match sets.is_empty() {
            true => "the SavedModel holds no graph".to_string(),
            false => format!(
                "the SavedModel has no graph with the tags `{tags}`; pass one of {} with `--saved_model_tags`",
                sets.join(", ")
            ),
        })
    })
}

/// The inputs and outputs of a signature: the one that is asked for, `serving_default`, else all of them.
pub(crate) fn ends(meta: &MetaGraphDef, wanted: Option<&str>, log: &Log<'_>) -> Result<Ends> {
    let mut all: Vec<(&str, &SignatureDef)> = meta
        .signature_def
        .iter()
        .filter_map(|e| Some((e.key.as_str(), e.value.as_ref()?)))
        // Those of initialisation and training give nothing.
        .filter(|(key, s)| !key.starts_with("__saved_model_") && !s.outputs.is_empty())
        .collect();
    carafe_graph::sort_by_key(&mut all, |(key, _)| *key);
    let chosen = match (all.iter().find(|(key, _)| *key == wanted.unwrap_or(DEFAULT)), wanted) {
        (Some(one), _) => vec![*one],
        (None, None) => all,
        (None, Some(wanted)) => {
            let keys: Vec<String> = all.iter().map(|(key, _)| format!("`{key}`")).collect();
            let keys = if keys.is_empty() { "none".to_string() } else { keys.join(", ") };
            return Err(Error::not_found(format!("there is no signature `{wanted}`; the model has {keys}")));
        }
    };
    if chosen.is_empty() {
        return Ok(Ends::default());
    }
    if chosen.len() > 1 {
        let names: Vec<String> = chosen.iter().map(|(key, _)| format!("`{key}`")).collect();
        log.warn(format!(
            "there is no signature `{DEFAULT}`; the model has the inputs and outputs of {}",
            names.join(", ")
        ));
    }
    let mut ends = Ends { inputs: vec![], outputs: Some(vec![]) };
    for (_, signature) in chosen {
        values(&signature.inputs, &mut ends.inputs)?;
        values(&signature.outputs, ends.outputs.get_or_insert_default())?;
    }
    // Two signatures may give one value under different keys, and be given one input.
    let mut seen = HashSet::new();
    let mut kept: Vec<SourceValue> = vec![];
    for input in ends.inputs {
        match seen.insert(input.name.clone()) {
            true => kept.push(input),
            false => kept.iter_mut().filter(|k| k.name == input.name).for_each(|k| k.names.extend(input.names.clone())),
        }
    }
    let mut seen = HashSet::new();
    ends.outputs.iter_mut().for_each(|o| o.retain(|v| seen.insert((v.name.clone(), v.label.clone()))));
    Ok(Ends { inputs: kept, ..ends })
}

// In the order of their keys: maps have none.
fn values(entries: &[TensorInfoEntry], into: &mut Vec<SourceValue>) -> Result<()> {
    let mut entries: Vec<(&str, &TensorInfo)> =
        entries.iter().filter_map(|e| Some((e.key.as_str(), e.value.as_ref()?))).collect();
    carafe_graph::sort_by(&mut entries, |a, b| natural(a.0).cmp(&natural(b.0)));
    for (key, info) in entries {
        if let Some(sparse) = &info.coo_sparse {
            let parts = [
                ("indices", &sparse.indices_tensor_name, 9, 2),
                ("values", &sparse.values_tensor_name, info.dtype, 1),
                ("dense_shape", &sparse.dense_shape_tensor_name, 9, 1),
            ];
            for (part, name, ty, rank) in parts {
                let shape = PartialShape::any_of_rank(rank);
                let ty = DataType::of(ty).map(|ty| ItemType::Tensor(ty.element_type(), shape));
                into.push(value(&format!("{key}/{part}"), name, ty)?);
            }
            continue;
        }
        if let Some(composite) = &info.composite_tensor {
            for (i, part) in composite.components.iter().enumerate() {
                into.push(value(&format!("{key}/{i}"), &part.name, declared(part))?);
            }
            continue;
        }
        into.push(value(key, &info.name, declared(info))?);
    }
    Ok(())
}

// A text by its parts, numbers among them as numbers, so that `input_10` is behind `input_9`.
fn natural(key: &str) -> Vec<(u64, &str)> {
    let mut parts = vec![];
    let mut rest = key;
    while !rest.is_empty() {
        let text = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let digits = rest[text..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |n| text + n);
        parts.push((0, &rest[..text]));
        parts.push((rest[text..digits].parse().unwrap_or(0), ""));
        rest = &rest[digits..];
    }
    parts
}

fn value(key: &str, name: &str, ty: Result<ItemType>) -> Result<SourceValue> {
    let (node, port) = name.rsplit_once(':').unwrap_or((name, "0"));
    let port = port.parse().map_err(|_| Error::invalid(format!("signature key `{key}`: `{name}` names no tensor")))?;
    let mut value = SourceValue::new(value_name(node, port), ty.map_err(|e| e.at(format!("signature key `{key}`"))));
    value.label = Some(key.to_string());
    value.names.push(key.to_string());
    Ok(value)
}

fn declared(info: &TensorInfo) -> Result<ItemType> {
    let shape = info.tensor_shape.as_ref().map_or(Ok(PartialShape::dynamic()), types::shape)?;
    match DataType::of(info.dtype)? {
        DataType::Plain(ty) => Ok(ItemType::Tensor(ty, shape)),
        other => Ok(ItemType::Tensor(other.element_type(), PartialShape::dynamic())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_keys_count() {
        let mut keys = ["input_10", "input_9", "a", "input_1b", "input"];
        carafe_graph::sort_by(&mut keys, |a, b| natural(a).cmp(&natural(b)));
        assert_eq!(keys, ["a", "input", "input_1b", "input_9", "input_10"]);
    }
}
