"""`tf.train.Scaffold`: what a session needs besides the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.errors import DTypeError, GraphError
from weft.tf1 import logging
from weft.tf1.control.dependency import group
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.default_graph import add_to_collection, get_collection
from weft.tf1.framework.graph import fail, get_default_graph
from weft.tf1.framework.tensor import Operation
from weft.tf1.summary.operation import merge_all
from weft.tf1.train.saver import Saver
from weft.tf1.variable.variable_list import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
)

_PARTS = (
    "init_op", "init_feed_dict", "ready_op", "ready_for_local_init_op", "local_init_op",
    "local_init_feed_dict", "summary_op", "saver",
)  # fmt: skip


def _local_init() -> Operation:
    tables = get_collection(GraphKeys.TABLE_INITIALIZERS)
    return group(local_variables_initializer(), *tables, name="group_local_init")


class Scaffold:
    """The initialization operations of a session, its saver and its summary.

    Missing ones are taken from the graph's collections or created with the session.

    Args:
        init_op: initializes variables, if no checkpoint does.
        init_feed_dict: feeds for `init_op`.
        init_fn: called after `init_op` as `init_fn(scaffold, session)`.
        ready_op: gives the names of uninitialized variables.
        ready_for_local_init_op: the same, for the inputs of `local_init_op`.
        local_init_op: initializes what checkpoints do not contain: local variables, and iterators
            in `GraphKeys.TABLE_INITIALIZERS`.
        summary_op: a summary; by default all summaries of the graph.
        saver: by default the only one in `GraphKeys.SAVERS`, or a new one for all global variables.
        copy_from_scaffold: provides what is not given.
        local_init_feed_dict: feeds for `local_init_op`.
    """

    def __init__(
        self, init_op: Any = None, init_feed_dict: Any = None,
        init_fn: Callable[[Scaffold, Any], Any] | None = None, ready_op: Any = None,
        ready_for_local_init_op: Any = None, local_init_op: Any = None, summary_op: Any = None,
        saver: Saver | None = None, copy_from_scaffold: Scaffold | None = None,
        local_init_feed_dict: Any = None,
    ) -> None:  # fmt: skip
        self.init_op, self.init_feed_dict = init_op, init_feed_dict
        self.ready_op, self.ready_for_local_init_op = ready_op, ready_for_local_init_op
        self.local_init_op, self.local_init_feed_dict = local_init_op, local_init_feed_dict
        self.summary_op, self.saver = summary_op, saver
        self._init_fn = init_fn
        if copy_from_scaffold is not None:
            self._take(copy_from_scaffold)

    def _take(self, other: Any) -> None:
        if not isinstance(other, Scaffold):
            raise fail(
                DTypeError, f"Scaffold: copy_from_scaffold is not a Scaffold instance: {other!r}"
            )
        for part in _PARTS:
            if getattr(self, part) is None:
                setattr(self, part, getattr(other, part))
        self._init_fn = self._init_fn or other._init_fn

    @property
    def init_fn(self) -> Callable[[Any], Any] | None:
        """The function after `init_op`, of the session alone."""
        chosen = self._init_fn
        return None if chosen is None else lambda session: chosen(self, session)

    def finalize(self) -> Scaffold:
        """Create what is missing, and finalize the graph."""
        self._make("init_op", GraphKeys.INIT_OP, global_variables_initializer)
        self._make("ready_op", GraphKeys.READY_OP, report_uninitialized_variables)
        self._make(
            "ready_for_local_init_op",
            GraphKeys.READY_FOR_LOCAL_INIT_OP,
            lambda: report_uninitialized_variables(global_variables()),
        )
        self._make("local_init_op", GraphKeys.LOCAL_INIT_OP, _local_init)
        self._make("summary_op", GraphKeys.SUMMARY_OP, merge_all)
        self._make("saver", GraphKeys.SAVERS, lambda: Saver(allow_empty=True))
        get_default_graph().finalize()
        logging.info("Graph was finalized.")
        return self

    def _make(self, part: str, key: str, default: Callable[[], Any]) -> None:
        if getattr(self, part) is None:
            setattr(self, part, self.get_or_default(part, key, default))

    @staticmethod
    def get_or_default(
        arg_name: str, collection_key: str, default_constructor: Callable[[], Any]
    ) -> Any:
        """The only element of a collection, created and added if there is none.

        Raises:
            GraphError: the collection has several.
        """
        found = get_collection(collection_key)
        if len(found) > 1:
            raise fail(
                GraphError,
                f"Scaffold: More than one item in the collection {collection_key!r}, found "
                f"{len(found)}; choose one, as Scaffold({arg_name}=...)",
            )
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Operation:
        """The operation that initializes local variables and iterators."""
        return _local_init()
