//! `InferRequest`, `VariableState` and `ProfilingInfo`. A request holds its tensors for its whole life: whoever got an output once sees
//! the result of every inference in it.

use crate::async_queue::Queue;
use crate::compiled_model::{Compiled, CompiledModel};
use crate::errors::{OrRaise, failure};
use crate::inputs;
use crate::memory::Memory;
use crate::numpy::view;
use crate::numpy_api;
use crate::port::{ConstOutput, Side};
use crate::process::{self, Here, Inside};
use crate::results::OVDict;
use crate::tensor::{Cell, Tensor, sizes, texts_array};
use carafe::{ElementType, InferRequest as Engine, NodeStatus, Port, PortKey};
use pyo3::exceptions::{PyTypeError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A request with its tensors.
pub(crate) struct Request {
    pub(crate) request: Here<Engine>,
    pub(crate) compiled: Compiled,
    slots: Mutex<Slots>,
    background: Mutex<Background>,
    /// While a run in the background has not ended.
    running: Mutex<Option<Inside>>,
    /// Callbacks that have not returned.
    calling: AtomicUsize,
    /// The queue that the request belongs to, and its number there.
    queue: Option<(Weak<Queue>, usize)>,
}

#[derive(Default)]
struct Slots {
    inputs: Vec<Input>,
    outputs: Vec<Option<Arc<Cell>>>,
    /// Where the request writes an output now.
    targets: Vec<Option<usize>>,
    started: Option<Instant>,
    took: Duration,
}

/// What is bound to an input.
#[derive(Clone, Default)]
enum Input {
    #[default]
    Nothing,
    /// A tensor that others may hold; `seen` is its state when the engine got it.
    Tensor { cell: Arc<Cell>, seen: Option<u64>, batch: Option<Arc<[Arc<Cell>]>> },
    /// Memory that a call lent. The engine has it; a tensor is made when somebody asks for one.
    Lent { memory: Arc<Memory>, ty: ElementType, shape: Vec<usize> },
}

impl Input {
    // The tensor; one that is made stays.
    fn cell(&mut self) -> PyResult<Option<Arc<Cell>>> {
        match self {
            Input::Nothing => Ok(None),
            Input::Tensor { cell, .. } => Ok(Some(cell.clone())),
            Input::Lent { memory, ty, shape } => {
                let cell = Cell::over(memory.clone(), *ty, shape)?.lent();
                *self = Input::of(cell.clone());
                Ok(Some(cell))
            }
        }
    }
    fn of(cell: Arc<Cell>) -> Input {
        Input::Tensor { cell, seen: None, batch: None }
    }
}

#[derive(Default)]
struct Background {
    listens: bool,
    callback: Option<Py<PyAny>>,
    userdata: Option<Py<PyAny>>,
    /// What the callback raised.
    raised: Option<PyErr>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Request {
    pub(crate) fn new(compiled: &Compiled, queue: Option<(Weak<Queue>, usize)>) -> PyResult<Arc<Request>> {
        let request = compiled.get()?.create_infer_request();
        let slots = Slots {
            inputs: vec![Input::Nothing; compiled.inputs().len()],
            outputs: vec![None; compiled.outputs().len()],
            targets: vec![None; compiled.outputs().len()],
            ..Slots::default()
        };
        Ok(Arc::new(Request {
            request: Here::new(request, compiled.usage()),
            compiled: compiled.clone(),
            slots: Mutex::new(slots),
            background: Mutex::default(),
            running: Mutex::default(),
            calling: AtomicUsize::new(0),
            queue,
        }))
    }

    pub(crate) fn ports(&self, side: Side) -> &[Port] {
        side.ports(&self.compiled)
    }

    fn ensure_idle(&self) -> PyResult<()> {
        match self.request.get()?.is_busy() {
            true => Err(failure("[ REQUEST_BUSY ] Infer Request is busy")),
            false => Ok(()),
        }
    }

    /// The tensor of an input or output; one that nobody gave is zeros, where sizes that are not known count as 0.
    pub(crate) fn tensor(&self, side: Side, index: usize) -> PyResult<Arc<Cell>> {
        self.ensure_idle()?;
        let mut slots = lock(&self.slots);
        let bound = match side {
            Side::Input => slots.inputs[index].cell()?,
            Side::Output => slots.outputs[index].clone(),
        };
        if let Some(cell) = bound {
            return Ok(cell);
        }
        let port = &self.ports(side)[index];
        let shape: Vec<usize> = match port.shape.dims() {
            Some(dims) => dims.iter().map(|d| d.size().unwrap_or(0)).collect(),
            None => vec![0],
        };
        let ty = if port.ty.is_dynamic() { ElementType::F32 } else { port.ty };
        let cell = Cell::zeros(ty, &shape)?;
        match side {
            Side::Input => slots.inputs[index] = Input::of(cell.clone()),
            Side::Output => slots.outputs[index] = Some(cell.clone()),
        }
        drop(slots);
        if side == Side::Output
            && let Ok(result) = self.request.output(index)
        {
            cell.take(&result)?;
        }
        Ok(cell)
    }

    /// The tensor that is bound to an input, if there is one.
    pub(crate) fn bound(&self, index: usize) -> PyResult<Option<Arc<Cell>>> {
        lock(&self.slots).inputs[index].cell()
    }

    /// Binds memory of elements that lie one behind the other to an input, for one inference.
    pub(crate) fn lend(&self, index: usize, memory: Memory, ty: ElementType, shape: Vec<usize>) -> PyResult<()> {
        self.ensure_idle()?;
        let memory = Arc::new(memory);
        let len = memory.len();
        let tensor = carafe::Tensor::view(ty, &shape, &memory.to_bytes(len)?, 0, len).or_raise()?;
        self.request.get()?.set_input(index, tensor).or_raise()?;
        // What was lent before may be an object of Python: it goes when the lock is free again.
        let before = std::mem::replace(&mut lock(&self.slots).inputs[index], Input::Lent { memory, ty, shape });
        drop(before);
        Ok(())
    }

    /// Whether the tensor is what is bound to the input, in the state that the engine knows.
    pub(crate) fn has(&self, index: usize, cell: &Arc<Cell>) -> PyResult<bool> {
        match &lock(&self.slots).inputs[index] {
            Input::Tensor { cell: bound, seen, batch: None } if Arc::ptr_eq(bound, cell) => {
                Ok(seen.is_some() && bound.changed_since(*seen)?.is_none())
            }
            _ => Ok(false),
        }
    }

    /// Binds several tensors to an input, one behind the other along the first axis. Every inference reads them anew.
    fn set_batch(&self, py: Python<'_>, index: usize, parts: Vec<Arc<Cell>>) -> PyResult<()> {
        let arrays = parts.iter().map(|part| part.array(py, false)).collect::<PyResult<Vec<_>>>()?;
        let joined = crate::numpy::numpy(py)?.module(py).call_method1("concatenate", (arrays,))?;
        self.set(Side::Input, index, crate::tensor::of_array(&joined, false)?)?;
        if let Input::Tensor { batch, .. } = &mut lock(&self.slots).inputs[index] {
            *batch = Some(parts.into());
        }
        Ok(())
    }

    /// Whether the input is bound to several tensors.
    fn is_batch(&self, index: usize) -> bool {
        matches!(&lock(&self.slots).inputs[index], Input::Tensor { batch: Some(_), .. })
    }

    pub(crate) fn set(&self, side: Side, index: usize, cell: Arc<Cell>) -> PyResult<()> {
        self.ensure_idle()?;
        let port = &self.ports(side)[index];
        match side {
            Side::Input => port.check(&cell.to_engine()?).or_raise()?,
            Side::Output => {
                // An output without elements is one that takes its shape from the inference.
                let open = !port.shape.is_static() && cell.shape().contains(&0);
                if !open {
                    port.check(&cell.to_engine()?).or_raise()?;
                }
            }
        }
        let mut slots = lock(&self.slots);
        match side {
            Side::Input => slots.inputs[index] = Input::of(cell),
            Side::Output => {
                slots.outputs[index] = Some(cell);
                slots.targets[index] = None;
            }
        }
        Ok(())
    }

    // Gives the engine the tensors as they are now.
    fn bind(&self) -> PyResult<()> {
        self.ensure_idle()?;
        let mut slots = lock(&self.slots);
        for index in 0..slots.inputs.len() {
            if let Input::Nothing = slots.inputs[index] {
                drop(slots);
                self.tensor(Side::Input, index)?;
                slots = lock(&self.slots);
            }
            let Input::Tensor { cell, seen, batch } = &mut slots.inputs[index] else { continue };
            if let Some(parts) = batch {
                gather(cell, parts)?;
            }
            if let Some((tensor, now)) = cell.changed_since(*seen)? {
                self.request.set_input(index, tensor).or_raise()?;
                *seen = now;
            }
        }
        for (index, port) in self.compiled.outputs().iter().enumerate() {
            let Some(cell) = slots.outputs[index].clone() else { continue };
            // Once is enough: the request goes on writing there.
            if slots.targets[index].is_some() && slots.targets[index] == cell.address() {
                continue;
            }
            if port.shape.to_static() != Some(cell.shape()) {
                continue;
            }
            if let Some(target) = cell.to_target()? {
                let address = target.storage_ptr();
                self.request.set_output(index, target).or_raise()?;
                slots.targets[index] = Some(address);
            }
        }
        slots.started = Some(Instant::now());
        Ok(())
    }

    // Brings results to tensors that somebody holds, where they were not written there.
    fn collect(&self, outputs: Option<&[carafe::Tensor]>) -> PyResult<()> {
        let mut slots = lock(&self.slots);
        slots.took = slots.started.map_or(Duration::ZERO, |at| at.elapsed());
        for (index, cell) in slots.outputs.iter().enumerate() {
            let Some(cell) = cell else { continue };
            match outputs {
                Some(outputs) => cell.take(&outputs[index])?,
                None => cell.take(&self.request.output(index).or_raise()?)?,
            }
        }
        Ok(())
    }

    /// Runs with what is bound.
    pub(crate) fn infer(&self, py: Python<'_>) -> PyResult<Vec<carafe::Tensor>> {
        self.bind()?;
        let inside = self.request.usage().enter()?;
        let outputs = py.detach(|| self.request.infer(())).or_raise()?.into_vec();
        drop(inside);
        self.collect(Some(&outputs))?;
        Ok(outputs)
    }

    /// The outputs of an inference.
    pub(crate) fn results(
        &self,
        py: Python<'_>,
        outputs: &[carafe::Tensor],
        shared: bool,
        decoded: bool,
    ) -> PyResult<OVDict> {
        let array = |(index, tensor)| self.result(py, index, tensor, shared, decoded).map(Bound::unbind);
        let arrays = outputs.iter().enumerate().map(array).collect::<PyResult<Vec<_>>>()?;
        Ok(OVDict::new(&self.compiled, arrays))
    }

    fn result<'py>(
        &self,
        py: Python<'py>,
        index: usize,
        engine: &carafe::Tensor,
        shared: bool,
        decoded: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        if engine.element_type() == ElementType::String {
            return texts_array(py, engine.shape(), engine.strings().or_raise()?, decoded);
        }
        if shared || engine.element_type().is_sub_byte() {
            return self.tensor(Side::Output, index)?.shared_array(py);
        }
        let engine = engine.to_host().or_raise()?;
        match numpy_api::copied(py, engine.bytes(), engine.element_type(), engine.shape())? {
            Some(array) => Ok(array),
            None => view(py, &Arc::new(Memory::of_tensor(&engine)), engine.element_type(), engine.shape(), true),
        }
    }

    /// Starts an inference in the background.
    pub(crate) fn start(self: &Arc<Self>) -> PyResult<()> {
        self.bind()?;
        let mut background = lock(&self.background);
        background.raised = None;
        if !background.listens {
            let me = Arc::downgrade(self);
            let ended = move |error: Option<&carafe::Error>, _: &Engine| Request::ended(&me, error);
            self.request.set_callback(ended).or_raise()?;
            background.listens = true;
            process::remember(self);
        }
        drop(background);
        *lock(&self.running) = Some(self.request.usage().enter()?);
        self.request.start_async(()).or_raise().inspect_err(|_| drop(lock(&self.running).take()))
    }

    /// Waits for the thread of a run whose callback has come to its end.
    pub(crate) fn settle(&self) {
        let idle = lock(&self.running).is_none() && self.calling.load(Ordering::Acquire) == 0;
        if idle && self.request.get().is_ok() {
            // How it ended was told already.
            let _ = self.request.wait();
        }
    }

    // On a thread for callbacks, when a run in the background has ended.
    fn ended(me: &Weak<Request>, error: Option<&carafe::Error>) {
        let Some(me) = me.upgrade() else { return };
        me.calling.fetch_add(1, Ordering::AcqRel);
        // The callback may start the next run.
        let inside = lock(&me.running).take();
        let collected = if error.is_none() { me.collect(None) } else { Ok(()) };
        let _ = Python::try_attach(|py| {
            if let Some((queue, id)) = &me.queue {
                if let Some(queue) = queue.upgrade() {
                    queue.ended(py, &me, *id, error, collected);
                }
                return;
            }
            let mut background = lock(&me.background);
            let callback = background.callback.as_ref().map(|c| c.clone_ref(py));
            let userdata = background.userdata.as_ref().map(|u| u.clone_ref(py));
            background.raised = collected.err();
            drop(background);
            if let Some(callback) = callback
                && let Err(e) = callback.call1(py, (userdata,))
            {
                lock(&me.background).raised = Some(e);
            }
        });
        me.calling.fetch_sub(1, Ordering::AcqRel);
        drop(inside);
    }

    pub(crate) fn userdata(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        lock(&self.background).userdata.as_ref().map(|u| u.clone_ref(py))
    }
    pub(crate) fn set_userdata(&self, userdata: Option<Py<PyAny>>) {
        lock(&self.background).userdata = userdata;
    }

    /// Cancels what runs and waits for its end.
    pub(crate) fn stop(&self) {
        if self.request.get().is_ok() {
            self.request.cancel();
            // Why it ended is of no interest any more.
            let _ = self.request.wait();
        }
    }

    /// The side and number of a name or port; inputs first.
    pub(crate) fn find(&self, key: &Bound<'_, PyAny>) -> PyResult<(Side, usize)> {
        if let Ok(name) = key.cast::<PyString>() {
            let name = name.to_cow()?;
            for side in [Side::Input, Side::Output] {
                if let Ok(index) = PortKey::Name(&name).find(self.ports(side), side.name()) {
                    return Ok((side, index));
                }
            }
            let names = |side| self.ports(side).iter().map(|p| p.name.clone()).collect::<Vec<_>>().join(", ");
            return Err(failure(format!(
                "Port for tensor name {name} was not found. Check the name: inputs are {}; outputs are {}",
                names(Side::Input),
                names(Side::Output)
            )));
        }
        if let Ok(port) = key.cast::<ConstOutput>() {
            let port = port.get();
            if Arc::ptr_eq(&port.compiled, &self.compiled) {
                return Ok((port.side, port.number));
            }
            return self.same_names(&port.port().names, &port.port().name);
        }
        if key.hasattr("get_names")? {
            let names: std::collections::BTreeSet<String> = key.call_method0("get_names")?.extract()?;
            let node = key.call_method0("get_node")?.call_method0("get_friendly_name")?;
            return self.same_names(&names, &node.extract::<String>()?);
        }
        Err(PyTypeError::new_err(format!("Unsupported key type: {} for Tensor under key: {key}", key.get_type())))
    }

    // A port of another model that has the same names.
    fn same_names(&self, names: &std::collections::BTreeSet<String>, name: &str) -> PyResult<(Side, usize)> {
        for side in [Side::Input, Side::Output] {
            let same = |p: &Port| !names.is_disjoint(&p.names) || p.name == name || p.names.contains(name);
            if let Some(index) = self.ports(side).iter().position(same) {
                return Ok((side, index));
            }
        }
        Err(failure(format!("the model has no port `{name}`")))
    }

    /// The only port of a side.
    pub(crate) fn only(&self, side: Side) -> PyResult<usize> {
        match self.ports(side).len() {
            1 => Ok(0),
            n => Err(failure(format!(
                "get_{0}_tensor() must be called on a function with exactly one {0}; this has {n}",
                side.name()
            ))),
        }
    }

    pub(crate) fn number(&self, side: Side, index: usize) -> PyResult<usize> {
        PortKey::Index(index).find(self.ports(side), side.name()).or_raise()
    }
}

/// Runs a compiled model, one inference at a time, with tensors and state of its own.
#[pyclass(name = "InferRequest", module = "carafe", frozen, subclass, weakref)]
pub(crate) struct InferRequest {
    pub(crate) request: Arc<Request>,
}

impl InferRequest {
    fn at(&self, side: Side, index: Option<usize>) -> PyResult<usize> {
        match index {
            Some(index) => self.request.number(side, index),
            None => self.request.only(side),
        }
    }
    fn get(&self, side: Side, index: Option<usize>) -> PyResult<Tensor> {
        Ok(self.request.tensor(side, self.at(side, index)?)?.into())
    }
    fn all(&self, side: Side) -> PyResult<Vec<Tensor>> {
        (0..self.request.ports(side).len()).map(|i| self.get(side, Some(i))).collect()
    }
    // (tensor) or (index, tensor).
    fn set_one(&self, side: Side, first: &Bound<'_, PyAny>, second: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let (index, tensor) = match second {
            Some(tensor) => (Some(first.extract()?), tensor),
            None => (None, first),
        };
        self.request.set(side, self.at(side, index)?, tensor_of(tensor)?)
    }
    // Whether a list is of several tensors for the only input.
    fn is_whole_batch(&self, inputs: &Bound<'_, PyAny>) -> PyResult<bool> {
        let list = inputs.is_instance_of::<PyList>() || inputs.is_instance_of::<PyTuple>();
        Ok(list && self.request.ports(Side::Input).len() == 1 && inputs.len()? > 1)
    }
    fn set_many(&self, side: Option<Side>, tensors: &Bound<'_, PyAny>) -> PyResult<()> {
        let one = |key: &Bound<'_, PyAny>, tensor: &Bound<'_, PyAny>| -> PyResult<()> {
            let (side, index) = match (side, key.extract::<usize>()) {
                (Some(side), Ok(index)) => (side, self.request.number(side, index)?),
                (None, Ok(index)) => (Side::Input, self.request.number(Side::Input, index)?),
                _ => self.request.find(key)?,
            };
            self.request.set(side, index, tensor_of(tensor)?)
        };
        if let Ok(dict) = tensors.cast::<PyDict>() {
            return dict.iter().try_for_each(|(key, tensor)| one(&key, &tensor));
        }
        for (index, tensor) in tensors.try_iter()?.enumerate() {
            self.request.set(
                side.unwrap_or(Side::Input),
                self.request.number(Side::Input, index)?,
                tensor_of(&tensor?)?,
            )?;
        }
        Ok(())
    }
    fn set_batch(&self, index: usize, tensors: &Bound<'_, PyAny>) -> PyResult<()> {
        let parts = tensors.try_iter()?.map(|tensor| tensor_of(&tensor?)).collect::<PyResult<_>>()?;
        self.request.set_batch(tensors.py(), index, parts)
    }
}

// Writes tensors into one, one behind the other.
fn gather(whole: &Cell, parts: &[Arc<Cell>]) -> PyResult<()> {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(part.to_engine()?.bytes());
    }
    let (_, len) = sizes(whole.element_type(), &whole.shape())?;
    if bytes.len() != len {
        return Err(failure(format!(
            "the tensors of a batch have {} bytes together, the input has {len}",
            bytes.len()
        )));
    }
    whole.write(&bytes)
}

pub(crate) fn tensor_of(object: &Bound<'_, PyAny>) -> PyResult<Arc<Cell>> {
    match object.cast::<Tensor>() {
        Ok(tensor) => Ok(tensor.get().cell.clone()),
        Err(_) => Err(PyTypeError::new_err(format!(
            "incompatible function arguments: a Tensor is expected, found {}",
            object.get_type()
        ))),
    }
}

/// Binds the inputs, infers and gives the results.
pub(crate) fn infer<'py>(
    py: Python<'py>,
    request: &Arc<Request>,
    inputs: Option<&Bound<'py, PyAny>>,
    share_inputs: bool,
    share_outputs: bool,
    decode_strings: bool,
) -> PyResult<OVDict> {
    if let Some(inputs) = inputs {
        inputs::bind(request, inputs, share_inputs)?;
    }
    if share_outputs {
        // Their memory is there before the run, so that it is written in place.
        for index in 0..request.ports(Side::Output).len() {
            request.tensor(Side::Output, index)?;
        }
    }
    let outputs = request.infer(py)?;
    request.results(py, &outputs, share_outputs, decode_strings)
}

#[pymethods]
impl InferRequest {
    #[new]
    fn new(other: &InferRequest) -> InferRequest {
        InferRequest { request: other.request.clone() }
    }
    fn __repr__(&self) -> String {
        let list = |side: Side| {
            let all = self.request.ports(side).iter();
            all.map(|p| format!("\n{}: [{}] {}", p.name, p.shape, p.ty)).collect::<String>()
        };
        format!("<InferRequest:\ninputs[{}\n]\noutputs[{}\n]>", list(Side::Input), list(Side::Output))
    }
    /// Infers and waits for the end. `infer` in `_signatures.py` is this.
    #[pyo3(signature = (inputs, share_inputs, share_outputs, decode_strings, /))]
    fn _infer<'py>(
        &self,
        py: Python<'py>,
        inputs: Option<&Bound<'py, PyAny>>,
        share_inputs: bool,
        share_outputs: bool,
        decode_strings: bool,
    ) -> PyResult<OVDict> {
        infer(py, &self.request, inputs, share_inputs, share_outputs, decode_strings)
    }
    /// Starts an inference in the background.
    #[pyo3(signature = (inputs=None, userdata=None, share_inputs=false))]
    fn start_async(
        &self,
        py: Python<'_>,
        inputs: Option<&Bound<'_, PyAny>>,
        userdata: Option<Bound<'_, PyAny>>,
        share_inputs: bool,
    ) -> PyResult<()> {
        if let Some(inputs) = inputs {
            inputs::bind(&self.request, inputs, share_inputs)?;
        }
        if let Some(userdata) = userdata {
            if lock(&self.request.background).callback.is_none() {
                let kind = py.get_type::<PyUserWarning>();
                PyErr::warn(py, &kind, c"There is no callback function!", 1)?;
            }
            self.request.set_userdata(Some(userdata.unbind()));
        }
        self.request.start()
    }
    /// Waits for the end of the inference in the background.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let request = self.request.request.get()?;
        py.detach(|| request.wait()).or_raise()?;
        self.raise()
    }
    /// Waits for so many milliseconds; whether the inference has ended.
    fn wait_for(&self, py: Python<'_>, timeout: i64) -> PyResult<bool> {
        let time =
            u64::try_from(timeout).map_err(|_| failure(format!("a time of {timeout} ms cannot be waited for")))?;
        let request = self.request.request.get()?;
        let ended = py.detach(|| request.wait_for(Duration::from_millis(time))).or_raise()?;
        if ended {
            self.raise()?;
        }
        Ok(ended)
    }
    /// Asks a running inference to stop.
    fn cancel(&self) -> PyResult<()> {
        self.request.request.get()?.cancel();
        Ok(())
    }
    /// Sets what is called, with `userdata`, when an inference in the background has ended.
    #[pyo3(signature = (callback, userdata=None))]
    fn set_callback(&self, callback: Py<PyAny>, userdata: Option<Py<PyAny>>) -> PyResult<()> {
        self.request.ensure_idle()?;
        let mut background = lock(&self.request.background);
        background.callback = Some(callback);
        background.userdata = userdata;
        Ok(())
    }
    #[getter(userdata)]
    fn userdata_(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.request.userdata(py)
    }
    fn get_tensor(&self, key: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let (side, index) = self.request.find(key)?;
        if side == Side::Input && self.request.is_batch(index) {
            return Err(failure("get_tensor shall not be used together with batched set_tensors/set_input_tensors"));
        }
        self.get(side, Some(index))
    }
    fn set_tensor(&self, key: &Bound<'_, PyAny>, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let (side, index) = self.request.find(key)?;
        self.request.set(side, index, tensor_of(tensor)?)
    }
    /// Tensors by name, port or number of an input; or a batch of tensors for one input.
    #[pyo3(signature = (inputs, tensors=None))]
    fn set_tensors(&self, inputs: &Bound<'_, PyAny>, tensors: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        match tensors {
            None => self.set_many(None, inputs),
            Some(tensors) => self.set_batch(self.request.find(inputs)?.1, tensors),
        }
    }
    #[pyo3(signature = (index=None))]
    fn get_input_tensor(&self, index: Option<usize>) -> PyResult<Tensor> {
        self.get(Side::Input, index)
    }
    #[pyo3(signature = (index=None))]
    fn get_output_tensor(&self, index: Option<usize>) -> PyResult<Tensor> {
        self.get(Side::Output, index)
    }
    #[pyo3(signature = (index, tensor=None))]
    fn set_input_tensor(&self, index: &Bound<'_, PyAny>, tensor: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.set_one(Side::Input, index, tensor)
    }
    #[pyo3(signature = (index, tensor=None))]
    fn set_output_tensor(&self, index: &Bound<'_, PyAny>, tensor: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.set_one(Side::Output, index, tensor)
    }
    /// Tensors by number or in order; or a batch of tensors for one input.
    #[pyo3(signature = (inputs, tensors=None))]
    fn set_input_tensors(&self, inputs: &Bound<'_, PyAny>, tensors: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        match tensors {
            None if self.is_whole_batch(inputs)? => self.set_batch(0, inputs),
            None => self.set_many(Some(Side::Input), inputs),
            Some(tensors) => self.set_batch(self.request.number(Side::Input, inputs.extract()?)?, tensors),
        }
    }
    fn set_output_tensors(&self, outputs: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_many(Some(Side::Output), outputs)
    }
    #[getter(input_tensors)]
    fn input_tensors_(&self) -> PyResult<Vec<Tensor>> {
        self.all(Side::Input)
    }
    #[getter(output_tensors)]
    fn output_tensors_(&self) -> PyResult<Vec<Tensor>> {
        self.all(Side::Output)
    }
    #[getter(model_inputs)]
    fn model_inputs_<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.request.compiled.port_objects(py, Side::Input)
    }
    #[getter(model_outputs)]
    fn model_outputs_<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.request.compiled.port_objects(py, Side::Output)
    }
    /// The outputs of the last inference.
    #[getter(results)]
    fn results_(&self, py: Python<'_>) -> PyResult<OVDict> {
        self.request.ensure_idle()?;
        let outputs = self.request.request.outputs().or_raise()?.into_vec();
        self.request.results(py, &outputs, false, true)
    }
    /// Milliseconds of the last inference.
    #[getter(latency)]
    fn latency_(&self) -> PyResult<f64> {
        self.request.ensure_idle()?;
        Ok(lock(&self.request.slots).took.as_secs_f64() * 1e3)
    }
    fn get_profiling_info(&self) -> PyResult<Vec<ProfilingInfo>> {
        let profile = self.request.request.get()?.profile().or_raise()?;
        if profile.is_empty() {
            let model = self.request.compiled.runtime_model();
            let row = |name: &str, ty: &str| ProfilingInfo {
                node_name: name.into(),
                node_type: ty.into(),
                ..ProfilingInfo::new()
            };
            return Ok(model.nodes().map(|(_, node)| row(node.name(), node.op().type_name())).collect());
        }
        Ok(profile.into_iter().map(ProfilingInfo::from).collect())
    }
    #[getter(profiling_info)]
    fn profiling_info_(&self) -> PyResult<Vec<ProfilingInfo>> {
        self.get_profiling_info()
    }
    /// The variables of the model, with what this request keeps in them.
    pub(crate) fn query_state(&self) -> PyResult<Vec<VariableState>> {
        let states = self.request.request.get()?.query_state().or_raise()?;
        Ok(states.into_iter().map(|state| VariableState { state, request: self.request.clone() }).collect())
    }
    /// Brings all variables back to where a new request begins.
    fn reset_state(&self) -> PyResult<()> {
        self.request.request.get()?.reset_state().or_raise()
    }
    fn get_compiled_model(&self) -> CompiledModel {
        CompiledModel::again(&self.request.compiled)
    }
}

impl InferRequest {
    // What the callback raised.
    fn raise(&self) -> PyResult<()> {
        lock(&self.request.background).raised.take().map_or(Ok(()), Err)
    }
}

/// A variable of a request.
#[pyclass(name = "VariableState", module = "carafe", frozen)]
pub(crate) struct VariableState {
    state: carafe::VariableState,
    request: Arc<Request>,
}

#[pymethods]
impl VariableState {
    #[getter(name)]
    fn name_(&self) -> &str {
        self.state.name()
    }
    /// What it holds; before the first assignment, zeros of the least shape.
    #[getter(state)]
    fn state_(&self) -> PyResult<Tensor> {
        if let Some(value) = self.state.get().or_raise()? {
            return Ok(Cell::of_engine(&value)?.into());
        }
        let (ty, shape) = self.request.compiled.variable(self.state.name())?;
        Ok(Cell::zeros(ty, &shape)?.into())
    }
    #[setter]
    fn set_state(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.state.set(tensor_of(value)?.to_engine()?).or_raise()
    }
    /// Brings it back to where a new request begins.
    fn reset(&self) -> PyResult<()> {
        let others = self.request.request.get()?.query_state().or_raise()?;
        let kept: Vec<_> = others.into_iter().filter(|s| s.name() != self.state.name()).collect();
        let values = kept.iter().map(|s| s.get()).collect::<Result<Vec<_>, _>>().or_raise()?;
        self.request.request.reset_state().or_raise()?;
        for (state, value) in kept.iter().zip(values) {
            if let Some(value) = value {
                state.set(value).or_raise()?;
            }
        }
        Ok(())
    }
    fn __repr__(&self) -> String {
        format!("<VariableState: {}>", self.state.name())
    }
}

/// What became of a node in an inference, and its times.
#[pyclass(name = "ProfilingInfo", module = "carafe", get_all, set_all)]
pub(crate) struct ProfilingInfo {
    node_name: String,
    node_type: String,
    exec_type: String,
    status: Status,
    real_time: Duration,
    cpu_time: Duration,
}

/// What became of a node.
#[pyclass(name = "Status", module = "carafe", frozen, eq, eq_int, from_py_object)]
#[derive(Clone, Copy, PartialEq)]
#[allow(non_camel_case_types, clippy::upper_case_acronyms)]
pub(crate) enum Status {
    NOT_RUN,
    OPTIMIZED_OUT,
    EXECUTED,
}

#[pymethods]
impl ProfilingInfo {
    #[new]
    fn new() -> ProfilingInfo {
        ProfilingInfo {
            node_name: String::new(),
            node_type: String::new(),
            exec_type: String::new(),
            status: Status::NOT_RUN,
            real_time: Duration::ZERO,
            cpu_time: Duration::ZERO,
        }
    }
    fn __repr__(&self) -> String {
        format!(
            "<ProfilingInfo: {} ({}, {}), {} us>",
            self.node_name,
            self.node_type,
            self.exec_type,
            self.real_time.as_micros()
        )
    }
}

impl From<carafe::NodeProfile> for ProfilingInfo {
    fn from(node: carafe::NodeProfile) -> ProfilingInfo {
        ProfilingInfo {
            node_name: node.name,
            node_type: node.type_name.to_string(),
            exec_type: node.kernel.to_string(),
            status: match node.status {
                NodeStatus::NotRun => Status::NOT_RUN,
                NodeStatus::OptimizedOut => Status::OPTIMIZED_OUT,
                NodeStatus::Executed => Status::EXECUTED,
            },
            real_time: node.real_time,
            cpu_time: node.cpu_time,
        }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<InferRequest>()?;
    module.add_class::<VariableState>()?;
    module.add_class::<ProfilingInfo>()?;
    module.add_class::<Status>()?;
    let (info, status) = (module.py().get_type::<ProfilingInfo>(), module.py().get_type::<Status>());
    info.setattr("Status", &status)?;
    for name in ["NOT_RUN", "OPTIMIZED_OUT", "EXECUTED"] {
        info.setattr(name, status.getattr(name)?)?;
    }
    Ok(())
}
