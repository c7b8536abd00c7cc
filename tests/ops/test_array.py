"""Movement operations against NumPy, over random shapes and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import run, same
from strategies import dims, dtypes, shapes

from weft import ops
from weft.errors import DTypeError, GraphError, OutOfRangeError, ShapeError
from weft.ir.dtype import DType
from weft.ir.graph import Graph
from weft.ir.shape import Shape

SMALL: dict[str, Any] = {"high": 5, "max_size": 200}


def counting(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    numpy_type = dtype.numpy if isinstance(dtype, DType) else dtype
    return (np.arange(np.prod(shape, dtype=int)) % 100).astype(numpy_type).reshape(shape)


def placeholder(shape: Shape, dtype: Any = "float32") -> Any:
    return ops.placeholder(dtype=dtype, shape=shape)


@st.composite
def subscripts(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Any mix of integers, slices, None and one ellipsis that fits the shape."""
    items: list[Any] = []
    bound = st.one_of(st.none(), st.integers(-7, 7))
    for d in shape:
        step = draw(st.sampled_from([None, 1, 2, 3, -1, -2, -3]))
        cut = slice(draw(bound), draw(bound), step)
        items.append(draw(st.integers(-d, d - 1)) if d and draw(st.booleans()) else cut)
    items = items[: draw(st.integers(0, len(items)))]
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), None)
    if draw(st.booleans()):
        at = draw(st.integers(0, len(items)))
        # An ellipsis stands for full slices, so what follows it must be dropped to still fit.
        items = [*items[:at], ...]
    return tuple(items)


@given(st.data(), dtypes(), st.booleans())
def test_subscript_is_numpys(data: st.DataObject, dtype: DType, open_shapes: bool) -> None:
    shape = data.draw(shapes(**SMALL))
    x = counting(shape, dtype)
    key = data.draw(subscripts(shape))
    same(run(lambda v: v[key], x, open_shapes=open_shapes), x[key])


@given(st.data(), dtypes())
def test_transpose_and_flip(data: st.DataObject, dtype: DType) -> None:
    shape = data.draw(shapes(**SMALL))
    x = counting(shape, dtype)
    perm = tuple(data.draw(st.permutations(range(len(shape)))))
    same(run(lambda v: ops.transpose(v, perm=perm), x), x.transpose(perm))
    axes = perm[: len(perm) // 2]
    same(run(lambda v: ops.flip(v, axes=axes), x), np.flip(x, axes))


@given(st.data(), dtypes())
def test_reshape(data: st.DataObject, dtype: DType) -> None:
    shape = data.draw(shapes(**SMALL))
    x = counting(shape, dtype)
    parts = [d for d in shape if d != 1]
    new = tuple(data.draw(st.permutations([*parts, 1])))
    same(run(lambda v: ops.reshape(v, shape=new), x), x.reshape(new))
    if x.size:
        flat = run(lambda v: ops.reshape(v, shape=(-1, 1)), x, open_shapes=True)
        same(flat, x.reshape(-1, 1))


@given(st.data(), dtypes())
def test_broadcast_tile_pad(data: st.DataObject, dtype: DType) -> None:
    shape = data.draw(shapes(max_rank=3, **SMALL))
    x = counting(shape, dtype)
    wide = (2, *(3 if d == 1 else d for d in shape))
    same(run(lambda v: ops.broadcast_to(v, shape=wide), x), np.broadcast_to(x, wide))
    reps = tuple(data.draw(st.integers(0, 3)) for _ in range(data.draw(st.integers(1, 4))))
    same(run(lambda v: ops.tile(v, reps=reps), x), np.tile(x, reps))
    paddings = tuple((data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))) for _ in shape)
    padded = run(lambda v: ops.pad(v, paddings=paddings, value=1), x)
    same(padded, np.pad(x, paddings, constant_values=1) if shape else x)


@given(st.data(), dtypes(), st.sampled_from(["reflect", "symmetric"]))
def test_mirror_pad(data: st.DataObject, dtype: DType, mode: str) -> None:
    shape = data.draw(shapes(min_rank=1, max_rank=3, low=1, high=5))
    most = [d if mode == "symmetric" else d - 1 for d in shape]
    paddings = tuple((data.draw(st.integers(0, n)), data.draw(st.integers(0, n))) for n in most)
    x = counting(shape, dtype)
    with Graph().as_default():
        composite = ops.mirror_pad.lower.expand
    expected = np.pad(x, paddings, mode)  # type: ignore[call-overload]
    same(run(lambda v: ops.mirror_pad(v, paddings=paddings, mode=mode), x), expected)
    same(run(lambda v: composite(v, paddings=paddings, mode=mode), x), expected)


@given(st.data(), dtypes(), st.booleans())
def test_concatenate_stack_split(data: st.DataObject, dtype: DType, open_shapes: bool) -> None:
    shape = data.draw(shapes(min_rank=1, max_rank=3, **SMALL))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    sizes = data.draw(st.lists(dims(0, 5), min_size=1, max_size=4))
    parts = []
    for n in sizes:
        own = list(shape)
        own[axis] = n
        parts.append(counting(tuple(own), dtype))
    whole = np.concatenate(parts, axis)
    same(run(lambda *vs: ops.concatenate(*vs, axis=axis), *parts, open_shapes=open_shapes), whole)
    split = run(lambda v: ops.split.all(v, sizes=sizes, axis=axis), whole, open_shapes=open_shapes)
    for found, part in zip(split, parts, strict=True):
        same(found, part)
    rows = [counting(shape, dtype) for _ in sizes]
    same(run(lambda *vs: ops.stack(*vs, axis=axis), *rows), np.stack(rows, axis))
    stacked = np.stack(rows, axis)
    unstacked = run(lambda v: ops.unstack.all(v, count=len(rows), axis=axis), stacked)
    for found, row in zip(unstacked, rows, strict=True):
        same(found, row)


@given(st.integers(-9, 9), st.integers(-9, 9), st.sampled_from([-3, -1, 1, 2, 5]))
def test_arange(start: int, stop: int, step: int) -> None:
    found = run(lambda: ops.arange(start=start, stop=stop, step=step))
    same(found, np.arange(start, stop, step, np.int32))


def test_triangles_and_identity() -> None:
    x = counting((3, 4, 5))
    for k in (-2, 0, 1):
        same(run(lambda v, k=k: ops.tril(v, k), x), np.tril(x, k))
        same(run(lambda v, k=k: ops.triu(v, k), x), np.triu(x, k))
    same(run(lambda: ops.eye(3, 4)), np.eye(3, 4, dtype=np.float32))


def test_attributes_may_be_values() -> None:
    x = counting((2, 3, 4))
    two, shape = np.array(2, np.int32), np.array([4, 6], np.int64)
    same(run(lambda v, s: ops.reshape(v, shape=s), x, shape), x.reshape(4, 6))
    same(run(lambda v, n: ops.reshape(v, shape=[n * n, -1]), x, two), x.reshape(4, 6))
    same(run(lambda v, n: v[:, n - 1 :, :n], x, two), x[:, 1:, :2])
    same(run(lambda v, n: v[1, n - 1], x, two), x[1, 1])
    same(run(lambda v, n: ops.tile(v, reps=[1, n, 1]), x, two), np.tile(x, (1, 2, 1)))
    pads = [[0, 0], [0, 0], [2, 0]]
    padded = np.pad(x, pads)
    same(run(lambda v, n: ops.pad(v, paddings=[[0, 0], [0, 0], [n, 0]]), x, two), padded)
    given_pads = np.array(pads, np.int32)
    same(run(lambda v, p: ops.pad(v, paddings=p), x, given_pads), padded)
    same(run(lambda v, n: ops.sum(v, axes=n), x, two), x.sum(2))
    same(run(lambda v, n: ops.sum(v, axes=[0, n]), x, two), x.sum((0, 2)))
    same(run(lambda v, n: ops.concatenate(v, v, axis=n), x, two), np.concatenate([x, x], 2))
    same(run(lambda n: ops.full([n, 3], 7.0), two), np.full((2, 3), 7, np.float32))
    same(run(lambda n: ops.iota(shape=[3, n], axis=1), two), np.array([[0, 1]] * 3, np.int32))
    same(run(lambda n: ops.arange(stop=n), two), np.arange(2, dtype=np.int32))
    same(run(lambda v, n: ops.transpose(v, perm=[n, 0, 1]), x, two), x.transpose(2, 0, 1))
    same(run(lambda v, n: ops.split.all(v, sizes=[n, 1], axis=1), x, two)[1], x[:, 2:])


@pytest.mark.parametrize(
    ("build", "kind", "message"),
    [
        (
            lambda: ops.reshape(placeholder((2, 3)), shape=(4, 2)),
            ShapeError,
            "reshape: expected a shape of 6 elements like x (2, 3), got (4, 2)",
        ),
        (
            lambda: ops.reshape(placeholder((2, 3)), shape=(-1, -1)),
            ShapeError,
            "reshape: shape: expected at most one -1, got (-1, -1)",
        ),
        (
            lambda: ops.transpose(placeholder((2, 3)), perm=(0, 0)),
            ShapeError,
            "transpose: perm: expected a permutation of 2 axes, got (0, 0)",
        ),
        (
            lambda: ops.broadcast_to(placeholder((2, 3)), shape=(2, 4)),
            ShapeError,
            "broadcast_to: expected x to broadcast to (2, 4), got shape (2, 3)",
        ),
        (
            lambda: ops.concatenate(placeholder((2, 3)), placeholder((3, 4)), axis=0),
            ShapeError,
            "concatenate: expected shapes equal but for axis 0, got (2, 3) and (3, 4)",
        ),
        (
            lambda: ops.concatenate(placeholder((2,)), placeholder((2,), "int32")),
            DTypeError,
            "concatenate: expected one dtype, got float32 and int32",
        ),
        (
            lambda: ops.pad(placeholder((2,)), paddings=((-1, 0),)),
            ShapeError,
            "pad: paddings: expected numbers that are not negative, got ((-1, 0),)",
        ),
        (
            lambda: ops.split(placeholder((5,)), sizes=(2, 2)),
            ShapeError,
            "split: sizes: expected a sum of x.shape[0] == 5, got (2, 2)",
        ),
        (
            lambda: placeholder((2, 3))[1, 3],
            OutOfRangeError,
            "subscript: expected -3 <= index < 3 on axis 1, got 3",
        ),
        (lambda: placeholder((2,))[0, 0], ShapeError, "subscript: expected at most 1 subscripts"),
        (lambda: placeholder((2,))["a"], GraphError, "subscript: expected an integer, a slice"),
        (
            lambda: ops.squeeze(placeholder((2, 1)), axes=0),
            ShapeError,
            "squeeze: expected x.shape[0] == 1, got shape (2, 1)",
        ),
        (
            lambda: placeholder((2,), "int32") + 0.5,
            DTypeError,
            "constant: expected a number that int32 holds, got 0.5",
        ),
        (
            lambda: ops.constant([[1], [2, 3]]),
            ShapeError,
            "constant: expected nested lists of equal lengths, got [[1], [2, 3]]",
        ),
        (
            lambda: ops.pad(placeholder((2,)), paddings=3),
            GraphError,
            "pad: cannot make sense of paddings = 3, value = 0",
        ),
        (
            lambda: ops.constant(2**70, "int32"),
            DTypeError,
            f"constant: expected a number that int32 holds, got {2**70}",
        ),
        (lambda: placeholder((2,))[True], GraphError, "subscript: expected no boolean, got True"),
        (lambda: ops.concatenate(axis=0), DTypeError, "expected at least one input"),
        (ops.sum_of_members, GraphError, "sum_of_members: expected at least one input, got none"),
        (
            lambda: ops.band_part(placeholder((2, 3)), upper=int),
            DTypeError,
            "band_part: upper: expected int | None, got <class 'int'>",
        ),
        (
            lambda: ops.sum(placeholder((2,)), axes=False),
            DTypeError,
            "sum: axes: expected an integer, got False",
        ),
        (
            lambda: ops.negative(placeholder((2,)), name=3),
            GraphError,
            "negative: expected a name of type str, got 3",
        ),
        (lambda: ops.reshape(placeholder((2,))), GraphError, "attribute 'shape' is missing"),
        (
            lambda: ops.reshape(placeholder((2,)), shap=(2,)),
            GraphError,
            "reshape: unknown attribute 'shap', expected one of shape",
        ),
    ],
)
def test_errors_say_expectation_actual_and_line(build: Any, kind: type, message: str) -> None:
    with Graph().as_default(), pytest.raises(kind) as caught:
        build()
    assert message in str(caught.value)
    assert str(caught.value).count("(created at test_array.py:") == 1


def test_the_comparison_with_numpy_can_fail() -> None:
    x = counting((3,))
    with pytest.raises(AssertionError):
        same(run(lambda v: v[::-1], x), x)


def test_subscripts_by_arrays() -> None:
    x = counting((4, 5))
    places = np.array([[3, 0], [1, 1]])
    same(run(lambda v: v[places], x), x[places])
    same(run(lambda v: v[1:, [2, 0]], x), x[1:, [2, 0]])
    same(run(lambda v, i: v[..., i, None], x, places), x[..., places, None])
    same(run(lambda v: v[np.int64(2)], x), x[2])
