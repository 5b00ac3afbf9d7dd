//! Devices for tests of devices made of devices: the reference device under another name, that refuses operations, fails
//! or is slow as told, and notes what it was asked to do. Made for any test that needs a device that misbehaves.

use carafe::{Error, Model, Registry, Result, SharedBytes, Tensor};
use carafe_device::{
    CancelFlag, CompiledModel, Device, InferRequest, Mutability, NodeProfile, Port, Properties, PropertyInfo,
    PropertyKind, Query, Stage, Unsupported,
};
use carafe_template::TemplateDevice;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const TABLE: &[PropertyInfo] = &[
    info("PERF_COUNT", PropertyKind::Bool, Mutability::ReadWrite, "false"),
    info("DEVICE_ID", PropertyKind::Text, Mutability::ReadWrite, "0"),
    info("COLOUR", PropertyKind::Enum(&["RED", "BLUE"]), Mutability::ReadWrite, "RED"),
    info("AVAILABLE_DEVICES", PropertyKind::Text, Mutability::ReadOnly, ""),
    info("OPTIMIZATION_CAPABILITIES", PropertyKind::Text, Mutability::ReadOnly, ""),
];

const fn info(name: &'static str, kind: PropertyKind, mutability: Mutability, default: &'static str) -> PropertyInfo {
    PropertyInfo { name, kind, mutability, default, doc: "As the name says." }
}

/// Something a device must not do, for tests of what must notice it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Leaves a node out of its answer to a query.
    LosesNodes,
    /// Says that it takes the types it refuses.
    PromisesTooMuch,
    /// Refuses nodes without a reason.
    GivesNoReason,
    /// Compiles with any property.
    TakesAnyProperty,
    /// A compiled model does not know its properties.
    ForgetsProperties,
    /// Ports have no tensor names.
    LosesNames,
    TakesAnyTensor,
    CopiesInputs,
    IgnoresOutputMemory,
    WrongNumbers,
    /// Every inference after the first gives what the first gave.
    StaleOutputs,
    Panics,
    NeverEnds,
    IgnoresResets,
    AlwaysProfiles,
    /// All nodes of the runtime model have one name.
    OneNameForAll,
    TellsNoOrder,
    /// Has no runtime model.
    ShowsNothing,
    /// Gives no times of nodes.
    NeverProfiles,
    /// Takes any bytes for the model it compiled last.
    ImportsAnything,
    /// Exports the first half.
    CutsExports,
}

/// The reference device in disguise. Clones share what was noted and told.
#[derive(Clone, Debug)]
pub struct FakeDevice {
    name: String,
    refused: Vec<String>,
    metrics: BTreeMap<String, String>,
    exports: bool,
    compile_time: Duration,
    infer_time: Duration,
    faults: Vec<Fault>,
    told: Arc<Told>,
}

/// What a test may change and read while the device is in use.
#[derive(Default)]
pub struct Told {
    pub fails_to_compile: AtomicBool,
    pub fails_to_infer: AtomicBool,
    pub n_inferences: AtomicUsize,
    pub n_running: AtomicUsize,
    /// Most inferences at the same time.
    pub most_running: AtomicUsize,
    pub n_requests: AtomicUsize,
    /// Names of compiled models with the properties they were compiled with.
    pub compiled: Mutex<Vec<(String, Properties)>>,
    pub n_imported: AtomicUsize,
    /// Where the tensors lie that were bound as inputs.
    pub input_places: Mutex<Vec<usize>>,
    last: Mutex<Option<Arc<dyn CompiledModel>>>,
}

impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Told").field("n_inferences", &self.n_inferences).finish_non_exhaustive()
    }
}

impl FakeDevice {
    pub fn new(name: &str) -> FakeDevice {
        FakeDevice {
            name: name.to_string(),
            refused: vec![],
            metrics: BTreeMap::new(),
            exports: true,
            compile_time: Duration::ZERO,
            infer_time: Duration::ZERO,
            faults: vec![],
            told: Arc::default(),
        }
    }
    /// Takes no operation of these types (in any case), neither when asked nor when compiling.
    #[must_use]
    pub fn refusing(mut self, types: &[&str]) -> FakeDevice {
        self.refused = types.iter().map(|t| t.to_string()).collect();
        self
    }
    /// Answers a read-only property with this.
    #[must_use]
    pub fn with_metric(mut self, name: &str, value: &str) -> FakeDevice {
        self.metrics.insert(name.to_string(), value.to_string());
        self
    }
    #[must_use]
    pub fn that_cannot_export(mut self) -> FakeDevice {
        self.exports = false;
        self
    }
    #[must_use]
    pub fn compiling_for(mut self, time: Duration) -> FakeDevice {
        self.compile_time = time;
        self
    }
    /// Every inference takes at least this long; a cancellation ends it at once.
    #[must_use]
    pub fn inferring_for(mut self, time: Duration) -> FakeDevice {
        self.infer_time = time;
        self
    }
    #[must_use]
    pub fn failing_to_compile(self) -> FakeDevice {
        self.told.fails_to_compile.store(true, Ordering::SeqCst);
        self
    }
    #[must_use]
    pub fn failing_to_infer(self) -> FakeDevice {
        self.told.fails_to_infer.store(true, Ordering::SeqCst);
        self
    }
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> FakeDevice {
        self.faults.push(fault);
        self
    }
    fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }
    /// What is told and noted, shared with the device in use.
    pub fn told(&self) -> Arc<Told> {
        self.told.clone()
    }
    pub fn add_to(&self, core: &carafe::Core) {
        core.add_device(&self.name, Arc::new(self.clone())).expect("a fake device has a name of its own");
    }

    fn refuses(&self, model: &Model) -> Vec<Unsupported> {
        let bad = |n: &carafe::Node| self.refused.iter().any(|t| t.eq_ignore_ascii_case(n.op().type_name()));
        model
            .nodes()
            .filter(|(_, n)| bad(n))
            .map(|(_, n)| Unsupported {
                name: n.name().to_string(),
                type_name: n.op().type_name().to_string(),
                reason: format!("{} has no {}", self.name, n.op().type_name()),
            })
            .collect()
    }
    fn check(&self, properties: &Properties) -> Result<()> {
        if self.has(Fault::TakesAnyProperty) {
            return Ok(());
        }
        properties.check(TABLE)?;
        let ids = self.metric("AVAILABLE_DEVICES")?;
        match properties.get("DEVICE_ID").filter(|id| !ids.split_whitespace().any(|i| i == *id)) {
            Some(id) => Err(Error::not_found(format!("{} has no instance {id}; it has {ids}", self.name))),
            None => Ok(()),
        }
    }
    // What the reference device gets of the properties.
    fn inner(&self, properties: &Properties) -> Properties {
        let mut inner = Properties::new();
        let known = TABLE.iter().filter(|p| p.name == "PERF_COUNT");
        for (name, value) in known.filter_map(|p| Some((p.name, properties.get(p.name)?))) {
            if Properties::new().with(name, value).check(TABLE).is_ok() {
                inner.set(name, value);
            }
        }
        if self.has(Fault::AlwaysProfiles) {
            inner.set("PERF_COUNT", "true");
        }
        inner
    }
    fn wrap(&self, inner: Arc<dyn CompiledModel>, properties: &Properties) -> Arc<dyn CompiledModel> {
        let nameless = |ports: &[Port]| -> Vec<Port> {
            let names = |p: &Port| if self.has(Fault::LosesNames) { Default::default() } else { p.names.clone() };
            ports.iter().map(|p| Port { names: names(p), ..p.clone() }).collect()
        };
        let (inputs, outputs) = (nameless(inner.inputs()), nameless(inner.outputs()));
        *self.told.last.lock().expect("no panic") = Some(inner.clone());
        Arc::new(FakeCompiled { inner, inputs, outputs, properties: properties.clone(), device: self.clone() })
    }
}

impl Device for FakeDevice {
    fn properties(&self) -> &'static [PropertyInfo] {
        TABLE
    }
    fn metric(&self, name: &str) -> Result<String> {
        if let Some(value) = self.metrics.get(name) {
            return Ok(value.clone());
        }
        match name {
            "AVAILABLE_DEVICES" => Ok("0".into()),
            "FULL_DEVICE_NAME" => Ok(format!("fake device {}", self.name)),
            "OPTIMIZATION_CAPABILITIES" if self.exports => Ok("FP32 FP16 EXPORT_IMPORT".into()),
            "OPTIMIZATION_CAPABILITIES" => Ok("FP32 FP16".into()),
            "OPTIMAL_NUMBER_OF_INFER_REQUESTS" => Ok("2".into()),
            _ => Err(Error::not_found(format!("device {} has no property `{name}`", self.name))),
        }
    }
    fn query(&self, model: &Model, properties: &Properties) -> Result<Query> {
        self.check(properties)?;
        let mut query = TemplateDevice::default().query(model, &Properties::new())?;
        for bad in self.refuses(model) {
            if !self.has(Fault::PromisesTooMuch) {
                query.supported.retain(|n| *n != bad.name);
                query.unsupported.push(bad);
            }
        }
        if self.has(Fault::LosesNodes) {
            query.supported.pop();
        }
        if self.has(Fault::GivesNoReason) {
            query.unsupported.iter_mut().for_each(|u| u.reason.clear());
        }
        Ok(query)
    }
    fn compile(&self, model: &Model, properties: &Properties) -> Result<Arc<dyn CompiledModel>> {
        self.check(properties)?;
        std::thread::sleep(self.compile_time);
        if self.told.fails_to_compile.load(Ordering::SeqCst) {
            return Err(Error::unsupported(format!("{} is told to fail", self.name)));
        }
        if let Some(bad) = self.refuses(model).first() {
            return Err(Error::unsupported(format!("node `{}`: {}", bad.name, bad.reason)));
        }
        self.told.compiled.lock().expect("no panic").push((model.name.clone(), properties.clone()));
        Ok(self.wrap(TemplateDevice::default().compile(model, &self.inner(properties))?, properties))
    }
    fn import(
        &self,
        blob: SharedBytes,
        registry: &Registry,
        properties: &Properties,
    ) -> Result<Arc<dyn CompiledModel>> {
        if !self.exports {
            return Err(Error::unsupported(format!("{} cannot import", self.name)));
        }
        self.check(properties)?;
        self.told.n_imported.fetch_add(1, Ordering::SeqCst);
        let last = self.told.last.lock().expect("no panic").clone();
        let inner = match (TemplateDevice::default().import(blob, registry, &self.inner(properties)), last) {
            (Err(_), Some(last)) if self.has(Fault::ImportsAnything) => last,
            (result, _) => result?,
        };
        Ok(self.wrap(inner, properties))
    }
}

struct FakeCompiled {
    inner: Arc<dyn CompiledModel>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    properties: Properties,
    device: FakeDevice,
}

impl CompiledModel for FakeCompiled {
    fn inputs(&self) -> &[Port] {
        &self.inputs
    }
    fn outputs(&self) -> &[Port] {
        &self.outputs
    }
    fn runtime_model(&self) -> Model {
        if self.device.has(Fault::ShowsNothing) {
            return Model::default();
        }
        let mut model = self.inner.runtime_model();
        let ids: Vec<_> = model.nodes().map(|(id, _)| id).collect();
        for id in ids {
            if self.device.has(Fault::OneNameForAll) {
                model.set_name(id, "node");
            }
            if self.device.has(Fault::TellsNoOrder) {
                model.rt_info_mut(id).remove("execOrder");
            }
        }
        model
    }
    fn export(&self, to: &mut dyn Write) -> Result<()> {
        match self.device.exports {
            true if self.device.has(Fault::CutsExports) => {
                let mut all = Vec::new();
                self.inner.export(&mut all)?;
                to.write_all(&all[..all.len() / 2]).map_err(|e| Error::io("cannot write", &e))
            }
            true => self.inner.export(to),
            false => Err(Error::unsupported(format!("{} cannot export", self.device.name))),
        }
    }
    fn property(&self, name: &str) -> Result<String> {
        match name {
            "EXECUTION_DEVICES" => Ok(self.device.name.clone()),
            "OPTIMAL_NUMBER_OF_INFER_REQUESTS" => self.device.metric(name),
            "COLOUR" | "PERF_COUNT" | "DEVICE_ID" if !self.device.has(Fault::ForgetsProperties) => {
                Ok(self.properties.or_default(TABLE, name).unwrap_or_default().to_string())
            }
            _ => self.inner.property(name),
        }
    }
    fn create_request(self: Arc<Self>) -> Box<dyn InferRequest> {
        self.device.told.n_requests.fetch_add(1, Ordering::SeqCst);
        let inner = self.inner.clone().create_request();
        Box::new(FakeRequest { inner, n_outputs: self.outputs.len(), told: vec![], device: self.device.clone() })
    }
}

struct FakeRequest {
    inner: Box<dyn InferRequest>,
    n_outputs: usize,
    /// Outputs that are told in place of the real ones.
    told: Vec<Tensor>,
    device: FakeDevice,
}

impl FakeRequest {
    fn begin(&self) -> Result<Running> {
        let told = self.device.told.clone();
        let now = told.n_running.fetch_add(1, Ordering::SeqCst) + 1;
        told.most_running.fetch_max(now, Ordering::SeqCst);
        told.n_inferences.fetch_add(1, Ordering::SeqCst);
        let running = Running(told);
        assert!(!self.device.has(Fault::Panics), "{} is told to panic", self.device.name);
        while self.device.has(Fault::NeverEnds) {
            std::thread::park();
        }
        let (end, flag) = (Instant::now() + self.device.infer_time, self.inner.cancel_flag());
        while Instant::now() < end {
            if flag.is_set() {
                return Err(Error::new(carafe::ErrorKind::Cancelled, "the inference was cancelled"));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        match running.0.fails_to_infer.load(Ordering::SeqCst) {
            true => Err(Error::unsupported(format!("{} is told to fail", self.device.name))),
            false => Ok(running),
        }
    }
}

struct Running(Arc<Told>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.n_running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl InferRequest for FakeRequest {
    fn set_input(&mut self, index: usize, tensor: Tensor) -> Result<()> {
        self.device.told.input_places.lock().expect("no panic").push(tensor.storage_ptr());
        let copies = self.device.has(Fault::CopiesInputs);
        let tensor = if copies { tensor.select(tensor.shape(), Some)? } else { tensor };
        let result = self.inner.set_input(index, tensor);
        if self.device.has(Fault::TakesAnyTensor) { Ok(()) } else { result }
    }
    fn input(&self, index: usize) -> Option<&Tensor> {
        self.inner.input(index)
    }
    fn set_output(&mut self, index: usize, tensor: Tensor) -> Result<()> {
        match self.device.has(Fault::IgnoresOutputMemory) {
            true => Ok(()),
            false => self.inner.set_output(index, tensor),
        }
    }
    fn infer(&mut self) -> Result<()> {
        self.inner.cancel_flag().clear();
        (0..self.stages().len()).try_for_each(|stage| self.run_stage(stage))
    }
    fn stages(&self) -> Vec<Stage> {
        self.inner.stages()
    }
    fn run_stage(&mut self, stage: usize) -> Result<()> {
        // Time passes where the device works, not where the host checks and hands out.
        let works = self.stages().get(stage).is_some_and(|s| s.executor == "device");
        let _running = if works { Some(self.begin()?) } else { None };
        self.inner.run_stage(stage)?;
        let (wrong, stale) = (self.device.has(Fault::WrongNumbers), self.device.has(Fault::StaleOutputs));
        if stage + 1 == self.stages().len() && (wrong || (stale && self.told.is_empty())) {
            self.told.clear();
            for i in 0..self.n_outputs {
                let real = self.inner.output(i)?;
                let lie = if wrong { Tensor::zeros(real.element_type(), real.shape())? } else { real.clone() };
                self.told.push(lie);
            }
        }
        Ok(())
    }
    fn output(&self, index: usize) -> Result<&Tensor> {
        self.told.get(index).map_or_else(|| self.inner.output(index), Ok)
    }
    fn profile(&self) -> Vec<NodeProfile> {
        if self.device.has(Fault::NeverProfiles) {
            return vec![];
        }
        self.inner.profile()
    }
    fn variables(&self) -> Vec<String> {
        self.inner.variables()
    }
    fn variable(&self, id: &str) -> Result<Option<Tensor>> {
        self.inner.variable(id)
    }
    fn set_variable(&mut self, id: &str, value: Tensor) -> Result<()> {
        self.inner.set_variable(id, value)
    }
    fn reset_variables(&mut self) {
        if !self.device.has(Fault::IgnoresResets) {
            self.inner.reset_variables();
        }
    }
    fn cancel_flag(&self) -> CancelFlag {
        self.inner.cancel_flag()
    }
}
