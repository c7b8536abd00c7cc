"""Nested tuples, lists and dictionaries: their leaves, and copies with other leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import methodcaller
from typing import Any, Final, NamedTuple

_VALUES: Final = methodcaller("values")


class _Form(NamedTuple):
    """How to take a container of some type apart and to build another one; a leaf has no parts."""

    parts: Callable[[Any], Iterable[Any]] | None
    rebuilt: Callable[[Any, list[Any]], Any]


class Nesting:
    """What counts as a container; everything else is a leaf.

    >>> Nesting(sorted_keys=True).leaves({"b": [1, 2], "a": (3,)})
    [3, 1, 2]
    >>> Nesting(lists=False).mapped(str, {"b": [1, 2], "a": (3,)})
    {'b': '[1, 2]', 'a': ('3',)}

    Args:
        lists: whether lists are containers.
        sorted_keys: whether the parts of a dictionary come by sorted keys, or as inserted.
        none: whether `None` is a container without parts.
        types: whether subclasses are rebuilt as such; named tuples always are.
        atoms: types that are leaves although they are tuples.
    """

    def __init__(
        self, *, lists: bool = True, sorted_keys: bool = False, none: bool = False,
        types: bool = False, atoms: tuple[type, ...] = (),
    ) -> None:  # fmt: skip
        self._sequences: Any = (tuple, list) if lists else tuple
        self._sorted, self._none, self._types, self._atoms = sorted_keys, none, types, atoms
        self._forms: dict[type, _Form] = {}

    def _form(self, kind: Any) -> _Form:
        """The form of a type, which is decided once."""
        form = self._forms[kind] = self._form_of(kind)
        return form

    def _form_of(self, kind: Any) -> _Form:
        if issubclass(kind, Mapping):
            return _Form(self._values if self._sorted else _VALUES, self._dictionary())
        if self._none and kind is type(None):
            return _Form(lambda _: (), lambda *_: None)
        if not issubclass(kind, self._sequences) or issubclass(kind, self._atoms):
            return _Form(None, lambda like, _: like)
        if hasattr(kind, "_fields"):
            return _Form(iter, lambda _, parts: kind(*parts))
        plain = kind if self._types else list if issubclass(kind, list) else tuple
        return _Form(iter, lambda _, parts: plain(parts))

    def _values(self, x: Mapping[Any, Any]) -> Iterable[Any]:
        return [x[key] for key in sorted(x)]

    def _dictionary(self) -> Callable[[Any, list[Any]], Any]:
        def plain(like: Any, parts: list[Any]) -> Any:
            return dict(zip(like, parts, strict=True))

        def in_order(like: Any, parts: list[Any]) -> Any:
            made = dict(zip(sorted(like), parts, strict=True))
            return {key: made[key] for key in like}

        build = in_order if self._sorted else plain
        return (
            (lambda like, parts: type(like)(build(like, parts).items())) if self._types else build
        )

    def rebuilt(self, like: Any, parts: Sequence[Any]) -> Any:
        """A container like another, with other parts."""
        form = self._forms.get(type(like)) or self._form(type(like))
        return form.rebuilt(like, list(parts))

    def leaves(self, x: Any) -> list[Any]:
        """The leaves, in order."""
        form = self._forms.get(type(x)) or self._form(type(x))
        return [x] if form.parts is None else [y for p in form.parts(x) for y in self.leaves(p)]

    def packed(self, like: Any, leaves: Iterable[Any]) -> Any:
        """A structure like another, with other leaves."""
        rest = iter(leaves)
        return self.mapped(lambda _: next(rest), like)

    def mapped(self, function: Callable[..., Any], x: Any, *others: Any) -> Any:
        """The structure `x` with `function` applied to all structures' leaves at each place."""
        if others:
            columns = [self.leaves(one) for one in (x, *others)]
            return self.packed(x, [function(*row) for row in zip(*columns, strict=True)])
        form = self._forms.get(type(x)) or self._form(type(x))
        if form.parts is None:
            return function(x)
        return form.rebuilt(x, [self.mapped(function, part) for part in form.parts(x)])


NESTED: Final = Nesting()
