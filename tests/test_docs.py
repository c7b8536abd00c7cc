"""The documents' Python blocks run, top to bottom; the table of knobs is complete."""

import re
from pathlib import Path

import pytest

from weft.config import KNOBS
from weft.ops.base import REGISTRY

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture
def registry():
    """Operations that a document declares are gone afterwards."""
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_code_of_a_document_runs(path, registry, capsys):
    namespace = {"__name__": path.stem}
    text = path.read_text()
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(path), "exec"), namespace)


def test_links_between_documents_lead_somewhere():
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_knob_is_in_the_table():
    table = (ROOT / "docs" / "KNOBS.md").read_text()
    assert re.findall(r"^\| `(WEFT_\w+)`", table, re.MULTILINE) == [
        knob.variable for knob in KNOBS.values()
    ]
