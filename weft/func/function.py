"""Traced functions with nested arguments and results, for jit, vmap and checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.eager.functions.api import Tensor
from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.autograd.tracing import Traced, trace_tensors
from weft.eager.tensor.dispatch import lazy_of, record, wrap
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.inplace import rewrite
from weft.eager.tensor.view.view import Lens
from weft.func.each import lenses_from
from weft.func.tree import Tree, flatten
from weft.ops.declaration import REGISTRY

Function = Callable[..., Any]
_IDENTITY: Final = REGISTRY["identity"]


class Arguments(NamedTuple):
    """Flattened arguments: tensors, and everything else, which is static."""

    tree: Tree
    lazies: tuple[Lazy, ...]
    static: tuple[Any, ...]  # a static leaf, or `DATA` in place of a tensor
    likes: tuple[Any, ...]

    def with_tensors(self, tensors: Sequence[Any]) -> Any:
        """The arguments with other tensors."""
        return _built(self.tree, self.static, tensors)


class _Data:
    """Marks the place of a tensor."""


DATA = _Data()


def take_apart(structure: Any, static: bool = False, numbers: bool = True) -> Arguments:
    """Flatten nested arguments; with `numbers`, numbers other than booleans are tensors, too."""
    leaves, tree = flatten(structure)
    lazies: list[Lazy] = []
    likes: list[Any] = []
    kept: list[Any] = []
    for x in leaves:
        if not static and (_is_array(x) or (numbers and _is_number(x))):
            lazies.append(lazy_of(x))
            likes.append(x if isinstance(x, Handle) else None)
            kept.append(DATA)
        else:
            kept.append(x)
    return Arguments(tree, tuple(lazies), tuple(kept), tuple(likes))


def _is_array(x: Any) -> bool:
    if isinstance(x, np.generic):
        return not isinstance(x, np.flexible)  # such as a string
    return isinstance(x, Handle | np.ndarray)


def _is_number(x: Any) -> bool:
    return type(x) in (int, float, complex)


class Result(NamedTuple):
    """The result of a traced function: its structure, and leaves that are no tensors.

    Attributes:
        shown: for each tensor, the argument tensor that it is or is a view of, if any, and the
            lenses.
        written: the argument tensors that the function changed in place; their new values are
            outputs after the result's.
    """

    tree: Tree
    static: tuple[Any, ...]
    kinds: tuple[type[Tensor], ...]
    shown: tuple[tuple[int | None, tuple[Lens, ...]], ...]
    written: tuple[int, ...]

    def rebuilt(self, lazies: Sequence[Lazy]) -> Any:
        """The result with these values."""
        return self.with_tensors(self.tensors(lazies))

    def tensors(self, lazies: Sequence[Lazy]) -> list[Tensor]:
        """Tensors of the result's classes."""
        return list(map(_of_kind, lazies, self.kinds))

    def with_tensors(self, tensors: Sequence[Any]) -> Any:
        """The result with these tensors."""
        return _built(self.tree, self.static, tensors)


def _built(tree: Tree, static: Sequence[Any], tensors: Sequence[Any]) -> Any:
    rest = iter(tensors)
    return tree.build([next(rest) if s is DATA else s for s in static])


def _of_kind(lazy: Lazy, kind: type[Tensor]) -> Tensor:
    tensor = kind.__new__(kind)
    tensor.adopt(lazy if lazy.owner is None else record(_IDENTITY, (lazy,), {})[0])
    return tensor


def changed(tensors: Sequence[Any], values: Sequence[Lazy]) -> tuple[int, ...]:
    """The tensors that were changed in place from these values."""
    pairs = enumerate(zip(tensors, values, strict=True))
    return tuple([i for i, (x, v) in pairs if x.lazy is not v])


def trace_function(
    fun: Function,
    arguments: Arguments,
    constants: bool = False,
    begin: Callable[[tuple[Lazy, ...]], None] = lambda tracers: None,
) -> Traced:
    """Trace `fun` on stand-ins for the tensors in its arguments, which are (args, kwargs).

    Args:
        begin: called with the stand-ins.
    """

    def run(tracers: tuple[Lazy, ...]) -> tuple[Sequence[Lazy], Result]:
        begin(tracers)
        inside = list(map(wrap, tracers, arguments.likes))
        args, kwargs = arguments.with_tensors(inside)
        leaves, tree = flatten(fun(*args, **kwargs))
        tensors = [y for y in leaves if _is_array(y)]
        static = tuple([DATA if _is_array(y) else y for y in leaves])
        kinds = tuple([y.kind if isinstance(y, Handle) else Tensor for y in tensors])
        written = changed(inside, tracers)
        kept = zip(inside, tracers, strict=True)
        places = {id(x): i for i, (x, v) in enumerate(kept) if x.lazy.type is v.type}
        shown = tuple([lenses_from(y, places) for y in tensors])
        result = Result(tree, static, kinds, shown, written)
        return [*map(lazy_of, tensors), *[inside[i].lazy for i in written]], result

    return trace_tensors(run, [x.type for x in arguments.lazies], constants)


def finished(traced: Traced, found: Sequence[Lazy], given: Sequence[Any]) -> Any:
    """The result of a call of a traced function; also applies its in-place changes.

    Args:
        found: the outputs of the call.
        given: the tensors among its arguments, `None` for other leaves.
    """
    result: Result = traced.result
    count = len(result.kinds)
    behind = iter(found[count:])
    for i, lazy in zip(result.written, behind, strict=False):
        if given[i] is not None:
            rewrite(given[i], lazy, "an argument")
    if traced.changed:
        Handle.replace_all(traced.changed, list(behind))
    return result.rebuilt(found[:count])
