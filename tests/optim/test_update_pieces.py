"""The update of all parameters, written once for those of the same types, is that of the whole."""

from __future__ import annotations

from typing import Any

import pytest

import weft as wf
from weft.eager.record.listing import call_routine
from weft.eager.record.pending.state import trace

SHAPES = ((3, 4), (4,), (3, 4), (5, 2), (4,), (3, 4))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (wf.optim.AdamW, {"weight_decay": 0.1}), (wf.optim.SGD, {"momentum": 0.9}),
        (wf.optim.Adagrad, {}), (wf.optim.RMSprop, {"centered": True}), (wf.optim.RAdam, {}),
    ],
)  # fmt: skip
def test_launches_are_those_of_the_whole(kind: Any, options: dict[str, Any]) -> None:
    parameters = [wf.ones(*shape, requires_grad=True) for shape in SHAPES]
    half = [wf.ones(3, dtype=wf.bfloat16, requires_grad=True) for _ in range(2)]
    groups = [{"params": parameters}, {"params": half, "lr": 0.5}]
    optimizer = kind(groups, lr=0.1, **options)
    for p in (*parameters, *half):
        p.grad = wf.ones_like(p)
    wf.synchronize()
    optimizer.step()
    record = trace.now.pending[-1]
    plan, types = record.plan, [x.type for x in record.inputs]
    whole = call_routine._written(types, plan.expand, None).routine
    written: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        write = call_routine._written
        patch.setattr(
            call_routine,
            "_written",
            lambda own, *rest: written.append(len(own)) or write(own, *rest),
        )
        pieces = call_routine._of_plan(plan, types, None).routine
    assert len(written) == 4 and max(written) < len(types) / 2
    assert _launches(pieces) == _launches(whole) and pieces.results == whole.results
    assert pieces.updates == whole.updates


def _launches(routine: Any) -> list[Any]:
    return sorted([(id(part.entry), part.sizes, part.buffers) for part in routine.parts])
