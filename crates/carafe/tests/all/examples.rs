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
    own_device = "../../examples/own_device.rs",
    reshape_ssd = "../../examples/reshape_ssd.rs",
    state = "../../examples/state.rs",
}
