"""Generators with declared types and shapes."""

import numpy as np
import pytest

import weft as wf
from weft.data import Dataset
from weft.errors import DTypeError, ShapeError, TreeError
from weft.pipeline import Pipeline


def given(elements, types=None, shapes=None, **more):
    return Pipeline.from_generator(lambda: iter(elements), types, shapes, **more)


def test_numbers_get_the_types_that_were_said():
    found = list(given([(1, [2, 3], "a"), [4, [5], b"b"]], ("float32", np.uint8, str)))
    assert [(x.dtype.name, y.dtype.name) for x, y, _ in found] == [("float32", "uint8")] * 2
    assert (found[1][0], found[1][1].tolist(), found[1][2]) == (4.0, [5], b"b")
    named = next(
        iter(given([{"a": [[1]], "b": 2}], {"a": wf.int16, "b": None}, {"a": [1, None], "b": ()}))
    )
    assert named["a"].dtype == np.int16
    one = Dataset.from_generator(lambda n: [(n,)], (wf.float64,), args=(7,))
    assert [x.tolist() for (x,) in one] == [7.0]
    alone = given([([1, 2],), [[3, 4]]], ("int32",))  # in a tuple of one, a list is its array
    assert [x.ravel().tolist() for (x,) in alone] == [[1, 2], [3, 4]]
    specs = given([wf.ones(2)], output_signature=wf.zeros(2))
    assert next(iter(specs)).dtype == np.float32
    assert [x.shape for x in given([[1], [2]], "int32", (1,)).batch(2)] == [(2, 1)]


@pytest.mark.parametrize(
    ("element", "types", "shapes", "error", "message"),
    [
        ((1, 2), "int32", (), ShapeError, r"expected element of shape \(\), got \(2,\)"),
        (([1], 2), ("int32", "int32"), ([2], []), ShapeError, r"element\[0\] of shape \(2,\), got"),
        ((1, 2, 3), ("int32", "int32"), None, TreeError, "to be a tuple of 2, got tuple"),
        ({"a": 1}, {"b": "int32"}, None, TreeError, r"to be a dict of \['b'\], got dict"),
        (1.5, "int32", None, DTypeError, "expected element of type int32, got 1.5"),
        (300, "uint8", None, DTypeError, "expected element of type uint8, got 300"),
        ("a", "float32", None, DTypeError, "expected element of type float32, got 'a'"),
    ],
)  # fmt: skip
def test_other_elements_raise_and_the_pass_continues(element, types, shapes, error, message):
    elements = given([element, element], types, shapes)
    with pytest.raises(error, match=message) as caught:
        next(iter(elements))
    assert "at element 0" in caught.value.__notes__[0]
    skipping = elements.ignore_errors()
    assert list(skipping) == []
    assert skipping.skipped == 2


def test_what_is_said_must_be_of_one_structure():
    with pytest.raises(TreeError, match="output_shapes: expected a tuple of 2 shapes"):
        given([], ("int32", "int32"), ([],))
    with pytest.raises(DTypeError, match="expected a type, got 'int33'"):
        given([], "int33")
