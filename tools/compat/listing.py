"""Writes the public names of an installed library: `python -m tools.compat.listing torch`.

A listing is compressed text: the library's version, then each module, class with members that
programs call, and name, one a line. Run it where the library is installed; the pages need only the
listings. Horovod, which is hard to build, is read as text: `... horovod SOURCE_FOLDER VERSION`. So
are TensorFlow 1's modules of names, `... tensorflow FOLDER VERSION` and `... keras FOLDER VERSION`,
from its unpacked wheels.
"""

from __future__ import annotations

import ast
import gzip
import importlib
import io
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parent / "listings"
LEFT_OUT = {
    "torch": (
        "testing", "onnx", "ao", "fx", "jit.mobile", "contrib", "package", "export",
        "utils.benchmark", "utils.bottleneck", "utils.data.datapipes", "utils.hipify",
        "utils.jit", "utils.viz", "utils.model_dump", "utils.serialization", "utils.cpp_backtrace",
        "distributed.elastic", "distributed.benchmarks", "distributed.rpc", "distributed.launcher",
        "distributed.pipelining.microbatch", "distributed.checkpoint.examples",
        "distributed.autograd", "distributed.examples", "masked", "cpp", "quantization",
        "nn.quantized", "nn.qat", "nn.quantizable", "nn.intrinsic", "mtia", "xpu.random",
        "backends.xeon", "multiprocessing.queue", "cuda.tunable", "fb", "ops.name",
        "headeronly", "include", "share", "bin", "lib", "test",
    ),
    "lightning": ("pytorch.cli_commands", "app", "data", "store", "fabric.cli", "pytorch.demos"),
    "torchmetrics": (),
    "jax": (
        "extend", "interpreters", "experimental.pallas", "experimental.mosaic",
        "experimental.jax2tf", "experimental.sparse", "experimental.array_serialization",
        "experimental.key_reuse",
        "experimental.compute_on", "experimental.custom_partitioning", "experimental.roofline",
        "experimental.export", "experimental.transfer", "experimental.topologies",
        "experimental.multihost_utils", "experimental.mesh_utils", "experimental.scheduling_groups",
        "experimental.compilation_cache", "experimental.serialize_executable", "tools", "lib",
        "cloud_tpu_init", "collect_profile", "ffi", "jaxlib", "version", "custom_batching",
        "custom_transpose", "memory", "monitoring", "stages", "fused",
    ),
    "horovod": ("mxnet", "ray", "runner", "spark", "data", "tensorflow.data"),
    "tensorflow": ("compat", "raw_ops", "keras", "lite", "tpu", "xla", "quantization"),
    "keras": ("backend.name", "wrappers"),
}  # fmt: skip
"""Modules that are tools of their own, for other machines, or private in all but name."""
MEMBERS = {
    "torch": (
        "torch.Tensor", "torch.Generator", "torch.nn.Module", "torch.optim.Optimizer",
        "torch.utils.data.DataLoader", "torch.nn.parallel.DistributedDataParallel",
        "torch.amp.GradScaler", "torch.utils.tensorboard.SummaryWriter",
    ),
    "lightning": (
        "lightning.pytorch.Trainer", "lightning.pytorch.LightningModule",
        "lightning.pytorch.LightningDataModule", "lightning.pytorch.Callback",
    ),
    "torchmetrics": ("torchmetrics.Metric", "torchmetrics.MetricCollection"),
    "jax": (),
}  # fmt: skip
"""Classes whose members are listed."""


def modules_of(root: str) -> Iterator[ModuleType]:
    """The public modules of a library that can be imported here."""
    package = importlib.import_module(root)
    yield package
    left = tuple([f"{root}.{name}" for name in LEFT_OUT[root]])
    pending = [package]
    while pending:
        parent = pending.pop()
        for info in pkgutil.iter_modules(parent.__path__, f"{parent.__name__}."):
            name = info.name
            if name.rpartition(".")[2].startswith("_") or name.startswith(left):
                continue
            try:
                with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                    module = importlib.import_module(name)
            except Exception:
                continue
            yield module
            if info.ispkg and hasattr(module, "__path__"):
                pending.append(module)
    for name, value in sorted(vars(package).items()):  # made by the library as it starts
        own = isinstance(value, ModuleType) and value.__name__ == f"{root}.{name}"
        if (
            own
            and name[0] != "_"
            and not hasattr(value, "__file__")
            and value.__name__ in sys.modules
        ):
            yield value


def public(module: ModuleType, root: str) -> list[str]:
    """The public names of a module, without its submodules."""
    listed = getattr(module, "__all__", None)
    names = listed if listed is not None else [n for n in vars(module) if n[0] != "_"]
    found: list[str] = []
    for name in set(names):
        value = getattr(module, name, None)
        home = str(getattr(value, "__module__", root) or root)
        if isinstance(value, ModuleType) or name.startswith("_"):
            continue
        if listed is None and not home.startswith((root, "builtins", "_")):
            continue
        found.append(name)
    return sorted(found)


def listing(root: str) -> list[str]:
    """Lines: a module or class with members, then a space and a name for each of its names."""
    lines: dict[str, list[str]] = {}
    for module in modules_of(root):
        lines[module.__name__] = public(module, root)
    for path in MEMBERS[root]:
        place, _, name = path.rpartition(".")
        owner: Any = getattr(importlib.import_module(place), name)
        lines[path] = sorted([n for n in dir(owner) if not n.startswith("_")])
    return [line for name in sorted(lines) for line in (name, *[f" {n}" for n in lines[name]])]


def from_source(root: str, folder: Path) -> list[str]:
    """The same from source text: what modules define, and packages import from their own."""
    lines: list[str] = []
    for path in sorted((folder / root).rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        name = ".".join([part for part in parts if part != "__init__"])
        if "._" in name or name.startswith(tuple([f"{root}.{left}" for left in LEFT_OUT[root]])):
            continue
        tree = ast.parse(path.read_text())
        names = set(defined(tree.body, root))
        lines += [name, *[f" {n}" for n in sorted(names) if not n.startswith("_")]]
    return lines


API = {
    "tensorflow": {"tensorflow": "tensorflow_core/_api/v1",
                   "tensorflow.estimator": "tensorflow_estimator/_api/v1/estimator"},
    "keras": {"tensorflow.keras": "tensorflow_core/python/keras/api/_v1/keras"},
}  # fmt: skip
"""Where TensorFlow's wheels have modules that import their names, and nothing else."""


def from_api(root: str, folder: Path) -> list[str]:
    """The names that modules import, without submodules."""
    lines: dict[str, list[str]] = {}
    for top, place in API[root].items():
        base = folder / place
        for path in sorted(base.rglob("__init__.py")):
            parts = path.parent.relative_to(base).parts
            if ".".join(parts).startswith(LEFT_OUT[root]):
                continue
            found: set[str] = set()
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ImportFrom) and str(node.module).startswith("tensorflow"):
                    if "_api" in str(node.module) or ".api._v1" in str(node.module):
                        continue  # a submodule
                    found.update(alias.asname or alias.name for alias in node.names)
            names = sorted(n for n in found if not n.startswith("_"))
            lines[".".join([top, *parts])] = names
    return [line for name in sorted(lines) for line in (name, *[f" {n}" for n in lines[name]])]


def defined(body: list[ast.stmt], root: str) -> Iterator[str]:
    """Names that statements define, or import from the library itself."""
    for node in body:
        match node:
            case ast.FunctionDef(name) | ast.ClassDef(name) | ast.AsyncFunctionDef(name):
                yield name
            case ast.ImportFrom(module, names, level) if level or str(module).startswith(root):
                yield from [alias.asname or alias.name for alias in names if alias.name != "*"]
            case ast.Assign(targets):
                yield from [t.id for t in targets if isinstance(t, ast.Name)]
            case ast.If() | ast.Try():
                yield from defined(node.body, root)
            case _:
                pass


def read(root: str) -> tuple[str, dict[str, list[str]]]:
    """The version, and the names of each module, from the listing in the repository."""
    lines = gzip.decompress((FOLDER / f"{root}.txt.gz").read_bytes()).decode().splitlines()
    names: dict[str, list[str]] = {}
    for line in lines[1:]:
        if line.startswith(" "):
            names[next(reversed(names))].append(line[1:])
        else:
            names[line] = []
    return lines[0], names


def write(root: str, version: str, lines: list[str]) -> None:
    """Writes a listing."""
    FOLDER.mkdir(exist_ok=True)
    text = "\n".join([version, *lines, ""]).encode()
    (FOLDER / f"{root}.txt.gz").write_bytes(gzip.compress(text, 9, mtime=0))


def main(root: str, *source: str) -> None:
    """Writes the listing of an installed library, or of its source folder and version."""
    warnings.simplefilter("ignore")
    if source:
        folder, version = source
        make = from_api if root in API else from_source
        write(root, version, make(root, Path(folder)))
    else:
        lines = listing(root)
        write(root, str(importlib.import_module(root).__version__).partition("+")[0], lines)


if __name__ == "__main__":
    main(*sys.argv[1:])
