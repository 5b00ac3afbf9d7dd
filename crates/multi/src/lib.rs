//! Devices made of devices: HETERO splits a model over several, MULTI spreads requests over several, AUTO picks one,
//! BATCH collects requests into one larger inference. None of them knows which devices exist: whoever answers
//! [`Devices`] does, and every device behind it, a stranger's plugin too, is treated alike.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod auto;
mod batch;
mod bindings;
mod hetero;
mod json;
mod list;
mod settings;

pub use auto::AutoDevice;
pub use batch::BatchDevice;
pub use hetero::{HeteroDevice, Refused, Report, SubModelReport, affinity, set_affinity};
pub use list::{DeviceItem, DeviceList};

use carafe_device::{Device, Devices};
use std::sync::Arc;

/// The property that holds the list of `HETERO:A,B` and its kin.
pub const PRIORITIES: &str = "MULTI_DEVICE_PRIORITIES";

/// All devices of this crate, under the names they are registered by.
pub fn devices(from: Arc<dyn Devices>) -> Vec<(&'static str, Arc<dyn Device>)> {
    vec![
        ("HETERO", Arc::new(HeteroDevice::new(from.clone()))),
        ("MULTI", Arc::new(AutoDevice::multi(from.clone()))),
        ("AUTO", Arc::new(AutoDevice::auto(from.clone()))),
        ("BATCH", Arc::new(BatchDevice::new(from))),
    ]
}
