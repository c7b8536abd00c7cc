"""`GradientTape`, `custom_gradient` and `make_template` in graphs."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from weft import ops
from weft.errors import ArgumentError, StateError
from weft.ir.node import Value
from weft.tf1.control.dependency import stop_gradient
from weft.tf1.control.gradient import UnconnectedGradients, conjugated, gradients
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import computes_at_once, emit, fail, get_default_graph
from weft.tf1.framework.structure import flatten, pack
from weft.tf1.variable.variable_scope import variable_scope

__all__ = ["GradientTape", "custom_gradient", "make_template"]


class GradientTape:
    """Derivatives of what is computed inside; in graphs as `tf.gradients`, which needs no tape.

    Args:
        persistent: whether gradients may be asked for more than once.
        watch_accessed_variables: whether variables are watched that nobody asked to watch.

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
        self._persistent, self._every = persistent, watch_accessed_variables
        self._seen: dict[Any, list[Any]] = {}
        self._watched: set[Any] = set()
        self._spent = self._beside = False
        self._tapes: list[GradientTape] = []

    def __enter__(self) -> GradientTape:
        if computes_at_once():
            self._tapes = get_default_graph().at_once.tapes
            self._tapes.append(self)
            if len(self._tapes) > 1:  # what they see is needed until each has been asked
                for tape in self._tapes:
                    tape._beside = True
        return self

    def __exit__(self, *_: object) -> None:
        if self in self._tapes:
            self._tapes.remove(self)

    def see(self, variable: Any, value: Any) -> None:
        """Remember the value of a variable that is read."""
        seen = self._seen.setdefault(variable, [])
        if not any([x is value for x in seen]):
            seen.append(value)

    def watch(self, tensor: Any) -> None:
        """Let gradients by a tensor be asked for; in a graph they always can."""
        for each in flatten(tensor):
            if getattr(each, "has_value", False):
                each.watched()
            elif computes_at_once():
                self._watched.add(each)

    def watched_variables(self) -> list[Any]:
        """The variables whose values were used inside.

        Raises:
            StateError: the tape is in a graph, which remembers no uses.
        """
        if not computes_at_once():
            raise fail(StateError, "watched_variables: expected eager execution")
        return [v for v in self._seen if v.trainable and self._watches(v)]

    def _watches(self, variable: Any) -> bool:
        return self._every or variable in self._watched

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """What is computed inside has no gradient."""
        inside = self in self._tapes
        self.__exit__()
        try:
            yield
        finally:
            if inside:
                self._tapes.append(self)

    def reset(self) -> None:
        """Forget what was recorded."""
        self._seen.clear()

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

        Raises:
            StateError: it was asked before, and is not persistent.
        """
        given = None if output_gradients is None else flatten(output_gradients)
        if not computes_at_once():
            found = gradients(
                flatten(target), flatten(sources), given,
                unconnected_gradients=unconnected_gradients,
            )  # fmt: skip
            return pack(sources, found)
        if self._spent and not self._persistent:
            text = "expected persistent=True to ask for gradients more than once"
            raise fail(StateError, f"GradientTape.gradient: {text}")
        self._spent = True
        kept = self._persistent or self._beside or bool(self._tapes)
        places = [self._places(s) for s in flatten(sources)]
        zero = unconnected_gradients == UnconnectedGradients.ZERO
        found = get_default_graph().at_once.differentiate(
            flatten(target), places, given, kept, zero
        )
        return pack(sources, found)

    def _places(self, source: Any) -> tuple[Any, list[Any]]:
        """A source, and the values of it that were used."""
        if getattr(source, "has_value", False):
            return source, [source.held]
        return source, self._seen.get(source, []) if self._watches(source) else []


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
            inside: Any = contextlib.nullcontext(graph)
            if computes_at_once(graph):
                inside = graph.at_once.embedded(xs, given[1:])
            with inside as now:
                found = rule(now.wrap(conjugated(g[0] if isinstance(g, tuple) else g)))
                each = list(found) if isinstance(found, list | tuple) else [found]
                if len(each) != len(xs):
                    text = f"expected {len(xs)} gradients, got {len(each)}"
                    raise fail(ArgumentError, f"custom_gradient: {text}")
                used = [d if d is None else conjugated(convert_to_tensor(d).used) for d in each]
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
