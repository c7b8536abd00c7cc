"""The global step, and learning rate schedules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from weft import ops
from weft.documentation import arguments_of, named, with_arguments
from weft.errors import GraphError
from weft.ir.node import Value
from weft.ops.optimizer import schedule
from weft.tf1.elementwise import arithmetic
from weft.tf1.framework import dtypes
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import (
    Graph,
    emit,
    fail,
    get_default_graph,
    name_scope,
)
from weft.tf1.framework.tensor import Tensor
from weft.tf1.variable import initializer
from weft.tf1.variable.variable import Variable
from weft.tf1.variable.variable_scope import get_variable

__all__ = [
    "cosine_decay", "create_global_step", "exponential_decay",
    "get_global_step", "get_or_create_global_step", "global_step", "inverse_time_decay",
    "natural_exp_decay", "piecewise_constant", "piecewise_constant_decay", "polynomial_decay",
]  # fmt: skip


# the global step
def get_global_step(graph: Graph | None = None) -> Variable | None:
    """The step counter, or `None`.

    It is the variable in `GraphKeys.GLOBAL_STEP`, or the one named `global_step`.

    Args:
        graph: the default graph if left out.
    """
    graph = graph or get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) > 1:
        raise fail(GraphError, f"get_global_step: expected one global step, got {found}")
    return found[0] if found else graph.keys.get(GraphKeys.GLOBAL_STEP)


@arguments_of(get_global_step)
def create_global_step(graph: Graph | None = None) -> Variable:
    """Create the step counter.

    Raises:
        GraphError: there is one already.
    """
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise fail(GraphError, "create_global_step: the graph has a global step already")
    keys = [GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP]
    with graph.as_default(), name_scope(""):
        return get_variable(
            GraphKeys.GLOBAL_STEP, [], dtypes.int64, initializer.zeros_initializer(),
            trainable=False, collections=keys,
        )  # fmt: skip


@arguments_of(get_global_step)
def get_or_create_global_step(graph: Graph | None = None) -> Variable:
    """The step counter, created if there is none."""
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The step counter's value in a session.

    Args:
        sess: the session.
        global_step_tensor: the step counter.
    """
    return int(sess.run(global_step_tensor))


# schedules
def _decay(
    default: str, name: str | None, rate: Any, step: Any, numbers: Sequence[Any],
    formula: Callable[..., Value], **options: Any,
) -> Tensor:  # fmt: skip
    """A rate computed by `formula(rate, step, *numbers)`, in the type of the rate."""
    if step is None:
        raise fail(GraphError, f"{default}: expected a global_step, got None")
    with name_scope(name, default, [rate, step]) as scope:
        start = convert_to_tensor(rate, name="learning_rate")
        kind = start.dtype.base_dtype
        rest = [arithmetic.cast(v, kind) for v in (step, *numbers)]
        return emit("Mul", [start, *rest], formula, name=scope, **options)


def _falling(title: str, formula: Callable[..., Value], meaning: str):
    """A schedule by whose formula the rate falls by `decay_rate` within `decay_steps`."""

    def falling(
        learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any,
        staircase: bool = False, name: str | None = None,
    ) -> Tensor:  # fmt: skip
        """The rate of a step.

        Args:
            learning_rate: the rate of the first step.
            global_step: the number of steps so far.
            decay_steps: the steps after which the decay is `decay_rate`.
            decay_rate: how much the rate falls.
            staircase: whether it falls in jumps, one after each `decay_steps`.
            name: of the operation.
        """
        numbers = (decay_steps, decay_rate)
        node = title.title().replace("_", "")
        return _decay(node, name, learning_rate, global_step, numbers, formula, staircase=staircase)

    arguments = inspect.signature(falling).parameters
    return named(title, with_arguments(meaning, arguments, falling))(falling)


exponential_decay = _falling(
    "exponential_decay", schedule.exponential_decay,
    "learning_rate * decay_rate ** (step / decay_steps); `staircase` rounds the exponent down.",
)  # fmt: skip
inverse_time_decay = _falling(
    "inverse_time_decay", schedule.inverse_time_decay,
    "learning_rate / (1 + decay_rate * step / decay_steps)",
)  # fmt: skip
natural_exp_decay = _falling(
    "natural_exp_decay", schedule.natural_exponential_decay,
    "learning_rate * exp(-decay_rate * step / decay_steps)",
)  # fmt: skip


@arguments_of(exponential_decay)
def polynomial_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, end_learning_rate: Any = 0.0001,
    power: Any = 1.0, cycle: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """From learning_rate to end_learning_rate along (1 - step / decay_steps) ** power.

    Args:
        decay_steps: the steps of the way.
        end_learning_rate: the last rate.
        power: the exponent; 1 is a straight line.
        cycle: go on after `decay_steps`, from a lower rate each time.
    """
    numbers = (decay_steps, end_learning_rate, power)
    return _decay(
        "PolynomialDecay", name, learning_rate, global_step, numbers, schedule.polynomial_decay,
        cycle=cycle,
    )  # fmt: skip


@arguments_of(exponential_decay)
def cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """From learning_rate to alpha * learning_rate along half a cosine (SGDR, 2016).

    Args:
        decay_steps: the steps of the way.
        alpha: the part of the rate that is left in the end.
    """
    numbers = (decay_steps, alpha)
    return _decay("CosineDecay", name, learning_rate, global_step, numbers, schedule.cosine_decay)


def piecewise_constant(
    x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Tensor:
    """values[0] up to boundaries[0], inclusive; then values[1], and so on.

    Args:
        x: the number of steps so far.
        boundaries: the last step of each value but the last.
        values: the rates, one more than boundaries.
        name: of the operation.
    """
    if len(values) != len(boundaries) + 1:
        raise fail(
            GraphError,
            f"piecewise_constant: expected {len(boundaries) + 1} values, got {len(values)}",
        )
    with name_scope(name, "PiecewiseConstant", [x]) as scope:
        step = convert_to_tensor(x)
        limits = [convert_to_tensor(b, preferred_dtype=step.dtype) for b in boundaries]
        limits = [arithmetic.cast(b, step.dtype) for b in limits]
        numbers = [convert_to_tensor(v) for v in values]

        def build(s: Value, *rest: Value) -> Value:
            edges, levels = rest[: len(limits)], rest[len(limits) :]
            found = levels[-1]
            for edge, level in zip(reversed(edges), reversed(levels[:-1]), strict=True):
                found = ops.select(ops.less_equal(s, edge), level, found)
            return found

        return emit("Case", [step, *limits, *numbers], build, name=scope)


piecewise_constant_decay = piecewise_constant
