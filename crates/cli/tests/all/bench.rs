//! `carafe bench`, with the options that benchmark_app has.

use crate::common::{MODEL, carafe, folder, ok};

/// Standard output of a run of the demo with these options behind one dash.
fn bench(options: &[&str]) -> String {
    ok(&[&["bench", "-m", MODEL], options].concat())
}

#[test]
fn the_steps_and_the_summary_are_those_of_benchmark_app() {
    let text = bench(&["-niter", "8", "-nireq", "2", "-latency_percentile", "90"]);
    for part in [
        "[Step 1/11] Parsing and validating input arguments",
        "    image (node: image) : f32 / [...] / [?,1,8,8]",
        "performance hint will be set to THROUGHPUT",
        "OPTIMAL_NUMBER_OF_INFER_REQUESTS: ",
        "input `image` got no file and is filled with random values, f32[1, 1, 8, 8]",
        "[Step 10/11] Measuring performance (Start inference asynchronously, 2 inference requests, limits: 8 iterations)",
        "[Step 11/11] Dumping statistics report",
        "[ INFO ] Count:            8 iterations",
        "[ INFO ]    Median:        ",
        "[ INFO ]    90 percentile: ",
        "[ INFO ] Throughput:   ",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[test]
fn one_dash_and_two_dashes_mean_the_same() {
    for options in [["-hint", "latency", "-niter", "3"], ["--perf_hint", "latency", "--number_iterations", "3"]] {
        assert!(bench(&options).contains("(Start inference synchronously, limits: 3 iterations)"));
    }
    let long = ["--path_to_model", MODEL, "--target_device", "CPU", "--number_iterations", "3", "--api_type", "sync"];
    assert!(ok(&[&["bench"], &long[..]].concat()).contains("limits: 3 iterations"));
    let positional = ok(&["bench", MODEL, "-niter=4", "-api=sync", "-d", "CPU"]);
    assert!(positional.contains("Start inference synchronously, limits: 4 iterations"), "{positional}");
}

#[test]
fn reports_are_csv_json_and_a_page() {
    let dir = folder("bench_reports");
    let at = |name: &str| dir.join(name).to_str().unwrap().to_string();
    let (graph, page, config) = (at("graph.xml"), at("page.html"), at("config.json"));
    let common = ["-niter", "4", "-report_folder", dir.to_str().unwrap()];
    bench(&[&common[..], &["-report_type", "average_counters", "-exec_graph_path", &graph, "--html", &page]].concat());
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    assert!(read("benchmark_report.csv").contains("Execution results\nread model time (ms);"));
    let counters = read("benchmark_average_counters_report.csv");
    assert!(counters.starts_with("layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)\n"), "{counters}");
    assert!(counters.contains(";Status.EXECUTED;MatMul;gemm_"), "{counters}");
    assert!(read("page.html").contains("Times of nodes") && read("graph.xml").contains("execTimeMcs"));

    bench(&[&common[..], &["-report_type", "detailed_counters", "-json_stats", "-dump_config", &config]].concat());
    let json: serde_json::Value = serde_json::from_str(&read("benchmark_report.json")).unwrap();
    assert_eq!(json["cmd_options"]["-niter"], "4");
    assert_eq!(json["configuration_setup"]["target device"], "CPU");
    assert_eq!(json["execution_results"]["total number of iterations"], "4");
    let json: serde_json::Value = serde_json::from_str(&read("benchmark_detailed_counters_report.json")).unwrap();
    let node = &json["detailed_performance"][0]["nodes"][0];
    for key in ["name", "node_type", "status", "real_time", "cpu_time", "exec_type"] {
        assert!(node[key].is_string(), "{key}: {node}");
    }
    bench(&[&common[..], &["-report_type", "no_counters", "-pcsort", "sort"]].concat());
    let sorted = read("benchmark_sorted_report.csv");
    assert!(sorted.starts_with("layerName,execStatus,layerType,execType,realTime (ms),cpuTime (ms),proportion (%)\n"));
    bench(&[&common[..], &["-report_type", "no_counters", "-pcsort", "simple_sort", "-json_stats"]].concat());
    assert!(read("benchmark_sorted_report.json").contains("\"report_type\": \"sorted\""));
    assert!(read("config.json").contains("\"PERFORMANCE_HINT\": \"THROUGHPUT\""));
}

#[test]
fn a_json_object_is_all_that_is_printed_when_asked() {
    let json: serde_json::Value = serde_json::from_str(&bench(&["-niter", "2", "--json", "-pc"])).unwrap();
    assert!(json["throughput"].as_f64().unwrap() > 0.0 && json["nodes"].as_array().unwrap().len() > 3, "{json}");
}

#[test]
fn a_configuration_file_sets_properties_and_options_stand_in_front_of_it() {
    let dir = folder("bench_config");
    let file = dir.join("in.json");
    std::fs::write(&file, r#"{"CPU": {"NUM_STREAMS": "2", "PERFORMANCE_HINT": "LATENCY"}}"#).unwrap();
    let load = ["-niter", "2", "-load_config", file.to_str().unwrap()];
    let text = bench(&load);
    assert!(text.contains("  NUM_STREAMS: 2\n") && text.contains("  PERFORMANCE_HINT: LATENCY\n"), "{text}");
    let text = bench(&[&load[..], &["-nstreams", "1"]].concat());
    assert!(text.contains("  NUM_STREAMS: 1\n"), "{text}");
}

#[test]
fn data_shapes_take_turns() {
    let text = bench(&["-data_shape", "image[1,1,8,8][4,1,8,8]", "-niter", "4", "-nireq", "1", "-pcseq"]);
    for part in ["Defined 2 tensor groups:", "Benchmarking in full mode", "2. image: [4, 1, 8, 8]"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[test]
fn shapes_and_batches_change_the_model() {
    let text = bench(&["-shape", "[2,1,8,8]", "-niter", "2"]);
    assert!(text.contains("Reshaping model: 'image': [2,1,8,8]"), "{text}");
    assert!(bench(&["-b", "3", "-layout", "[NCHW]", "-niter", "2"]).contains("/ [3,1,8,8]"));
}

#[test]
fn files_of_a_folder_take_turns() {
    let text = bench(&["-i", "demo/digits", "-niter", "10"]);
    assert!(text.contains("Defined 10 tensor groups:") && !text.contains("random values"), "{text}");
}

#[test]
fn no_iterations_compile_and_end() {
    let text = bench(&["-niter", "0"]);
    assert!(text.contains("Skipping inference due to -niter 0") && !text.contains("Throughput"), "{text}");
}

#[test]
fn devices_made_of_devices_pass_streams_on() {
    let text = bench(&["-d", "MULTI:CPU", "-nstreams", "CPU:2", "-niter", "4"]);
    assert!(text.contains("Throughput"), "{text}");
}

#[test]
fn wrong_options_say_what_is_wrong() {
    for (options, part) in [
        (["-nstreams", "GPU:2"], "`GPU` is not a device of this run (CPU)"),
        (["-data_shape", "x[1]"], "the model has no input `x`, it has image"),
        (["-load_config", "Cargo.toml"], "configuration `Cargo.toml`: expected"),
        (["-c", "k.xml"], "takes no kernel files"),
        (["-latency_percentile", "0"], "0 is not in 1..=100"),
        (["-t", "-1"], "is not a number of seconds"),
    ] {
        let done = carafe(&[&["bench", MODEL, "-niter", "1"], &options[..]].concat());
        let message = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success() && message.contains(part), "{options:?}: {message}");
    }
}
