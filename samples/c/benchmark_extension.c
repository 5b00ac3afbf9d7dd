/* Times a model with an operation of an extension: benchmark_extension MODEL LIBRARY DEVICE SECONDS. Inputs are zeros; their shapes must be
 * known. */
#include <stdlib.h>
#include <time.h>

#include "openvino/c/openvino.h"

static void check(ov_status_e status, const char* what) {
    if (status == OK) return;
    const char* text = ov_get_last_err_msg();
    fprintf(stderr, "%s: %s\n", what, text ? text : ov_get_error_info(status));
    exit(1);
}
#define CHECK(call) check(call, #call)

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char** argv) {
    if (argc != 5) return fprintf(stderr, "usage: benchmark_extension MODEL LIBRARY DEVICE SECONDS\n"), 2;
    const double limit = atof(argv[4]);
    ov_core_t* core;
    ov_model_t* model;
    ov_compiled_model_t* compiled;
    ov_infer_request_t* request;
    CHECK(ov_core_create(&core));
    /* Before the model is read: it has operations that only the library knows. */
    CHECK(ov_core_add_extension(core, argv[2]));
    CHECK(ov_core_read_model(core, argv[1], NULL, &model));
    CHECK(ov_core_compile_model(core, model, argv[3], 2, &compiled, ov_property_key_hint_performance_mode, "LATENCY"));
    CHECK(ov_compiled_model_create_infer_request(compiled, &request));

    /* The first waits for everything that is made once. */
    CHECK(ov_infer_request_infer(request));
    double least = 1e30, begin = now(), end = begin;
    size_t count = 0;
    do {
        const double start = end;
        CHECK(ov_infer_request_infer(request));
        end = now();
        if (end - start < least) least = end - start;
        count++;
    } while (end - begin < limit);
    printf("%zu inferences, %.4f ms on average, %.4f ms at least\n", count, 1e3 * (end - begin) / (double)count, 1e3 * least);

    ov_infer_request_free(request), ov_compiled_model_free(compiled), ov_model_free(model), ov_core_free(core);
    return 0;
}
