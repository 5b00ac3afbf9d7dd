/* A device in C++, to copy and change. It computes ReLU on every float type and Add on f32 itself, gives nodes to the kernels
 * that extensions bring for it, and lets the engine evaluate every other node through the model it was given. It has all that
 * a device can have: properties, dynamic shapes, variables, times of nodes, the graph that runs, export and import.
 *
 *     c++ -std=c++17 -shared -fPIC -I $CARAFE/include plugin.cpp -o libtemplate_plugin_cpp.so
 *     carafe run model.xml -d CPP --plugin CPP=./libtemplate_plugin_cpp.so
 *     carafe conformance -d CPP --plugin CPP=./libtemplate_plugin_cpp.so
 */
#include "carafe.hpp"
#include <atomic>
#include <chrono>
#include <set>

using carafe::Error;
using carafe::OwnedTensor;

namespace {

std::string metric_of(const std::string &name);

const std::vector<carafe::Property> &property_table() {
    using P = carafe::Property;
    static const std::vector<P> table = {
        {"PERF_COUNT", P::boolean, true, "false", "Measure the time of every node."},
        {"DEVICE_ID", P::text, true, "0", "Which instance; there is only 0."},
        {"AVAILABLE_DEVICES", P::text, false, "", "Ids of the instances."},
        {"FULL_DEVICE_NAME", P::text, false, "", "Name for people."},
        {"DEVICE_ARCHITECTURE", P::text, false, "", "Kind of machine the device runs on."},
        {"OPTIMIZATION_CAPABILITIES", P::text, false, "", "Precisions and abilities."},
        {"OPTIMAL_NUMBER_OF_INFER_REQUESTS", P::text, false, "", "How many requests keep the device busy."},
        {"RANGE_FOR_ASYNC_INFER_REQUESTS", P::text, false, "", "Fewest, most and step of parallel requests."},
        {"SUPPORTED_PROPERTIES", P::text, false, "", "Names of all properties."},
    };
    return table;
}

std::string metric_of(const std::string &name) {
    static const std::map<std::string, std::string> known = {
        {"AVAILABLE_DEVICES", "0"},
        {"FULL_DEVICE_NAME", "A device written in C++"},
        {"DEVICE_ARCHITECTURE", "host"},
        {"OPTIMIZATION_CAPABILITIES", "FP32 FP16 BF16 INT8 BIN EXPORT_IMPORT"},
        {"OPTIMAL_NUMBER_OF_INFER_REQUESTS", "1"},
        {"RANGE_FOR_ASYNC_INFER_REQUESTS", "1 1 1"},
    };
    auto found = known.find(name);
    if (found != known.end()) return found->second;
    if (name != "SUPPORTED_PROPERTIES") throw Error(CARAFE_NOT_FOUND, "there is no property `" + name + "`");
    std::string all;
    for (auto &p : property_table()) all += (all.empty() ? "" : " ") + p.name;
    return all;
}

void check_instance(const carafe::Settings &settings) {
    std::string id = settings.get("DEVICE_ID").value_or("0");
    if (id != "0") throw Error(CARAFE_NOT_FOUND, "this device has one instance, 0, not " + id);
}

/* The device's own kernels: nothing when they leave a node to the engine. */

template <class T>
OwnedTensor relu(const OwnedTensor &x) {
    OwnedTensor y = OwnedTensor::zeros<T>(x.shape());
    const T *from = x.data<T>();
    T *to = y.data_mut<T>();
    carafe::parallel_for(x.size(), [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; i++) to[i] = from[i] < T(0) ? T(0) : from[i];
    });
    return y;
}

std::optional<OwnedTensor> run_own(const std::string &op, const std::vector<OwnedTensor> &in) {
    if (op == "ReLU") {
        switch (in[0].type()) {
        case CARAFE_F32: return relu<float>(in[0]);
        case CARAFE_F16: return relu<carafe::f16>(in[0]);
        case CARAFE_BF16: return relu<carafe::bf16>(in[0]);
        default: return std::nullopt;
        }
    }
    if (op == "Add" && in[0].type() == CARAFE_F32 && in[0].shape() == in[1].shape()) {
        OwnedTensor y = OwnedTensor::zeros<float>(in[0].shape());
        const float *a = in[0].data<float>(), *b = in[1].data<float>();
        float *to = y.data_mut<float>();
        for (size_t i = 0; i < y.size(); i++) to[i] = a[i] + b[i];
        return y;
    }
    return std::nullopt;
}

/* Why neither a kernel nor an evaluation runs a node; nothing when one does. */
std::optional<std::string> why_not(const carafe::Graph &g, uint32_t id, const carafe::KernelSeat *seat) {
    auto why = g.refusal(id);
    if (!why || (seat && seat->serves())) return std::nullopt;
    return seat ? *why + "; " + seat->trouble().value_or("") : why;
}

/* A node of the plan, with the numbers of the slots it reads and writes. */
struct Step {
    uint32_t id;
    carafe::Graph::NodeInfo info;
    std::vector<size_t> reads;
    size_t writes;
    std::shared_ptr<carafe::KernelSeat> seat; /* when kernels of extensions are for it */
    bool evaluates;                           /* the engine can run it when no kernel takes it */
    bool is_still() const { return info.op_type == "Parameter" || info.op_type == "Const" || info.op_type == "Result"; }
    bool is_own() const { return info.op_type == "ReLU" || info.op_type == "Add"; }
    std::string kernel() const {
        auto taken = seat ? seat->kernel() : std::nullopt;
        return taken ? *taken : is_still() ? "none" : is_own() ? "cpp_kernel" : "reference";
    }
};

/* What was compiled: the model, kept, and the plan. After this the model is only used to evaluate nodes. */
class Compiled : public carafe::CompiledModel {
public:
    Compiled(carafe::Model kept, const carafe::Kernels &kernels, const carafe::Settings &settings) : model(std::move(kept)) {
        check_instance(settings);
        perf_count = settings.is_on("PERF_COUNT");
        const carafe::Graph &g = model.graph;
        name = g.name();
        std::map<uint32_t, size_t> writes;
        for (uint32_t id : g.nodes()) {
            Step step{id, g.node(id), {}, n_slots, carafe::KernelSeat::of(kernels, g, id), !g.refusal(id)};
            if (auto why = why_not(g, id, step.seat.get()))
                throw Error(CARAFE_UNSUPPORTED, "node `" + step.info.name + "`: " + *why);
            for (size_t i = 0; i < step.info.inputs; i++) {
                carafe::Value v = g.input(id, i);
                step.reads.push_back(writes.at(v.node) + v.port);
            }
            writes[id] = n_slots;
            n_slots += std::max<size_t>(step.info.outputs, 1); /* a result has a slot too */
            if (auto constant = g.constant_of({id, 0})) constants.emplace_back(step.writes, *constant);
            if (carafe::Attrs attrs = g.attrs(id); attrs.has("variable_id"))
                variables.insert(attrs.get<std::string>("variable_id"));
            steps.push_back(std::move(step));
        }
        for (uint32_t id : g.parameters()) params.push_back(writes.at(id));
        for (uint32_t id : g.results()) results.push_back(writes.at(id));
    }

    std::vector<carafe::ModelPort> inputs() const override { return carafe::ModelPort::inputs_of(model.graph); }
    std::vector<carafe::ModelPort> outputs() const override { return carafe::ModelPort::outputs_of(model.graph); }
    std::unique_ptr<carafe::InferRequest> create_request() override;

    std::string property(const std::string &key) const override {
        if (key == "NETWORK_NAME") return name;
        if (key == "EXECUTION_DEVICES") return "CPP";
        if (key == "LOADED_FROM_CACHE") return "false";
        if (key == "PERF_COUNT") return perf_count ? "true" : "false";
        if (key == "DEVICE_ID") return "0";
        return metric_of(key);
    }

    /* The model as it came, with the order and the kernel of each node. */
    std::optional<std::string> runtime_model() const override {
        carafe::Model shown = model.copy();
        for (size_t i = 0; i < steps.size(); i++) {
            shown.graph.set_info(steps[i].id, "execOrder", std::to_string(i));
            shown.graph.set_info(steps[i].id, "primitiveType", steps[i].kernel());
            if (auto why = steps[i].seat ? steps[i].seat->trouble() : std::nullopt)
                shown.graph.set_info(steps[i].id, "kernelTrouble", *why);
        }
        return shown.text();
    }

    void export_to(const std::function<void(const void *, size_t)> &write) const override;

    carafe::Model model;
    std::string name;
    bool perf_count = false;
    std::vector<Step> steps;
    size_t n_slots = 0;
    std::vector<size_t> params, results;
    std::vector<std::pair<size_t, carafe::Tensor>> constants;
    std::set<std::string> variables;
};

class Request : public carafe::InferRequest {
public:
    explicit Request(const Compiled &compiled) : c(compiled), slots(c.n_slots) {
        for (auto &[slot, tensor] : c.constants) slots[slot] = OwnedTensor::borrowed(tensor.raw);
    }
    void set_input(size_t i, OwnedTensor tensor) override { slots[c.params.at(i)] = std::move(tensor); }

    void infer() override {
        cancelled = false;
        times.clear();
        for (const Step &step : c.steps) {
            if (cancelled) throw Error(CARAFE_CANCELLED, "the inference was cancelled");
            auto start = std::chrono::steady_clock::now();
            run(step);
            auto spent = std::chrono::steady_clock::now() - start;
            if (c.perf_count) times.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count());
        }
    }
    OwnedTensor output(size_t i) override { return slots[c.results.at(i)]; }
    void cancel() noexcept override { cancelled = true; }

    std::vector<carafe::Profile> profile() override {
        std::vector<carafe::Profile> rows;
        for (size_t i = 0; c.perf_count && i < c.steps.size(); i++) {
            const Step &s = c.steps[i];
            carafe::Profile row{s.info.name, s.info.op_type, s.kernel()};
            row.status = s.is_still() ? row.optimized_out : i < times.size() ? row.executed : row.not_run;
            if (row.status == row.executed) row.real_ns = row.cpu_ns = times[i];
            rows.push_back(row);
        }
        return rows;
    }

    std::vector<std::string> variables() override { return {c.variables.begin(), c.variables.end()}; }
    std::optional<OwnedTensor> variable(const std::string &id) override {
        auto found = values.find(id);
        return found == values.end() ? std::nullopt : std::optional(found->second);
    }
    void set_variable(const std::string &id, OwnedTensor value) override {
        if (!c.variables.count(id)) throw Error(CARAFE_NOT_FOUND, "the model has no variable `" + id + "`");
        values[id] = std::move(value);
    }
    void reset_variables() override { values.clear(); }

private:
    void run(const Step &step) {
        std::vector<OwnedTensor> in;
        for (size_t slot : step.reads) in.push_back(slots[slot]);
        if (step.is_still()) { /* inputs and constants have their slots filled */
            if (step.info.op_type == "Result") slots[step.writes] = in[0];
        } else if (auto made = step.seat ? step.seat->run(in, values) : std::nullopt) {
            for (size_t i = 0; i < made->size(); i++) slots[step.writes + i] = std::move((*made)[i]);
        } else if (!step.evaluates) { /* with these shapes nothing runs it */
            throw Error(CARAFE_UNSUPPORTED, "node `" + step.info.name + "`: " + step.seat->trouble().value_or("no kernel"));
        } else if (auto y = run_own(step.info.op_type, in)) {
            slots[step.writes] = std::move(*y);
        } else {
            auto outputs = c.model.evaluate(step.id, in, values);
            for (size_t i = 0; i < outputs.size(); i++) slots[step.writes + i] = std::move(outputs[i]);
        }
    }
    const Compiled &c;
    std::vector<OwnedTensor> slots;
    carafe::Variables values;
    std::vector<uint64_t> times;
    std::atomic<bool> cancelled{false};
};

std::unique_ptr<carafe::InferRequest> Compiled::create_request() { return std::make_unique<Request>(*this); }

/* An exported model: this header, the text of the model and its weights. Bytes are in the order of the machine. */
struct Header {
    char magic[8] = {'C', 'A', 'R', 'A', 'F', 'E', '+', '1'};
    uint64_t text = 0, weights = 0, sum = 0;
};

uint64_t sum_of(std::string_view bytes) {
    uint64_t sum = 14695981039346656037u; /* FNV-1a */
    for (unsigned char b : bytes) sum = (sum ^ b) * 1099511628211u;
    return sum;
}

void Compiled::export_to(const std::function<void(const void *, size_t)> &write) const {
    auto [text, buffers] = model.ir();
    std::string all(text);
    for (const CarafeBuffer &b : buffers) {
        all.resize(text.size() + b.offset); /* what is between buffers is zero */
        all.append(static_cast<const char *>(b.data), b.bytes);
    }
    Header header;
    header.text = text.size();
    header.weights = all.size() - text.size();
    header.sum = sum_of(all);
    write(&header, sizeof header);
    write(all.data(), all.size());
}

class TemplateDevice : public carafe::Device {
public:
    std::vector<carafe::Property> properties() const override { return property_table(); }
    std::string metric(const std::string &name) const override { return metric_of(name); }
    std::string version() const override { return "1.0"; }
    std::string description() const override { return "An example of a device in C++"; }

    void set_kernels(const carafe::Kernels &all) override {
        std::lock_guard<std::mutex> guard(lock);
        given = all;
    }

    /* The device takes what the engine can evaluate, and what a kernel runs. */
    std::optional<std::string> refusal(const carafe::Graph &g, uint32_t id, const carafe::Settings &settings) const override {
        check_instance(settings);
        if (!g.refusal(id)) return std::nullopt;
        return why_not(g, id, carafe::KernelSeat::of(kernels(), g, id).get());
    }
    std::unique_ptr<carafe::CompiledModel> compile(const carafe::Graph &g, const carafe::Settings &settings) override {
        return std::make_unique<Compiled>(carafe::Model(g), kernels(), settings);
    }
    std::unique_ptr<carafe::CompiledModel> import(const carafe::Graph &ops, std::string_view blob,
                                                  const carafe::Settings &settings) override {
        Header header, wanted;
        if (blob.size() < sizeof header || std::memcmp(blob.data(), wanted.magic, sizeof wanted.magic))
            throw Error("this is no model that the device CPP exported");
        std::memcpy(&header, blob.data(), sizeof header);
        std::string_view rest = blob.substr(sizeof header);
        if (header.text > rest.size() || header.weights != rest.size() - header.text || sum_of(rest) != header.sum)
            throw Error("the exported model is cut short or damaged");
        CarafeBuffer weights{0, rest.data() + header.text, static_cast<size_t>(header.weights)};
        auto model = carafe::Model::read(ops, rest.substr(0, header.text), {weights});
        return std::make_unique<Compiled>(std::move(model), kernels(), settings);
    }

private:
    carafe::Kernels kernels() const {
        std::lock_guard<std::mutex> guard(lock);
        return given;
    }
    mutable std::mutex lock;
    carafe::Kernels given; /* may change while models are asked about */
};

}  // namespace

CARAFE_PLUGIN("CPP", TemplateDevice)
