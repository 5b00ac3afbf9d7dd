/* Classifies a picture of gray values: classify MODEL.xml FILE DEVICE, where FILE holds 64 numbers from 0 to 255. */
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
    if (argc != 4) return fprintf(stderr, "usage: classify MODEL.xml FILE DEVICE\n"), 2;
    float picture[64];
    FILE* file = fopen(argv[2], "r");
    for (int i = 0; i < 64; i++)
        if (!file || fscanf(file, "%f", &picture[i]) != 1) return fprintf(stderr, "%s: not 64 numbers\n", argv[2]), 1;
    fclose(file);

    ov_core_t* core;
    ov_compiled_model_t* compiled;
    ov_infer_request_t* request;
    CHECK(ov_core_create(&core));
    CHECK(ov_core_compile_model_from_file(core, argv[1], argv[3], 0, &compiled));
    CHECK(ov_compiled_model_create_infer_request(compiled, &request));

    /* The tensor lies over our array: nothing is copied. */
    int64_t sizes[4] = {1, 1, 8, 8};
    ov_shape_t shape;
    ov_tensor_t *input, *output;
    CHECK(ov_shape_create(4, sizes, &shape));
    CHECK(ov_tensor_create_from_host_ptr(F32, shape, picture, &input));
    CHECK(ov_infer_request_set_input_tensor(request, input));
    CHECK(ov_infer_request_infer(request));

    float* scores;
    size_t n, best = 0;
    CHECK(ov_infer_request_get_output_tensor(request, &output));
    CHECK(ov_tensor_data(output, (void**)&scores));
    CHECK(ov_tensor_get_size(output, &n));
    for (size_t i = 1; i < n; i++)
        if (scores[i] > scores[best]) best = i;
    printf("class %zu, probability %.3f\n", best, scores[best]);

    ov_tensor_free(output), ov_tensor_free(input), ov_shape_free(&shape);
    ov_infer_request_free(request), ov_compiled_model_free(compiled), ov_core_free(core);
    return 0;
}
