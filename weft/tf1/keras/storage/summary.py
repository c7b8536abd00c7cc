"""The table of a model's layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.tf1.keras.engine import nest


def lines_of(model: Any, width: int) -> list[str]:
    """Layers, output shapes, parameter counts; for graphs with branches, also inputs."""
    branches = model.is_graph_network and any(
        len(n.input_tensors) > 1 or len(x.inbound_nodes) > 1
        for x in model.layers
        for n in x.inbound_nodes
    )
    head = ["Layer (type)", "Output Shape", "Param #", *(["Connected to"] if branches else [])]
    stops = [0.33, 0.55, 0.67, 1.0] if branches else [0.45, 0.85, 1.0]
    width = max(width, 98) if branches else width
    ends = [int(width * s) for s in stops]
    lines = [f'Model: "{model.name}"', "_" * width, _row(head, ends), "=" * width]
    for layer in model.layers:
        cells = [f"{layer.name} ({type(layer).__name__})", _shape(layer), _count(layer)]
        sources = _sources(layer) if branches else []
        lines.append(_row([*cells, *sources[:1]], ends))
        lines += [_row(["", "", "", s], ends) for s in sources[1:]]
        lines.append("_" * width)
    lines[-1] = "=" * width
    whole = sum(_size(v) for v in model.weights) if model.built else 0
    open_ = sum(_size(v) for v in model.trainable_weights) if model.built else 0
    lines += [
        f"Total params: {whole:,}", f"Trainable params: {open_:,}",
        f"Non-trainable params: {whole - open_:,}", "_" * width,
    ]  # fmt: skip
    return lines


def _row(cells: Sequence[str], ends: Sequence[int]) -> str:
    line = ""
    for cell, end in zip(cells, ends, strict=False):
        line = f"{line}{cell}"[: end - 1].ljust(end)
    return line.rstrip()


def _size(variable: Any) -> int:
    return int(variable.shape.num_elements() or 0)


def _shape(layer: Any) -> str:
    if not layer.inbound_nodes:
        return "multiple"
    shapes = [str(nest.mapped(nest.shape_of, n.outputs)) for n in layer.inbound_nodes]
    return shapes[0] if len(set(shapes)) == 1 else "multiple"


def _count(layer: Any) -> str:
    return f"{layer.count_params():,}" if layer.built else "0 (unbuilt)"


def _sources(layer: Any) -> list[str]:
    """The outputs that a layer was called on."""
    return [f"{h[0].name}[{h[1]}][{h[2]}]" for node in layer.inbound_nodes for h in node.histories]
