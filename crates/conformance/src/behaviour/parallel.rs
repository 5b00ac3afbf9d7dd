//! Several requests, models and threads at once.

use super::bench::{Bench, DeviceRequest, Outcome, Stop, infer, row, run, same};
use super::suite;
use carafe::Properties;

suite!("parallel":
    requests_run_at_once_from_threads,
    asynchronous_requests_run_at_once,
    requests_are_made_from_threads,
    models_compile_at_once_from_threads,
    queries_and_properties_are_asked_from_threads,
    one_request_is_used_by_several_threads_in_turn,
);

const THREADS: usize = 4;

// Runs `f` on several threads; the first failure of any is that of the check.
fn on_threads(f: impl Fn(usize) -> Outcome + Sync) -> Outcome {
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..THREADS)
            .map(|i| {
                (
                    i,
                    scope.spawn({
                        let f = &f;
                        move || f(i)
                    }),
                )
            })
            .collect();
        for (i, thread) in all {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(Stop::Failed(m))) => return Err(Stop::Failed(format!("thread {i}: {m}"))),
                Ok(Err(skipped)) => return Err(skipped),
                Err(_) => return Err(Stop::Failed(format!("thread {i} panicked"))),
            }
        }
        Ok(())
    })
}

fn requests_run_at_once_from_threads(b: &Bench) -> Outcome {
    let model = b.weighted()?;
    let compiled = b.compile(&model)?;
    on_threads(|i| {
        let mut request = compiled.clone().create_request();
        for seed in 0..10 {
            let x = [row(4, i * 100 + seed)];
            same(&run(&mut *request, &x, 1)?, &model.evaluate(&x)?)?;
        }
        Ok(())
    })
}

fn asynchronous_requests_run_at_once(b: &Bench) -> Outcome {
    let model = b.weighted()?;
    let compiled = b.compile(&model)?;
    let requests: Vec<_> = (0..6).map(|_| compiled.create_infer_request()).collect();
    for round in 0..4 {
        for (i, r) in requests.iter().enumerate() {
            r.set_input(0, row(4, i + 10 * round))?;
            r.start_async(())?;
        }
        for (i, r) in requests.iter().enumerate() {
            r.wait()?;
            same(&[r.output(0)?], &model.evaluate(&[row(4, i + 10 * round)])?)?;
        }
    }
    Ok(())
}

fn requests_are_made_from_threads(b: &Bench) -> Outcome {
    let model = b.plain();
    let compiled = b.compile(&model)?;
    on_threads(|i| {
        for seed in 0..4 {
            let x = [row(4, i + seed)];
            same(&infer(&compiled, &x)?, &model.evaluate(&x)?)?;
        }
        Ok(())
    })
}

fn models_compile_at_once_from_threads(b: &Bench) -> Outcome {
    on_threads(|i| {
        let model = b.chain("1,4", i + 1);
        b.check(&model, &[row(4, i)])
    })
}

fn queries_and_properties_are_asked_from_threads(b: &Bench) -> Outcome {
    let (model, table) = (b.weighted()?, b.table()?);
    on_threads(|_| {
        for info in table {
            b.core.get_property(b.device(), info.name)?;
        }
        b.core.set_property(b.device(), &Properties::new())?;
        b.core.query_model(&model, b.device(), b.properties())?;
        b.core.device(b.device())?.version();
        Ok(())
    })
}

fn one_request_is_used_by_several_threads_in_turn(b: &Bench) -> Outcome {
    let model = b.plain();
    let request = b.compile(&model)?.create_infer_request();
    for i in 0..THREADS {
        let used = std::thread::scope(|scope| {
            let turn = || -> Outcome {
                request.set_input(0, row(4, i))?;
                request.infer(())?;
                same(&[request.output(0)?], &model.evaluate(&[row(4, i)])?)
            };
            scope.spawn(turn).join()
        });
        used.map_err(|_| Stop::Failed(format!("thread {i} panicked")))??;
    }
    Ok(())
}
