"""SparseAdam: Adam on the rows of a table that have a gradient."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.indexing.row_sparse import RowSparse
from weft.ops.optimizer.adam import adam
from weft.ops.optimizer.rule import Hyper, Update
from weft.ops.optimizer.sparse import updated_rows
from weft.optim.optimizer import Group, Optimizer
from weft.optim.option import decays, nonnegative, option


def _rule(
    p: Value, g: Any, m: Value, v: Value, *, hyper: Hyper, maximize: bool
) -> Update:  # fmt: skip
    def update(g: Value, p: Value, m: Value, v: Value, *rates: Value) -> tuple[Value, ...]:
        named = dict(zip(hyper, rates, strict=True))
        return adam(p, -g if maximize else g, m, v, **named).values

    if isinstance(g, RowSparse):
        new = updated_rows((p, m, v), g.indices, g.values, update, list(hyper.values()))
    else:
        touched, axes = catalogue.not_equal(g, 0), tuple(range(1, len(g.shape)))
        if axes:
            touched = catalogue.any(touched, axes=axes, keepdims=True)
        found = zip(update(g, p, m, v, *hyper.values()), (p, m, v), strict=True)
        new = [catalogue.select(touched, now, before) for now, before in found]
    return Update(new[0], tuple(new[1:]))


class SparseAdam(Optimizer):
    """Adam for tables of embeddings: rows without a gradient, and their means, stay as they are.

    Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, algorithm 1. A gradient that
    is stored whole may be given: its rows of zeros are those without a gradient.

    Args:
        lr: the learning rate.
        betas: the factors of the running means of the gradient and of its square.
        eps: added to the denominator, so that it is not 0.
        maximize: ascend instead of descending.

    >>> import weft as wf
    >>> table = wf.nn.Embedding(3, 2, sparse=True)
    >>> before = table.weight.detach().clone()
    >>> opt = SparseAdam(table.parameters(), lr=0.1)
    >>> table(wf.tensor([1, 1])).sum().backward()
    >>> opt.step()
    >>> (before - table.weight.detach()).tolist()[0], round((before - table.weight)[1, 0].item(), 4)
    ([0.0, 0.0], 0.1)
    """

    rule = _rule
    takes_rows = True
    elementwise = False

    params: Iterable[Any]
    lr: float = nonnegative(default=1e-3)
    betas: tuple[float, float] = decays(default=(0.9, 0.999))
    eps: float = nonnegative(default=1e-8)
    maximize: bool = option(default=False)

    def slots(self, group: Group) -> dict[str, float]:
        """The running means."""
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """The direction."""
        return {"maximize": bool(group["maximize"])}

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The hyperparameters, with bias corrections."""
        beta1, beta2 = group["betas"]
        rate = group["lr"] * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        return {"step": rate, "rest1": 1 - beta1, "rest2": 1 - beta2, "eps": group["eps"]}
