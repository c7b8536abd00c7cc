"""Every transformation and construct hands on the class of array that it was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as wf
import weft.numpy as wnp
from weft import func
from weft.func.tree import flatten


class Own(wf.Tensor):
    """A subclass, which results keep."""


def owned(x: Any) -> Any:
    made = wf.tensor(x).as_subclass(Own)
    assert type(made) is Own
    return made


GIVEN: dict[str, tuple[Callable[[Any], Any], type[Any]]] = {
    "weft.numpy": (wnp.array, wnp.ndarray),
    "NumPy": (np.array, wf.Tensor),
    "tensor": (wf.tensor, wf.Tensor),
    "parameter": (lambda x: wf.nn.Parameter(wf.tensor(x)), wf.Tensor),
    "subclass": (owned, Own),
}
Seen = list[type[Any]]


def see(seen: Seen, *xs: Any) -> None:
    seen.extend(type(x) for x in flatten(list(xs))[0])


def body(seen: Seen) -> Callable[..., Any]:
    """A function of one array that gives one of its shape, and notes what it is given."""

    def f(x: Any) -> Any:
        see(seen, x)
        return x * x

    return f


def total(seen: Seen) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        see(seen, x)
        return (x * x).sum()

    return f


def carrying(seen: Seen) -> Callable[..., Any]:
    def f(c: Any, x: Any) -> Any:
        see(seen, c, x)
        return c + x, c * x

    return f


def added(seen: Seen) -> Callable[..., Any]:
    def f(a: Any, b: Any) -> Any:
        see(seen, a, b)
        return a + b

    return f


def started(seen: Seen) -> Callable[..., Any]:
    return lambda c: see(seen, c) or c.sum() < 100


def customized(seen: Seen) -> Callable[..., Any]:
    f = func.custom_vjp(body(seen))
    f.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,))
    return lambda x: (f(x), func.grad(lambda x: f(x).sum())(x))


class Scaled(wf.nn.Module):
    """A module that multiplies."""

    def forward(self, x: Any) -> Any:
        return x * 2


def primitive(x: Any) -> Any:
    f = func.primitive(np.sin)
    func.defvjp(f, lambda y, x: lambda g: g * wf.cos(x))
    return f(x)


CASES: dict[str, Callable[[Seen, Any], Any]] = {
    "associative_scan": lambda s, x: func.associative_scan(added(s), x),
    "checkpoint": lambda s, x: func.checkpoint(body(s))(x),
    "cond": lambda s, x: func.cond(x.sum() > 0, body(s), body(s), x),
    "custom_vjp": lambda s, x: customized(s)(x),
    "elementwise_grad": lambda s, x: func.elementwise_grad(body(s))(x),
    "fori_loop": lambda s, x: (
        func.fori_loop(0, 2, lambda i, c: see(s, i) or c + i, x),
        func.fori_loop(
            x.sum().astype("int64") * 0 if hasattr(x, "astype") else 0,
            wf.tensor(2),
            lambda i, c: see(s, c) or c + i,
            x,
        ),
    ),
    "functional_call": lambda s, x: func.functional_call(Scaled(), {}, (x,)),
    "grad": lambda s, x: func.grad(total(s))(x),
    "grad_and_value": lambda s, x: func.grad_and_value(total(s))(x),
    "hessian": lambda s, x: func.hessian(total(s))(x),
    "hessian_vector_product": lambda s, x: func.hessian_vector_product(total(s))(x, x),
    "jacfwd": lambda s, x: func.jacfwd(body(s))(x),
    "jacobian": lambda s, x: func.jacobian(body(s))(x),
    "jacrev": lambda s, x: func.jacrev(body(s))(x),
    "jit": lambda s, x: func.jit(body(s))(x),
    "jvp": lambda s, x: func.jvp(body(s), (x,), (x,)),
    "linearize": lambda s, x: (lambda y, push: (y, push(x)))(*func.linearize(body(s), x)),
    "make_jvp": lambda s, x: func.make_jvp(body(s))(x)(x),
    "make_vjp": lambda s, x: (lambda pull, y: (pull(x), y))(*func.make_vjp(body(s))(x)),
    "map": lambda s, x: (func.map(body(s), x), func.map(body(s), x, batch_size=2)),
    "map_structure": lambda s, x: func.map_structure(lambda x: x * 1.0, {"a": x}),
    "primitive": lambda s, x: primitive(x),
    "scan": lambda s, x: func.scan(carrying(s), x[0] * 0, x),
    "switch": lambda s, x: func.switch(1, [body(s), body(s)], x),
    "value_and_grad": lambda s, x: func.value_and_grad(total(s))(x),
    "vjp": lambda s, x: (lambda y, pull: (y, pull(x)))(*func.vjp(body(s), x)),
    "vmap": lambda s, x: func.vmap(body(s))(x),
    "while_loop": lambda s, x: func.while_loop(started(s), body(s), x),
}
AS_THEY_ARE = {"functional_call", "map_structure"}
"""Pass arrays on without tracing."""
OTHERS = {
    "PartitionSpec", "defvjp", "replace_all_batch_norm_modules_", "stack_module_state",
    *("all_gather", "all_to_all", "axis_index", "axis_size", "pmap", "pmax", "pmean", "pmin"),
    *("ppermute", "psum", "psum_scatter", "shard_map"),
}  # fmt: skip
"""Take no arrays, or run on several ranks (tests/distributed)."""


def test_all_are_walked() -> None:
    assert {*CASES} | OTHERS == {*func.__all__}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", CASES)
def test_classes(name: str, given: str) -> None:
    make, kind = GIVEN[given]
    x = make(np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 9.0]]))
    if given == "NumPy" and name in AS_THEY_ARE:
        kind = np.ndarray
    seen: Seen = []
    found = CASES[name](seen, x)
    results = {type(y) for y in flatten(found)[0]}
    if given == "subclass":  # which traced values have not
        assert results | {*seen} <= {kind, wf.Tensor}
    else:
        assert results == {kind}
        assert {*seen} <= {kind, *([type(x)] if given == "parameter" else [])}
