//! Free information that travels with nodes, ports and models and does not change what they compute.

/// A key with a value, children, or both; the model-level tree and user data have this form.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RtTree {
    /// Name of the entry.
    pub key: String,
    /// Its text, unless it only has children.
    pub value: Option<String>,
    /// Entries below it.
    pub children: Vec<RtTree>,
}

impl RtTree {
    /// An entry with a text.
    pub fn leaf(key: impl Into<String>, value: impl Into<String>) -> RtTree {
        RtTree { key: key.into(), value: Some(value.into()), children: vec![] }
    }
    /// An entry with entries below it.
    pub fn branch(key: impl Into<String>, children: Vec<RtTree>) -> RtTree {
        RtTree { key: key.into(), value: None, children }
    }
    /// The entry below it of this name.
    pub fn child(&self, key: &str) -> Option<&RtTree> {
        self.children.iter().find(|c| c.key == key)
    }
}

/// A named attribute such as `decompression` or `layout`, with its own fields.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RtAttribute {
    /// Name of the attribute.
    pub name: String,
    /// Version of its form.
    pub version: String,
    /// Its fields as text.
    pub fields: Vec<(String, String)>,
}

/// Everything attached to one node or port.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RtInfo {
    /// All attributes.
    pub attributes: Vec<RtAttribute>,
    /// What users wrote into it, kept as it is.
    pub user: Vec<RtTree>,
}

impl RtInfo {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty() && self.user.is_empty()
    }
    /// The attribute of this name.
    pub fn get(&self, name: &str) -> Option<&RtAttribute> {
        self.attributes.iter().find(|a| a.name == name)
    }
    /// Whether there is an attribute of this name.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
    /// Adds the attribute, or replaces the one of that name.
    pub fn set(&mut self, name: impl Into<String>, version: &str, fields: Vec<(String, String)>) {
        let new = RtAttribute { name: name.into(), version: version.into(), fields };
        match self.attributes.iter_mut().find(|a| a.name == new.name) {
            Some(a) => *a = new,
            None => self.attributes.push(new),
        }
    }
    /// A marker attribute without fields, version 0.
    pub fn mark(&mut self, name: &str) {
        self.set(name, "0", vec![]);
    }
    /// Takes over what is not here yet.
    pub fn extend_missing(&mut self, other: &RtInfo) {
        for a in &other.attributes {
            if !self.has(&a.name) {
                self.attributes.push(a.clone());
            }
        }
        for t in &other.user {
            if self.user.iter().all(|u| u.key != t.key) {
                self.user.push(t.clone());
            }
        }
    }
    /// Takes the attribute of this name out.
    pub fn remove(&mut self, name: &str) {
        self.attributes.retain(|a| a.name != name);
    }
}
