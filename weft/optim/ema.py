"""Exponential moving averages of parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from weft.eager.functions.api import Tensor
from weft.eager.record.call.plan import op_plan
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dispatch import Recorded, leaf, wrap
from weft.eager.tensor.scalar import number
from weft.errors import OptimizerError
from weft.ir.dtype import float32
from weft.ir.node import Value
from weft.ops.declaration import REGISTRY, catalogue
from weft.ops.optimizer.rule import averaged


def _average(rest: Value, *values: Value) -> list[Value]:
    half = len(values) // 2
    pairs = zip(values[:half], values[half:], strict=True)
    return [averaged(a, p, catalogue.cast(rest, dtype=a.dtype)) for a, p in pairs]


_AVERAGE = Recorded(_average, differentiable=False, rows=False)


class ExponentialMovingAverage:
    """Keeps a = decay * a + (1 - decay) * p of every parameter p, in the optimizer's program.

    Call `update` after the optimizer's `step`, and evaluate inside `average_parameters()`.

    Args:
        parameters: the tensors to average.
        decay: from 0 to 1; 0.999 averages over about a thousand steps.

    >>> import weft as wf
    >>> w = wf.tensor([1.0], requires_grad=True)
    >>> ema = ExponentialMovingAverage([w], decay=0.5)
    >>> with wf.no_grad():
    ...     w.add_(2.0)
    tensor([3.], requires_grad=True)
    >>> ema.update()
    >>> with ema.average_parameters():
    ...     w.tolist()
    [2.0]
    """

    def __init__(self, parameters: Iterable[Tensor], decay: float = 0.999) -> None:
        if not 0 <= decay <= 1:
            raise OptimizerError.here(f"EMA: expected decay from 0 to 1, got {decay}")
        self.decay = decay
        self.parameters = list(parameters)
        self.averages = [wrap(leaf(p.array.copy())) for p in self.parameters]

    def update(self) -> None:
        """Move the averages towards the parameters; joins the pending program."""
        rest = number(1 - self.decay, float32)
        values = [*[a.lazy for a in self.averages], *[p.lazy for p in self.parameters]]
        with _joined():
            averages = trace.now.record(_AVERAGE.plan([rest, *values], {}), (rest, *values))
        for average, lazy in zip(self.averages, averages, strict=True):
            average.replace(lazy)

    @contextlib.contextmanager
    def average_parameters(self) -> Iterator[None]:
        """Inside the context, the parameters hold the averages."""
        before = [wrap(leaf(p.array.copy())) for p in self.parameters]
        _copy(self.averages, self.parameters)
        try:
            yield
        finally:
            _copy(before, self.parameters)


def _copy(sources: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
    for source, target in zip(sources, targets, strict=True):
        plan = op_plan(REGISTRY["identity"], (source.lazy.type,), {})
        with _joined():
            target.replace(trace.now.record(plan, (source.lazy,))[0])


@contextlib.contextmanager
def _joined() -> Iterator[None]:
    """Inside, calls are recorded into the program of the optimizer's step, without gradients."""
    limit, mode = trace.now.limit, trace.now.grad_mode
    trace.now.limit, trace.now.grad_mode = max(limit, len(trace.now.pending) + 1), False
    try:
        yield
    finally:
        trace.now.limit, trace.now.grad_mode = limit, mode
