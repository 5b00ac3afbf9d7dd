"""Where the time goes: Carafe's counters of every node beside OpenVINO's."""

import re
from collections import defaultdict

from .run import Worker


def compare(plan, name, model, inputs, threads, seconds):
    told = {}
    for engine in ("carafe", "openvino"):
        worker = Worker(plan, engine, model, inputs, threads, 1)
        told[engine] = worker.ask("profile", seconds)
        worker.close()
    ours, theirs = told["carafe"], told["openvino"]
    print(f"{name}, {threads} thread{'s' if threads > 1 else ''}: least time of every node in us; whole inference: "
          f"Carafe {ours['wall_us']:.0f}, OpenVINO {theirs['wall_us']:.0f}")
    by_kind(ours["nodes"], theirs["nodes"])
    by_node(ours["nodes"], theirs["nodes"])


def by_kind(ours, theirs):
    for title, nodes in (("Carafe", ours), ("OpenVINO", theirs)):
        spent = defaultdict(lambda: [0.0, 0])
        for node in nodes:
            one = spent[node["type"], node["kernel"]]
            one[0] += node["us"]
            one[1] += 1
        total = sum(us for us, _ in spent.values()) or 1
        print(f"\n{title}, by kind ({total:.0f} us)")
        for (kind, kernel), (us, count) in sorted(spent.items(), key=lambda item: -item[1][0])[:25]:
            print(f"{us:>10.0f} {100 * us / total:>5.1f} %  {count:>4} x {kind:<26} {kernel}")


def by_node(ours, theirs):
    """Nodes of OpenVINO with those of Carafe that do the same work; each names the model's nodes it stands for."""
    groups, rest = matched(ours, theirs)
    print("\nby node of OpenVINO: its time, Carafe's, ratio (above 1: Carafe is faster)")
    order = sorted(range(len(theirs)), key=lambda i: -max(theirs[i]["us"], sum(n["us"] for n in groups[i])))
    for i in order:
        node, mine = theirs[i], groups[i]
        spent = sum(n["us"] for n in mine)
        ratio = f"{node['us'] / spent:>6.2f}" if spent else "     -"
        shape = "x".join(map(str, node.get("shape", [])))
        print(f"{node['us']:>10.0f} {spent:>10.0f} {ratio}  {node['type']:<20.20} {node['kernel']:<26.26} {shape:<18} {node['name'][-50:]:<50} "
              + ", ".join(dict.fromkeys(f"{n['type']}:{n['kernel']}" for n in mine)))
    if rest:
        print("\nonly in Carafe")
        for node in sorted(rest, key=lambda n: -n["us"]):
            print(f"{'':>10} {node['us']:>10.0f}         {node['type']:<20.20} {node['kernel']:<26.26} {node['name']}")


def matched(ours, theirs):
    """([nodes of Carafe] for every node of OpenVINO, nodes of Carafe that match none)"""
    owner = {}
    for i, node in enumerate(theirs):
        for name in names(node):
            owner.setdefault(name, i)
    groups, rest = [[] for _ in theirs], []
    for node in ours:
        found = next((owner[name] for name in names(node) if name in owner), None)
        (rest if found is None else groups[found]).append(node)
    return groups, rest


def names(node):
    """What a node may be called, the surest first: `Conv_5/Convolution_0` is a part of the model's `Conv_5`."""
    given = [node["name"], *(node.get("of") or [])]
    return [*given, *(re.sub(r"/(WithoutBiases|[A-Z][A-Za-z0-9]*(_[0-9]+)?)$", "", name) for name in given)]
