/* Keeps several requests busy: async_queue MODEL.xml DEVICE REQUESTS INFERENCES. A request that has ended is started again. */
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
    if (argc != 5) return fprintf(stderr, "usage: async_queue MODEL.xml DEVICE REQUESTS INFERENCES\n"), 2;
    const size_t count = strtoul(argv[3], NULL, 10), inferences = strtoul(argv[4], NULL, 10);
    ov_core_t* core;
    ov_compiled_model_t* compiled;
    CHECK(ov_core_create(&core));
    CHECK(ov_core_compile_model_from_file(core, argv[1], argv[2], 2, &compiled, ov_property_key_hint_performance_mode,
                                          "THROUGHPUT"));
    int64_t sizes[4] = {1, 1, 8, 8};
    ov_shape_t shape;
    CHECK(ov_shape_create(4, sizes, &shape));
    ov_infer_request_t** requests = calloc(count, sizeof *requests);
    ov_tensor_t** inputs = calloc(count, sizeof *inputs);
    if (!requests || !inputs) return fprintf(stderr, "out of memory\n"), 1;
    for (size_t i = 0; i < count; i++) {
        CHECK(ov_compiled_model_create_infer_request(compiled, &requests[i]));
        CHECK(ov_tensor_create(F32, shape, &inputs[i]));
        CHECK(ov_infer_request_set_input_tensor(requests[i], inputs[i]));
    }
    /* The oldest is waited for, the others run meanwhile. */
    for (size_t i = 0; i < inferences; i++) {
        ov_infer_request_t* next = requests[i % count];
        if (i >= count) CHECK(ov_infer_request_wait(next));
        CHECK(ov_infer_request_start_async(next));
    }
    for (size_t i = 0; i < count && i < inferences; i++) CHECK(ov_infer_request_wait(requests[i]));
    printf("%zu inferences with %zu requests\n", inferences, count);
    for (size_t i = 0; i < count; i++) ov_tensor_free(inputs[i]), ov_infer_request_free(requests[i]);
    free(requests), free(inputs), ov_shape_free(&shape);
    ov_compiled_model_free(compiled), ov_core_free(core);
    return 0;
}
