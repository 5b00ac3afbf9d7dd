//! Constants with the same type, shape and bytes become one. A few bytes of each are hashed first and all are compared
//! only when those agree, so large weights in a mapped file are not read for nothing. The first constant stays, or the
//! first one that is mapped.

use crate::shared::feeds_result;
use carafe_graph::{Constant, Model, NodeId, Notes, Pass, Result, in_bodies};
use carafe_tensor::{ElementType, Tensor};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How many pieces of a tensor are hashed, and their length in bytes.
const PIECES: usize = 16;
const PIECE: usize = 64;

/// Equal constants become one.
#[derive(Clone, Copy, Debug)]
pub struct DeduplicateConstants;

impl Pass for DeduplicateConstants {
    fn name(&self) -> &'static str {
        "deduplicate_constants"
    }
    fn run(&self, model: &mut Model, notes: &mut Notes) -> Result<usize> {
        let mut merged = in_bodies(model, &mut |body| self.run(body, notes))?;
        let mut kept: HashMap<u64, Vec<NodeId>> = HashMap::new();
        let all: Vec<NodeId> = model.nodes().filter(|(_, n)| n.op().is::<Constant>()).map(|(id, _)| id).collect();
        for id in all {
            let Some(tensor) = model.constant_of(id.into()) else { continue };
            let same = kept.entry(outline(tensor)).or_default();
            let found = same.iter().position(|&other| equal(model, other, id));
            let Some(at) = found else {
                same.push(id);
                continue;
            };
            let other = same[at];
            if model.node(other).rt_info != model.node(id).rt_info {
                notes.add(|| {
                    format!("{}: {} stays: its runtime information differs", self.name(), model.node(id).location())
                });
                continue;
            }
            if feeds_result(model, id.into()) || feeds_result(model, other.into()) {
                notes.add(|| format!("{}: {} stays: it is an output", self.name(), model.node(id).location()));
                continue;
            }
            let mapped = |id: NodeId| model.constant_of(id.into()).is_some_and(Tensor::is_mapped);
            let (stays, goes) = if mapped(id) && !mapped(other) { (id, other) } else { (other, id) };
            same[at] = stays;
            notes.add(|| format!("{}: fired at {}", self.name(), model.node(goes).location()));
            model.replace_value(goes.into(), stays.into());
            model.remove(goes)?;
            merged += 1;
        }
        Ok(merged)
    }
}

fn outline(tensor: &Tensor) -> u64 {
    let mut hash = DefaultHasher::new();
    (tensor.element_type(), tensor.shape()).hash(&mut hash);
    if tensor.element_type() == ElementType::String {
        tensor.strings().map(|s| s.len()).unwrap_or(0).hash(&mut hash);
        return hash.finish();
    }
    // The unused bits of the last byte of a packed type are undefined.
    let bytes = tensor.bytes();
    let bytes = if tensor.element_type().is_sub_byte() { &bytes[..bytes.len().saturating_sub(1)] } else { bytes };
    if bytes.len() <= PIECES * PIECE {
        bytes.hash(&mut hash);
    } else {
        let step = (bytes.len() - PIECE) / (PIECES - 1);
        for i in 0..PIECES {
            bytes[i * step..i * step + PIECE].hash(&mut hash);
        }
    }
    hash.finish()
}

fn equal(model: &Model, a: NodeId, b: NodeId) -> bool {
    match (model.constant_of(a.into()), model.constant_of(b.into())) {
        (Some(a), Some(b)) => {
            let one_place = a.storage_ptr() == b.storage_ptr()
                && a.element_type() == b.element_type()
                && a.element_type() != ElementType::String
                && a.shape() == b.shape()
                && a.bytes().as_ptr() == b.bytes().as_ptr();
            one_place || a.content_eq(b)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draft;
    use carafe_ops::arithmetic::Add;

    fn large(last: f32) -> Tensor {
        let mut data: Vec<f32> = (0..50_000).map(|i| i as f32).collect();
        // Between two of the pieces that are hashed.
        data[1000] = last;
        Tensor::from_slice(&[50_000], &data).unwrap()
    }

    fn sum(a: Tensor, b: Tensor) -> (Draft, carafe_graph::Value, carafe_graph::Value) {
        let mut d = Draft::new();
        let (a, b) = (d.model.constant("a", a).unwrap(), d.model.constant("b", b).unwrap());
        let s = d.add("sum", Add::default(), &[a, b]);
        d.result(s);
        (d, a, b)
    }

    #[test]
    fn equal_bytes_are_stored_once() {
        let (mut d, ..) = sum(large(1.0), large(1.0));
        assert_eq!((d.run(&DeduplicateConstants).0, d.count("Constant")), (1, 1));
    }

    #[test]
    fn one_element_makes_a_difference() {
        let (mut d, ..) = sum(large(1.0), large(2.0));
        assert_eq!((d.run(&DeduplicateConstants).0, d.count("Constant")), (0, 2));
    }

    #[test]
    fn marked_constants_stay() {
        let (mut d, _, b) = sum(large(1.0), large(1.0));
        d.model.rt_info_mut(b.node).mark("precise");
        let (fired, why) = d.run(&DeduplicateConstants);
        assert!(fired == 0 && why[0].contains("runtime information"), "{why:?}");
    }

    #[test]
    fn the_same_bytes_of_another_type_or_shape_stay() {
        let (mut d, ..) =
            sum(Tensor::zeros(ElementType::F32, &[2]).unwrap(), Tensor::zeros(ElementType::F32, &[1, 2]).unwrap());
        assert_eq!(d.run(&DeduplicateConstants).0, 0);
    }
}
