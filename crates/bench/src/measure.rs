//! The loop that is measured. Requests that end are started again from their own callback, so that no other thread stands between
//! two inferences; the calling thread only watches.

use crate::counters::Counters;
use carafe::{CompiledModel, Error, InferRequest, NodeProfile, Result, Tensor};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks at the times of nodes: they cost more to fetch than a small model takes to run.
const SAMPLE_EVERY: Duration = Duration::from_millis(10);
/// Between two calls of the progress function.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// How inferences are started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Api {
    /// One behind the other, on the calling thread.
    Sync,
    /// Several requests at once.
    #[default]
    Async,
}

/// What to measure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// How inferences are started.
    pub api: Api,
    /// Requests that run at once; 0 for as many as the compiled model says. One with [`Api::Sync`].
    pub requests: usize,
    /// Run at least this often.
    pub iterations: usize,
    /// Run at least this long.
    pub duration: Duration,
    /// Bind inputs before every inference, in the loop that is measured, instead of once.
    pub fill_each: bool,
    /// Most samples in a second; 0 for no limit.
    pub max_rate: f64,
    /// Run each request once before time is taken.
    pub warm_up: bool,
}

/// Inputs of one inference; several groups take turns.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// A tensor for each input, in order.
    pub inputs: Vec<Tensor>,
    /// Samples in them.
    pub batch: usize,
}

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// Time of the very first inference, which warmed the model up.
    pub first: Option<Duration>,
    /// Every latency, in the order of the ends.
    pub latencies: Vec<Duration>,
    /// The group of each latency.
    pub groups: Vec<usize>,
    /// From the first start to the last end.
    pub duration: Duration,
    /// Samples of all inferences.
    pub samples: usize,
    /// Requests that ran at once.
    pub requests: usize,
    /// Times of nodes in the last inference of each request; empty unless the model was compiled with `PERF_COUNT`.
    pub last: Vec<Vec<NodeProfile>>,
    /// Times of nodes over inferences of the whole run.
    pub counters: Counters,
}

impl Measurement {
    /// Samples in a second.
    pub fn throughput(&self) -> f64 {
        self.samples as f64 / self.duration.as_secs_f64().max(1e-9)
    }

    /// Latencies of one group.
    pub fn latencies_of(&self, group: usize) -> Vec<Duration> {
        self.latencies.iter().zip(&self.groups).filter(|(_, g)| **g == group).map(|(l, _)| *l).collect()
    }
}

/// Runs the model until both limits are reached, on whole rounds of requests and groups. `progress` hears now and then how many
/// inferences have ended, and after what time.
pub fn measure(
    compiled: &CompiledModel,
    groups: &[Group],
    settings: &Settings,
    progress: &mut dyn FnMut(usize, Duration),
) -> Result<Measurement> {
    if groups.is_empty() {
        return Err(Error::usage("there are no inputs to measure with"));
    }
    let optimal = || compiled.property("OPTIMAL_NUMBER_OF_INFER_REQUESTS").ok().and_then(|n| n.trim().parse().ok());
    let count = match (settings.api, settings.requests) {
        (Api::Sync, _) => 1,
        (Api::Async, 0) => optimal().unwrap_or(1),
        (Api::Async, n) => n,
    };
    let count = count.max(1);
    let requests: Vec<InferRequest> = (0..count).map(|_| compiled.create_infer_request()).collect();
    let mut first = None;
    for (i, request) in requests.iter().enumerate() {
        bind(request, &groups[i % groups.len()])?;
        if settings.warm_up {
            let start = Instant::now();
            request.infer(())?;
            first = first.or(Some(start.elapsed()));
        }
    }
    let mut done = match settings.api {
        Api::Sync => one_by_one(&requests[0], groups, settings, progress)?,
        Api::Async => at_once(&requests, groups, settings, progress)?,
    };
    done.first = first;
    done.requests = count;
    done.samples = done.groups.iter().map(|g| groups[*g].batch).sum();
    done.last = requests.iter().map(InferRequest::profile).collect::<Result<_>>()?;
    if done.counters.inferences() == 0 {
        done.last.iter().for_each(|profile| done.counters.add(profile));
    }
    Ok(done)
}

fn bind(request: &InferRequest, group: &Group) -> Result<()> {
    group.inputs.iter().enumerate().try_for_each(|(i, tensor)| request.set_input(i, tensor.clone()))
}

// Whether another inference is started after `started` ones.
fn goes_on(settings: &Settings, round: usize, started: usize, elapsed: Duration) -> bool {
    started == 0 || started < settings.iterations || elapsed < settings.duration || !started.is_multiple_of(round)
}

// Waits until the rate allows the next start.
fn slow_down(settings: &Settings, samples: usize, begin: Instant) {
    if settings.max_rate > 0.0 {
        let due = Duration::try_from_secs_f64(samples as f64 / settings.max_rate).unwrap_or_default();
        std::thread::sleep(due.saturating_sub(begin.elapsed()));
    }
}

fn one_by_one(
    request: &InferRequest,
    groups: &[Group],
    settings: &Settings,
    progress: &mut dyn FnMut(usize, Duration),
) -> Result<Measurement> {
    let mut done = Measurement::default();
    let (begin, mut told, mut sampled, mut samples) = (Instant::now(), Duration::ZERO, None, 0);
    while goes_on(settings, groups.len(), done.latencies.len(), begin.elapsed()) {
        let group = done.latencies.len() % groups.len();
        if settings.fill_each || groups.len() > 1 {
            bind(request, &groups[group])?;
        }
        let start = Instant::now();
        request.infer(())?;
        let end = Instant::now();
        done.latencies.push(end - start);
        done.groups.push(group);
        samples += groups[group].batch;
        let elapsed = end - begin;
        done.duration = elapsed;
        if sampled.is_none_or(|at| elapsed >= at + SAMPLE_EVERY) {
            done.counters.add(&request.profile()?);
            sampled = Some(elapsed);
        }
        if elapsed >= told + PROGRESS_EVERY {
            told = elapsed;
            progress(done.latencies.len(), elapsed);
        }
        slow_down(settings, samples, begin);
    }
    Ok(done)
}

/// What callbacks and the watching thread share.
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    groups: Vec<Group>,
    settings: Settings,
    round: usize,
    begin: Instant,
}

#[derive(Default)]
struct State {
    /// When each request was started last, and with which group.
    starts: Vec<(Option<Instant>, usize)>,
    started: usize,
    running: usize,
    samples: usize,
    sampled: Option<Duration>,
    done: Measurement,
    error: Option<Error>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a request, or lets it rest when enough were started.
    fn next(&self, id: usize, request: &InferRequest) {
        let (group, samples) = {
            let mut s = self.lock();
            if s.error.is_some() || !goes_on(&self.settings, self.round, s.started, self.begin.elapsed()) {
                s.running -= 1;
                self.changed.notify_all();
                return;
            }
            let group = s.started % self.groups.len();
            s.started += 1;
            let before = s.samples;
            s.samples += self.groups[group].batch;
            (group, before)
        };
        slow_down(&self.settings, samples, self.begin);
        let bound = match self.settings.fill_each || self.groups.len() > 1 {
            true => bind(request, &self.groups[group]),
            false => Ok(()),
        };
        self.lock().starts[id] = (Some(Instant::now()), group);
        if let Err(e) = bound.and_then(|()| request.start_async(())) {
            self.fail(e);
        }
    }

    fn fail(&self, error: Error) {
        let mut s = self.lock();
        s.error.get_or_insert(error);
        s.running -= 1;
        self.changed.notify_all();
    }

    fn ended(&self, id: usize, request: &InferRequest, error: Option<&Error>) {
        let end = Instant::now();
        if let Some(e) = error {
            return self.fail(e.clone());
        }
        let sample = {
            let mut s = self.lock();
            let (start, group) = s.starts[id];
            s.done.latencies.push(end.duration_since(start.unwrap_or(end)));
            s.done.groups.push(group);
            let elapsed = end - self.begin;
            s.done.duration = s.done.duration.max(elapsed);
            let due = s.sampled.is_none_or(|at| elapsed >= at + SAMPLE_EVERY);
            if due {
                s.sampled = Some(elapsed);
            }
            due
        };
        if sample {
            match request.profile() {
                Ok(profile) => self.lock().done.counters.add(&profile),
                Err(e) => return self.fail(e),
            }
        }
        self.next(id, request);
    }
}

fn at_once(
    requests: &[InferRequest],
    groups: &[Group],
    settings: &Settings,
    progress: &mut dyn FnMut(usize, Duration),
) -> Result<Measurement> {
    let state = State { starts: vec![(None, 0); requests.len()], running: requests.len(), ..State::default() };
    let shared = Arc::new(Shared {
        state: Mutex::new(state),
        changed: Condvar::new(),
        groups: groups.to_vec(),
        settings: settings.clone(),
        round: if groups.len() > requests.len() { groups.len() } else { requests.len() },
        begin: Instant::now(),
    });
    for (id, request) in requests.iter().enumerate() {
        let shared = shared.clone();
        request.set_callback(move |error, request| shared.ended(id, request, error))?;
    }
    requests.iter().enumerate().for_each(|(id, request)| shared.next(id, request));
    let mut s = shared.lock();
    while s.running > 0 {
        (s, _) = shared.changed.wait_timeout(s, PROGRESS_EVERY).unwrap_or_else(PoisonError::into_inner);
        let count = s.done.latencies.len();
        drop(s);
        progress(count, shared.begin.elapsed());
        s = shared.lock();
    }
    drop(s);
    // The callbacks hold what is shared, and the requests hold the callbacks.
    for request in requests {
        let _ = request.wait();
        request.clear_callback()?;
    }
    let mut s = shared.lock();
    match s.error.take() {
        Some(e) => Err(e),
        None => Ok(std::mem::take(&mut s.done)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe::{ElementType, Model, PartialShape, Properties};

    fn compiled(properties: &Properties) -> CompiledModel {
        let mut model = Model::new("m");
        let x = model.parameter("x", ElementType::F32, PartialShape::any_of_rank(1)).unwrap();
        let y = model.add("y", carafe::ops::activation::Relu, &[x]).unwrap();
        model.result("r", y.into()).unwrap();
        carafe::core().compile_model(&model, "TEMPLATE", properties).unwrap()
    }

    fn group(n: usize) -> Group {
        Group { inputs: vec![Tensor::zeros(ElementType::F32, &[n]).unwrap()], batch: n }
    }

    #[test]
    fn as_many_inferences_run_as_are_asked_for() {
        let compiled = compiled(&Properties::new());
        for api in [Api::Sync, Api::Async] {
            let settings = Settings { api, requests: 3, iterations: 12, warm_up: true, ..Settings::default() };
            let done = measure(&compiled, &[group(2)], &settings, &mut |_, _| {}).unwrap();
            assert_eq!((done.latencies.len(), done.samples), (12, 24), "{api:?}");
            assert!(done.first.is_some() && done.throughput() > 0.0);
            assert_eq!(done.requests, if api == Api::Sync { 1 } else { 3 });
        }
    }

    #[test]
    fn a_round_of_requests_or_groups_is_not_cut() {
        let compiled = compiled(&Properties::new());
        let settings = Settings { requests: 4, iterations: 5, ..Settings::default() };
        let done = measure(&compiled, &[group(1)], &settings, &mut |_, _| {}).unwrap();
        assert_eq!((done.latencies.len(), done.first), (8, None));
        let settings = Settings { requests: 1, iterations: 4, ..Settings::default() };
        let done = measure(&compiled, &[group(1), group(2), group(3)], &settings, &mut |_, _| {}).unwrap();
        assert_eq!((done.latencies.len(), done.samples), (6, 12));
        assert_eq!(done.latencies_of(1).len(), 2);
    }

    #[test]
    fn an_error_ends_the_run_and_is_given() {
        let compiled = compiled(&Properties::new());
        let wrong = Group { inputs: vec![Tensor::zeros(ElementType::I64, &[1]).unwrap()], batch: 1 };
        let settings = Settings { requests: 2, iterations: 10, ..Settings::default() };
        assert!(measure(&compiled, std::slice::from_ref(&wrong), &settings, &mut |_, _| {}).is_err());
        // The second request starts with a group that fits, and meets the other one in the loop.
        assert!(measure(&compiled, &[group(1), group(1), wrong], &settings, &mut |_, _| {}).is_err());
        assert!(measure(&compiled, &[], &settings, &mut |_, _| {}).is_err());
    }
}
