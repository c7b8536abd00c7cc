"""`HParams`: a program's settings, by name, with types."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["HParams", "parse_values"]

_PAIR = re.compile(r"\s*(?P<name>[a-zA-Z][\w.]*)(\[(?P<index>\d+)\])?\s*=\s*"
                   r"((?P<list>\[[^\]]*\])|(?P<value>[^,\[]*))\s*(,|$)")  # fmt: skip


def _as(kind: type, text: str, name: str) -> Any:
    if kind is bool:
        if text.lower() not in ("true", "false", "1", "0"):
            raise ValueError(f"Could not parse hparam {name!r} of type 'bool' in {text!r}")
        return text.lower() in ("true", "1")
    try:
        return kind(text.strip())
    except ValueError:
        raise ValueError(
            f"Could not parse hparam {name!r} of type {kind.__name__!r}: {text!r}"
        ) from None


def parse_values(values: str, type_map: Mapping[str, type]) -> dict[str, Any]:
    """Settings of a text such as `rate=0.1,sizes=[1,2]`.

    Args:
        values: the text.
        type_map: the type of each setting.

    Raises:
        ValueError: a name is not known, or a value has another type.

    >>> parse_values("rate=0.1,sizes=[1,2]", {"rate": float, "sizes": int})
    {'rate': 0.1, 'sizes': [1, 2]}
    """
    found: dict[str, Any] = {}
    at = 0
    while at < len(values):
        match = _PAIR.match(values, at)
        if match is None:
            raise ValueError(f"Malformed hyperparameter value: {values[at:]}")
        at, name = match.end(), match["name"]
        if name not in type_map:
            raise ValueError(f"Unknown hyperparameter type for {name}")
        kind = type_map[name]
        if match["list"] is not None:
            inner = [part for part in match["list"][1:-1].split(",") if part.strip()]
            found[name] = [_as(kind, part, name) for part in inner]
        elif match["index"] is not None:
            found.setdefault(name, {})[int(match["index"])] = _as(kind, match["value"], name)
        else:
            found[name] = _as(kind, match["value"], name)
    return found


class HParams:
    """Settings as attributes; a setting keeps its type.

    Args:
        kwargs: the settings.

    >>> settings = HParams(rate=0.1, layers=2)
    >>> settings.parse("rate=0.5").rate, settings.layers
    (0.5, 2)
    """

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        if hparam_def is not None or model_structure is not None:
            raise ValueError("HParams: expected settings as keyword arguments")
        self._types: dict[str, tuple[type, bool]] = {}
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a setting.

        Raises:
            ValueError: there is one of this name, or the list is empty.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        is_list = isinstance(value, list | tuple)
        if is_list and not value:
            raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
        self._types[name] = (type(value[0] if is_list else value), is_list)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Changes a setting, to a value of its type.

        Raises:
            KeyError: there is none.
            ValueError: the value has another type.
        """
        kind, is_list = self._types[name]
        if isinstance(value, list | tuple) != is_list and kind is not type(None):
            what = "a list" if is_list else "one value"
            raise ValueError(f"HParams: expected {what} for {name!r}, got {value!r}")
        setattr(
            self, name, [self._cast(name, v) for v in value] if is_list else self._cast(name, value)
        )

    def _cast(self, name: str, value: Any) -> Any:
        kind = self._types[name][0]
        if kind is type(None) or value is None or isinstance(value, kind):
            return value
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        raise ValueError(
            f"Could not cast hparam {name!r} of type {kind.__name__!r} from value {value!r}"
        )

    def del_hparam(self, name: str) -> None:
        """Removes a setting, if it is there."""
        if name in self._types:
            delattr(self, name)
            del self._types[name]

    def parse(self, values: str) -> HParams:
        """Changes settings by a text such as `rate=0.1,layers=2`; itself.

        Raises:
            ValueError: a name is not known, or a value has another type.
        """
        kinds = {name: kind for name, (kind, _) in self._types.items()}
        for name, value in parse_values(values, kinds).items():
            if isinstance(value, dict):
                items = list(getattr(self, name))
                for index, item in value.items():
                    items[index] = item
                value = items
            elif self._types[name][1] and not isinstance(value, list):
                value = [value]
            self.set_hparam(name, value)
        return self

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Changes settings; itself."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse_json(self, values_json: str) -> HParams:
        """Changes settings by a JSON object; itself."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, indent: int | None = None, separators: Any = None, sort_keys: bool = False):
        """The settings as a JSON object, without functions."""
        plain = {k: v for k, v in self.values().items() if not callable(v)}
        return json.dumps(plain, indent=indent, separators=separators, sort_keys=sort_keys)

    def values(self) -> dict[str, Any]:
        """The settings as a dict."""
        return {name: getattr(self, name) for name in self._types}

    def get(self, key: str, default: Any = None) -> Any:
        """A setting, or the default."""
        return getattr(self, key) if key in self._types else default

    def __contains__(self, key: str) -> bool:
        return key in self._types

    def __str__(self) -> str:
        return str(sorted(self.values().items()))

    def __repr__(self) -> str:
        return f"HParams({self})"
