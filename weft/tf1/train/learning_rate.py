"""Learning rate schedules, and moving averages of variables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from weft import ops
from weft.documentation import arguments_of, named, with_arguments
from weft.errors import GraphError
from weft.ir.node import Value
from weft.ops.optimizer import schedule
from weft.tf1.control.dependency import group
from weft.tf1.elementwise import arithmetic
from weft.tf1.framework import dtypes
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import (
    Graph,
    control_dependencies,
    emit,
    fail,
    get_default_graph,
    name_scope,
)
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.framework.tensor_shape import TensorShape
from weft.tf1.variable import initializer
from weft.tf1.variable.variable import Variable
from weft.tf1.variable.variable_list import moving_average_variables, trainable_variables
from weft.tf1.variable.variable_scope import get_variable

__all__ = [
    "ExponentialMovingAverage", "cosine_decay", "create_global_step", "exponential_decay",
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


def create_global_step(graph: Graph | None = None) -> Variable:
    """Create the step counter.

    Args:
        graph: the default graph if left out.

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


def get_or_create_global_step(graph: Graph | None = None) -> Variable:
    """The step counter, created if there is none.

    Args:
        graph: the default graph if left out.
    """
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


class ExponentialMovingAverage:
    """Shadow variables: shadow -= (1 - decay) * (shadow - variable).

    Args:
        decay: the fraction of the old average to keep.
        num_updates: the number of updates; the decay is at most (1 + n) / (10 + n).
        zero_debias: not supported.
        name: prefix of the operations and suffix of the shadow variables' names.
    """

    def __init__(
        self, decay: Any, num_updates: Any = None, zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:  # fmt: skip
        if zero_debias:
            raise fail(GraphError, "ExponentialMovingAverage: zero_debias is not supported")
        self._decay = decay
        self._num_updates = num_updates
        self._name = name
        self._averages: dict[Any, Variable] = {}

    @property
    def name(self) -> str:
        """The prefix of the operations."""
        return self._name

    def apply(self, var_list: Sequence[Any] | None = None) -> Operation:
        """An operation that updates the averages of `var_list` (by default all trainable ones)."""
        chosen = trainable_variables() if var_list is None else list(var_list)
        for var in chosen:
            if var not in self._averages:
                self._averages[var] = self._shadow(var)
                if isinstance(var, Variable):
                    get_default_graph().add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, var)
        with name_scope(self._name) as scope:
            decay = convert_to_tensor(self._decay, name="decay")
            if self._num_updates is not None:
                count = arithmetic.cast(self._num_updates, dtypes.float32)
                decay = arithmetic.minimum(decay, (1.0 + count) / (10.0 + count))
            keep = 1.0 - decay
            updates = [self._update(self._averages[v], v, keep).op for v in chosen]
            return group(*updates, name=scope)

    def _update(self, shadow: Variable, var: Any, share: Tensor) -> Any:
        value = convert_to_tensor(var)
        difference = (shadow.value() - value) * arithmetic.cast(share, shadow.dtype.base_dtype)
        return shadow.assign_sub(difference)

    def _shadow(self, var: Any) -> Variable:
        kind = var.dtype.base_dtype
        if not kind.is_floating:
            raise fail(GraphError, f"ExponentialMovingAverage: expected a floating type, got {var}")
        if isinstance(var, Variable):
            first: Any = var.initialized_value()
        else:
            shape = TensorShape(var.shape).as_list()
            first = lambda: initializer.zeros_initializer()(shape, dtype=kind)  # noqa: E731
        with name_scope(""), control_dependencies(None):
            return Variable(first, trainable=False, name=f"{var.op.name}/{self._name}")

    def average(self, var: Any) -> Variable | None:
        """The shadow of `var`, or `None`."""
        return self._averages.get(var)

    def average_name(self, var: Any) -> str:
        """The name of the shadow of `var`."""
        found = self._averages.get(var)
        return f"{var.op.name}/{self._name}" if found is None else found.op.name

    def variables_to_restore(self, moving_avg_variables: Any = None) -> dict[str, Any]:
        """Variables by the name under which a checkpoint has their average."""
        chosen = moving_average_variables() or trainable_variables()
        chosen = chosen if moving_avg_variables is None else moving_avg_variables
        return {self.average_name(v): v for v in chosen}
