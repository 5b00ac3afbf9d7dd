/* Checks of the C API, one a behaviour: `checks NAME MODEL.xml`. The program ends with 0 when it held. */
#include <pthread.h>

#include "checks.h"

static void an_output_handle_sees_every_inference(void) {
    ov_tensor_t *in, *out;
    float *result, first[10];
    open_all();
    FINE(ov_infer_request_get_input_tensor(request, &in));
    FINE(ov_infer_request_get_output_tensor(request, &out));
    FINE(ov_tensor_data(out, (void**)&result));
    fill(in, 1);
    FINE(ov_infer_request_infer(request));
    memcpy(first, result, sizeof first);
    float sum = 0;
    for (int i = 0; i < 10; i++) sum += result[i];
    CHECK(sum > 0.99f && sum < 1.01f);
    fill(in, -3);
    for (int again = 0; again < 3; again++) FINE(ov_infer_request_infer(request));
    CHECK(memcmp(first, result, sizeof first) != 0);
    fill(in, 1);
    FINE(ov_infer_request_infer(request));
    CHECK(memcmp(first, result, sizeof first) == 0);
}

static void output_goes_to_memory_of_the_program(void) {
    float memory[10] = {0};
    int64_t dims[2] = {1, 10};
    ov_shape_t shape;
    ov_tensor_t* out;
    open_all();
    FINE(ov_shape_create(2, dims, &shape));
    FINE(ov_tensor_create_from_host_ptr(F32, shape, memory, &out));
    FINE(ov_infer_request_set_output_tensor(request, out));
    for (int again = 0; again < 3; again++) {
        memset(memory, 0, sizeof memory);
        FINE(ov_infer_request_infer(request));
        float sum = 0;
        for (int i = 0; i < 10; i++) sum += memory[i];
        CHECK(sum > 0.99f && sum < 1.01f);
    }
}

static void done(void* args) { *(volatile int*)args += 1; }

static void a_callback_runs_at_the_end(void) {
    volatile int calls = 0;
    ov_callback_t callback = {done, (void*)&calls};
    open_all();
    FINE(ov_infer_request_set_callback(request, &callback));
    for (int i = 1; i <= 3; i++) {
        FINE(ov_infer_request_start_async(request));
        FINE(ov_infer_request_wait(request));
        CHECK(calls == i);
    }
    FINE(ov_infer_request_wait_for(request, 10));
}

static void waiting_for_nothing_is_not_ready(void) {
    open_all();
    CHECK(ov_infer_request_wait_for(request, 5) == RESULT_NOT_READY);
    CHECK(ov_infer_request_wait_for(request, -5) == GENERAL_ERROR);
}

static void profiling_tells_times_of_nodes(void) {
    ov_profiling_info_list_t list;
    open_all();
    FINE(ov_infer_request_infer(request));
    FINE(ov_infer_request_get_profiling_info(request, &list));
    CHECK(list.size > 0);
    int ran = 0;
    for (size_t i = 0; i < list.size; i++) ran += list.profiling_infos[i].status == EXECUTED;
    CHECK(ran > 0);
    ov_profiling_info_list_free(&list);
    CHECK(list.size == 0 && !list.profiling_infos);
    ov_profiling_info_list_free(&list);
}

static void a_model_is_reshaped_and_its_ports_follow(void) {
    ov_output_const_port_t* port;
    ov_partial_shape_t shape;
    ov_shape_t now;
    ov_dimension_t dims[4] = {{5, 5}, {1, 1}, {8, 8}, {8, 8}};
    open_all();
    FINE(ov_model_const_input(model, &port));
    FINE(ov_partial_shape_create(4, dims, &shape));
    FINE(ov_model_reshape_single_input(model, shape));
    FINE(ov_const_port_get_shape(port, &now));
    CHECK(now.rank == 4 && now.dims[0] == 5);
    ov_partial_shape_free(&shape);
    dims[0].min = 1, dims[0].max = -1;
    FINE(ov_partial_shape_create(4, dims, &shape));
    FINE(ov_model_reshape_single_input(model, shape));
    CHECK(ov_model_is_dynamic(model));
    CHECK(ov_const_port_get_shape(port, &now) == GENERAL_ERROR);
}

static void an_open_batch_gives_outputs_of_its_size(void) {
    ov_partial_shape_t shape;
    ov_dimension_t dims[4] = {{-1, -1}, {1, 1}, {8, 8}, {8, 8}};
    ov_compiled_model_t* open_model;
    ov_tensor_t* out;
    ov_shape_t got;
    open_all();
    FINE(ov_partial_shape_create(4, dims, &shape));
    FINE(ov_model_reshape_single_input(model, shape));
    FINE(ov_core_compile_model(core, model, "CPU", 0, &open_model));
    FINE(ov_compiled_model_create_infer_request(open_model, &request));
    FINE(ov_infer_request_get_output_tensor(request, &out));
    for (int64_t n = 1; n < 4; n++) {
        int64_t sizes[4] = {n, 1, 8, 8};
        FINE(ov_infer_request_set_input_tensor(request, tensor_of(F32, 4, sizes)));
        FINE(ov_infer_request_infer(request));
        FINE(ov_tensor_get_shape(out, &got));
        CHECK(got.rank == 2 && got.dims[0] == n && got.dims[1] == 10);
        ov_shape_free(&got);
    }
}

static void properties_come_as_arguments_and_as_arrays(void) {
    char* text;
    ov_property_t two[2] = {{"NUM_STREAMS", "1"}, {"PERF_COUNT", "NO"}};
    open_all();
    FINE(ov_core_set_property(core, "CPU", ov_property_key_inference_num_threads, "1"));
    FINE(ov_core_get_property(core, "CPU", "INFERENCE_NUM_THREADS", &text));
    CHECK(strcmp(text, "1") == 0);
    ov_free(text);
    FINE(ov_core_set_properties(core, "CPU", 2, two));
    FINE(ov_core_get_property(core, "CPU", "PERF_COUNT", &text));
    CHECK(strcmp(text, "NO") == 0);
    /* More arguments than registers hold. */
    FINE(ov_core_compile_model(core, model, "CPU", 10, &compiled, "NUM_STREAMS", "2", "INFERENCE_NUM_THREADS", "2",
                               "PERF_COUNT", "YES", "PERFORMANCE_HINT", "THROUGHPUT", "ENABLE_CPU_PINNING", "NO"));
    FINE(ov_compiled_model_get_property(compiled, "NUM_STREAMS", &text));
    CHECK(strcmp(text, "2") == 0);
    FINE(ov_compiled_model_get_property(compiled, "PERF_COUNT", &text));
    CHECK(strcmp(text, "YES") == 0);
}

static void wrong_properties_are_errors(void) {
    char* text;
    open_all();
    SAYS(ov_core_set_property(core, "CPU", "PERF_COUNT", "maybe"), GENERAL_ERROR, "true or false");
    SAYS(ov_core_set_property(core, "CPU", "NO_SUCH", "1"), GENERAL_ERROR, "NO_SUCH");
    SAYS(ov_core_get_property(core, "CPU", "NO_SUCH", &text), GENERAL_ERROR, "NO_SUCH");
    FINE(ov_core_set_property(core, "CPU", "INFERENCE_NUM_THREADS", "abc"));
    SAYS(ov_core_get_property(core, "CPU", "INFERENCE_NUM_THREADS", &text), GENERAL_ERROR, "abc");
    SAYS(ov_core_compile_model(core, model, "CPU", 0, &compiled), GENERAL_ERROR, "abc");
    SAYS(ov_core_compile_model(core, model, "CPU", 3, &compiled, "A", "B", "C"), INVALID_C_PARAM, "pairs");
    SAYS(ov_core_compile_model(core, model, "CPU", 2, &compiled, "A", NULL), INVALID_C_PARAM, "null");
    SAYS(ov_compiled_model_set_property(compiled, "NUM_STREAMS", "1"), NOT_IMPLEMENTED, "NUM_STREAMS");
    SAYS(ov_core_set_properties(core, "CPU", 1, NULL), INVALID_C_PARAM, "null");
}

static void an_unknown_device_is_named(void) {
    open_all();
    SAYS(ov_core_compile_model(core, model, "TPU", 0, &compiled), GENERAL_ERROR, "TPU");
    ov_core_version_list_t versions;
    SAYS(ov_core_get_versions_by_device_name(core, "TPU", &versions), GENERAL_ERROR, "TPU");
    ov_remote_context_t* context;
    SAYS(ov_core_get_default_context(core, "CPU", &context), NOT_IMPLEMENTED, "CPU");
}

static void null_is_an_error_everywhere(void) {
    ov_tensor_t* tensor;
    ov_shape_t shape = {0, NULL};
    open_all();
    CHECK(ov_core_create(NULL) == INVALID_C_PARAM);
    CHECK(ov_core_read_model(NULL, model_path, NULL, &model) == INVALID_C_PARAM);
    CHECK(ov_core_read_model(core, NULL, NULL, &model) == INVALID_C_PARAM);
    CHECK(ov_core_compile_model(core, NULL, "CPU", 0, &compiled) == INVALID_C_PARAM);
    CHECK(ov_core_compile_model(core, model, "CPU", 0, NULL) == INVALID_C_PARAM);
    CHECK(ov_infer_request_infer(NULL) == INVALID_C_PARAM);
    CHECK(ov_infer_request_set_callback(request, NULL) == INVALID_C_PARAM);
    CHECK(ov_tensor_create(F32, shape, NULL) == INVALID_C_PARAM);
    CHECK(ov_tensor_create_from_host_ptr(F32, shape, NULL, &tensor) == INVALID_C_PARAM);
    CHECK(ov_shape_create(4, image, NULL) == INVALID_C_PARAM);
    CHECK(!ov_model_is_dynamic(NULL));
    ov_core_free(NULL), ov_model_free(NULL), ov_tensor_free(NULL), ov_free(NULL), ov_infer_request_free(NULL);
    ov_available_devices_free(NULL), ov_partial_shape_free(NULL), ov_version_free(NULL);
}

static void a_freed_handle_is_an_error(void) {
    ov_tensor_t* tensor = tensor_of(F32, 4, image);
    size_t n;
    open_all();
    ov_tensor_free(tensor);
    SAYS(ov_tensor_get_size(tensor, &n), INVALID_C_PARAM, "freed");
    SAYS(ov_infer_request_set_input_tensor(request, tensor), INVALID_C_PARAM, "freed");
    ov_util_set_log_callback(NULL);
    ov_tensor_free(tensor);
    ov_infer_request_free(request);
    SAYS(ov_infer_request_infer(request), INVALID_C_PARAM, "freed");
    ov_infer_request_free(request);
}

static void a_handle_of_another_kind_is_an_error(void) {
    size_t n;
    open_all();
    SAYS(ov_model_inputs_size((ov_model_t*)core, &n), INVALID_C_PARAM, "ov_core_t");
    SAYS(ov_tensor_get_size((ov_tensor_t*)"text", &n), INVALID_C_PARAM, "never made");
    ov_util_set_log_callback(NULL);
    ov_model_free((ov_model_t*)core);
    FINE(ov_core_set_property(core, "CPU", "PERF_COUNT", "YES"));
}

static void a_tensor_that_does_not_fit_is_refused(void) {
    int64_t other[4] = {1, 1, 8, 9}, few[2] = {1, 3};
    open_all();
    SAYS(ov_infer_request_set_input_tensor(request, tensor_of(U8, 4, image)), GENERAL_ERROR, "found u8");
    SAYS(ov_infer_request_set_input_tensor(request, tensor_of(F32, 4, other)), GENERAL_ERROR, "9");
    SAYS(ov_infer_request_set_output_tensor(request, tensor_of(F32, 2, few)), GENERAL_ERROR, "3");
    SAYS(ov_infer_request_set_tensor(request, "nobody", tensor_of(F32, 4, image)), GENERAL_ERROR, "nobody");
    SAYS(ov_infer_request_set_input_tensor_by_index(request, 7, tensor_of(F32, 4, image)), GENERAL_ERROR, "7");
    FINE(ov_infer_request_infer(request));
}

static void sizes_beyond_memory_are_errors(void) {
    int64_t huge[2] = {INT64_MAX, 100}, large[2] = {1 << 30, 1 << 30};
    float small[4];
    ov_shape_t shape;
    ov_tensor_t* tensor;
    FINE(ov_shape_create(2, huge, &shape));
    CHECK(ov_tensor_create(F32, shape, &tensor) != OK);
    shape.dims[0] = large[0], shape.dims[1] = large[1];
    CHECK(ov_tensor_create(F32, shape, &tensor) != OK);
    shape.dims[0] = 2, shape.dims[1] = 2;
    CHECK(ov_tensor_create((ov_element_type_e)77, shape, &tensor) == INVALID_C_PARAM);
    FINE(ov_tensor_create_from_host_ptr(F32, shape, small, &tensor));
    shape.dims[0] = 3;
    CHECK(ov_tensor_set_shape(tensor, shape) == GENERAL_ERROR);
    shape.dims[0] = 1;
    FINE(ov_tensor_set_shape(tensor, shape));
}

static void a_file_that_is_no_model_is_an_error(void) {
    open_all();
    SAYS(ov_core_read_model(core, "/no/such/file.xml", NULL, &model), GENERAL_ERROR, "/no/such/file.xml");
    SAYS(ov_core_read_model_from_memory_buffer(core, "<net", 4, NULL, &model), GENERAL_ERROR, "");
    SAYS(ov_core_import_model(core, "nonsense", 8, "CPU", &compiled), GENERAL_ERROR, "");
    SAYS(ov_core_add_extension(core, "/no/such.so"), GENERAL_ERROR, "such.so");
}

static void a_model_is_exported_and_imported(void) {
    static char bytes[1 << 22];
    const char* path = "exported.blob";
    open_all();
    FINE(ov_compiled_model_export_model(compiled, path));
    FILE* file = fopen(path, "rb");
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    remove(path);
    FINE(ov_core_import_model(core, bytes, n, "CPU", &compiled));
    FINE(ov_compiled_model_create_infer_request(compiled, &request));
    FINE(ov_infer_request_infer(request));
}

static void a_picture_is_prepared_inside_of_the_model(void) {
    ov_preprocess_prepostprocessor_t* ppp;
    ov_preprocess_input_info_t* info;
    ov_preprocess_input_tensor_info_t* tensor;
    ov_preprocess_preprocess_steps_t* steps;
    ov_preprocess_input_model_info_t* inside;
    ov_layout_t *nhwc, *nchw;
    ov_output_const_port_t* port;
    ov_element_type_e type;
    open_all();
    FINE(ov_preprocess_prepostprocessor_create(model, &ppp));
    FINE(ov_preprocess_prepostprocessor_get_input_info(ppp, &info));
    FINE(ov_preprocess_input_info_get_tensor_info(info, &tensor));
    FINE(ov_preprocess_input_info_get_preprocess_steps(info, &steps));
    FINE(ov_preprocess_input_info_get_model_info(info, &inside));
    FINE(ov_layout_create("NHWC", &nhwc));
    FINE(ov_layout_create("NCHW", &nchw));
    FINE(ov_preprocess_input_tensor_info_set_element_type(tensor, U8));
    FINE(ov_preprocess_input_tensor_info_set_layout(tensor, nhwc));
    FINE(ov_preprocess_input_model_info_set_layout(inside, nchw));
    FINE(ov_preprocess_preprocess_steps_convert_element_type(steps, F32));
    FINE(ov_preprocess_preprocess_steps_scale(steps, 255));
    FINE(ov_preprocess_prepostprocessor_build(ppp, &model));
    SAYS(ov_preprocess_preprocess_steps_scale(steps, 2), INVALID_C_PARAM, "built");
    FINE(ov_model_const_input(model, &port));
    FINE(ov_port_get_element_type(port, &type));
    CHECK(type == U8);
}

static void* work(void* args) {
    ov_infer_request_t* own;
    ov_tensor_t *in, *out;
    float *result, first[10];
    (void)args;
    FINE(ov_compiled_model_create_infer_request(compiled, &own));
    for (int i = 0; i < 50; i++) {
        FINE(ov_infer_request_get_input_tensor(own, &in));
        fill(in, 1);
        FINE(i % 2 ? ov_infer_request_infer(own) : ov_infer_request_start_async(own));
        FINE(ov_infer_request_wait(own));
        FINE(ov_infer_request_get_output_tensor(own, &out));
        FINE(ov_tensor_data(out, (void**)&result));
        if (i == 0) memcpy(first, result, sizeof first);
        CHECK(memcmp(first, result, sizeof first) == 0);
        ov_tensor_free(in), ov_tensor_free(out);
    }
    ov_infer_request_free(own);
    return NULL;
}

static void eight_threads_infer_at_once(void) {
    pthread_t threads[8];
    open_all();
    for (int i = 0; i < 8; i++) CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 8; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void* meddle(void* args) {
    ov_status_e status;
    (void)args;
    for (int i = 0; i < 100; i++) {
        status = ov_infer_request_start_async(request);
        CHECK(status == OK || status == REQUEST_BUSY || status == INFER_CANCELLED);
        status = ov_infer_request_wait(request);
        CHECK(status == OK || status == REQUEST_BUSY || status == INFER_CANCELLED);
        FINE(ov_infer_request_cancel(request));
    }
    return NULL;
}

static void one_request_of_eight_threads_is_busy_or_fine(void) {
    pthread_t threads[8];
    open_all();
    for (int i = 0; i < 8; i++) CHECK(pthread_create(&threads[i], NULL, meddle, NULL) == 0);
    for (int i = 0; i < 8; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void freed_in_its_callback(void* args) {
    ov_infer_request_free(request);
    *(volatile int*)args = 1;
}

static void a_request_may_be_freed_in_its_callback(void) {
    volatile int called = 0;
    ov_callback_t callback = {freed_in_its_callback, (void*)&called};
    open_all();
    FINE(ov_infer_request_set_callback(request, &callback));
    FINE(ov_infer_request_start_async(request));
    while (!called) {
    }
    ov_compiled_model_free(compiled);
    ov_core_free(core);
}

#define ALL(X)                                                                                                      \
    X(an_output_handle_sees_every_inference) X(output_goes_to_memory_of_the_program) X(a_callback_runs_at_the_end)  \
    X(waiting_for_nothing_is_not_ready) X(profiling_tells_times_of_nodes) X(a_model_is_reshaped_and_its_ports_follow) \
    X(an_open_batch_gives_outputs_of_its_size) X(properties_come_as_arguments_and_as_arrays)                        \
    X(wrong_properties_are_errors) X(an_unknown_device_is_named) X(null_is_an_error_everywhere)                     \
    X(a_freed_handle_is_an_error) X(a_handle_of_another_kind_is_an_error) X(a_tensor_that_does_not_fit_is_refused)  \
    X(sizes_beyond_memory_are_errors) X(a_file_that_is_no_model_is_an_error) X(a_model_is_exported_and_imported)    \
    X(a_picture_is_prepared_inside_of_the_model) X(eight_threads_infer_at_once)                                     \
    X(one_request_of_eight_threads_is_busy_or_fine) X(a_request_may_be_freed_in_its_callback)

MAIN
