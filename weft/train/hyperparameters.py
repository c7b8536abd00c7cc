"""Hyperparameters of modules and data modules: a constructor's arguments, kept and saved."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import json
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

from weft.errors import ArgumentError

NAME: Final = "hparams_name"
"""The entry of a checkpoint that names the one argument that holds all hyperparameters."""
_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Hyperparameters(dict[str, Any]):
    """A module's arguments, read as items or as attributes.

    >>> found = Hyperparameters(lr=0.1)
    >>> found.lr, found["lr"]
    (0.1, 0.1)
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"hparams: expected one of {list(self)}, got {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class HasHyperparameters:
    """The part of modules and data modules that keeps the constructor's arguments.

    Attributes:
        hparams_name: the constructor's argument that holds all of them, or `None`.
        logs_hparams: whether loggers get them.
    """

    CHECKPOINT_HYPER_PARAMS_KEY = "hyper_parameters"
    CHECKPOINT_HYPER_PARAMS_NAME = NAME
    hparams_name: str | None = None
    logs_hparams = False

    @property
    def hparams(self) -> Hyperparameters:
        """The hyperparameters that `save_hyperparameters` stored."""
        found = vars(self).get("_hparams")
        if found is None:
            found = vars(self)["_hparams"] = Hyperparameters()
        return found

    @property
    def hparams_initial(self) -> Hyperparameters:
        """A copy of the hyperparameters as they were stored first."""
        return copy.deepcopy(vars(self).get("_hparams_initial", Hyperparameters()))

    def save_hyperparameters(
        self, *args: Any, ignore: Iterable[str] | str | None = None,
        frame: FrameType | None = None, logger: bool = True,
    ) -> None:  # fmt: skip
        """Store the constructor's arguments: they are saved with checkpoints and logged.

        Args:
            args: names of some of them, or one object that holds all: a dictionary, a namespace or
                a data class; all arguments by default.
            ignore: names to leave out.
            frame: a running call of the constructor; by default the caller's.
            logger: whether loggers get them.

        Raises:
            ArgumentError: called outside of a constructor.
        """
        given = [x for x in args if not isinstance(x, str)]
        if len(given) > 1:
            raise ArgumentError.here(
                f"save_hyperparameters: expected names, or one object with all of them, got "
                f"{len(given)} objects"
            )
        began = frame or inspect.currentframe()
        found = _arguments_of_constructor(self, began, required=not given)
        if given:
            names = [k for k, v in found.items() if v is given[0]]
            self.hparams_name = names[0] if names else None
            found = _entries(given[0])
        left_out = {ignore} if isinstance(ignore, str) else set(ignore or ())
        chosen = [x for x in args if isinstance(x, str)] or list(found)
        self.hparams.update({k: found[k] for k in chosen if k in found and k not in left_out})
        self.logs_hparams = logger
        vars(self)["_hparams_initial"] = Hyperparameters(_copied(self.hparams))


def _copied(found: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy; what cannot be copied stays itself."""
    copies: dict[str, Any] = {}
    for name, value in found.items():
        try:
            copies[name] = copy.deepcopy(value)
        except Exception:  # whatever a user's class raises
            copies[name] = value
    return copies


def _entries(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, Namespace):
        return dict(vars(given))
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        return dataclasses.asdict(given)
    if hasattr(given, "__dict__"):
        return dict(vars(given))
    raise ArgumentError.here(
        f"save_hyperparameters: expected names, a dictionary, a namespace or a data class, got "
        f"{type(given).__name__}"
    )


def _arguments_of_constructor(owner: Any, frame: Any, required: bool) -> dict[str, Any]:
    """The arguments of all running constructors of `owner`; the outermost call's win."""
    if dataclasses.is_dataclass(owner):
        return {f.name: getattr(owner, f.name) for f in dataclasses.fields(owner)}
    found: dict[str, Any] | None = None
    while frame is not None:
        code, values = frame.f_code, frame.f_locals
        first = code.co_varnames[0] if code.co_argcount else ""
        if code.co_name == "__init__" and values.get(first) is owner:
            found = {**(found or {}), **_arguments_of_call(frame, first)}
        frame = frame.f_back
    if found is None and required:
        raise ArgumentError.here(
            "save_hyperparameters: expected a call inside of the constructor, whose arguments are "
            "stored; or give it a dictionary"
        )
    return found or {}


def _arguments_of_call(frame: Any, first: str) -> dict[str, Any]:
    names, _, keywords, values = inspect.getargvalues(frame)
    code = frame.f_code
    only = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    rest = dict(values[keywords]) if keywords else {}
    return {**{k: values[k] for k in (*names, *only) if k != first and k in values}, **rest}


def get_init_args(frame: FrameType) -> dict[str, Any]:
    """The arguments of a running constructor by name: `get_init_args(inspect.currentframe())`."""
    names = frame.f_code.co_varnames
    return _arguments_of_call(frame, names[0]) if names else {}


def constructed(
    cls: type[Any], saved: Mapping[str, Any], name: str | None, given: Mapping[str, Any]
) -> Any:
    """An object of a class whose hyperparameters were saved.

    Args:
        saved: the hyperparameters.
        name: the constructor's argument that holds all of them, or `None`.
        given: arguments that replace saved ones.
    """
    parameters = inspect.signature(cls.__init__).parameters.values()
    known = [p.name for p in parameters if p.kind not in _VARIADIC]
    if name is not None and name in known:
        return cls(**{name: Hyperparameters({**saved, **given}), **_among(given, known)})
    wanted = {**saved, **given}
    if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        wanted = {**_among(saved, known), **given}
    return cls(**wanted)


def _among(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {k: v for k, v in given.items() if k in names}


def yaml_of(hparams: Mapping[str, Any]) -> str:
    """Hyperparameters as a file of YAML: a line each, with values in JSON, which is YAML too."""
    return "".join([f"{k}: {json.dumps(v, default=str)}\n" for k, v in hparams.items()])


def read_file(path: Any) -> dict[str, Any]:
    """The hyperparameters in a YAML file; none without a path.

    Raises:
        ArgumentError: PyYAML is not installed.
    """
    if path is None:
        return {}
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise ArgumentError.here(
            "hparams_file: expected PyYAML, which reads it, got none; install: pip install pyyaml"
        ) from None
    return dict(yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {})


def is_plain(x: Any) -> bool:
    """Whether a value can be saved in a file."""
    if isinstance(x, Mapping):
        return all(isinstance(k, str) and is_plain(v) for k, v in x.items())
    if isinstance(x, list | tuple):
        return all(is_plain(v) for v in x)
    return x is None or isinstance(x, bool | int | float | str)


def plain(hparams: Mapping[str, Any]) -> dict[str, Any]:
    """The hyperparameters that can be saved."""
    return {k: v for k, v in hparams.items() if is_plain(v)}
