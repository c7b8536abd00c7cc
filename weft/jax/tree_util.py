"""`jax.tree_util`: pytrees, registered classes among them, and paths to their leaves."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.errors import TreeError, nameless
from weft.func.tree import LEAF, NODES, Node, Tree, register
from weft.func.tree import flatten as _flatten

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "Partial", "PyTreeDef", "SequenceKey",
    "all_leaves", "build_tree", "flatten_one_level", "keystr", "register_dataclass",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static", "tree_all", "tree_broadcast", "tree_flatten", "tree_flatten_with_path",
    "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_with_path", "tree_multimap",
    "tree_reduce", "tree_structure", "tree_transpose", "tree_unflatten", "treedef_children",
    "treedef_is_leaf", "treedef_tuple",
]  # fmt: skip

IsLeaf = Callable[[Any], bool] | None


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], Tree]:
    """`weft.func.tree.flatten` in which a dataclass that is not registered is a leaf."""

    def stops(x: Any) -> bool:
        kind = type(x)
        plain = kind not in NODES and dataclasses.is_dataclass(kind)
        return plain or (is_leaf is not None and is_leaf(x))

    return _flatten(tree, stops)


@dataclass(frozen=True)
class PyTreeDef:
    """The structure of a pytree; made dictionaries have sorted keys.

    >>> tree_structure({"b": 1, "a": (2, None)})
    PyTreeDef({'a': (*, None), 'b': *})
    """

    tree: Tree

    @property
    def num_leaves(self) -> int:
        """The number of leaves."""
        return self.tree.size

    @property
    def num_nodes(self) -> int:
        """The number of leaves and containers."""
        return 1 + sum([child.num_nodes for child in self.children()])

    def children(self) -> list[PyTreeDef]:
        """The structures inside a container."""
        return [PyTreeDef(child) for child in self.tree.children]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The pytree with these leaves."""
        return tree_unflatten(self, leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The parts of a pytree at the places of the leaves."""
        return _parts(self.tree, tree)

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """This structure with another in place of each leaf."""
        return tree_structure(
            self.unflatten([inner.unflatten([0] * inner.num_leaves)] * self.num_leaves)
        )

    def __repr__(self) -> str:
        return f"PyTreeDef({self.tree})"


def _sorted(tree: Tree) -> Tree:
    children = tuple([_sorted(child) for child in tree.children])
    return dataclasses.replace(tree, children=children, order=tree.keys if tree.order else ())


@functools.lru_cache(maxsize=512)
def _definition(tree: Tree) -> PyTreeDef:
    return PyTreeDef(_sorted(tree))


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves, and the structure."""
    leaves, found = flatten(tree, is_leaf)
    try:
        return leaves, _definition(found)
    except TypeError:  # data of a class that cannot be hashed
        return leaves, PyTreeDef(_sorted(found))


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The pytree of a structure with these leaves.

    Raises:
        ValueError: too few or too many leaves.
    """
    given = list(leaves)
    if len(given) != treedef.num_leaves:
        few = "few" if len(given) < treedef.num_leaves else "many"
        text = f"Too {few} leaves for PyTreeDef; expected {treedef.num_leaves}, got {len(given)}"
        raise nameless(TreeError(text))
    return treedef.tree.build(given)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves."""
    return flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply a function to the leaves, and the parts of other pytrees at their places.

    Raises:
        ValueError: the others do not begin with the structure of the first.
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    columns = [_parts(treedef.tree, other) for other in rest]
    return treedef.tree.build([f(*row) for row in zip(leaves, *columns, strict=True)])


def _parts(tree: Tree, other: Any) -> list[Any]:
    """The parts of a pytree that lie where a structure has leaves."""
    if tree.kind is None:
        return [other]
    level = flatten(other, lambda x: x is not other)
    found, parts = level[1], level[0]
    same = (found.kind, found.keys, found.data) == (tree.kind, tree.keys, tree.data)
    if not same or len(found.children) != len(tree.children):
        text = f"Expected a pytree of the structure {tree}, got {flatten(other)[1]}"
        raise nameless(TreeError(text))
    inside = _children(other, found, parts)
    return [
        x for child, part in zip(tree.children, inside, strict=True) for x in _parts(child, part)
    ]


def _children(other: Any, found: Tree, parts: Sequence[Any]) -> list[Any]:
    """The children of one container; `None` among them is no leaf."""
    rest = iter(parts)
    return [None if child.size == 0 else next(rest) for child in found.children]


_NONE: Final = object()


def tree_reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _NONE,
    is_leaf: IsLeaf = None,
) -> Any:  # fmt: skip
    """`functools.reduce` over the leaves."""
    leaves = tree_leaves(tree, is_leaf)
    first = () if initializer is _NONE else (initializer,)
    return functools.reduce(function, leaves, *first)


def tree_all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true."""
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any
) -> Any:
    """A tree of trees with the levels exchanged."""
    outer = outer_treedef
    parts = outer.flatten_up_to(pytree_to_transpose)
    inner = tree_structure(parts[0]) if inner_treedef is None else inner_treedef
    columns = zip(*[inner.flatten_up_to(part) for part in parts], strict=True)
    return inner.unflatten([outer.unflatten(column) for column in columns])


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree like another, with the leaves of its prefix repeated."""

    def repeated(x: Any, part: Any) -> Any:
        return tree_map(lambda _: x, part, is_leaf=is_leaf)

    return tree_map(repeated, prefix_tree, full_tree, is_leaf=is_leaf)


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether no entry is a container."""
    return all([flatten(x, is_leaf)[1] == LEAF for x in iterable])


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures inside a container."""
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is a leaf."""
    return treedef.tree == LEAF


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of structures."""
    return PyTreeDef(Tree(tuple, (), tuple([t.tree for t in treedefs])))


def build_tree(treedef: PyTreeDef, xs: Iterable[Any]) -> Any:
    """The same as `tree_unflatten`, for nested leaves."""
    return treedef.unflatten(tree_leaves(xs))


tree_multimap = tree_map

# Registration


def register_pytree_node(
    nodetype: type, flatten_func: Callable[[Any], Any], unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], Any] | None = None,
) -> None:  # fmt: skip
    """Make objects of a class pytrees.

    Args:
        flatten_func: maps an object to (children, auxiliary data).
        unflatten_func: maps auxiliary data and children to an object.
        flatten_with_keys_func: the same as `flatten_func` with pairs (key, child).
    """
    register(nodetype, Node(flatten_func, unflatten_func, flatten_with_keys_func))


def register_pytree_with_keys(
    nodetype: type, flatten_with_keys: Callable[[Any], Any],
    unflatten_func: Callable[[Any, Any], Any], flatten_func: Callable[[Any], Any] | None = None,
) -> None:  # fmt: skip
    """The same with a function that gives keys, too."""

    def plain(x: Any) -> tuple[Any, Any]:
        pairs, data = flatten_with_keys(x)
        return [part for _, part in pairs], data

    register_pytree_node(nodetype, flatten_func or plain, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: Any) -> Any:
    """The same as a decorator, of a class with `tree_flatten` and `tree_unflatten`."""
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: Any) -> Any:
    """The same of a class with `tree_flatten_with_keys` and `tree_unflatten`."""
    plain = (lambda x: x.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    keyed: Callable[[Any], Any] = lambda x: x.tree_flatten_with_keys()  # noqa: E731
    register_pytree_with_keys(cls, keyed, cls.tree_unflatten, plain)
    return cls


def flatten_one_level(tree: Any) -> tuple[list[Any], Any]:
    """The children of a container, and what else it is.

    Raises:
        ValueError: a leaf.

    >>> flatten_one_level({"b": [1, 2], "a": None})
    ([None, [1, 2]], ('a', 'b'))
    """
    children, found = flatten(tree, lambda x: x is not tree)
    if found.kind is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    return children, found.data if found.kind in NODES else found.keys or None


def register_static(cls: Any) -> Any:
    """Make objects of a class structures without leaves, which are compared."""
    register_pytree_node(cls, lambda x: ((), x), lambda data, _: data)
    return cls


def register_dataclass(
    nodetype: Any = None, data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None, drop_fields: Sequence[str] = (),
) -> Any:  # fmt: skip
    """Make objects of a dataclass pytrees; `field(metadata=dict(static=True))` is no child."""
    if nodetype is None:
        return functools.partial(
            register_dataclass, data_fields=data_fields, meta_fields=meta_fields
        )
    if data_fields is None or meta_fields is None:
        fields = [f for f in dataclasses.fields(nodetype) if f.init and f.name not in drop_fields]
        meta = tuple([f.name for f in fields if f.metadata.get("static", False)])
        data = tuple([f.name for f in fields if f.name not in meta])
    else:
        data, meta = tuple(data_fields), tuple(meta_fields)

    def parts(x: Any) -> tuple[Any, Any]:
        return [getattr(x, n) for n in data], tuple([getattr(x, n) for n in meta])

    def keyed(x: Any) -> tuple[Any, Any]:
        pairs = [(GetAttrKey(n), getattr(x, n)) for n in data]
        return pairs, tuple([getattr(x, n) for n in meta])

    def made(fixed: Any, children: Any) -> Any:
        fields = dict(zip((*data, *meta), (*children, *fixed), strict=True))
        return nodetype(**fields)

    register_pytree_node(nodetype, parts, made, keyed)
    return nodetype


class Partial(functools.partial[Any]):
    """`functools.partial` whose arguments are children.

    >>> import weft.jax as jax
    >>> jax.tree.leaves(Partial(print, 1, end=2))
    [1, 2]
    """


register_pytree_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, parts: Partial(func, *parts[0], **parts[1]),
)

# Paths


@dataclass(frozen=True)
class SequenceKey:
    """The place in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True)
class DictKey:
    """The key in a dictionary."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """The attribute of an object."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True)
class FlattenedIndexKey:
    """The place among children of a class that was registered without keys."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


_KEY_NAMES: Final = ("key", "idx", "name")


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """A path as text.

    >>> keystr((DictKey("a"), SequenceKey(0)))
    "['a'][0]"
    """
    if not simple:
        return separator.join(map(str, keys))
    return separator.join([str(next(vars(k)[n] for n in _KEY_NAMES if n in vars(k))) for k in keys])


def _keyed(x: Any) -> list[tuple[Any, Any]] | None:
    """The children of a container with their keys; `None` for a leaf."""
    level, tree = flatten(x, lambda part: part is not x)
    if tree.kind is None:
        return None
    parts = _children(x, tree, level)
    node = NODES.get(tree.kind)
    if node is not None and node.keyed is not None:
        return list(node.keyed(x)[0])
    if node is not None:
        return [(FlattenedIndexKey(i), part) for i, part in enumerate(parts)]
    if issubclass(tree.kind, dict):
        return [(DictKey(k), part) for k, part in zip(tree.keys, parts, strict=True)]
    if tree.keys:
        return [(GetAttrKey(k), part) for k, part in zip(tree.keys, parts, strict=True)]
    return [(SequenceKey(i), part) for i, part in enumerate(parts)]


def _paths(
    x: Any, is_leaf: Any, path: tuple[Any, ...], takes_path: bool
) -> list[tuple[tuple[Any, ...], Any]]:
    ends = is_leaf is not None and (is_leaf(path, x) if takes_path else is_leaf(x))
    if x is None and not ends:
        return []
    pairs = None if ends else _keyed(x)
    if pairs is None:
        return [(path, x)]
    return [leaf for key, y in pairs for leaf in _paths(y, is_leaf, (*path, key), takes_path)]


def tree_leaves_with_path(
    tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> list[tuple[tuple[Any, ...], Any]]:
    """Pairs of a path and a leaf."""
    return _paths(tree, is_leaf, (), is_leaf_takes_path)


def tree_flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[tuple[Any, ...], Any]], PyTreeDef]:
    """Pairs of a path and a leaf, and the structure."""
    pairs = _paths(tree, is_leaf, (), is_leaf_takes_path)
    ends = {id(leaf) for _, leaf in pairs}
    return pairs, tree_structure(tree, (lambda x: id(x) in ends) if is_leaf else None)


def tree_map_with_path(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None,
    is_leaf_takes_path: bool = False,
) -> Any:  # fmt: skip
    """`tree_map` of a function that takes the path of each leaf, too."""
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [treedef.flatten_up_to(other) for other in rest]
    rows = zip(pairs, *columns, strict=True)
    return treedef.unflatten([f(path, leaf, *others) for (path, leaf), *others in rows])
