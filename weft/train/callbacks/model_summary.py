"""`ModelSummary`: prints the layers of a module and their numbers of parameters."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from weft.errors import ArgumentError
from weft.train.callbacks.callback import Callback

__all__ = ["ModelSummary", "RichModelSummary"]


class _Row(NamedTuple):
    """A row of a summary."""

    name: str
    kind: str
    parameters: int
    mode: str


class ModelSummary(Callback):
    """Prints a table of layers before training: name, class, number of parameters, and mode.

    Args:
        max_depth: how deep layers in layers are listed; -1 lists all, 0 the totals alone.
        options: of Lightning's printing in colors, which is not done here.

    Raises:
        ArgumentError: the depth is below -1.
    """

    def __init__(self, max_depth: int = 1, **options: Any) -> None:
        if max_depth < -1:
            raise ArgumentError.here(f"ModelSummary: expected max_depth from -1, got {max_depth}")
        self._max_depth = max_depth

    def rows(self, module: Any) -> list[_Row]:
        """The layers, in the order in which they were defined."""
        most = self._max_depth
        return [
            _Row(name, type(layer).__name__, _size(layer),
                         "train" if layer.training else "eval")
            for name, layer in module.named_modules()
            if name and (most == -1 or name.count(".") < most)
        ]  # fmt: skip

    def text(self, module: Any) -> str:
        """The table, with the totals below it."""
        rows = [("", "Name", "Type", "Params", "Mode")]
        rows += [(str(i), r.name, r.kind, _short(r.parameters), r.mode)
                 for i, r in enumerate(self.rows(module))]  # fmt: skip
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = [" | ".join([x.ljust(w) for x, w in zip(row, widths, strict=True)]) for row in rows]
        lines.insert(1, "-" * len(lines[0]))
        whole = _size(module)
        trained = sum(p.numel() for p in module.parameters() if p.requires_grad)
        memory = sum(p.numel() * p.element_size() for p in module.parameters())
        totals = [
            f"{_short(trained)} trainable, {_short(whole - trained)} fixed, {_short(whole)} "
            f"parameters in all, {memory / 1e6:.3f} MB"
        ]
        return "\n".join([*(lines if self._max_depth else []), *totals])

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Print the table."""
        if trainer.is_global_zero and not trainer.fast_dev_run:
            print(self.text(pl_module), file=sys.stderr)


RichModelSummary = ModelSummary  # Lightning's name of a table in colors


def _size(module: Any) -> int:
    return sum(p.numel() for p in module.parameters())


def _short(count: int) -> str:
    """A number with three digits and its thousands: `1.2 K`.

    >>> _short(50), _short(1234), _short(12_345_678)
    ('50', '1.2 K', '12.3 M')
    """
    value, unit = float(count), ""
    for unit_above in ("K", "M", "B"):
        if value < 1000:
            break
        value, unit = value / 1000, unit_above
    return f"{value:.1f} {unit}" if unit else str(count)
