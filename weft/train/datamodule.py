"""`DataModule`: the loaders of all stages, and the preparation of their data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Data:
    """The loaders of all stages, none of them defined, and when their data is prepared."""

    def prepare_data(self) -> None:
        """Download or write the data; called before `setup`, in one process."""

    def setup(self, stage: str) -> None:
        """At the start of `"fit"`, `"validate"`, `"test"` or `"predict"`."""

    def teardown(self, stage: str) -> None:
        """At the end of a run."""

    def train_dataloader(self) -> Any:
        """The loader for `fit`, if it gets none."""
        return None

    def val_dataloader(self) -> Any:
        """The loader for validation, or a list of several."""
        return None

    def test_dataloader(self) -> Any:
        """The loader for `test`, or a list of several."""
        return None

    def predict_dataloader(self) -> Any:
        """The loader for `predict`, or a list of several."""
        return None


class DataModule(Data):
    """Base class: a subclass defines the loaders that it offers."""

    def state_dict(self) -> dict[str, Any]:
        """The state to be saved."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore a saved state."""
