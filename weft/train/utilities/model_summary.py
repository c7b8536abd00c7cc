"""`ModelSummary`: a table of the layers of a module and their numbers of parameters."""

from __future__ import annotations

from typing import Any

from weft.errors import ArgumentError

__all__ = ["ModelSummary", "summarize"]


class ModelSummary:
    """The layers of a module: their names, classes, numbers of parameters, and modes.

    Args:
        model: the module.
        max_depth: how deep layers in layers are listed; -1 lists all, 0 the totals alone.

    Raises:
        ArgumentError: the depth is below -1.

    >>> import weft as wf
    >>> print(ModelSummary(wf.nn.Sequential(wf.nn.Linear(2, 3), wf.nn.ReLU())))
      | Name | Type   | Params | Mode
    ---------------------------------
    0 | 0    | Linear | 9      | train
    1 | 1    | ReLU   | 0      | train
    9 trainable, 0 fixed, 9 parameters in all, 0.000 MB
    """

    def __init__(self, model: Any, max_depth: int = 1) -> None:
        self._model, self._max_depth = model, checked_depth(max_depth)

    @property
    def named_modules(self) -> list[tuple[str, Any]]:
        """The layers by name, in the order in which they were defined."""
        most = self._max_depth
        return [
            (name, layer)
            for name, layer in self._model.named_modules()
            if name and (most == -1 or name.count(".") < most)
        ]

    @property
    def layer_names(self) -> list[str]:
        """Their names."""
        return [name for name, _ in self.named_modules]

    @property
    def layer_types(self) -> list[str]:
        """The names of their classes."""
        return [type(layer).__name__ for _, layer in self.named_modules]

    @property
    def param_nums(self) -> list[int]:
        """Their numbers of parameters, with those of layers in them."""
        return [_size(layer) for _, layer in self.named_modules]

    @property
    def training_modes(self) -> list[bool]:
        """Whether they are in training mode."""
        return [layer.training for _, layer in self.named_modules]

    @property
    def total_parameters(self) -> int:
        """The number of all parameters."""
        return _size(self._model)

    @property
    def trainable_parameters(self) -> int:
        """The number of parameters with a gradient."""
        return sum(p.numel() for p in self._model.parameters() if p.requires_grad)

    @property
    def model_size(self) -> float:
        """The size of all parameters in MB."""
        return sum(p.numel() * p.element_size() for p in self._model.parameters()) / 1e6

    def __str__(self) -> str:
        rows = [("", "Name", "Type", "Params", "Mode")]
        counts, modes = map(_short, self.param_nums), self.training_modes
        told = ["train" if mode else "eval" for mode in modes]
        columns = (map(str, range(len(told))), self.layer_names, self.layer_types, counts, told)
        rows += zip(*columns, strict=True)
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        padded = [[x.ljust(w) for x, w in zip(row, widths, strict=True)] for row in rows]
        lines = [" | ".join(row).rstrip() for row in padded]
        lines.insert(1, "-" * len(lines[0]))
        whole, trained = self.total_parameters, self.trainable_parameters
        totals = [
            f"{_short(trained)} trainable, {_short(whole - trained)} fixed, {_short(whole)} "
            f"parameters in all, {self.model_size:.3f} MB"
        ]
        return "\n".join([*(lines if self._max_depth else []), *totals])

    __repr__ = __str__


def summarize(lightning_module: Any, max_depth: int = 1) -> ModelSummary:
    """The `ModelSummary` of a module."""
    return ModelSummary(lightning_module, max_depth)


def checked_depth(max_depth: int) -> int:
    """A depth of a summary.

    Raises:
        ArgumentError: it is below -1.
    """
    if max_depth < -1:
        raise ArgumentError.here(f"ModelSummary: expected max_depth from -1, got {max_depth}")
    return max_depth


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
