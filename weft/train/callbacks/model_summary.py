"""`ModelSummary`: prints the layers of a module and their numbers of parameters."""

from __future__ import annotations

import sys
from typing import Any

from weft.train.callbacks.callback import Callback
from weft.train.utilities.model_summary import ModelSummary as Summary
from weft.train.utilities.model_summary import checked_depth

__all__ = ["ModelSummary", "RichModelSummary"]


class ModelSummary(Callback):
    """Prints a table of layers before training: name, class, number of parameters, and mode.

    Args:
        max_depth: how deep layers in layers are listed; -1 lists all, 0 the totals alone.
        options: of Lightning's printing in colors, which is not done here.

    Raises:
        ArgumentError: the depth is below -1.
    """

    def __init__(self, max_depth: int = 1, **options: Any) -> None:
        self._max_depth = checked_depth(max_depth)

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Print the table."""
        if trainer.is_global_zero and not trainer.fast_dev_run:
            print(Summary(pl_module, self._max_depth), file=sys.stderr)


RichModelSummary = ModelSummary  # Lightning's name of a table in colors
