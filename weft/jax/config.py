"""JAX's settings: which there are, and which have an effect."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, Final

from weft.errors import ArgumentError

__all__ = ["config", "disable_jit", "enable_x64"]


class Config:
    """`jax.config`: settings by name, as attributes; `update` sets one.

    `jax_enable_x64` and `jax_disable_jit` have an effect; what chooses devices, logs or caches has
    none, as there is one device and the compiler is another.
    """

    jax_enable_x64: bool = os.environ.get("JAX_ENABLE_X64", "0").lower() in ("1", "true", "yes")
    jax_disable_jit: bool = False
    jax_debug_nans: bool = False
    jax_default_matmul_precision: Any = None
    jax_numpy_rank_promotion: str = "allow"
    jax_numpy_dtype_promotion: str = "standard"
    jax_platform_name: str = "cpu"
    jax_platforms: Any = "cpu"
    jax_threefry_partitionable: bool = True
    jax_default_prng_impl: str = "threefry2x32"
    jax_traceback_filtering: str = "auto"

    def update(self, name: str, value: Any) -> None:
        """Set a setting.

        Raises:
            AttributeError: JAX has no setting of this kind of name.
        """
        if not name.startswith("jax_") and not name.startswith("xla_"):
            raise AttributeError(f"Unrecognized config option: {name}")
        setattr(self, name, value)

    def read(self, name: str) -> Any:
        """A setting."""
        return getattr(self, name)

    @property
    def x64_enabled(self) -> bool:
        """Whether arrays may have 64 bits."""
        return self.jax_enable_x64

    def parse_flags_with_absl(self) -> None:
        """Nothing: flags of the command line are the program's."""

    config_with_absl = parse_flags_with_absl


config: Final = Config()


def _context(name: str) -> Callable[..., Any]:
    @contextlib.contextmanager
    def setting(value: bool = True) -> Iterator[None]:
        before = getattr(config, name)
        setattr(config, name, value)
        try:
            yield
        finally:
            setattr(config, name, before)

    return setting


enable_x64: Final = _context("jax_enable_x64")
disable_jit: Final = _context("jax_disable_jit")


_TEXTS: Final = {
    "backend": ("cpu",), "device": ("cpu",), "method": ("auto", "direct", "fft"),
    "optimize": ("auto", "auto-hq", "branch-1", "branch-2", "dp", "greedy", "optimal"),
    "order": ("A", "C", "F", "K"), "sharding": ("cpu",),
    "precision": ("bfloat16", "default", "fastest", "float32", "high", "highest", "tensorfloat32"),
    "mode": ("low",),
}  # fmt: skip


def without_effect(name: str, **given: Any) -> None:
    """Check arguments that change no value: hints, and devices, of which there is one.

    Raises:
        ArgumentError: a text that is none of JAX's.
    """
    for argument, value in given.items():
        known = _TEXTS.get(argument, ())
        if isinstance(value, str) and value.lower() not in known and value not in known:
            raise ArgumentError.here(f"{name}: expected {argument} of {known}, got {value!r}")


def refuse_given(name: str, **given: Any) -> None:
    """Refuse arguments that Weft does not follow.

    Raises:
        ArgumentError: one is given.
    """
    for argument, value in given.items():
        absent = value is None or value is False or (type(value) in (int, tuple) and not value)
        if not absent:
            raise ArgumentError.here(f"{name}: expected no {argument}, got {value!r}")
