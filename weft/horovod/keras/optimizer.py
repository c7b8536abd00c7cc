"""`DistributedOptimizer` for Keras optimizers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.errors import ArgumentError
from weft.horovod.basics import Average, Compression
from weft.horovod.process_set import ProcessSet, global_process_set
from weft.horovod.reduction import Reduction, reduction_of
from weft.horovod.tensorflow.collective import reduced
from weft.ir.dtype import DType
from weft.ops.base import at_user_line
from weft.tf1.keras.optimizers import Optimizer


class _Distributed:
    """Mixin: reduces gradients over ranks."""

    _hvd: tuple[Reduction, ProcessSet]

    def get_gradients(self, loss: Any, params: Sequence[Any]) -> list[Any]:
        """Gradients of a loss, clipped, then reduced over ranks."""
        found: list[Any] = super().get_gradients(loss, params)  # pyright: ignore
        how, process_set = self._hvd
        present = [g for g in found if g is not None]
        ys = iter(reduced(present, how, None, process_set) if present else ())
        return [None if g is None else next(ys) for g in found]


def DistributedOptimizer(
    optimizer: Optimizer, name: str | None = None, device_dense: str = "",
    device_sparse: str = "", compression: DType | None = Compression.none,
    sparse_as_dense: bool = False, op: Any = Average,
    process_set: ProcessSet = global_process_set,
) -> Any:  # fmt: skip
    """Wrap a Keras optimizer so that gradients are reduced over all ranks first.

    Args:
        name, device_dense, device_sparse, sparse_as_dense: ignored.
        compression: `hvd.Compression.fp16` sends gradients as float16.
        op: `hvd.Average` or `hvd.Sum`.

    Raises:
        ArgumentError: it is not a Keras optimizer; pass those of `tf.train` to
            `weft.horovod.tensorflow.DistributedOptimizer`.
    """
    if not isinstance(optimizer, Optimizer):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(
            "DistributedOptimizer: expected an optimizer of tf.keras, got "
            f"{type(optimizer).__name__}{at_user_line()}"
        )
    kind = type(optimizer)
    found: Any = object.__new__(type(kind.__name__, (_Distributed, kind), {}))
    found.__dict__.update(optimizer.__dict__)
    how = Reduction(reduction_of(op, None, "DistributedOptimizer"), compression)
    found.__dict__["_hvd"] = (how, process_set)
    return found
