"""`DataModule`: the loaders of all stages, and the preparation of their data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from weft.train.hyperparameters import NAME, HasHyperparameters, constructed, read_file
from weft.train.saving import read
from weft.utils.data import DataLoader, IterableDataset


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

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """The batch from the loader; returns the batch to use."""
        return batch

    def transfer_batch_to_device(self, batch: Any, device: Any, dataloader_idx: int) -> Any:
        """The batch on a device; arrays in it are tensors already."""
        return batch

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """The batch after conversion to tensors; returns the batch to use."""
        return batch


class DataModule(HasHyperparameters, Data):
    """Base class: a subclass defines the loaders that it offers.

    Its hooks of batches are used if the module does not define them.

    Attributes:
        trainer: the trainer that runs it, or `None`.
    """

    trainer: Any = None
    allow_zero_length_dataloader_with_multiple_devices = False
    prepare_data_per_node = True

    def state_dict(self) -> dict[str, Any]:
        """The state to be saved."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore a saved state."""

    def on_exception(self, exception: BaseException) -> None:
        """When a run raises."""

    @classmethod
    def load_from_checkpoint(
        cls, checkpoint_path: Any, map_location: Any = None, hparams_file: Any = None,
        weights_only: bool | None = None, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """A data module from the hyperparameters in a checkpoint.

        Args:
            checkpoint_path: a file of `Trainer.save_checkpoint` or `ModelCheckpoint`.
            map_location: taken for programs that give one: there is one device.
            hparams_file: a file `hparams.yaml`, whose entries are used in place of the saved ones.
            weights_only: false imports the classes of objects that hooks put in the checkpoint.
            kwargs: constructor arguments that replace the saved ones.
        """
        state = read(checkpoint_path, weights_only)
        saved = read_file(hparams_file) or state.get("datamodule_hyper_parameters", {})
        return constructed(cls, saved, state.get(f"datamodule_{NAME}"), kwargs)

    @classmethod
    def from_datasets(
        cls, train_dataset: Any = None, val_dataset: Any = None, test_dataset: Any = None,
        predict_dataset: Any = None, batch_size: int = 1, num_workers: int = 0,
        **datamodule_kwargs: Any,
    ) -> DataModule:  # fmt: skip
        """A data module with a `DataLoader` for each data set, or for each one of a list.

        Args:
            train_dataset: is shuffled, unless it can only be iterated.
            batch_size: the number of items of a batch.
            num_workers: processes of each loader.
            datamodule_kwargs: of the constructor.
        """

        def loader(dataset: Any, shuffle: bool = False) -> Any:
            shuffle = shuffle and not isinstance(dataset, IterableDataset)
            return DataLoader(dataset, batch_size, shuffle=shuffle, num_workers=num_workers)

        def loaders(dataset: Any, shuffle: bool = False) -> Any:
            if isinstance(dataset, list | tuple):
                several: Sequence[Any] = dataset
                return [loader(x, shuffle) for x in several]
            return loader(dataset, shuffle)

        module = cls(**datamodule_kwargs)
        for name, dataset in (("val", val_dataset), ("test", test_dataset),
                              ("predict", predict_dataset)):  # fmt: skip
            if dataset is not None:
                setattr(module, f"{name}_dataloader", lambda d=dataset: loaders(d))
        if train_dataset is not None:
            made: Any = module
            made.train_dataloader = lambda: loaders(train_dataset, True)
        return module
