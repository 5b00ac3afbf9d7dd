//! Models that OpenVINO and the old converters wrote, with the outputs OpenVINO computed. Made by
//! `scripts/crosscheck-openvino --fixtures` and `scripts/fixtures/old-converters`.

fn main() {
    carafe_testkit::fixture::run_all(&["crosscheck", "old-converters"], 100);
}
