"""Unique names and name scopes, by TensorFlow's rules."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from typing import Final

from weft.errors import DTypeError, GraphError, nameless
from weft.ir.node import at_user_line
from weft.ops.refusal import shown

VALID_NAME: Final = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\-/]*$")
VALID_SCOPE: Final = re.compile(r"^[A-Za-z0-9_.\-/]*$")


class Names:
    """The names in use, and each thread's current scope."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._local = threading.local()

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """`name` in the current scope, with `_1`, `_2`, ... if it is taken (ignoring case)."""
        return self.unique(self.scope + name, mark_as_used)

    def unique(self, name: str, mark: bool = True) -> str:
        """`name` made unique, outside of any scope."""
        key = name.lower()
        count = self._names.get(key, 0)
        if mark:
            self._names[key] = count + 1
        if count == 0:
            return name
        while f"{key}_{count}" in self._names:
            count += 1
        if mark:
            self._names[key] = count + 1
            self._names[f"{key}_{count}"] = 1
        return f"{name}_{count}"

    @property
    def scope(self) -> str:
        """The current name scope with its slash, or an empty string."""
        return getattr(self._local, "scope", "")

    def get_name_scope(self) -> str:
        """The current name scope, without a slash."""
        return self.scope.rstrip("/")

    @contextlib.contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Prefix names inside; a trailing slash re-enters a scope, an empty name is the root."""
        if name is not None and not isinstance(name, str):  # pyright: ignore
            text = f"name: expected a text or None, got {shown(name)}{at_user_line()}"
            raise nameless(DTypeError(text))
        before = self.scope
        if name is None or name == "":
            scope = ""
        elif name.endswith("/"):
            scope = name
        else:
            pattern = VALID_SCOPE if before else VALID_NAME
            if not pattern.match(name):
                raise GraphError(f"name_scope: {name!r} is not a valid name")
            scope = self.unique_name(name) + "/"
        self._local.scope = scope
        try:
            yield scope
        finally:
            self._local.scope = before
