"""Connectionist temporal classification."""

from ..case import const, dynamic, literal, one, uniform


def cases():
    logits = uniform("f32", 6, 2, 4)
    full = const("f32", [[1.0, 1.0]] * 6)
    ragged = const("f32", [[1.0, 1.0]] * 3 + [[1.0, 0.0]] * 2 + [[0.0, 0.0]])
    for merge in (True, False):
        for mark, mask in (("full", full), ("ragged", ragged)):
            yield one("CTCGreedyDecoder", 1, [logits, mask], {"ctc_merge_repeated": merge}, tag=f"merge{int(merge)}-{mark}", fixture=mark == "ragged")
    yield one("CTCGreedyDecoder", 1, [dynamic(logits), full], {"ctc_merge_repeated": True}, tag="dynamic")
    path = [[[5, 0, 0], [5, 0, 0], [0, 0, 5], [5, 0, 0], [0, 5, 0]]]
    yield one("CTCGreedyDecoder", 1, [literal("f32", [[x] for x in path[0]]), const("f32", [[1.0]] * 5)], {"ctc_merge_repeated": True}, tag="known-path")
    steps = uniform("f32", 2, 6, 4)
    for merge in (True, False):
        attrs = {"merge_repeated": merge, "classes_index_type": "i32", "sequence_length_type": "i32"}
        yield one("CTCGreedyDecoderSeqLen", 6, [steps, const("i32", [6, 4])], attrs, tag=f"merge{int(merge)}", fixture=True)
        yield one("CTCGreedyDecoderSeqLen", 6, [steps, const("i32", [6, 4]), const("i32", 0)], attrs, tag=f"merge{int(merge)}-blank0")
    yield one("CTCGreedyDecoderSeqLen", 6, [steps, literal("i64", [5, 1]), const("i64", 1)],
              {"merge_repeated": True, "classes_index_type": "i64", "sequence_length_type": "i64"}, tag="i64")
    yield one("CTCGreedyDecoderSeqLen", 6, [dynamic(steps), const("i32", [6, 6])], {"merge_repeated": True}, tag="dynamic")
    lengths, labels, sizes = const("i32", [6, 5]), const("i32", [[0, 1, 1, 2, 0, 0], [2, 0, 0, 1, 0, 0]]), const("i32", [4, 3])
    for collapse in (False, True):
        for merge in (False, True):
            for unique in (False, True):
                attrs = {"preprocess_collapse_repeated": collapse, "ctc_merge_repeated": merge, "unique": unique}
                yield one("CTCLoss", 4, [steps, lengths, labels, sizes], attrs, tag=f"{int(collapse)}{int(merge)}{int(unique)}",
                          fixture=merge and not unique)
    yield one("CTCLoss", 4, [steps, lengths, const("i32", [[1, 2, 1, 2, 0, 0], [2, 3, 3, 1, 0, 0]]), sizes, const("i32", 0)],
              {"ctc_merge_repeated": True}, tag="blank0")
    yield one("CTCLoss", 4, [steps, lengths, labels, const("i32", [1, 1])], {"ctc_merge_repeated": True}, tag="one-label")
