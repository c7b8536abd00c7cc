"""`GradientTape`, `custom_gradient` and `make_template` in graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft import ops
from weft.errors import ArgumentError
from weft.ir.node import Value
from weft.tf1.control.dependency import stop_gradient
from weft.tf1.control.gradient import UnconnectedGradients, gradients
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import emit, fail, get_default_graph
from weft.tf1.framework.structure import flatten, pack
from weft.tf1.variable.variable_scope import variable_scope

__all__ = ["GradientTape", "custom_gradient", "make_template"]


class GradientTape:
    """Derivatives of what is built inside: as `tf.gradients`, which needs no tape.

    Args:
        persistent, watch_accessed_variables: accepted; gradients can be asked for any number of
            times.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     x = tf.constant(3.0)
    ...     with tf.GradientTape() as tape:
    ...         tape.watch(x)
    ...         y = x * x
    ...     float(session.run(tape.gradient(y, x)))
    6.0
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        del persistent, watch_accessed_variables

    def __enter__(self) -> GradientTape:
        return self

    def __exit__(self, *_: object) -> None: ...

    def watch(self, tensor: Any) -> None:
        """No effect: every tensor is watched."""

    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:  # fmt: skip
        """Derivatives of the sum of the targets, in the structure of the sources.

        Args:
            target: a tensor or several.
            sources: tensors or variables, nested.
            output_gradients: the initial gradient of each target.
            unconnected_gradients: as in `tf.gradients`.
        """
        found = gradients(
            flatten(target), flatten(sources),
            None if output_gradients is None else flatten(output_gradients),
            unconnected_gradients=unconnected_gradients,
        )  # fmt: skip
        return pack(sources, found)


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: a function that also returns the function of its gradient.

    Args:
        f: a function of tensors that returns a tensor, and a function from the gradient by that to
            the gradients by the tensors.

    >>> import weft.tf1 as tf
    >>> @tf.custom_gradient
    ... def clipped(x):
    ...     return x * 2.0, lambda g: tf.clip_by_value(g, -1.0, 1.0)
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     x = tf.constant(3.0)
    ...     float(session.run(tf.gradients(clipped(x) * 5.0, x)[0]))
    1.0
    """

    @functools.wraps(f)
    def decorated(*args: Any, **options: Any) -> Any:
        xs = [convert_to_tensor(x) for x in args]
        y, rule = f(*xs, **options)
        if isinstance(y, list | tuple):
            raise fail(ArgumentError, "custom_gradient: expected one tensor as result")
        graph = get_default_graph()

        def backward(g: Any, _: Any, *given: Any) -> tuple[Any, ...]:
            found = rule(graph.wrap(g[0] if isinstance(g, tuple) else g))
            each = list(found) if isinstance(found, list | tuple) else [found]
            if len(each) != len(xs):
                text = f"expected {len(xs)} gradients, got {len(each)}"
                raise fail(ArgumentError, f"custom_gradient: {text}")
            used = [None if d is None else convert_to_tensor(d).used for d in each]
            return (None, *used, *[None] * (len(given) - 1 - len(xs)))

        def build(result: Value, *inputs: Value) -> Value:
            return ops.host_call(
                result, *inputs, function=lambda array, *_: array, dtypes=(result.dtype,),
                shapes=(result.shape,), gradient=backward,
            )  # fmt: skip

        result = stop_gradient(convert_to_tensor(y))
        return emit("IdentityN", [result, *xs], build, name="CustomGradient")

    return decorated


def make_template(
    name_: str, func_: Callable[..., Any], create_scope_now_: bool = False,
    unique_name_: str | None = None, custom_getter_: Any = None, **kwargs: Any,
) -> Callable[..., Any]:  # fmt: skip
    """A function whose variables are created by its first call, and shared by later ones.

    Args:
        name_: of the variable scope, made unique.
        func_: the function.
        create_scope_now_: choose the scope's name now, not at the first call.
        unique_name_: the scope's name as it is.
        custom_getter_: as in `variable_scope`.
        kwargs: arguments of the function.
    """
    scopes: dict[Any, Any] = {}

    def entered() -> Any:
        graph = get_default_graph()
        again = graph in scopes
        if not again:
            given = (unique_name_, None) if unique_name_ else (None, name_)
            with variable_scope(*given) as scope:
                scopes[graph] = [scope, False]
        return scopes[graph]

    if create_scope_now_:
        entered()

    @functools.wraps(func_)
    def template(*args: Any, **options: Any) -> Any:
        held = entered()
        with variable_scope(held[0], reuse=held[1], custom_getter=custom_getter_):
            found = func_(*args, **{**kwargs, **options})
        held[1] = True
        return found

    return template
