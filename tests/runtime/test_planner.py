"""Programs that a compiler process plans: the same as those that are planned here."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from drawn_graph import Drawing

import weft as wf
from weft import config, nn, ops
from weft.codegen.generator import Generator
from weft.codegen.target import current
from weft.eager.record.run import stitched_tier
from weft.errors import CompileError
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.library import payoff
from weft.nn import functional as F
from weft.passes.pipeline import optimize, plan
from weft.passes.specialize import specialize
from weft.passes.step import Request, Step
from weft.runtime import finish
from weft.runtime.compilation import compiler, planner
from weft.runtime.compilation.plan_data import unpacked
from weft.runtime.recipe import dump, recipe_of


def _planned_here(step: Step, threads: int) -> bytes | None:
    blueprint = plan(optimize(step), Generator(current()), threads)
    return dump(recipe_of(blueprint), partial(compiler.key_of, target=current()))


def _drawn(seed: int) -> Step:
    drawing = Drawing(seed)
    fetches: list[Value] = drawing.grow(12)
    feeds = tuple(drawing.feeds)
    return specialize(
        Request(drawing.graph, tuple(fetches), (), feeds), [v.type for v in feeds], {}, {}
    )


@pytest.mark.parametrize("seed", range(12))
def test_a_step_is_planned_alike_from_its_text(seed: int) -> None:
    step = _drawn(seed)
    step = replace(step, lasting=frozenset(step.feeds[:1]))
    text = planner.request(step, 2, False, current())
    assert text is not None
    data, kernels = unpacked(finish.planned(text))
    assert data == _planned_here(step, 2)
    assert all([kernel.key and kernel.ir for kernel in kernels])


def _network(kind: str) -> tuple[nn.Module, wf.Tensor, wf.Tensor]:
    wf.manual_seed(0)
    if kind == "convolution":
        layers: list[nn.Module] = [
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(8 * 64, 10),
        ]  # fmt: skip
        return nn.Sequential(*layers), wf.randn(4, 3, 16, 16), wf.randint(0, 10, (4,))
    layers = [nn.Linear(24, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.1), nn.Linear(32, 10)]
    return nn.Sequential(*layers), wf.randn(6, 24), wf.randint(0, 10, (6,))


def _trained(kind: str, steps: int = 5) -> list[bytes]:
    model, x, y = _network(kind)
    optimizer = wf.optim.AdamW(model.parameters(), lr=1e-2)
    losses: list[bytes] = []
    for _ in range(steps):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach().numpy().tobytes())
    return losses + [p.detach().numpy().tobytes() for p in model.parameters()]


@pytest.mark.parametrize("kind", ["convolution", "perceptron"])
def test_training_goes_on_with_what_another_process_has_planned(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    asked: list[str] = []
    request = planner.request

    def noted(step: Step, *rest: Any) -> str | None:
        found = request(step, *rest)
        assert found is not None
        asked.append(found)
        return found

    def never(self: Any) -> Any:
        raise AssertionError("planned in this process")

    for module, name in (
        (stitched_tier, "STITCHED_RUNS"), (stitched_tier, "STITCHED_RUNS_OF_MANY"),
        (payoff, "BESIDE"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, 1)
    with monkeypatch.context() as patch:
        patch.setattr(stitched_tier, "STITCHED_RUNS", 1 << 30)
        as_lists = _trained(kind)
    with config.override(cache=str(tmp_path)), monkeypatch.context() as patch:
        patch.setattr(planner, "request", noted)
        patch.setattr(finish.Begun, "_planned", never)
        assert _trained(kind) == as_lists
    assert asked


def test_what_cannot_be_planned_there_is_planned_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    step = _drawn(0)
    text = planner.request(step, 1, False, current())
    assert text is not None
    changed = text.replace('"content": "', '"content": "0')
    with pytest.raises(CompileError, match="reads differently"):
        planner.parsed(changed)
    monkeypatch.setattr(planner, "request", lambda *given: changed)
    planned: list[object] = []
    here = finish.Begun._planned

    def noted(self: finish.Begun) -> Any:
        planned.append(self)
        return here(self)

    monkeypatch.setattr(finish.Begun, "_planned", noted)
    with config.override(cache=str(tmp_path)):
        begun = finish.begin(step, 1, beside=True)
        assert not planned
        begun.executable()
    assert planned == [begun]


def test_what_was_planned_is_kept_even_if_it_never_ran(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    step, first = _drawn(3), compiler.Compiler()
    monkeypatch.setattr(compiler, "_compiler", first)
    with config.override(cache=str(tmp_path)):
        finish.begin(step, 1, beside=True)
        deadline = time.monotonic() + 60
        while any([child.jobs for child in first._children]):
            assert time.monotonic() < deadline
            time.sleep(0.01)
            compiler.feed()
        first.close()
        monkeypatch.setattr(compiler, "_compiler", compiler.Compiler())
        monkeypatch.setattr(compiler.Compiler, "_spawn", None)  # nothing is compiled any more
        assert finish.begin(step, 1, beside=True).executable()


def test_minus_zero_stays_minus_zero_in_a_process_that_has_planned_zero() -> None:
    found: list[bytes] = []
    for zero in (0.0, -0.0):
        with Graph().as_default() as graph:
            x = ops.placeholder(dtype="float32", shape=(4,))
            y = ops.pad(x, paddings=((0, 2),), value=zero)
        step = specialize(Request(graph, (y,), (), (x,)), [x.type], {}, {})
        text = planner.request(step, 1, False, current())
        assert text is not None
        assert unpacked(finish.planned(text))[0] == _planned_here(step, 1)
        found.append(unpacked(finish.planned(text))[0])
    assert found[0] != found[1]
