/* The boundary between Carafe and its extension libraries and device plugins.
 * Printed from crates/abi/src/tables.rs; a test keeps both the same. Apache-2.0. */

#ifndef CARAFE_H
#define CARAFE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct CarafeInfer;
struct CarafeEval;
struct CarafeKernelIo;
struct CarafeNode;
struct CarafeGraph;
struct CarafeRegistrar;

// Libraries and engines with the same major number understand each other.
#define CARAFE_ABI_MAJOR 1

// Counts additions at the ends of tables.
#define CARAFE_ABI_MINOR 3

// First word of `carafe_abi`: tells a Carafe library from any other that exports `create_extensions`.
#define CARAFE_ABI_MAGIC 1179795779

#define CARAFE_OK 0

// The model, file or tensor is wrong.
#define CARAFE_INVALID 1

// Well formed, but nobody here can handle it.
#define CARAFE_UNSUPPORTED 2

// A name or value that does not exist. For a question, the answer "not known".
#define CARAFE_NOT_FOUND 3

// The operating system said no.
#define CARAFE_IO 4

// An interface was used wrongly.
#define CARAFE_USAGE 5

// A request is running and cannot be touched.
#define CARAFE_BUSY 6

// The work was cancelled.
#define CARAFE_CANCELLED 7

// A panic or an exception was stopped at the boundary.
#define CARAFE_PANIC 8

#define CARAFE_DYNAMIC 0

#define CARAFE_BOOLEAN 1

#define CARAFE_BF16 2

#define CARAFE_F16 3

#define CARAFE_F32 4

#define CARAFE_F64 5

#define CARAFE_I4 6

#define CARAFE_I8 7

#define CARAFE_I16 8

#define CARAFE_I32 9

#define CARAFE_I64 10

#define CARAFE_U1 11

#define CARAFE_U2 12

#define CARAFE_U3 13

#define CARAFE_U4 14

#define CARAFE_U6 15

#define CARAFE_U8 16

#define CARAFE_U16 17

#define CARAFE_U32 18

#define CARAFE_U64 19

#define CARAFE_NF4 20

#define CARAFE_F8E4M3 21

#define CARAFE_F8E5M2 22

#define CARAFE_F8E8M0 23

#define CARAFE_F4E2M1 24

#define CARAFE_STRING 25

#define CARAFE_F8E4M3FNUZ 26

#define CARAFE_F8E5M2FNUZ 27

#define CARAFE_I2 28

// As it stood in a text file, without a declared kind.
#define CARAFE_ATTR_TEXT 0

#define CARAFE_ATTR_BOOL 1

#define CARAFE_ATTR_INT 2

#define CARAFE_ATTR_FLOAT 3

#define CARAFE_ATTR_STR 4

#define CARAFE_ATTR_INTS 5

#define CARAFE_ATTR_FLOATS 6

#define CARAFE_ATTR_STRS 7

#define CARAFE_ATTR_TYPE 8

#define CARAFE_ATTR_TYPES 9

#define CARAFE_ATTR_SHAPE 10

#define CARAFE_ATTR_TENSOR 11

// Inputs may be swapped.
#define CARAFE_OP_COMMUTATIVE 1

// Two evaluations may differ; such a node is never folded.
#define CARAFE_OP_RANDOM 2

// Reads or writes a variable.
#define CARAFE_OP_STATEFUL 4

// Kept although nothing reads its output.
#define CARAFE_OP_SINK 8

// Takes attributes that it does not declare; they arrive as text.
#define CARAFE_OP_ANY_ATTRS 16

// Works on every element of the first input alone; further inputs are single numbers. This and the following: since 1.3.
#define CARAFE_OP_ELEMENTWISE 32

// Works on the elements of all inputs, broadcast together as NumPy does.
#define CARAFE_OP_BROADCASTS 64

// The first output has the shape of the first input.
#define CARAFE_OP_KEEPS_SHAPE 128

// Gives 0 for 0 and treats every channel alike.
#define CARAFE_OP_KEEPS_ZERO 256

// Done twice it gives what it gives once.
#define CARAFE_OP_IDEMPOTENT 512

// Done twice it gives back what it was given.
#define CARAFE_OP_INVOLUTION 1024

// Rounds to the numbers of a smaller type: the model is meant for one.
#define CARAFE_OP_QUANTIZES 2048

// Reads nothing of its inputs but their shapes.
#define CARAFE_OP_SHAPE_ONLY 4096

// Does so much work that preparing a kernel pays even for shapes that never come again.
#define CARAFE_OP_HEAVY 8192

// On the graph as decoded, before translation, for formats that have such a form (ONNX, Caffe). There `opset` of a node
// is the domain of the format, every name is an operation that `CarafeGraphFns::add` makes (with the attribute
// `carafe.n_outputs` when it has not one output), an input that is left out comes from a node `Nothing`, and a value that
// only a sub-graph reads comes through a node `Captured`.
#define CARAFE_PHASE_DECODED 0

// On the translated model, before anything else.
#define CARAFE_PHASE_FRONT 1

// Among the common passes.
#define CARAFE_PHASE_MIDDLE 2

// After the common passes, before the model is written or compiled.
#define CARAFE_PHASE_BACK 3

#define CARAFE_NO_MATCH 0

#define CARAFE_SKIPPED 1

#define CARAFE_DONE 2

// As the model says. Since 1.3, as all kinds of layouts.
#define CARAFE_LAYOUT_PLAIN 0

// Axis 1 last: N H W C for what the model calls N C H W.
#define CARAFE_LAYOUT_CHANNELS_LAST 1

// Axis 1 in blocks that lie innermost, the last one padded with zeros: nChw8c for 8.
#define CARAFE_LAYOUT_BLOCKED 2

// Any other.
#define CARAFE_LAYOUT_OTHER 3

#define CARAFE_RELU 1

// Smallest and largest value.
#define CARAFE_CLAMP 2

// Factor below zero.
#define CARAFE_LEAKY_RELU 3

// Factor of exp(x) - 1 below zero.
#define CARAFE_ELU 4

// Alpha and scale.
#define CARAFE_SELU 5

#define CARAFE_SIGMOID 6

#define CARAFE_TANH 7

// Beta of x * sigmoid(beta * x).
#define CARAFE_SWISH 8

#define CARAFE_HSWISH 9

#define CARAFE_HSIGMOID 10

// Alpha and beta of clamp(alpha * x + beta, 0, 1).
#define CARAFE_HARD_SIGMOID 11

#define CARAFE_GELU_ERF 12

#define CARAFE_GELU_TANH 13

#define CARAFE_MISH 14

#define CARAFE_SOFT_PLUS 15

#define CARAFE_SOFT_SIGN 16

#define CARAFE_ABS 32

#define CARAFE_NEGATIVE 33

#define CARAFE_EXP 34

#define CARAFE_LOG 35

#define CARAFE_SQRT 36

#define CARAFE_FLOOR 37

#define CARAFE_CEILING 38

#define CARAFE_ROUND_TO_EVEN 39

#define CARAFE_ROUND_AWAY 40

#define CARAFE_SIGN 41

#define CARAFE_SIN 42

#define CARAFE_COS 43

#define CARAFE_TAN 44

#define CARAFE_ASIN 45

#define CARAFE_ACOS 46

#define CARAFE_ATAN 47

#define CARAFE_SINH 48

#define CARAFE_COSH 49

#define CARAFE_ASINH 50

#define CARAFE_ACOSH 51

#define CARAFE_ATANH 52

#define CARAFE_ERF 53

#define CARAFE_ADD 64

#define CARAFE_SUBTRACT 65

#define CARAFE_MULTIPLY 66

#define CARAFE_DIVIDE 67

#define CARAFE_MAXIMUM 68

#define CARAFE_MINIMUM 69

#define CARAFE_POWER 70

#define CARAFE_SQUARED_DIFFERENCE 71

#define CARAFE_MOD 72

#define CARAFE_FLOOR_MOD 73

// The second operand is the slope below zero.
#define CARAFE_PRELU 74

// Limits of what is read, limits of the result, steps between them.
#define CARAFE_QUANTIZE 96

// What a library is built for. A library exports one such constant under the name `carafe_abi`; it is read before any
// code of the library is called.
typedef struct CarafeAbi {
    uint32_t magic;
    uint32_t major;
    uint32_t minor;
    // Size of a pointer in bytes.
    uint32_t pointer;
} CarafeAbi;

// A port of an operation's declaration.
typedef struct CarafePort {
    const char *name;
    // May be left out; only behind all required ports.
    uint32_t optional;
    // Stands for any number of ports; only as the last one.
    uint32_t variadic;
} CarafePort;

// Text by pointer and length; not terminated by zero.
typedef struct CarafeStr {
    const char *data;
    size_t len;
} CarafeStr;

// One dimension of a shape, known or within bounds.
typedef struct CarafeDim {
    int64_t min;
    // -1 when there is no upper bound; equal to `min` when the dimension is known.
    int64_t max;
    // Equal symbols mean equal dimensions; 0 for none.
    uint32_t symbol;
    uint32_t reserved;
} CarafeDim;

// A tensor in memory, row-major. For `CARAFE_STRING` the data are `CarafeStr` elements.
typedef struct CarafeTensor {
    uint32_t element_type;
    uint32_t rank;
    const size_t *shape;
    const void *data;
    size_t bytes;
} CarafeTensor;

// One attribute with its value. Which field holds it follows from `kind`: `i` for a bool (0 or 1), an integer and an
// element type; `f`; `s` for text and strings; for lists `n` elements at `ints`, `floats`, `strs` or `types`; a shape
// has `n` dimensions at `dims`, or `i` = -1 when its rank is unknown.
typedef struct CarafeAttr {
    struct CarafeStr name;
    uint32_t kind;
    uint32_t reserved;
    int64_t i;
    double f;
    struct CarafeStr s;
    size_t n;
    const int64_t *ints;
    const double *floats;
    const struct CarafeStr *strs;
    const uint32_t *types;
    const struct CarafeDim *dims;
    struct CarafeTensor tensor;
} CarafeAttr;

// An attribute of an operation's declaration.
typedef struct CarafeAttrInfo {
    const char *name;
    uint32_t kind;
    // 1: a node without it is refused.
    uint32_t required;
    // Value of a node without it; may be null.
    const struct CarafeAttr *default_value;
    const char *doc;
} CarafeAttrInfo;

// 0 is success. The text that belongs to a failure is set with `CarafeHost::set_error` before it is returned.
typedef int32_t CarafeStatus;

// Attributes in a row.
typedef struct CarafeAttrs {
    const struct CarafeAttr *list;
    size_t n;
} CarafeAttrs;

// What is known of a value: element type and partial shape.
typedef struct CarafeFact {
    uint32_t element_type;
    // -1 when the rank is unknown.
    int32_t rank;
    const struct CarafeDim *dims;
} CarafeFact;

typedef struct CarafeInferFns {
    size_t size;
    size_t (*n_inputs)(struct CarafeInfer *cx);
    CarafeStatus (*input)(struct CarafeInfer *cx, size_t input, struct CarafeFact *fact);
    // The elements of an input where they are known, otherwise `CARAFE_NOT_FOUND`.
    CarafeStatus (*value)(struct CarafeInfer *cx, size_t input, struct CarafeTensor *tensor);
    // The elements of an integer input as intervals, otherwise `CARAFE_NOT_FOUND`.
    CarafeStatus (*intervals)(struct CarafeInfer *cx, size_t input, const struct CarafeDim **dims, size_t *n);
    CarafeStatus (*set_output)(struct CarafeInfer *cx, size_t output, const struct CarafeFact *fact);
    // Says the elements of an output, after `set_output`.
    CarafeStatus (*set_value)(struct CarafeInfer *cx, size_t output, const struct CarafeTensor *tensor);
    // Says the elements of an integer output of static shape as intervals, after `set_output`.
    CarafeStatus (*set_intervals)(struct CarafeInfer *cx,
                                  size_t output,
                                  const struct CarafeDim *dims,
                                  size_t n);
    // A symbol that only this axis of this node has.
    uint32_t (*symbol)(struct CarafeInfer *cx, size_t axis);
    // 1 when every shape is exact and an evaluation follows.
    uint32_t (*exact)(struct CarafeInfer *cx);
} CarafeInferFns;

// What `infer` of an operation sees and fills in. What it hands out is valid until `infer` returns. Threads take turns at
// it.
typedef struct CarafeInfer {
    const struct CarafeInferFns *fns;
} CarafeInfer;

// Gives memory back to the side that made it. Called once, on any thread. The rule for all memory that is given with such
// a function: a call that succeeds takes the memory, and the taker calls `release`; a call that fails takes nothing, the
// memory stays with the caller and `release` is not called.
typedef void (*CarafeRelease)(void *owner);

typedef struct CarafeEvalFns {
    size_t size;
    size_t (*n_inputs)(struct CarafeEval *cx);
    CarafeStatus (*input)(struct CarafeEval *cx, size_t input, struct CarafeTensor *tensor);
    size_t (*n_outputs)(struct CarafeEval *cx);
    // What was inferred for an output; an unknown dimension is decided by the evaluation.
    CarafeStatus (*output_fact)(struct CarafeEval *cx, size_t output, struct CarafeFact *fact);
    // Makes the memory of an output, zeroed, for numbers of a whole number of bytes. Once for each output: the memory is in
    // the author's hands until `eval` returns, so nothing else can take its place.
    CarafeStatus (*output)(struct CarafeEval *cx,
                           size_t output,
                           uint32_t element_type,
                           uint32_t rank,
                           const size_t *shape,
                           void **data);
    // Sets an output by copying a tensor; the way for strings.
    CarafeStatus (*set_output)(struct CarafeEval *cx, size_t output, const struct CarafeTensor *tensor);
    // Sets an output without copying: the memory stays with its maker until `release(owner)` is called. When the call
    // fails, the memory is still the author's and `release` is not called; a null `release` is refused.
    CarafeStatus (*give_output)(struct CarafeEval *cx,
                                size_t output,
                                const struct CarafeTensor *tensor,
                                void *owner,
                                CarafeRelease release);
    // An output that is an input, not copied.
    CarafeStatus (*forward)(struct CarafeEval *cx, size_t output, size_t input);
    // Keeps the memory of an input alive after `eval` returns, until `CarafeHost::drop_owner`.
    CarafeStatus (*keep_input)(struct CarafeEval *cx, size_t input, void **owner);
    // Name of the node.
    CarafeStatus (*name)(struct CarafeEval *cx, struct CarafeStr *name);
    // Value of a variable, or `CARAFE_NOT_FOUND`.
    CarafeStatus (*variable)(struct CarafeEval *cx, struct CarafeStr id, struct CarafeTensor *tensor);
    CarafeStatus (*assign)(struct CarafeEval *cx, struct CarafeStr id, const struct CarafeTensor *tensor);
} CarafeEvalFns;

// What `eval` of an operation sees and fills in. What it hands out is valid until `eval` returns. Threads take turns at
// it, so that the parts of a loop may ask.
typedef struct CarafeEval {
    const struct CarafeEvalFns *fns;
} CarafeEval;

// An operation. One table serves all its nodes; `create` makes what a node needs beyond it.
typedef struct CarafeOp {
    size_t size;
    uint32_t abi;
    uint32_t flags;
    const char *name;
    // Name of the opset; null for `extension`. The name of a numbered opset replaces the built-in operation.
    const char *opset;
    const char *doc;
    const struct CarafePort *inputs;
    size_t n_inputs;
    const struct CarafePort *outputs;
    size_t n_outputs;
    const struct CarafeAttrInfo *attrs;
    size_t n_attrs;
    // Handed to `create`.
    void *user;
    // Makes the instance of a node from its attributes; may be null, then `user` is the instance.
    CarafeStatus (*create)(void *user, struct CarafeAttrs attrs, void **instance);
    // Types and shapes of the outputs. Also the place where a bad node is refused.
    CarafeStatus (*infer)(const void *instance, struct CarafeInfer *cx);
    // Computes the outputs; may be null, then a kernel must run the node. Called by several threads at once.
    CarafeStatus (*eval)(const void *instance, struct CarafeEval *cx);
    // Ends an instance that `create` made.
    void (*release)(void *instance);
    // Attributes as the instance has them, valid as long as it lives; null when they are the declared ones.
    CarafeStatus (*instance_attrs)(const void *instance, struct CarafeAttrs *attrs);
    // Inputs whose elements are only moved; lets partial shape values flow through.
    const size_t *moves;
    size_t n_moves;
    // Since 1.2. Whether the instance has an evaluation, where a class that has `eval` may be without; null when all have.
    uint32_t (*evaluates)(const void *instance);
    // Since 1.2. Places in `attrs` of those that are internal: used while converting and running, never written to the
    // files of an IR. None of them can be required; a node that was read from a file has the default.
    const size_t *internal_attrs;
    size_t n_internal_attrs;
    // Since 1.3. Inputs that decide the shape of an output; what flows into them keeps its precision.
    const size_t *shape_inputs;
    size_t n_shape_inputs;
    // Since 1.3. Inputs whose rows (parts along the first axis) stay apart, each giving a row of every output, while all other
    // inputs are the same for all rows; lets BATCH run requests together.
    const size_t *rows;
    size_t n_rows;
    // Since 1.3. Multiply-accumulates of a node with these inputs and outputs, `CARAFE_NOT_FOUND` where a size that counts is
    // not known; may be null, then none.
    CarafeStatus (*macs)(const void *instance,
                         const struct CarafeFact *inputs,
                         size_t n_inputs,
                         const struct CarafeFact *outputs,
                         size_t n_outputs,
                         uint64_t *macs);
} CarafeOp;

// One output of one node.
typedef struct CarafeValue {
    uint32_t node;
    uint32_t port;
} CarafeValue;

typedef struct CarafeNodeFns {
    size_t size;
    CarafeStatus (*op_type)(struct CarafeNode *cx, struct CarafeStr *text);
    CarafeStatus (*domain)(struct CarafeNode *cx, struct CarafeStr *text);
    CarafeStatus (*name)(struct CarafeNode *cx, struct CarafeStr *text);
    // Version of the operation set that the model imports for the domain.
    int64_t (*version)(struct CarafeNode *cx);
    size_t (*n_inputs)(struct CarafeNode *cx);
    // `CARAFE_NOT_FOUND` when the input was left out.
    CarafeStatus (*input)(struct CarafeNode *cx, size_t input, struct CarafeValue *value);
    // How many values a named port holds, for formats with named ports.
    size_t (*n_inputs_named)(struct CarafeNode *cx, struct CarafeStr port);
    CarafeStatus (*input_named)(struct CarafeNode *cx,
                                struct CarafeStr port,
                                size_t index,
                                struct CarafeValue *value);
    size_t (*n_outputs)(struct CarafeNode *cx);
    CarafeStatus (*output_name)(struct CarafeNode *cx, size_t output, struct CarafeStr *text);
    // All attributes; counts as reading them.
    CarafeStatus (*attrs)(struct CarafeNode *cx, struct CarafeAttrs *attrs);
    // One attribute, or `CARAFE_NOT_FOUND`. Attributes that a rule does not ask for have no effect, which a warning says.
    CarafeStatus (*attr)(struct CarafeNode *cx, struct CarafeStr name, struct CarafeAttr *attr);
    // What is known of a value.
    CarafeStatus (*fact)(struct CarafeNode *cx, struct CarafeValue value, struct CarafeFact *fact);
    // The elements of a value where they are known, otherwise `CARAFE_NOT_FOUND`.
    CarafeStatus (*constant_of)(struct CarafeNode *cx, struct CarafeValue value, struct CarafeTensor *tensor);
    // Adds a node. `op` is `Type`, `opsetN::Type` or `opset_name::Type`. Gives its first output; the others have the
    // same node and the ports 1, 2, ...
    CarafeStatus (*emit)(struct CarafeNode *cx,
                         struct CarafeStr op,
                         const struct CarafeValue *inputs,
                         size_t n_inputs,
                         struct CarafeAttrs attrs,
                         struct CarafeValue *first);
    CarafeStatus (*constant)(struct CarafeNode *cx,
                             const struct CarafeTensor *tensor,
                             struct CarafeValue *value);
    // Says what the source node's output is; every output that the model uses needs one.
    CarafeStatus (*set_output)(struct CarafeNode *cx, size_t output, struct CarafeValue value);
    // Number of sub-graphs among the attributes, and the name of each.
    size_t (*n_graphs)(struct CarafeNode *cx);
    CarafeStatus (*graph_name)(struct CarafeNode *cx, size_t graph, struct CarafeStr *text);
    // Puts the nodes of a sub-graph into the model, with these values for its inputs.
    CarafeStatus (*inline_graph)(struct CarafeNode *cx,
                                 struct CarafeStr name,
                                 const struct CarafeValue *inputs,
                                 size_t n_inputs,
                                 struct CarafeValue *outputs,
                                 size_t *n_outputs);
    // Since 1.2. Says that an attribute was not read after all, for whoever asked for all of them to look for a few. What no rule of
    // an extension reads is told in a warning.
    CarafeStatus (*leave_attr)(struct CarafeNode *cx, struct CarafeStr name);
} CarafeNodeFns;

// A node of a source file being translated. What it hands out is valid until the rule returns. Threads take turns at it.
typedef struct CarafeNode {
    const struct CarafeNodeFns *fns;
} CarafeNode;

// A translator from one operation of a source format to nodes: a conversion extension.
typedef struct CarafeRule {
    size_t size;
    uint32_t abi;
    uint32_t reserved;
    // `onnx`, `tensorflow`, `tflite`, `caffe`, `mxnet`, `kaldi`, `paddle`; null for all.
    const char *framework;
    // Null for every domain, "" for the default one.
    const char *domain;
    const char *op_type;
    // First version of the operation set it is for; 1 for all.
    int64_t since;
    void *user;
    CarafeStatus (*convert)(void *user, struct CarafeNode *cx);
} CarafeRule;

// Two names.
typedef struct CarafePair {
    const char *first;
    const char *second;
} CarafePair;

// An attribute that a source format gives as a constant input.
typedef struct CarafeInputAttr {
    const char *attr;
    size_t input;
} CarafeInputAttr;

// One operation of a source format as one operation of ours, told by data alone: an op extension.
typedef struct CarafeMapping {
    size_t size;
    uint32_t abi;
    uint32_t reserved;
    // As in `CarafeRule`.
    const char *framework;
    const char *domain;
    // Type in the source format; null when it is that of `op`.
    const char *op_type;
    // `Type`, `opsetN::Type`, `opsetN.Type` or `opset_name::Type`.
    const char *op;
    // Our attribute, source attribute. An attribute that is not here has the same name in both.
    const struct CarafePair *attr_names;
    size_t n_attr_names;
    // Attributes with fixed values.
    struct CarafeAttrs attr_values;
    // Attributes that come from constant inputs; inputs from the first of them on are not inputs of our operation.
    const struct CarafeInputAttr *input_attrs;
    size_t n_input_attrs;
    // Ports by name, for formats that have them; null when inputs are taken in order.
    const char *const *input_names;
    size_t n_input_names;
    const char *const *output_names;
    size_t n_output_names;
} CarafeMapping;

// A node as others see it.
typedef struct CarafeNodeInfo {
    struct CarafeStr name;
    struct CarafeStr op_type;
    struct CarafeStr opset;
    size_t n_inputs;
    size_t n_outputs;
} CarafeNodeInfo;

// One input of one node.
typedef struct CarafeUse {
    uint32_t node;
    uint32_t input;
} CarafeUse;

// Bytes of the weights that begin at `offset`.
typedef struct CarafeBuffer {
    uint64_t offset;
    const void *data;
    size_t bytes;
} CarafeBuffer;

// Takes text or bytes in parts.
typedef CarafeStatus (*CarafeWrite)(void *sink, const void *data, size_t bytes);

typedef struct CarafeGraphFns {
    size_t size;
    // Ids of all nodes, producers before consumers.
    CarafeStatus (*nodes)(struct CarafeGraph *g, const uint32_t **ids, size_t *n);
    CarafeStatus (*parameters)(struct CarafeGraph *g, const uint32_t **ids, size_t *n);
    CarafeStatus (*results)(struct CarafeGraph *g, const uint32_t **ids, size_t *n);
    CarafeStatus (*node)(struct CarafeGraph *g, uint32_t id, struct CarafeNodeInfo *info);
    CarafeStatus (*attrs)(struct CarafeGraph *g, uint32_t id, struct CarafeAttrs *attrs);
    CarafeStatus (*input)(struct CarafeGraph *g, uint32_t id, size_t input, struct CarafeValue *value);
    CarafeStatus (*fact)(struct CarafeGraph *g, struct CarafeValue value, struct CarafeFact *fact);
    // The tensor of a constant, otherwise `CARAFE_NOT_FOUND`.
    CarafeStatus (*constant_of)(struct CarafeGraph *g, struct CarafeValue value, struct CarafeTensor *tensor);
    CarafeStatus (*users)(struct CarafeGraph *g,
                          struct CarafeValue value,
                          const struct CarafeUse **uses,
                          size_t *n);
    // A text of the node's runtime information, such as `affinity`, or `CARAFE_NOT_FOUND`.
    CarafeStatus (*info)(struct CarafeGraph *g, uint32_t id, struct CarafeStr key, struct CarafeStr *text);
    CarafeStatus (*set_info)(struct CarafeGraph *g, uint32_t id, struct CarafeStr key, struct CarafeStr text);
    // Adds a node; `op` as in `CarafeNodeFns::emit`.
    CarafeStatus (*add)(struct CarafeGraph *g,
                        struct CarafeStr name,
                        struct CarafeStr op,
                        const struct CarafeValue *inputs,
                        size_t n_inputs,
                        struct CarafeAttrs attrs,
                        uint32_t *id);
    CarafeStatus (*add_constant)(struct CarafeGraph *g,
                                 struct CarafeStr name,
                                 const struct CarafeTensor *tensor,
                                 struct CarafeValue *value);
    // Lets every user of `old` read `new`; tensor names move along.
    CarafeStatus (*replace)(struct CarafeGraph *g, struct CarafeValue old, struct CarafeValue new_value);
    CarafeStatus (*set_input)(struct CarafeGraph *g, uint32_t id, size_t input, struct CarafeValue value);
    CarafeStatus (*set_name)(struct CarafeGraph *g, uint32_t id, struct CarafeStr name);
    // Removes a node that nothing uses.
    CarafeStatus (*remove)(struct CarafeGraph *g, uint32_t id);
    // Computes one node by its reference evaluation; the outputs are filled through `out`: `give_output`, or `set_output`
    // for strings. A node that reads or writes variables also uses `variable` and `assign` of `out`; without them it
    // fails. A retained model may be used by several threads at once for this.
    CarafeStatus (*evaluate)(struct CarafeGraph *g,
                             uint32_t id,
                             const struct CarafeTensor *inputs,
                             size_t n_inputs,
                             struct CarafeEval *out);
    // The whole model as IR text, and where its weights lie: `offset` and `size` attributes of the text name places in
    // a sequence of buffers.
    CarafeStatus (*ir)(struct CarafeGraph *g,
                       struct CarafeStr *xml,
                       const struct CarafeBuffer **buffers,
                       size_t *n);
    // The model as it is now, to be kept and asked after the callback; ended by `release`. What the graph itself handed
    // out is not kept: ask the retained one. Null on failure.
    struct CarafeGraph *(*retain)(struct CarafeGraph *g);
    void (*release)(struct CarafeGraph *g);
    // An empty model that can be filled, with the same operations at hand; ended by `release`. A device evaluates
    // operations of others through it. Null on failure.
    struct CarafeGraph *(*scratch)(struct CarafeGraph *g);
    // Names of the operations outside of the numbered opsets, as `opset::Type`.
    CarafeStatus (*ops)(struct CarafeGraph *g, const struct CarafeStr **names, size_t *n);
    // Tensor names of a value; of a result, those of the model's output.
    CarafeStatus (*tensor_names)(struct CarafeGraph *g,
                                 struct CarafeValue value,
                                 const struct CarafeStr **names,
                                 size_t *n);
    // Since 1.2. Name of the model.
    CarafeStatus (*model_name)(struct CarafeGraph *g, struct CarafeStr *name);
    // Since 1.2. `CARAFE_OK` when `evaluate` can run the node, `CARAFE_UNSUPPORTED` when its operation is unknown or has
    // no evaluation, with the reason as the text of the failure.
    CarafeStatus (*can_evaluate)(struct CarafeGraph *g, uint32_t id);
    // Since 1.2. Reads back what `ir` gave: a model with the operations of `g` at hand, ended by `release`. The text and
    // the weights are copied. It is shown as a model is to a device: it cannot be changed, but copied.
    CarafeStatus (*read_ir)(struct CarafeGraph *g,
                            struct CarafeStr xml,
                            const struct CarafeBuffer *buffers,
                            size_t n,
                            struct CarafeGraph **model);
    // Since 1.2. A copy of the model that can be changed, ended by `release`; weights are shared.
    CarafeStatus (*copy)(struct CarafeGraph *g, struct CarafeGraph **model);
    // Since 1.2. Writes the model as IR text without weights: what `CarafeCompiled::runtime_model` must write. What runs
    // a node is told by `set_info` of `execOrder` and `primitiveType`.
    CarafeStatus (*write_text)(struct CarafeGraph *g, CarafeWrite write, void *sink);
} CarafeGraphFns;

// A model being looked at or rewritten.
//
// Threads: every function may be called by any thread; they take turns, but `evaluate` computes outside of its turn, so
// several nodes are evaluated at once. A graph cannot be used from inside of a call to itself, as when an operation that
// `add` makes uses the graph it is added to; that is refused.
//
// Lifetimes: what the getters hand out is valid until the callback returns, and for a retained graph until its `release`.
// Asked again, a getter gives the same memory, so a graph that does not change needs no more memory however often it is
// asked. A change does not touch what was handed out before it. A graph of `scratch` or `copy` hands out what is valid
// until its last node is removed: then it begins anew, also with its ids.
typedef struct CarafeGraph {
    const struct CarafeGraphFns *fns;
} CarafeGraph;

// A rewrite of models: `run` for the whole model, or `at` for one node at a time.
typedef struct CarafePass {
    size_t size;
    uint32_t abi;
    uint32_t phase;
    const char *name;
    // Names of rewrites that this one runs before or after.
    const char *const *before;
    size_t n_before;
    const char *const *after;
    size_t n_after;
    void *user;
    // Rewrites the model; says how often it fired.
    CarafeStatus (*run)(void *user, struct CarafeGraph *g, size_t *fired);
    // Type of the root node for `at`; null for every node.
    const char *root;
    // Looks at one node; `outcome` becomes one of `CARAFE_NO_MATCH`, `CARAFE_SKIPPED` (the reason by `set_error`) and
    // `CARAFE_DONE`.
    CarafeStatus (*at)(void *user, struct CarafeGraph *g, uint32_t id, uint32_t *outcome);
    // Since 1.1: 1 when it runs only if the user asks for it by name.
    size_t disabled;
} CarafePass;

// A layout by kind. Since 1.3.
typedef struct CarafeLayoutKind {
    // One of `CARAFE_LAYOUT_*`.
    uint32_t kind;
    // Elements of a block.
    uint32_t block;
} CarafeLayoutKind;

// One elementwise operation behind a node. Since 1.3.
typedef struct CarafeEpilogueOp {
    // One of the functions above.
    uint32_t function;
    uint32_t n_operands;
    // Constants of the function.
    const double *numbers;
    size_t n_numbers;
    // An operand from 0 on is an input of the site: of the shape of the result, one number, or one number for each index of
    // axis 1. -1 is what the node gives, -2 what the first operation of the epilogue gives, and so on.
    const int64_t *operands;
} CarafeEpilogueOp;

// What the configuration that was offered last asks for besides its layouts. Since 1.3.
typedef struct CarafeNeeds {
    size_t size;
    // How many operations of the epilogue the kernel does, from the first on. Its inputs are then those of the node and the
    // operands of these.
    size_t epilogue;
    // Bytes of memory for itself while it runs.
    size_t workspace;
    // Bytes of memory for each thread of `CarafeKernelIo::each`.
    size_t scratch;
} CarafeNeeds;

// Takes the needs of the configuration that was offered last. Since 1.3.
typedef CarafeStatus (*CarafeNeedsSink)(void *sink, const struct CarafeNeeds *needs);

// The node that a kernel is asked about: exact types, shapes as far as they are known.
typedef struct CarafeSite {
    size_t size;
    struct CarafeStr name;
    struct CarafeStr op_type;
    struct CarafeStr opset;
    struct CarafeAttrs attrs;
    const struct CarafeFact *inputs;
    size_t n_inputs;
    const struct CarafeFact *outputs;
    size_t n_outputs;
    // Since 1.3. Null, or for each input its value where it is a constant, else null.
    const struct CarafeTensor *const *constants;
    // Since 1.3. Layouts that cost the device little: values lie in them between its own steps. Others are copied.
    const struct CarafeLayoutKind *layouts;
    size_t n_layouts;
    // Since 1.3. Null, or how each input lies now.
    const struct CarafeLayoutKind *input_layouts;
    // Since 1.3. Elementwise work that follows output 0 and that the kernel may take. Operands of it stand behind the inputs of
    // the node, in its order.
    const struct CarafeEpilogueOp *epilogue;
    size_t n_epilogue;
    // Since 1.3. Called after an offer, with the sink of `configs`; null where the device has no such memory to give.
    CarafeNeedsSink needs;
} CarafeSite;

// Memory form of one port of a kernel. Axis `order[k]` of the tensor is laid out as dimension `k` of `blocks`; a blocked
// layout such as nChw8c repeats the axis: order 0 1 2 3 1, blocks N C/8 H W 8.
typedef struct CarafeLayout {
    uint32_t element_type;
    // 0 for plain row-major, where `blocks` and `order` are not looked at.
    uint32_t rank;
    const size_t *blocks;
    const size_t *order;
    // Outputs: the input whose memory it may use, or -1.
    int32_t in_place;
    // Inputs: 1 when the value must be a constant.
    uint32_t constant;
} CarafeLayout;

// One way in which a kernel can run a node.
typedef struct CarafeConfig {
    const struct CarafeLayout *inputs;
    size_t n_inputs;
    const struct CarafeLayout *outputs;
    size_t n_outputs;
} CarafeConfig;

// Takes the configurations of a kernel.
typedef CarafeStatus (*CarafeConfigSink)(void *sink, const struct CarafeConfig *config);

// Memory of an output. Since 1.3.
typedef struct CarafeOutput {
    uint32_t element_type;
    uint32_t rank;
    const size_t *shape;
    void *data;
    size_t bytes;
} CarafeOutput;

// A part of a kernel's loop, with the scratch of the thread that runs it. A failure sets its text on that thread. Since 1.3.
typedef CarafeStatus (*CarafePart)(void *user, size_t part, void *scratch, size_t scratch_bytes);

// What a kernel reads and writes while it runs: memory that the device planned, lent for the call. Since 1.3.
typedef struct CarafeKernelIo {
    size_t size;
    // Inputs in the forms of the configuration, a blocked one with its blocks as shape.
    const struct CarafeTensor *inputs;
    size_t n_inputs;
    // Memory to fill, in the forms of the configuration; it holds anything before. Where the configuration allows it, the
    // memory of output 0 is that of an input.
    const struct CarafeOutput *outputs;
    size_t n_outputs;
    // As large as the configuration asked for; it holds anything before.
    void *workspace;
    size_t workspace_bytes;
    // Threads of this inference.
    size_t threads;
    // Calls `body` once for each part from 0 on, on these threads, and returns when all are done. Gives the first failure.
    CarafeStatus (*each)(const struct CarafeKernelIo *io, size_t parts, CarafePart body, void *user);
} CarafeKernelIo;

// A fast kernel for an operation on a device. The device chooses one of the configurations, calls `init` with it and
// then `run`, or `execute`, with memory in the chosen form. What `execute` gives in another form than that is an error.
typedef struct CarafeKernel {
    size_t size;
    uint32_t abi;
    uint32_t reserved;
    const char *device;
    const char *op;
    // Null for every opset.
    const char *opset;
    // Shown in reports.
    const char *name;
    void *user;
    // Offers configurations, the best first; none declines the node.
    CarafeStatus (*configs)(void *user, const struct CarafeSite *site, CarafeConfigSink offer, void *sink);
    // Makes the kernel of a node for the configuration with this number.
    CarafeStatus (*init)(void *user, const struct CarafeSite *site, size_t config, void **kernel);
    // Inputs arrive in the chosen form, a blocked one with its blocks as shape; outputs are made in the chosen form
    // likewise. `output_fact` tells the plain shape. One call at a time for each kernel that `init` made; a device that wants
    // more makes more. May be null where `run` is not: then the kernel takes only nodes whose results have known shapes.
    CarafeStatus (*execute)(void *kernel, struct CarafeEval *cx);
    void (*release)(void *kernel);
    // Since 1.3. Runs in memory that the device planned, without copies. Called by several threads at once for one kernel.
    CarafeStatus (*run)(const void *kernel, const struct CarafeKernelIo *io);
    // Since 1.3. 1 when the kernel may take elementwise work that follows; only then is it asked with an epilogue.
    uint32_t fuses;
    uint32_t reserved2;
} CarafeKernel;

// OpenCL source for an operation on GPU or VPU: the text of the custom-layer description and of the kernel file.
typedef struct CarafeClKernel {
    size_t size;
    uint32_t abi;
    uint32_t reserved;
    // `GPU` or `VPU`.
    const char *device;
    // The `<CustomLayer>` element as it would stand in the .xml file.
    const char *xml;
    // Kernel source; files that the description names are looked up in this text first.
    const char *source;
} CarafeClKernel;

// Hears of progress: part done (0 to 1), steps in all, steps done.
typedef struct CarafeProgress {
    size_t size;
    uint32_t abi;
    uint32_t reserved;
    void *user;
    void (*progress)(void *user, float part, uint32_t total, uint32_t done);
} CarafeProgress;

// Hears of events: `kind` is `event`, `error` or `stack_trace`.
typedef struct CarafeTelemetry {
    size_t size;
    uint32_t abi;
    uint32_t reserved;
    void *user;
    void (*send)(void *user,
                 struct CarafeStr kind,
                 struct CarafeStr category,
                 struct CarafeStr action,
                 struct CarafeStr label,
                 int64_t value);
} CarafeTelemetry;

// A part of a loop: the indices `begin..end`.
typedef void (*CarafeLoop)(void *user, size_t begin, size_t end);

// A part of a loop that can fail; its text is set with `CarafeHost::set_error` on the thread of the part. Since 1.2.
typedef CarafeStatus (*CarafeTryLoop)(void *user, size_t begin, size_t end);

// What the engine offers to libraries. Lives until the process ends.
typedef struct CarafeHost {
    size_t size;
    uint32_t major;
    uint32_t minor;
    // Version of the engine.
    struct CarafeStr version;
    // Sets the text of the failure that this thread is about to return.
    void (*set_error)(struct CarafeStr text);
    // Text of the failure that the last call of this thread returned; valid until the next call.
    void (*last_error)(struct CarafeStr *text);
    // Runs `body` over `0..n` in parts on the engine's threads and waits for all of them. A body that can fail goes to
    // `try_parallel_for`.
    void (*parallel_for)(size_t n, CarafeLoop body, void *user);
    // Ends what `keep_input` gave.
    void (*drop_owner)(void *owner);
    // A line for the user: level 0 error, 1 warning, 2 info, 3 debug.
    void (*log)(uint32_t level, struct CarafeStr text);
    // Since 1.2: as `parallel_for`, with a body that can fail. Gives the first failure, with its text; parts that did not
    // begin before it are left out.
    CarafeStatus (*try_parallel_for)(size_t n, CarafeTryLoop body, void *user);
} CarafeHost;

// A part of a graph that an entry of a replacement file names. Everything is lent for the call.
typedef struct CarafeMatch {
    size_t size;
    // The scope, or the name of the replacement.
    struct CarafeStr name;
    // Values that come in and go out, in the order of the user's lists.
    const struct CarafeValue *inputs;
    size_t n_inputs;
    const struct CarafeValue *outputs;
    size_t n_outputs;
    // Everything between; none when the whole graph is meant.
    const uint32_t *nodes;
    size_t n_nodes;
    // What the user wants the replacement to know (`custom_attributes`), and the same as JSON.
    struct CarafeAttrs attrs;
    struct CarafeStr json;
} CarafeMatch;

// Puts something in place of what an entry of a replacement file names. Since 1.1.
typedef struct CarafeReplacement {
    size_t size;
    uint32_t abi;
    uint32_t reserved;
    // The `id` of the entries it is for.
    const char *id;
    void *user;
    // Adds nodes and lets users of the match's outputs read them; what nothing needs any more is removed afterwards. The
    // graph is the one of `CARAFE_PHASE_DECODED` in formats that have it; there an operation of the engine or of an
    // extension is added as `carafe.replacement::opset::Type`.
    CarafeStatus (*replace)(void *user, struct CarafeGraph *g, const struct CarafeMatch *found);
} CarafeReplacement;

typedef struct CarafeRegistrarFns {
    size_t size;
    // Name and version of the extension, for listings and for models that need it.
    CarafeStatus (*describe)(struct CarafeRegistrar *r, struct CarafeStr name, struct CarafeStr version);
    CarafeStatus (*add_op)(struct CarafeRegistrar *r, const struct CarafeOp *op);
    CarafeStatus (*add_rule)(struct CarafeRegistrar *r, const struct CarafeRule *rule);
    CarafeStatus (*add_mapping)(struct CarafeRegistrar *r, const struct CarafeMapping *mapping);
    CarafeStatus (*add_pass)(struct CarafeRegistrar *r, const struct CarafePass *pass);
    CarafeStatus (*add_kernel)(struct CarafeRegistrar *r, const struct CarafeKernel *kernel);
    CarafeStatus (*add_cl_kernel)(struct CarafeRegistrar *r, const struct CarafeClKernel *kernel);
    CarafeStatus (*add_progress)(struct CarafeRegistrar *r, const struct CarafeProgress *progress);
    CarafeStatus (*add_telemetry)(struct CarafeRegistrar *r, const struct CarafeTelemetry *telemetry);
    // Since 1.1.
    CarafeStatus (*add_replacement)(struct CarafeRegistrar *r, const struct CarafeReplacement *replacement);
} CarafeRegistrarFns;

// Takes what a library brings. Handed to `create_extensions`, valid during that call; later uses are refused. Tables, lists and texts given to it
// are copied; functions and `user` pointers must live as long as the library.
typedef struct CarafeRegistrar {
    const struct CarafeRegistrarFns *fns;
} CarafeRegistrar;

// One row of a device's property table.
typedef struct CarafeProperty {
    const char *name;
    // 0 text, 1 bool, 2 integer from `min` to `max`, 3 one of `words`.
    uint32_t kind;
    // 1 when it can be set.
    uint32_t writable;
    int64_t min;
    int64_t max;
    const char *const *words;
    size_t n_words;
    const char *default_value;
    const char *doc;
} CarafeProperty;

typedef struct CarafeSetting {
    struct CarafeStr name;
    struct CarafeStr value;
} CarafeSetting;

// Properties in force, as text.
typedef struct CarafeProperties {
    const struct CarafeSetting *list;
    size_t n;
} CarafeProperties;

// Takes the answer about one node: `reason` is empty when the device takes it.
typedef CarafeStatus (*CarafeAnswer)(void *sink, uint32_t node, struct CarafeStr reason);

// An input or output of a compiled model.
typedef struct CarafeModelPort {
    struct CarafeStr name;
    // All tensor names.
    const struct CarafeStr *names;
    size_t n_names;
    struct CarafeFact fact;
} CarafeModelPort;

// What one node did in the last inference.
typedef struct CarafeProfile {
    struct CarafeStr name;
    struct CarafeStr op_type;
    struct CarafeStr kernel;
    // 0 not run, 1 optimised out, 2 executed.
    uint32_t status;
    uint32_t reserved;
    uint64_t real_ns;
    uint64_t cpu_ns;
} CarafeProfile;

typedef CarafeStatus (*CarafeProfileSink)(void *sink, const struct CarafeProfile *row);

// One inference at a time. Used by one thread at a time, but for `cancel`.
typedef struct CarafeRequest {
    size_t size;
    uint32_t abi;
    uint32_t reserved;
    void *instance;
    // Binds memory without copying; it stays with the caller until `release(owner)` is called. A device that answers with
    // a failure has taken nothing and does not call `release`.
    CarafeStatus (*set_input)(void *request,
                              size_t input,
                              const struct CarafeTensor *tensor,
                              void *owner,
                              CarafeRelease release);
    CarafeStatus (*infer)(void *request);
    // Output of the last inference; the memory lives until the next inference, or until `release(owner)` when an owner
    // is given. Type and shape must agree with the port.
    CarafeStatus (*output)(void *request,
                           size_t output,
                           struct CarafeTensor *tensor,
                           void **owner,
                           void (**release)(void *owner));
    // Stops a running inference between two nodes; called from another thread.
    void (*cancel)(void *request);
    CarafeStatus (*profile)(void *request, CarafeProfileSink row, void *sink);
    // Writes the ids of the variables, each ended by a zero byte.
    CarafeStatus (*variables)(void *request, CarafeWrite write, void *sink);
    // `CARAFE_NOT_FOUND` before the first assignment; the memory lives until the next call.
    CarafeStatus (*variable)(void *request, struct CarafeStr id, struct CarafeTensor *tensor);
    CarafeStatus (*set_variable)(void *request, struct CarafeStr id, const struct CarafeTensor *tensor);
    void (*reset)(void *request);
    void (*release)(void *request);
    // Stages of an inference, each ended by a zero byte, name and executor in turn; null for a single one.
    CarafeStatus (*stages)(void *request, CarafeWrite write, void *sink);
    CarafeStatus (*run_stage)(void *request, size_t stage);
} CarafeRequest;

// A model made ready for one device. The device fills in the table in `compile` and `import`; `size` and `abi` are set by
// the caller beforehand. Called by several threads at once.
typedef struct CarafeCompiled {
    size_t size;
    uint32_t abi;
    uint32_t reserved;
    void *instance;
    // Ports live as long as the compiled model. They are those of the model: as many, in the same order, of types and
    // shapes that agree with its.
    const struct CarafeModelPort *inputs;
    size_t n_inputs;
    const struct CarafeModelPort *outputs;
    size_t n_outputs;
    CarafeStatus (*property)(void *compiled, struct CarafeStr name, CarafeWrite write, void *sink);
    // The graph that really runs, as IR text without weights; null when there is none.
    CarafeStatus (*runtime_model)(void *compiled, CarafeWrite write, void *sink);
    CarafeStatus (*export_to)(void *compiled, CarafeWrite write, void *sink);
    CarafeStatus (*create_request)(void *compiled, struct CarafeRequest *request);
    void (*release)(void *compiled);
} CarafeCompiled;

// A device.
typedef struct CarafeDevice {
    size_t size;
    uint32_t abi;
    uint32_t n_properties;
    // Shown where no other name was given.
    const char *name;
    const char *version;
    const char *description;
    const struct CarafeProperty *properties;
    void *instance;
    // Writes the value of a read-only property.
    CarafeStatus (*metric)(void *device, struct CarafeStr name, CarafeWrite write, void *sink);
    // Says for every node whether the device takes it. An answer about a node that the model does not have, or a second
    // one that says otherwise, is an error.
    CarafeStatus (*query)(void *device,
                          struct CarafeGraph *g,
                          struct CarafeProperties properties,
                          CarafeAnswer answer,
                          void *sink);
    CarafeStatus (*compile)(void *device,
                            struct CarafeGraph *g,
                            struct CarafeProperties properties,
                            struct CarafeCompiled *compiled);
    // Reads what `CarafeCompiled::export_to` wrote; null when the device cannot. The bytes live until `import` returns.
    // `ops` is an empty model with the engine's operations at hand.
    CarafeStatus (*import)(void *device,
                           struct CarafeGraph *ops,
                           const void *data,
                           size_t bytes,
                           struct CarafeProperties properties,
                           struct CarafeCompiled *compiled);
    void (*release)(void *device);
    // Since 1.2. Takes the kernels that extensions bring for the name of the device, all of them each time that changes; null when
    // the device has no use for them. The tables and all they point to live until the next call that succeeds, and, for calls
    // that run then and for models that were compiled before, until those end; a kernel that `init` made ends before them.
    CarafeStatus (*set_kernels)(void *device, const struct CarafeKernel *kernels, size_t n);
} CarafeDevice;

// The symbol `create_extensions` of an extension library.
typedef CarafeStatus (*CarafeCreateExtensions)(const struct CarafeHost *host,
                                               struct CarafeRegistrar *registrar);

// The symbol `CreatePluginEngine` of a plugin library. `device` has `size` and `abi` set.
typedef CarafeStatus (*CarafeCreatePluginEngine)(const struct CarafeHost *host, struct CarafeDevice *device);

#endif  /* CARAFE_H */

/* For authors. */

#if defined(_WIN32)
#define CARAFE_EXPORT __declspec(dllexport)
#else
#define CARAFE_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
#define CARAFE_C extern "C"
#else
#define CARAFE_C
#endif

/* Stands once in a library, before `create_extensions` or `CreatePluginEngine`: says what it is built for, and keeps
 * the engine's table under the name `carafe`. */
#define CARAFE_LIBRARY                                                                              \
    static const CarafeHost *carafe;                                                                \
    CARAFE_C CARAFE_EXPORT const CarafeAbi carafe_abi;                                              \
    const CarafeAbi carafe_abi = {CARAFE_ABI_MAGIC, CARAFE_ABI_MAJOR, CARAFE_ABI_MINOR, sizeof(void *)};

static inline CarafeStr carafe_str(const char *text) {
    CarafeStr s;
    s.data = text;
    s.len = text ? strlen(text) : 0;
    return s;
}

static inline int carafe_str_is(CarafeStr s, const char *text) {
    size_t n = strlen(text);
    return s.len == n && (n == 0 || memcmp(s.data, text, n) == 0);
}

/* Sets the text of a failure and gives its status: `return carafe_fail(carafe, CARAFE_INVALID, "...");` */
static inline CarafeStatus carafe_fail(const CarafeHost *host, CarafeStatus status, const char *text) {
    host->set_error(carafe_str(text));
    return status;
}

/* An attribute by name, or NULL. */
static inline const CarafeAttr *carafe_attr(CarafeAttrs attrs, const char *name) {
    for (size_t i = 0; i < attrs.n; i++)
        if (carafe_str_is(attrs.list[i].name, name)) return &attrs.list[i];
    return NULL;
}

/* Number of elements of a tensor. */
static inline size_t carafe_elements(const CarafeTensor *t) {
    size_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++) n *= t->shape[i];
    return n;
}

/* Layouts of a kernel's ports for a value of known shape; `blocks` and `order` have room for its rank, and one more for blocks. */
static inline CarafeLayout carafe_layout_plain(uint32_t element_type) {
    CarafeLayout l = {element_type, 0, NULL, NULL, -1, 0};
    return l;
}
static inline CarafeLayout carafe_layout_channels_last(const CarafeFact *f, size_t *blocks, size_t *order) {
    CarafeLayout l = {f->element_type, f->rank > 2 ? (uint32_t)f->rank : 0, blocks, order, -1, 0};
    for (uint32_t k = 0; k < l.rank; k++) {
        order[k] = k == 0 ? 0 : k + 1 < l.rank ? k + 1 : 1;
        blocks[k] = (size_t)f->dims[order[k]].min;
    }
    return l;
}
static inline CarafeLayout carafe_layout_blocked(const CarafeFact *f, size_t n, size_t *blocks, size_t *order) {
    CarafeLayout l = {f->element_type, f->rank > 1 ? (uint32_t)f->rank + 1 : 0, blocks, order, -1, 0};
    for (uint32_t k = 0; k < l.rank; k++) {
        order[k] = k + 1 < l.rank ? k : 1;
        blocks[k] = k + 1 < l.rank ? (size_t)f->dims[k].min : n;
    }
    if (l.rank) blocks[1] = (blocks[1] + n - 1) / n;
    return l;
}

/* Asks for what a configuration needs, right after it was offered; a failure where the device has none to give. */
static inline CarafeStatus carafe_needs(const CarafeSite *site, void *sink, size_t epilogue, size_t workspace, size_t scratch) {
    CarafeNeeds needs = {sizeof needs, epilogue, workspace, scratch};
    if (site->size <= offsetof(CarafeSite, needs) || !site->needs) return CARAFE_UNSUPPORTED;
    return site->needs(sink, &needs);
}

/* An attribute of each simple kind, for operations added by name. */
static inline CarafeAttr carafe_attr_none(const char *name, uint32_t kind) {
    CarafeAttr a;
    memset(&a, 0, sizeof a);
    a.name = carafe_str(name);
    a.kind = kind;
    return a;
}
static inline CarafeAttr carafe_attr_int(const char *name, int64_t value) {
    CarafeAttr a = carafe_attr_none(name, CARAFE_ATTR_INT);
    a.i = value;
    return a;
}
static inline CarafeAttr carafe_attr_float(const char *name, double value) {
    CarafeAttr a = carafe_attr_none(name, CARAFE_ATTR_FLOAT);
    a.f = value;
    return a;
}
static inline CarafeAttr carafe_attr_str(const char *name, const char *value) {
    CarafeAttr a = carafe_attr_none(name, CARAFE_ATTR_STR);
    a.s = carafe_str(value);
    return a;
}
static inline CarafeAttr carafe_attr_ints(const char *name, const int64_t *values, size_t n) {
    CarafeAttr a = carafe_attr_none(name, CARAFE_ATTR_INTS);
    a.ints = values;
    a.n = n;
    return a;
}
