"""Schedules: one training step of a pipeline, micro-batch by micro-batch."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

from weft.distributed.pipelining import order
from weft.distributed.pipelining.channel import channels
from weft.distributed.pipelining.order import Pass
from weft.distributed.pipelining.stage import PipelineStage
from weft.eager.functions.api import cat
from weft.eager.record.pending.mode import no_grad
from weft.eager.tensor.handle import Handle
from weft.errors import ArgumentError, ShapeError
from weft.func.tree import flatten

__all__ = ["Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B"]

Loss = Callable[[Any, Any], Any]


class _Step:
    """The arguments and results of one call of `step`."""

    def __init__(self, schedule: _Schedule, args: Any, kwargs: Any, target: Any) -> None:
        count, stages = schedule.n_microbatches, schedule.stages
        first = any([s.is_first for s in stages])
        last = any([s.is_last for s in stages])
        self.args = split(args, count, "arguments") if first else [()] * count
        self.kwargs = split(kwargs, count, "keyword arguments")
        self.targets = split(target, count, "target") if last else [None] * count
        self.asked = target is not None  # whether losses are computed, even without a backward pass
        self.outputs: list[Any] = []
        self.losses: list[Any] = []


class _Schedule(abc.ABC):
    """The base of all schedules."""

    def __init__(
        self, stages: Sequence[PipelineStage], n_microbatches: int, loss_fn: Loss | None,
        scale_grads: bool,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        if n_microbatches < 1:
            raise ArgumentError.here(
                f"{name}: expected n_microbatches from 1, got {n_microbatches}"
            )
        if not stages:
            raise ArgumentError.here(f"{name}: expected stages, got none")
        self.stages = list(stages)
        self.n_microbatches = n_microbatches
        self._loss_fn = loss_fn
        self._scale = n_microbatches if scale_grads else 1
        self._by_index = {s.stage_index: s for s in stages}
        self._group = stages[0].group
        self._forward, self._back = channels(self._group, stages[0].num_stages)

    @abc.abstractmethod
    def _order(self) -> list[Pass]:
        """The passes of this rank's stages."""

    def step(
        self, *args: Any, target: Any = None, losses: list[Any] | None = None,
        return_outputs: bool = True, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """Compute a batch's gradients, in micro-batches; each rank of the pipeline calls it.

        Gradients accumulate in `.grad`, as after one backward pass of the mean of the
        micro-batches' losses.

        Args:
            args: of the first stage; ignored on other ranks.
            target: the loss function's second argument; ignored on all ranks but the last.
            losses: filled with each micro-batch's loss, on the last rank.
            return_outputs: whether the last rank returns the outputs.
            kwargs: of this rank's stages.

        Returns:
            The last stage's outputs, concatenated, on its rank; `None` on the others.

        Raises:
            ShapeError: the micro-batches do not divide the first dimension of a tensor.
            ArgumentError: no loss is computed, or it is not a scalar.
        """
        passes = self._order() if self._loss_fn is not None else self._forward_order()
        return self._run(passes, args, kwargs, target, losses, return_outputs)

    def eval(
        self, *args: Any, target: Any = None, losses: list[Any] | None = None,
        return_outputs: bool = True, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """Like `step`, without gradients; losses are computed if there is a target."""
        with no_grad():
            return self._run(self._forward_order(), args, kwargs, target, losses, return_outputs)

    def _forward_order(self) -> list[Pass]:
        return order.forward_only(list(self._by_index), self.n_microbatches)

    def _run(
        self, passes: Sequence[Pass], args: Any, kwargs: Any, target: Any,
        losses: list[Any] | None, return_outputs: bool,
    ) -> Any:  # fmt: skip
        step = _Step(self, args, kwargs, target)
        trains = any([p.backward for p in passes])
        try:
            for each in passes:
                (self._backward_pass if each.backward else self._forward_pass)(each, step, trains)
            for channel in (*self._forward, *self._back):
                channel.wait_for_sends()
        finally:
            for stage in self.stages:
                stage.forget()
        if losses is not None and step.losses:
            losses[:] = step.losses
        return merge(step.outputs) if step.outputs and return_outputs else None

    def _forward_pass(self, each: Pass, step: _Step, trains: bool) -> None:
        index, i = each.stage, each.micro_batch
        stage = self._by_index[index]
        inputs = [] if stage.is_first else stage.inputs(i, self._forward[index - 1])
        args = step.args[i] if stage.is_first else inputs
        y = stage.forward(args, step.kwargs[i], i == self.n_microbatches - 1)
        if stage.is_last:
            step.outputs.append(_detached(y))
        loss = self._loss(y, step, i) if stage.is_last and (trains or step.asked) else None
        if trains:
            stage.keep(i, inputs, y, loss)
        if not stage.is_last:
            stage.send(y, i, self._forward[index])

    def _loss(self, y: Any, step: _Step, i: int) -> Any:
        """A micro-batch's loss, scaled for the backward pass."""
        if self._loss_fn is None:
            return None
        loss = self._loss_fn(y, step.targets[i])
        step.losses.append(loss.detach())
        return loss / self._scale if self._scale != 1 else loss

    def _backward_pass(self, each: Pass, step: _Step, trains: bool) -> None:
        index = each.stage
        stage = self._by_index[index]
        stage.backward(
            each.micro_batch,
            None if stage.is_last else self._back[index],
            None if stage.is_first else self._back[index - 1],
            each.micro_batch == self.n_microbatches - 1,
        )


def _detached(y: Any) -> Any:
    return tuple([x.detach() for x in y]) if isinstance(y, tuple | list) else y.detach()  # pyright: ignore


class _Single(_Schedule):
    """A schedule with one stage per rank."""

    def __init__(
        self, stage: PipelineStage, n_microbatches: int, loss_fn: Loss | None = None,
        scale_grads: bool = True,
    ) -> None:  # fmt: skip
        super().__init__([stage], n_microbatches, loss_fn, scale_grads)
        if stage.num_stages != stage.group.size:
            raise ArgumentError.here(
                f"{type(self).__name__}: expected one stage for each of the {stage.group.size} "
                f"ranks, got {stage.num_stages}; use ScheduleInterleaved1F1B for several"
            )


class ScheduleGPipe(_Single):
    """All forward passes, then all backward passes; all micro-batches' activations are kept.

    Args:
        stage: this rank's stage.
        n_microbatches: the number of micro-batches of a batch.
        loss_fn: called with the last stage's output and the target; without one, `step` computes
            no gradients.
        scale_grads: whether gradients are those of the mean of the micro-batches' losses; else of
            their sum.

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> from weft.distributed.pipelining import PipelineStage, ScheduleGPipe
        >>> dist.init_process_group()
        >>> stage = PipelineStage(wf.nn.Linear(2, 1), dist.get_rank(), dist.get_world_size())
        >>> schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=wf.nn.MSELoss())
        >>> losses = []
        >>> y = schedule.step(wf.ones(4, 2), target=wf.zeros(4, 1), losses=losses)
        >>> tuple(y.shape), len(losses)
        ((4, 1), 2)
        >>> dist.destroy_process_group()
    """

    def _order(self) -> list[Pass]:
        return order.all_then_all(self.stages[0].stage_index, self.n_microbatches)


class Schedule1F1B(_Single):
    """One forward pass, one backward pass; a rank keeps at most (stages - rank) activations.

    Args:
        stage, n_microbatches, loss_fn, scale_grads: see `ScheduleGPipe`.

    Raises:
        ArgumentError: fewer micro-batches than stages.
    """

    def __init__(
        self, stage: PipelineStage, n_microbatches: int, loss_fn: Loss | None = None,
        scale_grads: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(stage, n_microbatches, loss_fn, scale_grads)
        if n_microbatches < stage.num_stages:
            raise ArgumentError.here(
                f"Schedule1F1B: expected at least as many micro-batches as there are stages, "
                f"{stage.num_stages}, got {n_microbatches}"
            )

    def _order(self) -> list[Pass]:
        stage = self.stages[0]
        return order.one_by_one(stage.stage_index, stage.num_stages, self.n_microbatches)


class ScheduleInterleaved1F1B(_Schedule):
    """One forward pass, one backward pass, with several stages per rank.

    Rank r has the stages r, r + ranks, r + 2 ranks, ..., so that ranks wait less while the pipeline
    fills and drains.

    Args:
        stages: all stages of this rank.
        n_microbatches, loss_fn, scale_grads: see `ScheduleGPipe`.

    Raises:
        ArgumentError: stages of other ranks, or a number of micro-batches that cannot be divided
            into rounds of about as many as there are ranks.
    """

    def __init__(
        self, stages: Sequence[PipelineStage], n_microbatches: int, loss_fn: Loss | None = None,
        scale_grads: bool = True,
    ) -> None:  # fmt: skip
        stages = sorted(stages, key=lambda s: s.stage_index)
        super().__init__(stages, n_microbatches, loss_fn, scale_grads)
        ranks, rank = self._group.size, self._group.index
        wanted = list(range(rank, stages[0].num_stages, ranks))
        if list(self._by_index) != wanted or len(stages) != len(wanted):
            raise ArgumentError.here(
                f"ScheduleInterleaved1F1B: expected the stages {wanted} on rank {rank}, got "
                f"{[s.stage_index for s in stages]}"
            )
        rounds = max(1, n_microbatches // ranks)
        if n_microbatches % rounds:
            raise ArgumentError.here(
                f"ScheduleInterleaved1F1B: expected a number of micro-batches that its {rounds} "
                f"rounds divide, such as {rounds * ranks}, got {n_microbatches}"
            )

    def _order(self) -> list[Pass]:
        group = self._group
        return order.interleaved(group.index, group.size, len(self.stages), self.n_microbatches)


def split(x: Any, count: int, what: str) -> list[Any]:
    """Split all tensors in a structure into `count` equal parts; other values are shared.

    Raises:
        ShapeError: a tensor has no rows, or `count` does not divide their number.
    """
    leaves, tree = flatten(x)
    columns = [_parts(leaf, count, what) for leaf in leaves]
    return [tree.build([column[i] for column in columns]) for i in range(count)]


def _parts(x: Any, count: int, what: str) -> list[Any]:
    if not isinstance(x, Handle):
        return [x] * count
    tensor: Any = x
    rows = tensor.shape[0] if tensor.ndim else 0
    if rows == 0 or rows % count:
        shape = tuple(tensor.shape)
        raise ShapeError.here(
            f"step: {what}: expected a first dimension that the {count} micro-batches divide, got "
            f"shape {shape}; drop the rest of the data, or pad it"
        )
    size = rows // count
    return [tensor[i * size : (i + 1) * size] for i in range(count)]


def merge(parts: Sequence[Any]) -> Any:
    """Concatenate structures of tensors along the first dimension; scalars become a list."""
    columns = [flatten(part)[0] for part in parts]
    tree = flatten(parts[0])[1]
    rows = zip(*columns, strict=True)
    return tree.build([cat(row, 0) if row[0].ndim else list(row) for row in rows])
