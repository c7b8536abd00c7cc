"""A module that is sharded: what it can do besides."""

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
from weft.ir.node import at_user_line
from weft.nn.module.module import Module

__all__ = ["FSDPModule", "UnshardHandle", "register_fsdp_forward_method"]


class FSDPModule(Module):
    """A module that `fully_shard` has made a unit: what it can do besides.

    Its class is a subclass of this one and of what it was before.
    """

    _sharded_unit: Unit
    _sharded_place: str  # before the paths of its parameters in the unit

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A module of its class before: what a slice of a `Sequential` makes."""
        if not args and not kwargs:  # a copy
            return super().__new__(cls)
        before = cls.__mro__[2]
        return before(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module with whole parameters."""
        return self.call_whole(super().__call__, args, kwargs)

    def call_whole(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The result of a function that computes with this module's parameters."""
        unit = self._sharded_unit
        args, kwargs = unit.cast_inputs(args, kwargs)
        with unit.called() as values, self._swapped(values):
            return unit.cast_output(function(*args, **kwargs))

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Have whole parameters in their places until `reshard`, or until gradients are there.

        All ranks of the group call it. What is there is not to be changed. Units below stay as they
        are. With `async_op` it is only on its way: the module's next call takes it, or `wait()` of
        the handle that is returned puts it in its place.
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
        """Keep whole parameters no longer."""
        unit = self._sharded_unit
        unit.release()
        unit.close()

    def _swapped(self, values: Mapping[str, Any]) -> contextlib.AbstractContextManager[Any]:
        """Inside, the unit's values stand for this module's parameters."""
        place = self._sharded_place
        own = {k[len(place) :]: x for k, x in values.items() if k.startswith(place)}
        return self.swapped(own, tie_weights=False)

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Whether backward passes reduce gradients; if not, whole ones add up on each rank.

        The next backward pass that reduces gradients reduces those, too.
        """
        for unit in self._units(recurse):
            unit.syncs = unit.all_reduces = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether backward passes reduce gradients along the first dimension of a mesh of two.

        If not, this rank's parts of them add up, averaged along the second alone, and are not in
        `.grad`; the next backward pass that reduces them along both adds them.
        """
        for unit in self._units(recurse):
            unit.all_reduces = requires_all_reduce

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Have this unit's gradients be sums over ranks divided by a number other than of ranks.

        Raises:
            ArgumentError: it is no positive number.
        """
        if not isinstance(factor, int | float) or not 0 < factor < math.inf:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                f"set_gradient_divide_factor: expected a positive number, got {factor!r}"
                f"{at_user_line()}"
            )
        for unit in self._units(recurse=False):
            unit.divisor = float(factor)

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Taken for programs that call it: sums and means go the same way here."""

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether the backward pass gathers parameters once more, from all ranks.

        Raises:
            ArgumentError: a number, which `fully_shard` alone takes.
        """
        if not isinstance(reshard_after_forward, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(
                f"set_reshard_after_forward: expected a bool, got {reshard_after_forward!r}"
                f"{at_user_line()}"
            )
        for unit in self._units(recurse):
            unit.again, unit.within = reshard_after_forward, None

    def set_reshard_after_backward(
        self, reshard_after_backward: bool, *, recurse: bool = True
    ) -> None:
        """Whether whole parameters go after a backward pass; if not, the next call needs no gather.

        They stay until they change: through the backward passes whose gradients add up.
        """
        for unit in self._units(recurse):
            unit.kept = not reshard_after_backward

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Taken for programs that call it: nothing is left over after any backward pass."""

    def set_modules_to_forward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Say which units' gathers begin when this one's has ended, in a call.

        By default it is the one that followed in the last call; more take more memory.

        Raises:
            ArgumentError: a module that is not sharded.
        """
        self._sharded_unit.ahead = self._units_of(modules, "set_modules_to_forward_prefetch")

    def set_modules_to_backward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Say how many units' gathers begin when this one's has ended, in a backward pass.

        By default it is one. They are those that follow there, in the reverse order of the call.

        Raises:
            ArgumentError: a module that is not sharded.
        """
        found = self._units_of(modules, "set_modules_to_backward_prefetch")
        self._sharded_unit.ahead_backward = len(found)

    @staticmethod
    def _units_of(modules: Sequence[Module], name: str) -> list[Unit]:
        found: list[Unit] = []
        for module in modules:
            if not isinstance(module, FSDPModule):
                raise ArgumentError(
                    f"{name}: expected modules that are sharded, got a {type(module).__name__}"
                    f"{at_user_line()}"
                )
            found.append(module._sharded_unit)
        return list(dict.fromkeys(found))

    def _units(self, recurse: bool) -> list[Unit]:
        below = self.modules() if recurse else [self]
        units = [m._sharded_unit for m in below if isinstance(m, FSDPModule)]
        return list(dict.fromkeys(units))


@dataclass(frozen=True)
class UnshardHandle:
    """What `unshard(async_op=True)` returns."""

    module: FSDPModule

    def wait(self) -> None:
        """Have whole parameters in their places."""
        self.module.unshard()


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Have whole parameters in a method besides `forward`, as in `model.generate(x)`.

    A module that is not sharded stays as it is.

    Raises:
        ArgumentError: there is no such method.
    """
    if not isinstance(module, FSDPModule):
        return
    method = getattr(module, method_name, None)
    if not callable(method):
        raise ArgumentError(
            f"register_fsdp_forward_method: {type(module).__name__} has no method "
            f"{method_name!r}{at_user_line()}"
        )
    function = getattr(method, "__func__", method)

    @functools.wraps(function)
    def whole(self: FSDPModule, *args: Any, **kwargs: Any) -> Any:
        return self.call_whole(functools.partial(function, self), args, kwargs)

    object.__setattr__(module, method_name, types.MethodType(whole, module))
