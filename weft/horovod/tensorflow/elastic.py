"""`hvd.elastic` for graphs: commits the variables of a session and other values."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.horovod.elastic import ObjectState, State, StatefulState, run
from weft.tf1.session.base import get_default_session
from weft.tf1.variable.variable_list import global_variables


class _Variables:
    """A session's variables as an object with `state_dict`."""

    def __init__(self, variables: Sequence[Any], session: Any) -> None:
        self._variables = list(variables)
        self._session = session

    def state_dict(self) -> dict[str, Any]:
        """Their values, by name."""
        values = self._session.run(self._variables)
        return {v.op.name: np.array(x) for v, x in zip(self._variables, values, strict=True)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set their values."""
        for v in self._variables:
            v.load(np.asarray(state[v.op.name]), self._session)


class TensorFlowState(StatefulState):
    """The variables of a session, and other values by name.

    Args:
        variables: by default all of the default graph.
        session: by default the default session.
        folder: see `State`.
        kwargs: numbers, strings, arrays and nested structures of them.
    """

    def __init__(
        self, variables: Sequence[Any] | None = None, session: Any = None,
        folder: str | os.PathLike[str] | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        chosen = global_variables() if variables is None else variables
        saved = _Variables(chosen, get_default_session() if session is None else session)
        super().__init__({"variables": saved}, folder, **kwargs)


__all__ = ["ObjectState", "State", "TensorFlowState", "run"]
