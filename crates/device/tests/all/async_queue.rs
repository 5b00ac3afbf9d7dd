//! A queue of inputs over a few requests.

use crate::fake::{Behaviour, compiled, number, value};
use carafe_device::{AsyncInferQueue, CompiledModel};
use carafe_graph::ErrorKind;
use std::sync::{Arc, Mutex, mpsc};

fn queue<U: Send>(behaviour: Behaviour, jobs: usize) -> (Arc<crate::fake::Fake>, AsyncInferQueue<U>) {
    let fake = compiled(behaviour);
    let queue = AsyncInferQueue::new(&(fake.clone() as Arc<dyn CompiledModel>), &fake.executors(), jobs).unwrap();
    (fake, queue)
}

fn endless() -> Behaviour {
    Behaviour { endless: Some(1), ..Behaviour::default() }
}

#[test]
fn every_input_comes_back_with_its_user_data() {
    let (_, queue) = queue(Behaviour::default(), 4);
    let (send, heard) = mpsc::channel();
    queue.set_callback(move |done, n: usize| send.send((n, number(&done.output(0).unwrap()))).unwrap()).unwrap();
    for n in 0..500 {
        queue.start_async([(0, value(n as f32))], n).unwrap();
    }
    queue.wait_all().unwrap();
    let mut all: Vec<_> = heard.try_iter().collect();
    all.sort_by_key(|(n, _)| *n);
    assert_eq!(all, (0..500).map(|n| (n, n as f32 + 1.0)).collect::<Vec<_>>());
}

#[test]
fn the_model_says_how_many_requests_there_are() {
    assert_eq!(queue::<()>(Behaviour::default(), 0).1.len(), 3);
}

#[test]
fn outputs_are_read_from_the_requests_after_the_end() {
    let (_, queue) = queue(Behaviour::default(), 2);
    for n in 0..2 {
        queue.start_async([(0, value(n as f32))], ()).unwrap();
    }
    queue.wait_all().unwrap();
    let mut all: Vec<f32> = queue.iter().map(|r| number(&r.output(0).unwrap())).collect();
    all.sort_by(f32::total_cmp);
    assert_eq!(all, [1.0, 2.0]);
    assert!(queue[0].output(0).is_ok());
}

#[test]
fn readiness_follows_the_requests() {
    let (_, queue) = queue(endless(), 2);
    assert!(queue.is_ready());
    let first = queue.get_idle_request_id().unwrap();
    assert_eq!(queue.start_async([], ()).unwrap(), first);
    let second = queue.get_idle_request_id().unwrap();
    queue.start_async([], ()).unwrap();
    assert!(first != second && !queue.is_ready());
    queue[second].cancel();
    queue[first].cancel();
    assert!(queue.get_idle_request_id().is_ok());
    assert_eq!(queue.wait_all().unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(queue.is_ready());
}

#[test]
fn wait_all_tells_of_errors_once() {
    let (fake, queue) = queue(Behaviour { fail_in: Some(2), ..Behaviour::default() }, 2);
    for n in 0..5 {
        queue.start_async([], n).unwrap();
    }
    assert_eq!(queue.wait_all().unwrap_err().to_string(), "first of 5 errors: stage 2 fails");
    fake.behaviour.lock().unwrap().fail_in = None;
    queue.start_async([], 5).unwrap();
    queue.wait_all().unwrap();
}

#[test]
fn a_panic_of_the_callback_frees_the_request_and_is_told() {
    let (_, queue) = queue(Behaviour::default(), 1);
    queue.set_callback(|_, ()| std::panic::resume_unwind(Box::new("enough"))).unwrap();
    queue.start_async([], ()).unwrap();
    assert_eq!(queue.wait_all().unwrap_err().to_string(), "the callback panicked: enough");
    queue.set_callback(|_, ()| {}).unwrap();
    queue.start_async([], ()).unwrap();
    queue.wait_all().unwrap();
}

#[test]
fn a_start_that_fails_leaves_the_request_idle() {
    let (_, queue) = queue(endless(), 1);
    queue[0].start_async().unwrap();
    assert_eq!(queue.start_async([(0, value(0.0))], ()).unwrap_err().kind(), ErrorKind::Busy);
    assert!(queue.is_ready());
}

#[test]
fn a_callback_cannot_wait_for_itself() {
    let (_, queue) = queue(Behaviour::default(), 1);
    let queue = Arc::new(queue);
    let (inside, (send, heard)) = (Arc::downgrade(&queue), mpsc::channel());
    queue
        .set_callback(move |_, ()| {
            let queue = inside.upgrade().unwrap();
            send.send([queue.start_async([], ()).unwrap_err().kind(), queue.wait_all().unwrap_err().kind()]).unwrap();
        })
        .unwrap();
    queue.start_async([], ()).unwrap();
    queue.wait_all().unwrap();
    assert_eq!(heard.recv().unwrap(), [ErrorKind::Busy; 2]);
}

#[test]
fn a_queue_is_dropped_while_it_runs_and_inside_its_own_callback() {
    drop(queue::<()>(endless(), 3).1);
    let (fake, running) = queue(endless(), 3);
    for _ in 0..3 {
        running.start_async([], ()).unwrap();
    }
    drop(running);
    assert_eq!(fake.requests_alive.load(std::sync::atomic::Ordering::SeqCst), 0);

    let (_, inside) = queue(Behaviour::default(), 3);
    let position = Arc::new(Mutex::new(None));
    let (taken, (send, heard)) = (position.clone(), mpsc::channel());
    inside
        .set_callback(move |_, ()| {
            drop(taken.lock().unwrap().take());
            send.send(()).unwrap();
        })
        .unwrap();
    let mut held = position.lock().unwrap();
    for _ in 0..3 {
        inside.start_async([], ()).unwrap();
    }
    *held = Some(inside);
    drop(held);
    // Only the first callback runs, and its captures go with it.
    assert_eq!(heard.iter().count(), 1);
}
