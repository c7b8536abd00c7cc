"""A callback that ends a run at a spike of the loss."""

from __future__ import annotations

import json
import math
import os
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import ArgumentError, WeftError
from weft.train.callbacks.callback import Callback

__all__ = ["SpikeDetection", "TrainingSpikeException"]


class TrainingSpikeException(WeftError):
    """A spike of the loss has ended the run.

    Attributes:
        batch_idx: the batch at which it was seen.
    """

    def __init__(self, batch_idx: int) -> None:
        super().__init__(f"SpikeDetection: a spike of the loss at batch {batch_idx}")
        self.batch_idx = batch_idx


class SpikeDetection(Callback):
    """Ends the run at a spike of the loss, on any rank, and writes which batches to leave out.

    A loss is a spike if it is worse than the one before and both `atol` and `rtol` away from the
    mean of the last ones. This batch and the one before, which may have led to it, are written to a
    file (JSON).

    Args:
        mode: `"min"` or `"max"`: whether smaller or larger values are better.
        window: losses of the mean.
        warmup: batches before the first that may be a spike.
        atol: least distance from the mean; `None` asks for none.
        rtol: the same, of the mean.
        exclude_batches_path: a file, or the folder of `skip_batches.json`; by default the trainer's
            `default_root_dir`.
        finite_only: whether a loss that is not finite is a spike.

    Raises:
        ArgumentError: an unknown mode, or `window` below 1.

    Attributes:
        bad_batches: the numbers of the batches to leave out.
    """

    def __init__(
        self, mode: str = "min", window: int = 10, warmup: int = 1, atol: float | None = None,
        rtol: float | None = 2.0, exclude_batches_path: str | os.PathLike[str] | None = None,
        finite_only: bool = True,
    ) -> None:  # fmt: skip
        if mode not in ("min", "max") or window < 1:
            text = f"mode min or max and a window of 1 or more, got {mode!r} and {window}"
            raise ArgumentError.here(f"SpikeDetection: expected {text}")
        self.mode, self.warmup, self.atol, self.rtol = mode, warmup, atol, rtol
        self.exclude_batches_path, self.finite_only = exclude_batches_path, finite_only
        self.bad_batches: list[int] = []
        self.last_val = 0.0
        self._recent: deque[float] = deque(maxlen=window)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Look at the loss.

        Raises:
            TrainingSpikeException: it is a spike.
        """
        if "loss" not in outputs:
            return
        loss = float(outputs["loss"].detach())
        found = np.array(
            [batch_idx >= self.warmup and self._is_spike(loss), not math.isfinite(loss)], np.int64
        )
        is_spike, is_infinite = trainer.strategy.reduce(found, "max").tolist()
        if is_spike:
            self.bad_batches += [batch_idx - 1, batch_idx]
            if trainer.is_global_zero:
                self._write(trainer)
            raise TrainingSpikeException(batch_idx)
        if self.finite_only or not is_infinite:
            self._recent.append(loss)
            self.last_val = loss

    def _is_spike(self, loss: float) -> bool:
        if self.finite_only and not math.isfinite(loss):
            return True
        change = loss - self.last_val
        if not self._recent or (change <= 0 if self.mode == "min" else change >= 0):
            return False
        mean = sum(self._recent) / len(self._recent)
        limits = (self.atol, None if self.rtol is None else self.rtol * mean)
        return all([limit is None or abs(loss - mean) >= abs(limit) for limit in limits])

    def _write(self, trainer: Any) -> None:
        path = Path(self.exclude_batches_path or trainer.default_root_dir)
        path = path if path.suffix == ".json" else path / "skip_batches.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.bad_batches))

    def state_dict(self) -> dict[str, Any]:
        """The losses of the window, and the batches to leave out."""
        return {
            "last_val": self.last_val, "running": list(self._recent),
            "bad_batches": list(self.bad_batches),
        }  # fmt: skip

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore a saved state."""
        self.last_val = state_dict["last_val"]
        self._recent.clear()
        self._recent.extend(state_dict["running"])
        self.bad_batches = list(state_dict["bad_batches"])
