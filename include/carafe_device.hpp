/* Devices in C++: `Device`, `CompiledModel` and `InferRequest` are classes to derive from, and `CARAFE_PLUGIN` makes the
 * library's entry. Part of carafe.hpp, which includes it. Whatever a member throws becomes a status with its text.
 * Apache-2.0. */
#ifndef CARAFE_DEVICE_HPP
#define CARAFE_DEVICE_HPP

#include "carafe.hpp"
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <mutex>

/* The entry of a plugin library: `CARAFE_PLUGIN("ACME", AcmeDevice)`. */
#define CARAFE_PLUGIN(name, type)                                                                        \
    CARAFE_C CARAFE_EXPORT const CarafeAbi carafe_abi;                                                   \
    const CarafeAbi carafe_abi = {CARAFE_ABI_MAGIC, CARAFE_ABI_MAJOR, CARAFE_ABI_MINOR, sizeof(void *)}; \
    CARAFE_DEVICE(name, type)

/* The same beside `CARAFE_EXTENSION`, for a library that brings both. */
#define CARAFE_DEVICE(name, type)                                                                          \
    CARAFE_C CARAFE_EXPORT CarafeStatus CreatePluginEngine(const CarafeHost *host, CarafeDevice *device) { \
        return carafe::create_plugin_engine<type>(host, device, name);                                     \
    }

namespace CARAFE_HIDDEN carafe {

/* Memory of the other side. It is taken over last, when nothing can fail any more: a call that fails takes nothing. */
class Lease {
public:
    Lease() = default;
    Lease(const Lease &) = delete;
    Lease &operator=(const Lease &) = delete;
    ~Lease() {
        if (release) release(owner);
    }
    void take(void *its_owner, CarafeRelease its_release) noexcept {
        owner = its_owner;
        release = its_release;
    }

private:
    void *owner = nullptr;
    CarafeRelease release = nullptr;
};

/* A tensor that keeps its memory as long as any copy of it lives: memory of its own, or lent by the engine. */
class OwnedTensor {
public:
    OwnedTensor() = default;
    /* Zeroed memory for numbers of a whole number of bytes. */
    template <class T>
    static OwnedTensor zeros(const Shape &shape) {
        OwnedTensor t;
        t.type_ = type_of<T>();
        t.shape_ = shape;
        size_t n = 1;
        for (size_t d : shape) n *= d;
        auto memory = std::make_shared<std::vector<T>>(n);
        t.bytes_ = n * sizeof(T);
        t.data_ = memory->data();
        t.keeper = std::move(memory);
        return t;
    }
    static OwnedTensor copy(const CarafeTensor &from) {
        OwnedTensor t(from);
        size_t n = carafe_elements(&from);
        if (from.element_type == CARAFE_STRING) {
            struct Strings {
                std::vector<std::string> texts;
                std::vector<CarafeStr> list;
            };
            auto memory = std::make_shared<Strings>();
            memory->texts = Tensor(from).strings();
            for (const std::string &s : memory->texts) memory->list.push_back(str(s));
            t.data_ = memory->list.data();
            t.bytes_ = n * sizeof(CarafeStr);
            t.keeper = std::move(memory);
        } else {
            auto memory = std::make_shared<std::vector<uint64_t>>((from.bytes + 7) / 8);
            if (from.bytes) std::memcpy(memory->data(), from.data, from.bytes);
            t.data_ = memory->data();
            t.keeper = std::move(memory);
        }
        return t;
    }
    /* Memory of the other side, which goes back when the last copy goes. */
    static OwnedTensor lent(const CarafeTensor &from, std::shared_ptr<Lease> lease) {
        OwnedTensor t(from);
        t.keeper = std::move(lease);
        return t;
    }
    /* Memory that someone else keeps for long enough. */
    static OwnedTensor borrowed(const CarafeTensor &from) { return OwnedTensor(from); }

    uint32_t type() const { return type_; }
    const Shape &shape() const { return shape_; }
    size_t size() const { return raw().rank ? Tensor(raw()).size() : 1; }
    template <class T>
    const T *data() const {
        return Tensor(raw()).data<T>();
    }
    /* Only of a tensor that `zeros` made and nobody else has. */
    template <class T>
    T *data_mut() {
        return const_cast<T *>(data<T>());
    }
    /* The same, of any type. */
    void *memory() { return const_cast<void *>(data_); }
    /* Borrows from this object. */
    CarafeTensor raw() const { return CarafeTensor{type_, rank(shape_), shape_.data(), data_, bytes_}; }

private:
    explicit OwnedTensor(const CarafeTensor &t)
        : type_(t.element_type), shape_(Tensor(t).shape()), data_(t.data), bytes_(t.bytes) {}
    uint32_t type_ = CARAFE_DYNAMIC;
    Shape shape_;
    const void *data_ = nullptr;
    size_t bytes_ = 0;
    std::shared_ptr<void> keeper;
};

/* Values of variables by id. */
using Variables = std::map<std::string, OwnedTensor>;

/* The context that the engine evaluates a node with, and a kernel runs in: it takes the outputs, and hands out and takes
 * variables. A kernel also asks for the inputs, and for what is known of the outputs. */
struct NodeSink {
    CarafeEval base; /* first, so that a pointer to it is one to the whole */
    std::string name;
    const std::vector<OwnedTensor> &inputs;
    std::vector<CarafeFact> facts;
    std::vector<OwnedTensor> outputs;
    Variables &variables;

    NodeSink(const std::vector<OwnedTensor> &inputs, Variables &variables)
        : base{&functions()}, inputs(inputs), variables(variables) {}
    /* Of a node whose outputs are known in number. */
    NodeSink(std::string name, const std::vector<OwnedTensor> &inputs, std::vector<CarafeFact> facts, Variables &variables)
        : base{&functions()}, name(std::move(name)), inputs(inputs), facts(std::move(facts)), outputs(this->facts.size()),
          variables(variables), is_bounded(true) {}

    /* Memory for numbers of a whole number of bytes. */
    static OwnedTensor zeros_of(uint32_t type, const Shape &shape) {
        size_t n = 1;
        for (size_t d : shape) n *= d;
        if (!bytes_of(type)) throw Error(CARAFE_USAGE, "elements of such a type are set with set_output");
        size_t bytes = n * bytes_of(type);
        std::vector<uint64_t> none((bytes + 7) / 8);
        return OwnedTensor::copy(CarafeTensor{type, rank(shape), shape.data(), none.data(), bytes});
    }
    /* Bytes of an element; 0 for strings and what has less than one. */
    static size_t bytes_of(uint32_t type) {
        switch (type) {
        case CARAFE_BOOLEAN:
        case CARAFE_I8:
        case CARAFE_U8:
        case CARAFE_F8E4M3:
        case CARAFE_F8E5M2:
        case CARAFE_F8E4M3FNUZ:
        case CARAFE_F8E5M2FNUZ:
        case CARAFE_F8E8M0: return 1;
        case CARAFE_BF16:
        case CARAFE_F16:
        case CARAFE_I16:
        case CARAFE_U16: return 2;
        case CARAFE_F32:
        case CARAFE_I32:
        case CARAFE_U32: return 4;
        case CARAFE_F64:
        case CARAFE_I64:
        case CARAFE_U64: return 8;
        default: return 0;
        }
    }

private:
    bool is_bounded = false;
    static NodeSink &of(CarafeEval *cx) { return *reinterpret_cast<NodeSink *>(cx); }
    OwnedTensor &at(size_t i) {
        if (is_bounded && i >= facts.size()) throw Error(CARAFE_USAGE, "the node has no output " + std::to_string(i));
        if (outputs.size() <= i) outputs.resize(i + 1);
        return outputs[i];
    }
    const OwnedTensor &input(size_t i) const {
        if (i >= inputs.size()) throw Error(CARAFE_USAGE, "the node has no input " + std::to_string(i));
        return inputs[i];
    }
    static const CarafeEvalFns &functions() {
        static const CarafeEvalFns fns = [] {
            CarafeEvalFns f{};
            f.size = sizeof f;
            f.n_inputs = [](CarafeEval *cx) { return of(cx).inputs.size(); };
            f.input = [](CarafeEval *cx, size_t i, CarafeTensor *t) { return guard([&] { *t = of(cx).input(i).raw(); }); };
            f.n_outputs = [](CarafeEval *cx) { return of(cx).facts.size(); };
            f.output_fact = [](CarafeEval *cx, size_t i, CarafeFact *fact) {
                return guard([&] {
                    of(cx).at(i);
                    *fact = of(cx).facts.at(i);
                });
            };
            f.output = [](CarafeEval *cx, size_t i, uint32_t type, uint32_t rank, const size_t *shape, void **data) {
                return guard([&] { *data = (of(cx).at(i) = zeros_of(type, Shape(shape, shape + rank))).memory(); });
            };
            f.set_output = [](CarafeEval *cx, size_t i, const CarafeTensor *t) {
                return guard([&] { of(cx).at(i) = OwnedTensor::copy(*t); });
            };
            f.give_output = [](CarafeEval *cx, size_t i, const CarafeTensor *t, void *owner, CarafeRelease release) {
                return guard([&] {
                    auto lease = std::make_shared<Lease>();
                    of(cx).at(i) = OwnedTensor::lent(*t, lease);
                    lease->take(owner, release);
                });
            };
            f.forward = [](CarafeEval *cx, size_t i, size_t input) {
                return guard([&] { of(cx).at(i) = of(cx).input(input); });
            };
            f.keep_input = [](CarafeEval *, size_t, void **) {
                return guard([] { throw Error(CARAFE_UNSUPPORTED, "the device does not keep inputs"); });
            };
            f.name = [](CarafeEval *cx, CarafeStr *name) {
                *name = str(of(cx).name);
                return CarafeStatus(CARAFE_OK);
            };
            f.variable = [](CarafeEval *cx, CarafeStr id, CarafeTensor *t) {
                return guard([&] {
                    auto found = of(cx).variables.find(std::string(view(id)));
                    if (found == of(cx).variables.end()) throw Error(CARAFE_NOT_FOUND, "it has no value yet");
                    *t = found->second.raw();
                });
            };
            f.assign = [](CarafeEval *cx, CarafeStr id, const CarafeTensor *t) {
                return guard([&] { of(cx).variables[std::string(view(id))] = OwnedTensor::copy(*t); });
            };
            return f;
        }();
        return fns;
    }
};

/* A model that a device keeps. Several threads may evaluate nodes of it at once. */
class Model {
public:
    /* Keeps the model that a device is shown, after the call. */
    explicit Model(const Graph &shown) : Model(shown.g->fns->retain(shown.g)) {
        if (!graph.g) throw Error(CARAFE_IO, "the model cannot be kept");
    }
    /* Reads back what `ir` gave; `ops` is the graph that `Device::import` is called with, or any other. */
    static Model read(const Graph &ops, std::string_view xml, const std::vector<CarafeBuffer> &weights) {
        CarafeGraph *g = nullptr;
        check(ops.g->fns->read_ir(ops.g, str(xml), weights.data(), weights.size(), &g));
        return Model(g);
    }
    /* A copy that can be changed. */
    Model copy() const {
        CarafeGraph *made = nullptr;
        check(graph.g->fns->copy(graph.g, &made));
        return Model(made);
    }
    Model(Model &&other) noexcept : graph(other.graph.g) { other.graph.g = nullptr; }
    Model(const Model &) = delete;
    Model &operator=(const Model &) = delete;
    Model &operator=(Model &&) = delete;
    ~Model() {
        if (graph.g) graph.g->fns->release(graph.g);
    }

    /* IR text, and the weights where they lie; both live as long as the model. */
    std::pair<std::string_view, std::vector<CarafeBuffer>> ir() const {
        CarafeStr xml{nullptr, 0};
        const CarafeBuffer *list = nullptr;
        size_t n = 0;
        check(graph.g->fns->ir(graph.g, &xml, &list, &n));
        return {view(xml), std::vector<CarafeBuffer>(list, list + n)};
    }
    /* IR text without weights, for `CompiledModel::runtime_model`. */
    std::string text() const {
        std::string all;
        check(graph.g->fns->write_text(
            graph.g,
            [](void *sink, const void *data, size_t bytes) {
                return guard([&] { static_cast<std::string *>(sink)->append(static_cast<const char *>(data), bytes); });
            },
            &all));
        return all;
    }
    /* Computes a node by its reference evaluation. */
    std::vector<OwnedTensor> evaluate(uint32_t id, const std::vector<OwnedTensor> &inputs, Variables &variables) const {
        std::vector<CarafeTensor> raws;
        for (const OwnedTensor &t : inputs) raws.push_back(t.raw());
        NodeSink sink(inputs, variables);
        check(graph.g->fns->evaluate(graph.g, id, raws.data(), raws.size(), &sink.base));
        return std::move(sink.outputs);
    }

    Graph graph;

private:
    explicit Model(CarafeGraph *owned) : graph(owned) {}
};

/* The kernels that extensions bring for a device. A device may use them until it is given others, a compiled model as long as it
 * lives. */
class Kernels {
public:
    Kernels() = default;
    Kernels(const CarafeKernel *first, size_t n) {
        /* A newer engine has longer tables. */
        for (size_t i = 0; i < n; i++)
            all.push_back(reinterpret_cast<const CarafeKernel *>(reinterpret_cast<const char *>(first) + i * first->size));
    }
    /* Those for an operation, the one to ask first in front: that which was registered last. */
    std::vector<const CarafeKernel *> of(const std::string &op_type, const std::string &opset) const {
        std::vector<const CarafeKernel *> found;
        for (size_t i = all.size(); i > 0; i--)
            if (is_same_word(op_type, all[i - 1]->op) && (!all[i - 1]->opset || opset == all[i - 1]->opset))
                found.push_back(all[i - 1]);
        return found;
    }

private:
    static bool is_same_word(std::string_view a, std::string_view b) {
        auto same = [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); };
        return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
    }
    std::vector<const CarafeKernel *> all;
};

/* A node that kernels of extensions are for, and the one that runs it: on plain memory, in the types of the model. Where
 * shapes are open they are asked again for those of an inference. Used by several threads at once: a kernel that has `run` runs
 * all their inferences at once, another one after the other. Lives no longer than the graph. */
class KernelSeat {
public:
    /* Nothing when no kernel is for the node. */
    static std::shared_ptr<KernelSeat> of(const Kernels &kernels, const Graph &g, uint32_t id) {
        Graph::NodeInfo info = g.node(id);
        auto candidates = kernels.of(info.op_type, info.opset);
        if (candidates.empty()) return nullptr;
        return std::make_shared<KernelSeat>(std::move(candidates), std::move(info), g, id);
    }
    KernelSeat(std::vector<const CarafeKernel *> candidates, Graph::NodeInfo node, const Graph &g, uint32_t id)
        : candidates(std::move(candidates)), info(std::move(node)), attrs(g.attrs(id).raw), inputs(info.inputs),
          outputs(info.outputs) {
        for (size_t i = 0; i < info.inputs; i++) {
            check(g.g->fns->fact(g.g, g.input(id, i), &inputs[i]));
            is_constant.push_back(g.constant_of(g.input(id, i)).has_value());
        }
        for (size_t i = 0; i < info.outputs; i++)
            check(g.g->fns->fact(g.g, Value{id, static_cast<uint32_t>(i)}, &outputs[i]));
        for (auto *facts : {&inputs, &outputs})
            for (const CarafeFact &f : *facts) is_known = is_known && is_static(f);
        ask();
    }
    KernelSeat(const KernelSeat &) = delete;
    KernelSeat &operator=(const KernelSeat &) = delete;
    ~KernelSeat() { leave(); }

    /* Whether a kernel runs the node, or may when its shapes are known. */
    bool serves() const {
        std::lock_guard<std::mutex> guard(lock);
        return chosen || may_yet;
    }
    /* Name of the kernel that runs the node, or ran it last where that depends on shapes. */
    std::optional<std::string> kernel() const {
        std::lock_guard<std::mutex> guard(lock);
        return chosen ? std::optional(name_of(chosen->table)) : std::nullopt;
    }
    /* Why the first kernel that should run the node does not: `kernelTrouble` of the graph that runs. */
    std::optional<std::string> trouble() const {
        std::lock_guard<std::mutex> guard(lock);
        return why.empty() ? std::nullopt : std::optional(why);
    }
    /* Runs the node; nothing when no kernel takes these inputs. */
    std::optional<std::vector<OwnedTensor>> run(const std::vector<OwnedTensor> &in, Variables &variables) {
        std::unique_lock<std::mutex> guard(lock);
        settle(in);
        if (!chosen) return std::nullopt;
        std::shared_ptr<Made> kernel = chosen;
        bool is_planned = runs(kernel->table);
        for (const CarafeFact &f : outputs) is_planned = is_planned && is_static(f) && NodeSink::bytes_of(f.element_type);
        if (is_planned) {
            std::vector<OwnedTensor> made;
            for (const CarafeFact &f : outputs) {
                Shape shape;
                for (int32_t k = 0; k < f.rank; k++) shape.push_back(static_cast<size_t>(f.dims[k].min));
                made.push_back(NodeSink::zeros_of(f.element_type, shape));
            }
            guard.unlock();
            kernel->run(in, made);
            return made;
        }
        NodeSink sink(info.name, in, outputs, variables);
        check(kernel->table->execute(kernel->made, &sink.base));
        for (size_t i = 0; i < outputs.size(); i++)
            if (!is_promised(sink.outputs[i], outputs[i]))
                throw Error("kernel `" + name_of(kernel->table) + "` gave output " + std::to_string(i) +
                            " not at all, or in another type or shape than the model has");
        return std::move(sink.outputs);
    }

private:
    /* What `init` made; it ends when the last inference that runs it does. */
    struct Made {
        const CarafeKernel *table;
        void *made = nullptr;
        size_t workspace = 0, scratch = 0;
        ~Made() {
            if (made_it && table->release) table->release(made);
        }
        bool made_it = false;

        void run(const std::vector<OwnedTensor> &in, std::vector<OwnedTensor> &out) const {
            std::vector<CarafeTensor> inputs;
            std::vector<CarafeOutput> outputs;
            for (const OwnedTensor &t : in) inputs.push_back(t.raw());
            for (OwnedTensor &t : out) {
                CarafeTensor raw = t.raw();
                outputs.push_back({raw.element_type, raw.rank, raw.shape, t.memory(), raw.bytes});
            }
            struct Alone {
                CarafeKernelIo io; /* first, so that a pointer to it is one to the whole */
                std::vector<std::max_align_t> memory, scratch;
                size_t scratch_bytes;
            } alone{};
            alone.memory.resize(workspace / sizeof(std::max_align_t) + 1);
            alone.scratch.resize(scratch / sizeof(std::max_align_t) + 1);
            alone.scratch_bytes = scratch;
            alone.io.size = sizeof alone.io;
            alone.io.inputs = inputs.data();
            alone.io.n_inputs = inputs.size();
            alone.io.outputs = outputs.data();
            alone.io.n_outputs = outputs.size();
            alone.io.workspace = alone.memory.data();
            alone.io.workspace_bytes = workspace;
            alone.io.threads = 1;
            alone.io.each = [](const CarafeKernelIo *io, size_t parts, CarafePart body, void *user) {
                auto *own = const_cast<Alone *>(reinterpret_cast<const Alone *>(io));
                CarafeStatus status = CARAFE_OK;
                for (size_t i = 0; i < parts && status == CARAFE_OK; i++)
                    status = body(user, i, own->scratch.data(), own->scratch_bytes);
                return status;
            };
            check(table->run(made, &alone.io));
        }
    };
    /* An engine before ABI 1.3 has shorter tables. */
    static bool runs(const CarafeKernel *k) { return k->size > offsetof(CarafeKernel, run) && k->run; }
    static std::string name_of(const CarafeKernel *k) { return k->name ? k->name : "extension"; }
    static bool is_static(const CarafeFact &f) {
        for (int32_t i = 0; i < f.rank; i++)
            if (f.dims[i].min != f.dims[i].max) return false;
        return f.rank >= 0 && f.element_type != CARAFE_DYNAMIC;
    }
    static bool is_promised(const OwnedTensor &t, const CarafeFact &f) {
        if (t.type() == CARAFE_DYNAMIC || (f.element_type != CARAFE_DYNAMIC && t.type() != f.element_type)) return false;
        if (f.rank >= 0 && t.shape().size() != static_cast<size_t>(f.rank)) return false;
        for (int32_t i = 0; i < f.rank; i++) {
            auto d = static_cast<int64_t>(t.shape()[static_cast<size_t>(i)]);
            if (d < f.dims[i].min || (f.dims[i].max >= 0 && d > f.dims[i].max)) return false;
        }
        return true;
    }
    /* What a kernel offers is looked at while it is offered. */
    struct Offers {
        const KernelSeat &seat;
        size_t seen = 0;
        std::optional<size_t> chosen = std::nullopt;
        CarafeNeeds needs = {sizeof(CarafeNeeds), 0, 0, 0};
        const char *why = nullptr;
    };
    static const char *why_not(const CarafeLayout &l, const CarafeFact &f, bool is_constant) {
        if (l.rank) return "it wants another layout than the plain one";
        if (l.element_type != f.element_type && (f.element_type != CARAFE_DYNAMIC || l.element_type == CARAFE_DYNAMIC))
            return "it wants another element type";
        return l.constant && !is_constant ? "it wants a constant" : nullptr;
    }
    static CarafeStatus take(void *sink, const CarafeConfig *c) {
        Offers &o = *static_cast<Offers *>(sink);
        const KernelSeat &s = o.seat;
        const char *why = nullptr;
        if (c->n_inputs != s.inputs.size() || c->n_outputs != s.outputs.size()) why = "it offers another number of ports";
        for (size_t i = 0; i < c->n_inputs && !why; i++) why = why_not(c->inputs[i], s.inputs[i], s.is_constant[i]);
        for (size_t i = 0; i < c->n_outputs && !why; i++) why = why_not(c->outputs[i], s.outputs[i], false);
        if (!why && !o.chosen) o.chosen = o.seen;
        if (!o.why) o.why = why;
        o.seen++;
        return CARAFE_OK;
    }
    /* Memory is given to the configuration that is chosen. */
    static CarafeStatus take_needs(void *sink, const CarafeNeeds *needs) {
        Offers &o = *static_cast<Offers *>(sink);
        if (o.chosen && *o.chosen + 1 == o.seen) o.needs = *needs;
        return CARAFE_OK;
    }
    void leave() {
        chosen = nullptr;
        why.clear();
    }
    void ask() {
        leave();
        const CarafeKernel *declined = nullptr;
        CarafeSite site{};
        site.size = sizeof site;
        site.name = str(info.name);
        site.op_type = str(info.op_type);
        site.opset = str(info.opset);
        site.attrs = attrs;
        site.inputs = inputs.data();
        site.n_inputs = inputs.size();
        site.outputs = outputs.data();
        site.n_outputs = outputs.size();
        CarafeLayoutKind plain{CARAFE_LAYOUT_PLAIN, 0};
        site.layouts = &plain;
        site.n_layouts = 1;
        site.needs = take_needs;
        auto told = [&](const CarafeKernel *k, const std::string &what) {
            if (why.empty()) why = "kernel `" + name_of(k) + "` " + what;
        };
        for (const CarafeKernel *k : candidates) {
            Offers offers{*this};
            try {
                check(k->configs(k->user, &site, take, &offers));
                if (!offers.seen) {
                    declined = declined ? declined : k;
                } else if (!offers.chosen) {
                    told(k, std::string("cannot run it: ") + offers.why);
                } else {
                    auto made = std::make_shared<Made>();
                    made->table = k;
                    made->workspace = offers.needs.workspace;
                    made->scratch = offers.needs.scratch;
                    check(k->init(k->user, &site, *offers.chosen, &made->made));
                    made->made_it = true;
                    chosen = std::move(made);
                    break;
                }
            } catch (const Error &e) {
                told(k, std::string("cannot run it: ") + e.what());
            }
        }
        may_yet = declined && !is_known;
        if (declined && !chosen) told(declined, "declines it");
    }
    /* Asks again when an inference has other types and shapes than the last one; outputs stay as far as they are known. */
    void settle(const std::vector<OwnedTensor> &in) {
        bool same = is_known || !dims.empty();
        for (size_t i = 0; i < in.size() && same && !is_known; i++) {
            same = inputs[i].element_type == in[i].type() && dims[i].size() == in[i].shape().size();
            for (size_t k = 0; same && k < dims[i].size(); k++)
                same = dims[i][k].min == static_cast<int64_t>(in[i].shape()[k]);
        }
        if (same) return;
        dims.assign(in.size(), {});
        for (size_t i = 0; i < in.size(); i++) {
            for (size_t d : in[i].shape()) dims[i].push_back(Dim(static_cast<int64_t>(d)).raw());
            inputs[i] = CarafeFact{in[i].type(), static_cast<int32_t>(dims[i].size()), dims[i].data()};
        }
        ask();
    }

    mutable std::mutex lock;
    std::vector<const CarafeKernel *> candidates;
    Graph::NodeInfo info;
    CarafeAttrs attrs;
    std::vector<CarafeFact> inputs, outputs;
    std::vector<std::vector<CarafeDim>> dims; /* of inputs whose shapes came with an inference */
    std::vector<bool> is_constant;
    bool is_known = true, may_yet = false;
    std::shared_ptr<Made> chosen;
    std::string why;
};

/* One row of a device's property table. */
struct Property {
    enum Kind { text, boolean, integer, word };
    std::string name;
    Kind kind = text;
    bool writable = false;
    std::string otherwise, doc;
    int64_t min = 0, max = 0;
    std::vector<std::string> words = {};
};

/* Properties that a call was given. The engine has checked them by the table. */
class Settings {
public:
    explicit Settings(CarafeProperties p) {
        for (size_t i = 0; i < p.n; i++) all[std::string(view(p.list[i].name))] = std::string(view(p.list[i].value));
    }
    std::optional<std::string> get(const std::string &name) const {
        auto found = all.find(name);
        return found == all.end() ? std::nullopt : std::optional(found->second);
    }
    bool is_on(const std::string &name) const {
        std::string value = get(name).value_or("false");
        return value == "true" || value == "TRUE" || value == "True" || value == "YES" || value == "yes" || value == "1";
    }
    std::map<std::string, std::string> all;
};

/* An input or output of a compiled model. */
struct ModelPort {
    std::string name;
    std::vector<std::string> names;
    Fact fact;
    /* Those of a model, as users see them. */
    static std::vector<ModelPort> inputs_of(const Graph &g) {
        std::vector<ModelPort> all;
        for (uint32_t id : g.parameters()) all.push_back(of(g, Value{id, 0}, Value{id, 0}));
        return all;
    }
    static std::vector<ModelPort> outputs_of(const Graph &g) {
        std::vector<ModelPort> all;
        for (uint32_t id : g.results()) all.push_back(of(g, Value{id, 0}, g.input(id, 0)));
        return all;
    }

private:
    static ModelPort of(const Graph &g, Value port, Value value) {
        ModelPort p{"", g.tensor_names(port), g.fact(value)};
        p.name = p.names.empty() ? g.node(value.node).name : p.names[0];
        return p;
    }
};

/* What one node did in the last inference. */
struct Profile {
    enum Status : uint32_t { not_run, optimized_out, executed };
    std::string name, op_type, kernel;
    Status status = not_run;
    uint64_t real_ns = 0, cpu_ns = 0;
};

/* One inference at a time, by one thread at a time but for `cancel`. */
class InferRequest {
public:
    virtual ~InferRequest() = default;
    /* The memory of the tensor is the engine's until the last copy goes. */
    virtual void set_input(size_t i, OwnedTensor tensor) = 0;
    virtual void infer() = 0;
    virtual OwnedTensor output(size_t i) = 0;
    /* Called by another thread while `infer` runs, which then ends with `Error(CARAFE_CANCELLED, ...)`. */
    virtual void cancel() noexcept {}
    virtual std::vector<Profile> profile() { return {}; }
    virtual std::vector<std::string> variables() { return {}; }
    /* Nothing before the first assignment and after a reset. */
    virtual std::optional<OwnedTensor> variable(const std::string &) { return std::nullopt; }
    virtual void set_variable(const std::string &id, OwnedTensor) {
        throw Error(CARAFE_NOT_FOUND, "the model has no variable `" + id + "`");
    }
    virtual void reset_variables() {}
};

/* A model made ready. Used by several threads at once; requests end before it. */
class CompiledModel {
public:
    virtual ~CompiledModel() = default;
    virtual std::vector<ModelPort> inputs() const = 0;
    virtual std::vector<ModelPort> outputs() const = 0;
    virtual std::unique_ptr<InferRequest> create_request() = 0;
    virtual std::string property(const std::string &name) const {
        throw Error(CARAFE_NOT_FOUND, "the compiled model has no property `" + name + "`");
    }
    /* The graph that really runs, as `Model::text` gives it; nothing when the device does not show it. */
    virtual std::optional<std::string> runtime_model() const { return std::nullopt; }
    /* Writes what `Device::import` reads, in parts, by `write`. */
    virtual void export_to(const std::function<void(const void *, size_t)> &) const {
        throw Error(CARAFE_UNSUPPORTED, "the device cannot export models");
    }
};

/* A device. Used by several threads at once. */
class Device {
public:
    virtual ~Device() = default;
    virtual std::vector<Property> properties() const = 0;
    /* Value of a property that can only be read. */
    virtual std::string metric(const std::string &name) const = 0;
    /* Why the device does not take a node; nothing when it does. */
    virtual std::optional<std::string> refusal(const Graph &g, uint32_t id, const Settings &settings) const = 0;
    virtual std::unique_ptr<CompiledModel> compile(const Graph &g, const Settings &settings) = 0;
    virtual std::unique_ptr<CompiledModel> import(const Graph & /*ops*/, std::string_view /*blob*/, const Settings &) {
        throw Error(CARAFE_UNSUPPORTED, "the device cannot import models");
    }
    /* Takes the kernels that extensions bring for the name of the device, all of them each time that changes. */
    virtual void set_kernels(const Kernels &) {}
    virtual std::string version() const { return ""; }
    virtual std::string description() const { return ""; }
};

/* The tables behind the classes. */
namespace tables {

inline void write_all(CarafeWrite write, void *sink, std::string_view text) { check(write(sink, text.data(), text.size())); }

/* Several texts, each ended by a zero byte. */
inline void write_list(CarafeWrite write, void *sink, const std::vector<std::string> &list) {
    for (const std::string &s : list) check(write(sink, s.c_str(), s.size() + 1));
}

struct Request {
    std::unique_ptr<InferRequest> own;
    OwnedTensor shown; /* what `variable` handed out last */
    static InferRequest &of(void *p) { return *static_cast<Request *>(p)->own; }
};

inline void fill(CarafeRequest *out, std::unique_ptr<InferRequest> request) {
    if (!request) throw Error("`create_request` gave nothing");
    auto made = std::make_unique<Request>();
    made->own = std::move(request);
    out->set_input = [](void *r, size_t i, const CarafeTensor *t, void *owner, CarafeRelease release) {
        return guard([&] {
            auto lease = std::make_shared<Lease>();
            Request::of(r).set_input(i, OwnedTensor::lent(*t, lease));
            lease->take(owner, release);
        });
    };
    out->infer = [](void *r) { return guard([&] { Request::of(r).infer(); }); };
    out->output = [](void *r, size_t i, CarafeTensor *t, void **owner, CarafeRelease *release) {
        return guard([&] {
            auto kept = std::make_unique<OwnedTensor>(Request::of(r).output(i));
            *t = kept->raw();
            *owner = kept.release();
            *release = [](void *p) { delete static_cast<OwnedTensor *>(p); };
        });
    };
    out->cancel = [](void *r) { Request::of(r).cancel(); };
    out->profile = [](void *r, CarafeProfileSink row, void *sink) {
        return guard([&] {
            for (const Profile &p : Request::of(r).profile()) {
                CarafeProfile raw{str(p.name), str(p.op_type), str(p.kernel), p.status, 0, p.real_ns, p.cpu_ns};
                check(row(sink, &raw));
            }
        });
    };
    out->variables = [](void *r, CarafeWrite write, void *sink) {
        return guard([&] { write_list(write, sink, Request::of(r).variables()); });
    };
    out->variable = [](void *r, CarafeStr id, CarafeTensor *t) {
        return guard([&] {
            auto found = Request::of(r).variable(std::string(view(id)));
            if (!found) throw Error(CARAFE_NOT_FOUND, "the variable has no value yet");
            OwnedTensor &shown = static_cast<Request *>(r)->shown;
            shown = std::move(*found);
            *t = shown.raw();
        });
    };
    out->set_variable = [](void *r, CarafeStr id, const CarafeTensor *t) {
        return guard([&] { Request::of(r).set_variable(std::string(view(id)), OwnedTensor::copy(*t)); });
    };
    out->reset = [](void *r) { guard([&] { Request::of(r).reset_variables(); }); };
    out->release = [](void *r) { guard([&] { delete static_cast<Request *>(r); }); };
    out->instance = made.release();
}

/* Ports with what their pointers point to. */
struct Ports {
    explicit Ports(std::vector<ModelPort> list) : own(std::move(list)) {
        for (const ModelPort &p : own) {
            auto &texts = names.emplace_back();
            for (const std::string &s : p.names) texts.push_back(str(s));
            auto &sizes = dims.emplace_back();
            if (p.fact.shape)
                for (const Dim &d : *p.fact.shape) sizes.push_back(d.raw());
            CarafeFact fact{p.fact.type, p.fact.shape ? static_cast<int32_t>(sizes.size()) : -1, sizes.data()};
            raws.push_back({str(p.name), texts.data(), texts.size(), fact});
        }
    }
    std::vector<ModelPort> own;
    std::deque<std::vector<CarafeStr>> names;
    std::deque<std::vector<CarafeDim>> dims;
    std::vector<CarafeModelPort> raws;
};

struct Compiled {
    explicit Compiled(std::unique_ptr<CompiledModel> model)
        : own(std::move(model)), inputs(own->inputs()), outputs(own->outputs()) {}
    std::unique_ptr<CompiledModel> own;
    Ports inputs, outputs;
    static CompiledModel &of(void *p) { return *static_cast<Compiled *>(p)->own; }
};

inline void fill(CarafeCompiled *out, std::unique_ptr<CompiledModel> model) {
    if (!model) throw Error("the device made no compiled model");
    auto made = std::make_unique<Compiled>(std::move(model));
    out->inputs = made->inputs.raws.data();
    out->n_inputs = made->inputs.raws.size();
    out->outputs = made->outputs.raws.data();
    out->n_outputs = made->outputs.raws.size();
    out->property = [](void *c, CarafeStr name, CarafeWrite write, void *sink) {
        return guard([&] { write_all(write, sink, Compiled::of(c).property(std::string(view(name)))); });
    };
    out->runtime_model = [](void *c, CarafeWrite write, void *sink) {
        return guard([&] {
            auto text = Compiled::of(c).runtime_model();
            if (!text) throw Error(CARAFE_UNSUPPORTED, "the device does not show what it runs");
            write_all(write, sink, *text);
        });
    };
    out->export_to = [](void *c, CarafeWrite write, void *sink) {
        return guard([&] {
            Compiled::of(c).export_to([&](const void *data, size_t bytes) { check(write(sink, data, bytes)); });
        });
    };
    out->create_request = [](void *c, CarafeRequest *request) {
        return guard([&] { fill(request, Compiled::of(c).create_request()); });
    };
    out->release = [](void *c) { guard([&] { delete static_cast<Compiled *>(c); }); };
    out->instance = made.release();
}

/* A device with what its table points to. */
struct Plugin {
    Plugin(std::unique_ptr<Device> device, std::string name)
        : own(std::move(device)), name(std::move(name)), version(own->version()), description(own->description()),
          properties(own->properties()) {
        for (const Property &p : properties) {
            auto &list = words.emplace_back(texts(p.words));
            rows.push_back({text(p.name), static_cast<uint32_t>(p.kind), p.writable, p.min, p.max, list.data(),
                            list.size(), text(p.otherwise), text(p.doc)});
        }
    }
    std::unique_ptr<Device> own;
    std::string name, version, description;
    std::vector<Property> properties;
    std::deque<std::vector<const char *>> words;
    std::vector<CarafeProperty> rows;
    static Device &of(void *p) { return *static_cast<Plugin *>(p)->own; }
};

inline void fill(CarafeDevice *out, std::unique_ptr<Plugin> made) {
    out->name = text(made->name);
    out->version = text(made->version);
    out->description = text(made->description);
    out->properties = made->rows.data();
    out->n_properties = static_cast<uint32_t>(made->rows.size());
    out->metric = [](void *d, CarafeStr name, CarafeWrite write, void *sink) {
        return guard([&] { write_all(write, sink, Plugin::of(d).metric(std::string(view(name)))); });
    };
    out->query = [](void *d, CarafeGraph *g, CarafeProperties p, CarafeAnswer answer, void *sink) {
        return guard([&] {
            Graph graph(g);
            Settings settings(p);
            for (uint32_t id : graph.nodes()) {
                auto why = Plugin::of(d).refusal(graph, id, settings);
                if (why && why->empty()) why = "not supported";
                check(answer(sink, id, str(why.value_or(""))));
            }
        });
    };
    out->compile = [](void *d, CarafeGraph *g, CarafeProperties p, CarafeCompiled *compiled) {
        return guard([&] { fill(compiled, Plugin::of(d).compile(Graph(g), Settings(p))); });
    };
    out->import = [](void *d, CarafeGraph *ops, const void *data, size_t bytes, CarafeProperties p,
                     CarafeCompiled *compiled) {
        return guard([&] {
            std::string_view blob(static_cast<const char *>(data), bytes);
            fill(compiled, Plugin::of(d).import(Graph(ops), blob, Settings(p)));
        });
    };
    out->release = [](void *d) { guard([&] { delete static_cast<Plugin *>(d); }); };
    if (out->size > offsetof(CarafeDevice, set_kernels))
        out->set_kernels = [](void *d, const CarafeKernel *kernels, size_t n) {
            return guard([&] { Plugin::of(d).set_kernels(Kernels(kernels, n)); });
        };
    out->instance = made.release();
}

}  // namespace tables

template <class T>
CarafeStatus create_plugin_engine(const CarafeHost *table, CarafeDevice *device, const char *name) noexcept {
    static_assert(std::is_base_of_v<Device, T>, "derive the device from carafe::Device");
    if (!table || !device) return CARAFE_USAGE;
    host() = table;
    return guard([&] {
        if (table->minor < 2) throw Error(CARAFE_UNSUPPORTED, "a device of carafe.hpp needs an engine with ABI 1.2");
        tables::fill(device, std::make_unique<tables::Plugin>(std::make_unique<T>(), name));
    });
}

}  // namespace carafe

#endif /* CARAFE_DEVICE_HPP */
