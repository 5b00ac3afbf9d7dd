//! Nets of a few lines of text, and weights written by a small encoder.

#![allow(dead_code)]

use carafe_fe_caffe::Caffe;
use carafe_frontend::{Content, Format, ReadRequest};
use carafe_graph::Model;
use carafe_tensor::{SharedBytes, Tensor};
use std::path::{Path, PathBuf};

/// A message under construction.
#[derive(Clone, Default)]
pub(crate) struct Proto(pub(crate) Vec<u8>);

impl Proto {
    pub(crate) fn new() -> Proto {
        Proto::default()
    }
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }
    pub(crate) fn int(mut self, number: u32, value: i64) -> Proto {
        self.varint(u64::from(number) << 3);
        self.varint(value as u64);
        self
    }
    pub(crate) fn float(mut self, number: u32, value: f32) -> Proto {
        self.varint(u64::from(number) << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }
    pub(crate) fn bytes(mut self, number: u32, bytes: impl AsRef<[u8]>) -> Proto {
        self.varint(u64::from(number) << 3 | 2);
        self.varint(bytes.as_ref().len() as u64);
        self.0.extend(bytes.as_ref());
        self
    }
    pub(crate) fn message(self, number: u32, m: Proto) -> Proto {
        self.bytes(number, m.0)
    }
    pub(crate) fn packed_ints(self, number: u32, values: &[i64]) -> Proto {
        let mut inner = Proto::new();
        values.iter().for_each(|v| inner.varint(*v as u64));
        self.bytes(number, inner.0)
    }
    pub(crate) fn packed_floats(self, number: u32, values: &[f32]) -> Proto {
        self.bytes(number, values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
    }
    pub(crate) fn packed_doubles(self, number: u32, values: &[f64]) -> Proto {
        self.bytes(number, values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
    }
}

/// A blob with a shape.
pub(crate) fn blob(shape: &[i64], values: &[f32]) -> Proto {
    Proto::new().packed_floats(5, values).message(7, Proto::new().packed_ints(1, shape))
}

/// A layer of a caffemodel.
pub(crate) fn layer(name: &str, ty: &str, blobs: &[Proto]) -> Proto {
    blobs.iter().fold(Proto::new().bytes(1, name).bytes(2, ty), |l, b| l.message(7, b.clone()))
}

/// A caffemodel of these layers.
pub(crate) fn weights(layers: &[Proto]) -> Vec<u8> {
    layers.iter().fold(Proto::new().bytes(1, "net"), |n, l| n.message(100, l.clone())).0
}

/// A text with an input `x` of this shape in front.
pub(crate) fn net(shape: &[i64], layers: &str) -> String {
    let dims: String = shape.iter().map(|d| format!(" dim: {d}")).collect();
    format!("name: 'net' input: 'x' input_shape {{{dims} }}\n{layers}")
}

pub(crate) fn read(text: impl AsRef<[u8]>) -> Result<Model, String> {
    read_with(text, None)
}

pub(crate) fn read_with(text: impl AsRef<[u8]>, weights: Option<Vec<u8>>) -> Result<Model, String> {
    let mut model = read_as(text, weights, &request()).map_err(|e| e.to_string())?;
    carafe_graph::verify(&model).map_err(|e| format!("not a sound model: {e}"))?;
    model.infer().map_err(|e| format!("inference fails again: {e}"))?;
    Ok(model)
}

/// A request without a net.
pub(crate) fn request() -> ReadRequest<'static> {
    ReadRequest::new(Path::new(""))
}

/// Reads a net from bytes, as a request says.
pub(crate) fn read_as(
    net: impl AsRef<[u8]>,
    weights: Option<Vec<u8>>,
    request: &ReadRequest<'_>,
) -> carafe_graph::Result<Model> {
    let net = SharedBytes::from_vec(net.as_ref().to_vec());
    let weights = weights.map(SharedBytes::from_vec);
    let weights = weights.as_ref().map(Content::Bytes);
    carafe_frontend::read(&Caffe::default(), &ReadRequest { model: Content::Bytes(&net), weights, ..*request })
}

pub(crate) fn is_caffe(head: &[u8]) -> bool {
    Caffe::default().recognizes(head)
}

/// The first output of a net for one input.
#[track_caller]
pub(crate) fn run(
    text: impl AsRef<[u8]>,
    weights: Option<Vec<u8>>,
    inputs: &[(&[usize], &[f32])],
) -> (Vec<usize>, Vec<f32>) {
    let model = read_with(text, weights).expect("the net is read");
    evaluate(&model, inputs).remove(0)
}

#[track_caller]
pub(crate) fn evaluate(model: &Model, inputs: &[(&[usize], &[f32])]) -> Vec<(Vec<usize>, Vec<f32>)> {
    let inputs: Vec<Tensor> = inputs.iter().map(|(s, v)| Tensor::from_slice(s, v).expect("an input")).collect();
    let outputs = model.evaluate(&inputs).expect("the model runs");
    outputs.iter().map(|t| (t.shape().to_vec(), t.to_vec::<f32>().expect("floats").into_owned())).collect()
}

#[track_caller]
pub(crate) fn check(found: (Vec<usize>, Vec<f32>), shape: &[usize], values: &[f32]) {
    assert_eq!(found.0, shape, "{:?}", found.1);
    let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * (1.0 + b.abs()) || a == b;
    assert!(
        found.1.len() == values.len() && found.1.iter().zip(values).all(close),
        "found {:?}\nwanted {values:?}",
        found.1
    );
}

/// One layer on one input.
#[track_caller]
pub(crate) fn check_layer(shape: &[usize], x: &[f32], layer: &str, blobs: &[Proto], wanted: (&[usize], &[f32])) {
    let dims: Vec<i64> = shape.iter().map(|d| *d as i64).collect();
    let text = net(&dims, &format!("layer {{ name: 'l' bottom: 'x' top: 'y' {layer} }}"));
    let weights = (!blobs.is_empty()).then(|| weights(&[self::layer("l", "", blobs)]));
    check(run(text, weights, &[(shape, x)]), wanted.0, wanted.1);
}

#[track_caller]
pub(crate) fn check_error(text: impl AsRef<[u8]>, wanted: &str) {
    let found = read(text).expect_err("the net must be refused");
    assert!(found.contains(wanted), "wanted `{wanted}`, found `{found}`");
}

/// One layer on an input that must be refused.
#[track_caller]
pub(crate) fn check_layer_error(shape: &[i64], layer: &str, blobs: &[Proto], wanted: &str) {
    let text = net(shape, &format!("layer {{ name: 'l' bottom: 'x' top: 'y' {layer} }}"));
    let weights = (!blobs.is_empty()).then(|| weights(&[self::layer("l", "", blobs)]));
    let found = read_with(text, weights).expect_err("the net must be refused");
    assert!(found.contains(wanted), "wanted `{wanted}`, found `{found}`");
}

/// A folder of its own for one test, removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("carafe-fe-caffe-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).expect("a file in a temporary folder");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
