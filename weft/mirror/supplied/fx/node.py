"""A node of a graph of Python calls, and the walk through its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from weft.mirror.supplied.torch import check

__all__ = ["Argument", "Node", "Target", "map_aggregate", "map_arg"]

Argument = Any
Target = Callable[..., Any] | str
INPUT: Final = "placeholder"
EFFECTS: Final = {check}
"""Functions that are called for what they do."""


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """An argument with `fn` applied to what its tuples, lists, dictionaries and slices hold."""
    if isinstance(a, tuple):
        parts = [map_aggregate(x, fn) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return [map_aggregate(x, fn) for x in a]
    if isinstance(a, dict):
        return {key: map_aggregate(x, fn) for key, x in a.items()}
    if isinstance(a, slice):
        return slice(*[map_aggregate(x, fn) for x in (a.start, a.stop, a.step)])
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """An argument with `fn` applied to the nodes in it."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


class Node:
    """One call of a graph, or an input, an attribute or the output.

    Attributes:
        op: `placeholder`, `get_attr`, `call_function`, `call_method`, `call_module` or `output`.
        target: the function; or the name of the method, the module, the attribute or the input.
        users: the nodes that use its result.
        prev, next: its neighbors in the order of execution.
        meta: what passes note.
    """

    def __init__(
        self, graph: Any, name: str, op: str, target: Target, args: tuple[Any, ...],
        kwargs: dict[str, Any], return_type: Any = None,
    ) -> None:  # fmt: skip
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self.stack_trace: str | None = None
        self.is_erased = False
        self._inputs: dict[Node, None] = {}
        self.prev = self.next = self
        self._set(args, kwargs)

    def _set(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> None:
        for used in self._inputs:
            used.users.pop(self, None)
        self._inputs = {}
        self._args, self._kwargs = tuple(args), dict(kwargs)
        map_arg((self._args, self._kwargs), lambda x: self._inputs.setdefault(x))
        for used in self._inputs:
            used.users.setdefault(self)

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments without names."""
        return self._args

    @args.setter
    def args(self, args: Iterable[Any]) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments with names."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: Mapping[str, Any]) -> None:
        self._set(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes whose results it uses."""
        return list(self._inputs)

    def prepend(self, x: Node) -> None:
        """Move a node before this one."""
        if x is not self:
            x.unlink()
            x.prev, x.next = self.prev, self
            self.prev.next = self.prev = x

    def append(self, x: Node) -> None:
        """Move a node behind this one."""
        self.next.prepend(x)

    def unlink(self) -> None:
        """Take it out of the order; it still knows what came after it."""
        self.prev.next, self.next.prev = self.next, self.prev

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use another node's result instead of one's."""

        def new(x: Node) -> Node:
            return new_input if x is old_input else x

        self._set(map_arg(self.args, new), map_arg(self.kwargs, new))

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] = lambda user: True
    ) -> list[Node]:
        """Let the users, or those that are chosen, use another node's result; gives them."""
        chosen = [user for user in self.users if delete_user_cb(user)]
        for user in chosen:
            user.replace_input_with(self, replace_with)
        return chosen

    def is_impure(self) -> bool:
        """Whether it is needed although nothing uses its result."""
        return self.op in (INPUT, "output") or self.target in EFFECTS

    def __repr__(self) -> str:
        return self.name


def shown(target: Target) -> str:
    """A target as text: a function by its module and name."""
    if isinstance(target, str):
        return target
    name = getattr(target, "__name__", repr(target))
    module = getattr(target, "__module__", None) or ""
    return name if module in ("", "builtins") else f"{module.lstrip('_')}.{name}"
