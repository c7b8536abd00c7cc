"""Kernels of forms in which sizes differ serve calls in which some are equal by chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft import config, ops
from weft.codegen.target import portable
from weft.eager.record.call.plan import placeholders
from weft.eager.record.run.stitch import computing
from weft.ir.dtype import float32
from weft.ir.graph import Graph
from weft.ir.node import TensorType
from weft.library import entry
from weft.library.case import Case, Made
from weft.library.form import Form
from weft.library.form_text import as_text
from weft.library.formula import Formula
from weft.library.looser_form import frame, frames, looser
from weft.library.making import Listed, made
from weft.library.routine import Routine, routine
from weft.runtime.compilation import pack


def test_sizes_may_be_equal_where_they_may_differ():
    three, known = "('@0','@1')('@1','@2')", frames(["('@0','@1')('@1','@2')", "none"])
    assert [*known] == [frame(three)] == ["('@','@')('@','@')"]

    def found(*marks: str) -> Form | None:
        key = (marks[:2], marks[2:])
        sizes = tuple([7, 8, 9][: len(set(marks))])
        return looser(Form(key, sizes), str(key), known[frame(three)])

    wanted = ("@0", "@1"), ("@1", "@2")
    assert found("@0", "@0", "@0", "@0") == Form(wanted, (7, 7, 7))
    assert found("@0", "@1", "@1", "@0") == Form(wanted, (7, 8, 7))
    assert found("@0", "@1", "@2", "@1") is None  # which must be equal in the known one


def test_a_square_matrix_needs_no_kernel_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def written(*shape: int) -> tuple[Routine, TensorType]:
        monkeypatch.setattr(entry, "_entries", {})
        graph, kind = Graph(), TensorType(float32, shape)
        with graph.as_default():
            (x,) = placeholders([kind])
            return routine(graph, [ops.softmax(x)], [x], portable()), kind

    def softmax(n: int) -> np.ndarray[Any, Any]:
        made, kind = written(n, n)
        case = Case(Made(made), Formula())
        case.expect(b"")
        x = np.random.default_rng(0).standard_normal((n, n), np.float32)
        (found,) = computing(case, b"", [x], [kind]).run().arrays
        return found

    monkeypatch.setattr(entry, "pack_of", lambda target: None)
    written(19, 37)
    forms = [Listed(as_text(key), ((19, 37),)) for _, key in entry._entries]
    found = pack.opened(pack.sealed(made(portable(), forms), "me"), portable(), "me")
    with config.override(cache=str(tmp_path)), monkeypatch.context() as patch:
        patch.setattr(entry, "pack_of", lambda target: found)
        patch.setattr(entry.Entry, "_made", None)  # which writes kernels
        packed = softmax(24)
    np.testing.assert_array_equal(packed, softmax(24))
