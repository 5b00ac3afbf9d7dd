// The kernels of kernels.c, in C++.
#include "carafe.hpp"
#include <chrono>
#include <cmath>
#include <thread>

namespace {

constexpr size_t block = 8, workspace_bytes = 64, scratch_bytes = 32;

carafe::Shape known(const carafe::Fact &f) {
    carafe::Shape shape;
    for (size_t k = 0; f.shape && k < f.shape->size(); k++)
        if ((*f.shape)[k].known()) shape.push_back(static_cast<size_t>((*f.shape)[k].min));
    return shape;
}

// Sums and ReLUs of what it has.
size_t taken_of(const carafe::Site &site) {
    size_t n = 0;
    for (; n < site.epilogue.size(); n++) {
        const carafe::EpilogueOp &op = site.epilogue[n];
        bool sum = op.function == CARAFE_ADD && op.operands[0] == -1 - static_cast<int64_t>(n) && op.operands[1] >= 0;
        if (!sum && op.function != CARAFE_RELU) break;
    }
    return n;
}

class Abs : public carafe::Kernel {
public:
    explicit Abs(const carafe::Site &site) : channels(known(site.inputs[0])[1]) {
        for (size_t k = 0; k < taken_of(site); k++) ops.push_back(site.epilogue[k].function);
    }
    void run(carafe::KernelIo &io) const override {
        std::memset(io.workspace(), 0x5a, workspace_bytes);
        carafe::Tensor x = io.input(0);
        const carafe::Shape dims = x.shape();
        float *y = io.output<float>(0);
        size_t row = dims[2] * dims[3] * block;
        io.each(dims[0] * dims[1], [&](size_t part, void *scratch) {
            std::memset(scratch, 0x5a, scratch_bytes);
            for (size_t i = part * row; i < (part + 1) * row; i++) {
                float v = std::fabs(x.data<float>()[i]);
                size_t channel = part % dims[1] * block + i % block, in = 1;
                for (uint32_t op : ops) {
                    if (op == CARAFE_RELU) {
                        v = v < 0 ? 0 : v;
                        continue;
                    }
                    carafe::Tensor more = io.input(in++);
                    if (more.shape().size() == 5) v += more.data<float>()[i];
                    else if (channel < channels) v += more.data<float>()[more.size() == 1 ? 0 : channel];
                }
                y[i] = v;
            }
        });
    }

private:
    size_t channels;
    std::vector<uint32_t> ops;
};

class AbsKernels : public carafe::KernelClass {
public:
    bool fuses() const override { return true; }
    std::vector<carafe::Config> configs(const carafe::Site &site) const override {
        carafe::Shape shape = known(site.inputs[0]);
        if (site.inputs[0].type != CARAFE_F32 || shape.size() != 4) return {};
        carafe::Layout blocked = carafe::Layout::blocked_by(CARAFE_F32, shape, block);
        carafe::Config config{{blocked}, {blocked}, taken_of(site), workspace_bytes, scratch_bytes};
        for (size_t k = 0; k < config.epilogue; k++)
            if (site.epilogue[k].function == CARAFE_ADD)
                config.inputs.push_back(known(site.inputs[config.inputs.size()]) == shape ? blocked
                                                                                         : carafe::Layout{CARAFE_F32});
        return {config};
    }
    std::unique_ptr<carafe::Kernel> init(const carafe::Site &site, size_t) const override {
        return std::make_unique<Abs>(site);
    }
};

std::atomic<int> inside;

class Meet : public carafe::Kernel {
public:
    void run(carafe::KernelIo &io) const override {
        std::memcpy(io.output<float>(0), io.input(0).data<float>(), io.elements(0) * sizeof(float));
        inside++;
        for (int i = 0; i < 60000 && inside < 2; i++) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (inside < 2) throw carafe::Error("nobody else came");
    }
};

class MeetKernels : public carafe::KernelClass {
public:
    std::vector<carafe::Config> configs(const carafe::Site &) const override {
        return {{{{CARAFE_F32}}, {{CARAFE_F32}}}};
    }
    std::unique_ptr<carafe::Kernel> init(const carafe::Site &, size_t) const override { return std::make_unique<Meet>(); }
};

}  // namespace

CARAFE_EXTENSION(r) {
    r.describe("kernels_cpp", "1.0");
    r.kernel("CPU", "Abs", std::nullopt, "abs_c8", std::make_unique<AbsKernels>());
    r.kernel("CPU", "Negative", std::nullopt, "meet", std::make_unique<MeetKernels>());
}
