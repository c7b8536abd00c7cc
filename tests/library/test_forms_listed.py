"""The list of forms: it is read as it was written, and has every operation with kernels."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from weft.codegen.lower import FAMILIES
from weft.library.form import form_of
from weft.library.form_text import NoTextError, as_text, group_of
from weft.library.making import listed, same_group
from weft.ops.declaration import REGISTRY, Alias, Boundary, Composite, Op, Opaque


def test_a_form_is_listed_once():
    texts = [text for text, _ in listed()]
    assert len({*texts}) == len(texts)


def test_a_form_is_read_as_it_was_written():
    for text, sizes in listed():
        for each in sizes:
            found = form_of(same_group(text, each))
            assert as_text(found.key) == text
            assert tuple(map(int, found.sizes)) == each


def test_every_operation_with_kernels_is_listed():
    listed_ones = {node[0] for form, _ in listed() for node in json.loads(form)[1]}
    assert not {
        op.name: type(op.lower).__name__
        for op in REGISTRY.values()
        if op.name not in listed_ones and not _reason(op)
    }


def _reason(op: Op) -> str:
    """Why an operation has no kernels in the library."""
    if isinstance(op.lower, Composite):
        return "it is written in other operations"
    if isinstance(op.lower, Alias | Boundary):
        return "it computes nothing"
    if op.stateful or (isinstance(op.lower, Opaque) and op.lower.family not in FAMILIES):
        return "it is no kernel"
    return REASONS.get(op.name, "")


REASONS = {
    **dict.fromkeys(("complex", "real", "imag", "conj"), "complex numbers are interpreted"),
    "number_of": "it is part of the kernels that use the number",
    **dict.fromkeys(("lag_gather", "lag_update"), "its kernels are for one size each"),
}


def test_groups_have_the_sizes_that_are_asked_for():
    text, sizes = next(iter(listed()))
    group = group_of(text, [size + 1 for size in sizes[0]])
    assert group.outputs[0].type.shape == tuple([size + 1 for size in sizes[0]])


RECORDED = """
from tools.library_forms.networks import decoding
from tools.library_forms.recorder import nothing_runs, recorded
from weft.library.making import listed

with recorded() as forms, nothing_runs():
    for y in decoding():
        y.detach().numpy()
known = {form for form, _ in listed()}
print(len(forms) > 8, [form for form in forms if form not in known])
"""


def test_calls_are_listed_without_running_them(tmp_path):
    environment = {"WEFT_CACHE": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", RECORDED]
    found = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    assert found.stdout == "True []\n"


def test_what_has_no_text_is_said():
    with pytest.raises(NoTextError):
        as_text((object(),))
