//! `ov_infer_request.h`. A request holds its tensors for its whole life: whoever got the handle of an output once sees the
//! result of every inference in it.

use crate::core::OwnedList;
use crate::handles::{Handle, Object, hand_out};
use crate::heap;
use crate::opencl::SharedQueue;
use crate::pointers::{Out, Text};
use crate::port::{Owner, PortHandle, PortObject, Side, find, only};
use crate::status::{Failure, GENERAL_ERROR, Outcome, REQUEST_BUSY, RESULT_NOT_READY, Status, guard};
use crate::tensor::TensorObject;
use carafe::{CompiledModel, InferRequest, NodeStatus, Port};
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// `ov_infer_request_t`.
#[derive(Debug)]
pub struct RequestObject {
    request: InferRequest,
    compiled: CompiledModel,
    tensors: Mutex<Tensors>,
    callback: Mutex<Option<Callback>>,
    /// A queue of the program that its inferences come after.
    queue: Option<Arc<SharedQueue>>,
}

impl Object for RequestObject {
    const KIND: &'static str = "ov_infer_request_t";
}

pub(crate) type RequestHandle = Handle<RequestObject>;
type TensorHandle = Handle<TensorObject>;

/// Tensors of inputs and outputs; made when somebody first needs them.
#[derive(Debug)]
struct Tensors {
    inputs: Vec<Option<Arc<TensorObject>>>,
    outputs: Vec<Option<Arc<TensorObject>>>,
    /// Whether the memory of an output was given to the request, and is still where it was.
    lent: Vec<Option<usize>>,
    /// Whether the engine calls back.
    listening: bool,
}

/// `ov_callback_t`. An exception of C++ must not leave the function.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Callback {
    function: Option<extern "C" fn(args: *mut c_void)>,
    args: *mut c_void,
}

// SAFETY: the pointer is only handed back to the program's own function, from another thread, as the API promises.
unsafe impl Send for Callback {}

/// `ov_profiling_info_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    status: c_int,
    real_time: i64,
    cpu_time: i64,
    node_name: *mut c_char,
    exec_type: *mut c_char,
    node_type: *mut c_char,
}

impl RequestObject {
    pub(crate) fn new(compiled: &CompiledModel, queue: Option<Arc<SharedQueue>>) -> RequestObject {
        let (inputs, outputs) = (compiled.inputs().len(), compiled.outputs().len());
        let tensors = Tensors {
            inputs: vec![None; inputs],
            outputs: vec![None; outputs],
            lent: vec![None; outputs],
            listening: false,
        };
        RequestObject {
            request: compiled.create_infer_request(),
            compiled: compiled.clone(),
            tensors: Mutex::new(tensors),
            callback: Mutex::new(None),
            queue,
        }
    }

    fn tensors(&self) -> MutexGuard<'_, Tensors> {
        self.tensors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ports(&self, side: Side) -> &[Port] {
        match side {
            Side::Input => self.compiled.inputs(),
            Side::Output => self.compiled.outputs(),
        }
    }

    fn ensure_idle(&self) -> Outcome<()> {
        match self.request.is_busy() {
            true => Err(Failure::new(REQUEST_BUSY, "an inference is running; wait for it")),
            false => Ok(()),
        }
    }

    // The side and index of a name; inputs first, as the original looks.
    fn by_name(&self, name: &str) -> Outcome<(Side, usize)> {
        if let Ok(index) = find(self.ports(Side::Input), Side::Input, name) {
            return Ok((Side::Input, index));
        }
        if let Ok(index) = find(self.ports(Side::Output), Side::Output, name) {
            return Ok((Side::Output, index));
        }
        let names = |side| self.ports(side).iter().map(|p| p.name.clone()).collect::<Vec<_>>().join(", ");
        let text = format!(
            "the model has no input or output `{name}`; inputs: {}; outputs: {}",
            names(Side::Input),
            names(Side::Output)
        );
        Err(carafe::Error::not_found(text).into())
    }

    // A port of the compiled model is exact; one of the model that was compiled is found by its names, then by its index.
    fn by_port(&self, port: &PortObject) -> Outcome<(Side, usize)> {
        let ports = self.ports(port.side);
        if matches!(port.owner, Owner::Model(_)) {
            let given = port.port()?;
            let same =
                |p: &Port| !given.names.is_disjoint(&p.names) || (given.names.is_empty() && given.name == p.name);
            if let Some(index) = ports.iter().position(same) {
                return Ok((port.side, index));
            }
        }
        find(ports, port.side, port.index).map(|index| (port.side, index))
    }

    fn tensor(&self, side: Side, index: usize) -> Outcome<Arc<TensorObject>> {
        self.ensure_idle()?;
        self.tensors().get(side, index, self.ports(side))
    }

    fn set(&self, side: Side, index: usize, tensor: Arc<TensorObject>) -> Outcome<()> {
        self.ensure_idle()?;
        let port = &self.ports(side)[index];
        match side {
            Side::Input => port.check(&tensor.to_tensor()?)?,
            // An output without elements is one that takes its shape from the inference.
            Side::Output => {
                let unknown = !port.shape.is_static() && tensor.shape().contains(&0);
                if !unknown {
                    port.check(&tensor.to_tensor()?)?;
                }
            }
        }
        let mut tensors = self.tensors();
        match side {
            Side::Input => tensors.inputs[index] = Some(tensor),
            Side::Output => {
                tensors.outputs[index] = Some(tensor);
                tensors.lent[index] = None;
            }
        }
        Ok(())
    }

    // Gives the request the tensors as they are now.
    fn bind(&self) -> Outcome<()> {
        self.ensure_idle()?;
        if let Some(queue) = &self.queue {
            queue.finish()?;
        }
        let mut tensors = self.tensors();
        for index in 0..tensors.inputs.len() {
            let tensor = tensors.get(Side::Input, index, self.compiled.inputs())?.to_tensor()?;
            self.request.set_input(index, tensor)?;
        }
        for (index, port) in self.compiled.outputs().iter().enumerate() {
            let Some(object) = tensors.outputs[index].clone() else { continue };
            if !port.shape.is_static() || port.shape.to_static() != Some(object.shape()) {
                continue;
            }
            if let Some(target) = object.to_target()? {
                // Once is enough: the request goes on writing there.
                let address = target.storage_ptr();
                if tensors.lent[index] != Some(address) {
                    self.request.set_output(index, target)?;
                    tensors.lent[index] = Some(address);
                }
            }
        }
        Ok(())
    }

    // Brings results to the tensors of the program, where they were not written there.
    fn collect(&self) -> Outcome<()> {
        let mut tensors = self.tensors();
        for index in 0..tensors.outputs.len() {
            let object = tensors.get(Side::Output, index, self.compiled.outputs())?;
            object.take(&self.request.output(index)?)?;
        }
        Ok(())
    }

    fn infer(&self) -> Outcome<()> {
        self.bind()?;
        self.request.infer(())?;
        self.collect()
    }

    fn start(self: &Arc<Self>) -> Outcome<()> {
        self.bind()?;
        let mut tensors = self.tensors();
        if !tensors.listening {
            let me = Arc::downgrade(self);
            self.request.set_callback(move |error, _| RequestObject::finished(&me, error.is_some()))?;
            tensors.listening = true;
        }
        drop(tensors);
        Ok(self.request.start_async(())?)
    }

    // On a thread for callbacks, when a run in the background has ended.
    fn finished(me: &Weak<RequestObject>, failed: bool) {
        let Some(me) = me.upgrade() else { return };
        guard(|| if failed { Ok(()) } else { me.collect() });
        let callback = *me.callback.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Callback { function: Some(function), args }) = callback {
            function(args);
        }
    }
}

impl Tensors {
    // Sizes that are not known count as 0.
    fn get(&mut self, side: Side, index: usize, ports: &[Port]) -> Outcome<Arc<TensorObject>> {
        let slot = match side {
            Side::Input => &mut self.inputs[index],
            Side::Output => &mut self.outputs[index],
        };
        if let Some(tensor) = slot {
            return Ok(tensor.clone());
        }
        let port = &ports[index];
        let dims = port.shape.dims().unwrap_or_default();
        let shape: Vec<usize> = match port.shape.rank() {
            Some(_) => dims.iter().map(|d| d.size().unwrap_or(0)).collect(),
            None => vec![0],
        };
        let ty = if port.ty.is_dynamic() { carafe::ElementType::F32 } else { port.ty };
        let made = Arc::new(TensorObject::zeros(ty, &shape)?);
        *slot = Some(made.clone());
        Ok(made)
    }
}

fn set(
    request: RequestHandle,
    tensor: TensorHandle,
    at: impl FnOnce(&RequestObject) -> Outcome<(Side, usize)>,
) -> Status {
    guard(|| {
        let request = request.get("infer_request")?;
        let tensor = tensor.get("tensor")?;
        let (side, index) = at(&request)?;
        request.set(side, index, tensor)
    })
}

fn get(
    request: RequestHandle,
    to: Out<TensorHandle>,
    at: impl FnOnce(&RequestObject) -> Outcome<(Side, usize)>,
) -> Status {
    guard(|| {
        to.check("tensor")?;
        let request = request.get("infer_request")?;
        let (side, index) = at(&request)?;
        to.set(hand_out(request.tensor(side, index)?), "tensor")
    })
}

fn at_index(request: &RequestObject, side: Side, index: usize) -> Outcome<(Side, usize)> {
    find(request.ports(side), side, index).map(|i| (side, i))
}

fn at_only(request: &RequestObject, side: Side) -> Outcome<(Side, usize)> {
    only(request.ports(side), side).map(|i| (side, i))
}

macro_rules! tensor_functions {
    ($($set:ident, $get:ident($($name:ident: $ty:ty)?) = $at:expr;)*) => { $(
        /// Binds a tensor.
        #[unsafe(no_mangle)]
        pub extern "C" fn $set(infer_request: RequestHandle, $($name: $ty,)? tensor: TensorHandle) -> Status {
            set(infer_request, tensor, |request| $at(request, $($name)?))
        }
        /// The tensor that is bound, to be freed with `ov_tensor_free`.
        #[unsafe(no_mangle)]
        pub extern "C" fn $get(infer_request: RequestHandle, $($name: $ty,)? tensor: Out<TensorHandle>) -> Status {
            get(infer_request, tensor, |request| $at(request, $($name)?))
        }
    )* };
}

tensor_functions! {
    ov_infer_request_set_tensor, ov_infer_request_get_tensor(tensor_name: Text) =
        |request: &RequestObject, name: Text| request.by_name(name.get("tensor_name")?);
    ov_infer_request_set_tensor_by_port, ov_infer_request_get_tensor_by_port(port: PortHandle) =
        |request: &RequestObject, port: PortHandle| request.by_port(&*port.get("port")?);
    ov_infer_request_set_tensor_by_const_port, ov_infer_request_get_tensor_by_const_port(port: PortHandle) =
        |request: &RequestObject, port: PortHandle| request.by_port(&*port.get("port")?);
    ov_infer_request_set_input_tensor_by_index, ov_infer_request_get_input_tensor_by_index(idx: usize) =
        |request: &RequestObject, index: usize| at_index(request, Side::Input, index);
    ov_infer_request_set_output_tensor_by_index, ov_infer_request_get_output_tensor_by_index(idx: usize) =
        |request: &RequestObject, index: usize| at_index(request, Side::Output, index);
    ov_infer_request_set_input_tensor, ov_infer_request_get_input_tensor() =
        |request: &RequestObject| at_only(request, Side::Input);
    ov_infer_request_set_output_tensor, ov_infer_request_get_output_tensor() =
        |request: &RequestObject| at_only(request, Side::Output);
}

/// Runs with the tensors that are bound, on the calling thread.
#[unsafe(no_mangle)]
pub extern "C" fn ov_infer_request_infer(infer_request: RequestHandle) -> Status {
    guard(|| infer_request.get("infer_request")?.infer())
}

/// Asks a running inference to stop.
#[unsafe(no_mangle)]
pub extern "C" fn ov_infer_request_cancel(infer_request: RequestHandle) -> Status {
    guard(|| {
        infer_request.get("infer_request")?.request.cancel();
        Ok(())
    })
}

/// Starts an inference in the background.
#[unsafe(no_mangle)]
pub extern "C" fn ov_infer_request_start_async(infer_request: RequestHandle) -> Status {
    guard(|| infer_request.get("infer_request")?.start())
}

/// Waits for the end of an inference in the background and gives its status.
#[unsafe(no_mangle)]
pub extern "C" fn ov_infer_request_wait(infer_request: RequestHandle) -> Status {
    guard(|| Ok(infer_request.get("infer_request")?.request.wait()?))
}

/// As `ov_infer_request_wait`, for at most so many milliseconds.
#[unsafe(no_mangle)]
pub extern "C" fn ov_infer_request_wait_for(infer_request: RequestHandle, timeout: i64) -> Status {
    guard(|| {
        let object = infer_request.get("infer_request")?;
        let Ok(ms) = u64::try_from(timeout) else {
            return Err(Failure::new(GENERAL_ERROR, format!("a time of {timeout} ms cannot be waited for")));
        };
        match object.request.wait_for(Duration::from_millis(ms))? {
            true => Ok(()),
            false => Err(Failure::new(RESULT_NOT_READY, format!("no inference has ended within {ms} ms"))),
        }
    })
}

/// What is called when an inference in the background has ended. The struct is copied.
#[unsafe(no_mangle)]
pub extern "C" fn ov_infer_request_set_callback(infer_request: RequestHandle, callback: Out<Callback>) -> Status {
    guard(|| {
        let object = infer_request.get("infer_request")?;
        let callback = callback.get("callback")?;
        object.ensure_idle()?;
        *object.callback.lock().unwrap_or_else(PoisonError::into_inner) = Some(callback);
        Ok(())
    })
}

/// Frees a request: an inference that runs is cancelled, and its callback has returned when this does, unless this is it.
#[unsafe(no_mangle)]
pub extern "C" fn ov_infer_request_free(infer_request: RequestHandle) {
    let Some(object) = infer_request.take() else { return };
    object.request.cancel();
    guard(|| {
        // A failure is of no interest any more, and inside of the callback there is nothing to wait for.
        let _ = object.request.wait();
        drop(object);
        Ok(())
    });
}

/// Times of the nodes in the last inference; without `PERF_COUNT` the nodes with times of 0. To be freed with
/// `ov_profiling_info_list_free`.
#[unsafe(no_mangle)]
pub extern "C" fn ov_infer_request_get_profiling_info(
    infer_request: RequestHandle,
    profiling_infos: Out<OwnedList<Profile>>,
) -> Status {
    guard(|| {
        profiling_infos.check("profiling_infos")?;
        let object = infer_request.get("infer_request")?;
        let mut all = Vec::new();
        let mut add = |status: NodeStatus, times: [Duration; 2], names: [&str; 3]| -> Outcome<()> {
            let [real_time, cpu_time] = times.map(|t| i64::try_from(t.as_micros()).unwrap_or(i64::MAX));
            let status = match status {
                NodeStatus::NotRun => 0,
                NodeStatus::OptimizedOut => 1,
                NodeStatus::Executed => 2,
            };
            let [name, kernel, ty] = names;
            let (node_name, exec_type, node_type) = (heap::text(name)?, heap::text(kernel)?, heap::text(ty)?);
            all.push(Profile { status, real_time, cpu_time, node_name, exec_type, node_type });
            Ok(())
        };
        let profile = object.request.profile()?;
        for p in &profile {
            add(p.status, [p.real_time, p.cpu_time], [&p.name, &p.kernel, &p.type_name])?;
        }
        if profile.is_empty() {
            for (_, node) in object.compiled.runtime_model().nodes() {
                add(NodeStatus::NotRun, [Duration::ZERO; 2], [node.name(), "unknown", node.op().type_name()])?;
            }
        }
        profiling_infos.set(OwnedList::of(&all)?, "profiling_infos")
    })
}

/// Frees a list of times.
#[unsafe(no_mangle)]
pub extern "C" fn ov_profiling_info_list_free(profiling_infos: Out<OwnedList<Profile>>) {
    OwnedList::empty(profiling_infos, |p| {
        heap::release(p.node_name);
        heap::release(p.exec_type);
        heap::release(p.node_type);
    });
}
