//! The kernels that a device behind a table was given, kept as long as it or a model that it compiled may use them. No lock is
//! held while the device is called: a set that was replaced stays until no call is under way.

use crate::kernel_export::{KernelTable, Operations};
use crate::tables::CarafeKernel;
use carafe_device::Kernel;
use carafe_graph::Result;
use std::sync::{Arc, Mutex, MutexGuard};

/// Kernels that were given together.
pub(crate) struct KernelSet {
    tables: Vec<CarafeKernel>,
    _owners: Vec<KernelTable>,
}

// SAFETY: the tables are copies of those of the owners, which may be sent and shared.
unsafe impl Send for KernelSet {}
// SAFETY: as above.
unsafe impl Sync for KernelSet {}

/// All sets that the device may use now, the newest last.
#[derive(Default)]
pub(crate) struct KernelSets {
    held: Mutex<Held>,
    /// Whoever gives a set is alone in it, so that the newest here is the newest there.
    giving: Mutex<()>,
}

#[derive(Default)]
struct Held {
    sets: Vec<Arc<KernelSet>>,
    calls: usize,
}

impl KernelSets {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Keeps every set while the device is called.
    pub(crate) fn call(&self) -> Call<'_> {
        self.held().calls += 1;
        Call(self)
    }

    /// Makes tables of the kernels and lets `give` hand them to the device, which keeps the old ones when that fails. A device
    /// that never had any does not hear of none.
    pub(crate) fn give(
        &self,
        device: &str,
        kernels: &[Arc<dyn Kernel>],
        operations: &Operations,
        give: impl FnOnce(&[CarafeKernel]) -> Result<()>,
    ) -> Result<()> {
        let _alone = self.giving.lock().unwrap_or_else(|e| e.into_inner());
        if kernels.is_empty() && self.held().sets.is_empty() {
            return Ok(());
        }
        let _call = self.call();
        let owners: Vec<KernelTable> =
            kernels.iter().map(|k| KernelTable::new(device, k.clone(), operations.clone())).collect();
        let set = Arc::new(KernelSet { tables: owners.iter().map(|o| o.table).collect(), _owners: owners });
        self.held().sets.push(set.clone());
        let given = give(&set.tables);
        if given.is_err() {
            self.held().sets.retain(|s| !Arc::ptr_eq(s, &set));
        }
        given
    }
}

/// While it lives, no set goes.
pub(crate) struct Call<'a>(&'a KernelSets);

impl Call<'_> {
    /// The sets that the device may have used in this call.
    pub(crate) fn sets(&self) -> Vec<Arc<KernelSet>> {
        self.0.held().sets.clone()
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut held = self.0.held();
        held.calls -= 1;
        if held.calls == 0 {
            let old = held.sets.len().saturating_sub(1);
            let gone: Vec<_> = held.sets.drain(..old).collect();
            // A kernel may end with it, which is no work to do under a lock.
            drop(held);
            drop(gone);
        }
    }
}
