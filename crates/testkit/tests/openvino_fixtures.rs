//! Models that OpenVINO and the old converters wrote, with the outputs OpenVINO computed. Made by
//! `scripts/crosscheck-openvino --fixtures`, `scripts/fixtures/old-converters` and `scripts/fixtures/compressed-weights`.

fn main() {
    carafe_testkit::fixture::run_all(&["crosscheck", "old-converters", "compressed-weights"], 100);
}
