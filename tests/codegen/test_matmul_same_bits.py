"""Matmuls have the same bits for one size or many, fused or not, on any number of threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from families import TARGETS, machine
from harness import Array
from many import Kernels, Making, same_bits, variants

from weft import ops
from weft.codegen.target import Target
from weft.eager.record.call.plan import placeholders
from weft.ir.dtype import DType, bfloat16, float16, float32, float64, int32
from weft.ir.graph import Graph
from weft.ir.node import TensorType, Value
from weft.passes.group import Group

Form = tuple[str, str, str]
"""Axes of x, axes of y as they lie, and those of the result."""

ALONE: tuple[Form, ...] = (
    ("mk", "kn", "mn"),
    ("km", "kn", "mn"),
    ("mk", "nk", "mn"),
    ("km", "nk", "mn"),
)
BATCH: tuple[Form, ...] = (("bmk", "bkn", "bmn"), ("bkm", "bkn", "bmn"), ("bmk", "bnk", "bmn"))
SHARED: tuple[Form, ...] = (("bmk", "kn", "bmn"), ("bkm", "kn", "bmn"), ("bmk", "nk", "bmn"))
RIGHT: tuple[Form, ...] = (("mk", "bkn", "bmn"),)
BATCHES = (BATCH, SHARED, RIGHT)
SIZES = (
    (1, 1, 1), (1, 1, 777), (2, 3, 5), (3, 2, 1), (1, 100, 70), (97, 1, 101), (4, 70, 333),
    (70, 4, 33), (131, 12, 97), (5, 17, 64), (17, 100, 103), (13, 31, 784), (129, 47, 130),
    (40, 65, 0), (97, 10, 101), (34, 5, 18), (20, 7, 8),
)  # fmt: skip
"""m, n and k."""


def shape(axes: str, sizes: Sequence[int]) -> tuple[int, ...]:
    """The shape with these axes; sizes are m, n, k and b."""
    return tuple([sizes["mnkb".index(axis)] for axis in axes])


def group(form: Form, dtype: DType, tail: Callable[..., list[Value]] | None = None) -> Making:
    """Makes a matmul, and what `tail` computes from it and a bias."""
    x, y = form[:2]
    turns = {"transpose_x": x[-1] == "m", "transpose_y": y[-1] == "k"}

    def make(sizes: Sequence[int]) -> Group:
        types = [TensorType(dtype, shape(axes, sizes)) for axes in (x, y)]
        if tail is not None:
            types.append(TensorType(dtype, shape("n", sizes)))
        with Graph().as_default():
            values = placeholders(types)
            product = ops.matmul(values[0], values[1], **turns)
            last = [] if tail is None else tail(product, values[2])
        nodes = tuple([v.node for v in (product, *last)])
        return Group(nodes, tuple(values), nodes[-1].outputs)

    return make


def operands(form: Form, sizes: Sequence[int], dtype: DType) -> list[Array]:
    """The same numbers for every layout."""
    rng = np.random.default_rng(1)
    found: list[Array] = []
    for axes, plain in zip(form[:2], ("mk", "kn"), strict=True):
        plain = "b" * ("b" in axes) + plain
        drawn = rng.integers(-9, 9, shape("b" + plain[-2:], sizes)) if dtype.is_integer else None
        array = rng.standard_normal(shape("b" + plain[-2:], sizes)) if drawn is None else drawn
        array = array.astype(dtype.numpy)
        array = array if "b" in axes else array[0]
        found.append(np.swapaxes(array, -1, -2).copy() if axes != plain else array)
    return found


def others(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Sizes to plan with: a little apart, and far."""
    m, n, k, b = sizes
    near = m, n, max(1, k - 1), b + 2
    far = m if m <= 52 else 1000, n if n < 32 else 1000, 1000 if k > 384 else 300, b
    return [near, far, (m + 13, n + 64, k + 8, b)]


def exact(form: Form, arrays: Sequence[Array]) -> Array:
    """The product in float64."""
    x, y = (
        np.swapaxes(a, -1, -2) if axes[-1] != wanted else a
        for a, axes, wanted in zip(arrays, form[:2], "kn", strict=True)
    )
    return x.astype(np.float64) @ y.astype(np.float64)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [(name, sizes) for name in TARGETS for sizes in SIZES[:: 1 if name == "native" else 3]],
    ids=str,
)
def test_sizes_layouts_and_threads(name: str, sizes: tuple[int, int, int]) -> None:
    """Also equal whether a transposition is a part of the matmul, and a batch its rows."""
    full, number = (*sizes, 3), SIZES.index(sizes)
    plans = itertools.cycle(others(full))
    is_both = name == "native" and number % 2 == 0
    for dtype in (float32, bfloat16) if is_both else (float32,):
        for forms in (ALONE, BATCHES[(number + number // 3) % 3]):
            found: set[bytes] = set()
            for form in forms:
                arrays, plan = operands(form, full, dtype), [next(plans)]
                (y,) = same_bits(group(form, dtype), arrays, full, plan, machine(name))
                rtol, atol = (1e-5, 1e-4) if dtype is float32 else (1e-2, 1e-1)
                np.testing.assert_allclose(y.astype(float), exact(form, arrays), rtol, atol)
                found.add(y.tobytes())
            assert len(found) == 1


@pytest.mark.parametrize("dtype", [float64, float16, int32], ids=str)
def test_types(dtype: DType) -> None:
    for sizes in ((1, 9, 20), (7, 2, 65), (17, 100, 103), (30, 70, 400)):
        full = *sizes, 2
        plans = itertools.cycle(others(full))
        for form in (*ALONE, BATCH[0]):
            arrays = operands(form, full, dtype)
            plan = [] if dtype is int32 else [next(plans)]
            same_bits(group(form, dtype), arrays, full, plan, machine("native"))


@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
@pytest.mark.parametrize("name", TARGETS)
def test_long_sums(name: str, dtype: DType) -> None:
    """Several blocks of k, or parts: for every layout, and whether rows are a batch."""
    for sizes in ((6, 20, 70001), (1, 3, 70001), (1, 1, 70001), (40, 70, 12008), (33, 301, 5001)):
        m, n, k = sizes
        plans = itertools.cycle([(m, n, k - 999, 2), (m, n, k + 1001, 3)])
        found: set[bytes] = set()
        for form in ALONE:
            arrays = operands(form, (*sizes, 1), dtype)
            plan, goal = [next(plans)], machine(name)
            (y,) = same_bits(group(form, dtype), arrays, (*sizes, 1), plan, goal)
            rtol, atol = (1e-3, 1e-2) if dtype is float32 else (1e-2, 3.0)
            np.testing.assert_allclose(y.astype(float), exact(form, arrays), rtol, atol)
            found.add(y.tobytes())
        assert len(found) == 1


def test_long_sums_of_a_batch_of_rows() -> None:
    sizes = 11, 70, 12008, 3
    found = {
        same_bits(
            group(form, float32), operands(form, sizes, float32), sizes, [(12, 71, 9000, 3)],
            machine("native"),
        )[0].tobytes()
        for form in SHARED
    }  # fmt: skip
    assert len(found) == 1


def bias_relu(product: Value, bias: Value) -> list[Value]:
    """A usual tail."""
    moved = ops.add(product, bias)
    return [moved, ops.relu(moved)]


@pytest.mark.parametrize("dtype", [float32, float64, bfloat16], ids=str)
def test_an_epilogue_changes_no_bit(dtype: DType) -> None:
    """But in half precision, where what is fused is rounded once, at its end."""
    goal = machine("native")
    for i, form in enumerate((*ALONE[:2], SHARED[0])):
        for sizes in ((1, 100, 70, 2), (9, 4, 70, 2), (33, 70, 400, 2), (45, 66, 2000, 2)):
            x, y = operands(form, sizes, dtype)
            bias = np.linspace(-20, 20, sizes[1]).astype(dtype.numpy)
            (product,) = same_bits(group(form, dtype), [x, y], sizes, [], goal)
            fused = group(form, dtype, bias_relu)
            (found,) = same_bits(fused, [x, y, bias], sizes, [others(sizes)[i]], goal)
            (apart,) = _tail(product, bias, dtype, goal)
            assert dtype is bfloat16 or found.tobytes() == apart.tobytes()


def _tail(product: Array, bias: Array, dtype: DType, target: Target) -> list[Array]:
    """The tail in kernels of its own."""
    types = [TensorType(dtype, product.shape), TensorType(dtype, bias.shape)]

    def add(_: Sequence[int]) -> Group:
        with Graph().as_default():
            values = placeholders(types)
            moved = ops.add(*values)
        return Group((moved.node,), tuple(values), (moved,))

    def relu(_: Sequence[int]) -> Group:
        with Graph().as_default():
            values = placeholders(types[:1])
            y = ops.relu(*values)
        return Group((y.node,), tuple(values), (y,))

    moved = Kernels(add, (), target, many=False).run([product, bias], ())
    return Kernels(relu, (), target, many=False).run(moved, ())


def test_a_large_product() -> None:
    sizes = 1000, 1000, 1000, 1
    arrays = operands(ALONE[0], sizes, float32)
    found = {
        same_bits(
            group(form, float32), operands(form, sizes, float32), sizes, [(200, 64, 400, 1)],
            machine("native"),
        )[0].tobytes()
        for form in ALONE
    }  # fmt: skip
    assert len(found) == 1
    (y,) = Kernels(group(ALONE[0], float32), sizes, machine("native"), False).run(arrays, sizes)
    np.testing.assert_allclose(y, exact(ALONE[0], arrays), 1e-4, 1e-3)


@pytest.mark.parametrize(
    ("family", "most"),
    [
        ([(m, 512, 512, 1) for m in range(1, 301)], 16),
        ([(64, n, 512, 1) for n in range(1, 301)], 16),
        ([(64, 512, k, 1) for k in range(1, 2001)], 3),
        ([(n, n, n, 1) for n in range(1, 1200)], 30),
    ],
    ids=["rows", "columns", "steps", "all"],
)
def test_few_variants_cover_many_sizes(family: list[tuple[int, ...]], most: int) -> None:
    target = machine("native")
    assert variants(group(ALONE[0], float32), family, target) <= most


def test_the_checks_can_fail() -> None:
    """A kernel that adds in another order has other bits."""
    make = group(ALONE[0], float32)
    sizes = 30, 70, 400, 1
    x, y = operands(ALONE[0], sizes, float32)
    (found,) = Kernels(make, sizes, machine("native"), many=False).run([x, y], sizes)
    turned = [x[:, ::-1].copy(), y[::-1].copy()]
    (other,) = Kernels(make, sizes, machine("native"), many=False).run(turned, sizes)
    np.testing.assert_allclose(found, other, 1e-4, 1e-4)
    assert found.tobytes() != other.tobytes()
