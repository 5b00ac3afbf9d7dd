//! Free information that travels with nodes, ports and models and does not change what they compute.

/// A key with a value, children, or both; the model-level tree and user data have this form.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RtTree {
    pub key: String,
    pub value: Option<String>,
    pub children: Vec<RtTree>,
}

impl RtTree {
    pub fn leaf(key: impl Into<String>, value: impl Into<String>) -> RtTree {
        RtTree { key: key.into(), value: Some(value.into()), children: vec![] }
    }
    pub fn branch(key: impl Into<String>, children: Vec<RtTree>) -> RtTree {
        RtTree { key: key.into(), value: None, children }
    }
    pub fn child(&self, key: &str) -> Option<&RtTree> {
        self.children.iter().find(|c| c.key == key)
    }
}

/// A named attribute such as `decompression` or `layout`, with its own fields.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RtAttribute {
    pub name: String,
    pub version: String,
    pub fields: Vec<(String, String)>,
}

/// Everything attached to one node or port.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RtInfo {
    pub attributes: Vec<RtAttribute>,
    pub user: Vec<RtTree>,
}

impl RtInfo {
    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty() && self.user.is_empty()
    }
    pub fn get(&self, name: &str) -> Option<&RtAttribute> {
        self.attributes.iter().find(|a| a.name == name)
    }
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
    pub fn remove(&mut self, name: &str) {
        self.attributes.retain(|a| a.name != name);
    }
}
