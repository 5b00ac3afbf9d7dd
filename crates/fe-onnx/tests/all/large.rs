//! Models of more than two and four gigabytes, which is where 32-bit lengths end. The files are sparse: they take no room,
//! and only the pages that are looked at are read.

use crate::common::{Folder, proto};
use carafe_graph::{Constant, Model};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

const ROWS: u64 = 1_200_000;
/// Bytes of f32 [ROWS, 1024]: 4.9 GB.
const BYTES: u64 = ROWS * 4096;

#[track_caller]
fn check_last_value(model: &Model) {
    let (_, node) = model.nodes().find(|(_, n)| n.op().get::<Constant>().is_some()).unwrap();
    let tensor = node.op().get::<Constant>().unwrap().tensor();
    assert_eq!(tensor.shape(), [ROWS as usize, 1024]);
    assert_eq!(tensor.bytes()[BYTES as usize - 4..], 7.5f32.to_le_bytes());
}

#[test]
fn external_data_above_four_gigabytes_is_read() {
    let folder = Folder::new("large-external");
    let dims = format!("dims: {ROWS} dims: 1024 data_type: FLOAT");
    let position = "external_data { key: 'location' value: 'w.bin' } external_data { key: 'offset' value: '4096' }";
    folder.write(
        "m.pbtxt",
        proto(&format!("initializer {{ name: 'w' {dims} data_location: EXTERNAL {position} }} output {{ name: 'w' }}")),
    );
    let mut data = File::create(folder.0.join("w.bin")).unwrap();
    data.set_len(4096 + BYTES).unwrap();
    data.seek(SeekFrom::Start(4096 + BYTES - 4)).unwrap();
    data.write_all(&7.5f32.to_le_bytes()).unwrap();
    check_last_value(&folder.read("m.pbtxt").unwrap());
}

#[test]
fn a_protobuf_file_above_four_gigabytes_is_read() {
    let folder = Folder::new("large-protobuf");
    // tensor: dims, data_type, name, then raw_data up to the end of the tensor.
    let mut tensor = [field(1, &varint(ROWS)), field(1, &varint(1024)), field(2, &varint(1))].concat();
    tensor.extend(lengths(8, 1));
    tensor.push(b'w');
    tensor.extend(lengths(9, BYTES));
    let output = [lengths(12, 3), lengths(1, 1), vec![b'w']].concat();
    let tensor_bytes = tensor.len() as u64 + BYTES;
    let graph = lengths(5, tensor_bytes);
    let graph_bytes = graph.len() as u64 + tensor_bytes + output.len() as u64;
    let head = [field(1, &varint(8)), lengths(7, graph_bytes), graph, tensor].concat();
    let tail = [output, lengths(8, 2), vec![0x10, 17]].concat();
    let mut file = File::create(folder.0.join("m.onnx")).unwrap();
    file.write_all(&head).unwrap();
    file.seek(SeekFrom::Current(BYTES as i64 - 4)).unwrap();
    file.write_all(&[7.5f32.to_le_bytes().as_slice(), &tail].concat()).unwrap();
    check_last_value(&folder.read("m.onnx").unwrap());
}

fn varint(mut n: u64) -> Vec<u8> {
    let mut out = vec![];
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

fn field(number: u64, value: &[u8]) -> Vec<u8> {
    [varint(number << 3), value.to_vec()].concat()
}

// Key and length of a field whose content follows.
fn lengths(number: u64, length: u64) -> Vec<u8> {
    [varint(number << 3 | 2), varint(length)].concat()
}
