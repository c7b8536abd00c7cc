"""Names in a state dict that another program has put a prefix before."""

from __future__ import annotations

from typing import Any


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix away from the keys that have it, in place; of the metadata, too.

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
