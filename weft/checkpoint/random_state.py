"""The random state of the whole process as an object with a state dict."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from weft.eager.functions.random.generator import get_rng_state, set_rng_state
from weft.errors import StateError


class RandomState:
    """The global random number generators: Weft's, NumPy's and Python's.

    Your own generators (`wf.Generator`, `numpy.random.Generator`) are not included.

    >>> import weft as wf
    >>> stream = wf.checkpoint.RandomState()
    >>> before = stream.state_dict()
    >>> a = wf.rand(2)
    >>> stream.load_state_dict(before)
    >>> a.tolist() == wf.rand(2).tolist()
    True
    """

    def state_dict(self) -> dict[str, Any]:
        """The states of the generators."""
        version, words, normal = random.getstate()
        kind, keys, place, has, gauss = np.random.get_state(legacy=True)
        return {
            "weft": get_rng_state(),
            "numpy": [kind, keys, int(place), int(has), float(gauss)],
            "python": [version, np.array(words, np.uint32), normal],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restores the states from a `state_dict`.

        Raises:
            StateError: the state is not one of these generators.
        """
        try:
            version, words, normal = state_dict["python"]
            kind, keys, place, has, gauss = state_dict["numpy"]
            python = version, tuple(np.asarray(words).tolist()), normal
            drawn = kind, np.asarray(keys), place, has, gauss
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(
                f"RandomState: expected the states of three generators, got {error!r}"
            ) from None
        random.setstate(python)
        np.random.set_state(drawn)
        set_rng_state(state_dict["weft"])
