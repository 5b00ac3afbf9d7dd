//! Files of a few lines, written by a small encoder of flatbuffers.

use carafe_fe_tflite::TfLite;
use carafe_frontend::ReadRequest;
use carafe_graph::Model;
use carafe_tensor::SharedBytes;

/// A field of a table.
#[derive(Clone)]
pub(crate) enum Field {
    /// A number of any width, its bytes.
    Number(Vec<u8>),
    Str(String),
    /// Elements, and the bytes of all of them.
    Vector(usize, Vec<u8>),
    Table(Table),
    Tables(Vec<Table>),
}

/// A table: fields by their numbers.
#[derive(Clone, Default)]
pub(crate) struct Table(Vec<(usize, Field)>);

impl Table {
    pub(crate) fn new() -> Table {
        Table::default()
    }
    fn with(mut self, id: usize, field: Field) -> Table {
        self.0.retain(|(i, _)| *i != id);
        self.0.push((id, field));
        self
    }
    pub(crate) fn byte(self, id: usize, value: u8) -> Table {
        self.with(id, Field::Number(vec![value]))
    }
    pub(crate) fn int(self, id: usize, value: i32) -> Table {
        self.with(id, Field::Number(value.to_le_bytes().to_vec()))
    }
    pub(crate) fn long(self, id: usize, value: u64) -> Table {
        self.with(id, Field::Number(value.to_le_bytes().to_vec()))
    }
    pub(crate) fn str(self, id: usize, text: &str) -> Table {
        self.with(id, Field::Str(text.to_string()))
    }
    pub(crate) fn bytes(self, id: usize, bytes: &[u8]) -> Table {
        self.with(id, Field::Vector(bytes.len(), bytes.to_vec()))
    }
    pub(crate) fn ints(self, id: usize, values: &[i32]) -> Table {
        self.with(id, Field::Vector(values.len(), values.iter().flat_map(|v| v.to_le_bytes()).collect()))
    }
    pub(crate) fn longs(self, id: usize, values: &[i64]) -> Table {
        self.with(id, Field::Vector(values.len(), values.iter().flat_map(|v| v.to_le_bytes()).collect()))
    }
    pub(crate) fn floats(self, id: usize, values: &[f32]) -> Table {
        self.with(id, Field::Vector(values.len(), values.iter().flat_map(|v| v.to_le_bytes()).collect()))
    }
    pub(crate) fn table(self, id: usize, table: Table) -> Table {
        self.with(id, Field::Table(table))
    }
    pub(crate) fn tables(self, id: usize, tables: &[Table]) -> Table {
        self.with(id, Field::Tables(tables.to_vec()))
    }

    // Its position: the vtable stands in front of it, what it points to behind it.
    fn write(&self, out: &mut Vec<u8>) -> usize {
        let n = self.0.iter().map(|(id, _)| id + 1).max().unwrap_or(0);
        let vtable = out.len();
        let mut offsets = vec![0u16; n];
        for (slot, (id, _)) in self.0.iter().enumerate() {
            offsets[*id] = (4 + 8 * slot) as u16;
        }
        let head = [(4 + 2 * n) as u16, (4 + 8 * self.0.len()) as u16];
        out.extend(head.into_iter().chain(offsets).flat_map(u16::to_le_bytes));
        let at = out.len();
        out.extend(((at - vtable) as i32).to_le_bytes());
        let first = out.len();
        out.resize(first + 8 * self.0.len(), 0);
        for (i, (_, field)) in self.0.iter().enumerate() {
            let slot = first + 8 * i;
            let target = match field {
                Field::Number(bytes) => {
                    out[slot..slot + bytes.len()].copy_from_slice(bytes);
                    continue;
                }
                Field::Str(text) => vector(text.len(), text.as_bytes(), out),
                Field::Vector(n, bytes) => vector(*n, bytes, out),
                Field::Table(table) => table.write(out),
                Field::Tables(tables) => {
                    let at = vector(tables.len(), &vec![0; 4 * tables.len()], out);
                    for (i, table) in tables.iter().enumerate() {
                        let target = table.write(out);
                        point(out, at + 4 + 4 * i, target);
                    }
                    at
                }
            };
            point(out, slot, target);
        }
        at
    }
}

fn vector(n: usize, bytes: &[u8], out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend((n as u32).to_le_bytes());
    out.extend(bytes);
    at
}

fn point(out: &mut [u8], slot: usize, target: usize) {
    out[slot..slot + 4].copy_from_slice(&((target - slot) as u32).to_le_bytes());
}

/// A file with this root.
pub(crate) fn file(root: &Table) -> Vec<u8> {
    let mut out = b"\0\0\0\0TFL3".to_vec();
    let at = root.write(&mut out);
    out[..4].copy_from_slice(&(at as u32).to_le_bytes());
    out
}

/// A builtin operator by its code.
pub(crate) fn code(builtin: i32) -> Table {
    Table::new().byte(0, builtin.min(127) as u8).int(3, builtin)
}

/// A float tensor.
pub(crate) fn tensor(name: &str, shape: &[i32], buffer: i32) -> Table {
    Table::new().ints(0, shape).int(2, buffer).str(3, name)
}

/// An operator by the index of its code.
pub(crate) fn operator(code: i32, inputs: &[i32], outputs: &[i32]) -> Table {
    Table::new().int(0, code).ints(1, inputs).ints(2, outputs)
}

/// A graph from its first tensor to its last.
pub(crate) fn subgraph(tensors: &[Table], operators: &[Table]) -> Table {
    let last = tensors.len() as i32 - 1;
    Table::new().tables(0, tensors).ints(1, &[0]).ints(2, &[last]).tables(3, operators)
}

/// A model of graphs; buffer 0 is empty, as it is in every file.
pub(crate) fn model(codes: &[Table], graphs: &[Table], buffers: &[Table]) -> Table {
    let buffers = [&[Table::new()], buffers].concat();
    Table::new().int(0, 3).tables(1, codes).tables(2, graphs).tables(4, &buffers)
}

/// Reads a file, and looks whether what was read is sound.
pub(crate) fn read(bytes: impl AsRef<[u8]>) -> Result<Model, String> {
    let bytes = SharedBytes::from_vec(bytes.as_ref().to_vec());
    let model = carafe_frontend::read(&TfLite, &ReadRequest::from_bytes(&bytes));
    let mut model = model.map_err(|e| e.to_string())?;
    carafe_graph::verify(&model).unwrap_or_else(|e| panic!("not a sound model: {e}"));
    model.infer().unwrap_or_else(|e| panic!("inference fails again: {e}"));
    Ok(model)
}

#[track_caller]
pub(crate) fn check_error(root: &Table, wanted: &str) {
    let found = read(file(root)).expect_err("the file must be refused");
    assert!(found.contains(wanted), "wanted `{wanted}`, found `{found}`");
}
