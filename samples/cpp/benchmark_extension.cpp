// Times a model with an operation of an extension: benchmark_extension MODEL LIBRARY DEVICE SECONDS. Inputs are zeros; their shapes must be
// known.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "carafe/carafe_runtime.hpp"

int main(int argc, char** argv) try {
    if (argc != 5) return std::fprintf(stderr, "usage: benchmark_extension MODEL LIBRARY DEVICE SECONDS\n"), 2;
    const double limit = std::atof(argv[4]);
    auto core = carafe::Core::make([](auto** out) { return ov_core_create(out); });
    // Before the model is read: it has operations that only the library knows.
    carafe::check(ov_core_add_extension(core.get(), argv[2]));
    auto model = carafe::Model::make([&](auto** out) { return ov_core_read_model(core.get(), argv[1], nullptr, out); });
    auto compiled = carafe::CompiledModel::make([&](auto** out) {
        return ov_core_compile_model(core.get(), model.get(), argv[3], 2, out, ov_property_key_hint_performance_mode, "LATENCY");
    });
    auto request = carafe::InferRequest::make(
        [&](auto** out) { return ov_compiled_model_create_infer_request(compiled.get(), out); });

    // The first waits for everything that is made once.
    carafe::check(ov_infer_request_infer(request.get()));
    using Clock = std::chrono::steady_clock;
    using Seconds = std::chrono::duration<double>;
    const auto begin = Clock::now();
    auto end = begin;
    double least = 1e30;
    size_t count = 0;
    do {
        const auto start = end;
        carafe::check(ov_infer_request_infer(request.get()));
        end = Clock::now();
        least = std::min(least, Seconds(end - start).count());
        count++;
    } while (Seconds(end - begin).count() < limit);
    const double mean = Seconds(end - begin).count() / double(count);
    std::printf("%zu inferences, %.4f ms on average, %.4f ms at least\n", count, 1e3 * mean, 1e3 * least);
    return 0;
} catch (const carafe::Error& error) {
    std::fprintf(stderr, "benchmark_extension: %s\n", error.what());
    return 1;
}
