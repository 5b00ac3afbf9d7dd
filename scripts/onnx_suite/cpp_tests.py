"""Reads test cases out of C++ sources written for OpenVINO's `ov::test::TestCase`.

A test is `OPENVINO_TEST(backend, name) { ... }` (or TEST, TEST_F). Its body is walked by a small interpreter that knows the
part of C++ such tests are written in: vectors and shapes, arithmetic, loops, `std::iota`, and the methods of the test case
itself. `tests(text)` gives for each test its runs::

    Run(model, inputs=[(type, shape or None, values)], outputs=[...], tolerance=None or number)

with outputs None where the model must be refused, or, where a statement is beyond this, the reason. Nothing is executed but what is written here.
"""

import math
import re
from collections import namedtuple

import numpy as np

Run = namedtuple("Run", "model inputs outputs tolerance")
Given = namedtuple("Given", "kind shape values")

TOKEN = re.compile(r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*)
  | (?P<text>(?:u8)?"(?:[^"\\]|\\.)*")
  | (?P<char>'(?:[^'\\]|\\.)*')
  | (?P<number>0[xX][0-9a-fA-F']+[uUlL]*|(?:\d[\d']*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:f16|[fFuUlL])*)
  | (?P<name>[A-Za-z_$][A-Za-z_0-9{}]*?(?=[^A-Za-z_0-9])(?:::~?[A-Za-z_]\w*)*)
  | (?P<sign><<=|>>=|->|\+\+|--|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|%=|::|<<|[-+*/%<>=!&|^~?:;,.(){}\[\]])
""", re.S | re.X)
HEAD = re.compile(r"^(?:OPENVINO_TEST|TEST|TEST_F|OPENVINO_TEST_F)\(([^)]+?),\s*(\w+)\)\s*\{", re.M)
FIXTURE = re.compile(r"^(?:class|struct) (\w+) : public [\w:]*Test \{", re.M)
FUNCTION = re.compile(r"^(?:static |inline )?(?:[\w:]+(?:<[\w:<> ]+>)?) (\w+)\(([^()]*)\) \{", re.M)
REFUSED = re.compile(r'EXPECT_THROW\(\s*(?:auto \w+ = )?convert_model\("([^"]+)"\)|try \{[^}]*?convert_model\("([^"]+)"\)[^}]*?FAIL\(\)', re.S)
CHECKS = ("EXPECT_", "ASSERT_", "GTEST_SKIP", "SCOPED_TRACE")
# Element types by their C++ names.
KINDS = {"float": "f32", "double": "f64", "bool": "boolean", "char": "i8", "std::int64": "i64", "int": "i32", "std::string": "string",
         "int64": "i64", "size_t": "u64", "std::size_t": "u64", "ov::float16": "f16", "float16": "f16", "f16": "f16", "ov::bfloat16": "bf16",
         "bfloat16": "bf16", "ov::float8_e4m3": "f8e4m3", "ov::float8_e5m2": "f8e5m2", "float8_e4m3": "f8e4m3", "float8_e5m2": "f8e5m2",
         **{f"{p}{u}int{n}_t": f"{'u' if u else 'i'}{n}" for p in ("", "std::") for u in ("", "u") for n in (8, 16, 32, 64)}}
RANGE = {"i8": (-128, 127), "u8": (0, 255), "i16": (-2 ** 15, 2 ** 15 - 1), "u16": (0, 2 ** 16 - 1), "i32": (-2 ** 31, 2 ** 31 - 1),
         "u32": (0, 2 ** 32 - 1), "i64": (-2 ** 63, 2 ** 63 - 1), "u64": (0, 2 ** 64 - 1)}


class Beyond(Exception):
    """A statement the interpreter does not know."""


class Vector(list):
    """A std::vector or Shape, with the element type where it was written."""

    kind = None


class Case:
    """The test case object: what was given to it since the last run."""

    def __init__(self, model):
        self.model, self.inputs, self.outputs = model, [], []


Function = namedtuple("Function", "parameters body")


class Returned(Exception):
    """The value of a `return`."""


class Model(str):
    """The file a model was read from."""


def tests(text):
    """{name: [Run] or the reason why it cannot be read}; tests without a test case have no runs."""
    found = {}
    shared = globals_of(text)
    fixtures = fixtures_of(text, shared)
    for head in HEAD.finditer(text):
        names = {**shared, **fixtures.get(head.group(1).split(",")[-1].strip(), {})}
        runs = []
        body = braces(text, head.end() - 1)
        refused = [Run(m.group(1) or m.group(2), [], None, None) for m in REFUSED.finditer(body)]
        if refused:
            found[head.group(2)] = refused
            continue
        try:
            Interpreter(tokens(body), names, runs).block()
            # Some tests fill a test case and forget to run it.
            for case in names.values():
                if isinstance(case, Case) and case.outputs and isinstance(case.model, Model):
                    runs.append(Run(str(case.model), case.inputs, case.outputs, 1e-4))
            found[head.group(2)] = runs
        except (Beyond, IndexError, TypeError, KeyError, ValueError, AttributeError, ZeroDivisionError) as problem:
            found[head.group(2)] = f"{type(problem).__name__}: {problem}" if not isinstance(problem, Beyond) else str(problem)
    return found


def globals_of(text):
    """Constants and functions at the left margin, as far as they can be read."""
    names = {"DEFAULT_FLOAT_TOLERANCE_BITS": 2, "INT64_MAX": 2 ** 63 - 1, "INT64_MIN": -2 ** 63, "FLT_MIN": 2.0 ** -126,
             "FLT_MAX": float(np.finfo(np.float32).max)}
    for m in FUNCTION.finditer(text):
        parameters = [re.findall(r"\w+", p.split("=")[0])[-1] for p in m.group(2).split(",") if p.strip()]
        names[m.group(1)] = Function(parameters, braces(text, m.end() - 1))
    for line in re.finditer(r"^(?:static |const |constexpr )*(?:const )?[\w:<>]+ \w+\s*(?:=|\{)[^;]*;", text, re.M):
        try:
            Interpreter(tokens("{" + line.group(0) + "}"), names, []).block()
        except (Beyond, IndexError, TypeError, KeyError, ValueError):
            pass
    return names


def fixtures_of(text, shared):
    """{class: {member: value}} of the fixtures' vectors."""
    found = {}
    for head in FIXTURE.finditer(text):
        names = dict(shared)
        body = braces(text, head.end() - 1)
        for line in re.finditer(r"^    (?:const )?std::vector<[\w:]+> \w+\{[^;]*;", body, re.M):
            Interpreter(tokens("{" + line.group(0) + "}"), names, []).block()
        found[head.group(1)] = names
    return found


def braces(text, start):
    depth, at = 0, start
    for m in TOKEN.finditer(text, start):
        if m.lastgroup == "sign":
            depth += {"{": 1, "}": -1}.get(m.group(), 0)
        at = m.end()
        if depth == 0:
            break
    return text[start:at]


def tokens(text):
    out, at = [], 0
    while at < len(text):
        m = TOKEN.match(text, at)
        if not m:
            raise Beyond(f"cannot read `{text[at:at + 20]}`")
        if m.lastgroup != "skip":
            out.append((m.lastgroup, m.group()))
        at = m.end()
    return out + [("end", "")]


class Interpreter:
    def __init__(self, stream, names, runs):
        self.t, self.at, self.names, self.runs = stream, 0, names, runs

    # -- tokens

    def peek(self, ahead=0):
        return self.t[min(self.at + ahead, len(self.t) - 1)][1]

    def take(self, wanted=None):
        kind, word = self.t[self.at]
        if wanted is not None and word != wanted:
            raise Beyond(f"expected `{wanted}`, found `{word}`")
        self.at += 1
        return word

    def maybe(self, word):
        if self.peek() == word:
            self.at += 1
            return True
        return False

    def skip_statement(self):
        depth = 0
        while True:
            word = self.take()
            depth += word in ("(", "{", "[")
            depth -= word in (")", "}", "]")
            if depth == 0 and word == ";":
                return
            if self.t[self.at][0] == "end":
                raise Beyond("a statement without end")

    def skip_group(self):
        depth = 0
        while True:
            word = self.take()
            depth += word in ("(", "{", "[")
            depth -= word in (")", "}", "]")
            if depth == 0:
                return

    # -- statements

    def block(self):
        self.take("{")
        while not self.maybe("}"):
            self.statement()

    def statement(self):
        word = self.peek()
        if word == "{":
            return self.block()
        if word == ";":
            return self.take()
        if word.startswith(CHECKS):
            return self.skip_statement()
        if word in ("try", "while", "struct", "class", "switch"):
            raise Beyond(f"`{word}`")
        if word == "return":
            self.take()
            value = None if self.peek() == ";" else self.expression()
            raise Returned(value)
        if word == "if":
            return self.branch()
        if word == "using":
            return self.alias()
        if word == "for":
            return self.loop()
        mark = self.at
        try:
            if not self.declaration():
                self.at = mark
                self.expression()
            self.take(";")
        except (Beyond, TypeError, AttributeError, KeyError):
            # What does not touch the test case may be passed over, with all that it may have changed.
            touched = [w for k, w in self.statement_from(mark) if k == "name" and w in self.names]
            if any(isinstance(self.names[w], (Case, Function)) for w in touched):
                raise
            for w in touched:
                if not isinstance(self.names[w], Model):
                    self.names.pop(w, None)
        return None

    def statement_from(self, mark):
        self.at = mark
        self.skip_statement()
        return self.t[mark:self.at]

    def branch(self):
        self.take("if")
        self.take("(")
        yes = self.expression()
        self.take(")")
        self.either(yes)
        if self.maybe("else"):
            self.either(not yes)

    def either(self, taken):
        if taken:
            self.statement()
        elif self.peek() == "{":
            self.skip_group()
        elif self.peek() == "if":
            self.take()
            self.skip_group()
            self.either(False)
            if self.maybe("else"):
                self.either(False)
        else:
            self.skip_statement()

    def alias(self):
        self.take("using")
        name = self.take()
        if not self.maybe("="):
            return self.skip_statement()
        self.names["type " + name] = self.type()
        self.take(";")

    def loop(self):
        self.take("for")
        self.take("(")
        mark = self.at
        ty = self.type()
        if ty is not None and self.maybe("&"):
            pass
        name = self.take()
        if ty is not None and self.maybe(":"):
            values = self.expression()
            self.take(")")
            body = self.at
            for i, value in enumerate(values):
                self.names[name] = value
                self.at = body
                self.statement()
            return None
        self.at = mark
        if not self.declaration():
            self.expression()
        self.take(";")
        test = self.at
        for _ in range(10 ** 6):
            self.at = test
            going = self.expression()
            self.take(";")
            step = self.at
            depth = 0
            while not (depth == 0 and self.peek() == ")"):
                depth += {"(": 1, ")": -1}.get(self.take(), 0)
            self.take(")")
            if not going:
                # Past the body without running it.
                if self.peek() == "{":
                    self.skip_group()
                else:
                    self.skip_statement()
                return None
            self.statement()
            self.at = step
            self.expression()
        raise Beyond("a loop without end")

    def declaration(self):
        start = self.at
        while self.peek() in ("static", "const", "constexpr"):
            self.take()
        ty = self.type()
        while self.peek() in ("&", "const", "*"):
            self.take()
        if ty is None or self.t[self.at][0] != "name" or self.peek(1) not in ("=", "{", "(", ";", ",", "["):
            self.at = start
            return False
        while True:
            name = self.take()
            if self.maybe("["):
                while not self.maybe("]"):
                    self.take()
                ty = ("vector", ty)
            if self.maybe("="):
                value = self.expression()
            elif self.peek() in ("{", "("):
                value = self.construct(ty, braced=self.peek() == "{")
            else:
                value = Vector() if isinstance(ty, tuple) else 0
            self.names[name] = self.convert(ty, value)
            if not self.maybe(","):
                return True

    # A type: a name of an element type, ("vector", inner), "auto", or None where none stands here.
    def type(self):
        while self.peek() in ("const", "typename"):
            self.take()
        if self.t[self.at][0] != "name":
            return None
        word = self.take()
        if word in ("unsigned", "signed", "long"):
            while self.peek() in ("int", "long", "char"):
                word += " " + self.take()
            return {"unsigned char": "uint8_t", "signed char": "int8_t", "unsigned int": "uint32_t", "unsigned": "uint32_t"}.get(word, "int64_t")
        if "type " + word in self.names:
            return self.names["type " + word]
        if word in ("std::vector", "vector", "std::initializer_list", "std::array"):
            self.take("<")
            inner = self.type()
            if self.maybe(","):
                self.expression()
            self.close_angle()
            return ("vector", inner)
        if word in ("Shape", "ov::Shape", "PartialShape", "ov::PartialShape"):
            return ("vector", "size_t")
        if word in ("Inputs", "Outputs"):
            return ("vector", ("vector", "float"))
        if word in ("ov::test::NDArray", "test::NDArray", "NDArray"):
            self.take("<")
            inner = self.type()
            self.take(",")
            self.take()
            self.close_angle()
            return ("array", inner)
        if word in ("ov::test::TestCase", "test::TestCase", "TestCase"):
            return "case"
        if word in ("auto", "void") or word in KINDS:
            return word
        if word in ("std::shared_ptr",):
            self.take("<")
            self.type()
            self.close_angle()
            return "auto"
        if word in ("ov::Model", "Model", "Function", "ov::Function"):
            return "auto"
        return None

    def close_angle(self):
        if self.peek() == ">>":
            self.t[self.at] = ("sign", ">")
        else:
            self.take(">")

    # What follows a type: `{...}` or `(...)`.
    def construct(self, ty, braced):
        args = self.arguments("{" if braced else "(", "}" if braced else ")")
        if ty == "case":
            return Case(args[0])
        if isinstance(ty, tuple):
            if ty[0] == "vector" and len(args) == 1 and isinstance(args[0], Vector) and (not braced or args[0].kind == KINDS.get(ty[1])):
                return self.convert(ty, args[0])
            if not braced and len(args) == 2 and isinstance(args[0], tuple):
                return self.convert(ty, Vector(args[0][0][args[0][1]:args[1][1]]))
            if not braced and ty[0] == "vector" and len(args) in (1, 2) and not isinstance(args[0], list):
                return self.convert(ty, Vector([args[1] if len(args) == 2 else 0] * int(args[0])))
            if not braced and len(args) == 1 or ty[0] == "array" and len(args) == 1:
                return self.convert(ty, args[0])
            return self.convert(ty, Vector(args))
        return args[0] if args else 0

    def convert(self, ty, value):
        if ty in ("auto", "case", None):
            return value
        if isinstance(ty, tuple):
            if not isinstance(value, list):
                raise Beyond(f"{ty} of `{value}`")
            if ty[0] == "vector" and ty[1] in KINDS and len(value) == 1 and isinstance(value[0], list):
                value = value[0]
            if ty[0] == "array":
                value = flatten(value)
            made = Vector(self.convert(ty[1], v) for v in value)
            made.kind = KINDS.get(ty[1]) if isinstance(ty[1], str) else None
            return made
        kind = KINDS.get(ty)
        if kind is None or isinstance(value, (str, Case)):
            return value
        if isinstance(value, Vector) and len(value) == 1:
            value = value[0]
        if isinstance(value, list):
            raise Beyond(f"{ty} of a list")
        if kind in RANGE:
            low, high = RANGE[kind]
            return (int(value) - low) % (high - low + 1) + low
        if kind == "boolean":
            return bool(value)
        if kind == "f32":
            with np.errstate(over="ignore"):
                return float(np.float32(value))
        return float(value)

    # -- expressions, by precedence

    def arguments(self, opening, closing):
        self.take(opening)
        args = []
        while not self.maybe(closing):
            args.append(self.expression())
            if not self.maybe(","):
                self.take(closing)
                break
        return args

    LEVELS = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", ">", "<=", ">="], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]

    def expression(self):
        start = self.at
        value = self.binary(0)
        if self.maybe("?"):
            yes = self.expression()
            self.take(":")
            no = self.expression()
            return yes if value else no
        if self.peek() in ("=", "+=", "-=", "*=", "/="):
            target = self.t[start:self.at]
            sign = self.take()
            given = self.expression()
            new = given if sign == "=" else compute(sign[0], value, given)
            if isinstance(value, Vector) and isinstance(new, list):
                kept = Vector(new)
                kept.kind = value.kind
                new = kept
            self.assign(target, new)
            return new
        return value

    def assign(self, target, value):
        if len(target) == 1:
            self.names[target[0][1]] = value
            return
        if target[1][1] != "[":
            raise Beyond(f"assignment to `{' '.join(w for _, w in target)}`")
        inner = Interpreter(target[2:-1] + [("end", "")], self.names, self.runs)
        self.names[target[0][1]][inner.expression()] = value

    def binary(self, level):
        if level == len(self.LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in self.LEVELS[level] and self.t[self.at][0] == "sign":
            sign = self.take()
            left = compute(sign, left, self.binary(level + 1))
        return left

    def unary(self):
        word = self.peek()
        if word in ("-", "+", "!", "~") and self.t[self.at][0] == "sign":
            self.take()
            value = self.unary()
            return {"-": lambda v: -v, "+": lambda v: v, "!": lambda v: not v, "~": lambda v: ~v}[word](value)
        if word in ("++", "--"):
            self.take()
            name = self.take()
            self.names[name] += 1 if word == "++" else -1
            return self.names[name]
        return self.postfix(self.primary())

    def postfix(self, value):
        while True:
            if self.peek() in (".", "->"):
                self.take()
                value = self.method(value, self.take())
            elif self.peek() == "[":
                value = value[int(self.arguments("[", "]")[0])]
            elif self.peek() in ("++", "--"):
                sign, name = self.take(), self.t[self.at - 2][1]
                self.names[name] = value + (1 if sign == "++" else -1)
            else:
                return value

    def primary(self):
        kind, word = self.t[self.at]
        if kind == "text":
            out = ""
            while self.t[self.at][0] == "text":
                out += self.take().removeprefix("u8")[1:-1].encode().decode("unicode_escape").encode("latin-1", "replace").decode("utf-8", "replace")
            return out
        if kind == "char":
            return ord(self.take()[1:-1].encode().decode("unicode_escape"))
        if kind == "number":
            return number(self.take())
        if word == "(":
            self.take()
            mark = self.at
            ty = self.type()
            if ty is not None and self.maybe(")"):
                return self.convert(ty, self.unary())
            self.at = mark
            value = self.expression()
            self.take(")")
            return value
        if word == "{":
            return Vector(self.arguments("{", "}"))
        if kind != "name":
            raise Beyond(f"`{word}`")
        mark = self.at
        if word == "std::multiplies":
            while self.take() != "(":
                pass
            return self.take(")")
        if word not in self.names:
            ty = self.type()
            if ty is not None and self.peek() in ("{", "("):
                return self.construct(ty, braced=self.peek() == "{")
        self.at = mark
        self.take()
        if word in ("true", "false"):
            return word == "true"
        if word in ("INFINITY", "NAN", "nullptr"):
            return {"INFINITY": math.inf, "NAN": math.nan, "nullptr": None}[word]
        if word in self.names and self.peek() != "(":
            return self.names[word]
        if isinstance(self.names.get(word), Function):
            return self.call(self.names[word], self.arguments("(", ")"))
        if word == "gen_range" and self.peek() == "<":
            self.take()
            ty = self.type()
            self.close_angle()
            args = self.arguments("(", ")")
            start = args[1] if len(args) > 1 else 0
            return self.convert(("vector", ty), Vector(start + i for i in range(args[0])))
        if word in ("std::numeric_limits", "static_cast"):
            self.take("<")
            ty = self.type()
            self.close_angle()
            if word == "static_cast":
                return self.convert(ty, self.arguments("(", ")")[0])
            what = self.take("::") and self.take() if self.peek() == "::" else self.take()
            self.arguments("(", ")")
            return limit(KINDS[ty], what.lstrip(":"))
        return self.function(word)

    def call(self, function, args):
        names = {**{n: v for n, v in self.names.items() if isinstance(v, Function)}, **dict(zip(function.parameters, args))}
        try:
            Interpreter(tokens(function.body), names, self.runs).block()
        except Returned as answer:
            return answer.args[0]
        return None

    def function(self, name):
        args = self.arguments("(", ")") if self.peek() == "(" else None
        if args is None:
            if name in ("s_device", "s_manifest", "ov::test::utils::DEVICE_TEMPLATE", "ov::test::utils::DEVICE_CPU"):
                return "CPU" if name == "s_device" else name.replace("ov::test::utils::DEVICE_", "")
            raise Beyond(f"`{name}`")
        plain = name.split("::")[-1]
        if name == "convert_model":
            return Model(args[0])
        if plain == "iota":
            where, start = args[0]
            for i in range(start, args[1][1]):
                where[i] = args[2] + (i - start)
            return None
        if plain == "fill":
            where, start = args[0]
            where[start:args[1][1]] = [args[2]] * (args[1][1] - start)
            return None
        if plain in ("begin", "end", "cbegin", "cend"):
            return (args[0], 0 if "begin" in plain else len(args[0]))
        if plain in ("pow", "exp", "sqrt", "log", "sin", "cos", "tan", "tanh", "erf", "floor", "ceil", "fabs", "fmod", "sinh", "cosh", "log1p", "acosh", "asinh", "atanh", "acos", "asin", "atan"):
            return getattr(math, plain)(*args)
        if plain in ("max", "min", "abs"):
            return {"max": max, "min": min, "abs": abs}[plain](*args)
        if plain == "shape_size":
            return math.prod(args[0])
        if plain in ("path_join", "getModelFromTestModelZoo", "make_model_path"):
            return Model("/".join(args[0]) if isinstance(args[0], list) else args[0])
        if plain == "nanf":
            return math.nan
        if plain == "string":
            return args[0]
        if plain == "is_graph_iterator_enabled":
            return False
        if plain == "next":
            return (args[0][0], args[0][1] + args[1])
        if plain == "accumulate" and len(args) == 4:
            return math.prod(args[0][0][args[0][1]:args[1][1]]) * args[2]
        if plain == "isnan":
            return math.isnan(args[0])
        raise Beyond(f"function `{name}`")

    def method(self, value, name):
        if isinstance(value, Case):
            return self.case_method(value, name)
        args = self.arguments("(", ")") if self.peek() == "(" else None
        if isinstance(value, list):
            if name in ("push_back", "emplace_back"):
                return value.append(args[0] if len(args) == 1 else Vector(args))
            if name in ("begin", "cbegin", "end", "cend"):
                return (value, 0 if "begin" in name else len(value))
            if name == "size":
                return len(value)
            if name in ("get_vector", "data"):
                return value
            if name in ("at",):
                return value[args[0]]
            if name in ("front", "back"):
                return value[0 if name == "front" else -1]
            if name == "resize":
                value[:] = (value + [args[1] if len(args) > 1 else 0] * args[0])[:args[0]]
                return None
            if name == "reserve":
                return None
            if name == "clear":
                return value.clear()
            if name == "insert":
                where = args[0][1]
                value[where:where] = args[1] if isinstance(args[1], list) else args[1][0][args[1][1]:args[2][1]]
                return None
        raise Beyond(f"method `{name}`")

    def case_method(self, case, name):
        kind = None
        if self.peek() == "<":
            self.take()
            kind = KINDS.get(self.type())
            self.close_angle()
        args = self.arguments("(", ")")
        if name in ("add_input", "add_expected_output"):
            values = args[-1]
            if not isinstance(values, list):
                raise Beyond(f"{name} of `{values}`")
            kind = kind or getattr(values, "kind", None)
            shape = list(args[0]) if len(args) > 1 else None
            (case.inputs if name == "add_input" else case.outputs).append(Given(kind, shape, list(values)))
        elif name == "add_multiple_inputs":
            case.inputs += [Given(kind or getattr(v, "kind", None), None, list(v)) for v in args[0]]
        elif name in ("run", "run_with_tolerance_as_fp"):
            tolerance = (args[0] if args else 1e-5) if name != "run" else None
            if not isinstance(case.model, Model):
                raise Beyond("a model that is not read from a file")
            self.runs.append(Run(str(case.model), case.inputs, case.outputs, tolerance))
            case.inputs, case.outputs = [], []
        else:
            raise Beyond(f"method `{name}` of the test case")


def flatten(values):
    return [x for v in values for x in flatten(v)] if isinstance(values, list) else [values]


def compute(sign, a, b):
    if isinstance(a, tuple) and sign in ("+", "-"):  # an iterator
        return (a[0], a[1] + b) if sign == "+" else (a[0], a[1] - b)
    if sign == "/":
        if isinstance(a, int) and isinstance(b, int):
            return int(a / b)
        return a / b if b else (math.nan if a == 0 or a != a else math.copysign(math.inf, a))
    if sign == "%":
        return math.fmod(a, b) if isinstance(a, float) else int(math.fmod(a, b))
    table = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "<": lambda: a < b, ">": lambda: a > b,
             "<=": lambda: a <= b, ">=": lambda: a >= b, "==": lambda: a == b, "!=": lambda: a != b, "<<": lambda: a << b,
             ">>": lambda: a >> b, "&": lambda: a & b, "|": lambda: a | b, "^": lambda: a ^ b,
             "&&": lambda: a and b, "||": lambda: a or b}
    return table[sign]()


def number(word):
    word = word.replace("'", "")
    if word[:2] in ("0x", "0X"):
        return int(word.rstrip("uUlL"), 16)
    bare = re.sub(r"(f16|[fFuUlL])+$", "", word)
    if re.search(r"[.eE]", bare) or word[-1] in "fF":
        return float(bare)
    return int(bare, 8) if len(bare) > 1 and bare[0] == "0" and bare.isdigit() else int(bare)


def limit(kind, what):
    if what == "infinity":
        return math.inf
    if what in ("quiet_NaN", "signaling_NaN"):
        return math.nan
    if kind in RANGE:
        return RANGE[kind][0 if what in ("min", "lowest") else 1]
    info = np.finfo({"f64": np.float64, "f16": np.float16}.get(kind, np.float32))
    return float({"min": info.tiny, "lowest": info.min, "max": info.max, "epsilon": info.eps}[what])
