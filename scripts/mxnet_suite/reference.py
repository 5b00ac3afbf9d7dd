"""What MXNet gives for one network, by a process of its own: `python -m mxnet_suite.reference NAME DIR WORK`;
without arguments it lists the networks.

MXNet's own kernels are asked where they have the operators; those of oneDNN run recurrent layers. Networks are computed in doubles
where MXNet can, and in floats: what differs from the doubles is the rounding of who computed it.
"""

import json
import os
import sys
from pathlib import Path

RECURRENT = {"lstm-lm"}
# What MXNet does not end with in doubles: it asks its operators in floats, or for minutes.
FLOATS = RECURRENT | {"gluoncv-faster_rcnn_resnet50_v1b_voc"}


def environment(name):
    own = "1" if name in RECURRENT else "0"
    return {**os.environ, "MXNET_SUBGRAPH_BACKEND": "NONE", "MXNET_MKLDNN_ENABLED": own, "MXNET_STORAGE_FALLBACK_LOG_VERBOSE": "0"}


def stored(prefix):
    """A model that lies there already."""
    import mxnet as mx

    from . import nets

    symbol = mx.sym.load(f"{prefix}-symbol.json")
    params = sorted(Path(prefix).parent.glob(f"{Path(prefix).name}-*.params"))[-1]
    arrays = mx.nd.load(str(params))
    args = {k[4:]: v for k, v in arrays.items() if k.startswith("arg:") and k[4:] in symbol.list_arguments()}
    aux = {k[4:]: v for k, v in arrays.items() if k.startswith("aux:")}
    shapes = json.loads(Path(f"{prefix}.inputs.json").read_text())
    return nets.Net(symbol, args, aux, {k: nets.picture(*s) for k, s in shapes.items()})


def in_doubles(net):
    """`None` where an operator of the network knows floats only."""
    import mxnet as mx
    import numpy as np

    try:
        return net.run(np.float64)
    except mx.MXNetError:
        return None


def main(name, folder, work):
    import numpy as np

    from . import nets

    if name in nets.NETS:
        net = nets.NETS[name]()
        net.save(str(Path(work) / "net"))
    else:
        net = stored(str(Path(folder) / name))
    own = net.run()
    exact = in_doubles(net) if name not in FLOATS else None
    arrays = {f"in:{k}": v for k, v in net.inputs.items()} | {f"out:{i}": v for i, v in enumerate(exact or own)}
    if exact:
        arrays |= {f"own:{i}": v for i, v in enumerate(own)}
    np.savez(Path(work) / "reference.npz", **arrays)
    nodes = len(json.loads(net.symbol.tojson())["nodes"])
    Path(work, "reference.json").write_text(json.dumps({"nodes": nodes, "megabytes": sum(v.size for v in net.args.values()) * 4e-6}))


if __name__ == "__main__":
    if sys.argv[1:]:
        main(*sys.argv[1:])
    else:
        from .nets import NETS

        print("\n".join(NETS))
