"""All variables of a graph, and what initializes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.tf1.control import dependency
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.graph import get_collection, get_default_graph
from weft.tf1.framework.tensor import HOOKS, Operation, Tensor
from weft.tf1.variable.variable import Variable

__all__ = [
    "all_variables", "global_variables", "global_variables_initializer", "initialize_all_variables",
    "initialize_local_variables", "initialize_variables", "is_variable_initialized",
    "local_variables", "local_variables_initializer", "model_variables", "moving_average_variables",
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
    return dependency.identity(variable.probe()[0], name="IsVariableInitialized")


class UninitializedReport:
    """Fetch it for the names of uninitialized variables, as an array of bytes."""

    def __init__(self, variables: Sequence[Variable], name: str) -> None:
        self.variables = list(variables)
        self.name = name
        self.graph = get_default_graph()

    def _host_fetch(self, session: Any) -> Any:
        state: Mapping[str, Any] = session.state
        missing = [v.key.encode() for v in self.variables if v.key not in state]
        return np.array(missing, dtype=object)

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The names in `session` or the default session."""
        session = HOOKS.default_session() if session is None else session
        return session.run(self, feed_dict)


def report_uninitialized_variables(
    var_list: Sequence[Variable] | None = None, name: str = "report_uninitialized_variables"
) -> UninitializedReport:
    """A fetch that gives the names of uninitialized variables."""
    chosen = global_variables() + local_variables() if var_list is None else var_list
    return UninitializedReport(chosen, name)
