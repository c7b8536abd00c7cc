"""`summary`: a table of a model's layers."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.eager.functions.creation.constructor import zeros
from weft.eager.record.pending.mode import no_grad
from weft.eager.tensor.handle import Handle
from weft.host.deferred import Deferred
from weft.host.nested import NESTED
from weft.ir.shape import known

if TYPE_CHECKING:
    from rich import console
    from rich import table as rich_table
else:
    console, rich_table = Deferred("rich.console"), Deferred("rich.table")

__all__ = ["Summary", "summary"]

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """A module's row.

    Attributes:
        path: its name in the model; empty for the model itself.
        kind: its class.
        shapes: of its outputs in the last call; empty if it was not called.
        parameters: the number of elements of its own parameters, without submodules.
        trained: how many of them require gradients.
        bytes: of its own parameters and buffers.
        output_bytes: of its outputs over all calls.
    """

    path: str
    kind: str
    shapes: tuple[Shape, ...]
    parameters: int
    trained: int
    bytes: int
    output_bytes: int

    @property
    def depth(self) -> int:
        """Its depth in the model; 0 for the model itself."""
        return self.path.count(".") + 1 if self.path else 0


@dataclass(frozen=True)
class Summary:
    """The modules of a model, in order, with totals; `print` shows the table.

    Attributes:
        rows: one for each module.
        output_bytes: of the outputs of all modules without submodules.
        most: the maximum depth that the table shows.
    """

    rows: tuple[Row, ...]
    output_bytes: int
    most: int | None = None

    @property
    def parameters(self) -> int:
        """The number of elements of all parameters; shared ones count once."""
        return sum(row.parameters for row in self.rows)

    @property
    def trained(self) -> int:
        """How many of them require gradients."""
        return sum(row.trained for row in self.rows)

    @property
    def bytes(self) -> int:
        """The bytes of all parameters and buffers."""
        return sum(row.bytes for row in self.rows)

    def table(self) -> rich_table.Table:
        """The table, for `rich`."""
        table = rich_table.Table(title=self.rows[0].kind, show_footer=True)
        table.add_column("layer", "total", overflow="fold")
        table.add_column("output shape", overflow="fold")
        table.add_column("parameters", f"{self.parameters:,}", justify="right")
        table.add_column("memory", _size(self.bytes), justify="right")
        table.add_column("output memory", _size(self.output_bytes), justify="right")
        for row in self.rows:
            if self.most is None or row.depth <= self.most:
                table.add_row(*_cells(row))
        frozen = self.parameters - self.trained
        if frozen:
            table.caption = f"{self.trained:,} parameters are trained, {frozen:,} are not"
        return table

    def __str__(self) -> str:
        text = io.StringIO()
        console.Console(file=text, width=100).print(self.table())
        return text.getvalue()

    def __repr__(self) -> str:
        return f"<Summary of {self.rows[0].kind}: {self.parameters:,} parameters>"


def _cells(row: Row) -> tuple[str, ...]:
    name = row.path.rpartition(".")[2]
    label = f"{name}: {row.kind}" if name else row.kind
    return (
        "  " * row.depth + label,
        ", ".join(map(_dims, row.shapes)),
        f"{row.parameters:,}" if row.parameters else "",
        _size(row.bytes) if row.bytes else "",
        _size(row.output_bytes) if row.output_bytes else "",
    )


def _dims(shape: Shape) -> str:
    return f"({', '.join(map(str, shape))})"


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GB"


def summary(
    model: Any, *inputs: Any, depth: int | None = None, show: bool = True, **kwargs: Any
) -> Summary:
    """Print a table of a model's layers, output shapes, parameters and memory; and return it.

    With inputs, the model is called in evaluation mode to find the shapes of outputs; no value is
    computed.

    Args:
        model: the model.
        inputs: arguments of the model; tuples of numbers are shapes of float32 tensors.
        depth: leave out deeper modules.
        show: whether to print it.

    Example:
        >>> import weft.nn as nn
        >>> found = nn.summary(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), (5, 3), show=False)
        >>> found.parameters, found.rows[1].shapes
        (16, ((5, 4),))
    """
    seen = _Outputs()
    if inputs or kwargs:
        seen.call(model, tuple(map(_tensor, inputs)), kwargs)
    table = Summary(tuple(_rows(model, seen)), seen.leaf_bytes, depth)
    if show:
        console.Console().print(table.table())
    return table


def _tensor(input: Any) -> Any:
    if isinstance(input, tuple | list) and all(isinstance(d, int) for d in input):  # pyright: ignore[reportUnknownVariableType]
        return zeros(tuple(input))  # pyright: ignore[reportUnknownArgumentType]
    return input


class _Outputs:
    """The outputs of modules during a call of the model."""

    def __init__(self) -> None:
        self.shapes: dict[Any, tuple[Shape, ...]] = {}
        self.bytes: dict[Any, int] = {}
        self.leaf_bytes = 0

    def call(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Call the model in evaluation mode, and restore everything."""
        modules = list(model.modules())
        modes = [m.training for m in modules]
        handles = [m.register_forward_hook(self._see) for m in modules]
        try:
            with no_grad():
                model.eval()(*args, **kwargs)
        finally:
            for handle in handles:
                handle.remove()
            for module, mode in zip(modules, modes, strict=True):
                module.training = mode

    def _see(self, module: Any, args: Any, output: Any) -> None:
        lazies = [t.lazy.type for t in NESTED.leaves(output) if isinstance(t, Handle)]
        self.shapes[module] = tuple([known(t.shape) for t in lazies])
        size = sum(t.dtype.size * math.prod(known(t.shape)) for t in lazies)
        self.bytes[module] = self.bytes.get(module, 0) + size
        if not list(module.children()):
            self.leaf_bytes += size


def _rows(model: Any, seen: _Outputs) -> Iterator[Row]:
    met: set[int] = set()
    for path, module in model.named_modules():
        numbers = trained = size = 0
        own = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
        weights = set(map(id, module.parameters(recurse=False)))
        for tensor in own:
            if id(tensor) in met:
                continue
            met.add(id(tensor))
            count = math.prod(tensor.shape)
            size += count * tensor.dtype.size
            if id(tensor) in weights:
                numbers += count
                trained += count if tensor.requires_grad else 0
        shapes = seen.shapes.get(module, ())
        layer = type(module).__name__
        yield Row(path, layer, shapes, numbers, trained, size, seen.bytes.get(module, 0))
