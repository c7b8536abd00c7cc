"""The layer rule: imports go downwards, never in a circle, never inside a function."""

import ast
import functools

import pytest

from tools.imports import imported, imports, modules

# From the bottom up; a module may import its own layer and those before it.
LAYERS = [
    (
        "weft.config",
        "weft.documentation",
        "weft.errors",
        "weft.exports",
        "weft.host",
        "weft.version",
    ),
    ("weft.ir",),
    ("weft.transport",),
    ("weft.ops",),
    ("weft.resource",),
    ("weft.transform",),
    ("weft.passes",),
    ("weft.codegen",),
    ("weft.runtime",),
    ("weft.library",),
    ("weft.formats",),
    ("weft.table",),
    ("weft.cluster",),
    ("weft.pipeline",),
    ("weft.tf1", "weft.eager.record"),
    ("weft.eager.tensor",),
    ("weft.eager",),
    (
        "weft.accelerator",
        "weft.amp",
        "weft.autograd",
        "weft.backends",
        "weft.cuda",
        "weft.fft",
        "weft.func",
        "weft.linalg",
        "weft.numpy",
        "weft.scipy",
        "weft.signal",
        "weft.sparse",
        "weft.special",
    ),
    ("weft.checkpoint",),
    ("weft.collectives",),
    ("weft.data",),
    ("weft.metrics",),
    ("weft.distributions",),
    ("weft.datasets",),
    ("weft.utils",),
    ("weft.nn",),
    ("weft.multiprocessing", "weft.optim", "weft.serialization", "weft.torchmetrics"),
    ("weft.distributed",),
    ("weft.models",),
    ("weft.train",),
    ("weft.tf1.eager",),  # TensorFlow's operations, computed by the eager front end
    # Keras is a face of the trainer, and TensorFlow's older layers are made of Keras's
    ("weft.tf1.keras", "weft.tf1.layers", "weft.tf1.contrib"),
    ("weft.horovod", "weft.jax"),
    ("weft.mirror",),
    ("weft.as_jax", "weft.as_tensorflow", "weft.as_torch"),
    ("weft.cli",),
]
FRONT_ENDS = ("weft.tf1", "weft.eager")  # func and numpy are built on eager tensors


@functools.cache
def layer(module: str) -> int:
    """The number of the longest name here that a module has or lies in."""
    found = {n: number for number, names in enumerate(LAYERS) for n in names}
    within = [n for n in found if module == n or module.startswith(n + ".")]
    # None: the package itself, which offers everything.
    return found[max(within, key=len)] if within else len(LAYERS)


def front_end(module: str) -> str:
    return ".".join(module.split(".")[:2])


def faults(sources: dict[str, ast.Module]) -> list[str]:
    found = []
    for name, tree in sources.items():
        for target in imported(tree):
            if target.startswith("weft.") and layer(target) > layer(name):
                found.append(f"{name} imports {target}, which lies above it")
            joined = layer(name) == layer("weft.tf1.eager")
            if {front_end(name), front_end(target)} == set(FRONT_ENDS) and not joined:
                found.append(f"{name} imports {target}, another front end")
            if target.startswith("llvmlite") and name != "weft.codegen.llvm":
                found.append(f"{name} imports llvmlite")
        for inner, function in imports(tree):
            if function:
                found.append(f"{name}.{function} imports {inner} inside a function")
    return found


def cycles(sources: dict[str, ast.Module]) -> list[str]:
    """Imports in a circle, those for the type checker alone included."""
    graph = {
        name: {t for t in imported(tree) if t in sources and t != name}
        for name, tree in sources.items()
    }
    for name in graph:  # a package's __init__ may import its own modules
        graph[name] = {t for t in graph[name] if not name.startswith(t + ".")}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> list[str]:
        if name in path:
            return [" -> ".join((*path[path.index(name) :], name))]
        if name in done:
            return []
        found = [c for t in sorted(graph[name]) for c in visit(t, (*path, name))]
        done.add(name)
        return found

    return [cycle for name in sorted(graph) for cycle in visit(name, ())]


# The compiler process imports only llvmlite, and gets its folder as an argument.
ALONE = {"weft.runtime.compilation.worker"}


def test_imports_go_down():
    sources = {n: t for n, t in modules().items() if n not in ALONE}
    assert faults(sources) == []
    assert cycles(sources) == []


@pytest.mark.parametrize(
    ("name", "code", "fault"),
    [
        ("weft.ir.x", "from weft.ops.declaration import Op", "lies above it"),
        ("weft.eager.x", "import weft.tf1.session.session", "another front end"),
        ("weft.eager.record.x", "import weft.eager.tensor.handle", "lies above it"),
        ("weft.eager.tensor.x", "from weft.eager.functions import table", "lies above it"),
        ("weft.passes.x", "import llvmlite.binding", "imports llvmlite"),
        ("weft.ir.x", "def f():\n    import os", "inside a function"),
    ],
)
def test_the_rule_can_fail(name, code, fault):
    assert fault in faults({name: ast.parse(code)})[0]


def test_the_runtime_runs_the_stages_of_the_compiler_from_one_place():
    stages = {f"weft.passes.pipeline.{name}" for name in ("specialize", "optimize", "plan")}
    stages |= {"weft.passes.pipeline", "weft.passes.specialize.specialize"}
    users = [n for n, tree in modules().items() if stages.intersection(imported(tree))]
    assert [n for n in users if n.startswith("weft.runtime.")] == ["weft.runtime.finish"]


def test_a_cycle_is_found():
    sources = {"weft.a": ast.parse("import weft.b"), "weft.b": ast.parse("import weft.a")}
    assert cycles(sources) == ["weft.a -> weft.b -> weft.a"]


def test_a_cycle_of_types_alone_is_found():
    for_types = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import weft.b"
    sources = {"weft.a": ast.parse(for_types), "weft.b": ast.parse("import weft.a")}
    assert cycles(sources) == ["weft.a -> weft.b -> weft.a"]


def test_every_module_has_a_layer():
    assert [n for n in modules() if layer(n) == len(LAYERS)] == ["weft", "weft.__main__"]
