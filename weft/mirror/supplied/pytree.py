"""`torch.utils._pytree`: nested structures as PyTorch flattens them; `None` is a leaf."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "PyTree", "TreeSpec", "register_pytree_node", "tree_all", "tree_any", "tree_flatten",
    "tree_leaves", "tree_map", "tree_map_only", "tree_unflatten",
]  # fmt: skip

PyTree = Any
_CLASSES: dict[type, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {}


@dataclass(frozen=True)
class TreeSpec:
    """A structure without its leaves."""

    kind: Any = None  # `None` for a leaf
    keys: Any = ()
    children: tuple[TreeSpec, ...] = ()

    @property
    def num_leaves(self) -> int:
        """How many leaves there are."""
        return 1 if self.kind is None else sum([child.num_leaves for child in self.children])

    def build(self, rest: Iterator[Any]) -> Any:
        """The structure with the next leaves."""
        if self.kind is None:
            return next(rest)
        parts = [child.build(rest) for child in self.children]
        if self.kind in _CLASSES:
            return _CLASSES[self.kind][1](parts, self.keys)
        if issubclass(self.kind, dict):
            return self.kind(zip(self.keys, parts, strict=True))
        return self.kind(*parts) if hasattr(self.kind, "_fields") else self.kind(parts)


def register_pytree_node(
    cls: type, flatten_fn: Callable[[Any], Any], unflatten_fn: Callable[[Any, Any], Any],
    **options: Any,
) -> None:  # fmt: skip
    """Make instances of a class containers.

    Args:
        cls: the class.
        flatten_fn: gives an instance's parts, and what else it has.
        unflatten_fn: makes an instance of the parts and the rest.
        options: for serialization, which there is none of.
    """
    del options
    _CLASSES[cls] = (flatten_fn, unflatten_fn)


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """The leaves, and the structure without them.

    >>> leaves, spec = tree_flatten({"a": 1, "b": [2, None]})
    >>> leaves, tree_unflatten(leaves, spec)
    ([1, 2, None], {'a': 1, 'b': [2, None]})
    """
    kind = type(tree)
    keys: Any = ()
    if is_leaf is not None and is_leaf(tree):
        return [tree], TreeSpec()
    if kind in _CLASSES:
        parts, keys = _CLASSES[kind][0](tree)
    elif kind in (dict, OrderedDict, defaultdict):
        keys, parts = tuple(tree), list(tree.values())
    elif kind in (list, tuple) or (isinstance(tree, tuple) and hasattr(tree, "_fields")):
        parts = list(tree)
    else:
        return [tree], TreeSpec()
    found = [tree_flatten(part, is_leaf) for part in parts]
    kind = dict if kind is defaultdict else kind
    leaves = [x for part, _ in found for x in part]
    return leaves, TreeSpec(kind, keys, tuple([spec for _, spec in found]))


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The structure with these leaves."""
    return treespec.build(iter(leaves))


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves, in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """The structure with a function applied to the leaves at each place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns: Sequence[list[Any]] = [leaves, *[tree_leaves(rest, is_leaf) for rest in rests]]
    return tree_unflatten([func(*row) for row in zip(*columns, strict=True)], spec)


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: Any) -> Any:
    """`tree_map` of the leaves of some classes; others are unchanged."""
    return tree_map(lambda x: func(x) if isinstance(x, kind) else x, tree)


def tree_any(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Whether a condition holds for any leaf."""
    return any([pred(x) for x in tree_leaves(tree)])


def tree_all(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Whether a condition holds for all leaves."""
    return all([pred(x) for x in tree_leaves(tree)])
