"""Moving averages of variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.documentation import Reads
from weft.errors import GraphError
from weft.ops.optimizer.rule import unbiased
from weft.tf1.control.dependency import group
from weft.tf1.elementwise import arithmetic
from weft.tf1.framework import dtypes
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.default_graph import colocate_with, control_dependencies
from weft.tf1.framework.graph import emit, fail, get_default_graph, name_scope
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.train.optimizer.slot_creator import (
    create_slot,
    create_slot_with_initializer,
    create_zeros_slot,
)
from weft.tf1.variable import initializer
from weft.tf1.variable.variable import Variable
from weft.tf1.variable.variable_list import (
    global_variables,
    moving_average_variables,
    trainable_variables,
)


def assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """Move a variable toward a value: variable -= (1 - decay) * (variable - value).

    Args:
        zero_debias: the variable begins with 0; it is set to the average of the values alone.
    """
    with name_scope(name, "AssignMovingAvg", [variable, value, decay]):
        average = ExponentialMovingAverage(decay, zero_debias=zero_debias)
        return average.moved(variable, convert_to_tensor(value), 1.0 - convert_to_tensor(decay))


class ExponentialMovingAverage:
    """Shadow variables: shadow -= (1 - decay) * (shadow - variable).

    Args:
        decay: the fraction of the old average to keep.
        num_updates: the number of updates; the decay is at most (1 + n) / (10 + n).
        zero_debias: averages of tensors, which begin with 0, are divided by the part of them that
            comes from values.
        name: prefix of the operations and suffix of the shadow variables' names.
    """

    def __init__(
        self, decay: Any, num_updates: Any = None, zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:  # fmt: skip
        self._zero_debias = zero_debias
        self._decay = decay
        self._num_updates = num_updates
        self._name = name
        self._averages: dict[Any, Variable] = {}
        self._biased: dict[Variable, tuple[Variable, Variable]] = {}

    name = Reads[str]("_name", "The prefix of the operations.")

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
        if isinstance(var, Variable):
            return self._moved(shadow, value, share)
        return self.moved(shadow, value, share)

    def moved(self, shadow: Variable, value: Tensor, share: Tensor) -> Any:
        """The average after a value, whose share it takes."""
        move = self._update_debiased if self._zero_debias else self._moved
        return move(shadow, value, share)

    def _moved(self, shadow: Variable, value: Tensor, share: Tensor) -> Any:
        with colocate_with(shadow):
            difference = (shadow.value() - value) * arithmetic.cast(share, shadow.dtype.base_dtype)
            return shadow.assign_sub(difference)

    def _update_debiased(self, shadow: Variable, value: Tensor, share: Tensor) -> Any:
        """As `_update`, of an average that begins with 0, in two variables beside it."""
        kind = shadow.dtype.base_dtype
        with colocate_with(shadow):
            if shadow not in self._biased:
                with control_dependencies(None):
                    counter = create_slot_with_initializer(
                        shadow, initializer.zeros_initializer(), [], kind, "local_step"
                    )
                    self._biased[shadow] = create_zeros_slot(shadow, "biased"), counter
            biased, counter = self._biased[shadow]
            rest = arithmetic.cast(share, kind)
            mean = biased.assign_sub((biased.value() - value) * rest)
            count = counter.assign_add(1.0)
            found = emit("RealDiv", [mean, rest, count], unbiased, name="truediv")
            return shadow.assign(found)

    def _shadow(self, var: Any) -> Variable:
        kind = var.dtype.base_dtype
        if not kind.is_floating:
            raise fail(GraphError, f"ExponentialMovingAverage: expected a floating type, got {var}")
        with control_dependencies(None):
            if not isinstance(var, Variable):
                return create_zeros_slot(var, self._name, colocate_with_primary=False)
            return create_slot(var, var.initialized_value(), self._name)

    def average(self, var: Any) -> Variable | None:
        """The shadow of `var`, or `None`."""
        return self._averages.get(var)

    def average_name(self, var: Any) -> str:
        """The name of the shadow of `var`."""
        found = self._averages.get(var)
        if found is not None:
            return found.op.name
        graph = get_default_graph()
        return graph.unique_name(f"{var.op.name}/{self._name}", mark_as_used=False)

    def variables_to_restore(self, moving_avg_variables: Any = None) -> dict[str, Any]:
        """Variables by the name under which a checkpoint has their average, or their own.

        Args:
            moving_avg_variables: those with averages; by default those that have some, and all
                trainable ones.
        """
        chosen = moving_avg_variables
        if chosen is None:
            chosen = [*trainable_variables(), *moving_average_variables()]
        found = {self.average_name(v): v for v in chosen}
        averaged = {v.name for v in chosen}
        others = [v for v in global_variables() if v.name not in averaged]
        return {**{v.op.name: v for v in others}, **found}
