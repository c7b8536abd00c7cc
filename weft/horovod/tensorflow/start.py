"""A check before a graph's first update that all ranks have the same variables."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Final

from weft.collectives.agreement import check_same, digests
from weft.horovod.process_set import ProcessSet
from weft.runtime.engine import State
from weft.tf1.framework.tensor import Operation
from weft.tf1.session.feed import before_first_run

_LATER: Final = "horovod_broadcast_later"


def broadcast_later(graph: Any) -> None:
    """Skip the check: variables are broadcast after the first update, as by Keras' callback."""
    graph.keys[_LATER] = True


def check_start(update: Operation, variables: Sequence[Any], process_set: ProcessSet) -> None:
    """Check, before a session first runs an update, that all ranks have the same variables.

    The error is a `DistributedError` that names a variable that differs.
    """
    seen: list[weakref.ref[State]] = []

    def check(state: State) -> None:
        if (
            any(ref() is state for ref in seen)
            or update.graph.keys.get(_LATER)
            or not process_set.included()
        ):
            return
        seen.append(weakref.ref(state))
        arrays = {v.op.name: state.get(v.key) for v in variables}
        check_same("DistributedOptimizer", process_set.group, "variables", digests(arrays))

    before_first_run(update, check)
