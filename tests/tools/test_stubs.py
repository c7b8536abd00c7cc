"""The stubs for editors agree with the table of names."""

import importlib

from tools import stubs
from weft import Tensor
from weft.eager.functions import table
from weft.eager.functions.elementwise import declared


def test_the_stubs_are_current():
    for path, text in stubs.rendered().items():
        assert path.read_text() == text, "run python -m tools.stubs"


def test_each_name_is_where_the_stubs_import_it_from():
    rows = [(row.module, row.attribute) for row in table.rows()]
    assert [row for row in rows if not hasattr(importlib.import_module(row[0]), row[1])] == []


def test_a_new_name_changes_the_stubs(monkeypatch):
    before = stubs.rendered()
    row = table.Names(table.unary, "frac", table.FUNCTION)
    monkeypatch.setattr(Tensor, "of_this_test", table.unary.frac, raising=False)
    monkeypatch.setattr(table, "TABLE", (*table.TABLE, row))
    table.rows.cache_clear()
    after = stubs.rendered()
    monkeypatch.undo()
    table.rows.cache_clear()
    assert {path.name for path in before if after[path] != before[path]} == {
        "tensor.pyi",
        "api.pyi",
    }


def test_a_new_face_changes_the_stub_of_its_module(monkeypatch):
    before = stubs.rendered()
    monkeypatch.setattr(declared, "of_this_test", declared.exp, raising=False)
    monkeypatch.setattr(declared, "__all__", [*declared.__all__, "of_this_test"])
    after = stubs.rendered()
    assert {path.name for path in before if after[path] != before[path]} == {"declared.pyi"}
