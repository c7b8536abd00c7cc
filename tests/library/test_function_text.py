"""Functions are told apart by their code and by all that it refers to."""

from __future__ import annotations

import math
import os
from typing import Any

import pytest

from weft.library.function_text import NoFunctionTextError, text_of_value
from weft.ops.declaration import catalogue

NUMBER = 2


def scaled(by: Any, other: Any = None) -> Any:
    def scale(x: Any, offset: Any = other) -> Any:
        return catalogue.add(catalogue.multiply(x, by), offset)

    return scale


def first(x: Any) -> Any:
    return x + NUMBER + math.pi


def second(x: Any) -> Any:
    return first(first(x))


def recursive(x: Any) -> Any:
    return recursive(x - 1) if x else x


def of_system(x: Any) -> Any:
    return os.fspath(x)


def importing(x: Any) -> Any:
    from weft.library import form  # noqa: PLC0415

    return form.name_of(x)


def test_equal_functions_have_one_text():
    assert text_of_value(scaled(2)) == text_of_value(scaled(2))
    assert text_of_value(recursive) == text_of_value(recursive)


def test_what_a_function_holds_is_part_of_its_text():
    texts = [text_of_value(f) for f in (scaled(2), scaled(3), scaled(2.0), scaled(2, 1), first)]
    texts += [text_of_value(scaled(first)), text_of_value(scaled(second)), text_of_value(second)]
    assert len({*texts}) == len(texts)


def test_a_changed_global_or_helper_changes_the_text(monkeypatch: pytest.MonkeyPatch):
    before = text_of_value(scaled(first)), text_of_value(scaled(second))
    monkeypatch.setitem(globals(), "NUMBER", 3)
    after = text_of_value(scaled(first)), text_of_value(scaled(second))
    assert not {*before} & {*after}


@pytest.mark.parametrize("function", [of_system, importing, scaled([1]), scaled(object())])
def test_what_is_not_known_has_no_text(function: Any):
    with pytest.raises(NoFunctionTextError):
        text_of_value(function)
