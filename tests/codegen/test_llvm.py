"""Calls of llvmlite: Ctrl-C takes effect before or after a call, never inside."""

from __future__ import annotations

import signal

import llvmlite.binding as binding
import pytest

from weft.codegen import llvm
from weft.codegen.target import current

ANSWER = "define i64 @{name}() {{ ret i64 42 }}"


def _object(name: str) -> bytes:
    return llvm.to_object(ANSWER.format(name=name), current().cpu, current().features)


def test_ctrl_c_waits_until_what_was_begun_in_llvm_is_done(monkeypatch):
    done = list[str]()

    class Builder(binding.JITLibraryBuilder):
        def add_object_img(self, data: bytes) -> None:
            signal.raise_signal(signal.SIGINT)
            super().add_object_img(data)

        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)
            done.append("freed")

    library = llvm.Library()
    with monkeypatch.context() as patched:
        patched.setattr(binding, "JITLibraryBuilder", Builder)
        with pytest.raises(KeyboardInterrupt):
            library.link({"first": _object("first")})
    assert done == ["freed"]
    assert library.link({"second": _object("second")})["second"]
