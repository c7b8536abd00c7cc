"""Sessions: running parts of a graph. A repeated run is a lookup and one call of the engine."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, Final

from numpy import ndarray

from weft.cluster.timeline import recorded
from weft.documentation import Reads
from weft.errors import CancelledError, DTypeError, GraphError, WeftError
from weft.library.first_runs import FirstRuns
from weft.passes.placement.explanation import PlacementExplanation
from weft.resource.base import Cancellation
from weft.resource.limit import current, time_limit
from weft.runtime import phase_time
from weft.runtime.device.base import DeviceAttributes
from weft.runtime.engine import State
from weft.runtime.executable import Executable
from weft.runtime.explanation import Explanation
from weft.runtime.flight import new_lock
from weft.runtime.measurement import profile
from weft.runtime.memory.distant import values_of
from weft.tf1.errors import (
    ClosedSessionError,
    FailedPreconditionError,
    OpError,
    translate,
    translated,
)
from weft.tf1.framework.defaults import Defaults
from weft.tf1.framework.graph import Graph, get_default_graph
from weft.tf1.framework.sparse_tensor import spread_feeds
from weft.tf1.framework.tensor import HOOKS
from weft.tf1.session.choice import backend_for
from weft.tf1.session.fetch import structure_key
from weft.tf1.session.options import ConfigProto
from weft.tf1.session.plan import Plan, planned
from weft.tf1.session.tracing import RunMetadata, RunOptions
from weft.tf1.variable.variable import Variable

__all__ = ["get_default_session"]

_NOTHING: Mapping[Any, Any] = {}


class BaseSession:
    """Runs operations of one graph over one set of variable values."""

    def __init__(
        self, target: str = "", graph: Graph | None = None, config: ConfigProto | None = None
    ) -> None:
        if graph is not None and not isinstance(graph, Graph):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DTypeError(f"Session: expected graph to be a tf.Graph, got {graph!r}")
        if config is not None and not hasattr(config, "intra_op_parallelism_threads"):
            raise DTypeError(f"Session: expected config to be a tf.ConfigProto, got {config!r}")
        self._target = target
        self._seconds = 0.0 if config is None else config.operation_timeout_in_ms / 1000
        self._graph = get_default_graph() if graph is None else graph
        self._backend = backend_for(target, config, self._graph)
        self._state: Any = self._backend.state
        self._plans: dict[Any, Plan] = {}
        self._lock = new_lock()
        self._cancellation = Cancellation()  # of what runs wait for
        self._children: weakref.WeakSet[BaseSession] = weakref.WeakSet()
        self._closed = False

    graph = Reads[Graph]("_graph", "The graph that the session runs.")
    graph_def = Reads[Graph]("_graph", "The graph itself, which prints as text.")
    sess_str = Reads[str]("_target", "The execution target: always this process.")
    state = Reads[State]("_state", "The values of the variables, by name.")

    def run(
        self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None,
        options: RunOptions | None = None, run_metadata: RunMetadata | None = None,
    ) -> Any:  # fmt: skip
        """Compute `fetches`.

        Args:
            fetches: a tensor, operation, variable or name, or any nesting of lists, tuples, dicts
                and namedtuples of them.
            feed_dict: values for tensors, by tensor or name; any tensor may be fed.
            options: with a `trace_level`, kernels are timed; `timeout_in_ms` limits the run.
            run_metadata: receives these times.

        A fetched variable gives its value at the end of the step; tensors computed from it see its
        value before the step, unless control dependencies say otherwise.

        Returns:
            Arrays (NumPy scalars for rank 0) in the nesting of `fetches`; `None` for operations.

        Raises:
            InvalidArgumentError: a feed is missing or does not fit.
            FailedPreconditionError: a variable has no value yet.
            DeadlineExceededError: it waited longer than its limit.
            ClosedSessionError: the session is closed.
        """
        if options is not None or (self._seconds and current() is None):
            return self._run_with(options, fetches, feed_dict, run_metadata)
        feeds = feed_dict or _NOTHING
        kind = fetches.__class__
        try:
            if kind is list or kind is tuple:
                plan = self._plans[(kind, *fetches, None, *feeds)]
            else:
                plan = self._plans[(kind, fetches, None, *feeds)]
            if plan.epoch != self._graph.epoch:
                raise KeyError
        except (KeyError, TypeError):
            feeds = spread_feeds(feeds)
            plan = self._find_plan(fetches, feeds)
        arrays: list[Any] = []  # a comprehension would cost a frame
        for feed, value in zip(plan.feeds, feeds.values()):  # noqa: B905 -- equal by the key
            # an array of the right type is used as it is: the engine knows which shapes fit
            if value.__class__ is ndarray and value.dtype is feed.numpy:
                arrays.append(value)
            else:
                arrays.append(feed.convert(value))
        try:
            if not plan.plain:
                return self._run_with_state(plan, arrays)
            results = plan.function(arrays, self._state)
        except WeftError as error:
            translated = self._translated(error)
            if translated is error:
                raise
            raise translated from error
        return results if plan.direct else plan.build(results, self)

    def _translated(self, error: WeftError) -> WeftError:
        """TensorFlow's exception for an error of a run, which tells the operation."""
        translated = translate(error)
        if isinstance(translated, OpError) and error.node is not None:
            translated.op = self._graph.operation_of(error.node)
        return translated

    def _run_with_state(self, plan: Plan, given: list[Any]) -> Any:
        """A run that feeds or fetches something of the state."""
        arrays = plan.fed(given, self._state)
        if plan.reads_variables and not plan.phased:  # a variable's value at the end of the step
            with self._state.lock:
                return plan.build(plan.function(arrays, self._state), self)
        return plan.build(plan.function(arrays, self._state), self)

    def _run_with(
        self, options: RunOptions | None, fetches: Any, feed_dict: Any, run_metadata: Any
    ) -> Any:
        """A run with a limit of time, or whose kernels are timed."""
        seconds = options.timeout_in_ms / 1000 if options is not None else 0.0
        traced = options is not None and options.trace_level
        with time_limit(seconds or self._seconds) as limit:
            try:
                if run_metadata is not None and traced:
                    return self._traced(run_metadata, fetches, feed_dict)
                return self.run(fetches, feed_dict)
            except CancelledError as error:  # a queue tells that it was cancelled, not why
                if limit is None or not limit.cancelled:
                    raise
                raise translate(limit.late()) from error

    def _traced(self, run_metadata: RunMetadata, fetches: Any, feed_dict: Any) -> Any:
        """A run whose kernels are timed."""
        programs, phases = profile.watchers, phase_time.watchers
        with programs.watch() as runs, phases.watch() as times, recorded() as timeline:
            found = self.run(fetches, feed_dict)
        run_metadata.timeline = timeline
        run_metadata.take(runs, times, {op.name for op in self._graph.get_operations()})
        return found

    def _find_plan(self, fetches: Any, feeds: Mapping[Any, Any]) -> Plan:
        """The plan of a run that the fast lookup did not find; made if needed."""
        if self._closed:
            raise ClosedSessionError("session: expected an open session, got a closed one")
        if not isinstance(feeds, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DTypeError(f"feed_dict: expected a dict, got {type(feeds).__name__}")
        key = (structure_key(fetches), tuple(feeds))
        with self._lock:
            plan = self._plans.get(key)
            if plan is None or plan.epoch != self._graph.epoch:
                plan = planned(
                    self._graph, fetches, tuple(feeds), self._backend, self._state,
                    self._cancellation,
                )  # fmt: skip
                self._plans[key] = plan
                self._remember(fetches, feeds, plan)
        return plan

    def _remember(self, fetches: Any, feeds: Mapping[Any, Any], plan: Plan) -> None:
        """Store the plan under the key that `run` builds, if that key is sufficient."""
        kind = type(fetches)
        if kind is list or kind is tuple:
            if not any(isinstance(item, tuple) for item in fetches):
                with contextlib.suppress(TypeError):
                    self._plans[(kind, *fetches, None, *feeds)] = plan
        elif not isinstance(fetches, tuple):
            with contextlib.suppress(TypeError):
                self._plans[(kind, fetches, None, *feeds)] = plan

    def profile(
        self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, runs: int = 5
    ) -> str:
        """A report of a run's time and memory; runs it `runs` times."""
        plan, arrays = self._prepare(fetches, feed_dict or {})
        return plan.function.profile(arrays, self._state, runs)

    def explain(
        self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None
    ) -> Explanation | PlacementExplanation:
        """What the compiler makes of a run, as an object that prints well; it is not run.

        On several devices: where each node is and why, and what is sent between the stages of
        the devices.
        """
        plan, arrays = self._prepare(fetches, feed_dict or {})
        return plan.function.explain(arrays, self._state)

    def program(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Executable:
        """The compiled program of a run: its graph, calls and memory."""
        plan, arrays = self._prepare(fetches, feed_dict or {})
        found = plan.function.program(arrays, self._state)
        return found.compiled() if isinstance(found, FirstRuns) else found

    def _prepare(self, fetches: Any, feeds: Mapping[Any, Any]) -> tuple[Plan, list[Any]]:
        plan = self._find_plan(fetches, feeds)
        arrays = [f.convert(v) for f, v in zip(plan.feeds, feeds.values(), strict=True)]
        return plan, plan.fed(arrays, self._state)

    @translated()
    def value_of(self, variable: Variable) -> Any:
        """The current value of a variable.

        Raises:
            FailedPreconditionError: it is not initialized.
        """
        found = values_of(self._state, [variable.key])
        if not found:
            raise FailedPreconditionError(
                None,
                variable.op,
                f"variable {variable.key!r} is used before it has a value; run its initializer "
                f"first: {variable.handle.node.describe()}",
            )
        array = found[variable.key]
        return array if array.ndim else array[()]

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function of the values for `feed_list`, in order, that returns `fetches`."""
        if feed_list is not None and not isinstance(feed_list, list | tuple):
            raise DTypeError(f"feed_list: expected a list, got {feed_list!r}")
        del accept_options
        keys = tuple(feed_list or ())
        self._find_plan(fetches, dict.fromkeys(keys))

        def call(
            *values: Any, options: RunOptions | None = None, run_metadata: RunMetadata | None = None
        ) -> Any:
            if len(values) != len(keys):
                raise GraphError(f"callable: expected {len(keys)} values, got {len(values)}")
            feeds = dict(zip(keys, values, strict=True))
            return self.run(fetches, feeds, options, run_metadata)

        return call

    def list_devices(self) -> list[DeviceAttributes]:
        """All devices: their `name`, `device_type`, `memory_limit_bytes` and `incarnation`."""
        return self._backend.devices()

    def child(self) -> BaseSession:
        """A session of the same variables and devices, of which `give_up` ends what waits."""
        found = copy(self)
        found._plans, found._lock = {}, new_lock()
        found._cancellation = Cancellation(self._cancellation)
        self._children.add(found)
        return found

    def give_up(self) -> None:
        """End the runs that wait for queues and the like; none can wait any more."""
        self._cancellation.cancel(CancelledError("the run was given up while it waited"))

    def with_state(self, state: State) -> BaseSession:
        """A session of the same plans over other values of variables and counters."""
        found = copy(self)
        found._state = state
        return found

    def close(self) -> None:
        """End the runs that wait, and free the variables; the session cannot run any more."""
        self._closed = True
        self._cancellation.cancel()
        for child in list(self._children):
            child._closed, child._plans = True, {}
        self._plans = {}
        self._backend.close()
        self._state = self._backend.state

    def as_default(self) -> contextlib.AbstractContextManager[BaseSession]:
        """Make this the session of `eval()` and `run()`, in a `with` block."""
        return sessions.within(self)


sessions: Final[Defaults[BaseSession]] = Defaults()


def get_default_session() -> Any:
    """The innermost default session of this thread, or `None`."""
    return sessions.stack[-1] if sessions.stack else None


HOOKS.default_session = get_default_session
