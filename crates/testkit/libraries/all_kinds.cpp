// One of everything an extension library in C++ can bring, for tests; behaves as crates/testkit/all-kinds does.
#include "carafe.hpp"
#include <algorithm>
#include <atomic>
#include <sstream>

namespace {

struct NotAnException {};

template <class T>
std::string list(const T *items, size_t n) {
    std::ostringstream out;
    for (size_t i = 0; i < n; i++) out << (i ? "," : "") << items[i];
    return out.str();
}

std::string type_name(uint32_t type) {
    return type == CARAFE_F32 ? "f32" : type == CARAFE_I64 ? "i64" : type == CARAFE_U8 ? "u8" : "other";
}

class EveryAttr : public carafe::Op {
public:
    explicit EveryAttr(const carafe::Attrs &a) {
        auto ints = a.get<std::vector<int64_t>>("ints");
        auto floats = a.get<std::vector<double>>("floats");
        auto words = a.get<std::vector<std::string>>("words");
        auto codes = a.get<std::vector<uint32_t>>("types");
        std::vector<std::string> types;
        for (uint32_t t : codes) types.push_back(type_name(t));
        carafe::Fact shape = a.get<carafe::Fact>("shape");
        std::vector<std::string> bounds;
        if (shape.shape)
            for (auto &d : *shape.shape) bounds.push_back(std::to_string(d.min) + ".." + std::to_string(d.max));
        std::ostringstream out;
        out << (a.get<bool>("flag") ? "true" : "false") << '|' << a.get<int64_t>("count") << '|'
            << a.get<double>("ratio") << '|' << a.get<std::string>("label") << '|'
            << list(ints.data(), ints.size()) << '|'
            << list(floats.data(), floats.size()) << '|' << list(words.data(), words.size()) << '|'
            << type_name(a.get<uint32_t>("ty")) << '|' << list(types.data(), types.size()) << '|'
            << (shape.shape ? list(bounds.data(), bounds.size()) : "any") << '|' << a.get<std::string>("mode") << '|';
        if (a.has("bound")) out << a.get<int64_t>("bound");
        else out << "none";
        out << '|';
        if (a.has("table")) {
            carafe::Tensor t = a.get<carafe::Tensor>("table");
            out << list(t.data<float>(), t.size());
        } else {
            out << "none";
        }
        text = out.str();
    }
    void infer(carafe::Infer &cx) const override { cx.output(0, {CARAFE_STRING, std::vector<carafe::Dim>{1}}); }
    void eval(carafe::Eval &cx) const override { cx.output(0, {1}, std::vector<std::string>{text}); }

private:
    std::string text;
};

class Places : public carafe::Op {
public:
    explicit Places(const carafe::Attrs &) {}
    void infer(carafe::Infer &cx) const override { cx.output(0, {CARAFE_I64, std::vector<carafe::Dim>{{}}}); }
    void eval(carafe::Eval &cx) const override {
        carafe::Tensor x = cx.input(0);
        std::vector<int64_t> found;
        for (size_t i = 0; i < x.size(); i++)
            if (x.data<float>()[i] != 0) found.push_back(static_cast<int64_t>(i));
        carafe::Shape shape{found.size()};
        cx.give(0, shape, std::move(found));
    }
};

class Like : public carafe::Op {
public:
    void infer(carafe::Infer &cx) const override { cx.output(0, cx.input(0)); }
};

class RunningSum : public Like {
public:
    explicit RunningSum(const carafe::Attrs &) {}
    void eval(carafe::Eval &cx) const override {
        carafe::Tensor x = cx.input(0);
        float *y = cx.output<float>(0, x.shape());
        std::copy_n(x.data<float>(), x.size(), y);
        if (auto before = cx.variable("sum"))
            for (size_t i = 0; i < x.size(); i++) y[i] += before->data<float>()[i];
        carafe::Tensor sum = x;
        sum.raw.data = y;
        cx.assign("sum", sum);
    }
};

class OtherSoftSign : public Like {
public:
    explicit OtherSoftSign(const carafe::Attrs &) {}
    void eval(carafe::Eval &cx) const override {
        carafe::Tensor x = cx.input(0);
        std::fill_n(cx.output<float>(0, x.shape()), x.size(), 42.0f);
    }
};

class Twice : public Like {
public:
    explicit Twice(const carafe::Attrs &) {}
    static void run(carafe::Eval &cx) {
        carafe::Tensor x = cx.input(0);
        const float *from = x.data<float>();
        float *to = cx.output<float>(0, x.shape());
        carafe::parallel_for(x.size(), [&](size_t begin, size_t end) {
            for (size_t i = begin; i < end; i++) to[i] = 2 * from[i];
        });
    }
    void eval(carafe::Eval &cx) const override { run(cx); }
};

// x * factor + hint, where the hint is never written to a file.
class Hinted : public Like {
public:
    explicit Hinted(const carafe::Attrs &a) : factor(a.get<double>("factor")), hint(a.get<double>("hint")) {}
    void eval(carafe::Eval &cx) const override {
        carafe::Tensor x = cx.input(0);
        const float *from = x.data<float>();
        float *to = cx.output<float>(0, x.shape());
        for (size_t i = 0; i < x.size(); i++) to[i] = static_cast<float>(from[i] * factor + hint);
    }

private:
    double factor, hint;
};

// Fails in the way it is told to.
class Fails : public Like {
public:
    explicit Fails(const carafe::Attrs &a) : how(a.get<std::string>("how")) {}
    void infer(carafe::Infer &cx) const override {
        if (how == "infer panics") throw NotAnException();
        Like::infer(cx);
    }
    void eval(carafe::Eval &cx) const override {
        if (how == "eval panics") throw NotAnException();
        if (how == "eval errors") throw std::runtime_error("eval was told to fail");
        auto fail = [](size_t, size_t) { throw std::runtime_error("a part was told to fail"); };
        if (how == "part throws") carafe::parallel_for(100, fail);
        if (how == "wrong type") cx.input(0).data<int64_t>();
        if (how != "no output") cx.forward(0, 0);
    }

private:
    std::string how;
};

std::atomic<int64_t> steps{0}, events{0};

class Heard : public carafe::Op {
public:
    explicit Heard(const carafe::Attrs &) {}
    void infer(carafe::Infer &cx) const override { cx.output(0, {CARAFE_I64, std::vector<carafe::Dim>{2}}); }
    void eval(carafe::Eval &cx) const override {
        int64_t *y = cx.output<int64_t>(0, {2});
        y[0] = steps;
        y[1] = events;
    }
};

void convert_steep(carafe::Node &n) {
    auto scale = n.attr<double>("scale");
    if (!scale) throw std::invalid_argument("attribute `scale` is required");
    double by = *scale * static_cast<double>(n.attr<int64_t>("times").value_or(1));
    by += static_cast<double>(n.attr<std::string>("label").value_or("").size());
    by += static_cast<double>(n.attr<std::vector<int64_t>>("axes").value_or(std::vector<int64_t>()).size());
    by += static_cast<double>(n.attr<std::vector<std::string>>("words").value_or(std::vector<std::string>()).size());
    for (double w : n.attr<std::vector<double>>("weights").value_or(std::vector<double>())) by += w;
    carafe::Value x = n.input(0);
    carafe::Value y = n.emit("opset1::Multiply", {x, n.constant<float>({static_cast<float>(by)}, {})});
    if (n.has(1)) y = n.emit("opset1::Add", {y, n.input(1)});
    n.output(0, y);
    if (n.outputs() > 1) n.output(1, x);
}

class TwiceKernel : public carafe::Kernel {
public:
    void run(carafe::KernelIo &io) const override {
        const float *x = io.input(0).data<float>();
        float *y = io.output<float>(0);
        for (size_t i = 0; i < io.elements(0); i++) y[i] = 2 * x[i];
    }
};

class TwiceKernels : public carafe::KernelClass {
public:
    std::vector<carafe::Config> configs(const carafe::Site &site) const override {
        auto &shape = site.inputs[0].shape;
        if (!shape || shape->size() != 4) return {};
        std::vector<size_t> blocks;
        for (auto &d : *shape) {
            if (!d.known()) return {};
            blocks.push_back(static_cast<size_t>(d.min));
        }
        blocks[1] = (blocks[1] + 7) / 8;
        blocks.push_back(8);
        carafe::Layout blocked{CARAFE_F32, blocks, {0, 1, 2, 3, 1}};
        return {{{blocked}, {blocked}}, {{{CARAFE_F32}}, {{CARAFE_F32, {}, {}, 0}}}};
    }
    std::unique_ptr<carafe::Kernel> init(const carafe::Site &, size_t config) const override {
        if (config > 1) throw carafe::Error(CARAFE_USAGE, "the configuration was not offered");
        return std::make_unique<TwiceKernel>();
    }
};

carafe::Mapping onnx(std::string op, std::optional<std::string> from) {
    carafe::Mapping m{std::move(op)};
    m.framework = "onnx";
    m.domain = "kinds";
    m.op_type = std::move(from);
    return m;
}

void add_mappings(carafe::Registrar &r) {
    r.mapping(onnx("kinds::Places", std::nullopt));
    r.mapping(onnx("kinds::Places", "WhereTrue"));
    carafe::Mapping tell = onnx("kinds::EveryAttr", "Tell");
    tell.attr_names = {{"label", "text"}};
    tell.attr_values = {{"count", 12}};
    r.mapping(tell);
    carafe::Mapping tell_input = onnx("kinds::EveryAttr", "TellInput");
    tell_input.input_attrs = {{"ints", 1}, {"ratio", 2}};
    r.mapping(tell_input);
    r.mapping(onnx("Relu", "ReluAlias"));
    carafe::Mapping elu = onnx("opset1::Elu", "Elu1");
    elu.attr_values = {{"alpha", 2.0}};
    r.mapping(elu);
    r.mapping(onnx("opset1.Sigmoid", "Sigmoid1"));
    carafe::Mapping tanh{"opset1::Tanh"};
    tanh.framework = "paddle";
    tanh.op_type = "tanh2";
    tanh.input_names = {"X"};
    tanh.output_names = {"Out"};
    r.mapping(tanh);
}

void add_passes(carafe::Registrar &r) {
    auto mark = [](const char *key) {
        return [key](carafe::Graph &g, uint32_t id) {
            CarafeStr found{nullptr, 0};
            if (g.g->fns->info(g.g, id, carafe_str(key), &found) == CARAFE_OK) return false;
            g.set_info(id, key, "seen");
            return true;
        };
    };
    r.matcher(CARAFE_PHASE_FRONT, "kinds_front", "Sigmoid", mark("front"));
    r.matcher(CARAFE_PHASE_MIDDLE, "kinds_middle", "Sigmoid", mark("middle"));
    r.matcher(CARAFE_PHASE_BACK, "kinds_back", "Sigmoid", mark("back"));
    auto late = [](carafe::Graph &g, uint32_t id) {
        g.set_name(id, g.node(id).name + "L");
        return true;
    };
    r.matcher(CARAFE_PHASE_MIDDLE, "late", "Tanh", late, {{}, {"kinds_middle"}});
    auto early = [](carafe::Graph &g) {
        size_t fired = 0;
        for (uint32_t id : g.nodes())
            if (g.node(id).op_type == "Tanh") {
                g.set_name(id, g.node(id).name + "E");
                fired++;
            }
        return fired;
    };
    r.model_pass(CARAFE_PHASE_MIDDLE, "early", early, {{"late"}, {}});
    auto asked = [](carafe::Graph &g) {
        size_t fired = 0;
        for (uint32_t id : g.nodes())
            if (g.node(id).op_type == "Tanh") {
                g.set_name(id, g.node(id).name + "A");
                fired++;
            }
        return fired;
    };
    carafe::Order only_when_asked;
    only_when_asked.enabled = false;
    r.model_pass(CARAFE_PHASE_FRONT, "asked", asked, only_when_asked);
    r.replacement("EluBlock", [](carafe::Graph &g, const carafe::Match &m) {
        if (m.nodes.empty()) throw carafe::Error("EluBlock needs a match");
        carafe::Attr alpha("alpha", m.attrs.get<double>("alpha"));
        g.replace(m.outputs[0], g.add(m.name, "carafe.replacement::opset1::Elu", m.inputs, {alpha}));
    });
    r.model_pass(CARAFE_PHASE_DECODED, "kinds_decoded", [](carafe::Graph &g) { return g.nodes().size() * 0; });
}

}  // namespace

CARAFE_EXTENSION(r) {
    using carafe::Attr;
    using carafe::Decl;
    r.describe("all kinds", "0.1.0");
    r.op<EveryAttr>(Decl("EveryAttr", "kinds")
                        .input("data")
                        .output("output")
                        .attr({"flag", false})
                        .attr({"count", -7})
                        .attr({"ratio", 0.5})
                        .attr({"label", "none"})
                        .attr({"ints", std::vector<int64_t>()})
                        .attr({"floats", std::vector<double>()})
                        .attr({"words", std::vector<std::string>()})
                        .attr(Attr::type("ty", CARAFE_F32))
                        .attr(Attr::types("types", {}))
                        .attr(Attr::shape("shape", std::nullopt))
                        .attr({"mode", "near"})
                        .optional("bound", CARAFE_ATTR_INT)
                        .optional("table", CARAFE_ATTR_TENSOR));
    r.op<Places>(Decl("Places", "kinds").input("data").output("places"));
    r.op<RunningSum>(Decl("RunningSum", "kinds").input("data").output("sum").with(CARAFE_OP_STATEFUL));
    r.op<OtherSoftSign>(Decl("SoftSign", "opset9").input("data").output("output"));
    r.op<Hinted>(Decl("Hinted", "kinds")
                     .input("data")
                     .output("output")
                     .attr({"factor", 1.0})
                     .internal({"hint", 10.0})
                     .keeps_rows({0}));
    r.op<Twice>(
        Decl("Twice", "kinds").input("data").output("output").with(CARAFE_OP_ELEMENTWISE | CARAFE_OP_KEEPS_ZERO));
    r.op<Fails>(Decl("Fails", "kinds").input("data").output("output").required("how", CARAFE_ATTR_STR));
    r.op<Heard>(Decl("Heard", "kinds").input("data").output("heard").with(CARAFE_OP_RANDOM));
    r.rule("onnx", "kinds", "Steep", convert_steep);
    auto nonzeros = [](carafe::Node &n) { n.output(0, n.emit("kinds::Places", {n.input(0)})); };
    r.rule(std::nullopt, "kinds", "Nonzeros", nonzeros);
    add_mappings(r);
    add_passes(r);
    r.kernel("TEMPLATE", "Twice", "kinds", "twice_nchw8c", std::make_unique<TwiceKernels>());
    r.cl_kernel("GPU", "<CustomLayer name=\"Places\" type=\"SimpleGPU\" version=\"1\"/>", "__kernel void places() {}");
    r.progress([](float part, uint32_t total, uint32_t done) {
        if (part < 0 || part > 1 || done > total) throw std::logic_error("progress that cannot be");
        steps++;
    });
    r.telemetry([](std::string_view, std::string_view, std::string_view, std::string_view, int64_t) { events++; });
}
