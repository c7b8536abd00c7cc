"""All variables of a graph, and what initializes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.errors import UninitializedError
from weft.tf1.control import dependency
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.default_graph import get_collection
from weft.tf1.framework.dtypes import int32, string
from weft.tf1.framework.host import host_op
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.variable.variable import Variable, variable_of

__all__ = [
    "all_variables", "assert_variables_initialized", "global_variables",
    "global_variables_initializer", "initialize_all_variables", "initialize_local_variables",
    "initialize_variables", "is_variable_initialized", "local_variables",
    "local_variables_initializer", "model_variables", "moving_average_variables",
    "report_uninitialized_variables", "trainable_variables", "variables_initializer",
]  # fmt: skip


# lists
def global_variables(scope: str | None = None) -> list[Any]:
    """The variables of the default graph."""
    return get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


all_variables = global_variables


def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables that optimizers change by default."""
    return get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Any]:
    """Local variables, outside the model, such as metrics' counters."""
    return get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """The variables of the collection `MODEL_VARIABLES`."""
    return get_collection(GraphKeys.MODEL_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The variables that have moving averages."""
    return get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def variables_initializer(var_list: Sequence[Any], name: str = "init") -> Operation:
    """An operation that initializes `var_list`."""
    if not var_list:
        return dependency.no_op(name=name)
    return dependency.group(*[v.initializer for v in var_list], name=name)


initialize_variables = variables_initializer


def global_variables_initializer() -> Operation:
    """An operation that initializes all global variables."""
    return variables_initializer(global_variables())


initialize_all_variables = global_variables_initializer


def local_variables_initializer() -> Operation:
    """An operation that initializes all local variables."""
    return variables_initializer(local_variables())


initialize_local_variables = local_variables_initializer


def is_variable_initialized(variable: Variable) -> Tensor:
    """Whether the variable is initialized when the step starts."""
    found = variable_of(variable, "is_variable_initialized")
    return dependency.identity(found.probe()[0], name="IsVariableInitialized")


def assert_variables_initialized(var_list: Sequence[Variable] | None = None) -> Tensor:
    """Fails when run while variables are uninitialized: for programs that are older than reports.

    Args:
        var_list: by default all global and local ones.

    Raises:
        FailedPreconditionError: at execution, if some are.
    """
    chosen = global_variables() + local_variables() if var_list is None else list(var_list)

    def check(state: Mapping[str, Any]) -> Any:
        found = set(_missing(state, [v.key for v in chosen]))
        if found:
            names = ", ".join([v.op.name for v in chosen if v.key in found])
            raise UninitializedError(f"uninitialized variables: {names}")
        return np.zeros(0, np.int32)

    kind = "AssertVariablesInitialized"
    return host_op(kind, (), check, [int32], [(0,)], kind, with_state=True).outputs[0]


def _missing(state: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    """Those of some variables that have no value; the tasks of a cluster are asked once each."""
    ask = getattr(state, "missing", None)
    return [key for key in keys if key not in state] if ask is None else ask(keys)


def report_uninitialized_variables(
    var_list: Sequence[Variable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of the variables that are uninitialized when the run starts."""
    chosen = global_variables() + local_variables() if var_list is None else list(var_list)

    def missing(state: Mapping[str, Any]) -> Any:
        found = set(_missing(state, [v.key for v in chosen]))
        return np.array([v.op.name for v in chosen if v.key in found], np.object_)

    kind = "ReportUninitializedVariables"
    return host_op(kind, (), missing, [string], [(None,)], name, with_state=True).outputs[0]
