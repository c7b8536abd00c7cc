"""The list of forms: it is read as it was written, and has every operation with kernels."""

from __future__ import annotations

import pytest

from weft.library.form import form_of
from weft.library.form_text import NoTextError, as_text, group_of
from weft.library.making import listed, same_group


def test_a_form_is_read_as_it_was_written():
    for text, sizes in listed():
        for each in sizes:
            found = form_of(same_group(text, each))
            assert as_text(found.key) == text
            assert tuple(map(int, found.sizes)) == each


def test_groups_have_the_sizes_that_are_asked_for():
    text, sizes = next(iter(listed()))
    group = group_of(text, [size + 1 for size in sizes[0]])
    assert group.outputs[0].type.shape == tuple([size + 1 for size in sizes[0]])


def test_what_has_no_text_is_said():
    with pytest.raises(NoTextError):
        as_text((object(),))
