//! Brings requests together. The one that makes a group full runs it for all; the others wait for their rows. A group
//! that does not become full in time is dissolved, and each of its requests runs alone; so does each of a group whose
//! inference failed, for one bad input must not be everybody's error.

use crate::bindings::{cancelled, check_cancel};
use carafe_device::{CancelFlag, CompiledModel, InferRequest, NodeProfile};
use carafe_graph::{Error, Result};
use carafe_tensor::Tensor;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How often a waiting request looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(2);

pub(crate) struct Collector {
    n: usize,
    timeout: Duration,
    many: Arc<dyn CompiledModel>,
    state: Mutex<State>,
    answered: Condvar,
    /// Inferences with all rows.
    pub(crate) n_batches: AtomicUsize,
}

struct State {
    open: Vec<Arc<Member>>,
    deadline: Instant,
    free: Vec<Box<dyn InferRequest>>,
}

/// A request in a group.
struct Member {
    inputs: Vec<Tensor>,
    answer: Mutex<Option<Answer>>,
}

pub(crate) enum Answer {
    Rows(Vec<Tensor>, Vec<NodeProfile>),
    /// Nobody ran it.
    Alone,
}

impl Member {
    fn answer(&self) -> MutexGuard<'_, Option<Answer>> {
        self.answer.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Collector {
    pub(crate) fn new(n: usize, timeout: Duration, many: Arc<dyn CompiledModel>) -> Collector {
        let state = State { open: Vec::new(), deadline: Instant::now(), free: Vec::new() };
        let (state, answered) = (Mutex::new(state), Condvar::new());
        Collector { n, timeout, many, state, answered, n_batches: AtomicUsize::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Waits until the inputs were run with others, or are to be run alone.
    pub(crate) fn join(&self, inputs: Vec<Tensor>, cancel: &CancelFlag) -> Result<Answer> {
        let me = Arc::new(Member { inputs, answer: Mutex::new(None) });
        let mut state = self.state();
        if state.open.is_empty() {
            state.deadline = Instant::now() + self.timeout;
        }
        state.open.push(me.clone());
        if state.open.len() == self.n {
            let group = Group { from: self, members: std::mem::take(&mut state.open) };
            drop(state);
            group.run();
            // The others need the rows, so a cancelled leader still runs the group.
            check_cancel(cancel)?;
            return Ok(me.answer().take().unwrap_or(Answer::Alone));
        }
        loop {
            if let Some(answer) = me.answer().take() {
                return Ok(answer);
            }
            let waits = state.open.iter().any(|m| Arc::ptr_eq(m, &me));
            if cancel.is_set() {
                // Without it the group has room again; a group that runs already goes on without it.
                state.open.retain(|m| !Arc::ptr_eq(m, &me));
                return Err(cancelled());
            }
            let now = Instant::now();
            if waits && now >= state.deadline {
                let group = Group { from: self, members: std::mem::take(&mut state.open) };
                drop(state);
                drop(group);
                state = self.state();
                continue;
            }
            let left = if waits { state.deadline - now } else { LOOK };
            state = self.answered.wait_timeout(state, left.min(LOOK)).unwrap_or_else(|e| e.into_inner()).0;
        }
    }
}

/// A group that nobody can join any more. Whoever has no answer when it is dropped runs alone.
struct Group<'a> {
    from: &'a Collector,
    members: Vec<Arc<Member>>,
}

impl Group<'_> {
    fn run(self) {
        if let Ok((rows, profile)) = self.infer() {
            self.from.n_batches.fetch_add(1, Ordering::Relaxed);
            for (member, outputs) in self.members.iter().zip(rows) {
                *member.answer() = Some(Answer::Rows(outputs, profile.clone()));
            }
        }
    }

    fn infer(&self) -> Result<(Vec<Vec<Tensor>>, Vec<NodeProfile>)> {
        let from = self.from;
        let free = from.state().free.pop();
        let mut request = free.unwrap_or_else(|| from.many.clone().create_request());
        for i in 0..from.many.inputs().len() {
            let rows: Vec<&Tensor> = self.members.iter().map(|m| &m.inputs[i]).collect();
            request.set_input(i, joined(&rows)?)?;
        }
        request.infer()?;
        let mut answers = vec![Vec::new(); self.members.len()];
        for o in 0..from.many.outputs().len() {
            let output = request.output(o)?;
            for (row, answer) in answers.iter_mut().enumerate() {
                answer.push(taken(output, row, self.members.len())?);
            }
        }
        let profile = request.profile();
        from.state().free.push(request);
        Ok((answers, profile))
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        // The lock is held while answering, so that none who waits misses it between looking and sleeping.
        let _state = self.from.state();
        for member in &self.members {
            member.answer().get_or_insert(Answer::Alone);
        }
        self.from.answered.notify_all();
    }
}

// Tensors of one row each, one after the other.
fn joined(rows: &[&Tensor]) -> Result<Tensor> {
    let first = rows[0];
    let mut shape = first.shape().to_vec();
    match shape.first_mut() {
        Some(d) => *d = rows.len(),
        None => return Err(Error::invalid("a scalar has no rows")),
    }
    let mut all = Tensor::zeros(first.element_type(), &shape)?;
    for (i, row) in rows.iter().enumerate() {
        all.copy_elements(i * first.len(), row, 0, first.len())?;
    }
    Ok(all)
}

fn taken(from: &Tensor, row: usize, n: usize) -> Result<Tensor> {
    let mut shape = from.shape().to_vec();
    match shape.first_mut() {
        Some(d) if *d == n => *d = 1,
        _ => return Err(Error::invalid(format!("an output of {:?} does not have {n} rows", from.shape()))),
    }
    let len = from.len() / n;
    let mut one = Tensor::zeros(from.element_type(), &shape)?;
    one.copy_elements(0, from, row * len, len)?;
    Ok(one)
}
