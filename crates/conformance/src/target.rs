//! What is judged: a device by name, and how to come by a `Core` that has it. Every check gets a `Core` of its own, so
//! that no check changes what another sees and the last owner of a `Core` can be watched going.

use carafe::{Core, Properties, Result};
use std::fmt;
use std::time::Duration;

/// A device to judge.
pub struct Target {
    pub device: String,
    /// Given with every compilation.
    pub properties: Properties,
    /// A check that takes longer has failed.
    pub patience: Duration,
    make_core: Box<dyn Fn() -> Result<Core> + Send + Sync>,
}

impl Target {
    pub fn new(device: &str, make_core: impl Fn() -> Result<Core> + Send + Sync + 'static) -> Target {
        Target {
            device: device.to_string(),
            properties: Properties::new(),
            patience: Duration::from_secs(120),
            make_core: Box::new(make_core),
        }
    }
    pub fn core(&self) -> Result<Core> {
        (self.make_core)()
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({})", self.device)
    }
}
