"""Mixture of experts: routes tokens to experts, whose layers run as one batched matmul.

Each expert takes up to `capacity` tokens, in the order of tokens, first choices before second ones;
tokens beyond that are dropped (Lepikhin et al., "GShard", 2020; Fedus et al., "Switch
Transformers", 2021). Slots form a table of rows, so that experts are one batched matmul.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from weft.errors import ArgumentError, ShapeError
from weft.ir.dtype import int32
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.declaration import catalogue
from weft.ops.declaration.rule import concrete
from weft.ops.elementwise.activation import gelu, relu, silu
from weft.ops.indexing.gather import gather
from weft.ops.indexing.scatter import scatter_set
from weft.ops.layer.softmax import softmax
from weft.ops.linalg.matmul import matmul
from weft.ops.shape.creation import full, iota
from weft.ops.sparse.index import csr_order
from weft.ops.sparse.product import csr_matmul

__all__ = ["route", "run_experts"]

ACTIVATIONS: Final[dict[str, Callable[[Value], Value]]] = {"relu": relu, "gelu": gelu, "silu": silu}
"""Activations between an expert's two layers."""


class Routes(NamedTuple):
    """The routing of tokens, and its statistics for training."""

    tokens: Value  # (experts * capacity): the token in each slot
    taken: Value  # (experts * capacity): 1, or 0 if the slot is free
    places: Value  # (tokens * choices): the slot of each choice
    gates: Value  # (tokens * choices): the weight of each result, 0 if dropped
    balance: Value
    z: Value
    dropped: Value


def route(logits: Value, *, top_k: int, capacity: int) -> Routes:
    """Assign tokens to slots of experts by their scores.

    Args:
        logits: (tokens, experts), floating-point.
        top_k: how many experts each token chooses; the weights of several sum to 1.
        capacity: how many tokens an expert takes.

    Raises:
        ShapeError: scores of another rank, or fewer experts than choices.
    """
    dims = concrete(logits)
    if len(dims) != 2 or not 1 <= top_k <= dims[1]:
        raise ShapeError.here(
            f"route: expected scores of shape (tokens, experts) and 1 <= top_k <= experts, got "
            f"{show(dims)} and {top_k}"
        )
    count, experts = dims
    chances = softmax(logits)
    gates, choices = catalogue.top_k.all(chances, k=top_k)
    if top_k > 1:
        gates = gates / catalogue.sum(gates, axes=(1,), keepdims=True)
    ids = catalogue.reshape(catalogue.transpose(choices, perm=(1, 0)), shape=(count * top_k,))
    bounds, order = csr_order.all(ids, size=experts)
    place = _places(ids, bounds, order, capacity)
    kept = catalogue.greater_equal(place, 0)
    tokens, taken = _tokens(bounds, order, count, experts, capacity)

    def by_token(x: Value) -> Value:
        turned = catalogue.transpose(catalogue.reshape(x, shape=(top_k, count)), perm=(1, 0))
        return catalogue.reshape(turned, shape=(count * top_k,))

    own = by_token(catalogue.cast(kept, dtype=gates.dtype))
    return Routes(
        tokens,
        catalogue.cast(taken, dtype=logits.dtype),
        by_token(catalogue.maximum(place, 0)),
        catalogue.reshape(gates, shape=(count * top_k,)) * own,
        _balance(chances, bounds),
        catalogue.mean(catalogue.square(catalogue.logsumexp(logits, axes=(1,)))),
        catalogue.sum(catalogue.cast(catalogue.logical_not(kept), dtype=int32)),
    )


def _places(ids: Value, bounds: Value, order: Value, capacity: int) -> Value:
    """For each choice its row in the table of slots, -1 if its expert is full."""
    (many,) = concrete(ids)
    numbers = iota(shape=(many,), dtype=int32)
    rank = scatter_set(full((many,), 0, int32), order, numbers) - gather(bounds, ids)
    return catalogue.select(catalogue.less(rank, capacity), ids * capacity + rank, -1)


def _tokens(
    bounds: Value, order: Value, count: int, experts: int, capacity: int
) -> tuple[Value, Value]:
    """For each slot its token, and whether there is one."""
    rows = catalogue.reshape(
        iota(shape=(experts, capacity), axis=1, dtype=int32)
        + catalogue.reshape(bounds[:-1], shape=(experts, 1)),
        shape=(experts * capacity,),
    )
    ends = catalogue.broadcast_to(
        catalogue.reshape(bounds[1:], shape=(experts, 1)), shape=(experts, capacity)
    )
    taken = catalogue.less(rows, catalogue.reshape(ends, shape=(experts * capacity,)))
    if not count:
        return full((experts * capacity,), 0, int32), taken
    choice = gather(order, catalogue.select(taken, rows, 0))
    return catalogue.remainder(choice, count), taken


def _balance(chances: Value, bounds: Value) -> Value:
    """The load-balancing loss: experts * sum of share * mean probability; 1 if uniform."""
    count, experts = concrete(chances)
    many = catalogue.cast(bounds[1:] - bounds[:-1], dtype=chances.dtype)
    share = many / catalogue.maximum(catalogue.sum(many), 1)
    mean = catalogue.sum(chances, axes=(0,)) / max(count, 1)
    return catalogue.sum(share * mean) * experts


def run_experts(
    x: Value,
    tokens: Value,
    taken: Value,
    places: Value,
    gates: Value,
    weight1: Value,
    bias1: Value,
    weight2: Value,
    bias2: Value,
    *,
    activation: str,
) -> Value:
    """The experts' outputs, combined at their tokens.

    Args:
        x: (tokens, features).
        tokens, taken, places, gates: from `route`.
        weight1: (experts, features, hidden); bias1: (experts, 1, hidden).
        weight2: (experts, hidden, features); bias2: (experts, 1, features).
        activation: one of `ACTIVATIONS`.

    Raises:
        ArgumentError: another activation.
    """
    act = ACTIVATIONS.get(activation)
    if act is None:
        text = f"activation: expected {', '.join(ACTIVATIONS)}, got {activation!r}"
        raise ArgumentError.here(text)
    (count, features), (experts, _, _) = concrete(x), concrete(weight1)
    rows = concrete(tokens)[0]
    each = iota(shape=(rows + 1,), dtype=int32)
    given = csr_matmul(each, tokens, taken, x)
    given = catalogue.reshape(given, shape=(experts, rows // experts, features))
    hidden = act(matmul(given, weight1) + bias1)
    made = catalogue.reshape(matmul(hidden, weight2) + bias2, shape=(rows, features))
    choices = concrete(places)[0] // max(count, 1)
    ends = iota(shape=(count + 1,), dtype=int32) * choices
    return csr_matmul(ends, places, gates, made)
