"""`tf.keras.initializers`: initializers of weights, also by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.tf1.keras.storage.serialization import deserialized, serialize, table_of
from weft.tf1.variable import initializer as base
from weft.tf1.variable.initializer import (
    Constant,
    GlorotNormal,
    GlorotUniform,
    Identity,
    Initializer,
    Ones,
    Orthogonal,
    VarianceScaling,
    Zeros,
    he_normal,
    he_uniform,
    lecun_normal,
    lecun_uniform,
)  # fmt: skip

__all__ = [
    "Constant", "GlorotNormal", "GlorotUniform", "HeNormal", "HeUniform", "Identity", "Initializer",
    "LecunNormal", "LecunUniform", "Ones", "Orthogonal", "RandomNormal", "RandomUniform",
    "TruncatedNormal", "VarianceScaling", "Zeros", "constant", "deserialize", "filled", "get",
    "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "identity", "lecun_normal",
    "lecun_uniform", "normal", "ones", "orthogonal", "random_normal", "random_uniform", "serialize",
    "truncated_normal", "uniform", "zeros",
]  # fmt: skip


class RandomNormal(base.RandomNormal):
    """Normal; Keras's default deviation is 0.05."""

    def __init__(
        self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None,
        dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__(mean, stddev, seed, dtype)


class RandomUniform(base.RandomUniform):
    """Uniform; Keras's default bounds are -0.05 and 0.05."""

    def __init__(
        self, minval: Any = -0.05, maxval: Any = 0.05, seed: int | None = None,
        dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__(minval, maxval, seed, dtype)


class TruncatedNormal(base.TruncatedNormal):
    """Truncated normal, within two standard deviations; Keras's default deviation is 0.05."""

    def __init__(
        self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None,
        dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__(mean, stddev, seed, dtype)


constant, zeros, ones = Constant, Zeros, Ones
glorot_uniform, glorot_normal = GlorotUniform, GlorotNormal
HeNormal, HeUniform, LecunNormal, LecunUniform = he_normal, he_uniform, lecun_normal, lecun_uniform
identity, orthogonal = Identity, Orthogonal
normal = random_normal = RandomNormal
uniform = random_uniform = RandomUniform
truncated_normal = TruncatedNormal

NAMES: Final[dict[str, Callable[..., Any]]] = {
    **table_of(globals(), "Initializer", "filled"), "one": Ones, "zero": Zeros,
    "variance_scaling": VarianceScaling,
}  # fmt: skip


def get(identifier: Any) -> Any:
    """An initializer by name or configuration; other values as they are.

    Args:
        identifier: a name, a configuration, an initializer or `None`.

    Raises:
        UnknownKeyError: the name is unknown.
    """
    made = deserialized("initializer", NAMES, identifier)
    by_name = isinstance(identifier, str) and identifier in NAMES
    return made() if by_name or isinstance(made, type) else made


deserialize = get


def filled(initializer: Any, shape: Sequence[int], dtype: Any) -> Any:
    """The tensor of an initializer, whatever its signature.

    Args:
        initializer: called with `shape`, and with `dtype` if it takes one.
        shape: of the tensor.
        dtype: of the tensor.
    """
    return base.call(initializer, shape, dtype)
