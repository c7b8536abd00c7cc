"""Variables of other processes: values are messages, so that many are asked for at once."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Distant(MutableMapping[str, Array]):
    """Variables by key that may be in other processes."""

    @abc.abstractmethod
    def several(self, keys: Iterable[str]) -> dict[str, Array]:
        """The values of those of these variables that have one."""

    @abc.abstractmethod
    def put(self, values: Mapping[str, Array]) -> None:
        """Set variables."""


def values_of(state: MutableMapping[str, Array], keys: Iterable[str]) -> dict[str, Array]:
    """Copies of the values of those of these variables that have one.

    >>> values_of({"a": np.ones(1)}, ["a", "b"])
    {'a': array([1.])}
    """
    if isinstance(state, Distant):
        return state.several(keys)
    return {key: state[key] for key in keys if key in state}


def set_values(state: MutableMapping[str, Array], values: Mapping[str, Array]) -> None:
    """Set variables.

    >>> state = {}
    >>> set_values(state, {"a": np.ones(1)})
    >>> state
    {'a': array([1.])}
    """
    if isinstance(state, Distant):
        state.put(values)
        return
    for key, array in values.items():
        state[key] = array
