//! A device without a model: each request has three stages, adds 1 to its input, and can be told to be slow, to fail or to
//! panic. Its stages check that they come in order.

#![allow(dead_code, unreachable_pub)] // each test file uses a part of it

use carafe_device::{CancelFlag, CompiledModel, Executors, InferRequest, NodeProfile, Port, Stage};
use carafe_graph::{Error, ErrorKind, Model, Result};
use carafe_tensor::{ElementType, Tensor};
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct Behaviour {
    pub stage_time: Duration,
    pub fail_in: Option<usize>,
    pub panic_in: Option<usize>,
    /// The stage that only ends when it is cancelled.
    pub endless: Option<usize>,
}

pub struct Fake {
    pub behaviour: Mutex<Behaviour>,
    executors: Executors,
    /// Stages that run now, and the most there were at once.
    pub at_once: AtomicUsize,
    pub most_at_once: AtomicUsize,
    pub requests_alive: AtomicUsize,
}

pub fn compiled(behaviour: Behaviour) -> Arc<Fake> {
    Arc::new(Fake {
        behaviour: Mutex::new(behaviour),
        executors: Executors::default(),
        at_once: AtomicUsize::new(0),
        most_at_once: AtomicUsize::new(0),
        requests_alive: AtomicUsize::new(0),
    })
}

impl CompiledModel for Fake {
    fn inputs(&self) -> &[Port] {
        &[]
    }
    fn outputs(&self) -> &[Port] {
        &[]
    }
    fn runtime_model(&self) -> Model {
        Model::new("fake")
    }
    fn export(&self, _: &mut dyn Write) -> Result<()> {
        Err(Error::unsupported("the fake device exports nothing"))
    }
    fn property(&self, name: &str) -> Result<String> {
        match name {
            "OPTIMAL_NUMBER_OF_INFER_REQUESTS" => Ok("3".into()),
            _ => Err(Error::not_found(name)),
        }
    }
    fn create_request(self: Arc<Self>) -> Box<dyn InferRequest> {
        self.requests_alive.fetch_add(1, Ordering::SeqCst);
        let input = Tensor::zeros(ElementType::F32, &[1]).unwrap();
        Box::new(FakeRequest { fake: self, input, output: None, stage: 0, cancel: CancelFlag::new() })
    }
    fn executors(&self) -> Executors {
        self.executors.clone()
    }
}

struct FakeRequest {
    fake: Arc<Fake>,
    input: Tensor,
    output: Option<Tensor>,
    stage: usize,
    cancel: CancelFlag,
}

impl Drop for FakeRequest {
    fn drop(&mut self) {
        self.fake.requests_alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl FakeRequest {
    fn stage(&mut self, stage: usize) -> Result<()> {
        let told = self.fake.behaviour.lock().unwrap().clone();
        assert!(stage == 0 || stage == self.stage + 1, "stage {stage} after {}", self.stage);
        self.stage = stage;
        std::thread::sleep(told.stage_time);
        while told.endless == Some(stage) && !self.cancel.is_set() {
            std::thread::yield_now();
        }
        if self.cancel.is_set() {
            return Err(Error::new(ErrorKind::Cancelled, "stopped by the device"));
        }
        if told.panic_in == Some(stage) {
            std::panic::resume_unwind(Box::new(format!("stage {stage} gives up")));
        }
        if told.fail_in == Some(stage) {
            return Err(Error::invalid(format!("stage {stage} fails")));
        }
        if stage == 1 {
            let x = self.input.as_slice::<f32>()?[0];
            self.output = Some(Tensor::from_slice(&[1], &[x + 1.0])?);
        }
        Ok(())
    }
}

impl InferRequest for FakeRequest {
    fn set_input(&mut self, _: usize, tensor: Tensor) -> Result<()> {
        self.input = tensor;
        Ok(())
    }
    fn input(&self, _: usize) -> Option<&Tensor> {
        Some(&self.input)
    }
    fn set_output(&mut self, _: usize, _: Tensor) -> Result<()> {
        Ok(())
    }
    fn infer(&mut self) -> Result<()> {
        (0..3).try_for_each(|stage| self.run_stage(stage))
    }
    fn stages(&self) -> Vec<Stage> {
        let stage = |(name, executor): (&str, &str)| Stage { name: name.into(), executor: executor.into() };
        [("upload", "host"), ("compute", "device"), ("download", "host")].map(stage).into()
    }
    fn run_stage(&mut self, stage: usize) -> Result<()> {
        let now = self.fake.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.fake.most_at_once.fetch_max(now, Ordering::SeqCst);
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.stage(stage)));
        self.fake.at_once.fetch_sub(1, Ordering::SeqCst);
        done.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    }
    fn output(&self, _: usize) -> Result<&Tensor> {
        self.output.as_ref().ok_or_else(|| Error::usage("nothing was inferred yet"))
    }
    fn profile(&self) -> Vec<NodeProfile> {
        vec![]
    }
    fn variables(&self) -> Vec<String> {
        vec![]
    }
    fn variable(&self, _: &str) -> Result<Option<Tensor>> {
        Ok(None)
    }
    fn set_variable(&mut self, _: &str, _: Tensor) -> Result<()> {
        Ok(())
    }
    fn reset_variables(&mut self) {}
    fn cancel_flag(&self) -> CancelFlag {
        self.cancel.clone()
    }
}

pub fn value(x: f32) -> Tensor {
    Tensor::from_slice(&[1], &[x]).unwrap()
}

pub fn number(tensor: &Tensor) -> f32 {
    tensor.as_slice::<f32>().unwrap()[0]
}
