/* What the programs of checks share: a model that is open, and how a check fails. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "openvino/c/openvino.h"

#define CHECK(what)                                                                  \
    do {                                                                             \
        if (!(what)) {                                                               \
            const char* text = ov_get_last_err_msg();                                \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, text ? text : ""); \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)
#define FINE(call) CHECK((call) == OK)
#define SAYS(call, status, words)                             \
    do {                                                      \
        CHECK((call) == (status));                            \
        const char* said = ov_get_last_err_msg();             \
        CHECK(said && strstr(said, words));                   \
        ov_free(said);                                        \
    } while (0)

_Static_assert(sizeof(ov_shape_t) == 16 && sizeof(ov_partial_shape_t) == 24, "structs by value");
_Static_assert(sizeof(ov_profiling_info_t) == 48 && sizeof(ov_property_t) == 16, "structs in lists");
_Static_assert(F32 == 4 && U8 == 16 && STRING == 23 && F8E8M0 == 25, "numbers of types");

static const char* model_path;
static ov_core_t* core;
static ov_model_t* model;
static ov_compiled_model_t* compiled;
static ov_infer_request_t* request;

static const int64_t image[4] = {1, 1, 8, 8};

/* The model takes any number of pictures; here it is one. */
static void open_all(void) {
    ov_partial_shape_t one;
    FINE(ov_core_create(&core));
    FINE(ov_core_read_model(core, model_path, NULL, &model));
    FINE(ov_partial_shape_create_static(4, image, &one));
    FINE(ov_model_reshape_single_input(model, one));
    ov_partial_shape_free(&one);
    FINE(ov_core_compile_model(core, model, "CPU", 2, &compiled, ov_property_key_enable_profiling, "YES"));
    FINE(ov_compiled_model_create_infer_request(compiled, &request));
}

static ov_tensor_t* tensor_of(ov_element_type_e type, int64_t rank, const int64_t* dims) {
    ov_shape_t shape;
    ov_tensor_t* tensor;
    FINE(ov_shape_create(rank, dims, &shape));
    FINE(ov_tensor_create(type, shape, &tensor));
    FINE(ov_shape_free(&shape));
    return tensor;
}

static void fill(ov_tensor_t* tensor, float value) {
    float* data;
    size_t n;
    FINE(ov_tensor_data(tensor, (void**)&data));
    FINE(ov_tensor_get_size(tensor, &n));
    for (size_t i = 0; i < n; i++) data[i] = value * (float)(i % 5);
}

/* The body of `main` of a program with the checks that ALL lists. */
#define RUN_ONE(name) \
    if (strcmp(argv[1], #name) == 0) return name(), 0;
#define MAIN                                                \
    int main(int argc, char** argv) {                       \
        CHECK(argc == 3);                                   \
        model_path = argv[2];                               \
        ALL(RUN_ONE)                                        \
        fprintf(stderr, "there is no check %s\n", argv[1]); \
        return 2;                                           \
    }
