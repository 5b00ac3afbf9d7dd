//! Times of nodes, with PERF_COUNT.

use super::bench::{Bench, DeviceRequest, Outcome, Stop, infer, row, run};
use super::{ensure, suite};
use carafe::device::InferRequest;
use carafe::{NodeStatus, Properties};

suite!("profiling":
    there_is_nothing_without_perf_count,
    rows_have_names_types_and_kernels,
    something_was_executed,
    nothing_was_executed_before_an_inference,
    an_asynchronous_inference_is_profiled_too,
    profiling_does_not_change_results,
);

fn counted(b: &Bench) -> Outcome<Properties> {
    match b.has_property("PERF_COUNT") {
        true => Ok(Properties::new().with("PERF_COUNT", "true")),
        false => Err(Stop::Skipped("PERF_COUNT is not in the table".into())),
    }
}

fn request(b: &Bench) -> Outcome<Box<dyn InferRequest>> {
    Ok(b.compile_with(&b.chain("1,4", 3), &counted(b)?)?.create_request())
}

fn there_is_nothing_without_perf_count(b: &Bench) -> Outcome {
    let mut r = b.compile(&b.plain())?.create_request();
    run(&mut *r, &[row(4, 1)], 1)?;
    let rows = r.profile();
    ensure!(rows.is_empty(), "{} rows without PERF_COUNT", rows.len());
    Ok(())
}

fn rows_have_names_types_and_kernels(b: &Bench) -> Outcome {
    let mut r = request(b)?;
    run(&mut *r, &[row(4, 1)], 1)?;
    let rows = r.profile();
    ensure!(!rows.is_empty(), "there are no rows");
    for row in &rows {
        ensure!(!row.name.is_empty() && !row.type_name.is_empty(), "a row without name or type: {row:?}");
        ensure!(row.status != NodeStatus::Executed || !row.kernel.is_empty(), "a row without a kernel: {row:?}");
        let n = rows.iter().filter(|other| other.name == row.name).count();
        ensure!(n == 1, "{n} rows are called `{}`", row.name);
    }
    Ok(())
}

fn something_was_executed(b: &Bench) -> Outcome {
    let mut r = request(b)?;
    run(&mut *r, &[row(4, 1)], 1)?;
    let rows = r.profile();
    ensure!(rows.iter().any(|r| r.status == NodeStatus::Executed), "no row is executed: {rows:?}");
    for row in rows.iter().filter(|r| r.status == NodeStatus::NotRun) {
        ensure!(row.real_time.is_zero(), "a row that was not run took time: {row:?}");
    }
    Ok(())
}

fn nothing_was_executed_before_an_inference(b: &Bench) -> Outcome {
    let rows = request(b)?.profile();
    ensure!(rows.iter().all(|r| r.status != NodeStatus::Executed), "before an inference: {rows:?}");
    Ok(())
}

fn an_asynchronous_inference_is_profiled_too(b: &Bench) -> Outcome {
    let r = b.compile_with(&b.plain(), &counted(b)?)?.create_infer_request();
    r.set_input(0, row(4, 1))?;
    r.start_async(())?;
    r.wait()?;
    let rows = r.profile()?;
    ensure!(rows.iter().any(|r| r.status == NodeStatus::Executed), "no row is executed: {rows:?}");
    Ok(())
}

fn profiling_does_not_change_results(b: &Bench) -> Outcome {
    let model = b.weighted()?;
    let compiled = b.compile_with(&model, &counted(b)?)?;
    super::bench::same(&infer(&compiled, &[row(4, 1)])?, &model.evaluate(&[row(4, 1)])?)
}
