"""Damaged events raise errors; batches of damaged examples behave as single ones."""

import random

import numpy as np
from mutation import ANY, mutated

from weft.errors import DataError
from weft.formats.event import graph, histogram, message, picture, plugin
from weft.formats.event.reading import event
from weft.formats.example import encode
from weft.formats.example_batch import ExampleParser
from weft.formats.example_spec import FixedLenFeature, VarLenFeature


def some_events():
    image = picture.png(np.zeros((2, 2, 3), np.uint8))
    values = [
        message.scalar("a", 1.0), plugin.text("t", "x"), plugin.scalar_tensor("s", np.float32(3)),
        histogram.histogram("h", np.arange(50.0)), message.image("i", image, 2, 2, 3),
        *plugin.mesh("m", np.ones((1, 2, 3)), None, None, None),
    ]  # fmt: skip
    times = graph.run_metadata([graph.NodeTime("n", 5, 7, 100)])
    return [
        message.event(1.5, 3, message.summary_field(message.summary(*values))),
        message.event(2.5, None, message.run_metadata_field("step", times)),
        message.event(3.5, 1, message.session_field(message.START)),
    ]


def test_mutated_events_are_events_or_refused():
    wholes = some_events()
    assert [len(event(whole).values) for whole in wholes] == [6, 0, 0]
    refused = 0
    for seed in range(500):
        for whole in wholes:
            try:
                event(mutated(whole, random.Random(seed), ANY))
            except DataError:
                refused += 1
    assert refused > 300


def test_a_mutated_example_is_the_same_alone_and_in_a_batch():
    whole = encode({"x": [0.5, 1.5], "label": 300, "words": ["a", "bcd"]})
    expected = {
        "x": FixedLenFeature([2], "float32"),
        "label": FixedLenFeature([], "int64", -1),
        "words": VarLenFeature(bytes),
    }

    def parsed(records):
        try:
            found = ExampleParser(expected)(records)
        except DataError:
            return None
        words = found["words"]
        return [found["x"].tobytes(), found["label"].tolist(), words.values.tolist(), words.lengths]

    for seed in range(500):
        record = mutated(whole, random.Random(seed), ANY)
        alone, both = parsed([record]), parsed([record, record])
        assert (alone is None) == (both is None)
        if alone is not None:
            assert [both[0], *both[1:3]] == [2 * part for part in alone[:3]]
