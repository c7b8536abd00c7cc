"""Functions of Weft operations in `map`: compiled, and called on whole batches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from weft.data.convert import to_arrays, to_tensors
from weft.eager.functions.api import Tensor
from weft.eager.tensor.generator import DrawnApart, restart_stream
from weft.errors import TracerError, TreeError
from weft.func.jit import jit
from weft.func.vmap import vmap
from weft.pipeline.call import element_random_used, title
from weft.pipeline.structure import leaves


class Mapped:
    """A user's function of arrays, or of tensors if it returns tensors.

    The first element decides. A function that returns tensors is traced for one element; if `batch`
    follows, it is called once per batch.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = title(function)
        self.returns_tensors: bool | None = None
        self.vectorized = True
        self._deciding = threading.Lock()

        def traced(*parts: Any) -> Any:
            with DrawnApart(0):  # a call draws its numbers when the compiled function runs
                return function(*parts)

        self._one = jit(traced)
        self._many = jit(vmap(traced, randomness="different"))

    def __reduce__(self) -> Any:
        return Mapped, (self.function,)

    def __call__(self, *parts: Any) -> Any:
        """The result for one element, as arrays."""
        if self.returns_tensors is None:
            with self._deciding:  # other threads wait
                if self.returns_tensors is None:
                    return self._first(parts)
        if self.returns_tensors:
            return self._with_tensors(parts)
        return to_arrays(self.function(*parts))

    def _first(self, parts: tuple[Any, ...]) -> Any:
        """Decide which it is; a call that draws an element's random numbers is not traced."""
        result = self.function(*parts)
        self.returns_tensors = False
        if _any_tensor(result) and not element_random_used():
            restart_stream()
            try:
                found = self._with_tensors(parts)
            except Exception:  # it works on arrays, and fails on tensors
                return to_arrays(result)
            self.returns_tensors = True
            return found
        return to_arrays(result)

    def _with_tensors(self, parts: tuple[Any, ...]) -> Any:
        given = tuple(to_tensors(part) for part in parts)
        if self.vectorized and all(_all_tensors(part) for part in given):
            try:
                return to_arrays(self._one(*given))
            except (TracerError, TreeError):  # it depends on values
                self.vectorized = False
        return to_arrays(self.function(*given))

    def batched(self, batch: Any) -> Any:
        """The results for a batch, stacked; `None` if they must be computed one by one."""
        if not (self.returns_tensors and self.vectorized):
            return None
        given = to_tensors(batch)
        parts = given if isinstance(given, tuple) else (given,)
        if not all(_all_tensors(part) for part in parts):
            return None
        try:
            return to_arrays(self._many(*parts))
        except (TracerError, TreeError):
            self.vectorized = False
            return None
        except Exception:  # raised again for the element that causes it
            return None


def _any_tensor(element: Any) -> bool:
    return any(isinstance(leaf, Tensor) for leaf in leaves(element))


def _all_tensors(element: Any) -> bool:
    return all(isinstance(leaf, Tensor) for leaf in leaves(element))
