//! Kernels of extensions on their way to devices: what troubles one is told to the user, once.

use carafe_abi::Extension;
use carafe_device::{Config, Kernel, PreparedKernel, Site};
use carafe_graph::Result;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};

type Hook = Arc<dyn Fn(&str) + Send + Sync>;

/// Who hears of troubles, and what was told already.
#[derive(Default)]
pub(crate) struct Listener {
    hook: Mutex<Option<Hook>>,
    told: Mutex<HashSet<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Listener {
    pub(crate) fn set(&self, hook: Hook) {
        *lock(&self.hook) = Some(hook);
    }
    // A trouble of one kernel is told for the first node that has it.
    fn tell(&self, what: String, text: impl FnOnce() -> String) {
        let hook = lock(&self.hook).clone();
        if let Some(hook) = hook.filter(|_| lock(&self.told).insert(what)) {
            hook(&text());
        }
    }
}

/// The kernels of these extensions for the name of a device, as it gets them.
pub(crate) fn kernels_of(extensions: &[Extension], device: &str, listener: &Arc<Listener>) -> Vec<Arc<dyn Kernel>> {
    let watched = |e: &Extension, kernel: &Arc<dyn Kernel>| -> Arc<dyn Kernel> {
        Arc::new(Watched { extension: e.name.clone(), kernel: kernel.clone(), listener: listener.clone() })
    };
    let all = extensions.iter().flat_map(|e| e.kernels.iter().map(move |k| (e, k)));
    all.filter(|(_, k)| k.device() == device).map(|(e, k)| watched(e, k)).collect()
}

struct Watched {
    extension: String,
    kernel: Arc<dyn Kernel>,
    listener: Arc<Listener>,
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
    fn configs(&self, site: &Site) -> Result<Vec<Config>> {
        self.kernel.configs(site)
    }
    fn init(&self, site: &Site, config: usize) -> Result<Box<dyn PreparedKernel>> {
        self.kernel.init(site, config)
    }
    fn report(&self, site: &Site, trouble: &str) {
        let (name, device) = (self.name(), self.device());
        self.listener.tell(format!("{}/{name}/{device}: {trouble}", self.extension), || {
            format!(
                "extension `{}`: kernel `{name}` cannot run node `{}` ({}) on {device}: {trouble}; the device runs it without",
                self.extension, site.name, site.op_type
            )
        });
    }
}
