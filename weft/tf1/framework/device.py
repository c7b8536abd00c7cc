"""Where operations are put as they are built: `tf.device` and `tf.colocate_with`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from weft.errors import ArgumentError, at_user_line
from weft.ir.device import EVERY, DeviceName
from weft.ir.graph import Graph as IRGraph
from weft.ir.node import Node
from weft.tf1.framework.device_spec import DeviceSpec, parse
from weft.tf1.framework.tensor import Operation

Choice = Callable[[Operation], Any]
"""A device function: from an operation to a name, a `DeviceSpec` or `None`."""
GROUP: Final = b"loc:@"


class Scopes(NamedTuple):
    """The `tf.device` scopes around an operation.

    Attributes:
        layers: names and functions, the outermost first, down from the last `None`.
        merged: the name that they amount to; `None` if a function decides.
    """

    layers: tuple[DeviceName | Choice, ...] = ()
    merged: str | None = ""

    def within(self, given: Any) -> Scopes:
        """The same with one more scope inside."""
        if given is None:
            return _OUTSIDE
        layer = _layer(given)
        if layer == EVERY:
            return self
        merged = None
        if isinstance(layer, DeviceName) and self.merged is not None:
            merged = str(DeviceName.parse(self.merged).merged(layer))
        return Scopes((*self.layers, layer), merged)

    def choose(self, op: Operation) -> str:
        """The device of a new operation; functions see what scopes inside of theirs chose."""
        if self.merged is not None:
            return self.merged
        for layer in reversed(self.layers):
            if isinstance(layer, DeviceName):
                op.place(str(layer.merged(parse(op.device))))
            else:
                op.place(_chosen(layer(op), op.device))
        return op.device


_OUTSIDE: Final = Scopes()


def _layer(given: Any) -> DeviceName | Choice:
    if isinstance(given, DeviceSpec):
        return given.as_name()
    return given if callable(given) else parse(given)


def _chosen(found: Any, before: str) -> str:
    """What a device function returned, as a name; `None` leaves the device as it is."""
    if found is None:
        return before
    if isinstance(found, DeviceSpec):
        return found.to_string()
    if isinstance(found, bytes):
        found = found.decode()
    if not isinstance(found, str):
        raise ArgumentError(
            f"device: expected the function to return a text, a tf.DeviceSpec or None, "
            f"got {found!r}{at_user_line()}"
        )
    return found


class Devices:
    """The devices and the colocation groups of a graph's operations."""

    ir: IRGraph
    _local: threading.local
    _operations: dict[str, Operation]

    @contextlib.contextmanager
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """Operations built inside are put on a device; parts that it leaves open are from outside.

        Args:
            device_name_or_function: a name such as `/job:ps/cpu:0`, a `tf.DeviceSpec`, a function
                from an operation to one of these, or `None`, which clears what is around.

        Raises:
            ArgumentError: no device has such a name; or the scope ends before one inside of it.
        """
        before = self._scopes
        inside = self._local.devices = before.within(device_name_or_function)
        try:
            yield
        finally:
            if self._scopes is not inside:
                raise ArgumentError.here("device: scopes must end in the order opposite to theirs")
            self._local.devices = before

    @contextlib.contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Operations built inside are put where another one is, whatever `device` says around.

        Args:
            op: an operation, tensor or variable; `None` clears what is around.
            ignore_existing: whether not to be put with those of `colocate_with` around.

        Raises:
            ArgumentError: `None` without `ignore_existing`.
        """
        if op is None and not ignore_existing:
            raise ArgumentError(
                "colocate_with: expected an operation, got None, which needs ignore_existing=True"
                + at_user_line()
            )
        scopes, leaders = self._scopes, self._leaders
        self._local.devices = _OUTSIDE
        new = () if op is None else (operation_of(op),)
        self._local.leaders = (*(() if ignore_existing else leaders), *new)
        try:
            yield
        finally:
            self._local.devices, self._local.leaders = scopes, leaders

    @contextlib.contextmanager
    def grouped(self, name: str | None) -> Iterator[None]:
        """Operations built inside are in the colocation group of an operation to be built.

        Args:
            name: what it will be called; `None` changes nothing.
        """
        before = self._own
        self._local.own = before if name is None else [GROUP + name.encode()]
        try:
            yield
        finally:
            self._local.own = before

    @property
    def _own(self) -> list[bytes]:
        return getattr(self._local, "own", [])

    @property
    def _scopes(self) -> Scopes:
        return getattr(self._local, "devices", _OUTSIDE)

    @property
    def _leaders(self) -> tuple[Operation, ...]:
        """The operations to be colocated with, the innermost last."""
        return getattr(self._local, "leaders", ())

    def _place(self, op: Operation, changed: Iterable[Operation] = ()) -> tuple[Operation, ...]:
        """Gives a new operation its device and groups; returns whom it is colocated with.

        Args:
            op: the operation, of which the nodes are not built yet.
            changed: operations of the variables that it changes; it is put with them.
        """
        leaders = (*self._leaders, *changed)
        device = "" if changed else self._scopes.choose(op)
        if leaders:
            device = next((x.device for x in reversed(leaders) if x.device), device)
        op.place(device, groups_of(leaders) or self._own)
        return leaders

    def _groups_of(self, node: Node) -> list[bytes]:
        """The groups of a node that a transformation created."""
        names = [self.owner(x.name) for x in self.ir.colocations.get(node, ())]
        return sorted({GROUP + name.encode() for name in names})

    def owner(self, name: str) -> str:
        """The name of the operation that a node with this name is of."""
        while name not in self._operations and "/" in name:
            name = name.rpartition("/")[0]
        return name

    def operation_of(self, name: str) -> Operation | None:
        """The operation that a node with this name is of; `None` if a pass has made the node."""
        return self._operations.get(self.owner(name))

    def _colocate(self, nodes: Iterable[Node], leaders: Iterable[Operation]) -> None:
        """Puts the nodes of a new operation where others' nodes are."""
        names = [group[len(GROUP) :].decode() for group in groups_of(leaders)]
        found = [self._operations[name] for name in names if name in self._operations]
        self.ir.colocate(nodes, [node for op in found for node in op.nodes[:1]])


def groups_of(leaders: Iterable[Operation]) -> list[bytes]:
    """The colocation groups of operations, sorted."""
    return sorted({group for leader in leaders for group in leader.colocation_groups()})


def operation_of(given: Any) -> Operation:
    """The operation of an operation, a tensor or a variable.

    Raises:
        ArgumentError: it is none of these.
    """
    op: Any = given if isinstance(given, Operation) else getattr(given, "op", None)
    if not isinstance(op, Operation):
        raise ArgumentError(
            f"colocate_with: expected an operation, a tensor or a variable, got {given!r}"
            f"{at_user_line()}"
        )
    return op
