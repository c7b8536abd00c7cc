"""`jax.ad_checkpoint`: recomputation of all values inside, whatever a policy says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

from weft.errors import ArgumentError
from weft.jax.transform import checkpoint as checkpoint
from weft.jax.transform import checkpoint as remat

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "remat"]


def checkpoint_name(x: Any, name: Any) -> Any:
    """The value: no policy asks for names.

    Raises:
        ArgumentError: a name that is no text.
    """
    if not isinstance(name, str):
        raise ArgumentError.here(f"checkpoint_name: expected a text, got {name!r}")
    return x


def _saves(*_: Any, **__: Any) -> bool:
    return False


def _policy(*_: Any, **__: Any) -> Any:
    return _saves


checkpoint_policies: Final = SimpleNamespace(
    **dict.fromkeys(
        ("everything_saveable", "nothing_saveable", "dots_saveable", "checkpoint_dots",
         "dots_with_no_batch_dims_saveable", "checkpoint_dots_with_no_batch_dims"),
        _saves,
    ),
    **dict.fromkeys(
        ("save_any_names_but_these", "save_anything_except_these_names", "save_from_both_policies",
         "save_only_these_names"),
        _policy,
    ),
)  # fmt: skip
"""Policies by JAX's names; they change no value."""
