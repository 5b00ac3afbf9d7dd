// Classifies a picture of gray values: classify MODEL.xml FILE DEVICE, where FILE holds 64 numbers from 0 to 255.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

#include "carafe/carafe_runtime.hpp"

int main(int argc, char** argv) try {
    if (argc != 4) return std::fprintf(stderr, "usage: classify MODEL.xml FILE DEVICE\n"), 2;
    std::vector<float> picture(64);
    std::ifstream file(argv[2]);
    for (float& pixel : picture)
        if (!(file >> pixel)) return std::fprintf(stderr, "%s: not 64 numbers\n", argv[2]), 1;

    auto core = carafe::Core::make([](auto** out) { return ov_core_create(out); });
    auto model = carafe::CompiledModel::make(
        [&](auto** out) { return ov_core_compile_model_from_file(core.get(), argv[1], argv[3], 0, out); });
    auto request = carafe::InferRequest::make(
        [&](auto** out) { return ov_compiled_model_create_infer_request(model.get(), out); });

    // The tensor lies over our vector: nothing is copied.
    const int64_t sizes[4] = {1, 1, 8, 8};
    ov_shape_t shape;
    carafe::check(ov_shape_create(4, sizes, &shape));
    auto input = carafe::Tensor::make(
        [&](auto** out) { return ov_tensor_create_from_host_ptr(F32, shape, picture.data(), out); });
    ov_shape_free(&shape);
    carafe::check(ov_infer_request_set_input_tensor(request.get(), input.get()));
    carafe::check(ov_infer_request_infer(request.get()));

    auto output = carafe::Tensor::make([&](auto** out) { return ov_infer_request_get_output_tensor(request.get(), out); });
    void* data;
    size_t n;
    carafe::check(ov_tensor_data(output.get(), &data));
    carafe::check(ov_tensor_get_size(output.get(), &n));
    const float* scores = static_cast<const float*>(data);
    const float* best = std::max_element(scores, scores + n);
    std::printf("class %td, probability %.3f\n", best - scores, *best);
    return 0;
} catch (const carafe::Error& error) {
    std::fprintf(stderr, "classify: %s\n", error.what());
    return 1;
}
