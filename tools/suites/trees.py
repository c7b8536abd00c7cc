"""Nested structures as PyTorch's own tests flatten them: `None` is a leaf."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Spec:
    """A structure without its leaves."""

    kind: Any = None  # `None` for a leaf
    keys: tuple[Any, ...] = ()
    children: tuple[Spec, ...] = ()

    @property
    def num_leaves(self) -> int:
        """How many leaves there are."""
        return 1 if self.kind is None else sum(child.num_leaves for child in self.children)

    def build(self, rest: Iterator[Any]) -> Any:
        """The structure with the next leaves."""
        if self.kind is None:
            return next(rest)
        parts = [child.build(rest) for child in self.children]
        if issubclass(self.kind, dict):
            return self.kind(zip(self.keys, parts, strict=True))
        return self.kind(*parts) if hasattr(self.kind, "_fields") else self.kind(parts)


def tree_flatten(tree: Any) -> tuple[list[Any], Spec]:
    """The leaves, and the structure without them."""
    kind = type(tree)
    if kind in (dict, OrderedDict, defaultdict):
        keys, parts = tuple(tree), list(tree.values())
    elif kind in (list, tuple) or (isinstance(tree, tuple) and hasattr(tree, "_fields")):
        keys, parts = (), list(tree)
    else:
        return [tree], Spec()
    found = [tree_flatten(part) for part in parts]
    kind = dict if kind is defaultdict else kind
    return [x for leaves, _ in found for x in leaves], Spec(kind, keys, tuple(s for _, s in found))


def tree_unflatten(leaves: Sequence[Any], spec: Spec) -> Any:
    """The structure with these leaves."""
    return spec.build(iter(leaves))


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """The structure with a function applied to each leaf."""
    leaves, spec = tree_flatten(tree)
    return tree_unflatten([function(x) for x in leaves], spec)


def tree_map_only(kinds: Any, function: Callable[[Any], Any], tree: Any) -> Any:
    """`tree_map` of the leaves of some classes; others are unchanged."""
    return tree_map(lambda x: function(x) if isinstance(x, kinds) else x, tree)
