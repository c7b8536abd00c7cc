"""What a process loads for its first tensor, and what a forked one need not do again."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from weft.host.deferred import Deferred
from weft.runtime.compilation import compiler, fingerprint

LATE = {
    "concurrent.futures", "hashlib", "llvmlite", "logging", "socket", "subprocess", "tempfile",
    "weft.codegen.loop.schedule", "weft.codegen.convolution.conv", "weft.passes.control.hoist",
    "weft.passes.partition", "weft.runtime.measurement.peak", "weft.tf1", "weft.train",
}  # fmt: skip
"""Modules that the first tensor does not need."""


def output_of(code: str, **environment: str) -> str:
    """What another process prints."""
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        check=True, capture_output=True, text=True, env={**os.environ, **environment},
    )  # fmt: skip
    return found.stdout


def test_a_first_tensor_loads_no_compiler():
    found = output_of("import sys, weft; weft.ones(2); print(*sys.modules)")
    assert LATE & set(found.split()) == set()


def test_a_first_name_of_tensorflow_1_loads_nothing_that_runs_graphs():
    found = output_of("import sys, weft.tf1 as tf; tf.placeholder; print(*sys.modules)").split()
    parts = {name.partition(".")[2].partition(".")[0] for name in found if name[:5] == "weft."}
    assert not parts & {"cluster", "codegen", "eager", "library", "passes", "pipeline", "runtime"}


def test_loading_leaves_the_collector_as_it_was():
    code = "import gc, weft; {}; weft.ones(2); print(gc.isenabled())"
    assert output_of(code.format("gc.enable()")) == "True\n"
    assert output_of(code.format("gc.disable()")) == "False\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_nothing_again(tmp_path: Path):
    found = output_of(
        """
        import os, sys, weft
        from weft.runtime.compilation import fingerprint

        def work():
            x = weft.arange(200.0).reshape(10, 20)
            return (x @ x.T + 1).sum().item()

        parent = work()
        modules = set(sys.modules)
        fingerprint._content = None  # reading the sources would fail
        if os.fork() == 0:
            child = work()
            print(child == parent, *set(sys.modules) - modules, flush=True)
            os._exit(0)
        os.wait()
        """,
        WEFT_CACHE=str(tmp_path),
        WEFT_COMPILE="1",
    )
    assert found == "True\n"


def test_a_deferred_module_is_imported_once_it_is_read(tmp_path: Path, monkeypatch):
    (tmp_path / "made_late.py").write_text("value = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    late = Deferred("made_late")
    assert "made_late" not in sys.modules
    assert late.value == 3
    assert "made_late" in sys.modules
    with pytest.raises(AttributeError, match=r"made_late.*other"):
        late.other
    monkeypatch.delitem(sys.modules, "made_late")


def test_the_digest_follows_the_sources(tmp_path: Path, monkeypatch):
    module = tmp_path / "ops" / "inner" / "op.py"
    module.parent.mkdir(parents=True)
    module.write_text("a = 1\n")
    cache = compiler.Cache(str(tmp_path / "cache"))
    monkeypatch.setattr(compiler, "cache", lambda: cache)
    monkeypatch.setattr(fingerprint, "ROOT", tmp_path)
    monkeypatch.setattr(fingerprint, "DECISIVE", ("ops",))
    digest = fingerprint.sources.__wrapped__
    first = digest()
    with monkeypatch.context() as patch:
        patch.setattr(fingerprint, "_content", None)  # the sources are not read again
        assert digest() == first
    status = module.stat()
    module.write_text("a = 2\n")
    os.utime(module, ns=(status.st_atime_ns, status.st_mtime_ns))  # only the time of the change
    second = digest()
    assert second != first
    module.write_text("a = 1\n")
    assert digest() == first
    (module.parent / "other.py").write_text("")
    assert digest() not in (first, second)
