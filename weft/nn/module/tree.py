"""Modules as trees: registered entries, and traversal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Self, TypeVar

from weft.eager.record.pending.global_mark import changes
from weft.eager.tensor.tensor import Tensor
from weft.ir.node import PLACE, at_user_line, user_source
from weft.nn.module.parameter_swap import swapped
from weft.nn.parameter import Buffer, Parameter

T = TypeVar("T")
Named = Iterator[tuple[str, T]]
_KINDS = ("_parameters", "_buffers", "_modules")

ON_REGISTRATION: dict[str, dict[int, Callable[..., Any]]] = {kind: {} for kind in _KINDS}
"""Hooks of all modules by the kind of entry: `hook(module, name, entry)`."""


class _NoAttributeError(AttributeError):
    """A module lacks an attribute; `hasattr` asks for no message."""

    def __str__(self) -> str:
        kind, name, source = self.args
        at = "" if source is None else f"{PLACE}{source})"
        return f"{kind}: there is no attribute {name!r}{at}"


class Tree:
    """Parameters, buffers and submodules by name, as attributes."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Tree | None]
    _non_persistent_buffers_set: set[str]
    training: bool

    def __init__(self) -> None:
        fields = self.__dict__
        fields["training"] = True
        fields["_parameters"] = {}
        fields["_buffers"] = {}
        fields["_modules"] = {}
        fields["_non_persistent_buffers_set"] = set()

    # -- attributes

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__
        try:
            entries = fields["_parameters"]
            if name in entries:
                return entries[name]
            entries = fields["_modules"]
            if name in entries:
                return entries[name]
            entries = fields["_buffers"]
            if name in entries:
                return entries[name]
        except KeyError:
            if not name.startswith("__"):
                raise self._not_begun(f"read {name!r}") from None
        raise _NoAttributeError(type(self).__name__, name, user_source())

    def _not_begun(self, what: str) -> AttributeError:
        return AttributeError(
            f"{type(self).__name__}: cannot {what} before the module is set up; call "
            f"super().__init__() first in its __init__{at_user_line()}"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            if isinstance(value, Parameter):
                self._release(name, "_parameters")
                self.register_parameter(name, value)
                return
            if isinstance(value, Buffer):
                self._release(name, "_buffers")
                self.register_buffer(name, value, value.persistent)
                return
            if name in self.__dict__.get("_buffers", ()):
                self._buffers[name] = self._on_registration("_buffers", name, value)
                return
            if name in self.__dict__.get("_parameters", ()):
                raise TypeError(
                    f"{type(self).__name__}.{name}: expected a Parameter or None in place of a "
                    f"parameter, got a Tensor; wrap it in Parameter(...){at_user_line()}"
                )
        elif isinstance(value, Tree):
            self._release(name, "_modules")
            self.add_module(name, value)
            return
        elif value is None and self._forget(name):
            return
        try:
            object.__setattr__(self, name, value)
        finally:  # Ctrl-C is handled after the call
            if name == "training":
                changes.modes = object()

    def _forget(self, name: str) -> bool:
        """Set a registered name to `None`, if it is registered."""
        for registry in _KINDS:
            entries = self.__dict__.get(registry, ())
            if name in entries:
                self.__dict__[registry][name] = None
                return True
        return False

    def __delattr__(self, name: str) -> None:
        for registry in _KINDS:
            if name in self.__dict__.get(registry, ()):
                del self.__dict__[registry][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*super().__dir__(), *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if name.isidentifier())

    # -- registration

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register a parameter, or reserve its name with `None`."""
        self._check_name(name, "_parameters", "parameter")
        if param is not None and not isinstance(param, Parameter):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise self._wrong_kind(name, "a Parameter or None", param)
        self._parameters[name] = self._on_registration("_parameters", name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is not a parameter; a persistent one is part of the state dict."""
        self._check_name(name, "_buffers", "buffer")
        if tensor is not None and not isinstance(tensor, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise self._wrong_kind(name, "a Tensor or None", tensor)
        if tensor is not None:
            tensor.lasting = True
        self._buffers[name] = self._on_registration("_buffers", name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Tree | None) -> None:
        """Register a submodule, or reserve its name with `None`."""
        self._check_name(name, "_modules", "module")
        if module is not None and not isinstance(module, Tree):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise self._wrong_kind(name, "a Module or None", module)
        self._modules[name] = self._on_registration("_modules", name, module)

    def register_module(self, name: str, module: Tree | None) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    def _on_registration(self, registry: str, name: str, entry: Any) -> Any:
        """The entry, or what the global registration hooks return instead."""
        for hook in list(ON_REGISTRATION[registry].values()) if entry is not None else ():
            changed = hook(self, name, entry)
            entry = entry if changed is None else changed
        return entry

    def _wrong_kind(self, name: str, expected: str, got: Any) -> TypeError:
        return TypeError(
            f"{type(self).__name__}.{name}: expected {expected}, got {type(got).__name__}"
            f"{at_user_line()}"
        )

    def _check_name(self, name: Any, registry: str, what: str) -> None:
        """Check that the name is free, or taken by an entry of the same kind."""
        fields = self.__dict__
        if registry not in fields:
            raise self._not_begun(f"assign the {what} {name!r}")
        if not isinstance(name, str):
            raise TypeError(f"{what}: expected a name, got {name!r}{at_user_line()}")
        if "." in name or name == "":
            raise KeyError(
                f"{what}: expected a name that is not empty and has no dot, got {name!r}"
                f"{at_user_line()}"
            )
        if name in fields[registry]:
            return
        taken = name in fields or any(name in fields[k] for k in _KINDS)
        if taken or hasattr(type(self), name):
            raise KeyError(f"{what}: the name {name!r} is taken already{at_user_line()}")

    def _release(self, name: str, registry: str) -> None:
        """Remove other entries of this name before one of another kind is assigned."""
        fields = self.__dict__
        fields.pop(name, None)
        for other in _KINDS:
            if other != registry and other in fields:
                fields[other].pop(name, None)

    # -- traversal

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Named[Self]:
        """This module and all below it, each once, with their paths."""
        seen: set[Any] = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(seen, path, remove_duplicate)  # type: ignore[misc]

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """This module and all below it, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Named[Any]:
        """The direct submodules, each once, with their names."""
        seen: set[Any] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """The direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def _named(
        self, registry: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Named[Any]:
        seen: set[int] = set()
        walk: Any = [(prefix, self)]
        if recurse:
            walk = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in walk:
            for name, tensor in module.__dict__[registry].items():
                if tensor is None or id(tensor) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(tensor))
                yield f"{path}.{name}" if path else name, tensor

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Named[Parameter]:
        """Parameters with their paths; shared ones once."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Parameters, shared ones once, as optimizers take them."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Named[Tensor]:
        """Buffers with their paths; shared ones once."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Buffers; shared ones once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    # -- by path

    def get_submodule(self, target: str) -> Any:
        """The module at a path such as `"encoder.layers.0"`.

        Raises:
            AttributeError: there is no such module.
        """
        module: Any = self
        for name in filter(None, target.split(".")):
            child = module._modules.get(name)
            if child is None:
                raise AttributeError(
                    f"get_submodule: {type(module).__name__} has no submodule {name!r} "
                    f"(of the path {target!r}){at_user_line()}"
                )
            module = child
        return module

    def set_submodule(self, target: str, module: Tree, strict: bool = False) -> None:
        """Replace or add the module at a path; with `strict`, it must exist.

        Raises:
            AttributeError: there is no such module.
        """
        path, _, name = target.rpartition(".")
        if strict:
            self.get_submodule(target)
        setattr(self.get_submodule(path), name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path."""
        return self._at(target, "_parameters", "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path."""
        return self._at(target, "_buffers", "buffer")

    def swapped(
        self, tensors: Mapping[str, Tensor], tie_weights: bool = True, strict: bool = False
    ) -> AbstractContextManager[None]:
        """Inside, other tensors replace the parameters and buffers at the given paths.

        Other attributes at such paths are replaced too. `tensors`, if mutable, holds the final
        values afterwards.

        Args:
            tie_weights: whether a tensor with several paths is replaced at all of them.
            strict: whether all parameters and buffers must be given, and nothing else.

        Raises:
            AttributeError: a path leads to no module.
            StateError: with `strict`, a path is unknown or missing.
            TypeError: a value in `tensors` or in the module is not a tensor.
            ValueError: with `tie_weights`, different tensors for the paths of one.
        """
        return swapped(self, tensors, tie_weights, strict)

    def _at(self, target: str, registry: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        entry = module.__dict__[registry].get(name)
        if entry is None:
            raise AttributeError(
                f"get_{what}: {type(module).__name__} has no {what} {name!r}{at_user_line()}"
            )
        return entry
