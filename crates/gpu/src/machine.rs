//! The OpenCL devices of this machine, looked for once. Each has one context for the process, opened when it is first used, so
//! that programs are built once and compiled models share memory.

use crate::error::told;
use crate::programs::{Programs, text_of};
use crate::tuning::Choices;
use carafe_graph::{Error, Result};
use carafe_opencl::{Buffer, Context, Device, DeviceInfo, DeviceKind, Queue};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, Weak};

/// Regions of planned memory begin at multiples of this; devices that want more are not taken.
pub(crate) const ALIGNMENT: usize = 512;

/// A device that may not be open yet.
#[derive(Debug)]
pub(crate) struct Found {
    device: Device,
    /// The word by which DEVICE_ID means it.
    pub(crate) id: String,
    open: OnceLock<std::result::Result<Arc<Machine>, String>>,
}

/// An open device: what all models compiled for it share.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) context: Arc<Context>,
    pub(crate) programs: Programs,
    /// For uploads while models are compiled.
    pub(crate) uploads: Queue,
    /// Stands for buffers where nothing is to run.
    pub(crate) nothing: Arc<Buffer>,
    /// Whether the instructions of `kernels/ahead.cl` are there.
    ahead: OnceLock<bool>,
    /// Choices that were measured.
    pub(crate) choices: Choices,
}

impl Machine {
    fn of(context: Arc<Context>) -> carafe_opencl::Result<Machine> {
        let uploads = Queue::new(&context, false)?;
        let nothing = Buffer::new(&context, 1)?;
        Ok(Machine {
            programs: Programs::new(&context),
            context,
            uploads,
            nothing,
            ahead: OnceLock::new(),
            choices: Choices::default(),
        })
    }
    pub(crate) fn info(&self) -> &DeviceInfo {
        &self.context.device.info
    }
    /// A buffer with these bytes.
    pub(crate) fn upload(&self, bytes: &[u8]) -> Result<Arc<Buffer>> {
        let buffer = Buffer::new(&self.context, bytes.len()).map_err(told)?;
        self.uploads.write(&buffer, 0, bytes).map_err(told)?;
        Ok(buffer)
    }
    /// Whether copies to local memory can run ahead, and tensor cores multiply f16: NVIDIA devices since compute capability 8.0, by
    /// inline PTX. What the driver builds is there.
    pub(crate) fn copies_ahead(&self) -> bool {
        let probe = text_of("ahead.cl");
        let built = || self.programs.program(probe, "-cl-std=CL1.2", None).is_ok();
        *self.ahead.get_or_init(|| self.info().vendor.contains("NVIDIA") && built())
    }
    /// Items of a group for work that is the same everywhere.
    pub(crate) fn group(&self) -> usize {
        let info = self.info();
        256.min(info.group_size).min(info.group_sizes[0]).max(1)
    }
}

impl Found {
    pub(crate) fn info(&self) -> &DeviceInfo {
        &self.device.info
    }
    /// The device, opened if it is not yet.
    pub(crate) fn open(&self) -> Result<Arc<Machine>> {
        let open = || Context::new(&self.device).and_then(Machine::of).map(Arc::new).map_err(|e| e.to_string());
        let opened = self.open.get_or_init(open);
        opened.clone().map_err(|why| Error::invalid(format!("device `{}` cannot be opened: {why}", self.info().name)))
    }
}

/// All devices, graphics processors first and the host's own processors last; or why there are none.
pub(crate) fn all() -> Result<&'static [Arc<Found>]> {
    static ALL: LazyLock<std::result::Result<Vec<Arc<Found>>, String>> = LazyLock::new(|| {
        let mut found = carafe_opencl::devices().map_err(|e| e.to_string())?;
        found.retain(|d| ALIGNMENT.is_multiple_of(d.info.alignment));
        carafe_graph::sort_by_key(&mut found, |d| match d.info.kind {
            DeviceKind::Gpu => 0,
            DeviceKind::Accelerator => 1,
            DeviceKind::Cpu => 2,
        });
        if found.is_empty() {
            return Err(format!("no OpenCL device found: none has sub-buffers at multiples of {ALIGNMENT} bytes"));
        }
        let numbered = found.into_iter().enumerate();
        let found = |(i, device): (usize, Device)| Found { device, id: i.to_string(), open: OnceLock::new() };
        Ok(numbered.map(found).map(Arc::new).collect())
    });
    ALL.as_deref().map_err(|why| Error::not_found(why.clone()))
}

/// Contexts that users made, by number; one that is gone leaves a gap.
static SHARED: Mutex<Vec<Weak<Found>>> = Mutex::new(vec![]);

fn shared() -> MutexGuard<'static, Vec<Weak<Found>>> {
    SHARED.lock().unwrap_or_else(|e| e.into_inner())
}

/// The device of a context that a user made, under an id of its own for as long as somebody holds it.
pub(crate) fn share(context: Arc<Context>) -> Result<Arc<Found>> {
    let (device, alignment) = (context.device.clone(), context.device.info.alignment);
    if !ALIGNMENT.is_multiple_of(alignment) {
        let why = format!("{} has sub-buffers at multiples of {alignment} bytes only", device.info.name);
        return Err(Error::unsupported(format!("{why}; this device needs them at multiples of {ALIGNMENT}")));
    }
    let machine = Arc::new(Machine::of(context).map_err(told)?);
    let mut shared = shared();
    let found = Arc::new(Found { device, id: format!("shared{}", shared.len()), open: OnceLock::from(Ok(machine)) });
    shared.push(Arc::downgrade(&found));
    Ok(found)
}

/// A device by its number, or a context of a user by the id that it got.
pub(crate) fn by_id(id: &str) -> Result<Arc<Found>> {
    if let Some(number) = id.trim().strip_prefix("shared").and_then(|n| n.parse::<usize>().ok()) {
        let gone = || Error::not_found(format!("the shared OpenCL context {id} is gone; hold it while models use it"));
        return shared().get(number).and_then(Weak::upgrade).ok_or_else(gone);
    }
    let all = all()?;
    let found = id.trim().parse::<usize>().ok().and_then(|i| all.get(i)).cloned();
    found.ok_or_else(|| Error::not_found(format!("there is no OpenCL device {id}; there are 0 to {}", all.len() - 1)))
}
