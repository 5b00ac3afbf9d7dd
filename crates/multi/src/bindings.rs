//! What a user bound to a request: tensors for its inputs and memory for its outputs.

use carafe_device::{CancelFlag, InferRequest, Port};
use carafe_graph::{Error, ErrorKind, Result};
use carafe_tensor::Tensor;

#[derive(Debug)]
pub(crate) struct Bindings {
    inputs: Vec<Option<Tensor>>,
    targets: Vec<Option<Tensor>>,
}

impl Bindings {
    pub(crate) fn new(n_inputs: usize, n_outputs: usize) -> Bindings {
        Bindings { inputs: vec![None; n_inputs], targets: vec![None; n_outputs] }
    }
    pub(crate) fn set_input(&mut self, ports: &[Port], index: usize, tensor: Tensor) -> Result<()> {
        let port = ports.get(index).ok_or_else(|| Error::not_found(format!("the model has no input {index}")))?;
        port.check(&tensor).map_err(|e| e.at("failed to set a tensor"))?;
        self.inputs[index] = Some(tensor);
        Ok(())
    }
    pub(crate) fn input(&self, index: usize) -> Option<&Tensor> {
        self.inputs.get(index)?.as_ref()
    }
    pub(crate) fn set_target(&mut self, ports: &[Port], index: usize, tensor: Tensor) -> Result<()> {
        let port = ports.get(index).ok_or_else(|| Error::not_found(format!("the model has no output {index}")))?;
        port.check(&tensor).map_err(|e| e.at("failed to set a tensor"))?;
        self.targets[index] = Some(tensor);
        Ok(())
    }
    /// Memory that moves on to a request of a device. No handle stays here, or writing to it would copy it.
    pub(crate) fn take_target(&mut self, index: usize) -> Option<Tensor> {
        self.targets.get_mut(index)?.take()
    }
    /// All inputs; the error names the first that has no tensor.
    pub(crate) fn all_inputs(&self, ports: &[Port]) -> Result<Vec<Tensor>> {
        let missing = |i: usize| Error::usage(format!("input `{}` has no tensor", ports[i].name));
        self.inputs.iter().enumerate().map(|(i, t)| t.clone().ok_or_else(|| missing(i))).collect()
    }
    /// The output in the memory given for it, if there is any of its type and shape. That memory then holds it.
    pub(crate) fn handed_out(&mut self, index: usize, output: Tensor) -> Result<Tensor> {
        let Some(mut memory) = self.targets[index].take() else { return Ok(output) };
        if memory.element_type() != output.element_type() || memory.shape() != output.shape() {
            return Ok(output);
        }
        memory.copy_elements(0, &output, 0, output.len())?;
        self.targets[index] = Some(memory.clone());
        Ok(memory)
    }
}

pub(crate) fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the inference was cancelled")
}

pub(crate) fn check_cancel(flag: &CancelFlag) -> Result<()> {
    if flag.is_set() { Err(cancelled()) } else { Ok(()) }
}

/// Infers on behalf of a request that has this flag. The stages run one by one, for `infer` would begin by forgetting a
/// cancellation that came a moment before.
pub(crate) fn infer_for(cancel: &CancelFlag, inner: &mut dyn InferRequest) -> Result<()> {
    let flag = inner.cancel_flag();
    flag.clear();
    let _leading = cancel.lead(&flag);
    (0..inner.stages().len()).try_for_each(|stage| inner.run_stage(stage))?;
    check_cancel(cancel)
}

/// Whether another device might do better: not when the user stopped it or used it wrongly.
pub(crate) fn is_devices_fault(e: &Error) -> bool {
    !matches!(e.kind(), ErrorKind::Cancelled | ErrorKind::Usage | ErrorKind::Busy)
}

pub(crate) fn not_inferred() -> Error {
    Error::usage("nothing was inferred yet")
}
