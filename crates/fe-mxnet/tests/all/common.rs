//! Symbols of a few lines, and files of arrays written record by record.

use carafe::{Core, FormatOptions, Model, ReadRequest, Result, SharedBytes, Tensor};
use std::path::{Path, PathBuf};

/// `y = x * w`, where `w` is an array.
pub(crate) const SCALE: &str = r#"{"nodes": [
    {"op": "null", "name": "x", "attrs": {"__shape__": "(2,)"}, "inputs": []},
    {"op": "null", "name": "w", "inputs": []},
    {"op": "elemwise_mul", "name": "y", "inputs": [[0, 0, 0], [1, 0, 0]]}
], "arg_nodes": [0, 1], "heads": [[2, 0, 0]], "attrs": {"mxnet_version": ["int", 10500]}}"#;

/// Layouts of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Version {
    V0,
    V1,
    V2,
    V3,
}

/// One array of a version, with its bytes.
pub(crate) fn record(version: Version, shape: &[i64], flag: i32, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![];
    match version {
        Version::V0 => {
            out.extend((shape.len() as u32).to_le_bytes());
            shape.iter().for_each(|d| out.extend((*d as u32).to_le_bytes()));
        }
        Version::V1 => {
            out.extend(0xF993_FAC8u32.to_le_bytes());
            out.extend((shape.len() as u32).to_le_bytes());
            shape.iter().for_each(|d| out.extend(d.to_le_bytes()));
        }
        Version::V2 | Version::V3 => {
            let magic = if matches!(version, Version::V2) { 0xF993_FAC9u32 } else { 0xF993_FACA };
            out.extend(magic.to_le_bytes());
            out.extend(0i32.to_le_bytes());
            out.extend((shape.len() as i32).to_le_bytes());
            shape.iter().for_each(|d| out.extend(d.to_le_bytes()));
        }
    }
    [1i32, 0, flag].iter().for_each(|n| out.extend(n.to_le_bytes()));
    out.extend(bytes);
    out
}

/// A file of records with names.
pub(crate) fn file(records: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = vec![];
    [0x112u64, 0, records.len() as u64].iter().for_each(|n| out.extend(n.to_le_bytes()));
    records.iter().for_each(|(_, r)| out.extend(r));
    out.extend((records.len() as u64).to_le_bytes());
    for (name, _) in records {
        out.extend((name.len() as u64).to_le_bytes());
        out.extend(name.as_bytes());
    }
    out
}

/// Floats as a record of version 2.
pub(crate) fn floats(values: &[f32]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    record(Version::V2, &[values.len() as i64], 0, &bytes)
}

/// Reads a symbol and arrays out of memory.
pub(crate) fn read(symbol: &str, params: Option<&[u8]>) -> Result<Model> {
    let symbol = SharedBytes::from_vec(symbol.as_bytes().to_vec());
    let params = params.map(|p| SharedBytes::from_vec(p.to_vec()));
    let request =
        ReadRequest { weights: params.as_ref().map(carafe::Content::Bytes), ..ReadRequest::from_bytes(&symbol) };
    carafe::core().read(&request)
}

/// Reads a file with options.
pub(crate) fn read_file(core: &Core, path: &Path, options: &[(&str, &str)]) -> Result<Model> {
    let mut given = FormatOptions::default();
    for (name, value) in options {
        given.set(*name, *value);
    }
    core.read(&ReadRequest { options: Some(&given), ..ReadRequest::new(path) })
}

/// What a model of one input gives for two numbers.
pub(crate) fn run(model: &Model, x: [f32; 2]) -> Vec<f32> {
    let outputs = model.evaluate(&[Tensor::from_slice(&[2], &x).unwrap()]).unwrap();
    outputs[0].to_vec::<f32>().unwrap().into_owned()
}

/// A folder that is gone after the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("carafe-fe-mxnet-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
