"""`torch.utils._pytree`: nested structures as PyTorch flattens them; `None` is a leaf."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

__all__ = [
    "SUPPORTED_NODES", "GetAttrKey", "MappingKey", "PyTree", "SequenceKey", "TreeSpec",
    "register_pytree_node", "tree_all", "tree_any", "tree_flatten", "tree_flatten_with_path",
    "tree_is_leaf", "tree_leaves", "tree_map", "tree_map_only", "tree_structure",
    "tree_unflatten",
]  # fmt: skip

PyTree = Any


@dataclass(frozen=True)
class SequenceKey:
    """The place of a part in a list or tuple."""

    idx: int


@dataclass(frozen=True)
class MappingKey:
    """The key of a part of a dictionary."""

    key: Any


@dataclass(frozen=True)
class GetAttrKey:
    """The name of a part of an object or named tuple."""

    name: str


class Kind(NamedTuple):
    """How containers of a class are taken apart."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Iterable[Any], Any], Any]
    keyed: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None


def _sequence(make: Callable[[Iterable[Any]], Any]) -> Kind:
    return Kind(
        lambda x: (list(x), None), lambda parts, _: make(parts),
        lambda x: ([(SequenceKey(i), part) for i, part in enumerate(x)], None),
    )  # fmt: skip


def _mapping(make: Callable[[Iterable[Any]], Any]) -> Kind:
    return Kind(
        lambda x: (list(x.values()), list(x)),
        lambda parts, keys: make(zip(keys, parts, strict=True)),
        lambda x: ([(MappingKey(key), part) for key, part in x.items()], list(x)),
    )


SUPPORTED_NODES: Final[dict[Any, Kind]] = {
    list: _sequence(list),
    tuple: _sequence(tuple),
    dict: _mapping(dict),
    OrderedDict: _mapping(OrderedDict),
    defaultdict: Kind(
        lambda x: (list(x.values()), (x.default_factory, list(x))),
        lambda parts, kept: defaultdict(kept[0], zip(kept[1], parts, strict=True)),
        lambda x: (
            [(MappingKey(key), part) for key, part in x.items()], (x.default_factory, list(x))
        ),
    ),
    deque: _sequence(deque)._replace(
        flatten=lambda x: (list(x), x.maxlen), unflatten=lambda parts, most: deque(parts, most)
    ),
    namedtuple: Kind(
        lambda x: (list(x), type(x)), lambda parts, kind: kind(*parts),
        lambda x: (
            [(GetAttrKey(name), part) for name, part in zip(x._fields, x, strict=True)], type(x)
        ),
    ),
}  # fmt: skip
"""By a class of containers: how they are taken apart."""
_MAPPINGS: Final = (dict, OrderedDict, defaultdict)


def get_node_type(tree: Any) -> Any:
    """The class under which a container is registered; `namedtuple` for all of those."""
    kind = type(tree)
    return namedtuple if issubclass(kind, tuple) and hasattr(kind, "_fields") else kind


@dataclass(frozen=True)
class TreeSpec:
    """A structure without its leaves."""

    type: Any = None  # `None` for a leaf
    context: Any = None
    children_specs: tuple[TreeSpec, ...] = ()

    @property
    def num_leaves(self) -> int:
        """How many leaves there are."""
        return 1 if self.is_leaf() else sum([part.num_leaves for part in self.children_specs])

    @property
    def num_nodes(self) -> int:
        """How many containers and leaves there are."""
        return 1 + sum([part.num_nodes for part in self.children_specs])

    @property
    def num_children(self) -> int:
        """How many parts there are at the top."""
        return len(self.children_specs)

    def is_leaf(self) -> bool:
        """Whether it is a leaf alone."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The structure with these leaves."""
        return self._build(iter(leaves))

    def _build(self, rest: Iterator[Any]) -> Any:
        if self.is_leaf():
            return next(rest)
        parts = [part._build(rest) for part in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten(parts, self.context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The parts of another structure where this one has leaves.

        Raises:
            ValueError: it has another structure.
        """
        if self.is_leaf():
            return [tree]
        kind = get_node_type(tree)
        both = kind in _MAPPINGS and self.type in _MAPPINGS
        if kind is not self.type and not both:
            raise ValueError(f"Node type mismatch: expected {self.type}, got {kind}")
        parts, context = SUPPORTED_NODES[kind].flatten(tree)
        parts = list(parts)
        if len(parts) != self.num_children:
            raise ValueError(f"Node arity mismatch: expected {self.num_children}, got {len(parts)}")
        if both:
            keys = self.context[1] if self.type is defaultdict else self.context
            if set(keys) != set(tree):
                raise ValueError(f"Node keys mismatch: expected {list(keys)}, got {list(tree)}")
            parts = [tree[key] for key in keys]
        elif self.type is not deque and context != self.context:
            raise ValueError(f"Node context mismatch: expected {self.context}, got {context}")
        pairs = zip(self.children_specs, parts, strict=True)
        return [leaf for spec, part in pairs for leaf in spec.flatten_up_to(part)]


def register_pytree_node(
    cls: type, flatten_fn: Callable[[Any], Any], unflatten_fn: Callable[[Any, Any], Any],
    *, flatten_with_keys_fn: Callable[[Any], Any] | None = None, **options: Any,
) -> None:  # fmt: skip
    """Make instances of a class containers.

    Args:
        cls: the class.
        flatten_fn: gives an instance's parts, and what else it has.
        unflatten_fn: makes an instance of the parts and the rest.
        flatten_with_keys_fn: gives pairs of a key and a part, and what else it has.
        options: for serialization, which there is none of.
    """
    del options
    SUPPORTED_NODES[cls] = Kind(flatten_fn, unflatten_fn, flatten_with_keys_fn)


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether something is a leaf: of no class of containers, or one by the function."""
    if is_leaf is not None and is_leaf(tree):
        return True
    return get_node_type(tree) not in SUPPORTED_NODES


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """The leaves, and the structure without them.

    >>> leaves, spec = tree_flatten({"a": 1, "b": [2, None]})
    >>> leaves, tree_unflatten(leaves, spec)
    ([1, 2, None], {'a': 1, 'b': [2, None]})
    """
    leaves: list[Any] = []

    def taken(part: Any) -> TreeSpec:
        if tree_is_leaf(part, is_leaf):
            leaves.append(part)
            return TreeSpec()
        kind = get_node_type(part)
        parts, context = SUPPORTED_NODES[kind].flatten(part)
        return TreeSpec(kind, context, tuple([taken(x) for x in parts]))

    spec = taken(tree)
    return leaves, spec


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """The leaves, each with the keys that lead to it, and the structure.

    >>> tree_flatten_with_path({"a": [7]})[0]
    [((MappingKey(key='a'), SequenceKey(idx=0)), 7)]

    Raises:
        ValueError: a container's class was registered without `flatten_with_keys_fn`.
    """
    found: list[tuple[tuple[Any, ...], Any]] = []

    def walk(part: Any, path: tuple[Any, ...]) -> None:
        if tree_is_leaf(part, is_leaf):
            found.append((path, part))
            return
        keyed = SUPPORTED_NODES[get_node_type(part)].keyed
        if keyed is None:
            raise ValueError(f"no flatten_with_keys_fn was registered for {type(part)}")
        for key, child in keyed(part)[0]:
            walk(child, (*path, key))

    walk(tree, ())
    return found, tree_structure(tree, is_leaf)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The structure with these leaves."""
    return treespec.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves, in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure without its leaves."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """The structure with a function applied to the leaves, and to what others have there.

    Raises:
        ValueError: another structure differs above the leaves.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *[spec.flatten_up_to(rest) for rest in rests]]
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
