"""Tests of the parts that need neither a binary nor a peer: `python -m unittest caffe_suite.test_caffe_suite` in scripts/."""

import unittest

import numpy as np

from . import compare, definition, files, peers, topologies


class Files(unittest.TestCase):
    def test_text_becomes_a_tree(self):
        tree = files.parse_text("""name: 'a' "b" # comment
            layer { type: "Pooling" pooling_param: { pool: AVE kernel_size: 2, stride: [1, 2]; } } flag: true x: -1.5e-1""")
        self.assertEqual(tree["name"], ["ab"])
        self.assertEqual(tree["layer"][0]["pooling_param"], [{"pool": ["AVE"], "kernel_size": [2], "stride": [1, 2]}])
        self.assertEqual((tree["flag"], tree["x"]), ([True], [-0.15]))

    def test_weights_come_back(self):
        blobs = [np.arange(300, dtype=np.float32).reshape(1, 3, 100), np.array([1.5], np.float32)]
        for forms in ({}, {"double": True}, {"v1": True}):
            found = files.decode_weights(files.encode_weights("net", [("l", "Scale", blobs)], **forms))
            for had, wanted in zip(found["l"], blobs):
                np.testing.assert_array_equal(had, wanted)
        old = files.decode_weights(files.encode_weights("net", [("l", "Scale", blobs)], legacy=True))
        self.assertEqual(old["l"][0].shape, (1, 1, 3, 100))


class Definition(unittest.TestCase):
    def test_windows_hang_over_the_edge(self):
        net = files.parse_text('layer { name: "p" type: "Pooling" bottom: "x" top: "y" pooling_param { pool: AVE kernel_size: 2 stride: 2 } } input: "x"')
        found = definition.run(net, {}, {"x": np.array([[[[1.0, 2, 4]]]])})
        self.assertEqual(found["y"].tolist(), [[[[1.5, 4.0]]]])

    def test_a_layer_in_place_is_the_output(self):
        net = files.parse_text('input: "x" layer { name: "a" type: "TanH" bottom: "x" top: "y" } layer { name: "b" type: "AbsVal" bottom: "y" top: "y" }')
        self.assertEqual(list(definition.run(net, {}, {"x": np.array([-1.0])})), ["y"])
        self.assertEqual(peers.outputs_of(net), [("y", "b", 0, "AbsVal")])

    def test_shapes_of_a_topology_are_those_of_its_layers(self):
        net = topologies.Net("n", (1, 3, 14, 14))
        x = net.pool("p", net.conv("c", "data", 4, 3, 2, 1), 3, 2, 1)
        found = definition.run(files.parse_text("\n".join(net.text)), {n: b for n, _, b in net.blobs}, {"data": np.ones((1, 3, 14, 14))})
        self.assertEqual(found[x].shape, net.shapes[x])


class Compare(unittest.TestCase):
    def test_lists_end_at_the_mark(self):
        row = [0, 1, 0.9, 0.1, 0.1, 0.2, 0.2]
        longer = np.array([[[row, [-1, 0, 0, 0, 0, 0, 0], [0] * 7]]])
        self.assertEqual(compare.relative_error(np.array([[[row]]]), longer), 0)
        self.assertEqual(compare.relative_error(np.zeros((2, 3)), np.zeros((3, 2))), np.inf)


if __name__ == "__main__":
    unittest.main()
