//! Files that are cut or changed anywhere: no panic, no endless work, and an error or a model that is sound.

use crate::common::{check_error, graph, node, read};
use carafe_fe_tensorflow::TensorFlow;
use carafe_frontend::Format;

const FROZEN: &[u8] = include_bytes!("../data/containers/frozen.pb");
const TEXT: &[u8] = include_bytes!("../data/containers/frozen.pbtxt");
const META: &[u8] = include_bytes!("../data/containers/checkpoint_resource/model.ckpt.meta");
const SAVED: &[u8] = include_bytes!("../data/containers/saved_model_v2/saved_model.pb");

fn sound(found: Result<carafe_graph::Model, String>) {
    if let Err(e) = found {
        let is_bug = e.contains("not a sound model") || e.contains("inference fails again");
        assert!(!is_bug && !e.contains("panicked"), "{e}");
    }
}

// As many places as are tried within seconds.
fn places(length: usize, most: usize) -> impl Iterator<Item = usize> {
    (0..length).step_by(length.div_ceil(most))
}

#[test]
fn a_file_cut_anywhere_is_refused_or_sound() {
    for whole in [FROZEN, TEXT, META, SAVED] {
        for end in places(whole.len(), 600) {
            TensorFlow.recognizes(&whole[..end]);
            sound(read(&whole[..end]));
        }
    }
}

#[test]
fn a_changed_byte_is_refused_or_sound() {
    for whole in [FROZEN, TEXT, META, SAVED] {
        for at in places(whole.len(), 300) {
            for change in [0x01, 0x80, 0xff] {
                let mut bytes = whole.to_vec();
                bytes[at] ^= change;
                TensorFlow.recognizes(&bytes);
                sound(read(bytes));
            }
        }
    }
}

#[test]
fn what_is_no_model_says_so() {
    check_error(b"", "no nodes");
    check_error([0xff; 64], "not a valid TensorFlow graph");
    check_error(&FROZEN[..FROZEN.len() - 3], "not a valid TensorFlow graph");
    check_error(b"node { name: 'x'", "line 1");
    check_error(b"node { name: 'x' nonsense: 1 }", "nonsense");
    check_error([&b"node { name: '"[..], &[0xc3, 0x28], b"' }"].concat(), "UTF-8");
}

#[test]
fn text_that_is_nested_without_end_is_refused() {
    let deep = |n: usize| {
        format!("node {{ attr {{ value {} {} }} }}", "{ list { func { attr { value ".repeat(n), "} } } }".repeat(n))
    };
    assert!(read(deep(10_000)).is_err());
    assert!(read("node { ".repeat(100_000)).is_err());
}

#[test]
fn messages_that_are_nested_without_end_are_refused() {
    let mut value = crate::common::Proto::new().int(3, 1);
    for _ in 0..2000 {
        let attr = crate::common::Proto::new().bytes(1, "a").message(2, value);
        value = crate::common::Proto::new().message(10, crate::common::Proto::new().bytes(1, "f").message(2, attr));
    }
    check_error(graph(&[node("x", "Neg", &[], &[("a", value)])]).0, "not a valid TensorFlow graph");
}
