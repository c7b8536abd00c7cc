"""The cache key of a program: its graph, the machine, and this very compiler."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.codegen import llvm
from weft.codegen.target import Target
from weft.host.blake2 import blake2b, digest_of
from weft.ir.dtype import DType
from weft.ir.function import Function
from weft.ir.node import Literal, Node, Value
from weft.ir.record import RECORDS
from weft.passes.step import Step
from weft.runtime.compilation import compiler
from weft.runtime.compilation.cache import digest

ROOT: Final = Path(__file__).resolve().parents[2]
DECISIVE: Final = ("ir", "ops", "transform", "passes", "codegen", "runtime", "library")
"""Packages that take part in compiling a graph."""
LAYOUTS: Final = str(ROOT / "transport" / "native.py")
"""Structures that native code reads."""


def fingerprint(step: Step, threads: int, target: Target) -> str | None:
    """The key of a step, equal for steps with equal programs; `None` if some part has no text form.

    Node names and source lines do not count, but names of variables and the order of feeds do; and
    which nodes are on one device, not which.
    """
    told = content(step)
    if told is None:
        return None
    return digest(compiler_digest(), repr(target), str(threads), told)


def content(step: Step) -> str | None:
    """What tells a step from others; `None` if some part has no text form."""
    feeds = {
        name: f"{i}{' lasting' * (name in step.lasting)} " for i, name in enumerate(step.feeds)
    }
    graph = _nodes(step.graph.nodes, step.graph.outputs, feeds)
    return None if graph is None else digest(graph, repr(step.updates), str(step.repeated))


def _nodes(nodes: Sequence[Node], outputs: Sequence[Value], feeds: Mapping[str, str]) -> str | None:
    """Nodes in order and their types, as text, if there is one."""
    number: dict[Value, int] = {}
    lines: list[str] = []
    devices = {node.device: "" for node in nodes}
    if len(devices) > 1:
        devices = {device: f"@{i}" for i, device in enumerate(devices)}
    for node in nodes:
        attrs = [f"{name}={text_of(value)}" for name, value in node.attrs.items()]
        if node.regions or not all([attr[-1] != UNKNOWN for attr in attrs]):
            return None
        lines.append(_line(node, number, attrs, feeds.get(node.name, "")) + devices[node.device])
        for value in node.outputs:
            number[value] = len(number)
    results = ",".join([str(number[value]) for value in outputs])
    return "\n".join([*lines, results])


def _line(node: Node, number: dict[Value, int], attrs: list[str], feed: str) -> str:
    inputs = ",".join([str(number[value]) for value in node.inputs])
    types = ",".join([f"{kind.dtype.name}{kind.shape}" for kind in node.types])
    return f"{feed}{node.op}({inputs}){node.operands}{{{','.join(attrs)}}}:{types}"


UNKNOWN: Final = "\0"
"""The end of a text that does not tell what it stands for."""


def text_of(value: Any) -> str:
    """An attribute as text, which ends in `UNKNOWN` if there is none."""
    if isinstance(value, DType):
        return value.name
    if isinstance(value, Function):
        feeds = {v.node.name: f"{i} " for i, v in enumerate(value.inputs)}
        inside = [*[v.node for v in value.inputs], *value.nodes]
        text = _nodes(inside, value.outputs, feeds)
        return UNKNOWN if text is None else f"[{text}]"
    if isinstance(value, Literal):
        content = digest_of(value.array.tobytes()).hex()
        return f"{value.array.dtype.str}{value.array.dtype.name}{value.array.shape}{content}"
    if isinstance(value, tuple):
        texts = [text_of(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
        unknown = any([text[-1] == UNKNOWN for text in texts])
        return f"({','.join(texts)}){UNKNOWN if unknown else ''}"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if RECORDS.get(type(value).__name__) is type(value):
        parts = tuple([getattr(value, field.name) for field in fields(value)])
        return type(value).__name__ + text_of(parts)
    return UNKNOWN


_File = tuple[str, os.stat_result]


@functools.cache
def compiler_digest() -> str:
    """This compiler: the source of its modules, and the versions of its dependencies."""
    return f"{sources()} {sys.version_info[:3]} numpy-{np.__version__} {llvm.version()}"


@functools.cache
def sources() -> str:
    """The source of the compiler's modules.

    It is read only if the cache does not know files of these sizes and times: that takes a third as
    long.
    """
    files = list(_files())
    lines = [f"{path} {x.st_size} {x.st_mtime_ns} {x.st_ctime_ns}" for path, x in files]
    cache, key = compiler.cache(), digest("sources", *lines)
    known = cache.load(key)
    if known is None:
        known = _content(files).encode()
        cache.store({key: known})
    return known.decode()


def outline() -> str:
    """The names and sizes of the compiler's modules, for what is installed along with them."""
    lines = [f"{path} {status.st_size}" for path, status in _files()]
    return digest("outline", "\n".join(lines).replace(str(ROOT), ""))


def _files() -> Iterator[_File]:
    """The compiler's modules in a fixed order; a first call of each process waits for them."""
    folders = [f"{ROOT}/{package}/" for package in DECISIVE]
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py"):
                yield folder + name, os.stat(folder + name)
            elif name.isidentifier() and name != "__pycache__" and os.path.isdir(folder + name):
                folders.append(f"{folder}{name}/")
    yield LAYOUTS, os.stat(LAYOUTS)


def _content(files: Sequence[_File]) -> str:
    """A hash of the text of files."""
    text = blake2b()
    for path, _ in files:
        source = Path(path).read_bytes()
        text.update(f"{path.removeprefix(str(ROOT))} {len(source)}\n".encode())
        text.update(source)
    return text.hexdigest()
