//! Finds an operation by file type and opset. Layers are asked in order and the first that answers wins, so what a user
//! registers stands in front of what is built in.

use crate::attr::AttrMap;
use crate::error::Result;
use crate::op::{Op, OpInfo, OpNew};
use std::collections::HashMap;
use std::sync::Arc;

/// Makes one kind of operation from attributes.
#[derive(Clone)]
pub struct OpFactory {
    /// What the operation declares.
    pub info: &'static OpInfo,
    create: Arc<dyn Fn(&AttrMap) -> Result<Arc<dyn Op>> + Send + Sync>,
}

impl OpFactory {
    /// Of an operation's type.
    pub fn of<T: OpNew>() -> OpFactory {
        OpFactory::with(T::INFO, |attrs| Ok(Arc::new(T::from_attrs(attrs)?)))
    }
    // A function, so that what holds it is the same for all operations.
    fn with(info: &'static OpInfo, create: fn(&AttrMap) -> Result<Arc<dyn Op>>) -> OpFactory {
        OpFactory { info, create: Arc::new(create) }
    }
    /// A factory whose operation type is only known at run time.
    pub fn from_fn(
        info: &'static OpInfo,
        create: impl Fn(&AttrMap) -> Result<Arc<dyn Op>> + Send + Sync + 'static,
    ) -> OpFactory {
        OpFactory { info, create: Arc::new(create) }
    }
    /// An operation with these attributes.
    pub fn create(&self, attrs: &AttrMap) -> Result<Arc<dyn Op>> {
        (self.create)(attrs)
    }
}

impl std::fmt::Debug for OpFactory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpFactory({} {})", self.info.opset, self.info.name)
    }
}

/// Number of the newest opset that is known.
pub const NEWEST_OPSET: u32 = 17;

/// All operations a reader may meet.
#[derive(Clone, Default, Debug)]
pub struct Registry {
    // Lower-case type name to classes; later registrations come first.
    by_name: HashMap<String, Vec<OpFactory>>,
}

impl Registry {
    /// Without operations.
    pub fn new() -> Registry {
        Registry::default()
    }
    /// Registers in front of everything of the same name.
    pub fn add(&mut self, factory: OpFactory) {
        for name in [factory.info.name, factory.info.xml_name] {
            let list = self.by_name.entry(name.to_ascii_lowercase()).or_default();
            if !list.iter().any(|f| std::ptr::eq(f.info, factory.info)) {
                list.insert(0, factory.clone());
            }
        }
    }
    /// Adds operations in front of those of the same name.
    pub fn add_all(&mut self, factories: impl IntoIterator<Item = OpFactory>) {
        for f in factories {
            self.add(f);
        }
    }
    /// The class for `type` in `opset` (`opset8`, or an extension's name). Letter case of the type does not matter.
    pub fn find(&self, type_name: &str, opset: &str) -> Option<&OpFactory> {
        let list = self.by_name.get(&type_name.to_ascii_lowercase())?;
        if let Some(f) = list.iter().find(|f| f.info.opset == opset && f.info.since == 0) {
            return Some(f);
        }
        let number = opset.strip_prefix("opset").and_then(|n| n.parse::<u32>().ok());
        let numbered = number.and_then(|n| list.iter().find(|f| f.info.since > 0 && f.info.in_opset(n)));
        numbered.or_else(|| list.iter().find(|f| f.info.also.contains(&opset)))
    }
    /// What was registered in front of a class of the numbered opsets: an operation of its name in one of its opsets.
    pub fn in_front_of(&self, info: &OpInfo) -> Option<&OpFactory> {
        if info.since == 0 {
            return None;
        }
        let is_one = |f: &&OpFactory| match f.info.since {
            0 => f.info.opset.strip_prefix("opset").and_then(|n| n.parse().ok()).is_some_and(|n| info.in_opset(n)),
            _ => f.info.in_opset(info.since),
        };
        let list = self.by_name.get(&info.xml_name.to_ascii_lowercase())?;
        list.iter().take_while(|f| !std::ptr::eq(f.info, info)).find(is_one)
    }
    /// The newest class of that name, whatever its opset.
    pub fn newest(&self, type_name: &str) -> Option<&OpFactory> {
        let list = self.by_name.get(&type_name.to_ascii_lowercase())?;
        list.iter().find(|f| f.info.since == 0).or_else(|| list.iter().max_by_key(|f| f.info.since))
    }
    /// Whether any operation belongs to an opset of that name.
    pub fn knows_opset(&self, opset: &str) -> bool {
        let numbered = opset.strip_prefix("opset").and_then(|n| n.parse::<u32>().ok());
        numbered.is_some_and(|n| (1..=NEWEST_OPSET).contains(&n))
            || self.by_name.values().flatten().any(|f| f.info.opset == opset)
    }
    /// Every class once, by name and opset.
    pub fn all(&self) -> Vec<&OpFactory> {
        let mut v: Vec<&OpFactory> = self.by_name.values().flatten().collect();
        crate::sort::sort_by_key(&mut v, |f| (f.info.name, f.info.since, f.info.opset));
        v.dedup_by_key(|f| f.info as *const OpInfo);
        v
    }
    /// Known type names that look like `name`, nearest first.
    pub fn near(&self, name: &str) -> Vec<&'static str> {
        let wanted = name.to_ascii_lowercase();
        let mut found: Vec<(usize, &'static str)> = self
            .all()
            .into_iter()
            .map(|f| (edit_distance(&wanted, &f.info.name.to_ascii_lowercase()), f.info.name))
            .filter(|(d, n)| *d <= 1 + n.len().min(wanted.len()) / 4)
            .collect();
        found.sort_unstable();
        found.dedup();
        found.into_iter().take(3).map(|(_, n)| n).collect()
    }
}

/// How many letters must be added, taken away or changed to make one name of the other. Looks at the first 64.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for j in 0..b.len() {
            let next = (diagonal + usize::from(ca != b[j])).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.len()]
}
