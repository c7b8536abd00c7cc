"""`DataModule`: loaders for all stages, with what makes their data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class DataModule:
    """Base class: a subclass defines the loaders that it has."""

    def prepare_data(self) -> None:
        """Download or write what the data is made of."""

    def setup(self, stage: str) -> None:
        """A run begins: `"fit"`, `"validate"`, `"test"` or `"predict"`."""

    def teardown(self, stage: str) -> None:
        """A run ends."""

    def train_dataloader(self) -> Any:
        """What `fit` trains on."""
        return None

    def val_dataloader(self) -> Any:
        """What is validated on: one loader, or a list."""
        return None

    def test_dataloader(self) -> Any:
        """What `test` runs on: one loader, or a list."""
        return None

    def predict_dataloader(self) -> Any:
        """What `predict` runs on: one loader, or a list."""
        return None

    def state_dict(self) -> dict[str, Any]:
        """What is to be saved of it."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what was saved."""
