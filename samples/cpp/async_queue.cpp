// Keeps several requests busy: async_queue MODEL.xml DEVICE REQUESTS INFERENCES. A request that has ended is started again.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <queue>
#include <vector>

#include "carafe/carafe_runtime.hpp"

// Numbers of requests that are free.
struct Idle {
    std::mutex lock;
    std::condition_variable changed;
    std::queue<size_t> free;

    void put(size_t request) {
        std::lock_guard<std::mutex> held(lock);
        free.push(request);
        changed.notify_one();
    }
    size_t take() {
        std::unique_lock<std::mutex> held(lock);
        changed.wait(held, [this] { return !free.empty(); });
        size_t request = free.front();
        free.pop();
        return request;
    }
};

struct Slot {
    Idle* idle;
    size_t number;
};

static void ended(void* args) {
    auto* slot = static_cast<Slot*>(args);
    slot->idle->put(slot->number);
}

int main(int argc, char** argv) try {
    if (argc != 5) return std::fprintf(stderr, "usage: async_queue MODEL.xml DEVICE REQUESTS INFERENCES\n"), 2;
    const size_t count = std::strtoul(argv[3], nullptr, 10), inferences = std::strtoul(argv[4], nullptr, 10);
    auto core = carafe::Core::make([](auto** out) { return ov_core_create(out); });
    auto model = carafe::CompiledModel::make([&](auto** out) {
        return ov_core_compile_model_from_file(core.get(), argv[1], argv[2], 2, out,
                                               ov_property_key_hint_performance_mode, "THROUGHPUT");
    });
    Idle idle;
    std::vector<Slot> slots(count);
    std::vector<carafe::InferRequest> requests;
    const int64_t sizes[4] = {1, 1, 8, 8};
    ov_shape_t shape;
    carafe::check(ov_shape_create(4, sizes, &shape));
    for (size_t i = 0; i < count; i++) {
        requests.push_back(carafe::InferRequest::make(
            [&](auto** out) { return ov_compiled_model_create_infer_request(model.get(), out); }));
        auto input = carafe::Tensor::make([&](auto** out) { return ov_tensor_create(F32, shape, out); });
        carafe::check(ov_infer_request_set_input_tensor(requests[i].get(), input.get()));
        slots[i] = {&idle, i};
        ov_callback_t callback = {ended, &slots[i]};
        carafe::check(ov_infer_request_set_callback(requests[i].get(), &callback));
        idle.put(i);
    }
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < inferences; i++) {
        const size_t next = idle.take();
        carafe::check(ov_infer_request_wait(requests[next].get()));
        carafe::check(ov_infer_request_start_async(requests[next].get()));
    }
    for (auto& request : requests) carafe::check(ov_infer_request_wait(request.get()));
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    ov_shape_free(&shape);
    std::printf("%zu inferences with %zu requests, %.0f a second\n", inferences, count, inferences / time.count());
    return 0;
} catch (const carafe::Error& error) {
    std::fprintf(stderr, "async_queue: %s\n", error.what());
    return 1;
}
