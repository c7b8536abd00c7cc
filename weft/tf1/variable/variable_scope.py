"""`variable_scope` and `get_variable`: variables by name, created once and shared."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from weft.documentation import Reads
from weft.errors import GraphError
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.dtypes import DType, as_dtype, float32
from weft.tf1.framework.graph import Graph, fail, get_default_graph, graph_of, name_scope
from weft.tf1.variable.store import AUTO_REUSE, VariableStore

__all__ = [
    "AUTO_REUSE", "VariableScope", "create_partitioned_variables", "get_local_variable",
    "get_variable", "get_variable_scope", "op_scope", "variable_op_scope", "variable_scope",
]  # fmt: skip


class VariableScope:
    """Defaults for `get_variable`: prefix, sharing, initializer, regularizer, type."""

    def __init__(
        self, reuse: Any, name: str = "", initializer: Any = None,
        regularizer: Callable[[Any], Any] | None = None, caching_device: Any = None,
        partitioner: Any = None, custom_getter: Callable[..., Any] | None = None,
        name_scope: str = "", dtype: Any = float32, use_resource: bool | None = None,
        constraint: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        self.caching_device = caching_device
        self._reuse = reuse
        self._name = name
        self.initializer = initializer
        self.regularizer = regularizer
        self.partitioner = partitioner
        self.custom_getter = custom_getter
        self._name_scope = name_scope
        self.dtype: DType = as_dtype(dtype)
        self.use_resource = use_resource
        self.constraint = constraint

    name = Reads[str]("_name", "The prefix of variables, without a slash.")
    original_name_scope = Reads[str](
        "_name_scope", "The name scope opened with it, with a trailing slash."
    )
    reuse = Reads[Any]("_reuse", "Whether variables are shared: `False`, `True` or `AUTO_REUSE`.")

    def reuse_variables(self) -> None:
        """Share variables from now on."""
        self._reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Set the default initializer."""
        self.initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        """Set the default regularizer."""
        self.regularizer = regularizer

    def set_partitioner(self, partitioner: Any) -> None:
        """Set the default partitioner."""
        self.partitioner = partitioner

    def set_dtype(self, dtype: Any) -> None:
        """Set the default element type."""
        self.dtype = as_dtype(dtype)

    def set_caching_device(self, caching_device: Any) -> None:
        """Set the device on which variables are read."""
        self.caching_device = caching_device

    def set_custom_getter(self, custom_getter: Any) -> None:
        """Set the function called instead of `get_variable`."""
        self.custom_getter = custom_getter

    def set_use_resource(self, use_resource: bool) -> None:
        """Accepted; reads are well ordered either way."""
        self.use_resource = use_resource

    def get_collection(self, name: str) -> list[Any]:
        """Items of a collection that belong to this scope."""
        prefix = self._name + "/" if self._name else None
        return get_default_graph().get_collection(name, prefix)

    def trainable_variables(self) -> list[Any]:
        """The trainable variables of this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        """The global variables of this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        """The local variables of this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def derived(self, **changes: Any) -> VariableScope:
        """A copy of the scope with some settings changed."""
        settings: dict[str, Any] = {
            "reuse": self._reuse, "name": self._name, "initializer": self.initializer,
            "regularizer": self.regularizer, "partitioner": self.partitioner,
            "custom_getter": self.custom_getter,
            "name_scope": self._name_scope, "dtype": self.dtype,
            "use_resource": self.use_resource, "constraint": self.constraint,
            "caching_device": self.caching_device,
        }  # fmt: skip
        settings.update(changes)
        return VariableScope(**settings)


class _Store(VariableStore):
    """The variables of a graph by name, the current scope, and how often each scope was opened."""

    def __init__(self) -> None:
        super().__init__()
        self.scope = VariableScope(False)
        self.counts: dict[str, int] = {}

    def opened(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1
        self.forget_inside(name)

    def forget_inside(self, name: str) -> None:
        for key in self.counts:
            if not name or key.startswith(name + "/"):
                self.counts[key] = 0

    def unique(self, prefix: str) -> str:
        base = f"{self.scope.name}/{prefix}" if self.scope.name else prefix
        if not self.counts.get(base, 0):
            return prefix
        index = 1
        while self.counts.get(f"{base}_{index}", 0):
            index += 1
        return f"{prefix}_{index}"


def _store(graph: Graph | None = None) -> _Store:
    graph = graph or get_default_graph()
    if graph.variable_scopes is None:
        graph.variable_scopes = _Store()
    return graph.variable_scopes


def get_variable_scope() -> VariableScope:
    """The current scope."""
    return _store().scope


@contextlib.contextmanager
def variable_scope(
    name_or_scope: Any, default_name: str | None = None, values: Sequence[Any] | None = None,
    initializer: Any = None, regularizer: Callable[[Any], Any] | None = None,
    caching_device: Any = None, partitioner: Any = None,
    custom_getter: Callable[..., Any] | None = None, reuse: Any = None, dtype: Any = None,
    use_resource: bool | None = None, constraint: Callable[[Any], Any] | None = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:  # fmt: skip
    """Prefix variables of `get_variable` inside, and operations too.

    Args:
        name_or_scope: a name, a scope to re-enter, or `None` for a unique `default_name`.
        default_name: used if `name_or_scope` is `None`, made unique.
        values: their graph is used.
        initializer, regularizer, caching_device, partitioner, custom_getter, dtype, use_resource,
            constraint: defaults inside.
        reuse: `True` shares existing variables, `AUTO_REUSE` also creates missing ones; `None` or
            `False` inherits.
        auxiliary_name_scope: whether operations are prefixed too.
    """
    if partitioner is not None and not callable(partitioner):
        text = f"variable_scope: expected a function as partitioner, got {partitioner!r}"
        raise fail(GraphError, text)
    if name_or_scope is None and default_name is None:
        raise fail(GraphError, "variable_scope: expected a name or a default_name")
    if name_or_scope is None and reuse:
        raise fail(GraphError, "variable_scope: reuse needs a name, default_name is always fresh")
    graph = graph_of(values)
    changes = {
        "initializer": initializer, "regularizer": regularizer, "partitioner": partitioner,
        "custom_getter": custom_getter, "dtype": dtype, "use_resource": use_resource,
        "constraint": constraint, "caching_device": caching_device,
    }  # fmt: skip
    given = {key: value for key, value in changes.items() if value is not None}
    with graph.as_default():
        store = _store(graph)
        if name_or_scope is None:
            name_or_scope = store.unique(str(default_name))
        with (
            _name_scope_for(name_or_scope, auxiliary_name_scope) as scope,
            _entered(store, name_or_scope, scope, reuse, given) as inside,
        ):
            yield inside


@contextlib.contextmanager
def _name_scope_for(name_or_scope: Any, auxiliary: bool) -> Iterator[str]:
    graph = get_default_graph()
    if not auxiliary:
        yield graph.scope
        return
    name = name_or_scope
    if isinstance(name, VariableScope):
        name = name.name.rsplit("/", 1)[-1]
    if not name:
        yield graph.scope
        return
    with graph.name_scope(name) as scope:
        yield scope


@contextlib.contextmanager
def _entered(
    store: _Store, name_or_scope: Any, scope: str, reuse: Any, given: dict[str, Any]
) -> Iterator[VariableScope]:
    before, counts = store.scope, dict(store.counts)
    if isinstance(name_or_scope, VariableScope):
        name = name_or_scope.name
        store.scope = name_or_scope.derived(reuse=reuse or name_or_scope.reuse, **given)
    else:
        name = f"{before.name}/{name_or_scope}" if before.name else str(name_or_scope)
        name = name if name_or_scope else before.name
        store.scope = before.derived(
            name=name, name_scope=scope, reuse=reuse or before.reuse, **_merged(before, given)
        )
        store.opened(name)
    try:
        yield store.scope
    finally:
        if isinstance(name_or_scope, VariableScope):
            store.counts = counts
        else:
            store.forget_inside(name)
        store.scope = before


def _merged(before: VariableScope, given: dict[str, Any]) -> dict[str, Any]:
    """The settings of an inner scope; custom getters nest."""
    inner, outer = given.get("custom_getter"), before.custom_getter
    if inner is None or outer is None:
        return given

    def both(getter: Callable[..., Any], *args: Any, **options: Any) -> Any:
        def through(*more: Any, **others: Any) -> Any:
            return outer(getter, *more, **others)

        return inner(through, *args, **options)

    return {**given, "custom_getter": both}


variable_op_scope = variable_scope


def get_variable(
    name: str, shape: Any = None, dtype: Any = None, initializer: Any = None,
    regularizer: Callable[[Any], Any] | None = None, trainable: bool | None = None,
    collections: Sequence[str] | None = None, caching_device: Any = None, partitioner: Any = None,
    validate_shape: bool = True, use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None, constraint: Callable[[Any], Any] | None = None,
    synchronization: Any = None, aggregation: Any = None,
) -> Any:  # fmt: skip
    """The variable `name` in the current scope: created, or shared if the scope says so.

    Args:
        name: its name; the scope's is put before it.
        shape: its shape, unless the initializer is a value.
        dtype: its element type; the scope's by default, which is float32.
        initializer: a function of shape and dtype, or a value; glorot_uniform by default.
        regularizer: a function of the variable, whose result is added to `REGULARIZATION_LOSSES`.
        trainable, collections, caching_device, validate_shape, use_resource, constraint: see
            `Variable`.
        partitioner: a function from shape and type to the number of parts along each axis, of
            which one may be above 1: the result is then a `PartitionedVariable`.
        synchronization, aggregation: accepted for old programs.
        custom_getter: called with the real getter and these arguments.

    Raises:
        GraphError: it exists and sharing is off, or it is missing and sharing is required.
        ShapeError: it exists with another shape.
    """
    del synchronization, aggregation
    scope = get_variable_scope()
    getter = custom_getter or scope.custom_getter
    options: dict[str, Any] = {
        "shape": shape,
        "dtype": scope.dtype if dtype is None else as_dtype(dtype).base_dtype,
        "initializer": initializer if initializer is not None else scope.initializer,
        "regularizer": regularizer if regularizer is not None else scope.regularizer,
        "reuse": scope.reuse,
        "trainable": trainable,
        "collections": collections,
        "caching_device": scope.caching_device if caching_device is None else caching_device,
        "partitioner": partitioner if partitioner is not None else scope.partitioner,
        "validate_shape": validate_shape,
        "use_resource": use_resource,
        "constraint": constraint if constraint is not None else scope.constraint,
    }
    if dtype is None and initializer is not None and not callable(initializer):
        options["dtype"] = None
    full = f"{scope.name}/{name}" if scope.name else name
    with name_scope(""):
        if getter is not None:
            return getter(_store().get, full, **options)
        return _store().get(full, **options)


def get_local_variable(name: str, *args: Any, **options: Any) -> Any:
    """`get_variable` for a local variable: not trainable, in `LOCAL_VARIABLES`."""
    options["trainable"] = False
    options["collections"] = [*(options.get("collections") or ()), GraphKeys.LOCAL_VARIABLES]
    return get_variable(name, *args, **options)


def create_partitioned_variables(
    shape: Sequence[int], slicing: Sequence[int], initializer: Any, dtype: Any = float32,
    trainable: bool = True, collections: Sequence[str] | None = None, name: str | None = None,
    reuse: Any = None,
) -> list[Any]:  # fmt: skip
    """The parts of a variable, as a list: `get_variable` with a partitioner does the same.

    Args:
        shape: the shape of the whole.
        slicing: the number of parts along each axis, of which one may be above 1.
        initializer: a function of shape and dtype, or the whole value.
        dtype: its element type.
        trainable, collections: as in `Variable`.
        name: of the scope in which they are.
        reuse: as in `variable_scope`.

    Raises:
        GraphError: `slicing` does not fit.
    """
    if len(shape) != len(slicing) or not shape:
        text = f"expected a number of parts for each axis of {list(shape)}, got {list(slicing)}"
        raise fail(GraphError, f"create_partitioned_variables: {text}")
    with variable_scope(name, "PartitionedVariable", reuse=reuse) as scope, name_scope(""):
        made = _store().get(
            scope.name, shape=list(shape), dtype=as_dtype(dtype), initializer=initializer,
            partitioner=lambda **_: list(slicing), reuse=scope.reuse, trainable=trainable,
            collections=collections,
        )  # fmt: skip
        return list(made)


def op_scope(
    values: Iterable[Any], name: str | None, default_name: str | None = None
) -> contextlib.AbstractContextManager[str]:
    """`name_scope` with its arguments in an older order."""
    return name_scope(name, default_name, values)
