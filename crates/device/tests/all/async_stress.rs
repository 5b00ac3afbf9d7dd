//! Thousands of starts, cancels and drops from several threads. Whatever the order, every run that was not dropped calls
//! back exactly once, every `wait` returns, and nothing stays alive.

use crate::fake::{Behaviour, Fake, compiled, number, value};
use carafe_device::{AsyncInferQueue, AsyncInferRequest, CompiledModel, async_request};
use carafe_graph::ErrorKind;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Small numbers that are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn request(fake: &Arc<Fake>) -> AsyncInferRequest {
    async_request(&(fake.clone() as Arc<dyn CompiledModel>))
}

fn slow() -> Behaviour {
    Behaviour { stage_time: Duration::from_micros(20), ..Behaviour::default() }
}

const THREADS: u64 = 4;

/// Rounds of each thread; the checkers that slow a program down a hundredfold ask for fewer.
fn rounds() -> u64 {
    std::env::var("CARAFE_STRESS_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1000)
}

fn on_threads(work: impl Fn(Dice) + Sync) {
    std::thread::scope(|s| {
        for seed in 0..THREADS {
            let work = &work;
            s.spawn(move || work(Dice(seed)));
        }
    });
}

#[test]
fn every_run_calls_back_once_whatever_cancels_it() {
    let fake = compiled(slow());
    on_threads(|mut dice| {
        let r = request(&fake);
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        r.set_callback(move |_, _| {
            counted.fetch_add(1, SeqCst);
        })
        .unwrap();
        for run in 1..=rounds() {
            r.start_async().unwrap();
            let cancelled = dice.roll(2) == 0;
            if cancelled {
                (0..dice.roll(50)).for_each(|_| std::hint::spin_loop());
                r.cancel();
            }
            match r.wait() {
                Ok(()) => {}
                Err(e) => assert!(cancelled && e.kind() == ErrorKind::Cancelled, "{e}"),
            }
            assert_eq!(calls.load(SeqCst) as u64, run);
        }
    });
    assert_eq!(fake.requests_alive.load(SeqCst), 0);
}

#[test]
fn requests_are_dropped_at_any_moment_in_any_order() {
    on_threads(|mut dice| {
        for _ in 0..rounds() / 4 {
            let fake = compiled(slow());
            let mut requests: Vec<AsyncInferRequest> = (0..3).map(|_| request(&fake)).collect();
            let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            for r in &requests {
                let (begun, ended) = (begun.clone(), ended.clone());
                r.set_callback(move |_, handle| {
                    begun.fetch_add(1, SeqCst);
                    // Refused when the owner is gone.
                    let _ = handle.start_async();
                    ended.fetch_add(1, SeqCst);
                })
                .unwrap();
                r.start_async().unwrap();
            }
            let watch = Arc::downgrade(&fake);
            let mut fake = Some(fake);
            while !requests.is_empty() {
                match dice.roll(6) {
                    0 => fake = None,
                    1 => requests[0].cancel(),
                    2 => std::thread::yield_now(),
                    _ => drop(requests.swap_remove(dice.roll(requests.len() as u64) as usize)),
                }
            }
            // No callback runs on after the drop of its request.
            assert_eq!(begun.load(SeqCst), ended.load(SeqCst));
            drop(fake);
            assert_eq!((Arc::strong_count(&begun), watch.strong_count()), (1, 0));
        }
    });
}

#[test]
fn requests_are_dropped_inside_callbacks_of_others() {
    on_threads(|mut dice| {
        for _ in 0..rounds() / 4 {
            // Two models, so that callbacks of both run at once and drop requests of each other.
            let fakes = [compiled(slow()), compiled(slow())];
            let all: Vec<_> = (0..4).map(|i| Arc::new(Mutex::new(Some(request(&fakes[i % 2]))))).collect();
            let mut handles = Vec::new();
            for own in &all {
                let victim = all[dice.roll(4) as usize].clone();
                let own = own.lock().unwrap();
                let Some(r) = &*own else { continue };
                r.set_callback(move |_, _| {
                    let taken = victim.lock().unwrap().take();
                    drop(taken);
                })
                .unwrap();
                handles.push(r.handle());
            }
            for own in &all {
                if let Some(r) = &*own.lock().unwrap() {
                    r.start_async().unwrap();
                }
            }
            drop(fakes);
            if dice.roll(2) == 0 {
                for handle in &handles {
                    let _ = handle.wait();
                }
            }
            drop(all);
            // Those of dropped requests come to an end too.
            for handle in handles {
                let _ = handle.wait();
            }
        }
    });
}

#[test]
fn one_request_is_shared_by_threads_that_start_wait_and_cancel() {
    let fake = compiled(slow());
    let r = request(&fake);
    let (started, called) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let counted = called.clone();
    r.set_callback(move |_, _| {
        counted.fetch_add(1, SeqCst);
    })
    .unwrap();
    on_threads(|mut dice| {
        for _ in 0..rounds() {
            match dice.roll(4) {
                0 => r.cancel(),
                1 => drop(r.wait()),
                _ => match r.start_async() {
                    Ok(()) => {
                        started.fetch_add(1, SeqCst);
                    }
                    Err(e) => assert!(matches!(e.kind(), ErrorKind::Busy | ErrorKind::Cancelled), "{e}"),
                },
            }
        }
    });
    let _ = r.wait();
    assert_eq!(started.load(SeqCst), called.load(SeqCst));
    assert!(started.load(SeqCst) > 0);
}

#[test]
fn a_queue_is_fed_from_several_threads() {
    let fake = compiled(slow());
    let queue = AsyncInferQueue::new(&(fake.clone() as Arc<dyn CompiledModel>), &fake.executors(), 4).unwrap();
    let sum = Arc::new(AtomicUsize::new(0));
    let added = sum.clone();
    queue
        .set_callback(move |done, x: u64| {
            assert_eq!(number(&done.output(0).unwrap()), x as f32 + 1.0);
            added.fetch_add(x as usize, SeqCst);
        })
        .unwrap();
    let rounds = rounds() / 2;
    on_threads(|_| {
        (0..rounds).for_each(|x| {
            queue.start_async([(0, value(x as f32))], x).unwrap();
        })
    });
    queue.wait_all().unwrap();
    assert_eq!(sum.load(SeqCst) as u64, THREADS * rounds * (rounds - 1) / 2);
}
