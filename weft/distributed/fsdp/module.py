"""The methods of sharded modules."""

from __future__ import annotations

import contextlib
import functools
import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.distributed.fsdp.unit import Unit
from weft.errors import ArgumentError
from weft.nn.module.module import Module

__all__ = ["FSDPModule", "UnshardHandle", "register_fsdp_forward_method"]


class FSDPModule(Module):
    """A module that `fully_shard` has made a unit.

    Its class is a subclass of this class and of its original class.
    """

    _sharded_unit: Unit
    _sharded_place: str  # prefix of its parameters' paths in the unit

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A module of the original class, as a slice of a `Sequential` needs."""
        if not args and not kwargs:  # a copy of this module
            return super().__new__(cls)
        before = cls.__mro__[2]
        return before(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module with gathered parameters."""
        return self.call_whole(super().__call__, args, kwargs)

    def call_whole(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The result of a function that uses this module's gathered parameters."""
        unit = self._sharded_unit
        args, kwargs = unit.cast_inputs(args, kwargs)
        with unit.called() as values, self._swapped(values):
            return unit.cast_output(function(*args, **kwargs))

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather whole parameters, until `reshard` or the end of a backward pass.

        All ranks of the group call it. The gathered parameters must not be changed. Units inside
        this one are not gathered.

        Args:
            async_op: whether to only start the gather. The module's next call then uses it, or
                `wait()` of the returned handle.
        """
        unit = self._sharded_unit
        if async_op:
            unit.begin()
            return UnshardHandle(self)
        unit.close()
        values, unit.opened = unit.values(again=False), contextlib.ExitStack()
        for module in unit.modules:
            unit.opened.enter_context(module._swapped(values))
        return None

    def reshard(self) -> None:
        """Free whole parameters; each rank keeps its shards."""
        unit = self._sharded_unit
        unit.release()
        unit.close()

    def _swapped(self, values: Mapping[str, Any]) -> contextlib.AbstractContextManager[Any]:
        """Context in which the unit's values replace this module's parameters."""
        place = self._sharded_place
        own = {k[len(place) :]: x for k, x in values.items() if k.startswith(place)}
        return self.swapped(own, tie_weights=False)

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Set whether backward passes reduce gradients; if not, whole ones accumulate on each rank.

        The next backward pass that reduces gradients reduces those, too.

        Args:
            requires_gradient_sync: whether they reduce gradients.
            recurse: whether this applies to units inside this one, too.
        """
        for unit in self._units(recurse):
            unit.syncs = unit.all_reduces = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Set whether backward passes also reduce gradients along a mesh's first of two dimensions.

        If not, this rank's shards accumulate, averaged along the second dimension only, and are not
        in `.grad`; the next backward pass that reduces along both adds them.

        Args:
            requires_all_reduce: whether they reduce along the first dimension.
            recurse: whether this applies to units inside this one, too.
        """
        for unit in self._units(recurse):
            unit.all_reduces = requires_all_reduce

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Divide this unit's summed gradients by `factor` instead of the number of ranks.

        Raises:
            ArgumentError: it is not a positive number.
        """
        if not isinstance(factor, int | float) or not 0 < factor < math.inf:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError.here(
                f"set_gradient_divide_factor: expected a positive number, got {factor!r}"
            )
        for unit in self._units(recurse=False):
            unit.divisor = float(factor)

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Accepted without effect: sums and means are reduced in the same way."""

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Set whether the backward pass gathers parameters again, from all ranks.

        Args:
            reshard_after_forward: whether it gathers them.
            recurse: whether this applies to units inside this one, too.

        Raises:
            ArgumentError: an integer, which only `fully_shard` accepts.
        """
        if not isinstance(reshard_after_forward, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError.here(
                f"set_reshard_after_forward: expected a bool, got {reshard_after_forward!r}"
            )
        for unit in self._units(recurse):
            unit.again, unit.within = reshard_after_forward, None

    def set_reshard_after_backward(
        self, reshard_after_backward: bool, *, recurse: bool = True
    ) -> None:
        """Set whether whole parameters are freed after a backward pass.

        If not, they stay until they change, for backward passes whose gradients accumulate.

        Args:
            reshard_after_backward: whether they are freed.
            recurse: whether this applies to units inside this one, too.
        """
        for unit in self._units(recurse):
            unit.kept = not reshard_after_backward

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Accepted without effect: no backward pass leaves anything to do."""

    def set_modules_to_forward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Set the units to gather next when this unit is gathered in a forward pass.

        By default it is the unit that followed in the previous call; more units need more memory.

        Args:
            modules: the units.

        Raises:
            ArgumentError: a module that is not sharded.
        """
        self._sharded_unit.ahead = self._units_of(modules, "set_modules_to_forward_prefetch")

    def set_modules_to_backward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Set how many units to gather next when this unit is gathered in a backward pass.

        By default it is one. The units are those that follow in the backward pass.

        Args:
            modules: as many units; which ones is ignored.

        Raises:
            ArgumentError: a module that is not sharded.
        """
        units = self._units_of(modules, "set_modules_to_backward_prefetch")
        self._sharded_unit.ahead_backward = len(units)

    @staticmethod
    def _units_of(modules: Sequence[Module], name: str) -> list[Unit]:
        units: list[Unit] = []
        for module in modules:
            if not isinstance(module, FSDPModule):
                raise ArgumentError.here(
                    f"{name}: expected modules that are sharded, got a {type(module).__name__}"
                )
            units.append(module._sharded_unit)
        return list(dict.fromkeys(units))

    def _units(self, recurse: bool) -> list[Unit]:
        below = self.modules() if recurse else [self]
        units = [m._sharded_unit for m in below if isinstance(m, FSDPModule)]
        return list(dict.fromkeys(units))


@dataclass(frozen=True)
class UnshardHandle:
    """A gather that `unshard(async_op=True)` has started.

    Attributes:
        module: the unit whose parameters are gathered.
    """

    module: FSDPModule

    def wait(self) -> None:
        """Wait until the module has whole parameters."""
        self.module.unshard()


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Gather whole parameters for a method other than `forward`, as in `model.generate(x)`.

    Args:
        module: any module; without effect unless it is sharded.
        method_name: the name of the method.

    Raises:
        ArgumentError: the module does not have the method.
    """
    if not isinstance(module, FSDPModule):
        return
    method = getattr(module, method_name, None)
    if not callable(method):
        raise ArgumentError.here(
            f"register_fsdp_forward_method: {type(module).__name__} has no method {method_name!r}"
        )
    function = getattr(method, "__func__", method)

    @functools.wraps(function)
    def whole(self: FSDPModule, *args: Any, **kwargs: Any) -> Any:
        return self.call_whole(functools.partial(function, self), args, kwargs)

    object.__setattr__(module, method_name, types.MethodType(whole, module))
