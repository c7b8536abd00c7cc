"""Plots of metrics, by Matplotlib."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.errors import ArgumentError, ConfigError


def plotted(
    value: Any, ax: Any, name: str, add_text: bool, labels: Sequence[str] | None, cmap: Any
) -> tuple[Any, Any]:
    """A figure and its axes: numbers as points, several values in turn as lines, or a matrix.

    Raises:
        ArgumentError: a curve, or several matrices.
        ConfigError: Matplotlib is not installed.
    """
    try:
        pyplot = importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ConfigError.here(f"{name}.plot: matplotlib is not installed") from error
    figure, axes = pyplot.subplots() if ax is None else (ax.get_figure(), ax)
    if isinstance(value, list | tuple) and all(np.ndim(x) < 2 for x in value):
        values: Any = np.stack([np.asarray(x, np.float64).ravel() for x in value])
        for i, line in enumerate(values.T):
            axes.plot(line, marker="o", label=_label(labels, i) if values.shape[1] > 1 else name)
    elif isinstance(value, Mapping):
        for i, (label, number) in enumerate(value.items()):
            axes.plot(i, float(number), marker="o", linestyle="None", label=label)
    elif np.ndim(value) == 2:
        _matrix(axes, np.asarray(value), add_text, labels, cmap)
        return figure, axes
    elif np.ndim(value) < 2:
        for i, number in enumerate(np.asarray(value, np.float64).ravel()):
            axes.plot(i, number, marker="o", linestyle="None", label=_label(labels, i))
    else:
        raise ArgumentError.here(f"{name}.plot: expected numbers or one matrix")
    axes.set_ylabel(name)
    axes.legend()
    return figure, axes


def _label(labels: Sequence[str] | None, i: int) -> str:
    return str(i) if labels is None else labels[i]


def _matrix(
    axes: Any, matrix: Any, add_text: bool, labels: Sequence[str] | None, cmap: Any
) -> None:
    names = [_label(labels, i) for i in range(len(matrix))]
    axes.imshow(matrix, cmap=cmap)
    axes.set_xlabel("Predicted class")
    axes.set_ylabel("True class")
    axes.set_xticks(range(len(names)), labels=names, rotation=45)
    axes.set_yticks(range(len(names)), labels=names)
    if add_text:
        for (i, j), number in np.ndenumerate(matrix):
            axes.text(j, i, str(round(number.item(), 2)), ha="center", va="center")
