"""The stubs for editors agree with the table of names."""

from tools import stubs
from weft import Tensor
from weft.eager.functions import table


def test_the_stubs_are_current():
    for path, text in stubs.rendered().items():
        assert path.read_text() == text, "run python -m tools.stubs"


def test_a_new_name_changes_the_stubs(monkeypatch):
    row = table.Names(table.unary, "exp", table.BOTH)
    before = {path.parts[-2:]: text for path, text in stubs.rendered().items()}
    monkeypatch.setattr(Tensor, "of_this_test", table.unary.exp, raising=False)
    monkeypatch.setattr(table, "TABLE", (*table.TABLE, row._replace(names="cbrt")))
    after = {path.parts[-2:]: text for path, text in stubs.rendered().items()}
    assert "def of_this_test(self) -> Tensor" in after["tensor", "tensor.pyi"]
    changed = {path for path in before if after[path] != before[path]}
    assert changed == {("tensor", "tensor.pyi"), ("functions", "api.pyi")}
