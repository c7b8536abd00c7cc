"""`PipelineStage`: consecutive layers of a model on one rank."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from weft import autograd
from weft.collectives.process_group import member
from weft.distributed.pipelining.channel import Channel, Kind, kinds_of
from weft.eager.record.pending.mode import is_grad_enabled, no_grad
from weft.eager.record.pending.state import flush
from weft.eager.tensor.tensor import Tensor
from weft.errors import ArgumentError, ShapeError
from weft.nn.module.module import Module
from weft.transport.group import Group


@dataclass
class _Alive:
    """What the backward pass of a micro-batch needs."""

    inputs: list[Tensor]
    outputs: list[Tensor]
    loss: Tensor | None


class PipelineStage:
    """A stage of a pipeline; stage i is on rank i modulo the number of ranks.

    The first stage is called with the arguments of `step`, every other with the previous stage's
    result: a tensor, or a tuple of tensors. Each rank passes its own keyword arguments to `step`.

    Args:
        submodule: this stage's layers. Within `DistributedDataParallel`, their gradients are
            averaged once per step, in the last micro-batch's backward pass.
        stage_index: from 0.
        num_stages: the number of stages on all ranks.
        device: has no effect.
        group: the ranks of the pipeline; by default all.

    Raises:
        ArgumentError: there is no such stage, or it belongs on another rank.

    Attributes:
        submod: the module.
        alive: the number of micro-batches whose activations are kept now.
    """

    def __init__(
        self, submodule: Module, stage_index: int, num_stages: int, device: Any = None,
        group: Group | None = None,
    ) -> None:  # fmt: skip
        self.group = member(group, "PipelineStage")
        if not 0 <= stage_index < num_stages:
            raise ArgumentError.here(
                f"PipelineStage: expected a stage_index from 0 to {num_stages - 1}, got "
                f"{stage_index}"
            )
        if num_stages % self.group.size or stage_index % self.group.size != self.group.index:
            raise ArgumentError.here(
                "PipelineStage: expected a multiple of the group's ranks as num_stages, and stage "
                f"i on rank i % {self.group.size}; got stage {stage_index} of {num_stages} on rank "
                f"{self.group.index}"
            )
        self.submod = submodule
        self.stage_index = stage_index
        self.num_stages = num_stages
        self.is_first = stage_index == 0
        self.is_last = stage_index == num_stages - 1
        self._alive: dict[int, _Alive] = {}
        self._kinds: list[Kind] = []

    @property
    def alive(self) -> int:
        """The number of micro-batches whose activations are kept now."""
        return len(self._alive)

    def inputs(self, micro_batch: int, before: Channel) -> list[Tensor]:
        """Receive the previous stage's result."""
        if micro_batch == 0:
            self._kinds = before.expect()
        received = before.receive(self._kinds, f"the output of stage {self.stage_index - 1}")
        if is_grad_enabled():
            for x, k in zip(received, self._kinds, strict=True):
                x.requires_grad_(k.requires_grad)
        return received

    def forward(self, args: Sequence[Any], kwargs: dict[str, Any], last: bool) -> Any:
        """The module's result."""
        with self._reducing(last):
            return self.submod(*args, **kwargs)

    def keep(self, micro_batch: int, inputs: list[Tensor], y: Any, loss: Tensor | None) -> None:
        """Keep a micro-batch for its backward pass."""
        self._alive[micro_batch] = _Alive(inputs, tensors_of(y, "PipelineStage"), loss)

    def forget(self) -> None:
        """Drop all kept micro-batches."""
        self._alive.clear()

    def send(self, y: Any, micro_batch: int, after: Channel) -> None:
        """Send a result to the next stage; the types and shapes of results are announced first.

        Raises:
            ShapeError: its types or shapes differ from those of the first micro-batch.
        """
        outputs = tensors_of(y, "PipelineStage")
        kinds = kinds_of(outputs)
        if micro_batch == 0:
            self._sent = kinds
            after.announce(kinds)
        if kinds != self._sent:
            raise ShapeError.here(
                f"step: expected results of stage {self.stage_index} like those of the first "
                f"micro-batch, {self._sent}, got {kinds}"
            )
        after.send([x.detach() for x in outputs], f"the output of stage {self.stage_index}")

    def backward(
        self, micro_batch: int, after: Channel | None, before: Channel | None, last: bool
    ) -> None:
        """Run a micro-batch's backward pass through this stage."""
        kept = self._alive.pop(micro_batch)
        ys = [y for y in kept.outputs if y.requires_grad]
        with self._reducing(last):
            if after is None:
                if kept.loss is not None and kept.loss.requires_grad:
                    kept.loss.backward()
            elif ys:
                what = f"the gradient of stage {self.stage_index + 1}"
                autograd.backward(ys, after.receive(kinds_of(ys), what))
        xs = [x for x in kept.inputs if x.requires_grad]
        del kept, ys
        if before is not None:
            with no_grad():
                gs = [x.new_zeros(x.shape) if x.grad is None else x.grad for x in xs]
            before.send(gs, f"the gradient of stage {self.stage_index}")
        flush()  # frees the activations

    def _reducing(self, last: bool) -> contextlib.AbstractContextManager[Any]:
        """Context in which gradients are reduced only in the last backward pass."""
        no_sync: Callable[[], Any] | None = getattr(self.submod, "no_sync", None)
        return contextlib.nullcontext() if last or no_sync is None else no_sync()


def tensors_of(y: Any, what: str) -> list[Tensor]:
    """A stage's result as a list.

    Raises:
        ArgumentError: it is neither a tensor nor a tuple of tensors.
    """
    tensors: list[Any] = list(y) if isinstance(y, tuple | list) else [y]  # pyright: ignore[reportUnknownArgumentType]
    wrong = [type(x).__name__ for x in tensors if not isinstance(x, Tensor)]
    if wrong:
        raise ArgumentError.here(
            f"{what}: expected the module to return a tensor or a tuple of tensors, got "
            f"{', '.join(wrong)}"
        )
    return tensors
