"""Detection of NaN losses as soon as they are computed, without waiting."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from weft.eager.functions.api import find_nan, from_numpy, no_grad
from weft.errors import WeftError
from weft.train.results import is_known

LARGEST_COPY: Final = 1 << 28  # bytes of parameters that are copied at the start of an epoch


class NonFiniteLossError(WeftError, ArithmeticError):
    """A NaN loss; the message says where it comes from."""


class _Seen(NamedTuple):
    loss: Any
    batch: Any
    place: int


class NanWatch:
    """Checks a step's loss once the next step has computed it.

    By then the parameters are NaN as well. The report uses the parameters of the epoch's start,
    which are copied unless they are large, and the batch that gave the NaN.

    Args:
        module: the trained module.
        again: recomputes a step's loss and gradients from a batch and its number.
    """

    def __init__(self, module: Any, again: Callable[[Any, int], Any]) -> None:
        self._module, self._again = module, again
        self._last: _Seen | None = None
        self._figures: deque[float] = deque(maxlen=5)
        self._copies: list[tuple[Any, Any]] = []

    def begin(self) -> None:
        """Copy the parameters and buffers."""
        tensors = [*self._module.parameters(), *self._module.buffers()]
        size = sum(t.numel() * t.dtype.size for t in tensors)
        self._copies = [] if size > LARGEST_COPY else [(t, t.array.copy()) for t in tensors]

    def note(self, loss: Any, batch: Any, index: int) -> None:
        """Store a step's loss, and check the previous one.

        Raises:
            NonFiniteLossError: it is NaN.
        """
        last, self._last = self._last, _Seen(loss, batch, index)
        if last is not None:
            if is_known(last.loss):
                self._check(last)
            else:  # several backward passes before an update
                self._last = last

    def end(self) -> None:
        """Check the last loss.

        Raises:
            NonFiniteLossError: it is NaN.
        """
        last, self._last = self._last, None
        if last is not None:
            self._check(last)

    def _check(self, seen: _Seen) -> None:
        figure = float(seen.loss.array.item())
        if math.isnan(figure):
            self._refuse(seen)
        self._figures.append(figure)

    def _refuse(self, seen: _Seen) -> None:
        self._last = None
        before = ", ".join(f"{x:.4g}" for x in self._figures)
        raise NonFiniteLossError(
            f"Trainer.fit: the loss of batch {seen.place} is NaN; losses before it: "
            f"{before or 'none'}\n{self._report(seen)}"
        )

    def _report(self, seen: _Seen) -> str:
        """The findings of `find_nan`, and the parameters that they are about."""
        with no_grad():
            for tensor, copy in self._copies:
                tensor.copy_(from_numpy(copy))
        report = find_nan(lambda: self._again(seen.batch, seen.place))
        if not self._copies:
            return f"with the parameters as they are now: {report!r}"
        return (
            "the parameters were put back to the beginning of the epoch; with these, on the batch "
            f"that gave NaN:\n{report!r}"
        )
