"""Whether optional packages are there, by the names that programs import from Lightning."""

from __future__ import annotations

from importlib.util import find_spec

_PACKAGES = {
    "_COMET_AVAILABLE": "comet_ml", "_JSONARGPARSE_SIGNATURES_AVAILABLE": "jsonargparse",
    "_MLFLOW_AVAILABLE": "mlflow", "_OMEGACONF_AVAILABLE": "omegaconf",
    "_RICH_AVAILABLE": "rich", "_TORCHVISION_AVAILABLE": "torchvision",
    "_WANDB_AVAILABLE": "wandb",
}  # fmt: skip


def __getattr__(name: str) -> bool:
    if name not in _PACKAGES:
        raise AttributeError(name)
    return find_spec(_PACKAGES[name]) is not None
