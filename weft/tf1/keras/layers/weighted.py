"""`WeightedLayer`: initializer, regularizer and constraint of each weight, as arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, Final

from weft.tf1.keras import constraints, initializers, regularizers
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.storage.serialization import as_data

_GET: Final = {
    "initializer": initializers.get, "regularizer": regularizers.get, "constraint": constraints.get,
}  # fmt: skip
_FIRST: Final = {
    "kernel": "glorot_uniform", "depthwise": "glorot_uniform", "pointwise": "glorot_uniform",
    "bias": "zeros", "gamma": "ones", "beta": "zeros", "moving_mean": "zeros",
    "moving_variance": "ones", "recurrent": "orthogonal", "embeddings": "uniform",
    "alpha": "zeros",
}  # fmt: skip

_MEANINGS: Final = {
    "initializer": "initial values of the weights: an initializer or its name.",
    "regularizer": "losses of the weights: a function or its name.",
    "constraint": "projections of the weights after each update: a function or its name.",
}  # fmt: skip


def described_weights(options: Iterable[str]) -> SimpleNamespace:
    """A docstring for such options as `kernel_initializer`."""
    entries = [
        f"    {', '.join(names)}:\n        {meaning}"
        for part, meaning in _MEANINGS.items()
        if (names := [n for n in options if n.endswith(part)])
    ]
    return SimpleNamespace(__doc__="\n".join(["Options of weights.\n\nArgs:", *entries]))


class WeightedLayer(Layer):
    """A layer with the options `kernel_initializer`, `bias_regularizer`, and so on."""

    weight_options: ClassVar[dict[str, Any]] = {}
    """Options of weights, with their defaults."""

    def __init__(self, options: dict[str, Any]) -> None:
        own = {n: options.pop(n, default) for n, default in self.weight_options.items()}
        super().__init__(**options)
        for name, option in own.items():
            setattr(self, name, _GET[name.rpartition("_")[2]](option))

    @staticmethod
    def of(*weights: str, kinds: Sequence[str] = tuple(_GET)) -> dict[str, Any]:
        """The options of these weights."""
        defaults: dict[str, Any] = {}
        for weight in weights:
            defaults.update({f"{weight}_{k}": None for k in kinds})
            if "initializer" in kinds:
                defaults[f"{weight}_initializer"] = _FIRST[weight]
        return defaults

    def weight(self, name: str, shape: Any, option: str | None = None, **others: Any) -> Any:
        """Create a weight with the options of its name, or of another name."""
        chosen = option or name
        options = {k: getattr(self, f"{chosen}_{k}", None) for k in _GET}
        return self.add_weight(name, shape, **options, **others)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        names = ("activity_regularizer", *self.weight_options)
        return super().get_config() | {n: as_data(getattr(self, n)) for n in names}
