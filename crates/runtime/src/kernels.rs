//! Kernels of extensions on their way to devices: trouble of one is reported, once.

use crate::log::Reporter;
use carafe_abi::Extension;
use carafe_device::{Config, Kernel, PreparedKernel, Site};
use carafe_graph::Result;
use std::sync::Arc;

/// The kernels of these extensions for the name of a device, as it gets them.
pub(crate) fn kernels_of(extensions: &[Extension], device: &str, reporter: &Arc<Reporter>) -> Vec<Arc<dyn Kernel>> {
    let watched = |e: &Extension, kernel: &Arc<dyn Kernel>| -> Arc<dyn Kernel> {
        Arc::new(Watched { extension: e.name.clone(), kernel: kernel.clone(), reporter: reporter.clone() })
    };
    let all = extensions.iter().flat_map(|e| e.kernels.iter().map(move |k| (e, k)));
    all.filter(|(_, k)| k.device() == device).map(|(e, k)| watched(e, k)).collect()
}

struct Watched {
    extension: String,
    kernel: Arc<dyn Kernel>,
    reporter: Arc<Reporter>,
}

impl Kernel for Watched {
    fn device(&self) -> &str {
        self.kernel.device()
    }
    fn op(&self) -> &str {
        self.kernel.op()
    }
    fn opset(&self) -> Option<&str> {
        self.kernel.opset()
    }
    fn name(&self) -> &str {
        self.kernel.name()
    }
    fn library(&self) -> Option<&str> {
        self.kernel.library()
    }
    fn fuses(&self) -> bool {
        self.kernel.fuses()
    }
    fn configs(&self, site: &Site) -> Result<Vec<Config>> {
        self.kernel.configs(site)
    }
    fn init(&self, site: &Site, config: usize) -> Result<Box<dyn PreparedKernel>> {
        self.kernel.init(site, config)
    }
    fn report(&self, site: &Site, trouble: &str) {
        let (name, device) = (self.name(), self.device());
        self.reporter.warn_once(format!("{}/{name}/{device}: {trouble}", self.extension), || {
            format!(
                "extension `{}`: kernel `{name}` cannot run node `{}` ({}) on {device}: {trouble}; the device runs it without",
                self.extension, site.name, site.op_type
            )
        });
    }
}
