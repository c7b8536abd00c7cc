"""`DistributedOptimizer` for Keras optimizers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.errors import ArgumentError
from weft.horovod.basics import Average
from weft.horovod.compression import Compressor
from weft.horovod.process_set import ProcessSet, global_process_set
from weft.horovod.tensorflow.aggregation import Aggregation, checked_passes
from weft.horovod.tensorflow.collective import reduced
from weft.horovod.tensorflow.compression import Compression
from weft.horovod.tensorflow.optimizer import gradient_reduction
from weft.tf1.keras.engine.graph_state import graph_state
from weft.tf1.keras.optimizers import Optimizer


class _Setting(NamedTuple):
    """How gradients are reduced, and how they accumulate over several runs, if they do."""

    reduce: Callable[[list[Any]], list[Any]]
    sums: Aggregation | None


class _Distributed:
    """Mixin: reduces gradients over ranks."""

    _hvd: _Setting

    def get_gradients(self, loss: Any, params: Sequence[Any]) -> list[Any]:
        """Gradients of a loss, clipped, then reduced over ranks."""
        gradients: list[Any] = super().get_gradients(loss, params)  # pyright: ignore
        reduce, sums = self._hvd
        if sums is not None:
            return [g for g, _ in sums.gradients(list(zip(gradients, params, strict=True)), reduce)]
        ys = iter(reduce([g for g in gradients if g is not None]))
        return [None if g is None else next(ys) for g in gradients]

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """The update, in runs that update; the others only count."""
        pairs = list(grads_and_vars)

        def apply() -> Any:
            return super(_Distributed, self).apply_gradients(pairs, global_step, name)  # pyright: ignore

        sums = self._hvd.sums
        if sums is None:
            return apply()
        step = self.iterations if global_step is None else global_step  # pyright: ignore
        return sums.applied(pairs, apply, step)


def DistributedOptimizer(
    optimizer: Optimizer, name: str | None = None, device_dense: str = "",
    device_sparse: str = "", compression: type[Compressor] = Compression.none,
    sparse_as_dense: bool = False, gradient_predivide_factor: float = 1.0, op: Any = Average,
    backward_passes_per_step: int = 1, average_aggregated_gradients: bool = False,
    num_groups: int = 0, groups: Any = None, process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Wrap a Keras optimizer so that gradients are reduced over all ranks first.

    Args:
        optimizer: an optimizer of `tf.keras`.
        name, device_dense, device_sparse: ignored.
        compression: `hvd.Compression.fp16` sends gradients as float16.
        sparse_as_dense: must be true for `IndexedSlices` if `backward_passes_per_step` is above 1;
            all gradients are reduced as dense ones.
        gradient_predivide_factor: an average divides by this factor before the sum, and by
            size / factor after it.
        op: `hvd.Average` or `hvd.Sum`.
        backward_passes_per_step: the number of batches per update, over which gradients
            accumulate; `iterations` counts all batches.
        average_aggregated_gradients: whether gradients are averaged over these batches instead of
            summed.
        num_groups, groups: ignored: all gradients are sent together.
        process_set: the ranks that take part.

    Raises:
        ArgumentError: it is not a Keras optimizer (pass those of `tf.train` to
            `weft.horovod.tensorflow.DistributedOptimizer`), the number of passes is not a positive
            integer, or a predivide factor without `hvd.Average`.
    """
    if not isinstance(optimizer, Optimizer):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError.here(
            "DistributedOptimizer: expected an optimizer of tf.keras, got "
            f"{type(optimizer).__name__}"
        )
    how = gradient_reduction(op, compression, gradient_predivide_factor, process_set)
    passes = checked_passes(backward_passes_per_step)
    sums = None
    if passes > 1:
        sums = Aggregation(
            optimizer.get_name(), passes, average_aggregated_gradients, sparse_as_dense,
            lambda variable: graph_state(variable.graph).variables.append(variable),
        )  # fmt: skip

    def reduce(gradients: list[Any]) -> list[Any]:
        if not gradients or not process_set.included():
            return gradients
        return reduced(gradients, how, None, process_set)

    original = type(optimizer)
    wrapped: Any = object.__new__(type(original.__name__, (_Distributed, original), {}))
    wrapped.__dict__.update(optimizer.__dict__)
    wrapped.__dict__["_hvd"] = _Setting(reduce, sums)
    return wrapped
