"""Pytrees: nested dicts, lists, tuples, named tuples and dataclasses of tensors."""

from __future__ import annotations

import dataclasses
import functools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from weft.errors import ArgumentError, TreeError, nameless
from weft.ir.node import at_user_line


@dataclasses.dataclass(frozen=True)
class Tree:
    """A nested structure without leaves, hashable; leaves are everything but containers.

    Dictionaries with the same keys are the same structure, whatever their order.

    Attributes:
        kind: the container's type, `None` for a leaf.
        keys: of a dictionary, sorted; fields of a dataclass or a named tuple.
        default: the default factory of a `defaultdict`.
        order: of a dictionary, its keys as they were inserted.
        data: of a registered class, what its `flatten` gave besides children.
    """

    kind: Any = None
    keys: tuple[Any, ...] = ()
    children: tuple[Tree, ...] = ()
    default: Any = None
    order: tuple[Any, ...] = dataclasses.field(default=(), compare=False)
    data: Any = None

    def __hash__(self) -> int:
        whole = (self.kind, self.keys, self.children, self.default)
        try:
            return hash((*whole, self.data))
        except TypeError:  # data that can be compared only
            return hash(whole)

    @property
    def size(self) -> int:
        """The number of leaves."""
        return 1 if self.kind is None else sum(child.size for child in self.children)

    def build(self, leaves: Sequence[Any]) -> Any:
        """The structure with these leaves."""
        rest = iter(leaves)
        return self._build(rest)

    def _build(self, rest: Any) -> Any:
        if self.kind is None:
            return next(rest)
        if self.kind is _Nothing:
            return None
        parts = [child._build(rest) for child in self.children]
        if self.kind in NODES:
            return NODES[self.kind].unflatten(self.data, tuple(parts))
        if issubclass(self.kind, dict):
            return self._dictionary(dict(zip(self.keys, parts, strict=True)))
        if self.kind in (list, tuple):
            return self.kind(parts)
        if self.keys:
            return self.kind(**dict(zip(self.keys, parts, strict=True)))
        return self.kind() if hasattr(self.kind, "_fields") else self.kind(parts)

    def _dictionary(self, parts: dict[Any, Any]) -> Any:
        ordered = {key: parts[key] for key in self.order}
        if issubclass(self.kind, defaultdict):
            return self.kind(self.default, ordered)
        return ordered if self.kind is dict else self.kind(ordered)

    def __str__(self) -> str:
        """As Python writes it, with a star for each leaf.

        >>> print(flatten({"h": 1, "c": [2, None]})[1])
        {'c': [*, None], 'h': *}
        """
        if self.kind is None or self.kind is _Nothing:
            return "None" if self.kind else "*"
        parts = list(map(str, self.children))
        if self.kind in NODES:
            return f"CustomNode({self.kind.__name__}[{self.data}], [{', '.join(parts)}])"
        if issubclass(self.kind, dict):
            pairs = zip(self.keys, parts, strict=True)
            shown = "{" + ", ".join([f"{key!r}: {part}" for key, part in pairs]) + "}"
            return shown if self.kind is dict else f"{self.kind.__name__}({shown})"
        if self.keys:
            parts = [f"{key}={part}" for key, part in zip(self.keys, parts, strict=True)]
        inside = ", ".join(parts)
        if self.kind is list:
            return f"[{inside}]"
        if self.kind is tuple:
            return f"({inside},)" if len(parts) == 1 else f"({inside})"
        return f"{self.kind.__name__}({inside})"


class _Nothing:
    """The kind of `None`: a structure without leaves."""


class Node(NamedTuple):
    """How objects of a registered class are taken apart and made.

    Attributes:
        flatten: maps an object to its children and data, which are compared.
        unflatten: maps data and children to an object.
        keyed: maps an object to pairs of a key and a child, and data; `None` if there is none.
    """

    flatten: Callable[[Any], tuple[Any, Any]]
    unflatten: Callable[[Any, Any], Any]
    keyed: Callable[[Any], tuple[Any, Any]] | None = None


NODES: Final[dict[type, Node]] = {}
"""The registered classes."""


def register(kind: type, node: Node) -> None:
    """Make objects of a class structures.

    Raises:
        ArgumentError: the class is registered already.
    """
    if kind in NODES:
        raise ArgumentError.here(f"Duplicate custom PyTreeDef type registration for {kind}.")
    NODES[kind] = node
    _is_leaf.cache_clear()


LEAF = Tree()


def flatten(structure: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Tree]:
    """The leaves in order (of dictionaries, of their sorted keys), and the structure.

    Args:
        is_leaf: tells of a part whether it is a leaf, whatever is inside.

    >>> leaves, tree = flatten({"a": 1, "b": [2, (3,)]})
    >>> leaves, tree.build([10, 20, 30])
    ([1, 2, 3], {'a': 10, 'b': [20, (30,)]})
    """
    leaves: list[Any] = []
    return leaves, _flatten(structure, leaves, is_leaf)


@functools.lru_cache(maxsize=256)
def _is_leaf(kind: type) -> bool:
    container = issubclass(kind, dict | list | tuple) or dataclasses.is_dataclass(kind)
    return not container and kind is not type(None) and kind not in NODES


@functools.lru_cache(maxsize=256)
def _sorted(keys: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(keys))
    except TypeError:  # keys of several types
        return tuple(sorted(keys, key=lambda key: (type(key).__name__, repr(key))))


def _flatten(x: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> Tree:
    kind = type(x)
    if _is_leaf(kind) or (is_leaf is not None and is_leaf(x)):
        leaves.append(x)
        return LEAF
    if x is None:
        return Tree(_Nothing)
    if kind in NODES:
        parts, data = NODES[kind].flatten(x)
        found = tuple([_flatten(part, leaves, is_leaf) for part in parts])
        return Tree(kind, (), found, data=data)
    if isinstance(x, dict):
        order = tuple(x)
        keys = _sorted(order)
        children = tuple([_flatten(x[key], leaves, is_leaf) for key in keys])
        return Tree(kind, keys, children, getattr(x, "default_factory", None), order)
    fields: Any = getattr(kind, "_fields", None)
    if isinstance(x, tuple) and fields is not None:
        return Tree(kind, tuple(fields), tuple([_flatten(v, leaves, is_leaf) for v in x]))
    if isinstance(x, list | tuple):
        return Tree(kind, (), tuple([_flatten(v, leaves, is_leaf) for v in x]))
    names = tuple([f.name for f in dataclasses.fields(x) if f.init])
    return Tree(kind, names, tuple([_flatten(getattr(x, n), leaves, is_leaf) for n in names]))


def map_structure(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """Apply `function` to corresponding leaves of structures like `first`.

    Raises:
        TreeError: the others have another structure.

    >>> map_structure(lambda a, b: a + b, {"x": 1, "y": [2]}, {"x": 10, "y": [20]})
    {'x': 11, 'y': [22]}
    """
    leaves, tree = flatten(first)
    columns = [leaves, *[leaves_like(tree, other) for other in others]]
    return tree.build([function(*row) for row in zip(*columns, strict=True)])


def leaves_like(tree: Tree, structure: Any) -> list[Any]:
    """The leaves of a structure equal to `tree`.

    Raises:
        TreeError: it differs.
    """
    leaves, found = flatten(structure)
    if found != tree:
        text = f"expected the structure {tree}, got {found}{at_user_line()}"
        raise nameless(TreeError(text))
    return leaves


def prefix(axes: Any, tree: Tree, leaf: type | tuple[type, ...] = int) -> list[Any]:
    """One entry of `axes` for each leaf of `tree`; an entry may cover a whole subtree.

    Args:
        leaf: the type of entries other than `None`.

    Raises:
        TreeError: `axes` has parts that `tree` does not have.
    """
    if axes is None or isinstance(axes, leaf):
        return [axes] * tree.size
    fits = tree.kind is not None and len(axes) == len(tree.children)
    if fits and isinstance(axes, dict):
        fits = set(axes) == set(tree.keys)
    elif tree.kind in (list, tuple):
        fits = fits and type(axes) is tree.kind
    if not fits:
        raise TreeError.here(f"axes: expected one for each part of {tree}, got {axes}")
    parts = [axes[key] for key in tree.keys] if isinstance(axes, dict) else axes
    return [
        a
        for part, child in zip(parts, tree.children, strict=True)
        for a in prefix(part, child, leaf)
    ]
