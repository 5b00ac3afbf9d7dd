"""Ratios, their means, and the tables. A ratio above 1 always means that Carafe does better: it needs less time or memory, or
does more inferences a second."""

import math

COARSE = 0.05  # difference of quantized outputs that is always allowed
PEERS = ("openvino", "onnxruntime", "tensorflow", "tflite")  # the ratio `best` is against the best of these
SHOWN = {"carafe": "Carafe", "carafe-onnx": "from ONNX", "openvino": "OpenVINO", "onnxruntime": "ONNX Runtime", "tensorflow": "TensorFlow",
         "tflite": "TFLite"}


def kinds(result):
    """[(key, title, unit)] of the figures that were measured."""
    threads = result["threads"]
    return [*((f"latency {t}", f"Latency, {t} thread{'s' if t > 1 else ''}", "ms") for t in threads),
            ("throughput", f"Throughput, {result['machine']['cores']} cores", "/s"),
            ("load", "Read and compile", "s"), ("memory", "Memory", "MB")]


def figure(row, engine, key):
    """A measured figure, or None."""
    told = row["engines"].get(engine, {})
    if key.startswith("latency"):
        return told.get("latency", {}).get(key.split()[1], {}).get("ms")
    return told.get({"throughput": "per_second", "load": "load_s", "memory": "net_mb"}[key])


def ratio(row, peer, key):
    ours, theirs = figure(row, "carafe", key), figure(row, peer, key)
    if not ours or not theirs:
        return None
    return ours / theirs if key == "throughput" else theirs / ours


def best(row, key):
    each = [r for r in (ratio(row, peer, key) for peer in PEERS) if r]
    return min(each) if each else None


def apart(found):
    """How far outputs of a quantized model may differ: steps add up from layer to layer, so that engines differ from one another."""
    errors = [told.get("error", 0) for engine, told in found.items() if engine in PEERS]
    return max([COARSE, *(1.5 * e for e in errors if isinstance(e, float))])


def wrong(row, engine, tolerance):
    """Why an engine's figures of a model do not count, or nothing."""
    told = row["engines"].get(engine, {})
    if "problem" in told:
        return told["problem"]
    error = told.get("error", 0)
    if isinstance(error, str):
        return error
    return f"outputs differ by {error:.1e}" if not error <= row.get("tolerance", tolerance) else ""


def mean(each):
    each = [r for r in each if r]
    return math.exp(sum(map(math.log, each)) / len(each)) if each else None


def counted(result):
    """Models on which Carafe ran and agreed."""
    return [row for row in result["models"] if not wrong(row, "carafe", result["tolerance"])]


def means(result):
    """{figure: {"best" or peer: (geometric mean, models)}}"""
    found = {}
    for key, _, _ in kinds(result):
        rows = counted(result)
        found[key] = {"best": each_mean([best(row, key) for row in rows])}
        for peer in (e for e in result["engines"] if e != "carafe"):
            found[key][peer] = each_mean([ratio(row, peer, key) for row in rows])
    return found


def each_mean(ratios):
    return mean(ratios), sum(1 for r in ratios if r)


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


# ---------------------------------------------------------------------------------------------
# On the screen
# ---------------------------------------------------------------------------------------------

def tell(result, row):
    """The lines of one model."""
    engines = [e for e in result["engines"] if e in row["engines"]]
    print(f"{row['name']} ({row['file_mb']:.1f} MB)")
    for key, title, unit in kinds(result):
        text = "".join(f"{SHOWN.get(e, e):>14} {number(figure(row, e, key)):>7} {unit}" for e in engines)
        each = "  ".join(f"{SHOWN.get(p, p)} {number(ratio(row, p, key))}" for p in engines if p != "carafe" and ratio(row, p, key))
        won = best(row, key)
        print(f"  {title:<22}{text}" + (f"   ratio {number(won)} ({each})" if won else ""))
    for engine in engines:
        told = row["engines"][engine]
        noise = max((f["others"] for f in told.get("latency", {}).values()), default=0)
        said = wrong(row, engine, result["tolerance"])
        if said:
            print(f"  {SHOWN.get(engine, engine)}: {said}")
        elif noise > 0.2:
            print(f"  {SHOWN.get(engine, engine)}: other programs used {noise:.1f} of a processor meanwhile")
    print(flush=True)


def summary(result):
    rows, every = counted(result), means(result)
    print(f"geometric means over {len(rows)} of {len(result['models'])} models; above 1 Carafe does better")
    for key, title, _ in kinds(result):
        each = "  ".join(f"{SHOWN.get(p, p)} {number(m)}" for p, (m, _) in every[key].items() if p != "best" and m)
        least = min(((best(row, key), row["name"]) for row in rows if best(row, key)), default=None)
        won = sum(1 for row in rows if (best(row, key) or 0) > 1)
        if least:
            print(f"  {title:<22} {number(every[key]['best'][0])} against the better peer ({each}); "
                  f"better on {won} of {len(rows)}, least {number(least[0])} on {least[1]}")


# ---------------------------------------------------------------------------------------------
# As a page
# ---------------------------------------------------------------------------------------------

AGAIN = "\n  Turns that other programs disturbed are run again."

HEAD = """# Carafe beside other engines

Written by `scripts/bench-peers --write-docs`; the figures come from one machine and one run, so read the ratios. **A ratio
above 1 means that Carafe does better.**

- Machine: {cpu}, {cores} cores. {versions}.
- {computes} and runs in a process of its own, with the same model file, inputs and threads. The engines
  take turns, {rounds} rounds of {seconds} s each; a figure is the median over the rounds.{again}
- **Latency**: one inference at a time. **Throughput**: Carafe runs the streams it chooses for PERFORMANCE_HINT=THROUGHPUT;
  each peer gets the best of one stream of one thread for every core, of the streams it chooses itself (OpenVINO) and of one
  inference at a time on all cores. **Read and compile**: from the model file to a request that is ready, the quickest of {loads} starts, libraries already loaded.
  **Memory**: peak of the resident memory (`VmHWM`) after a few inferences, less what the process held before it touched the
  model; so Python, the libraries and the inputs do not count, and mapped model files do.
- Outputs are compared with those of ONNX Runtime; a model counts when the largest difference is within {tolerance:g} of the
  largest value{coarse}.
"""

COMPUTES = {"default": "Every engine computes in the precision of its choice", "f32": "Every engine computes in f32",
            "bf16": "Carafe and OpenVINO compute in bf16, the others in f32; each"}


def page(result):
    text = [HEAD.format(cpu=result["machine"]["cpu"], cores=result["machine"]["cores"], rounds=result["rounds"], seconds=result["seconds"],
                        loads=result["loads"], tolerance=result["tolerance"], computes=COMPUTES[result.get("precision", "f32")],
                        coarse=", of quantized models within 0.05 or 1.5 times what peers differ by" if any("tolerance" in row for row in result["models"]) else "",
                        again=AGAIN if result.get("tries", 1) > 1 else "",
                        versions=", ".join(f"{SHOWN.get(e, e)} {v}" for e, v in result["machine"]["versions"].items()))]
    every = means(result)
    peers = [e for e in result["engines"] if e != "carafe"]
    text += ["## Geometric means", "", table(["figure", "models", "against the better of OpenVINO and ONNX Runtime", *(SHOWN.get(p, p) for p in peers)],
             [[title, every[key]["best"][1], number(every[key]["best"][0]), *(number(every[key][p][0]) for p in peers)] for key, title, _ in kinds(result)])]
    for key, title, unit in kinds(result):
        rows = []
        for row in result["models"]:
            bad = wrong(row, "carafe", result["tolerance"])
            each = ["-" if bad else number(ratio(row, p, key)) for p in peers]
            rows.append([row["name"], *(number(figure(row, e, key)) for e in result["engines"]), "-" if bad else f"**{number(best(row, key))}**", *each])
        rows.append(["geometric mean", *[""] * len(result["engines"]), f"**{number(every[key]['best'][0])}**", *(number(every[key][p][0]) for p in peers)])
        head = ["model", *(f"{SHOWN.get(e, e)} {unit}" for e in result["engines"]), "ratio, better peer", *(f"ratio, {SHOWN.get(p, p)}" for p in peers)]
        text += ["", f"## {title}", "", f"![{title}: ratios]({picture_name(key)})", "", table(head, rows)]
    told = [(row["name"], SHOWN.get(e, e), wrong(row, e, result["tolerance"])) for row in result["models"] for e in result["engines"]]
    if any(said for _, _, said in told):
        text += ["", "## What did not run or differs", "", *(f"- {name}, {engine}: {said}" for name, engine, said in told if said)]
    text += ["", "## Models", "", table(["model", "what it does", "file", "from"], [[r["name"], r["what"], f"{r['file_mb']:.1f} MB", r["from"]] for r in result["models"]])]
    return "\n".join(text) + "\n"


def overview(result):
    """Title, text and rows of the chart of all means: a bar for each figure and peer."""
    every = means(result)
    rows = [(f"{title}, {SHOWN.get(p, p)}", m) for key, title, _ in kinds(result) for p, (m, _) in every[key].items() if p != "best"]
    return f"Carafe beside its peers, {len(counted(result))} models", "geometric means; above 1 Carafe does better", rows


def picture_name(key):
    return key.replace(" ", "-") + ".svg"


def table(head, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [head, *rows]]
    return "\n".join([lines[0], "|---|" + "---:|" * (len(head) - 1), *lines[1:]])
