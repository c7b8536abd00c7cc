"""Candidate samplers: classes to compare the true ones with, from a known distribution.

The numbers differ from TensorFlow's; their distributions, and the expected counts, do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from weft.errors import ArgumentError, ShapeError
from weft.ir.node import Value
from weft.ops.random.candidate import Distribution, candidates, log_uniform, uniform
from weft.ops.random.counter_based import SEED
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import fail, get_default_graph, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.random.distribution import stream

__all__ = ["log_uniform_candidate_sampler", "uniform_candidate_sampler"]


class Candidates(NamedTuple):
    """The result of a candidate sampler."""

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def log_uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int,
    seed: int | None = None, name: str | None = None,
) -> Candidates:  # fmt: skip
    """Classes drawn with probability `log((c + 2) / (c + 1)) / log(range_max + 1)` (Zipf's law).

    Lower numbers are drawn more often: number classes by falling frequency.

    Args:
        true_classes: int64, [batch, num_true].
        num_true: the number of true classes of each example.
        num_sampled: how many classes are drawn, for the batch as a whole.
        unique: whether they are distinct.
        range_max: the number of classes.
        seed: of this operation.

    Returns:
        The classes, int64 [num_sampled], and how often each true class, float32
        [batch, num_true], and each sampled one, float32 [num_sampled], is expected among them.

    Raises:
        ArgumentError: a number is not positive, or there are fewer classes than distinct ones to
            draw.
        ShapeError: `true_classes` has another shape.
        DTypeError: `true_classes` is no int64.

    >>> import weft.tf1 as tf
    >>> tf.reset_default_graph()
    >>> labels = tf.constant([[0], [7]], tf.int64)
    >>> sampled, true_count, _ = tf.random.log_uniform_candidate_sampler(labels, 1, 4, True, 100)
    >>> with tf.Session() as session:
    ...     found, count = session.run([sampled, true_count])
    >>> len(set(found.tolist())), count.shape, bool(count[0, 0] > count[1, 0])
    (4, (2, 1), True)
    """
    return _sampled(
        "LogUniformCandidateSampler", log_uniform, true_classes, num_true, num_sampled,
        unique, range_max, seed, name,
    )  # fmt: skip


def uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int,
    seed: int | None = None, name: str | None = None,
) -> Candidates:  # fmt: skip
    """Classes drawn with equal probabilities; see `log_uniform_candidate_sampler`."""
    return _sampled(
        "UniformCandidateSampler", uniform, true_classes, num_true, num_sampled,
        unique, range_max, seed, name,
    )  # fmt: skip


def _sampled(
    kind: str, of_size: Callable[[int], Distribution], true_classes: Any, num_true: int,
    num_sampled: int, unique: bool, range_max: int, seed: int | None, name: str | None,
) -> Candidates:  # fmt: skip
    numbers = {"num_true": num_true, "num_sampled": num_sampled, "range_max": range_max}
    true, count, size = (_positive(kind, what, n) for what, n in numbers.items())
    if unique and count > size:
        text = f"{kind}: expected num_sampled <= range_max of distinct classes, got {count}"
        raise fail(ArgumentError, f"{text} of {size}")
    with name_scope(name, kind, [true_classes]) as scope:
        classes = true_matrix(kind, convert_to_tensor(true_classes, dtypes.int64), true)
        count_of = stream(scope, seed)

        def build(truth: Value) -> tuple[Value, ...]:
            return candidates(
                count_of(), SEED, truth,
                distribution=of_size(size), count=count, unique=bool(unique),
            )  # fmt: skip

        attrs = {**numbers, "unique": bool(unique), "seed": seed}
        op = get_default_graph().emit(kind, [classes], build, name=scope, attrs=attrs)
    return Candidates(*op.outputs)


def _positive(kind: str, what: str, number: Any) -> int:
    if not hasattr(number, "__index__") or int(number) < 1:
        raise fail(ArgumentError, f"{kind}: expected {what} of at least 1, got {number!r}")
    return int(number)


def true_matrix(kind: str, classes: Tensor, num_true: int) -> Tensor:
    """`classes`, known to be of shape [batch, num_true].

    Raises:
        ShapeError: its shape is another one.
    """
    if not classes.shape.is_compatible_with([None, num_true]):
        text = f"{kind}: expected true classes of shape [batch, {num_true}] (num_true={num_true})"
        raise fail(ShapeError, f"{text}, got {classes.shape}")
    return classes
