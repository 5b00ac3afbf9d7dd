// An extension in C++17: operations, a rule for ONNX, a mapping, a rewrite and a kernel. Exceptions become error texts
// with this library's name; the standard library stays inside. Build it with
//     c++ -std=c++17 -shared -fPIC -I $CARAFE/include extension.cpp -o libacme_cpp.so
// and use it with `carafe run model.onnx --extension ./libacme_cpp.so`.
#include "carafe.hpp"
#include <algorithm>
#include <cmath>
#include <map>

namespace {

// Softplus with a limit: log(1 + exp(x)), and x itself above `limit`.
class LimitedSoftplus : public carafe::Op {
public:
    explicit LimitedSoftplus(const carafe::Attrs &attrs) : limit(attrs.get<double>("limit", 20.0)) {
        if (!(limit > 0)) throw std::invalid_argument("`limit` must be above zero, found " + std::to_string(limit));
    }
    void infer(carafe::Infer &cx) const override {
        carafe::Fact x = cx.input(0);
        if (x.type != CARAFE_F32 && x.type != CARAFE_DYNAMIC) throw carafe::Error("input 0 must be f32");
        cx.output(0, x);
    }
    void eval(carafe::Eval &cx) const override {
        carafe::Tensor x = cx.input(0);
        const float *from = x.data<float>();
        float *to = cx.output<float>(0, x.shape());
        std::transform(from, from + x.size(), to, [this](float v) { return apply(v); });
    }
    float apply(float v) const { return v > limit ? v : static_cast<float>(std::log1p(std::exp(v))); }

private:
    double limit;
};

// The distinct values in order, and how often each is there. How many there are is known only when it runs.
class Histogram : public carafe::Op {
public:
    explicit Histogram(const carafe::Attrs &) {}
    void infer(carafe::Infer &cx) const override {
        std::vector<carafe::Dim> any{carafe::Dim()};
        cx.output(0, {cx.input(0).type, any});
        cx.output(1, {CARAFE_I64, any});
    }
    void eval(carafe::Eval &cx) const override {
        carafe::Tensor x = cx.input(0);
        std::map<float, int64_t> counts;
        const float *from = x.data<float>();
        for (size_t i = 0; i < x.size(); i++) counts[from[i]]++;
        std::vector<float> values;
        std::vector<int64_t> times;
        for (auto &[value, n] : counts) {
            values.push_back(value);
            times.push_back(n);
        }
        cx.give(0, {counts.size()}, std::move(values));
        cx.give(1, {counts.size()}, std::move(times));
    }
};

// ONNX: `Cube` of domain `acme.cpp` becomes Power(x, exponent).
void convert_cube(carafe::Node &n) {
    float exponent = n.attr<float>("exponent").value_or(3.0f);
    carafe::Value power = n.constant<float>({exponent}, {});
    n.output(0, n.emit("opset1::Power", {n.input(0), power}));
}

// A rewrite: Negative of Negative is nothing.
bool cancel_negatives(carafe::Graph &g, uint32_t id) {
    carafe::Value inner = g.input(id, 0);
    if (g.node(inner.node).op_type != "Negative") return false;
    g.replace({id, 0}, g.input(inner.node, 0));
    return true;
}

// A kernel for LimitedSoftplus that works where its input lies. All streams use it at once.
class SoftplusKernel : public carafe::Kernel {
public:
    explicit SoftplusKernel(const carafe::Attrs &attrs) : op(attrs) {}
    void run(carafe::KernelIo &io) const override {
        const float *from = io.input(0).data<float>();
        float *to = io.output<float>(0);
        size_t n = io.elements(0), part = n / io.threads() + 1;
        io.each(io.threads(), [&](size_t k, void *) {
            for (size_t i = k * part; i < std::min(n, (k + 1) * part); i++) to[i] = op.apply(from[i]);
        });
    }

private:
    LimitedSoftplus op;
};

class SoftplusKernels : public carafe::KernelClass {
public:
    std::vector<carafe::Config> configs(const carafe::Site &site) const override {
        if (site.inputs[0].type != CARAFE_F32) return {};
        return {{{{CARAFE_F32}}, {{CARAFE_F32, {}, {}, 0}}}};
    }
    std::unique_ptr<carafe::Kernel> init(const carafe::Site &site, size_t) const override {
        return std::make_unique<SoftplusKernel>(site.attrs);
    }
};

}  // namespace

CARAFE_EXTENSION(r) {
    r.describe("template_extension_cpp", "1.0");
    r.op<LimitedSoftplus>(carafe::Decl("LimitedSoftplus", "acme")
                              .says("log(1 + exp(x)), and x itself above the limit")
                              .input("data")
                              .output("output")
                              .attr({"limit", 20.0}, "Where the curve is taken for a line."));
    r.op<Histogram>(carafe::Decl("Histogram", "acme").input("data").output("values").output("counts"));
    r.rule("onnx", "acme.cpp", "Cube", convert_cube);
    carafe::Mapping mapping{"acme::LimitedSoftplus"};
    mapping.framework = "onnx";
    mapping.domain = "acme.cpp";
    mapping.op_type = "Softplus2";
    mapping.attr_names = {{"limit", "threshold"}};
    r.mapping(mapping);
    r.matcher(CARAFE_PHASE_FRONT, "cancel_negatives", "Negative", cancel_negatives);
    r.kernel("CPU", "LimitedSoftplus", "acme", "softplus_cpp", std::make_unique<SoftplusKernels>());
}
