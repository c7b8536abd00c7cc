"""Parameters and buffers that modules compute from others: `register_parametrization`.

>>> import weft as wf
>>> from weft import nn
>>> class Symmetric(nn.Module):
...     def forward(self, x):
...         return x.triu() + x.triu(1).mT
>>> layer = nn.Linear(3, 3)
>>> _ = register_parametrization(layer, "weight", Symmetric())
>>> wf.allclose(layer.weight, layer.weight.mT), [name for name, _ in layer.named_parameters()]
(True, ['bias', 'parametrizations.weight.original'])
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from weft.documentation import arguments_of
from weft.eager.record.pending.mode import no_grad
from weft.eager.tensor.tensor import Tensor
from weft.errors import ArgumentError
from weft.host.garbage_collection import FirstRead
from weft.ir.node import at_user_line
from weft.nn.module.container import ModuleDict, ModuleList
from weft.nn.module.module import Module
from weft.nn.parameter import Buffer, Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization",
    "remove_parametrizations", "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]  # fmt: skip

M = TypeVar("M", bound=Module)


class _Cache(threading.local):
    """Values inside `cached()`; each one is computed once."""

    depth: int = 0
    values = FirstRead[dict[tuple[int, str], Any]](dict)


_CACHE = _Cache()


class ParametrizationList(ModuleList):
    """The originals of a value, and the modules that compute it, applied in order.

    Args:
        modules: the modules.
        original: the initial value; stored as `original`, or as `original0`, `original1`, ... if a
            `right_inverse` returns several tensors.
        unsafe: whether shape and element type may change.
    """

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            started = _started(list(self), original)
            self.parts = 0
            if isinstance(started, Tensor):
                if not unsafe and started.dtype is not original.dtype:
                    raise _unlike("right_inverse", original, started)
                if started is not original:
                    original.data = started  # the same object, which an optimizer may hold
                self._hold("original", original)
                return
        self.parts = len(started)
        for i, part in enumerate(started):
            self._hold(f"original{i}", _like(original, part))

    def _hold(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self.register_parameter(name, value)
        else:
            self.register_buffer(name, value)

    def named_originals(self) -> list[tuple[str, Any]]:
        """The originals, with their names."""
        names = [f"original{i}" for i in range(self.parts)] or ["original"]
        return [(name, getattr(self, name)) for name in names]

    def originals(self) -> list[Any]:
        """The originals."""
        return [tensor for _, tensor in self.named_originals()]

    def forward(self) -> Any:
        """The computed value."""
        first, *rest = self
        value = first(*self.originals())
        for module in rest:
            value = module(value)
        return value

    def right_inverse(self, value: Any) -> None:
        """Assign a value: set the originals by the modules' `right_inverse`.

        Raises:
            RuntimeError: a module has no `right_inverse`.
            ArgumentError: it returns another number of tensors, or other types.
        """
        with no_grad():
            for module in reversed(list[Any](self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"{type(module).__name__}: to assign a value, right_inverse has to be "
                        f"defined{at_user_line()}"
                    )
                value = module.right_inverse(value)
            olds, news = self.originals(), _tensors(value)
            if len(news) != len(olds) or isinstance(value, Tensor) == bool(self.parts):
                expected = f"a sequence of {self.parts} tensors" if self.parts else "one tensor"
                raise ArgumentError.here(f"right_inverse: expected {expected}")
            for old, new in zip(olds, news, strict=True):
                if new.dtype is not old.dtype:
                    raise _unlike("right_inverse", old, new)
                old.data = new


def _started(modules: list[Any], value: Any) -> Any:
    """What the modules compute a value from, as far as `right_inverse` tells."""
    for module in reversed(modules):
        if hasattr(module, "right_inverse"):
            with contextlib.suppress(NotImplementedError):
                value = module.right_inverse(value)
    _tensors(value)
    return value


def _tensors(result: Any) -> list[Any]:
    """The result of a `right_inverse`, as a list.

    Raises:
        ArgumentError: it is neither a tensor nor a sequence of tensors.
    """
    several = list[Any](result) if isinstance(result, Sequence) else [result]
    for each in several:
        if not isinstance(each, Tensor):
            raise ArgumentError.here(
                f"right_inverse: expected a tensor or a sequence of tensors, got "
                f"{type(each).__name__}"
            )
    return several


def _unlike(what: str, expected: Any, got: Any) -> ValueError:
    return ValueError(
        f"{what}: expected {expected.dtype} of shape {expected.shape}, got {got.dtype} of shape "
        f"{got.shape}; unsafe=True allows it{at_user_line()}"
    )


def _like(original: Any, value: Any) -> Any:
    """One of the originals, as a parameter or buffer like the first one."""
    if not isinstance(original, Parameter):
        return Buffer(value)
    return Parameter(value, original.requires_grad and value.dtype.is_inexact)


def _value(module: Any, name: str) -> Any:
    makers = module.parametrizations
    if not _CACHE.depth:
        return makers[name]()
    key = (id(module), name)
    if key not in _CACHE.values:
        _CACHE.values[key] = makers[name]()
    return _CACHE.values[key]


def _property(name: str) -> property:
    def get(module: Any) -> Any:
        return _value(module, name)

    def put(module: Any, value: Any) -> None:
        module.parametrizations[name].right_inverse(value)

    return property(get, put)


@lru_cache(maxsize=1024)
def _parametrized(base: type[Module], names: tuple[str, ...]) -> type[Module]:
    """A subclass of a module's class with computed properties."""

    def reduce(self: Any, _protocol: Any) -> Any:
        return _made, (base, names), dict(vars(self))

    fields: dict[str, Any] = {name: _property(name) for name in names}
    fields |= {"__reduce_ex__": reduce, "_before": base}
    return type(f"Parametrized{base.__name__}", (base,), fields)


def _made(base: type[Module], names: tuple[str, ...]) -> Module:
    """An empty module, for copies."""
    cls = _parametrized(base, names)
    return cls.__new__(cls)


def type_before_parametrizations(module: Module) -> type[Module]:
    """The module's class before it was parametrized.

    Args:
        module: the module.
    """
    return getattr(type(module), "_before", type(module))


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a value of this name, or any value, is parametrized.

    Args:
        module: the module.
        tensor_name: the value's name; `None` stands for any.
    """
    makers: Any = vars(module).get("_modules", {}).get("parametrizations")
    if not isinstance(makers, ModuleDict):
        return False
    return bool(len(makers)) if tensor_name is None else tensor_name in makers


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Inside, each value is computed once, however often it is used."""
    _CACHE.depth += 1
    try:
        yield
    finally:
        _CACHE.depth -= 1
        if not _CACHE.depth:
            _CACHE.values.clear()


def register_parametrization(
    module: M, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> M:
    """Compute a parameter or buffer of a module by another module from now on.

    The parametrization's `right_inverse`, if any, gives the original from the current value and
    from assigned ones. Several parametrizations are applied in order.

    Args:
        module: the module.
        tensor_name: the name of the parameter or buffer.
        parametrization: the module that computes it from the original.
        unsafe: do not check that shape and element type stay the same.

    Raises:
        ArgumentError: there is no such parameter or buffer, or shape or element type would change.
    """
    parametrization.train(module.training)
    tensors: dict[str, Any] = {**vars(module)["_parameters"], **vars(module)["_buffers"]}
    again = is_parametrized(module, tensor_name)
    if not again and tensors.get(tensor_name) is None:
        raise ArgumentError.here(
            f"{type(module).__name__}: there is no parameter or buffer {tensor_name!r}"
        )
    value = getattr(module, tensor_name)
    if not unsafe:
        _check(value, parametrization, again)
    makers: Any = getattr(module, "parametrizations", None)
    if again:
        makers[tensor_name].append(parametrization)
        makers[tensor_name].unsafe |= unsafe
        return module
    held = ParametrizationList([parametrization], value, unsafe).train(module.training)
    delattr(module, tensor_name)
    if makers is None:
        module.parametrizations = ModuleDict()
        makers = module.parametrizations
    makers[tensor_name] = held
    _be(module)
    return module


def _be(module: Module) -> None:
    """Give a module the class with the computed properties."""
    makers: Any = module.parametrizations
    base, names = type_before_parametrizations(module), tuple(makers.keys())
    object.__setattr__(module, "__class__", _parametrized(base, names) if names else base)
    if not names:
        del module.parametrizations


def _check(value: Any, parametrization: Any, again: bool) -> None:
    """Check that a parametrization keeps the shape and the element type.

    Args:
        again: there is an earlier parametrization, whose single result is this one's input.

    Raises:
        ArgumentError: it changes them.
    """
    name = type(parametrization).__name__
    with no_grad():
        original = _started([parametrization], value)
        if again and not isinstance(original, Tensor):
            raise ArgumentError.here(
                f"{name}: right_inverse: expected one tensor, as there is a parametrization before "
                f"this one, got {len(original)}"
            )
        if again and (original.shape, original.dtype) != (value.shape, value.dtype):
            raise _unlike(f"{name}: right_inverse", value, original)
        made = parametrization(*_tensors(original))
    if not isinstance(made, Tensor):
        raise ArgumentError.here(f"{name}: expected a tensor, got {type(made).__name__}")
    if (made.shape, made.dtype) != (value.shape, value.dtype):
        raise _unlike(name, value, made)


@arguments_of(register_parametrization)
def remove_parametrizations(module: M, tensor_name: str, leave_parametrized: bool = True) -> M:
    """Turn a parametrized value into a parameter or buffer again.

    Args:
        leave_parametrized: keep the computed value; else the original.

    Raises:
        ArgumentError: it is not parametrized, or there are several originals to keep.
    """
    if not is_parametrized(module, tensor_name):
        raise ArgumentError.here(f"{type(module).__name__}: {tensor_name!r} has no parametrization")
    makers: Any = module.parametrizations
    held = makers[tensor_name]
    if held.parts and not leave_parametrized:
        raise ArgumentError.here(
            f"{type(module).__name__}: {tensor_name!r} has several originals; "
            f"leave_parametrized has to be True"
        )
    kept = _left(module, tensor_name, held, leave_parametrized)
    del makers[tensor_name]
    _be(module)
    if isinstance(kept, Parameter):
        module.register_parameter(tensor_name, kept)
    else:
        module.register_buffer(tensor_name, kept)
    return module


def transfer_parametrizations_and_params(
    from_module: Module, to_module: M, tensor_name: str | None = None
) -> M:
    """Copy one module's parametrizations to another, with the same originals.

    Tensors that `to_module` lacks are added. Nothing happens if `from_module` has none.

    Args:
        from_module: the module with parametrizations.
        to_module: the module that gets them.
        tensor_name: the name of the only value to copy; all by default.
    """
    if not is_parametrized(from_module):
        return to_module
    makers: Any = from_module.parametrizations
    for name in list(makers) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            to_module.register_parameter(name, Parameter(getattr(from_module, name)))
        for parametrization in makers[name]:
            register_parametrization(to_module, name, parametrization)
        held: Any = to_module.parametrizations
        for original, tensor in makers[name].named_originals():
            setattr(held[name], original, tensor)
    return to_module


def _left(module: Module, name: str, held: Any, computed: bool) -> Any:
    """The remaining parameter or buffer, with the computed or the original value."""
    originals = held.originals()
    kept = originals[0]
    if not computed:
        return kept
    with no_grad():
        value = getattr(module, name)
        if not held.parts:
            kept.data = value
            return kept
    trained = any(p.requires_grad for p in originals)
    return Parameter(value, trained) if isinstance(kept, Parameter) else Buffer(value)
