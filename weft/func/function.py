"""Functions with nested arguments and results, traced: what jit, vmap and checkpoint share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.eager.api import Tensor
from weft.eager.call import lazy_of, record, wrap
from weft.eager.handle import Handle
from weft.eager.lazy import Lazy
from weft.eager.tracing import Traced, trace_tensors
from weft.func.tree import Tree, flatten
from weft.ops.base import REGISTRY

Function = Callable[..., Any]
_IDENTITY: Final = REGISTRY["identity"]


class Arguments(NamedTuple):
    """Arguments taken apart: tensors, and everything else, which is static."""

    tree: Tree
    lazies: tuple[Lazy, ...]
    static: tuple[Any, ...]  # a static leaf, or `DATA` in the place of a tensor
    likes: tuple[Any, ...]

    def rebuilt(self, lazies: Sequence[Lazy]) -> Any:
        """The arguments with other tensors."""
        rest = iter(zip(lazies, self.likes, strict=True))
        leaves = [wrap(*next(rest)) if s is DATA else s for s in self.static]
        return self.tree.build(leaves)


class _Data:
    """Stands where a tensor is."""


DATA = _Data()


def take_apart(structure: Any, static: bool = False, numbers: bool = True) -> Arguments:
    """The tensors in nested arguments; `numbers` are tensors, too, but for booleans."""
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
    return isinstance(x, Handle | np.ndarray | np.generic)


def _is_number(x: Any) -> bool:
    return type(x) in (int, float, complex)


class Result(NamedTuple):
    """What a traced function returned: its structure, and leaves that are no tensors."""

    tree: Tree
    static: tuple[Any, ...]
    kinds: tuple[type[Tensor], ...]

    def rebuilt(self, lazies: Sequence[Lazy]) -> Any:
        """The result with these tensors."""
        rest = iter(zip(lazies, self.kinds, strict=False))
        leaves = [_of_kind(*next(rest)) if s is DATA else s for s in self.static]
        return self.tree.build(leaves)


def _of_kind(lazy: Lazy, kind: type[Tensor]) -> Tensor:
    tensor = kind.__new__(kind)
    tensor.adopt(lazy if lazy.owner is None else record(_IDENTITY, (lazy,), {})[0])
    return tensor


def trace_function(fun: Function, arguments: Arguments, constants: bool = False) -> Traced:
    """Record `fun` on stand-ins for the tensors in its arguments, which are (args, kwargs)."""

    def run(tracers: tuple[Lazy, ...]) -> tuple[Sequence[Lazy], Result]:
        args, kwargs = arguments.rebuilt(tracers)
        leaves, tree = flatten(fun(*args, **kwargs))
        tensors = [y for y in leaves if _is_array(y)]
        static = tuple([DATA if _is_array(y) else y for y in leaves])
        kinds = tuple([y.kind if isinstance(y, Handle) else Tensor for y in tensors])
        return [lazy_of(y) for y in tensors], Result(tree, static, kinds)

    return trace_tensors(run, [x.type for x in arguments.lazies], constants)
