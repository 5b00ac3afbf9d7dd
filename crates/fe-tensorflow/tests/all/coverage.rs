//! Every rule has a case: the graphs under tests/data hold each operation of the table, and TensorFlow ran them all.

use crate::ops;
use carafe_fe_tensorflow::TensorFlow;
use carafe_frontend::Format;
use std::collections::BTreeSet;
use std::path::Path;

/// Rules that no case of TensorFlow's can stand for, and why.
const WITHOUT_CASE: &[(&str, &str)] = &[
    ("AvgPoolV2", NEVER),
    ("BatchFFT", REMOVED),
    ("BatchFFT2D", REMOVED),
    ("BatchFFT3D", REMOVED),
    ("BatchIFFT", REMOVED),
    ("BatchIFFT2D", REMOVED),
    ("BatchIFFT3D", REMOVED),
    ("BatchMatrixBandPart", REMOVED),
    ("BatchMatrixInverse", REMOVED),
    ("GatherTree", NEVER),
    ("LogicalXor", NEVER),
    ("LookupTableInsert", EFFECT),
    ("LookupTableInsertV2", EFFECT),
    ("Mish", NEVER),
    ("Swish", NEVER),
    ("TensorArrayCloseV2", REMOVED),
    ("TensorArrayConcatV2", REMOVED),
    ("TensorArrayGatherV2", REMOVED),
    ("TensorArrayReadV2", REMOVED),
    ("TensorArrayScatterV2", REMOVED),
    ("TensorArraySizeV2", REMOVED),
    ("TensorArraySplitV2", REMOVED),
    ("TensorArrayWriteV2", REMOVED),
    ("TopK", REMOVED),
    ("XlaConvV2", COMPILED),
    ("XlaDotV2", COMPILED),
    ("swish_f32", NEVER),
];
const NEVER: &str = "TensorFlow itself has no such operation: other tools write it";
const REMOVED: &str = "TensorFlow reads it in old graphs only; the rule is that of its successor, which has cases";
const COMPILED: &str = "TensorFlow runs it in compiled functions alone; `xla.rs` has cases by hand";
const EFFECT: &str = "it gives nothing";

#[test]
fn every_rule_has_a_case_that_tensorflow_ran() {
    let mut met = BTreeSet::new();
    for case in ops::cases() {
        operations(&case.graph, &mut met);
    }
    for folder in ["control", "containers"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
        for file in std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()) {
            if file.extension().is_some_and(|e| e == "pb") {
                operations(&std::fs::read(file).unwrap(), &mut met);
            }
        }
    }
    let rules = TensorFlow.rules().names();
    let excused: BTreeSet<&str> = WITHOUT_CASE.iter().map(|(op, _)| *op).collect();
    let bare: Vec<&&str> = rules.iter().filter(|op| !met.contains(**op) && !excused.contains(*op)).collect();
    assert!(bare.is_empty(), "{} of {} rules have no case: {bare:?}", bare.len(), rules.len());
    let stale: Vec<&&str> = excused.iter().filter(|op| met.contains(**op) || !rules.contains(*op)).collect();
    assert!(stale.is_empty(), "excused for nothing: {stale:?}");
}

// The operations of a GraphDef: `node` (1) of the graph, `node_def` (3) of each `function` (1) of the `library` (2).
fn operations(graph: &[u8], met: &mut BTreeSet<String>) {
    let mut nodes: Vec<&[u8]> = fields(graph, 1);
    for function in fields(graph, 2).into_iter().flat_map(|library| fields(library, 1)) {
        nodes.extend(fields(function, 3));
    }
    let ops = nodes.into_iter().flat_map(|node| fields(node, 2));
    met.extend(ops.map(|op| String::from_utf8_lossy(op).into_owned()));
}

// The messages and texts under a number.
fn fields(mut message: &[u8], number: u64) -> Vec<&[u8]> {
    let mut found = vec![];
    while !message.is_empty() {
        let key = varint(&mut message);
        let length = match key & 7 {
            0 => {
                varint(&mut message);
                continue;
            }
            1 => 8,
            5 => 4,
            _ => varint(&mut message) as usize,
        };
        let (value, rest) = message.split_at(length);
        message = rest;
        if key >> 3 == number {
            found.push(value);
        }
    }
    found
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 127) << shift;
        if first & 128 == 0 {
            break;
        }
    }
    value
}
