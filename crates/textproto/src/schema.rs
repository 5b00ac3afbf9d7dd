//! What a message type holds: the names, numbers and kinds of its fields, as its `.proto` file says.

/// A message type.
#[derive(Debug)]
pub struct Schema {
    /// Name for messages, e.g. `NodeProto`.
    pub name: &'static str,
    pub fields: &'static [FieldInfo],
}

/// One field of a message type.
#[derive(Clone, Copy, Debug)]
pub struct FieldInfo {
    pub name: &'static str,
    pub number: u32,
    pub kind: Kind,
}

/// What a field holds, and with it how the bytes look.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `int32`, `int64`, `uint32`, `uint64`: no zigzag.
    Int,
    Bool,
    Float,
    Double,
    Str,
    Bytes,
    /// Words and their numbers.
    Enum(&'static [(&'static str, i32)]),
    Message(&'static Schema),
    /// Anything; it is left out.
    Skip,
}

impl FieldInfo {
    pub const fn new(name: &'static str, number: u32, kind: Kind) -> FieldInfo {
        FieldInfo { name, number, kind }
    }
}

impl Schema {
    /// A field by its name as the `.proto` file has it, or as JSON has it (`irVersion`).
    pub fn field(&self, name: &str) -> Option<&'static FieldInfo> {
        self.fields.iter().find(|f| f.name == name || is_camel_of(name, f.name))
    }
}

fn is_camel_of(camel: &str, snake: &str) -> bool {
    let mut wanted = String::with_capacity(snake.len());
    let mut upper = false;
    for c in snake.chars() {
        match c {
            '_' => upper = true,
            c => {
                wanted.push(if std::mem::take(&mut upper) { c.to_ascii_uppercase() } else { c });
            }
        }
    }
    camel == wanted
}
