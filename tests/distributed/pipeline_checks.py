"""Pipelines of stages, checked on each rank; called by job_checks.py."""

import numpy as np

import weft as wf
import weft.distributed as dist
from weft.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    SplitPoint,
    pipeline,
)
from weft.errors import ArgumentError, ShapeError

PARTS = 4
LOSS = wf.nn.MSELoss()


def network():
    wf.manual_seed(0)
    body = [m for _ in range(8) for m in (wf.nn.Linear(6, 6), wf.nn.Tanh())]
    return wf.nn.Sequential(wf.nn.Sequential(*body), wf.nn.Linear(6, 2))


def data(rows: int):
    made = wf.Generator().manual_seed(rows)
    return wf.randn(rows, 6, generator=made), wf.randn(rows, 2, generator=made)


def stages_of(rank: int, ranks: int, chunks: int, group=None):
    count = chunks * ranks
    spec = {f"0.{16 // count * i}": SplitPoint.BEGINNING for i in range(1, count)}
    pipe = pipeline(network(), (wf.ones(2, 6),), split_spec=spec)
    return [pipe.build_stage(rank + ranks * i, group=group) for i in range(chunks)]


def check_schedules(rank: int, size: int) -> None:
    """The bits of one process that meets the micro-batches in the same order."""
    with wf.config.override(compile=True):  # the interpreter rounds otherwise
        alone, wanted = network(), []
        x, t = data(8)
        for _ in range(2):
            for i in range(PARTS):
                part = slice(2 * i, 2 * i + 2)
                loss = LOSS(alone(x[part]), t[part])
                (loss / PARTS).backward()
                wanted.append(loss.item())
        grads = {k: p.grad.tolist() for k, p in alone.named_parameters()}
        for kind, chunks in ((ScheduleGPipe, 1), (Schedule1F1B, 1), (ScheduleInterleaved1F1B, 2)):
            stages, alive, losses = stages_of(rank, size, chunks), [], []
            for s in stages:
                s.submod.register_forward_hook(lambda *_, s=s, a=alive: a.append(s.alive + 1))
            schedule = kind(stages if chunks > 1 else stages[0], PARTS, LOSS)
            for _ in range(2):
                found: list = []
                y = schedule.step(x, target=t, losses=found)
                losses += [loss.item() for loss in found]
            assert (y is None) == (rank != size - 1) and (y is None or y.shape == (8, 2))
            assert losses == ([] if y is None else wanted)
            for stage in stages:
                for name, p in stage.submod.named_parameters():
                    assert p.grad.tolist() == grads[name], (kind, name)
            assert all(s.alive == 0 for s in stages)
            most = {ScheduleGPipe: PARTS, Schedule1F1B: size - rank}
            assert max(alive) == most.get(kind, max(alive))
        x, _ = data(16)
        whole = schedule.eval(x)
        assert whole is None or whole.tolist() == alone(x).tolist()


class Two(wf.nn.Module):
    """Passes on integers beside what has gradients; its second input has a gradient of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = wf.nn.Parameter(wf.full((3,), 2.0))

    def forward(self, x, y, numbers):
        return x * self.weight, y + x, numbers + 1


def check_tuples(rank: int, size: int) -> None:
    stage = PipelineStage(Two(), rank, size)
    schedule = Schedule1F1B(
        stage, 4, lambda y, _: (y[0] * y[1]).sum() + y[2].sum(), scale_grads=False
    )
    x = wf.arange(24.0).reshape(8, 3)
    found = schedule.step(x, x, wf.zeros(8, 1, dtype=wf.int64))
    alone = [Two() for _ in range(size)]
    y = (x, x, wf.zeros(8, 1, dtype=wf.int64))
    for each in alone:
        y = each(*y)
    ((y[0] * y[1]).sum() + y[2].sum()).backward()
    assert stage.submod.weight.grad.tolist() == alone[rank].weight.grad.tolist()
    assert rank != size - 1 or [f.tolist() for f in found] == [e.tolist() for e in y]


def check_beside_data_parallel(rank: int, size: int) -> None:
    """Two pipelines of half of the ranks each, or one rank each."""
    ranks = size // 2
    groups = [dist.new_group([a * ranks + i for i in range(ranks)]) for a in range(2)]
    beside = [dist.new_group([i, i + ranks]) for i in range(ranks)]
    lane, place = divmod(rank, ranks)
    part = stages_of(place, ranks, 1, groups[lane])[0].submod
    module = wf.nn.parallel.DistributedDataParallel(part, process_group=beside[place])
    schedule = Schedule1F1B(PipelineStage(module, place, ranks, group=groups[lane]), PARTS, LOSS)
    x, t = data(16)
    half = slice(8 * lane, 8 * lane + 8)
    schedule.step(x[half], target=t[half])
    alone = network()
    LOSS(alone(x), t).backward()
    wanted = dict(alone.named_parameters())
    for name, p in module.module.named_parameters():
        np.testing.assert_allclose(p.grad, wanted[name].grad, rtol=1e-4, atol=1e-6)


def check_refusals(rank: int, size: int) -> None:
    stage = PipelineStage(wf.nn.Linear(2, 2), rank, size)
    whole = ScheduleGPipe(stage, 4, LOSS)
    cases = [
        (lambda: whole.step(wf.ones(10, 2), target=wf.ones(10, 2)), ShapeError,
         "expected a first dimension that the 4 micro-batches divide, got shape (10, 2)"),
        (lambda: Schedule1F1B(stage, 1, LOSS), ArgumentError, "expected at least as many micro"),
        (lambda: PipelineStage(wf.nn.Linear(2, 2), size - 1 - rank, size), ArgumentError,
         f"stage {size - 1 - rank} of {size} on rank {rank}"),
    ]  # fmt: skip
    for i, (wrong, kind, text) in enumerate(cases):
        if i == 0 and rank not in (0, size - 1):
            continue
        try:
            wrong()
            raise AssertionError("expected an error")
        except kind as error:
            assert text in str(error), error
