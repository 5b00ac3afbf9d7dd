//! Every example runs to its end.

macro_rules! examples {
    ($($name:ident = $file:literal),* $(,)?) => {
        $(
            #[path = $file]
            mod $name;

            #[test]
            fn $name() {
                $name::main().unwrap();
            }
        )*
    };
}

examples! {
    async_queue = "../../examples/async_queue.rs",
    benchmark_extension = "../../examples/benchmark_extension.rs",
    classify_image = "../../examples/classify_image.rs",
    custom_op = "../../examples/custom_op.rs",
    device_memory = "../../examples/device_memory.rs",
    dynamic_shapes = "../../examples/dynamic_shapes.rs",
    from_openvino = "../../examples/from_openvino.rs",
    own_device = "../../examples/own_device.rs",
    reshape_ssd = "../../examples/reshape_ssd.rs",
    state = "../../examples/state.rs",
}

/// Lines without what stands in front of them.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|l| !l.is_empty()).collect()
}

#[test]
fn the_rust_of_the_pages_stands_in_programs_that_run() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    for (page, program) in [
        ("docs/from-openvino.md", "crates/carafe/examples/from_openvino.rs"),
        ("README.md", "crates/carafe/tests/all/six_lines.rs"),
    ] {
        let (text, program_text) = (read(page), read(program));
        // Blocks of a file that a page writes and builds stand behind its name.
        let blocks = text.split("```rust\n").zip(text.split("```rust\n").skip(1));
        let blocks = blocks.filter(|(before, _)| !before.trim_end().ends_with("`:"));
        let program_lines = lines(&program_text);
        let mut found = 0;
        for (_, block) in blocks {
            let block = lines(block.split("```").next().unwrap());
            let stands = program_lines.windows(block.len()).any(|w| w == block);
            assert!(stands, "{page}: these lines do not stand in {program}:\n{}", block.join("\n"));
            found += 1;
        }
        assert!(found > 0, "{page} has no Rust");
    }
}
