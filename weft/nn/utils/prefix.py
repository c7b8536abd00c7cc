"""Prefixes of state dict keys, as other programs add them."""

from __future__ import annotations

from typing import Any


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove a prefix from the keys that have it, in place; also in the metadata.

    Args:
        state_dict: the state dict.
        prefix: the beginning of keys, such as `module.`.

    >>> state = {"module.weight": 1, "bias": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'bias': 2, 'weight': 1}
    """
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    metadata: dict[str, Any] = getattr(state_dict, "_metadata", {})
    dotless = prefix.removesuffix(".")
    for key in [key for key in metadata if key == dotless or key.startswith(prefix)]:
        metadata[key.removeprefix(dotless).removeprefix(".")] = metadata.pop(key)
