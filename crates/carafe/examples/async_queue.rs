//! Many inferences over a few requests: the queue waits for an idle one, the callback hears of each end.
//!
//!     cargo run --release --example async_queue

use carafe::{AsyncInferQueue, ElementType, Model, Properties, Result, Tensor, ops, properties};
use std::sync::{Arc, Mutex};

pub(crate) fn main() -> Result<()> {
    // y = |x|, for four numbers.
    let mut model = Model::new("abs");
    let x = model.parameter("x", ElementType::F32, "4".parse()?)?;
    let y = model.add("y", ops::math::Abs, &[x])?;
    model.result("out", y.into())?;

    let core = carafe::core();
    let config = Properties::new().with(properties::PERFORMANCE_HINT, "THROUGHPUT");
    let compiled = core.compile_model(&model, "CPU", &config)?;

    // 0: as many requests as keep the device busy.
    let queue = AsyncInferQueue::new(&compiled, 0)?;
    let sums = Arc::new(Mutex::new(vec![]));
    let heard = sums.clone();
    queue.set_callback(move |done, n: usize| {
        if let Ok(y) = done.output("y") {
            let sum: f32 = y.as_slice::<f32>().map_or(0.0, |y| y.iter().sum());
            heard.lock().unwrap().push((n, sum));
        }
    })?;
    for n in 0..100 {
        let x = Tensor::from_slice(&[4], &[-(n as f32); 4])?;
        queue.start_async(&[("x", x)], n)?;
    }
    // Errors of all inferences come here.
    queue.wait_all()?;

    let mut sums = sums.lock().unwrap().clone();
    sums.sort_by_key(|(n, _)| *n);
    println!("{} inferences on {} requests; the last sum is {}", sums.len(), queue.len(), sums[99].1);
    assert!(sums.iter().all(|(n, sum)| *sum == 4.0 * *n as f32));
    Ok(())
}
