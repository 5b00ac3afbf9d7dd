/* Finds objects with an SSD, in pictures of another size than the model was made for: reshape_ssd MODEL SIZE DEVICE. The picture is a
 * gray ramp; a program of yours reads one from a file. */
#include <stdlib.h>

#include "openvino/c/openvino.h"

static void check(ov_status_e status, const char* what) {
    if (status == OK) return;
    const char* text = ov_get_last_err_msg();
    fprintf(stderr, "%s: %s\n", what, text ? text : ov_get_error_info(status));
    exit(1);
}
#define CHECK(call) check(call, #call)

int main(int argc, char** argv) {
    if (argc != 4) return fprintf(stderr, "usage: reshape_ssd MODEL SIZE DEVICE\n"), 2;
    const int64_t size = strtol(argv[2], NULL, 10);
    ov_core_t* core;
    ov_model_t* model;
    ov_compiled_model_t* compiled;
    ov_infer_request_t* request;
    CHECK(ov_core_create(&core));
    CHECK(ov_core_read_model(core, argv[1], NULL, &model));

    /* Every shape behind the input follows, that of the priors and of the detections too. */
    int64_t sizes[4] = {1, 3, size, size};
    ov_partial_shape_t partial;
    CHECK(ov_partial_shape_create_static(4, sizes, &partial));
    CHECK(ov_model_reshape_single_input(model, partial));
    CHECK(ov_core_compile_model(core, model, argv[3], 0, &compiled));
    CHECK(ov_compiled_model_create_infer_request(compiled, &request));

    ov_shape_t shape;
    ov_tensor_t *input, *output;
    CHECK(ov_shape_create(4, sizes, &shape));
    CHECK(ov_tensor_create(F32, shape, &input));
    float* pixels;
    size_t n;
    CHECK(ov_tensor_data(input, (void**)&pixels));
    CHECK(ov_tensor_get_size(input, &n));
    for (size_t i = 0; i < n; i++) pixels[i] = (float)(i % (size_t)size) / (float)size;
    CHECK(ov_infer_request_set_input_tensor(request, input));
    CHECK(ov_infer_request_infer(request));

    /* Rows of seven: picture, class, score, and the corners of a box; a picture of -1 ends them. */
    float* rows;
    size_t found = 0;
    CHECK(ov_infer_request_get_output_tensor(request, &output));
    CHECK(ov_tensor_data(output, (void**)&rows));
    CHECK(ov_tensor_get_size(output, &n));
    for (; found < n / 7 && rows[found * 7] >= 0; found++) {
        const float* r = rows + found * 7;
        if (found < 3) printf("class %.0f, score %.3f, from (%.2f, %.2f) to (%.2f, %.2f)\n", r[1], r[2], r[3], r[4], r[5], r[6]);
    }
    printf("%zu objects in a picture of %ld by %ld\n", found, (long)size, (long)size);

    ov_tensor_free(output), ov_tensor_free(input), ov_shape_free(&shape), ov_partial_shape_free(&partial);
    ov_infer_request_free(request), ov_compiled_model_free(compiled), ov_model_free(model), ov_core_free(core);
    return 0;
}
