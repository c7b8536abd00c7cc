"""Checks of one operation against its own declaration; `test_catalogue.py` runs them on all.

Each check takes an operation and one of its cases, and raises where two of its rules disagree.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from emulator import emulate

from weft.errors import MismatchError, ShapeError
from weft.ir.dtype import DType, as_dtype, float64
from weft.ir.graph import Graph
from weft.ir.node import TensorType, Value
from weft.ir.shape import compatible
from weft.ops.boundary.state import constant
from weft.ops.declaration import (
    NO_GRADIENT,
    Array,
    Boundary,
    Case,
    Composite,
    Elementwise,
    Op,
    Pull,
    catalogue,
)
from weft.ops.declaration.attribute import freeze
from weft.ops.shape.creation import zeros_like
from weft.runtime.engine import Function, State
from weft.transform.check import check_gradients
from weft.transform.gradient import dense, gradients
from weft.transform.interpretation import Interpretation
from weft.transform.interpreter import evaluate

# Elements up to which a case is differentiated: central differences cost two runs an element.
DIFFERENTIATED = 160


def attributes(op: Op, case: Case) -> dict[str, Any]:
    """All attributes of a case, in the form that nodes keep."""
    given = {k: as_dtype(v) if k == "dtype" else freeze(v) for k, v in case.attrs.items()}
    return {**op.attrs, **given}


def types_of(arrays: tuple[Array, ...]) -> tuple[TensorType, ...]:
    return tuple(TensorType(as_dtype(a.dtype), a.shape) for a in arrays)


def reference(op: Op, case: Case) -> tuple[Array, ...]:
    """Outputs of the reference."""
    with np.errstate(all="ignore"):
        found = op.reference(*case.inputs, **attributes(op, case))
    return tuple(map(np.asarray, (found,) if op.outputs == 1 else found))


def check_types(op: Op, case: Case) -> None:
    """The type rules say what the reference gives, and inputs stay as they were."""
    before = [a.copy() for a in case.inputs]
    inferred = op.derive(types_of(case.inputs), attributes(op, case))
    found = types_of(reference(op, case))
    if inferred != found:
        raise MismatchError(f"{op.name}: the rules say {inferred}, the reference gives {found}")
    for a, b in zip(before, case.inputs, strict=True):
        if a.tobytes() != b.tobytes():
            raise MismatchError(f"{op.name}: the reference changed its input")


def is_complex(op: Op, case: Case) -> bool:
    """Whether a case has complex numbers, which nothing compiles."""
    kinds = types_of(case.inputs)
    return any(k.dtype.is_complex for k in (*kinds, *op.derive(kinds, attributes(op, case))))


def _partly_known(types: tuple[TensorType, ...]) -> Iterator[tuple[TensorType, ...]]:
    """The types with one dimension, all dimensions, or a rank unknown."""
    for i, kind in enumerate(types):
        assert kind.shape is not None
        rank = len(kind.shape)
        blurred: list[Any] = [None, (None,) * rank]
        blurred += [(*kind.shape[:d], None, *kind.shape[d + 1 :]) for d in range(rank)]
        for shape in blurred:
            yield (*types[:i], TensorType(kind.dtype, shape), *types[i + 1 :])
    yield tuple(TensorType(t.dtype, t.shape and (None,) * len(t.shape)) for t in types)
    yield tuple(TensorType(t.dtype, None) for t in types)


def check_unknown_shapes(op: Op, case: Case) -> None:
    """What the rules say of partly known shapes does not contradict the whole truth."""
    truth = op.derive(types_of(case.inputs), attributes(op, case))
    for types in _partly_known(types_of(case.inputs)):
        said = op.derive(types, attributes(op, case))
        fits = len(said) == len(truth) and all(
            a.dtype is b.dtype and compatible(a.shape, b.shape)
            for a, b in zip(said, truth, strict=True)
        )
        if not fits:
            raise MismatchError(f"{op.name}: of {types} the rules say {said}, but it is {truth}")


def check_normal_form(op: Op, case: Case) -> None:
    """Attributes in normal form mean the same, and are their own normal form."""
    attrs = attributes(op, case)
    normal = op.normal(*[a.shape for a in case.inputs], **attrs)
    if op.normal(*[a.shape for a in case.inputs], **normal) != normal or set(normal) != set(attrs):
        raise MismatchError(f"{op.name}: {normal} is not the normal form of {attrs}")
    expected = reference(op, case)
    found = reference(op, Case(case.inputs, normal))
    if [a.tobytes() for a in expected] != [b.tobytes() for b in found]:
        raise MismatchError(f"{op.name}: the reference tells {normal} from {attrs}")


def tolerance(case: Case, dtype: DType) -> tuple[float, float]:
    """Relative and absolute tolerance: a case states them for float32."""
    if not dtype.is_inexact:
        return 0.0, 0.0
    dtype = dtype.real
    one = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "float64": 2**-52}[dtype.name]
    ratio = one / 2**-23
    if ratio > 1:  # computed in float32, rounded on store: one unit in the last place
        return max(case.rtol, 2 * one), max(case.atol, 0.1 * one)
    return case.rtol * ratio * 4, case.atol * ratio * 4  # double precision kernels: 4 times looser


def assert_close(op: Op, case: Case, found: tuple[Array, ...], expected: tuple[Array, ...]) -> None:
    """Equal within the case's tolerance; infinities and NaN at the same positions."""
    for y, want in zip(found, expected, strict=True):
        y = np.asarray(y)
        if y.shape != want.shape or y.dtype != want.dtype:
            raise MismatchError(
                f"{op.name}: expected {want.dtype}{want.shape}, got {y.dtype}{y.shape}"
            )
        rtol, atol = tolerance(case, as_dtype(want.dtype))
        if as_dtype(want.dtype).is_floating:
            y, want = y.astype(np.float64), want.astype(np.float64)
        bad = ~np.isclose(y, want, rtol, atol, equal_nan=True) if rtol else y != want
        if np.any(bad):
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            raise MismatchError(
                f"{op.name}{[a.shape for a in case.inputs]} {dict(case.attrs)}: differs at {at} and"
                f" {int(bad.sum()) - 1} more: expected {want[at]}, got {y[at]}, inputs"
                f" {[_at(a, at, want.shape) for a in case.inputs]}"
            )


def _at(array: Array, at: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    try:
        return np.broadcast_to(array, shape)[at]
    except ValueError:
        return f"{array.dtype}{array.shape}"


def check_lowering(op: Op, case: Case) -> None:
    """The lowering says the same as the reference: rules by emulation, composites by expansion."""
    expected = reference(op, case)
    if is_complex(op, case):
        return
    if isinstance(op.lower, Elementwise | Pull):
        normal = op.normal(*[a.shape for a in case.inputs], **attributes(op, case))
        found = (emulate(op, case.inputs, normal, expected[0].shape),)
    elif isinstance(op.lower, Composite):
        found = _expanded(op, case)
    else:
        return
    assert_close(op, case, found, expected)


def _expanded(op: Op, case: Case) -> tuple[Array, ...]:
    assert isinstance(op.lower, Composite)
    graph = Graph()
    with graph.as_default():
        xs = [constant(np.asarray(a)) for a in case.inputs]
        normal = op.normal(*[a.shape for a in case.inputs], **attributes(op, case))
        ys = op.lower.expand(*xs, **normal)
    return tuple(evaluate(graph, ys if isinstance(ys, tuple) else (ys,)))


def check_interpreted(op: Op, case: Case) -> None:
    """A prepared interpretation, which takes the `fast` form, agrees with the reference."""
    if isinstance(op.lower, Boundary):
        return
    graph = Graph()
    with graph.as_default():
        xs = [_placeholder(a) for a in case.inputs]
        ys = op.all(*xs, **case.attrs)
    run = Interpretation(graph, ys, xs)
    expected = reference(op, case)
    for _ in range(2):
        found = run(case.inputs)
        assert_close(op, case, tuple(found), expected)
        for y in found:
            y.fill(1)  # it is no other program's memory: the next run gives the same


def check_gradient(op: Op, case: Case) -> None:
    """The gradient rule agrees with central differences, and so does its own gradient."""
    if not differentiable(op, case):
        return
    check_gradients(lambda *xs: op.all(*xs, **case.attrs), case.inputs, order=2)


def differentiable(op: Op, case: Case) -> bool:
    """Whether a case has something to differentiate, and is small and finite."""
    if op.vjp is NO_GRADIENT or not case.differentiate:
        return False
    types = [TensorType(float64 if t.dtype.is_floating else t.dtype, t.shape)
             for t in types_of(case.inputs)]  # fmt: skip
    outputs = op.derive(tuple(types), attributes(op, case))
    return (
        any(t.dtype is float64 for t in types)
        and any(y.dtype is float64 for y in outputs)
        and sum(a.size for a in case.inputs) <= DIFFERENTIATED
        and all(np.isfinite(y.astype(np.float64)).all() for y in reference(op, case))
    )


def check_compiled(op: Op, cases: list[Case]) -> None:
    """Compiled code agrees with the reference; all cases are compiled as one program."""
    cases = [case for case in cases if not is_complex(op, case)]
    if isinstance(op.lower, Boundary) or not cases:
        return
    try:
        _check_program(op, cases)
    except Exception:
        for case in cases:  # name the case, if it fails alone
            if len(cases) > 1:
                _check_program(op, [case])
        raise


def _check_program(op: Op, cases: list[Case]) -> None:
    graph, fetches, feeds, arrays = Graph(), list[Value](), list[Value](), list[Array]()
    spans: list[slice] = []
    with graph.as_default():
        for case in cases:
            xs = [_placeholder(a) for a in case.inputs]
            ys = op.all(*xs, **case.attrs)
            spans.append(slice(len(fetches), len(fetches) + len(ys)))
            feeds += xs
            fetches += ys
            arrays += case.inputs
    found = Function(graph, fetches, feeds=feeds)(arrays, State())
    for case, span in zip(cases, spans, strict=True):
        assert_close(op, case, tuple(found[span]), reference(op, case))


def check_compiled_gradient(op: Op, cases: list[Case]) -> None:
    """The compiled backward graph agrees with the interpreter's values of the same graph.

    Sums are formed in another order, so errors count relative to a gradient's largest element.
    """
    graph, fetches, feeds = Graph(), list[Value](), dict[Value, Array]()
    with graph.as_default():
        for case in cases:
            xs = [_placeholder(a) for a in case.inputs]
            found = gradients(op.all(*xs, **case.attrs), xs)
            fetches += [dense(g) for g in found if g is not None]
            feeds.update(zip(xs, case.inputs, strict=True))
    expected = evaluate(graph, fetches, feeds)
    found = Function(graph, fetches, feeds=list(feeds))(list(feeds.values()), State())
    for value, y, want in zip(fetches, found, expected, strict=True):
        y, wide = np.asarray(y).astype(np.float64), want.astype(np.float64)
        unit = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-5, "float64": 1e-12}
        scale = np.max(np.abs(wide), initial=1.0, where=np.isfinite(wide))
        bad = ~np.isclose(y, wide, 0, unit[value.dtype.name] * scale, equal_nan=True)
        if np.any(bad):
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            raise MismatchError(
                f"{op.name}: the compiled gradient {value.node.describe()} differs at {at}:"
                f" expected {wide[at]}, got {y[at]}"
            )


def check_gradient_of_unknown_shapes(op: Op, cases: list[Case]) -> None:
    """Values and gradients are equal, compiled and interpreted, where only feeds give the shapes.

    An operation may refuse to be built without a shape that it needs.
    """
    for hide in (lambda shape: (None,) * len(shape), lambda shape: None):
        graph, fetches, feeds = Graph(), list[Value](), dict[Value, Array]()
        expected: list[Array] = []
        with graph.as_default():
            for case in cases:
                inputs = [_wide(a) for a in case.inputs]
                xs = [_placeholder(a, hide(a.shape)) for a in inputs]
                try:
                    ys = op.all(*xs, **case.attrs)
                except ShapeError:
                    continue
                fetches += [*ys, *_slopes(ys, xs)]
                feeds.update(zip(xs, inputs, strict=True))
                expected += _known(op, case, inputs)
        compiled = Function(graph, fetches, feeds=list(feeds))(list(feeds.values()), State())
        for results in (evaluate(graph, fetches, feeds), compiled):
            for y, want in zip(results, expected, strict=True):
                np.testing.assert_allclose(y, want, rtol=1e-9, atol=1e-9, err_msg=op.name)


def _known(op: Op, case: Case, inputs: list[Array]) -> list[Array]:
    """Outputs and gradients with all shapes known from the start."""
    graph = Graph()
    with graph.as_default():
        xs = [_placeholder(a) for a in inputs]
        ys = op.all(*xs, **case.attrs)
        fetches = [*ys, *_slopes(ys, xs)]
    return evaluate(graph, fetches, dict(zip(xs, inputs, strict=True)))


def _slopes(ys: tuple[Value, ...], xs: list[Value]) -> list[Value]:
    """Gradients by the floating inputs, zeros where there is none."""
    floating = [x for x in xs if x.dtype.is_floating]
    found = zip(gradients(ys, floating), floating, strict=True)
    return [zeros_like(x) if g is None else dense(g) for g, x in found]


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if as_dtype(array.dtype).is_floating else array


def _placeholder(array: Array, shape: Any = ...) -> Value:
    told = array.shape if shape is ... else shape
    return catalogue.placeholder(dtype=as_dtype(array.dtype), shape=told)


def distinct(op: Op) -> list[Case]:
    """Cases that differ in shapes or attributes; differentiation is always in float64."""
    seen: dict[Any, Case] = {}
    for case in op.cases():
        floating = tuple(as_dtype(a.dtype).is_floating for a in case.inputs)
        seen.setdefault((floating, tuple(a.shape for a in case.inputs), repr(case.attrs)), case)
    return list(seen.values())


def batches(cases: list[Case], size: int) -> Iterator[list[Case]]:
    """Cases in groups of at most `size`."""
    pending = iter(cases)
    while group := list(itertools.islice(pending, size)):
        yield group
