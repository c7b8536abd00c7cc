"""The documents' Python blocks run, top to bottom; the table of knobs is complete."""

import re
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import weft as wf
import weft.func
import weft.numpy
import weft.tf1
import weft.tf1.api as tf1_names
from weft.config import KNOBS
from weft.eager.functions.elementwise.from_op import of_op
from weft.eager.tensor.tensor import Tensor
from weft.ops.declaration import REGISTRY
from weft.ops.declaration.face import FACES

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture
def registry():
    """Operations that a document declares are gone afterwards."""
    before = dict(REGISTRY)
    yield
    for name in REGISTRY.keys() - before.keys():
        if name in vars(Tensor):
            delattr(Tensor, name)
        FACES.pop(name, None)
        for place in (wf, wf.numpy, wf.tf1, tf1_names):  # which keep what they were asked for
            vars(place).pop(name, None)
    REGISTRY.clear()
    REGISTRY.update(before)


@pytest.mark.usefixtures("as_lists")
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_code_of_a_document_runs(path, registry, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    namespace = {"__name__": path.stem}
    text = path.read_text()
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(path), "exec"), namespace)


def test_the_operation_of_the_guide_is_in_every_front_end(registry):
    declaration = (
        (ROOT / "docs" / "ADD_AN_OP.md").read_text().split("```python\n")[1].split("```")[0]
    )
    eager, methods, arrays, tf = places = cast("list[Any]", [wf, Tensor, wf.numpy, wf.tf1])
    assert not any(hasattr(place, "radius") for place in places)
    exec(declaration, {"__name__": "guide"})
    assert all(callable(place.radius) and "radius" in dir(place) for place in places)
    x, y = np.array([3.0, -1.0]), np.array([4.0, 0.5])
    a = wf.tensor(x)
    found = [eager.radius(a, y), methods.radius(a, wf.tensor(y)), arrays.radius(x, y)]
    with tf.Graph().as_default(), tf.Session() as session:
        found.append(session.run(tf.radius(tf.constant(x), y)))
    for z in found:
        np.testing.assert_allclose(np.asarray(z), np.hypot(x, y))
    slope = wf.func.grad(lambda x: eager.radius(x, y).sum())(a)
    np.testing.assert_allclose(slope.numpy(), x / np.hypot(x, y))


def test_a_front_ends_own_function_comes_first():
    assert wf.tanh is not of_op(REGISTRY["tanh"])
    with pytest.raises(AttributeError):
        _ = wf.numpy.lag_update  # not exported


def test_links_between_documents_lead_somewhere():
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_knob_is_in_the_table():
    table = (ROOT / "docs" / "KNOBS.md").read_text()
    assert re.findall(r"^\| `(WEFT_\w+)`", table, re.MULTILINE) == [
        knob.variable for knob in KNOBS.values()
    ]


def lines_too_long(text):
    """Lines of prose beyond 100 columns; tables, code, and lines of one long word are exempt."""
    prose = re.sub(r"^ *(```+)[^\n]*\n.*?^ *\1", "", text, flags=re.MULTILINE | re.DOTALL)
    rows = [line for line in prose.split("\n") if not line.lstrip().startswith(("|", "<", "!["))]
    words = [re.sub(r"`[^`]*`|\[[^]]*\]\([^)]*\)", "x", line) for line in rows]
    return [
        row for row, word in zip(rows, words, strict=True) if len(row) > 100 and " " in word.strip()
    ]


def test_lines_of_prose_end_at_100_columns():
    for path in [*DOCUMENTS, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]:
        assert lines_too_long(path.read_text()) == [], f"{path.name}: wrap these lines"
