//! A device in one file: `Core` takes it under a name, and everything that works with devices works with it. This one runs
//! each operation as it is defined; a real one would lower the model to its own kernels in `compile`.
//!
//!     cargo run --release --example own_device

use carafe::device::{CompiledModel, Device, InferRequest, Mutability, PropertyInfo, PropertyKind, query_runnable};
use carafe::{
    CancelFlag, ElementType, Error, Model, NodeProfile, Port, Properties, Query, Registry, Result, SharedBytes, Tensor,
    ops,
};
use std::io::Write;
use std::sync::Arc;

const NAME: &str = "MINE";

/// The device.
struct Mine;

const fn readable(name: &'static str, doc: &'static str) -> PropertyInfo {
    PropertyInfo { name, kind: PropertyKind::Text, mutability: Mutability::ReadOnly, default: "", doc }
}

impl Device for Mine {
    fn properties(&self) -> &'static [PropertyInfo] {
        const TABLE: &[PropertyInfo] =
            &[readable("AVAILABLE_DEVICES", "Ids of the instances."), readable("FULL_DEVICE_NAME", "Name for people.")];
        TABLE
    }
    fn metric(&self, name: &str) -> Result<String> {
        match name {
            "AVAILABLE_DEVICES" => Ok("0".into()),
            "FULL_DEVICE_NAME" => Ok("a device in one file".into()),
            _ => Err(Error::not_found(format!("device {NAME} has no property `{name}`"))),
        }
    }
    fn query(&self, model: &Model, _: &Properties) -> Result<Query> {
        Ok(query_runnable(model, NAME, &[], &[]))
    }
    fn compile(&self, model: &Model, properties: &Properties) -> Result<Arc<dyn CompiledModel>> {
        properties.check(self.properties())?;
        let (inputs, outputs) = (Port::inputs_of(model), Port::outputs_of(model));
        Ok(Arc::new(Compiled { model: model.clone(), inputs, outputs }))
    }
    fn import(&self, _: SharedBytes, _: &Registry, _: &Properties) -> Result<Arc<dyn CompiledModel>> {
        Err(Error::unsupported(format!("device {NAME} exports no models")))
    }
}

/// What it makes of a model.
struct Compiled {
    model: Model,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

impl CompiledModel for Compiled {
    fn inputs(&self) -> &[Port] {
        &self.inputs
    }
    fn outputs(&self) -> &[Port] {
        &self.outputs
    }
    fn runtime_model(&self) -> Model {
        self.model.clone()
    }
    fn export(&self, _: &mut dyn Write) -> Result<()> {
        Err(Error::unsupported(format!("device {NAME} exports no models")))
    }
    fn property(&self, name: &str) -> Result<String> {
        match name {
            "OPTIMAL_NUMBER_OF_INFER_REQUESTS" => Ok("1".into()),
            _ => Err(Error::not_found(format!("device {NAME} has no property `{name}`"))),
        }
    }
    fn create_request(self: Arc<Self>) -> Box<dyn InferRequest> {
        let inputs = vec![None; self.inputs.len()];
        Box::new(Request { compiled: self, inputs, outputs: vec![], cancel: CancelFlag::new() })
    }
}

/// One inference at a time.
struct Request {
    compiled: Arc<Compiled>,
    inputs: Vec<Option<Tensor>>,
    outputs: Vec<Tensor>,
    cancel: CancelFlag,
}

impl InferRequest for Request {
    fn set_input(&mut self, index: usize, tensor: Tensor) -> Result<()> {
        let port = self.compiled.inputs.get(index).ok_or_else(|| Error::usage(format!("there is no input {index}")))?;
        port.check(&tensor)?;
        self.inputs[index] = Some(tensor);
        Ok(())
    }
    fn input(&self, index: usize) -> Option<&Tensor> {
        self.inputs.get(index)?.as_ref()
    }
    fn set_output(&mut self, _: usize, _: Tensor) -> Result<()> {
        Err(Error::unsupported(format!("device {NAME} chooses the memory of outputs itself")))
    }
    fn infer(&mut self) -> Result<()> {
        self.cancel.clear();
        let missing = |port: &Port| Error::usage(format!("input `{}` has no tensor", port.name));
        let given = self.compiled.inputs.iter().zip(&self.inputs);
        let inputs = given.map(|(port, t)| t.clone().ok_or_else(|| missing(port))).collect::<Result<Vec<_>>>()?;
        self.outputs = self.compiled.model.evaluate(&inputs)?;
        Ok(())
    }
    fn output(&self, index: usize) -> Result<&Tensor> {
        self.outputs.get(index).ok_or_else(|| Error::usage(format!("there is no output {index} yet")))
    }
    fn profile(&self) -> Vec<NodeProfile> {
        vec![]
    }
    fn variables(&self) -> Vec<String> {
        vec![]
    }
    fn variable(&self, id: &str) -> Result<Option<Tensor>> {
        Err(Error::not_found(format!("there is no variable `{id}`")))
    }
    fn set_variable(&mut self, id: &str, _: Tensor) -> Result<()> {
        Err(Error::not_found(format!("there is no variable `{id}`")))
    }
    fn reset_variables(&mut self) {}
    fn cancel_flag(&self) -> CancelFlag {
        self.cancel.clone()
    }
}

pub(crate) fn main() -> Result<()> {
    let core = carafe::core();
    core.add_device(NAME, Arc::new(Mine))?;
    println!("{:?}", core.available_devices());

    let mut model = Model::new("abs");
    let x = model.parameter("x", ElementType::F32, "3".parse()?)?;
    let y = model.add("y", ops::math::Abs, &[x])?;
    model.result("out", y.into())?;
    let input = Tensor::from_slice(&[3], &[-1f32, 0.0, 2.0])?;
    // HETERO and the others take it like any device.
    for device in [NAME, "HETERO:MINE,CPU", "MULTI:MINE,CPU"] {
        let outputs = core.compile_model(&model, device, &Properties::new())?.infer(&[("x", input.clone())])?;
        println!("{device}: {:?}", outputs["y"].as_slice::<f32>()?);
        assert_eq!(outputs["y"].as_slice::<f32>()?, [1.0, 0.0, 2.0]);
    }
    Ok(())
}
