"""Plans of runs: what is computed for some fetches and keys of feeds, made once for all runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from weft.ir.node import Value
from weft.passes.phase import has_host_nodes
from weft.passes.step import Request, unread
from weft.resource.base import Cancellation
from weft.runtime.phased import Phased
from weft.tf1.errors import InvalidArgumentError, translated
from weft.tf1.framework.graph import Graph
from weft.tf1.session.backend import Backend
from weft.tf1.session.feed import (
    Feed,
    Implicit,
    check_first_run,
    check_one_of,
    implicit_feeds,
)  # fmt: skip
from weft.tf1.session.fetch import Fetch


class Plan:
    """The plan of a run with these fetches and feed keys.

    Attributes:
        function: takes the arrays of all feeds, and the state.
        build: makes the result in the nesting of the fetches.
        plain: whether nothing but the given feeds is fed, and no variable is fetched.
        direct: whether the list of arrays is the result itself.
        epoch: of the graph for which it holds.
    """

    __slots__ = ("build", "direct", "epoch", "feeds", "function", "implicit", "phased",
                 "plain", "reads_variables")  # fmt: skip

    def __init__(
        self, function: Any, fetch: Fetch, feeds: list[Feed], implicit: list[Implicit], epoch: int,
        direct: bool,
    ) -> None:  # fmt: skip
        self.function = function
        self.phased = isinstance(function, Phased)
        self.build = fetch.build
        self.reads_variables = fetch.reads_variables
        self.feeds = feeds
        self.implicit = implicit
        self.epoch = epoch
        self.direct = direct
        self.plain = not (self.implicit or self.reads_variables)

    def fed(self, given: list[Any], state: Any) -> list[Any]:
        """All feeds: the given arrays, and what the session feeds itself."""
        return given + [item.value(state) for item in self.implicit]


def planned(
    graph: Graph, fetches: Any, feed_keys: Sequence[Any], backend: Backend, state: Any,
    cancellation: Cancellation,
) -> Plan:  # fmt: skip
    """The plan of runs of these fetches with feeds for these keys.

    Args:
        backend: computes what programs do, and calls resources.
        state: variables before the first run.
        cancellation: ends what the runs wait for.

    Raises:
        WeftError: what is fetched or fed is not in the graph, or a feed is missing.
    """
    feeds = [Feed(graph, key) for key in feed_keys]
    _refuse_twice(feeds)
    fed = [feed.tensor.value for feed in feeds]
    fetch = Fetch(graph, fetches, fed)
    roots = [*(v.node for v in fetch.values if v not in fed), *fetch.targets]
    with translated():
        check_first_run(graph, roots, state)
        check_one_of(graph, roots)
        implicit = implicit_feeds(graph, roots, fed)
        fed.extend(item.placeholder for item in implicit)
        request = Request(graph.ir, fetch.values, fetch.targets, tuple(fed))
        more = unread(request)
        request = replace(request, fetches=(*request.fetches, *more))
        function = _function(request, backend, cancellation)
    return Plan(function, fetch, feeds, implicit, graph.epoch, fetch.direct and not more)


def _function(request: Request, backend: Backend, cancellation: Cancellation) -> Any:
    """A part of the graph, ready to run: by the backend alone, or in phases."""
    if not has_host_nodes(request, backend.apart):
        return backend.function(request)
    return Phased(request, backend.function, backend.call, cancellation, backend.apart)


def _refuse_twice(feeds: Sequence[Feed]) -> None:
    seen: set[Value] = set()
    for feed in feeds:
        if feed.tensor.value in seen:
            raise InvalidArgumentError(None, None, f"{feed.tensor.name}: fed twice")
        seen.add(feed.tensor.value)
