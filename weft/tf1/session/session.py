"""The sessions of a program: default ones in a block, or until they are closed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from weft.tf1.errors import translated
from weft.tf1.framework.graph import Graph
from weft.tf1.session.base import BaseSession
from weft.tf1.session.cluster_backend import reset
from weft.tf1.session.options import ConfigProto

__all__ = ["InteractiveSession", "Session"]


class Session(BaseSession):
    """Runs a graph; in a `with` block, both graph and session are the default ones."""

    _contexts: list[contextlib.ExitStack]

    @staticmethod
    def reset(
        target: str, containers: Sequence[str] | None = None, config: ConfigProto | None = None
    ) -> None:
        """Close the sessions of a server's master, and forget variables, queues and tables.

        Args:
            target: of the server.
            containers: names of those to forget, in all tasks; all if it is `None`.
            config: without effect.

        Raises:
            UnavailableError: a task does not answer.
        """
        del config
        with translated():
            reset(target, containers or ())

    def __enter__(self) -> Session:
        stack = contextlib.ExitStack()
        stack.enter_context(self._graph.as_default())
        stack.enter_context(self.as_default())
        stacks: list[contextlib.ExitStack] = self.__dict__.setdefault("_contexts", [])
        stacks.append(stack)
        return self

    def __exit__(self, *exc: Any) -> None:
        self._contexts.pop().close()
        self.close()


class InteractiveSession(BaseSession):
    """A session that is the default one from its creation until it is closed."""

    def __init__(
        self, target: str = "", graph: Graph | None = None, config: ConfigProto | None = None
    ) -> None:
        super().__init__(target, graph, config)
        self._stack = contextlib.ExitStack()
        if graph is not None:
            self._stack.enter_context(graph.as_default())
        self._stack.enter_context(self.as_default())

    def close(self) -> None:
        """Close the session, which stops being the default one."""
        super().close()
        self._stack.close()
