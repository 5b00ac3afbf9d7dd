// Finds objects with an SSD, in pictures of another size than the model was made for: reshape_ssd MODEL SIZE DEVICE. The picture is a
// gray ramp; a program of yours reads one from a file.
#include <cstdio>
#include <cstdlib>

#include "carafe/carafe_runtime.hpp"

int main(int argc, char** argv) try {
    if (argc != 4) return std::fprintf(stderr, "usage: reshape_ssd MODEL SIZE DEVICE\n"), 2;
    const int64_t size = std::strtol(argv[2], nullptr, 10);
    auto core = carafe::Core::make([](auto** out) { return ov_core_create(out); });
    auto model = carafe::Model::make([&](auto** out) { return ov_core_read_model(core.get(), argv[1], nullptr, out); });

    // Every shape behind the input follows, that of the priors and of the detections too.
    const int64_t sizes[4] = {1, 3, size, size};
    ov_partial_shape_t partial;
    carafe::check(ov_partial_shape_create_static(4, sizes, &partial));
    carafe::check(ov_model_reshape_single_input(model.get(), partial));
    ov_partial_shape_free(&partial);
    auto compiled = carafe::CompiledModel::make(
        [&](auto** out) { return ov_core_compile_model(core.get(), model.get(), argv[3], 0, out); });
    auto request = carafe::InferRequest::make(
        [&](auto** out) { return ov_compiled_model_create_infer_request(compiled.get(), out); });

    ov_shape_t shape;
    carafe::check(ov_shape_create(4, sizes, &shape));
    auto input = carafe::Tensor::make([&](auto** out) { return ov_tensor_create(F32, shape, out); });
    ov_shape_free(&shape);
    void* data;
    size_t n;
    carafe::check(ov_tensor_data(input.get(), &data));
    carafe::check(ov_tensor_get_size(input.get(), &n));
    for (size_t i = 0; i < n; i++) static_cast<float*>(data)[i] = float(i % size_t(size)) / float(size);
    carafe::check(ov_infer_request_set_input_tensor(request.get(), input.get()));
    carafe::check(ov_infer_request_infer(request.get()));

    // Rows of seven: picture, class, score, and the corners of a box; a picture of -1 ends them.
    auto output = carafe::Tensor::make([&](auto** out) { return ov_infer_request_get_output_tensor(request.get(), out); });
    carafe::check(ov_tensor_data(output.get(), &data));
    carafe::check(ov_tensor_get_size(output.get(), &n));
    const float* row = static_cast<const float*>(data);
    size_t found = 0;
    for (; found < n / 7 && row[0] >= 0; found++, row += 7) {
        if (found < 3)
            std::printf("class %.0f, score %.3f, from (%.2f, %.2f) to (%.2f, %.2f)\n", row[1], row[2], row[3], row[4], row[5], row[6]);
    }
    std::printf("%zu objects in a picture of %ld by %ld\n", found, long(size), long(size));
    return 0;
} catch (const carafe::Error& error) {
    std::fprintf(stderr, "reshape_ssd: %s\n", error.what());
    return 1;
}
