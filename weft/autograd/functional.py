"""Derivatives of functions at a point, under the names of PyTorch's `torch.autograd.functional`.

In reverse mode, complex results are the conjugates of those of `weft.func`: see
`weft.eager.record.pending.conjugate`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from weft import func as functions
from weft.eager.functions.creation.constructor import ones_like
from weft.eager.functions.elementwise.complex_number import conj
from weft.eager.record.listing.expansion import expand
from weft.eager.record.pending.mode import Setting
from weft.eager.record.recognition.structure import structure_of
from weft.eager.tensor.autograd.autograd import grad
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError, GradientError, ShapeError, TracerError
from weft.func.derivative import columns_of, rows_of
from weft.func.level import is_inside
from weft.func.tree import flatten, map_structure
from weft.ops.boundary.state import CONSTANT
from weft.ops.declaration import op_of
from weft.ops.refusal import check_function
from weft.ops.shape.broadcast import broadcast_to

Function = Callable[..., Any]
_F = TypeVar("_F", bound=Function)


def _recorded(function: _F) -> _F:
    """Makes the function differentiable even inside `no_grad()`."""
    return cast("_F", Setting("grad_mode", True)(function))


def _is_one(x: Any) -> bool:
    """Whether it is a tensor and not a sequence of tensors."""
    return isinstance(x, Handle)


class _Point:
    """The point at which a function is differentiated.

    Args:
        inputs: a tensor, or a tuple of tensors, one per positional argument.
        create_graph: whether results can be differentiated again.
        strict: whether it is an error if a result does not depend on an input.

    Raises:
        DTypeError: an input is no tensor.
    """

    def __init__(self, inputs: Any, create_graph: bool, strict: bool, what: str) -> None:
        self.single = _is_one(inputs)
        several = isinstance(inputs, tuple | list)
        self.inputs: tuple[Any, ...] = tuple(cast("Any", inputs)) if several else (inputs,)
        self.create_graph = create_graph
        self.strict = strict
        self.what = what
        self._tensors("inputs", self.inputs)
        if create_graph:  # results are differentiable even if the inputs require no grad
            self.inputs = tuple(
                [x if x.lazy.tracked else x.detach().requires_grad_() for x in self.inputs]
            )

    def _tensors(self, name: str, values: tuple[Any, ...]) -> None:
        wrong = [type(x).__name__ for x in values if not _is_one(x)]
        if wrong:
            raise DTypeError.here(
                f"{self.what}: expected {name} of tensors alone, got {', '.join(wrong)}"
            )

    def checked(self, function: Function) -> Function:
        """The function, checked to return tensors.

        Raises:
            DTypeError: it is no function, or returns something else.
        """

        check_function(function, self.what)

        @functools.wraps(function)
        def tensors(*args: Any) -> Any:
            found = function(*args)
            results: Any = found if isinstance(found, list | tuple) else (found,)
            self._tensors("results", tuple(results))
            return found

        return tensors

    def directions(self, v: Any, like: Any) -> Any:
        """`v`, one direction for each of `like`; by default 1, for a single number only.

        Raises:
            GradientError: it is missing, or has another number or shape.
        """
        wanted: tuple[Any, ...] = (like,) if _is_one(like) else tuple(like)
        if v is None:
            if len(wanted) != 1 or wanted[0].numel() != 1:
                raise GradientError.here(
                    f"{self.what}: expected v, as there is more than one number"
                )
            given: tuple[Any, ...] = (ones_like(wanted[0]),)
        else:
            given = (v,) if _is_one(v) else tuple(v)
            self._tensors("v", given)
        shapes = [tuple(x.shape) for x in wanted]
        if [tuple(x.shape) for x in given] != shapes:
            raise ShapeError.here(f"{self.what}: v: expected shapes {shapes}")
        return given

    def check(self, function: Function, order: int = 1) -> None:
        """With `strict`, check that every result and derivative depends on every input.

        Args:
            order: of the derivatives; derivatives of lower order must not be constant, and neither
                must these if they will be differentiated.

        Raises:
            GradientError: one does not.
        """
        if not self.strict:
            return
        xs = [x.detach().requires_grad_() for x in self.inputs]
        found = function(*xs)
        ys = [found] if _is_one(found) else list(found)
        for y in ys:
            if not y.lazy.tracked or None in _slopes([y], xs):
                raise GradientError.here(
                    f"{self.what}: strict: a result does not depend on an input"
                )
        for n in range(1, order + self.create_graph):
            ys = _slopes(ys, xs)
            if any([y is None or all(map(_is_zero, _slopes([y], xs))) for y in ys]):
                raise GradientError.here(
                    f"{self.what}: strict: a derivative of order {n} does not depend on the inputs"
                )

    def shown(self, found: Any) -> Any:
        """A result for the user: detached unless `create_graph`.

        Raises:
            GradientError: an outer derivative is being taken, which would be 0.
        """
        if self.create_graph:
            return found
        results = [x for x in flatten(found)[0] if _is_one(x)]
        if is_inside([x.lazy for x in (*self.inputs, *results)]):
            raise GradientError.here(
                f"{self.what}: its result has no gradient, and one is being taken outside; use "
                f"weft.func, or say create_graph=True"
            )
        return map_structure(lambda x: x.detach(), found)

    def alone(self, found: Any) -> Any:
        """One item for each input; without the tuple for a single input."""
        return found[0] if self.single else tuple(found)


def _slopes(ys: list[Any], xs: list[Any]) -> list[Any]:
    """The gradients of the sum of `ys`; `None` or zero for each x it does not depend on."""
    ones = [ones_like(y) for y in ys]
    return list(grad(ys, xs, ones, create_graph=True, allow_unused=True))


def _is_zero(g: Any) -> bool:
    """Whether a gradient is zero for all inputs, or if it is computed already, at these."""
    if g is None:
        return True
    if g.lazy.array is not None:
        return not g.lazy.array.any()
    node = expand(structure_of([g.lazy])).outputs[0].node
    node = node.inputs[0].node if op_of(node) is broadcast_to else node
    return op_of(node) is CONSTANT and not node.attrs["value"].array.any()


def _turned(found: Any) -> Any:
    """Conjugate gradients between PyTorch's convention and that of `weft.func`."""
    return map_structure(conj, found)


def _like(results: Any, directions: tuple[Any, ...]) -> Any:
    """Directions in the structure of the results."""
    return directions[0] if _is_one(results) else type(results)(directions)


@_recorded
def vjp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The result of `func`, and the product of `v` with its Jacobian.

    >>> import weft as wf
    >>> vjp(lambda x: x * x, wf.tensor([1.0, 2.0]), wf.tensor([1.0, 10.0]))[1].tolist()
    [2.0, 40.0]
    """
    point = _Point(inputs, create_graph, strict, "vjp")
    func = point.checked(func)
    point.check(func)
    results, pull = functions.vjp(func, *point.inputs)
    found = _turned(pull(_turned(_like(results, point.directions(v, results)))))
    return point.shown(results), point.shown(point.alone(found))


@_recorded
def jvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The result of `func`, and the product of its Jacobian with `v`.

    >>> import weft as wf
    >>> jvp(lambda x: x * x, wf.tensor([1.0, 2.0]), wf.tensor([1.0, 10.0]))[1].tolist()
    [2.0, 40.0]
    """
    point = _Point(inputs, create_graph, strict, "jvp")
    func = point.checked(func)
    point.check(func)
    found = functions.jvp(func, point.inputs, point.directions(v, point.inputs))
    return point.shown(found[0]), point.shown(found[1])


@_recorded
def jacobian(
    func: Function, inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The Jacobian: all derivatives of the results by the inputs, shapes (*result, *input).

    Args:
        vectorize: always compute all rows at once; otherwise one at a time if a custom gradient
            rule reads values.
        strategy: `"reverse-mode"`, or `"forward-mode"` for fewer inputs than results.

    Returns:
        A tensor; a tuple over the inputs if they are a tuple; a tuple over the results of these if
        `func` returns a tuple.

    >>> import weft as wf
    >>> jacobian(lambda x: x * x, wf.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    point = _Point(inputs, create_graph, strict, "jacobian")
    func = point.checked(func)
    point.check(func)
    argnums = 0 if point.single else tuple(range(len(point.inputs)))
    if strategy == "forward-mode":
        return point.shown(columns_of(func, argnums)(*point.inputs))
    try:
        return point.shown(_turned(rows_of(func, argnums)(*point.inputs)))
    except TracerError:
        if vectorize:
            raise
        rows = rows_of(func, argnums, chunk_size=1)
        return point.shown(_turned(rows(*point.inputs)))


@_recorded
def hessian(
    func: Function, inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The Hessian of a function that returns one number; see `jacobian`.

    >>> import weft as wf
    >>> hessian(lambda x: (x * x * x).sum(), wf.tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    point = _Point(inputs, create_graph, strict, "hessian")
    func = point.checked(func)
    point.check(func, order=2)
    argnums = 0 if point.single else tuple(range(len(point.inputs)))

    def slopes(*xs: Any) -> Any:
        return _turned(functions.grad(func, argnums)(*xs))

    if outer_jacobian_strategy == "forward-mode":
        return point.shown(columns_of(slopes, argnums)(*point.inputs))
    return point.shown(_turned(rows_of(slopes, argnums)(*point.inputs)))


@_recorded
def vhp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The result of `func`, one number, and the product of `v` with its Hessian.

    >>> import weft as wf
    >>> vhp(lambda x: (x * x * x).sum(), wf.tensor([1.0, 2.0]), wf.ones(2))[1].tolist()
    [6.0, 12.0]
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


@_recorded
def hvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """`vhp`: Hessians are symmetric.

    >>> import weft as wf
    >>> hvp(lambda x: (x * x * x).sum(), wf.tensor([1.0, 2.0]), wf.ones(2))[1].tolist()
    [6.0, 12.0]
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    what: str, func: Function, inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    point = _Point(inputs, create_graph, strict, what)
    func = point.checked(func)
    point.check(func, order=2)
    argnums = tuple(range(len(point.inputs)))
    directions = point.directions(v, point.inputs)

    def both(*xs: Any) -> Any:
        value, slopes = functions.value_and_grad(func, argnums)(*xs)
        return _turned(slopes), value

    _, pull, value = functions.vjp(both, *point.inputs, has_aux=True)
    found = _turned(pull(_turned(directions)))
    return point.shown(value), point.shown(point.alone(found))
