/* C++17 over carafe.h, header only: operations, kernels and devices (carafe_device.hpp) as classes, rules and rewrites as
 * functions, failures as exceptions. Nothing of C++ crosses the boundary: each callback ends in `guard`, which makes a status of whatever is
 * thrown. All names are hidden, so libraries built with different versions of this file live side by side.
 * Apache-2.0. */
#ifndef CARAFE_HPP
#define CARAFE_HPP

#include "carafe.h"
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(_WIN32)
#define CARAFE_HIDDEN
#else
#define CARAFE_HIDDEN __attribute__((visibility("hidden")))
#endif

/* The library's entry: `CARAFE_EXTENSION(r) { r.describe("acme", "1.0"); r.op<Scale>(...); }` */
#define CARAFE_EXTENSION(r)                                                                                   \
    CARAFE_C CARAFE_EXPORT const CarafeAbi carafe_abi;                                                        \
    const CarafeAbi carafe_abi = {CARAFE_ABI_MAGIC, CARAFE_ABI_MAJOR, CARAFE_ABI_MINOR, sizeof(void *)};      \
    static void carafe_fill(carafe::Registrar &r);                                                            \
    CARAFE_C CARAFE_EXPORT CarafeStatus create_extensions(const CarafeHost *host, CarafeRegistrar *registrar) \
    {                                                                                                         \
        return carafe::create_extensions(host, registrar, carafe_fill);                                       \
    }                                                                                                         \
    static void carafe_fill(carafe::Registrar &r)

namespace CARAFE_HIDDEN carafe {

/* The engine's table; set before anything else of the library runs. */
inline const CarafeHost *&host() {
    static const CarafeHost *table = nullptr;
    return table;
}

inline std::string_view view(CarafeStr s) { return s.len ? std::string_view(s.data, s.len) : std::string_view(); }
inline CarafeStr str(std::string_view s) { return CarafeStr{s.data(), s.size()}; }

/* A failure with its status. Any other exception counts as CARAFE_INVALID with the text of `what()`. */
class Error : public std::runtime_error {
public:
    Error(CarafeStatus status, const std::string &text) : std::runtime_error(text), status(status) {}
    explicit Error(const std::string &text) : Error(CARAFE_INVALID, text) {}
    CarafeStatus status;
};

/* Throws what the engine said no to. */
inline void check(CarafeStatus status) {
    if (status == CARAFE_OK) return;
    CarafeStr text{nullptr, 0};
    host()->last_error(&text);
    throw Error(status, std::string(view(text)));
}

/* Runs a callback; nothing gets out of it but a status. */
template <class F>
CarafeStatus guard(F &&body) noexcept {
    const char *text = "";
    try {
        try {
            body();
            return CARAFE_OK;
        } catch (const Error &e) {
            host()->set_error(carafe_str(e.what()));
            return e.status != CARAFE_OK ? e.status : CARAFE_INVALID;
        } catch (const std::bad_alloc &) {
            text = "out of memory";
        } catch (const std::exception &e) {
            /* An author's exception may say nothing at all. */
            const char *what = e.what();
            host()->set_error(carafe_str(what ? what : "an exception without a text"));
            return CARAFE_INVALID;
        } catch (...) {
            text = "an exception that is no std::exception";
        }
    } catch (...) {
        text = "an exception while another was told";
    }
    host()->set_error(carafe_str(text));
    return CARAFE_PANIC;
}

/* What callbacks work with stays until the process ends, also while its last threads run. */
template <class T>
T *keep(T value) {
    static auto *all = new std::deque<T>();
    all->push_back(std::move(value));
    return &all->back();
}
inline const char *text(const std::string &s) { return s.c_str(); }
inline const char *text(const std::optional<std::string> &s) { return s ? s->c_str() : nullptr; }
inline std::vector<const char *> texts(const std::vector<std::string> &list) {
    std::vector<const char *> all;
    for (const std::string &s : list) all.push_back(s.c_str());
    return all;
}

/* Half precision of IEEE 754: 1 sign, 5 exponent and 10 fraction bits. From a float it is rounded to nearest, ties to
 * even; every value is a float exactly. */
struct f16 {
    uint16_t bits = 0;
    f16() = default;
    f16(float value) {
        uint32_t x;
        std::memcpy(&x, &value, sizeof x);
        uint32_t sign = (x >> 16) & 0x8000u, rest = x & 0x7fffffffu;
        if (rest > 0x7f800000u) { /* stays NaN */
            bits = static_cast<uint16_t>(sign | 0x7e00u | ((rest >> 13) & 0x3ffu));
        } else if (rest >= 0x47800000u) { /* 65536 and more, and infinity */
            bits = static_cast<uint16_t>(sign | 0x7c00u);
        } else if (rest >= 0x38800000u) { /* normal; what rounds up from 65504 carries into infinity */
            uint32_t odd = (rest >> 13) & 1u;
            bits = static_cast<uint16_t>(sign | ((rest - 0x38000000u + 0xfffu + odd) >> 13));
        } else { /* subnormal: the fraction counts in steps of 2^-24 */
            uint32_t exponent = rest >> 23, shift = 126u - exponent;
            if (shift > 24u) {
                bits = static_cast<uint16_t>(sign);
            } else {
                uint32_t fraction = (rest & 0x7fffffu) | 0x800000u, kept = fraction >> shift;
                uint32_t lost = fraction & ((1u << shift) - 1u), half = 1u << (shift - 1u);
                bits = static_cast<uint16_t>(sign | (kept + (lost > half || (lost == half && (kept & 1u)))));
            }
        }
    }
    operator float() const {
        uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, exponent = (bits >> 10) & 0x1fu,
                 fraction = bits & 0x3ffu, x;
        if (exponent == 0x1fu) {
            x = sign | 0x7f800000u | (fraction << 13);
        } else if (exponent) {
            x = sign | ((exponent + 112u) << 23) | (fraction << 13);
        } else {
            float tiny = static_cast<float>(fraction) * 5.9604644775390625e-8f; /* 2^-24 */
            std::memcpy(&x, &tiny, sizeof x);
            x |= sign;
        }
        float value;
        std::memcpy(&value, &x, sizeof value);
        return value;
    }
    static f16 from_bits(uint16_t bits) {
        f16 h;
        h.bits = bits;
        return h;
    }
};

/* The upper half of a float, rounded to nearest, ties to even. */
struct bf16 {
    uint16_t bits = 0;
    bf16() = default;
    bf16(float value) {
        uint32_t x;
        std::memcpy(&x, &value, sizeof x);
        if ((x & 0x7fffffffu) > 0x7f800000u) bits = static_cast<uint16_t>((x >> 16) | 0x40u); /* stays NaN */
        else bits = static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
    }
    operator float() const {
        uint32_t x = static_cast<uint32_t>(bits) << 16;
        float value;
        std::memcpy(&value, &x, sizeof value);
        return value;
    }
    static bf16 from_bits(uint16_t bits) {
        bf16 h;
        h.bits = bits;
        return h;
    }
};
static_assert(sizeof(f16) == 2 && sizeof(bf16) == 2, "tensors of halves are read in place");

/* The element type of a C++ type. */
template <class T>
constexpr uint32_t type_of() {
    if constexpr (std::is_same_v<T, bool>) return CARAFE_BOOLEAN;
    else if constexpr (std::is_same_v<T, f16>) return CARAFE_F16;
    else if constexpr (std::is_same_v<T, bf16>) return CARAFE_BF16;
    else if constexpr (std::is_same_v<T, float>) return CARAFE_F32;
    else if constexpr (std::is_same_v<T, double>) return CARAFE_F64;
    else if constexpr (std::is_same_v<T, int8_t>) return CARAFE_I8;
    else if constexpr (std::is_same_v<T, int16_t>) return CARAFE_I16;
    else if constexpr (std::is_same_v<T, int32_t>) return CARAFE_I32;
    else if constexpr (std::is_same_v<T, int64_t>) return CARAFE_I64;
    else if constexpr (std::is_same_v<T, uint8_t>) return CARAFE_U8;
    else if constexpr (std::is_same_v<T, uint16_t>) return CARAFE_U16;
    else if constexpr (std::is_same_v<T, uint32_t>) return CARAFE_U32;
    else {
        static_assert(std::is_same_v<T, uint64_t>, "not an element type");
        return CARAFE_U64;
    }
}

using Shape = std::vector<size_t>;
inline uint32_t rank(const Shape &shape) { return static_cast<uint32_t>(shape.size()); }

/* A tensor of the engine, read in place. */
class Tensor {
public:
    Tensor() : raw{} {}
    explicit Tensor(CarafeTensor t) : raw(t) {}
    uint32_t type() const { return raw.element_type; }
    Shape shape() const { return raw.rank ? Shape(raw.shape, raw.shape + raw.rank) : Shape(); }
    size_t size() const { return carafe_elements(&raw); }
    template <class T>
    const T *data() const {
        if (raw.element_type != type_of<T>())
            throw Error("a tensor of element type " + std::to_string(raw.element_type) + " was read as " +
                        std::to_string(type_of<T>()));
        return static_cast<const T *>(raw.data);
    }
    /* All elements as floats, whichever float type they are stored in. */
    std::vector<float> floats() const {
        switch (raw.element_type) {
        case CARAFE_F32: return cast<float>();
        case CARAFE_F64: return cast<double>();
        case CARAFE_F16: return cast<f16>();
        case CARAFE_BF16: return cast<bf16>();
        default: throw Error("a tensor of element type " + std::to_string(raw.element_type) + " holds no floats");
        }
    }
    std::vector<std::string> strings() const {
        if (raw.element_type != CARAFE_STRING) throw Error("the tensor does not hold strings");
        std::vector<std::string> all;
        auto list = static_cast<const CarafeStr *>(raw.data);
        for (size_t i = 0; i < size(); i++) all.emplace_back(view(list[i]));
        return all;
    }
    CarafeTensor raw;

private:
    template <class T>
    std::vector<float> cast() const {
        std::vector<float> all(size());
        const T *from = data<T>();
        for (size_t i = 0; i < all.size(); i++) all[i] = static_cast<float>(from[i]);
        return all;
    }
};

/* One dimension: known, within bounds, or any. */
struct Dim {
    int64_t min = 0, max = -1;
    uint32_t symbol = 0;
    Dim() = default;
    Dim(int64_t known) : min(known), max(known) {}
    Dim(int64_t least, int64_t most) : min(least), max(most) {}
    explicit Dim(CarafeDim d) : min(d.min), max(d.max), symbol(d.symbol) {}
    bool known() const { return min == max; }
    CarafeDim raw() const { return CarafeDim{min, max, symbol, 0}; }
};

/* Element type and shape as far as they are known; no value for an unknown rank. */
struct Fact {
    uint32_t type = CARAFE_DYNAMIC;
    std::optional<std::vector<Dim>> shape;
    Fact() = default;
    Fact(uint32_t type, std::optional<std::vector<Dim>> shape) : type(type), shape(std::move(shape)) {}
    explicit Fact(CarafeFact f) : type(f.element_type) {
        if (f.rank < 0) return;
        shape.emplace();
        for (int32_t i = 0; i < f.rank; i++) shape->emplace_back(f.dims[i]);
    }
};

/* An attribute with its value; made by an author, or copied from the engine. */
class Attr {
public:
    Attr(std::string name, bool v) : Attr(std::move(name), Kind{CARAFE_ATTR_BOOL}) { i = v; }
    Attr(std::string name, int v) : Attr(std::move(name), int64_t(v)) {}
    Attr(std::string name, int64_t v) : Attr(std::move(name), Kind{CARAFE_ATTR_INT}) { i = v; }
    Attr(std::string name, double v) : Attr(std::move(name), Kind{CARAFE_ATTR_FLOAT}) { f = v; }
    Attr(std::string name, const char *v) : Attr(std::move(name), std::string(v ? v : "")) {}
    Attr(std::string name, std::string v) : Attr(std::move(name), Kind{CARAFE_ATTR_STR}) { s = std::move(v); }
    Attr(std::string name, std::vector<int64_t> v) : Attr(std::move(name), Kind{CARAFE_ATTR_INTS}) {
        ints = std::move(v);
    }
    Attr(std::string name, std::vector<double> v) : Attr(std::move(name), Kind{CARAFE_ATTR_FLOATS}) {
        floats = std::move(v);
    }
    Attr(std::string name, std::vector<std::string> v) : Attr(std::move(name), Kind{CARAFE_ATTR_STRS}) {
        strs = std::move(v);
    }
    static Attr type(std::string name, uint32_t v) {
        Attr a(std::move(name), Kind{CARAFE_ATTR_TYPE});
        a.i = v;
        return a;
    }
    static Attr types(std::string name, std::vector<uint32_t> v) {
        Attr a(std::move(name), Kind{CARAFE_ATTR_TYPES});
        a.codes = std::move(v);
        return a;
    }
    static Attr shape(std::string name, std::optional<std::vector<Dim>> v) {
        Attr a(std::move(name), Kind{CARAFE_ATTR_SHAPE});
        a.i = v ? 0 : -1;
        if (v)
            for (const Dim &d : *v) a.dims.push_back(d.raw());
        return a;
    }
    /* The memory of the tensor stays with the caller. */
    static Attr tensor(std::string name, CarafeTensor v) {
        Attr a(std::move(name), Kind{CARAFE_ATTR_TENSOR});
        a.t = v;
        return a;
    }
    /* Borrows from this object. */
    CarafeAttr raw() const {
        CarafeAttr a = carafe_attr_none("", kind);
        a.name = str(name);
        a.i = i;
        a.f = f;
        a.s = str(s);
        a.ints = ints.data();
        a.floats = floats.data();
        a.types = codes.data();
        a.dims = dims.data();
        a.tensor = t;
        texts.clear();
        for (const std::string &x : strs) texts.push_back(str(x));
        a.strs = texts.data();
        switch (kind) {
        case CARAFE_ATTR_INTS: a.n = ints.size(); break;
        case CARAFE_ATTR_FLOATS: a.n = floats.size(); break;
        case CARAFE_ATTR_STRS: a.n = strs.size(); break;
        case CARAFE_ATTR_TYPES: a.n = codes.size(); break;
        case CARAFE_ATTR_SHAPE: a.n = dims.size(); break;
        default: break;
        }
        return a;
    }
    std::string name;
    uint32_t kind;

private:
    struct Kind {
        uint32_t code;
    };
    Attr(std::string name, Kind kind) : name(std::move(name)), kind(kind.code) {}
    int64_t i = 0;
    double f = 0;
    std::string s;
    std::vector<int64_t> ints;
    std::vector<double> floats;
    std::vector<std::string> strs;
    std::vector<uint32_t> codes;
    std::vector<CarafeDim> dims;
    CarafeTensor t{};
    mutable std::vector<CarafeStr> texts;
};

/* Attributes for a call into the engine. */
class AttrList {
public:
    AttrList(std::initializer_list<Attr> list) : AttrList(std::vector<Attr>(list)) {}
    AttrList(std::vector<Attr> list) : own(std::move(list)) {
        for (const Attr &a : own) raws.push_back(a.raw());
    }
    AttrList(const AttrList &) = delete;
    AttrList &operator=(const AttrList &) = delete;
    CarafeAttrs raw() const { return CarafeAttrs{raws.data(), raws.size()}; }

private:
    std::vector<Attr> own;
    std::vector<CarafeAttr> raws;
};

/* Reads one attribute of the engine as a C++ value. */
template <class T>
T attr_as(const CarafeAttr &a) {
    auto wrong = [&](const char *wanted) {
        return Error("attribute `" + std::string(view(a.name)) + "` is not " + wanted);
    };
    if constexpr (std::is_same_v<T, bool>) {
        if (a.kind != CARAFE_ATTR_BOOL && a.kind != CARAFE_ATTR_INT) throw wrong("a bool");
        return a.i != 0;
    } else if constexpr (std::is_integral_v<T>) {
        if (a.kind != CARAFE_ATTR_INT && a.kind != CARAFE_ATTR_TYPE) throw wrong("an integer");
        return static_cast<T>(a.i);
    } else if constexpr (std::is_floating_point_v<T>) {
        if (a.kind == CARAFE_ATTR_INT) return static_cast<T>(a.i);
        if (a.kind != CARAFE_ATTR_FLOAT) throw wrong("a number");
        return static_cast<T>(a.f);
    } else if constexpr (std::is_same_v<T, std::string>) {
        if (a.kind != CARAFE_ATTR_STR && a.kind != CARAFE_ATTR_TEXT) throw wrong("a text");
        return std::string(view(a.s));
    } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
        if (a.kind != CARAFE_ATTR_INTS) throw wrong("a list of integers");
        return T(a.ints, a.ints + a.n);
    } else if constexpr (std::is_same_v<T, std::vector<double>>) {
        if (a.kind != CARAFE_ATTR_FLOATS) throw wrong("a list of numbers");
        return T(a.floats, a.floats + a.n);
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
        if (a.kind != CARAFE_ATTR_STRS) throw wrong("a list of texts");
        T all;
        for (size_t i = 0; i < a.n; i++) all.emplace_back(view(a.strs[i]));
        return all;
    } else if constexpr (std::is_same_v<T, std::vector<uint32_t>>) {
        if (a.kind != CARAFE_ATTR_TYPES) throw wrong("a list of element types");
        return T(a.types, a.types + a.n);
    } else if constexpr (std::is_same_v<T, Fact>) {
        if (a.kind != CARAFE_ATTR_SHAPE) throw wrong("a shape");
        return Fact(CarafeFact{CARAFE_DYNAMIC, a.i == -1 ? -1 : static_cast<int32_t>(a.n), a.dims});
    } else {
        static_assert(std::is_same_v<T, Tensor>, "not a type of attributes");
        if (a.kind != CARAFE_ATTR_TENSOR) throw wrong("a tensor");
        return Tensor(a.tensor);
    }
}

/* The attributes a node has; valid during the call that hands them over. */
class Attrs {
public:
    explicit Attrs(CarafeAttrs raw) : raw(raw) {}
    bool has(const char *name) const { return carafe_attr(raw, name) != nullptr; }
    template <class T>
    T get(const char *name) const {
        const CarafeAttr *a = carafe_attr(raw, name);
        if (!a) throw Error(std::string("attribute `") + name + "` is missing");
        return attr_as<T>(*a);
    }
    template <class T>
    T get(const char *name, T otherwise) const {
        const CarafeAttr *a = carafe_attr(raw, name);
        return a ? attr_as<T>(*a) : otherwise;
    }
    CarafeAttrs raw;
};

/* What `Op::infer` sees and fills in. */
class Infer {
public:
    explicit Infer(CarafeInfer *cx) : cx(cx) {}
    size_t inputs() const { return cx->fns->n_inputs(cx); }
    Fact input(size_t i) const {
        CarafeFact f{};
        check(cx->fns->input(cx, i, &f));
        return Fact(f);
    }
    /* The elements of an input where they are known. */
    std::optional<Tensor> value(size_t i) const {
        CarafeTensor t{};
        CarafeStatus status = cx->fns->value(cx, i, &t);
        if (status == CARAFE_NOT_FOUND) return std::nullopt;
        check(status);
        return Tensor(t);
    }
    void output(size_t i, const Fact &fact) {
        std::vector<CarafeDim> dims;
        if (fact.shape)
            for (const Dim &d : *fact.shape) dims.push_back(d.raw());
        CarafeFact raw{fact.type, fact.shape ? static_cast<int32_t>(dims.size()) : -1, dims.data()};
        check(cx->fns->set_output(cx, i, &raw));
    }
    CarafeInfer *cx;
};

/* What `Op::eval` and `Kernel::make` see and fill in. */
class Eval {
public:
    explicit Eval(CarafeEval *cx) : cx(cx) {}
    size_t inputs() const { return cx->fns->n_inputs(cx); }
    size_t outputs() const { return cx->fns->n_outputs(cx); }
    Tensor input(size_t i) const {
        CarafeTensor t{};
        check(cx->fns->input(cx, i, &t));
        return Tensor(t);
    }
    Fact output_fact(size_t i) const {
        CarafeFact f{};
        check(cx->fns->output_fact(cx, i, &f));
        return Fact(f);
    }
    /* Memory of an output, zeroed; once for each output. */
    template <class T>
    T *output(size_t i, const Shape &shape) {
        void *data = nullptr;
        check(cx->fns->output(cx, i, type_of<T>(), rank(shape), shape.data(), &data));
        return static_cast<T *>(data);
    }
    void output(size_t i, const Shape &shape, const std::vector<std::string> &strings) {
        std::vector<CarafeStr> texts;
        for (const std::string &s : strings) texts.push_back(str(s));
        CarafeTensor t{CARAFE_STRING, rank(shape), shape.data(), texts.data(), texts.size() * sizeof(CarafeStr)};
        check(cx->fns->set_output(cx, i, &t));
    }
    /* A vector becomes the output without a copy. When the engine refuses it, it is still ours and goes with `owner`. */
    template <class T>
    void give(size_t i, const Shape &shape, std::vector<T> values) {
        size_t elements = 1;
        for (size_t n : shape) elements *= n;
        /* Engines before ABI 1.2 released what they refused for its size. */
        if (elements != values.size())
            throw Error("output " + std::to_string(i) + " has " + std::to_string(elements) + " elements, " +
                        std::to_string(values.size()) + " were given");
        auto owner = std::make_unique<std::vector<T>>(std::move(values));
        CarafeTensor t{type_of<T>(), rank(shape), shape.data(), owner->data(), owner->size() * sizeof(T)};
        check(cx->fns->give_output(cx, i, &t, owner.get(), [](void *p) { delete static_cast<std::vector<T> *>(p); }));
        owner.release();
    }
    void forward(size_t output, size_t input) { check(cx->fns->forward(cx, output, input)); }
    std::string name() const {
        CarafeStr s{nullptr, 0};
        check(cx->fns->name(cx, &s));
        return std::string(view(s));
    }
    std::optional<Tensor> variable(const std::string &id) const {
        CarafeTensor t{};
        CarafeStatus status = cx->fns->variable(cx, str(id), &t);
        if (status == CARAFE_NOT_FOUND) return std::nullopt;
        check(status);
        return Tensor(t);
    }
    void assign(const std::string &id, const Tensor &value) { check(cx->fns->assign(cx, str(id), &value.raw)); }
    CarafeEval *cx;
};

/* Runs `body(begin, end)` over the parts of 0..n on the engine's threads. The first exception of a part is thrown here;
 * parts that did not begin before it are left out. */
template <class F>
void parallel_for(size_t n, F body) {
    struct Job {
        F *body;
        std::atomic<bool> stop;
        std::atomic_flag first;
        std::exception_ptr failed;
    } job{&body, {false}, ATOMIC_FLAG_INIT, nullptr};
    host()->parallel_for(
        n,
        [](void *user, size_t begin, size_t end) {
            Job *job = static_cast<Job *>(user);
            if (job->stop.load()) return;
            try {
                (*job->body)(begin, end);
            } catch (...) {
                if (!job->first.test_and_set()) job->failed = std::current_exception();
                job->stop.store(true);
            }
        },
        &job);
    if (job.failed) std::rethrow_exception(job.failed);
}

/* An operation: made for each node from its attributes, by a constructor that takes `const carafe::Attrs &`. Used by
 * several threads at once. */
class Op {
public:
    virtual ~Op() = default;
    virtual void infer(Infer &cx) const = 0;
    virtual void eval(Eval &) const { throw Error(CARAFE_UNSUPPORTED, "the operation has no evaluation"); }
};

/* The declaration of an operation. */
struct Decl {
    std::string name;
    std::optional<std::string> opset;
    std::string doc;
    uint32_t flags = 0;
    struct Port {
        std::string name;
        bool optional, variadic;
    };
    struct Declared {
        std::string name;
        uint32_t kind;
        bool required;
        std::optional<Attr> otherwise;
        std::string doc;
        bool internal = false;
    };
    std::vector<Port> ins, outs;
    std::vector<Declared> attrs;
    std::vector<size_t> moved, shape_inputs, rows;

    explicit Decl(std::string name, std::optional<std::string> opset = std::nullopt)
        : name(std::move(name)), opset(std::move(opset)) {}
    Decl &input(std::string port, bool optional = false, bool variadic = false) {
        ins.push_back({std::move(port), optional, variadic});
        return *this;
    }
    Decl &output(std::string port, bool optional = false, bool variadic = false) {
        outs.push_back({std::move(port), optional, variadic});
        return *this;
    }
    /* An attribute with the value it has when a node does not give it. */
    Decl &attr(Attr a, std::string about = "") {
        std::string name = a.name;
        uint32_t kind = a.kind;
        attrs.push_back({std::move(name), kind, false, std::move(a), std::move(about)});
        return *this;
    }
    /* An attribute that every node must give. */
    Decl &required(std::string attr, uint32_t kind, std::string about = "") {
        attrs.push_back({std::move(attr), kind, true, std::nullopt, std::move(about)});
        return *this;
    }
    /* An attribute that a node may leave out, and has no value then. */
    Decl &optional(std::string attr, uint32_t kind, std::string about = "") {
        attrs.push_back({std::move(attr), kind, false, std::nullopt, std::move(about)});
        return *this;
    }
    /* As `attr`, but used while converting and running only and never written to the files of an IR: a node that is read
     * from one has the value given here. */
    Decl &internal(Attr a, std::string about = "") {
        attr(std::move(a), std::move(about));
        attrs.back().internal = true;
        return *this;
    }
    Decl &says(std::string text) { return doc = std::move(text), *this; }
    /* CARAFE_OP_... */
    Decl &with(uint32_t bits) { return flags |= bits, *this; }
    /* Inputs whose elements are only moved. */
    Decl &moves(std::vector<size_t> inputs) { return moved = std::move(inputs), *this; }
    /* Inputs that decide the shape of an output. */
    Decl &decides_shape(std::vector<size_t> inputs) { return shape_inputs = std::move(inputs), *this; }
    /* Inputs whose rows stay apart while all others are the same for all rows. */
    Decl &keeps_rows(std::vector<size_t> inputs) { return rows = std::move(inputs), *this; }
};

using Value = CarafeValue;

/* The source node that a rule translates. */
class Node {
public:
    explicit Node(CarafeNode *cx) : cx(cx) {}
    std::string op_type() const { return text(cx->fns->op_type); }
    std::string domain() const { return text(cx->fns->domain); }
    std::string name() const { return text(cx->fns->name); }
    int64_t version() const { return cx->fns->version(cx); }
    size_t inputs() const { return cx->fns->n_inputs(cx); }
    size_t outputs() const { return cx->fns->n_outputs(cx); }
    Value input(size_t i) const {
        Value v{};
        check(cx->fns->input(cx, i, &v));
        return v;
    }
    bool has(size_t i) const {
        Value v{};
        return i < inputs() && cx->fns->input(cx, i, &v) == CARAFE_OK;
    }
    std::vector<Value> inputs_named(const std::string &port) const {
        std::vector<Value> all(cx->fns->n_inputs_named(cx, str(port)));
        for (size_t i = 0; i < all.size(); i++) check(cx->fns->input_named(cx, str(port), i, &all[i]));
        return all;
    }
    template <class T>
    std::optional<T> attr(const std::string &name) const {
        CarafeAttr a{};
        CarafeStatus status = cx->fns->attr(cx, str(name), &a);
        if (status == CARAFE_NOT_FOUND) return std::nullopt;
        check(status);
        return attr_as<T>(a);
    }
    Fact fact(Value v) const {
        CarafeFact f{};
        check(cx->fns->fact(cx, v, &f));
        return Fact(f);
    }
    std::optional<Tensor> constant_of(Value v) const {
        CarafeTensor t{};
        CarafeStatus status = cx->fns->constant_of(cx, v, &t);
        if (status == CARAFE_NOT_FOUND) return std::nullopt;
        check(status);
        return Tensor(t);
    }
    /* Adds a node; gives its first output, the others have the ports 1, 2, ... */
    Value emit(const std::string &op, const std::vector<Value> &inputs, const AttrList &attrs = {}) {
        Value v{};
        check(cx->fns->emit(cx, str(op), inputs.data(), inputs.size(), attrs.raw(), &v));
        return v;
    }
    template <class T>
    Value constant(const std::vector<T> &values, const Shape &shape) {
        CarafeTensor t{type_of<T>(), rank(shape), shape.data(), values.data(), values.size() * sizeof(T)};
        Value v{};
        check(cx->fns->constant(cx, &t, &v));
        return v;
    }
    void output(size_t i, Value v) { check(cx->fns->set_output(cx, i, v)); }
    std::vector<Value> inline_graph(const std::string &name, const std::vector<Value> &inputs, size_t outputs) {
        std::vector<Value> all(outputs);
        check(cx->fns->inline_graph(cx, str(name), inputs.data(), inputs.size(), all.data(), &outputs));
        all.resize(outputs);
        return all;
    }
    CarafeNode *cx;

private:
    std::string text(CarafeStatus (*ask)(CarafeNode *, CarafeStr *)) const {
        CarafeStr s{nullptr, 0};
        check(ask(cx, &s));
        return std::string(view(s));
    }
};

/* A model that a rewrite works on. */
class Graph {
public:
    explicit Graph(CarafeGraph *g) : g(g) {}
    struct NodeInfo {
        std::string name, op_type, opset;
        size_t inputs, outputs;
    };
    std::vector<uint32_t> nodes() const { return ids(g->fns->nodes); }
    std::vector<uint32_t> parameters() const { return ids(g->fns->parameters); }
    std::vector<uint32_t> results() const { return ids(g->fns->results); }
    NodeInfo node(uint32_t id) const {
        CarafeNodeInfo i{};
        check(g->fns->node(g, id, &i));
        return {std::string(view(i.name)), std::string(view(i.op_type)), std::string(view(i.opset)), i.n_inputs,
                i.n_outputs};
    }
    Value input(uint32_t id, size_t i) const {
        Value v{};
        check(g->fns->input(g, id, i, &v));
        return v;
    }
    Fact fact(Value v) const {
        CarafeFact f{};
        check(g->fns->fact(g, v, &f));
        return Fact(f);
    }
    Attrs attrs(uint32_t id) const {
        CarafeAttrs a{nullptr, 0};
        check(g->fns->attrs(g, id, &a));
        return Attrs(a);
    }
    std::optional<Tensor> constant_of(Value v) const {
        CarafeTensor t{};
        CarafeStatus status = g->fns->constant_of(g, v, &t);
        if (status == CARAFE_NOT_FOUND) return std::nullopt;
        check(status);
        return Tensor(t);
    }
    std::vector<CarafeUse> users(Value v) const {
        const CarafeUse *list = nullptr;
        size_t n = 0;
        check(g->fns->users(g, v, &list, &n));
        return std::vector<CarafeUse>(list, list + n);
    }
    Value add(const std::string &name, const std::string &op, const std::vector<Value> &inputs,
              const AttrList &attrs = {}) {
        uint32_t id = 0;
        check(g->fns->add(g, str(name), str(op), inputs.data(), inputs.size(), attrs.raw(), &id));
        return Value{id, 0};
    }
    void replace(Value old, Value with) { check(g->fns->replace(g, old, with)); }
    void set_name(uint32_t id, const std::string &name) { check(g->fns->set_name(g, id, str(name))); }
    void set_info(uint32_t id, const std::string &key, const std::string &value) {
        check(g->fns->set_info(g, id, str(key), str(value)));
    }
    void remove(uint32_t id) { check(g->fns->remove(g, id)); }
    /* A text of the node's runtime information. */
    std::optional<std::string> info(uint32_t id, const std::string &key) const {
        CarafeStr s{nullptr, 0};
        CarafeStatus status = g->fns->info(g, id, str(key), &s);
        if (status == CARAFE_NOT_FOUND) return std::nullopt;
        check(status);
        return std::string(view(s));
    }
    /* Tensor names of a value; of a result, those of the model's output. */
    std::vector<std::string> tensor_names(Value v) const {
        const CarafeStr *list = nullptr;
        size_t n = 0;
        check(g->fns->tensor_names(g, v, &list, &n));
        std::vector<std::string> all;
        for (size_t i = 0; i < n; i++) all.emplace_back(view(list[i]));
        return all;
    }
    /* Since 1.2. */
    std::string name() const {
        CarafeStr s{nullptr, 0};
        check(g->fns->model_name(g, &s));
        return std::string(view(s));
    }
    /* Since 1.2. Why the engine cannot evaluate a node; nothing when it can. */
    std::optional<std::string> refusal(uint32_t id) const {
        CarafeStatus status = g->fns->can_evaluate(g, id);
        if (status == CARAFE_OK) return std::nullopt;
        CarafeStr why{nullptr, 0};
        host()->last_error(&why);
        if (status != CARAFE_UNSUPPORTED) throw Error(status, std::string(view(why)));
        return std::string(view(why));
    }
    CarafeGraph *g;

private:
    std::vector<uint32_t> ids(CarafeStatus (*ask)(CarafeGraph *, const uint32_t **, size_t *)) const {
        const uint32_t *list = nullptr;
        size_t n = 0;
        check(ask(g, &list, &n));
        return std::vector<uint32_t>(list, list + n);
    }
};

/* Names of rewrites that one runs before or after, and whether it runs without being asked for by name. */
struct Order {
    std::vector<std::string> before = {}, after = {};
    bool enabled = true;
};

/* A part of a graph that an entry of a replacement file names; without nodes it is the whole of it. */
struct Match {
    std::string name;
    std::vector<Value> inputs, outputs;
    std::vector<uint32_t> nodes;
    /* What the user wants the replacement to know. */
    Attrs attrs;
    std::string json;
};

/* A mapping by data alone; what is left out is as in the source. */
struct Mapping {
    std::string op;
    std::optional<std::string> framework = std::nullopt, domain = std::nullopt, op_type = std::nullopt;
    std::vector<std::pair<std::string, std::string>> attr_names = {};
    std::vector<Attr> attr_values = {};
    std::vector<std::pair<std::string, size_t>> input_attrs = {};
    std::vector<std::string> input_names = {}, output_names = {};
};

/* How a kernel wants one port: type and order of the elements, see CarafeLayout. Where the value lies otherwise, the device
 * converts it. */
struct Layout {
    uint32_t type;
    std::vector<size_t> blocks = {}, order = {};
    int32_t in_place = -1;
    bool constant = false;

    /* Axis 1 last. */
    static Layout channels_last(uint32_t type, const Shape &shape) {
        Layout l{type};
        if (shape.size() < 3) return l;
        for (size_t k = 0; k < shape.size(); k++) l.order.push_back(k == 0 ? 0 : k + 1 < shape.size() ? k + 1 : 1);
        for (size_t axis : l.order) l.blocks.push_back(shape[axis]);
        return l;
    }
    /* Axis 1 in blocks of n, which lie innermost: nChw8c for 8. */
    static Layout blocked_by(uint32_t type, const Shape &shape, size_t n) {
        Layout l{type, shape};
        if (shape.size() < 2) return Layout{type};
        for (size_t k = 0; k < shape.size(); k++) l.order.push_back(k);
        l.blocks[1] = (shape[1] + n - 1) / n;
        l.blocks.push_back(n);
        l.order.push_back(1);
        return l;
    }
    /* The dimensions in memory of a value of this shape. */
    const Shape &dims(const Shape &shape) const { return blocks.empty() ? shape : blocks; }
};

/* One way in which a kernel can run a node. */
struct Config {
    std::vector<Layout> inputs, outputs;
    /* How many operations of `Site::epilogue` it does; the operands of these stand behind the inputs of the node. */
    size_t epilogue = 0;
    /* Bytes for itself while it runs, and for each thread of `KernelIo::each`. */
    size_t workspace = 0, scratch = 0;
};

/* One elementwise operation behind a node, see CarafeEpilogueOp. */
struct EpilogueOp {
    uint32_t function;
    std::vector<double> numbers;
    std::vector<int64_t> operands;
};

/* The node a kernel is asked about. What an older engine does not tell is empty. */
struct Site {
    explicit Site(const CarafeSite *s)
        : raw(s), name(view(s->name)), op_type(view(s->op_type)), opset(view(s->opset)), attrs(s->attrs) {
        for (size_t i = 0; i < s->n_inputs; i++) inputs.emplace_back(s->inputs[i]);
        for (size_t i = 0; i < s->n_outputs; i++) outputs.emplace_back(s->outputs[i]);
        if (!tells()) return;
        for (size_t i = 0; i < s->n_layouts; i++) layouts.push_back(s->layouts[i]);
        for (size_t i = 0; s->input_layouts && i < s->n_inputs; i++) input_layouts.push_back(s->input_layouts[i]);
        for (size_t i = 0; i < s->n_epilogue; i++) {
            const CarafeEpilogueOp &op = s->epilogue[i];
            epilogue.push_back({op.function, {op.numbers, op.numbers + op.n_numbers},
                                {op.operands, op.operands + op.n_operands}});
        }
    }
    /* The value of an input that is a constant. */
    std::optional<Tensor> constant(size_t input) const {
        if (!tells() || !raw->constants || input >= raw->n_inputs || !raw->constants[input]) return std::nullopt;
        return Tensor(*raw->constants[input]);
    }
    /* Whether the engine is of ABI 1.3 or newer. */
    bool tells() const { return raw->size > offsetof(CarafeSite, needs); }

    const CarafeSite *raw;
    std::string name, op_type, opset;
    Attrs attrs;
    std::vector<Fact> inputs, outputs;
    std::vector<CarafeLayoutKind> layouts, input_layouts;
    std::vector<EpilogueOp> epilogue;
};

/* Memory of a kernel while it runs, in the forms of its configuration. */
class KernelIo {
public:
    explicit KernelIo(const CarafeKernelIo *io) : KernelIo(io, io->workspace, 0) {}
    KernelIo(const CarafeKernelIo *io, void *workspace, size_t scratch) : io(io), own(workspace), scratch(scratch) {}
    size_t inputs() const { return io->n_inputs; }
    size_t outputs() const { return io->n_outputs; }
    Tensor input(size_t i) const {
        if (i >= io->n_inputs) throw Error(CARAFE_USAGE, "the kernel has no input " + std::to_string(i));
        return Tensor(io->inputs[i]);
    }
    /* Memory to fill; it may be that of an input where the configuration says so. */
    template <class T>
    T *output(size_t i) const {
        if (i >= io->n_outputs) throw Error(CARAFE_USAGE, "the kernel has no output " + std::to_string(i));
        if (io->outputs[i].element_type != type_of<T>()) throw Error(CARAFE_USAGE, "an output has another element type");
        return static_cast<T *>(io->outputs[i].data);
    }
    /* Elements of an output, padding of blocks among them. */
    size_t elements(size_t i) const {
        size_t n = 1;
        for (uint32_t k = 0; k < io->outputs[i].rank; k++) n *= io->outputs[i].shape[k];
        return n;
    }
    void *workspace() const { return own; }
    size_t threads() const { return io->threads; }
    /* Calls `body(part, scratch)` for the parts from 0 on, on all threads. The first exception of a part is thrown here. */
    template <class F>
    void each(size_t parts, F body) const {
        struct Job {
            F *body;
            size_t scratch;
            std::atomic_flag first;
            std::exception_ptr failed;
        } job{&body, scratch, ATOMIC_FLAG_INIT, nullptr};
        auto part = [](void *user, size_t part, void *scratch, size_t bytes) {
            Job *job = static_cast<Job *>(user);
            try {
                /* What the device does not give is made here. */
                std::vector<std::max_align_t> made(bytes < job->scratch ? job->scratch / sizeof(std::max_align_t) + 1 : 0);
                (*job->body)(part, made.empty() ? scratch : made.data());
                return CarafeStatus(CARAFE_OK);
            } catch (...) {
                if (!job->first.test_and_set()) job->failed = std::current_exception();
                return CarafeStatus(CARAFE_PANIC);
            }
        };
        CarafeStatus status = io->each(io, parts, part, &job);
        if (job.failed) std::rethrow_exception(job.failed);
        check(status);
    }
    const CarafeKernelIo *io;

private:
    void *own;
    size_t scratch;
};

/* A kernel ready for one node. All streams use it at once. */
class Kernel {
public:
    virtual ~Kernel() = default;
    /* Computes the outputs in memory that the device planned. */
    virtual void run(KernelIo &io) const = 0;
    /* For results whose shapes only the run knows, or of strings: makes them. */
    virtual void make(Eval &) const {
        throw Error(CARAFE_UNSUPPORTED, "the kernel runs only where the shapes of its results are known before");
    }
};

/* A kernel class for an operation on a device. */
class KernelClass {
public:
    virtual ~KernelClass() = default;
    /* Whether it may take elementwise work that follows; only then is it asked with an epilogue. */
    virtual bool fuses() const { return false; }
    /* Ways to run the node, the best first; none declines it. */
    virtual std::vector<Config> configs(const Site &site) const = 0;
    virtual std::unique_ptr<Kernel> init(const Site &site, size_t config) const = 0;
};

/* An operation on single numbers: `Make` gives for the attributes of a node a function of a float. */
template <class Make>
class ElementwiseOp : public Op {
public:
    using Function = std::decay_t<std::invoke_result_t<const Make &, const Attrs &>>;
    static inline const Make *make = nullptr;
    explicit ElementwiseOp(const Attrs &attrs) : apply((*make)(attrs)) {}
    void infer(Infer &cx) const override {
        Fact x = cx.input(0);
        switch (x.type) {
        case CARAFE_DYNAMIC: case CARAFE_F16: case CARAFE_BF16: case CARAFE_F32: case CARAFE_F64: cx.output(0, x); break;
        default: throw Error("input 0 must be f16, bf16, f32 or f64");
        }
    }
    void eval(Eval &cx) const override {
        Tensor x = cx.input(0);
        switch (x.type()) {
        case CARAFE_F32: return each<float>(cx, x);
        case CARAFE_F64: return each<double>(cx, x);
        case CARAFE_F16: return each<f16>(cx, x);
        default: return each<bf16>(cx, x);
        }
    }
    const Function apply;

private:
    template <class T>
    void each(Eval &cx, const Tensor &x) const {
        const T *from = x.data<T>();
        T *to = cx.output<T>(0, x.shape());
        parallel_for(x.size(), [&](size_t begin, size_t end) {
            for (size_t i = begin; i < end; i++) to[i] = static_cast<T>(apply(static_cast<float>(from[i])));
        });
    }
};

/* Its kernel for f32: on all threads, where its input lies. */
template <class Make>
class ElementwiseKernels : public KernelClass {
public:
    std::vector<Config> configs(const Site &site) const override {
        if (site.inputs[0].type != CARAFE_F32) return {};
        return {{{{CARAFE_F32}}, {{CARAFE_F32, {}, {}, 0}}}};
    }
    std::unique_ptr<Kernel> init(const Site &site, size_t) const override { return std::make_unique<One>(site.attrs); }

private:
    struct One : Kernel {
        explicit One(const Attrs &attrs) : op(attrs) {}
        void run(KernelIo &io) const override {
            const float *from = io.input(0).template data<float>();
            float *to = io.template output<float>(0);
            size_t n = io.elements(0), part = n / io.threads() + 1;
            if (part < 4096) part = 4096; /* fewer are not worth a thread */
            io.each((n + part - 1) / part, [&](size_t k, void *) {
                size_t end = (k + 1) * part < n ? (k + 1) * part : n;
                for (size_t i = k * part; i < end; i++) to[i] = op.apply(from[i]);
            });
        }
        ElementwiseOp<Make> op;
    };
};

/* Takes what the library brings. */
class Registrar {
public:
    explicit Registrar(CarafeRegistrar *r) : r(r) {}
    void describe(const std::string &name, const std::string &version) {
        check(r->fns->describe(r, str(name), str(version)));
    }

    template <class T>
    void op(const Decl &decl) {
        static_assert(std::is_base_of_v<Op, T>, "derive the operation from carafe::Op");
        std::vector<CarafePort> ins, outs;
        for (auto &p : decl.ins) ins.push_back({text(p.name), p.optional, p.variadic});
        for (auto &p : decl.outs) outs.push_back({text(p.name), p.optional, p.variadic});
        std::vector<CarafeAttrInfo> infos;
        std::deque<CarafeAttr> defaults;
        std::vector<size_t> internal;
        for (auto &a : decl.attrs) {
            if (a.internal) internal.push_back(infos.size());
            if (a.otherwise) defaults.push_back(a.otherwise->raw());
            const CarafeAttr *otherwise = a.otherwise ? &defaults.back() : nullptr;
            infos.push_back({text(a.name), a.kind, a.required, otherwise, text(a.doc)});
        }
        CarafeOp t{};
        t.size = sizeof t;
        t.abi = CARAFE_ABI_MAJOR;
        t.flags = decl.flags;
        t.name = text(decl.name);
        t.opset = text(decl.opset);
        t.doc = text(decl.doc);
        t.n_inputs = ins.size();
        t.inputs = ins.data();
        t.n_outputs = outs.size();
        t.outputs = outs.data();
        t.n_attrs = infos.size();
        t.attrs = infos.data();
        t.n_internal_attrs = internal.size();
        t.internal_attrs = internal.data();
        t.n_moves = decl.moved.size();
        t.moves = decl.moved.data();
        t.n_shape_inputs = decl.shape_inputs.size();
        t.shape_inputs = decl.shape_inputs.data();
        t.n_rows = decl.rows.size();
        t.rows = decl.rows.data();
        t.create = [](void *, CarafeAttrs attrs, void **instance) {
            return guard([&] { *instance = static_cast<Op *>(new T(Attrs(attrs))); });
        };
        t.infer = [](const void *op, CarafeInfer *cx) {
            return guard([&] {
                Infer c(cx);
                static_cast<const Op *>(op)->infer(c);
            });
        };
        t.eval = [](const void *op, CarafeEval *cx) {
            return guard([&] {
                Eval c(cx);
                static_cast<const Op *>(op)->eval(c);
            });
        };
        t.release = [](void *op) { delete static_cast<Op *>(op); };
        check(r->fns->add_op(r, &t));
    }

    /* An operation on single numbers, for f16, bf16, f32 and f64, with a kernel for CPU. `make` gives for the attributes of a
     * node a function of a float: `[](const carafe::Attrs &a) { return [by = a.get<float>("by")](float x) { return x * by; }; }` */
    template <class Make>
    void elementwise(Decl decl, Make make) {
        if (decl.ins.empty()) decl.input("data");
        if (decl.outs.empty()) decl.output("output");
        ElementwiseOp<Make>::make = keep(std::move(make));
        op<ElementwiseOp<Make>>(decl.with(CARAFE_OP_ELEMENTWISE | CARAFE_OP_KEEPS_SHAPE));
        kernel("CPU", decl.name, decl.opset ? decl.opset : "extension", "elementwise",
               std::make_unique<ElementwiseKernels<Make>>());
    }

    /* `framework` and `domain`: no value for all. */
    void rule(std::optional<std::string> framework, std::optional<std::string> domain, const std::string &op_type,
              std::function<void(Node &)> convert, int64_t since = 1) {
        CarafeRule t{};
        t.size = sizeof t;
        t.abi = CARAFE_ABI_MAJOR;
        t.framework = text(framework);
        t.domain = text(domain);
        t.op_type = text(op_type);
        t.since = since;
        t.user = keep(std::move(convert));
        t.convert = [](void *user, CarafeNode *cx) {
            return guard([&] {
                Node n(cx);
                (*static_cast<std::function<void(Node &)> *>(user))(n);
            });
        };
        check(r->fns->add_rule(r, &t));
    }

    void mapping(const Mapping &m) {
        std::vector<CarafePair> pairs;
        for (auto &p : m.attr_names) pairs.push_back({text(p.first), text(p.second)});
        std::vector<CarafeInputAttr> from;
        for (auto &p : m.input_attrs) from.push_back({text(p.first), p.second});
        AttrList values(m.attr_values);
        auto ins = texts(m.input_names), outs = texts(m.output_names);
        CarafeMapping t{};
        t.size = sizeof t;
        t.abi = CARAFE_ABI_MAJOR;
        t.framework = text(m.framework);
        t.domain = text(m.domain);
        t.op_type = text(m.op_type);
        t.op = text(m.op);
        t.attr_names = pairs.data();
        t.n_attr_names = pairs.size();
        t.attr_values = values.raw();
        t.input_attrs = from.data();
        t.n_input_attrs = from.size();
        t.input_names = ins.data();
        t.n_input_names = ins.size();
        t.output_names = outs.data();
        t.n_output_names = outs.size();
        check(r->fns->add_mapping(r, &t));
    }

    /* A rewrite of whole models; says how often it fired. */
    void model_pass(uint32_t phase, const std::string &name, std::function<size_t(Graph &)> run,
                    const Order &order = {}) {
        Pass pass(phase, name, order);
        CarafePass &t = pass.t;
        t.user = keep(std::move(run));
        t.run = [](void *user, CarafeGraph *g, size_t *fired) {
            return guard([&] {
                Graph graph(g);
                *fired = (*static_cast<std::function<size_t(Graph &)> *>(user))(graph);
            });
        };
        check(r->fns->add_pass(r, &t));
    }

    /* A rewrite of one node at a time: nodes of type `root`, or all. `at` says whether it fired. */
    void matcher(uint32_t phase, const std::string &name, std::optional<std::string> root,
                 std::function<bool(Graph &, uint32_t)> at, const Order &order = {}) {
        Pass pass(phase, name, order);
        CarafePass &t = pass.t;
        t.root = text(root);
        t.user = keep(std::move(at));
        t.at = [](void *user, CarafeGraph *g, uint32_t id, uint32_t *outcome) {
            return guard([&] {
                Graph graph(g);
                bool fired = (*static_cast<std::function<bool(Graph &, uint32_t)> *>(user))(graph, id);
                *outcome = fired ? CARAFE_DONE : CARAFE_NO_MATCH;
            });
        };
        check(r->fns->add_pass(r, &t));
    }

    /* Puts something in place of what the entries with this id of a replacement file name. */
    void replacement(const std::string &id, std::function<void(Graph &, const Match &)> replace) {
        if (r->fns->size < offsetof(CarafeRegistrarFns, add_replacement) + sizeof r->fns->add_replacement)
            throw std::runtime_error("this engine is too old for replacements; they came with ABI 1.1");
        CarafeReplacement t{};
        t.size = sizeof t;
        t.abi = CARAFE_ABI_MAJOR;
        t.id = text(id);
        t.user = keep(std::move(replace));
        t.replace = [](void *user, CarafeGraph *g, const CarafeMatch *m) {
            return guard([&] {
                Graph graph(g);
                Match found{std::string(view(m->name)), {m->inputs, m->inputs + m->n_inputs},
                            {m->outputs, m->outputs + m->n_outputs}, {m->nodes, m->nodes + m->n_nodes},
                            Attrs(m->attrs), std::string(view(m->json))};
                (*static_cast<std::function<void(Graph &, const Match &)> *>(user))(graph, found);
            });
        };
        check(r->fns->add_replacement(r, &t));
    }

    void kernel(const std::string &device, const std::string &op, std::optional<std::string> opset,
                const std::string &name, std::unique_ptr<KernelClass> kernel) {
        if (!kernel) throw Error("kernel `" + name + "` is a null pointer");
        CarafeKernel t{};
        t.size = sizeof t;
        t.abi = CARAFE_ABI_MAJOR;
        t.device = text(device);
        t.op = text(op);
        t.opset = text(opset);
        t.name = text(name);
        t.fuses = kernel->fuses();
        t.user = keep(std::move(kernel))->get();
        t.configs = [](void *user, const CarafeSite *site, CarafeConfigSink offer, void *sink) {
            return guard([&] {
                for (const Config &c : static_cast<KernelClass *>(user)->configs(Site(site))) {
                    auto ins = layouts(c.inputs), outs = layouts(c.outputs);
                    CarafeConfig raw{ins.data(), ins.size(), outs.data(), outs.size()};
                    check(offer(sink, &raw));
                    CarafeNeeds needs{sizeof needs, c.epilogue, c.workspace, c.scratch};
                    if (c.epilogue + c.workspace + c.scratch == 0) continue;
                    /* What a device does not give is made when it runs. */
                    if (site->size > offsetof(CarafeSite, needs) && site->needs) check(site->needs(sink, &needs));
                }
            });
        };
        t.init = [](void *user, const CarafeSite *site, size_t config, void **kernel) {
            return guard([&] {
                auto *own = static_cast<KernelClass *>(user);
                Site known(site);
                auto made = std::make_unique<Prepared>();
                made->kernel = own->init(known, config);
                if (!made->kernel) throw Error("`init` gave no kernel for node `" + known.name + "`");
                auto configs = own->configs(known);
                if (config >= configs.size()) throw Error(CARAFE_USAGE, "the configuration was not offered");
                made->config = std::move(configs[config]);
                *kernel = made.release();
            });
        };
        t.execute = [](void *kernel, CarafeEval *cx) {
            return guard([&] { static_cast<const Prepared *>(kernel)->execute(cx); });
        };
        t.run = [](const void *kernel, const CarafeKernelIo *io) {
            return guard([&] { static_cast<const Prepared *>(kernel)->run(io); });
        };
        t.release = [](void *kernel) { delete static_cast<Prepared *>(kernel); };
        check(r->fns->add_kernel(r, &t));
    }

    void cl_kernel(const std::string &device, const std::string &xml, const std::string &source) {
        CarafeClKernel t{};
        t.size = sizeof t;
        t.abi = CARAFE_ABI_MAJOR;
        t.device = text(device);
        t.xml = text(xml);
        t.source = text(source);
        check(r->fns->add_cl_kernel(r, &t));
    }

    void progress(std::function<void(float, uint32_t, uint32_t)> hear) {
        CarafeProgress t{};
        t.size = sizeof t;
        t.abi = CARAFE_ABI_MAJOR;
        t.user = keep(std::move(hear));
        t.progress = [](void *user, float part, uint32_t total, uint32_t done) {
            guard([&] { (*static_cast<std::function<void(float, uint32_t, uint32_t)> *>(user))(part, total, done); });
        };
        check(r->fns->add_progress(r, &t));
    }

    using Hear = std::function<void(std::string_view, std::string_view, std::string_view, std::string_view, int64_t)>;
    /* Hears of events: kind, category, action, label, value. */
    void telemetry(Hear hear) {
        CarafeTelemetry t{};
        t.size = sizeof t;
        t.abi = CARAFE_ABI_MAJOR;
        t.user = keep(std::move(hear));
        t.send = [](void *user, CarafeStr kind, CarafeStr category, CarafeStr action, CarafeStr label, int64_t value) {
            guard([&] { (*static_cast<Hear *>(user))(view(kind), view(category), view(action), view(label), value); });
        };
        check(r->fns->add_telemetry(r, &t));
    }

    CarafeRegistrar *r;

private:
    /* A kernel with what it asked for. */
    struct Prepared {
        std::unique_ptr<Kernel> kernel;
        Config config;

        void run(const CarafeKernelIo *io) const {
            /* What the device does not give is made here. */
            bool given = io->workspace_bytes >= config.workspace;
            std::vector<std::max_align_t> own(given ? 0 : config.workspace / sizeof(std::max_align_t) + 1);
            KernelIo memory(io, given ? io->workspace : own.data(), config.scratch);
            kernel->run(memory);
        }
        /* For devices that have no memory to give: the outputs are made here. */
        void execute(CarafeEval *cx) const {
            Eval eval(cx);
            std::vector<CarafeTensor> inputs;
            std::vector<CarafeOutput> outputs;
            std::vector<Shape> shapes;
            for (size_t i = 0; i < eval.inputs(); i++) inputs.push_back(eval.input(i).raw);
            for (size_t i = 0; i < config.outputs.size(); i++) {
                auto shape = eval.output_fact(i).shape;
                Shape known;
                for (size_t k = 0; shape && k < shape->size(); k++)
                    if ((*shape)[k].known()) known.push_back(static_cast<size_t>((*shape)[k].min));
                if (!shape || known.size() != shape->size() || config.outputs[i].type == CARAFE_STRING)
                    return kernel->make(eval);
                shapes.push_back(config.outputs[i].dims(known));
            }
            for (size_t i = 0; i < shapes.size(); i++) {
                void *data = nullptr;
                uint32_t type = config.outputs[i].type;
                check(cx->fns->output(cx, i, type, rank(shapes[i]), shapes[i].data(), &data));
                outputs.push_back({type, rank(shapes[i]), shapes[i].data(), data, 0});
            }
            struct Alone {
                CarafeKernelIo io; /* first, so that a pointer to it is one to the whole */
                std::vector<std::max_align_t> scratch;
                size_t bytes;
            } alone{};
            alone.scratch.resize(config.scratch / sizeof(std::max_align_t) + 1);
            alone.bytes = config.scratch;
            alone.io.size = sizeof alone.io;
            alone.io.inputs = inputs.data();
            alone.io.n_inputs = inputs.size();
            alone.io.outputs = outputs.data();
            alone.io.n_outputs = outputs.size();
            alone.io.threads = 1;
            alone.io.each = [](const CarafeKernelIo *io, size_t parts, CarafePart body, void *user) {
                auto *own = const_cast<Alone *>(reinterpret_cast<const Alone *>(io));
                CarafeStatus status = CARAFE_OK;
                for (size_t i = 0; i < parts && status == CARAFE_OK; i++) status = body(user, i, own->scratch.data(), own->bytes);
                return status;
            };
            run(&alone.io);
        }
    };
    // Borrows from its arguments.
    struct Pass {
        std::vector<const char *> before, after;
        CarafePass t{};
        Pass(uint32_t phase, const std::string &name, const Order &order)
            : before(texts(order.before)), after(texts(order.after)) {
            t.size = sizeof t;
            t.abi = CARAFE_ABI_MAJOR;
            t.phase = phase;
            t.name = text(name);
            t.before = before.data();
            t.n_before = before.size();
            t.after = after.data();
            t.n_after = after.size();
            t.disabled = order.enabled ? 0 : 1;
        }
    };
    static std::vector<CarafeLayout> layouts(const std::vector<Layout> &list) {
        std::vector<CarafeLayout> all;
        for (const Layout &l : list)
            all.push_back({l.type, rank(l.blocks), l.blocks.data(), l.order.data(), l.in_place, l.constant});
        return all;
    }
};

inline CarafeStatus create_extensions(const CarafeHost *table, CarafeRegistrar *registrar,
                                      void (*fill)(Registrar &)) noexcept {
    if (!table || !registrar) return CARAFE_USAGE;
    host() = table;
    return guard([&] {
        Registrar r(registrar);
        fill(r);
    });
}

}  // namespace carafe

#include "carafe_device.hpp"

#endif /* CARAFE_HPP */
