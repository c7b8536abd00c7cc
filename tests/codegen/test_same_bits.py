"""A kernel gives the same bits for one size or for many, fused or not, however chunks run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from families import TARGETS, machine
from sized import Form, Sizes, at, run, run_alone, same_bits, variants

from weft import ops
from weft.ir import dtype as types
from weft.ir.dtype import DType

SIZES = (1, 2, 3, 5, 7, 15, 16, 17, 31, 63, 64, 65, 100, 1000, 4099, 70001)
MOST = 200_000  # elements
DRAWN = 3


def of(build: Any, *shapes: Sequence[str | int], dtype: DType = types.float32) -> Form:
    return Form(build, shapes, (dtype,) * len(shapes))


def softmax(x: Any) -> Any:
    e = ops.exp(x - ops.max(x, axes=(1,), keepdims=True))
    return e / ops.sum(e, axes=(1,), keepdims=True)


def log_softmax(x: Any) -> Any:
    shifted = x - ops.max(x, axes=(1,), keepdims=True)
    return shifted - ops.log(ops.sum(ops.exp(shifted), axes=(1,), keepdims=True))


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    centered = x - ops.sum(x, axes=(1,), keepdims=True) * 0.015625
    variance = ops.sum(centered * centered, axes=(1,), keepdims=True) * 0.015625
    return centered * ops.rsqrt(variance + 1e-5) * w + b


def two_types(x: Any) -> Any:
    wide = ops.sum(ops.cast(x, dtype="float64") * 0.3, axes=(1,))
    return ops.sum(x, axes=(1,)), wide, ops.max(x, axes=(1,))


def beside_integers(x: Any) -> Any:
    some = ops.less(ops.cast(x, dtype="int64"), 3)
    return ops.sum(ops.select(some, x, x * 0.5), axes=(1,))


def differences(x: Any) -> Any:
    rows, columns = x.shape
    after = ops.slice(x, begin=(0, 1), end=(rows, columns))
    return ops.sum(ops.abs(after - ops.slice(x, begin=(0, 0), end=(rows, columns - 1))), axes=None)


def heads(x: Any) -> Any:
    rows, columns, _ = x.shape
    return ops.transpose(ops.reshape(x, shape=(rows, columns, 4, 8)), perm=(0, 2, 1, 3)) * 2.0


def matrix_norm(x: Any, w: Any) -> Any:
    """Layer norm over two axes, which weights of one axis keep from being one loop."""
    centered = x - ops.sum(x, axes=(1, 2), keepdims=True) * 0.015625
    variance = ops.sum(centered * centered, axes=(1, 2), keepdims=True) * 0.015625
    return centered * ops.rsqrt(variance + 1e-5) * w


def total(*axes: int) -> Any:
    return lambda x: ops.sum(x, axes=axes)


FORMS = {
    "rows": of(total(1), "mn"),
    "columns": of(total(0), "mn"),
    "all": of(total(0, 1), "mn"),
    "long": of(total(0), "n"),
    "middle": of(total(1), "kmn"),
    "outer and inner": of(total(0, 2), "kmn"),
    "inner two": of(total(1, 2), "kmn"),
    "outer two": of(total(0, 1), "kmn"),
    "product of rows": of(lambda x: ops.prod(x, axes=(1,)), "mn"),
    "maximum of rows": of(lambda x: ops.max(x, axes=(1,)), "mn"),
    "minimum of columns": of(lambda x: ops.min(x, axes=(0,)), "mn"),
    "rows of float64": of(total(1), "mn", dtype=types.float64),
    "rows of float16": of(total(1), "mn", dtype=types.float16),
    "columns of bfloat16": of(total(0), "mn", dtype=types.bfloat16),
    "all of int32": of(total(0, 1), "mn", dtype=types.int32),
    "sum of exp": of(lambda x: ops.sum(ops.exp(x * 0.1), axes=(1,)), "mn"),
    "softmax": of(softmax, "mn"),
    "log-softmax": of(log_softmax, "mn"),
    "layer norm": of(layer_norm, "mn", "n", "n"),
    "matrix norm": of(matrix_norm, "kmn", "n"),
    "dot": of(lambda x, y: ops.sum(x * y, axes=None), "n", "n"),
    "squares": of(lambda x, y: ops.sum((x - y) * (x - y), axes=None), "mn", "mn"),
    "weighted columns": of(lambda x, w: ops.sum(x * w, axes=None), "mn", "n"),
    "weighted rows": of(lambda x, w: ops.sum(x * w, axes=None), "mn", ("m", 1)),
    "two types": of(two_types, "mn"),
    "beside integers": of(beside_integers, "mn"),
    "two sums of columns": of(lambda x: (total(0)(x), total(0)(x * x)), "mn"),
    "elementwise": of(lambda x, y: ops.exp(x) * y + x, "mn", "mn"),
    "bias": of(lambda x, y: x * 3.0 + y, "mn", "n"),
    "scale": of(lambda x, y: x * y, "mn", ("m", 1)),
    "channels": of(lambda x, y: x * 2.0 + y, "bcmn", ("c", 1, 1)),
    "outer product": of(lambda x, y: x * y, ("m", 1), ("n",)),
    "transpose": of(lambda x: ops.transpose(x, perm=(1, 0)) * 2.0, "mn"),
    "differences": of(differences, "mn"),
    "heads": of(heads, ("m", "n", 32)),
    "padded": of(lambda x: ops.pad(x, paddings=((0, 0), (1, 2))) * 2.0, "mn"),
    "concatenated": of(lambda x, y: total(1)(ops.concatenate(x, y, axis=1)), "mn", "mk"),
    "flipped": of(lambda x: ops.flip(x, axes=(1,)) * 2.0, "mn"),
    "cast": of(lambda x: ops.cast(x, dtype="float16"), "mn"),
}


def drawn(form: Form, count: int = DRAWN) -> list[Sizes]:
    """Sizes of some forms, the same in every run."""
    rng = random.Random(len(form.letters))
    found: list[Sizes] = []
    while len(found) < count:
        sizes = {d: rng.choice(SIZES) for d in form.letters}
        if np.prod(at([*form.letters], sizes)) <= MOST:
            found.append(sizes)
    return found


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FORMS)
def test_one_size_or_many_fused_or_not(name: str, target: str) -> None:
    form, goal = FORMS[name], machine(target)
    for sizes, variant in variants(form, drawn(form), goal):
        expected = run(form, sizes, goal)
        planned = variant.planned
        assert same_bits(run(form, sizes, goal, variant, seed=1), expected), (planned, sizes)
        several = len(form.group(sizes).nodes) > 1
        if several and form.dtypes[0].size > 2:  # half precision is rounded once a kernel
            assert same_bits(run_alone(form, sizes, goal), expected), sizes
