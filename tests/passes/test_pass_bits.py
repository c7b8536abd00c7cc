"""A pass that says so keeps all bits: without it, programs give the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from drawn_graph import Drawing, compiled, slopes

from weft import config, ops
from weft.errors import MismatchError
from weft.ir.graph import Graph, rewrite
from weft.ir.node import Value
from weft.ops.declaration import op_of
from weft.passes import pipeline
from weft.passes.pipeline import FUSE, JOINS, PASSES, Pass
from weft.passes.step import Step

Array = np.ndarray
KEEPING = {p.run.__name__: p for p in (*PASSES, *JOINS) if not p.changes}


def image(d: Drawing) -> list[Value]:
    """Sums over images that convolutions have made, in the user's order of axes."""
    with d.graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(3, 4, 9, 7))
        w = ops.placeholder(dtype="float32", shape=(3, 3, 4, 20))
        d.feeds[x] = d.rng.standard_normal((3, 4, 9, 7)).astype("f")
        d.feeds[w] = d.rng.standard_normal((3, 3, 4, 20)).astype("f")
        y = ops.conv(ops.transpose(x, perm=(0, 2, 3, 1)), w, padding="same")
        y = ops.transpose(ops.tanh(y * ops.exp(ops.constant(np.float32(0.3)))), perm=(0, 3, 1, 2))
        found = [ops.mean(y, axes=(2, 3)), ops.sum(y, axes=(0, 2, 3)), ops.max(y, axes=(1,))]
    return [*found, *slopes(d, found)]


def chain(d: Drawing) -> list[Value]:
    found = d.grow(9)
    return [*found, *slopes(d, found)]


def results(draw: Callable[[Drawing], list[Value]], seed: int) -> list[bytes]:
    drawing = Drawing(seed)
    return [np.asarray(y).tobytes() for y in compiled(drawing, draw(drawing))]


def check(monkeypatch, tmp_path, without: Pass, draw, seed: int = 3) -> None:
    with config.override(cache=str(tmp_path / "with")):
        expected = results(draw, seed)
    for name in ("PASSES", "JOINS"):
        table = getattr(pipeline, name)
        monkeypatch.setattr(pipeline, name, tuple([p for p in table if p.run is not without.run]))
    with config.override(cache=str(tmp_path / "without")):
        if results(draw, seed) != expected:
            raise MismatchError(f"{without.run.__name__} changes bits")


@pytest.mark.slow
@pytest.mark.parametrize("draw", [image, chain])
@pytest.mark.parametrize("name", KEEPING)
def test_a_pass_keeps_the_bits(name, draw, monkeypatch, tmp_path) -> None:
    check(monkeypatch, tmp_path, KEEPING[name], draw)


def test_what_changes_bits_is_listed() -> None:
    found = [p.run.__name__ for p in (*PASSES, FUSE, *JOINS) if p.changes]
    assert found == ["whole_axes", "bodies", "fuse"]


def test_a_pass_that_reassociates_is_noticed(monkeypatch, tmp_path) -> None:
    def halves(step: Step) -> Step:
        """Planted: tanh(x) -> 0.3 * tanh(x) + 0.7 * tanh(x)."""

        def rule(node, _: Graph):
            if op_of(node) is not ops.tanh:
                return None
            y = ops.tanh(node.inputs[0])
            return (y * 0.3 + y * 0.7,)

        return step.with_graph(rewrite(step.graph, rule))

    planted = Pass(halves)
    monkeypatch.setattr(pipeline, "PASSES", (*PASSES, planted))
    with pytest.raises(MismatchError, match="halves changes bits"):
        check(monkeypatch, tmp_path, planted, image)
