/* Checks of memory that lies on a device: `remote NAME MODEL.xml`. OpenCL is loaded by name, so its headers are not needed. */
#include <dlfcn.h>
#include <stdint.h>

#include "checks.h"

static const int64_t scores[2] = {1, 10};
static ov_remote_context_t* context;

static int (*read_buffer)(void*, void*, uint32_t, size_t, size_t, void*, uint32_t, const void*, void*);
static int (*write_buffer)(void*, void*, uint32_t, size_t, size_t, const void*, uint32_t, const void*, void*);

static void open_device(void) {
    void* library = dlopen("libOpenCL.so.1", RTLD_NOW);
    CHECK(library);
    *(void**)&read_buffer = dlsym(library, "clEnqueueReadBuffer");
    *(void**)&write_buffer = dlsym(library, "clEnqueueWriteBuffer");
    open_all();
    FINE(ov_core_get_default_context(core, "GPU", &context));
}

/* The address behind a name of `KEY value KEY value`. */
static void* address(char* params, const char* name) {
    char* at = strstr(params, name);
    CHECK(at);
    return (void*)(uintptr_t)strtoull(at + strlen(name), NULL, 16);
}

static void* of_context(ov_remote_context_t* from, const char* name) {
    size_t n = 0;
    char* params = NULL;
    FINE(ov_remote_context_get_params(from, &n, &params));
    CHECK(n >= 2);
    void* found = address(params, name);
    ov_free(params);
    return found;
}

static void* memory_of(ov_tensor_t* tensor) {
    size_t n = 0;
    char* params = NULL;
    FINE(ov_remote_tensor_get_params(tensor, &n, &params));
    CHECK(n >= 2);
    void* found = address(params, "MEM_HANDLE ");
    ov_free(params);
    return found;
}

static ov_tensor_t* device_tensor(ov_remote_context_t* in, int64_t rank, const int64_t* dims) {
    ov_shape_t shape;
    ov_tensor_t* tensor;
    FINE(ov_shape_create(rank, dims, &shape));
    FINE(ov_remote_context_create_tensor(in, F32, shape, 0, &tensor));
    FINE(ov_shape_free(&shape));
    return tensor;
}

/* What the CPU gives for the input that `fill(1)` makes. */
static void expect(float* wanted) {
    ov_tensor_t *in, *out;
    float* result;
    FINE(ov_infer_request_get_input_tensor(request, &in));
    fill(in, 1);
    FINE(ov_infer_request_infer(request));
    FINE(ov_infer_request_get_output_tensor(request, &out));
    FINE(ov_tensor_data(out, (void**)&result));
    memcpy(wanted, result, 10 * sizeof *wanted);
}

/* The device may work in halves. */
static int close_to(const float* a, const float* b) {
    for (int i = 0; i < 10; i++)
        if (a[i] - b[i] > 1e-3f || b[i] - a[i] > 1e-3f) return 0;
    return 1;
}

static void infer_in(ov_remote_context_t* in, ov_tensor_t* from, ov_tensor_t* to) {
    FINE(ov_core_compile_model_with_context(core, model, in, 0, &compiled));
    FINE(ov_compiled_model_create_infer_request(compiled, &request));
    FINE(ov_infer_request_set_input_tensor(request, from));
    FINE(ov_infer_request_set_output_tensor(request, to));
    for (int again = 0; again < 2; again++) FINE(ov_infer_request_infer(request));
}

static void input_and_output_stay_on_the_device(void) {
    float wanted[10], found[10], pixels[64];
    void* data;
    char* name;
    ov_element_type_e type;
    size_t bytes;
    open_device();
    expect(wanted);
    ov_tensor_t *from = device_tensor(context, 4, image), *to = device_tensor(context, 2, scores);
    FINE(ov_tensor_get_element_type(to, &type));
    FINE(ov_tensor_get_byte_size(to, &bytes));
    CHECK(type == F32 && bytes == 40);
    FINE(ov_remote_tensor_get_device_name(to, &name));
    CHECK(strncmp(name, "GPU", 3) == 0);
    SAYS(ov_tensor_data(to, &data), NOT_IMPLEMENTED, "GPU");
    void* queue = of_context(context, "OCL_QUEUE ");
    for (int i = 0; i < 64; i++) pixels[i] = (float)(i % 5);
    CHECK(write_buffer(queue, memory_of(from), 1, 0, sizeof pixels, pixels, 0, NULL, NULL) == 0);
    infer_in(context, from, to);
    CHECK(read_buffer(queue, memory_of(to), 1, 0, sizeof found, found, 0, NULL, NULL) == 0);
    CHECK(close_to(wanted, found));
    /* What is freed is kept by whoever uses it. */
    ov_tensor_free(from);
    ov_remote_context_free(context);
    FINE(ov_infer_request_infer(request));
    FINE(ov_compiled_model_get_context(compiled, &context));
    FINE(ov_remote_context_get_device_name(context, &name));
    CHECK(strncmp(name, "GPU", 3) == 0);
}

static void a_context_a_queue_and_buffers_of_the_program_are_shared(void) {
    float wanted[10], found[10], pixels[64];
    ov_remote_context_t* shared;
    ov_tensor_t *from, *to;
    ov_shape_t shape;
    open_device();
    expect(wanted);
    void *raw = of_context(context, "OCL_CONTEXT "), *queue = of_context(context, "OCL_QUEUE ");
    ov_tensor_t *a = device_tensor(context, 4, image), *b = device_tensor(context, 2, scores);
    FINE(ov_core_create_context(core, "GPU", 6, &shared, ov_property_key_intel_gpu_context_type, "OCL",
                                ov_property_key_intel_gpu_ocl_context, raw, ov_property_key_intel_gpu_ocl_queue, queue));
    CHECK(of_context(shared, "OCL_CONTEXT ") == raw && of_context(shared, "OCL_QUEUE ") == queue);
    FINE(ov_shape_create(4, image, &shape));
    FINE(ov_remote_context_create_tensor(shared, F32, shape, 4, &from, ov_property_key_intel_gpu_shared_mem_type,
                                         "OCL_BUFFER", ov_property_key_intel_gpu_mem_handle, memory_of(a)));
    FINE(ov_shape_free(&shape));
    ov_property_t pairs[2] = {{"SHARED_MEM_TYPE", "OCL_BUFFER"}, {"MEM_HANDLE", memory_of(b)}};
    FINE(ov_shape_create(2, scores, &shape));
    FINE(ov_remote_context_create_tensor_props(shared, F32, shape, 2, pairs, &to));
    CHECK(memory_of(from) == memory_of(a) && memory_of(to) == memory_of(b));
    for (int i = 0; i < 64; i++) pixels[i] = (float)(i % 5);
    /* The write is not waited for: the inference comes behind it. */
    CHECK(write_buffer(queue, memory_of(a), 0, 0, sizeof pixels, pixels, 0, NULL, NULL) == 0);
    infer_in(shared, from, to);
    CHECK(read_buffer(queue, memory_of(b), 1, 0, sizeof found, found, 0, NULL, NULL) == 0);
    CHECK(close_to(wanted, found));
}

static void what_cannot_be_shared_is_named(void) {
    ov_remote_context_t* other;
    ov_tensor_t* tensor;
    ov_shape_t shape;
    size_t n;
    char* text;
    open_device();
    FINE(ov_shape_create(4, image, &shape));
    SAYS(ov_remote_context_create_tensor(context, U8, shape, 4, &tensor, "SHARED_MEM_TYPE", "OCL_IMAGE2D", "MEM_HANDLE", context),
         NOT_IMPLEMENTED, "OCL_IMAGE2D");
    SAYS(ov_remote_context_create_tensor(context, U8, shape, 2, &tensor, "MEM_HANDLE", NULL), INVALID_C_PARAM, "MEM_HANDLE");
    SAYS(ov_core_create_context(core, "GPU", 2, &other, "CONTEXT_TYPE", "VA_SHARED"), NOT_IMPLEMENTED, "VA_SHARED");
    SAYS(ov_core_create_context(core, "GPU", 2, &other, "VA_DEVICE", core), NOT_IMPLEMENTED, "VA_DEVICE");
    SAYS(ov_core_create_context(core, "GPU", 2, &other, "COLOUR", "blue"), INVALID_C_PARAM, "COLOUR");
    SAYS(ov_core_create_context(core, "GPU", 1, &other, "A"), INVALID_C_PARAM, "pairs");
    SAYS(ov_core_create_context(core, "GPU.99", 0, &other), GENERAL_ERROR, "99");
    SAYS(ov_core_compile_model(core, model, "GPU", 2, &compiled, "OCL_CONTEXT", context), INVALID_C_PARAM, "OCL_CONTEXT");
    SAYS(ov_remote_context_get_device_name((ov_remote_context_t*)core, &text), INVALID_C_PARAM, "ov_core_t");
    SAYS(ov_remote_context_get_params(NULL, &n, &text), INVALID_C_PARAM, "null");
    ov_tensor_t* plain = tensor_of(F32, 4, image);
    SAYS(ov_remote_tensor_get_params(plain, &n, &text), INVALID_C_PARAM, "host");
    SAYS(ov_remote_tensor_get_device_name(plain, &text), INVALID_C_PARAM, "host");
    tensor = device_tensor(context, 2, scores);
    const int64_t large[1] = {1000};
    ov_shape_t more;
    FINE(ov_shape_create(1, large, &more));
    SAYS(ov_tensor_set_shape(tensor, more), GENERAL_ERROR, "bytes");
    ov_remote_context_free(context);
    SAYS(ov_remote_context_create_host_tensor(context, U8, shape, &tensor), INVALID_C_PARAM, "freed");
}

#define ALL(X)                                                                                          \
    X(input_and_output_stay_on_the_device) X(a_context_a_queue_and_buffers_of_the_program_are_shared) \
    X(what_cannot_be_shared_is_named)
MAIN
